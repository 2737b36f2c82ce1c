/** What one reads off an inspection: its tokens as rows and columns, merged to words, and attention over heads and layers. */
import {visible} from "./elements.js";
import {column, filled, product, row, sum, tensor} from "./numbers.js";

export const uses = {
  encoder: {name: "Encoder", long: "Encoder self-attention", says: "Words of the source look at each other."},
  decoder: {
    name: "Decoder",
    long: "Decoder self-attention",
    says: "Each word that was written looks back at those before it.",
  },
  cross: {name: "Cross", long: "Encoder-decoder attention", says: "Each word, as it is written, looks at the source."},
};

/** Ways to see all heads of a layer at once, beside the heads themselves. */
export const summaries = {
  mean: {name: "Mean of heads", says: "Each share is the mean over all heads of the layer."},
  max: {name: "Maximum of heads", says: "Each share is the largest that any head of the layer gives."},
  rollout: {
    name: "Rollout",
    says: "Means of heads, multiplied through all layers up to this one; half of each layer is what passes it by (the residual connection).",
  },
};

export function reading(inspection) {
  const tensors = Object.fromEntries(
    Object.entries(inspection.attention).map(([use, packed]) => [use, tensor(packed)]),
  );
  const known = new Map();

  function kept(key, make) {
    if (!known.has(key)) known.set(key, make());
    return known.get(key);
  }

  const {source, target} = inspection;
  // The decoder reads what was written one step before.
  const read = {
    tokens: inspection.read.tokens.map(({text}, at) => ({text, word: target.tokens[at - 1]?.word ?? null})),
    words: target.words,
  };
  // A row of cross attention is drawn as the token that is written there, not as the one before it that is read.
  const sides = {
    encoder: [source, source],
    decoder: [read, read],
    cross: [target, source],
  };

  function items(use, side, unit) {
    return kept(`items ${use} ${side} ${unit}`, () => {
      const {tokens, words} = sides[use][side];
      return unit === "words" ? merged(tokens, words) : tokens.map((token, at) => item(token, at, at + 1));
    });
  }

  function heads(use, layer) {
    return Array.from({length: tensors[use].shape[1]}, (_, head) => tokens(use, layer, head));
  }

  const mean = (weights) => sum(weights) / weights.length;
  const max = (weights) => Math.max(...weights);

  function tokens(use, layer, head) {
    const ways = {
      mean: () => overHeads(heads(use, layer), mean),
      max: () => overHeads(heads(use, layer), max),
      rollout: () => rollout(use, layer),
    };
    return kept(`${use} ${layer} ${head}`, ways[head] ?? (() => tensors[use].matrix(layer, head)));
  }

  /** How much a word looks at these tokens of the source, over all layers and heads. */
  function lookedAt(query, start, end) {
    const layers = Array.from({length: tensors.cross.shape[0]}, (_, layer) => tokens("cross", layer, "mean"));
    const rows = layers.flatMap((layer) =>
      Array.from({length: query.end - query.start}, (_, at) => row(layer, query.start + at)),
    );
    return mean(rows.map((weights) => sum(weights.subarray(start, end))));
  }

  /** Half of a layer's output is what came in by the residual connection; layers multiply. */
  function rollout(use, layer) {
    const looks = (which, at) => tokens(which, at, "mean");
    if (use !== "cross") {
      const here = withResidual(looks(use, layer));
      return layer === 0 ? here : product(here, tokens(use, layer - 1, "rollout"));
    }
    const memory = tokens("encoder", tensors.encoder.shape[0] - 1, "rollout");
    let stream = filled(...tensors.cross.shape.slice(-2), () => 0);
    for (let at = 0; at <= layer; at += 1) {
      const before = product(withResidual(looks("decoder", at)), stream);
      const looked = product(looks("cross", at), memory);
      stream = filled(
        stream.rows,
        stream.columns,
        (from, to) => (before.values[from * stream.columns + to] + looked.values[from * stream.columns + to]) / 2,
      );
    }
    return filled(
      stream.rows,
      stream.columns,
      (from, to) => stream.values[from * stream.columns + to] / (sum(row(stream, from)) || 1),
    );
  }

  return {
    inspection,
    layers: (use) => tensors[use].shape[0],
    heads: (use) => tensors[use].shape[1],
    queries: (use, unit) => items(use, 0, unit),
    keys: (use, unit) => items(use, 1, unit),
    /** The word that was written for a word of the source: one that is aligned with it, or that looks at it most. */
    writtenFor(word) {
      const aligned = inspection.alignment.findIndex((sources) => sources.includes(word));
      if (aligned >= 0) return {word: aligned, aligned: true};
      const {start, end} = items("cross", 1, "words").find((key) => key.word === word);
      const queries = items("cross", 0, "words").filter(({special}) => !special);
      const looks = queries.map((query) => lookedAt(query, start, end));
      return queries.length ? {word: queries[looks.indexOf(max(looks))].word, aligned: false} : null;
    },
    /** `head` is a number or one of the summaries; `unit` is "words" or "tokens". */
    matrix(use, layer, head, unit) {
      const whole = tokens(use, layer, head);
      if (unit === "tokens") return whole;
      const words = (matrix) => overWords(matrix, items(use, 0, unit), items(use, 1, unit));
      // The maximum of sums is what a head gives to a word; the sum of maxima would be more than any head gives.
      return kept(`words ${use} ${layer} ${head}`, () =>
        head === "max" ? overHeads(heads(use, layer).map(words), max) : words(whole),
      );
    },
  };
}

function item(token, start, end, text = token.text) {
  return {text: visible(text), start, end, word: token.word, special: token.word === null};
}

/** Neighbouring tokens of one word become one item; ends and tags stay, because attention often rests on them. */
function merged(tokens, words) {
  const made = [];
  tokens.forEach((token, at) => {
    const last = made.at(-1);
    if (last && token.word !== null && token.word === last.word) last.end = at + 1;
    else made.push(item(token, at, at + 1, token.word === null ? token.text : words[token.word].text));
  });
  return made;
}

/** A word looks as its tokens do on average, and is looked at as much as its tokens together. */
export function overWords(matrix, queries, keys) {
  return filled(queries.length, keys.length, (from, to) => {
    const {start, end} = queries[from];
    let total = 0;
    for (let at = start; at < end; at += 1) total += sum(row(matrix, at).subarray(keys[to].start, keys[to].end));
    return total / (end - start);
  });
}

function overHeads(heads, join) {
  const {rows, columns} = heads[0];
  return filled(rows, columns, (from, to) => join(heads.map((head) => head.values[from * columns + to])));
}

function withResidual(matrix) {
  return filled(
    matrix.rows,
    matrix.columns,
    (from, to) => (matrix.values[from * matrix.columns + to] + (from === to)) / 2,
  );
}

/** In a few words, what a head does with this sentence. */
export function habit(matrix, self) {
  const {rows, columns} = matrix;
  const along = (offset) => sum(Array.from({length: rows}, (_, at) => row(matrix, at)[at + offset] ?? 0)) / rows;
  const shares = [
    ["on the last token", sum(column(matrix, columns - 1)) / rows],
    ["on the first token", sum(column(matrix, 0)) / rows],
  ];
  if (self) shares.push(["on itself", along(0)], ["on the one before", along(-1)], ["on the one after", along(1)]);
  const [says, share] = shares.reduce((best, other) => (other[1] > best[1] ? other : best));
  if (share > 0.4) return `mostly ${says}`;
  const sharp = sum(Array.from({length: rows}, (_, at) => Math.max(...row(matrix, at)))) / rows;
  return sharp > 0.5 ? "sharply on one" : sharp > 0.25 ? "on a few" : "spread out";
}

/** Whether these items are read from right to left: the first letter of their words says so; tags and ends say nothing. */
export function rightToLeft(items) {
  const words = items.filter(({special}) => !special).map(({text}) => text);
  return /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(
    words.join(" "),
  );
}
