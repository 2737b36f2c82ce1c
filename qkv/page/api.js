// What is asked of the server, and what its refusals mean in plain words.

let key = "";
export const setKey = (value) => (key = value);
export const keyHeaders = (scheme = "Bearer") => (key ? { Authorization: `${scheme} ${key}` } : {});

/** Something that kept a translation from being made: words for a person, and when it may go better. */
export class Problem extends Error {
  constructor(kind, message, retryAfter = null) {
    super(message);
    this.kind = kind;
    this.retryAfter = retryAfter;
  }
}

export const gone = () => new Problem("gone", "The server does not answer. Your text is safe here; it is tried again as soon as the server is back.", 3);

export async function get(path) {
  return (await answer(path, {})).json();
}

export async function post(path, body, signal) {
  return (await answer(path, request(body, signal))).json();
}

/** The translation as it grows: `grown` is called with all there is so far. */
export async function stream(body, grown, signal) {
  const response = await answer("/stream", request(body, signal));
  let text = "";
  for await (const { event, data } of events(response.body)) {
    if (event === "error") throw new Problem("failed", data.text);
    text = event === "done" ? data.text : text + data.text;
    grown(text);
  }
  return text;
}

function request(body, signal) {
  const headers = { "Content-Type": "application/json", ...keyHeaders() };
  return { method: "POST", headers, body: JSON.stringify(body), signal };
}

async function answer(path, how) {
  let response;
  try {
    response = await fetch(path, how);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw gone();
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function problemOf(response) {
  const body = await response.json().catch(() => ({}));
  const said = body.error ?? body.message ?? "";
  const retryAfter = Number(response.headers?.get("Retry-After")) || null;
  if (response.status === 429 && retryAfter) return new Problem("busy", "The server is busy. It is asked again in a moment.", retryAfter);
  if (response.status === 503) return new Problem("away", "The server is getting its model ready. It is asked again in a moment.", retryAfter ?? 2);
  const [kind, words] = {
    401: ["key", "This server asks for a key."],
    403: ["key", "This key is not valid here, or has used up what it may."],
    404: ["missing", "This server does not offer that."],
    413: ["long", "The text is too long for this server. Send a part of it, or a file."],
    429: ["limit", "The limit of this key is reached. Try again later."],
    504: ["late", "The translation took too long. Send less at once, or try again."],
  }[response.status] ?? (/not supported/.test(said)
    ? ["language", "This server has no model for these two languages. Choose others."]
    : /exceeds text limit/.test(said)
      ? ["long", "The text is too long for this server. Send a part of it, or a file."]
      : response.status < 500
        ? ["refused", said.replace(/^Invalid request: /, "The server refused: ") || "The server refused this."]
        : ["failed", "The server failed; this is a fault of its own. Try again."]);
  return new Problem(kind, words);
}

/** Server-sent events of a body. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw gone();
    }
    if (piece.done) return;
    waiting += piece.value;
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s)));
      yield { event: fields.event, data: JSON.parse(fields.data) };
    }
  }
}
