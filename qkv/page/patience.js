// What may go better later is asked again, until it is answered or nobody wants it any more.

/** `waiting(problem)` is called before each pause, `signal` may end it; whatever only a person can change is thrown. */
export async function patiently(ask, { waiting, signal }) {
  for (;;) {
    try {
      return await ask();
    } catch (problem) {
      if (signal?.aborted || !problem.retryAfter) throw problem;
      waiting(problem);
      await new Promise((resume) => setTimeout(resume, 1000 * problem.retryAfter));
      signal?.throwIfAborted();
    }
  }
}
