/** What is being looked at, kept in the address so that a link shows the same. */
import {strongest, row} from "./numbers.js";
import {summaries, uses} from "./readings.js";

const prefix = "i.";

/** The fragment of the address; what others keep in it is left alone. Inside a notebook's frame there is no address to keep. */
export const fragment = {
  read() {
    const all = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(
      [...all].filter(([key]) => key.startsWith(prefix)).map(([key, value]) => [key.slice(prefix.length), value]),
    );
  },
  write(values) {
    if (location.protocol === "about:") return;
    const all = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(values)) all.set(prefix + key, value);
    history.replaceState(history.state, "", `#${all}`);
  },
};

/** Holds {view, use, layer, head, as, unit, query, key}; query and key are places of tokens. */
export function createStore(data, backing) {
  const listeners = new Set();
  let values = settled(data, {view: "attention", use: "encoder", as: "lines", unit: "words", ...typed(backing.read())});
  return {
    get: () => values,
    set(change) {
      // Places of tokens, layers and heads mean nothing in another use.
      const kept =
        change.use && change.use !== values.use
          ? {
              ...values,
              layer: undefined,
              head: values.head in summaries ? values.head : undefined,
              query: undefined,
              key: undefined,
            }
          : values;
      values = settled(data, {...kept, ...change});
      backing.write(Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)])));
      for (const listener of listeners) listener(values);
    },
    /** The address was changed by hand, or by a link to another view. */
    reload() {
      values = settled(data, {...values, ...typed(backing.read())});
      for (const listener of listeners) listener(values);
    },
    subscribe: (listener) => listeners.add(listener),
  };
}

function typed(texts) {
  return Object.fromEntries(
    Object.entries(texts).map(([key, value]) => [key, /^\d+$/.test(value) ? Number(value) : value]),
  );
}

const allowed = {
  view: ["attention", "equation", "positions", "probabilities", "search", "compare"],
  use: Object.keys(uses),
  as: ["lines", "matrix"],
  unit: ["words", "tokens"],
};

/** The nearest state that this inspection has: a link may come from a longer sentence or a larger model. */
function settled(data, wanted) {
  const state = {...wanted};
  // An address may say anything.
  for (const key of ["layer", "head", "query", "key"])
    if (!Number.isInteger(state[key]) && !(key === "head" && Object.hasOwn(summaries, state[key]))) state[key] = undefined;
  for (const [key, values] of Object.entries(allowed)) if (!values.includes(state[key])) state[key] = values[0];
  const {use} = state;
  const within = (value, count, otherwise) => (Number.isInteger(value) ? Math.min(value, count - 1) : otherwise);
  state.query = within(state.query, data.queries(use, "words").at(-1).end, firstQuery(data, use));
  const telling = state.layer === undefined || state.head === undefined ? mostTelling(data, use, state.query) : state;
  state.layer = within(state.layer, data.layers(use), telling.layer);
  if (!(state.head in summaries)) state.head = within(state.head, data.heads(use), telling.head);
  const weights = row(data.matrix(use, state.layer, state.head, "tokens"), state.query);
  state.key = within(state.key, weights.length, strongest(weights, 1)[0]);
  return state;
}

/** "it", or what was written for it, where there is one: the word whose attention one asks for first. */
function firstQuery(data, use) {
  const {source} = data.inspection;
  const it = source.words.findIndex(({text}) => text.toLowerCase() === "it");
  const wanted = use === "encoder" || it < 0 ? it : (data.writtenFor(it)?.word ?? -1);
  const queries = data.queries(use, "words");
  return (queries.find((query) => query.word === wanted && wanted >= 0) ?? queries[Math.floor(queries.length / 2)])
    .start;
}

/** The head that is most decided about a word, other than those on the word itself, beside it, or on no word at all. */
function mostTelling(data, use, query) {
  const keys = data.keys(use, "tokens");
  const worth = keys.map(({special}, at) => !special && (use === "cross" || Math.abs(at - query) > 1));
  let best = {layer: data.layers(use) - 1, head: "mean", weight: 0};
  for (let layer = 0; layer < data.layers(use); layer += 1) {
    for (let head = 0; head < data.heads(use); head += 1) {
      row(data.matrix(use, layer, head, "tokens"), query).forEach((weight, at) => {
        if (worth[at] && weight > best.weight) best = {layer, head, weight};
      });
    }
  }
  return best;
}
