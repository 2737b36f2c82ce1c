// Translating while somebody types: first the words as they come, then the best translation with all that is known of
// its words. Whatever is newer makes what is under way stale: it is aborted, and the server stops working on it.

import { post, stream } from "./api.js";
import { patiently } from "./patience.js";

const ALTERNATIVES = 3;
// Milliseconds: a long text costs the server more, and is rarely typed.
const pause = (text) => Math.min(1200, 220 + text.length / 10);

export class Live {
  /** `on` has `begun`, `grown(text)`, `done(explained, order)` and `failed(problem)`. */
  constructor(on) {
    this.on = on;
    this.under = null;
  }

  /** Forgets what is under way. */
  stop() {
    clearTimeout(this.later);
    this.under?.abort();
    this.under = null;
  }

  /** Translates when no other order comes for a moment. */
  soon(order) {
    this.stop();
    this.later = setTimeout(() => this.now(order), pause(order.q));
  }

  async now(order) {
    this.stop();
    const under = (this.under = new AbortController());
    try {
      const explained = await patiently(() => this.ask(order, under.signal), { waiting: this.on.failed, signal: under.signal });
      if (!under.signal.aborted) this.on.done(explained, order);
    } catch (problem) {
      if (!under.signal.aborted) this.on.failed(problem);
    }
  }

  async ask({ q, source, target, glossary }, signal) {
    this.on.begun();
    await this.grow({ q, source, target }, signal);
    const terms = Object.keys(glossary).length ? { glossary } : {};
    return post("/explain", { q, source, target, alternatives: ALTERNATIVES, ...terms }, signal);
  }

  async grow(body, signal) {
    try {
      await stream(body, (text) => signal.aborted || this.on.grown(text), signal);
    } catch (problem) {
      // A model that writes the last word first cannot be watched, but it can translate.
      if (problem.kind !== "refused" && problem.kind !== "failed") throw problem;
    }
  }
}
