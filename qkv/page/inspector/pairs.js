/** Two inspections of nearly the same sentence: which word of one stands for which of the other, and what moved. */
import {row, sum} from "./numbers.js";

/** Pairs of places by the longest common subsequence of texts; what stands between two matches is paired in order. */
export function paired(one, two) {
  const length = Array.from({length: one.length + 1}, () => new Uint16Array(two.length + 1));
  for (let at = one.length - 1; at >= 0; at -= 1) {
    for (let to = two.length - 1; to >= 0; to -= 1) {
      length[at][to] =
        one[at].text === two[to].text ? length[at + 1][to + 1] + 1 : Math.max(length[at + 1][to], length[at][to + 1]);
    }
  }
  const pairs = [];
  let [at, to] = [0, 0];
  let [left, right] = [[], []];
  const settle = () => {
    for (let place = 0; place < Math.max(left.length, right.length); place += 1)
      pairs.push([left[place] ?? null, right[place] ?? null]);
    [left, right] = [[], []];
  };
  while (at < one.length || to < two.length) {
    if (at < one.length && to < two.length && one[at].text === two[to].text) {
      settle();
      pairs.push([at++, to++]);
    } else if (to >= two.length || (at < one.length && length[at + 1][to] >= length[at][to + 1])) left.push(at++);
    else right.push(to++);
  }
  settle();
  return pairs;
}

/** The row of the chosen attention that a word of the source stands for: its own, or that of what is written for it. */
function rowFor(data, use, source) {
  const wanted = use === "encoder" ? source : data.writtenFor(source)?.word;
  const at = data.queries(use, "words").findIndex((query) => query.word !== null && query.word === wanted);
  return at < 0 ? null : at;
}

/** The token at which that row begins. */
export function placeOf(data, use, source) {
  const at = rowFor(data, use, source);
  return at === null ? null : data.queries(use, "words")[at].start;
}

/** The word of the source that the chosen row stands for, if both sentences have it. */
export function sourceWord(data, {use, query}, shared) {
  const chosen = data.queries(use, "words").find(({start, end}) => start <= query && query < end).word;
  const stands = (one) => (use === "encoder" ? one : data.writtenFor(one)?.word) === chosen;
  return shared.map(([one]) => one).find(stands) ?? shared[0]?.[0];
}

/** Shares of the word's attention in both sentences, over the words that both have and those that differ. */
export function shares(one, two, {use, layer, head}, pair) {
  const rows = [rowFor(one, use, pair[0]), rowFor(two, use, pair[1])];
  if (rows.includes(null) || layer >= two.layers(use)) return null;
  const keys = [one, two].map((data) => data.keys(use, "words"));
  const weights = [one, two].map((data, side) => row(data.matrix(use, layer, head, "words"), rows[side]));
  return paired(...keys).map((places) => ({
    texts: places.map((at, side) => (at === null ? null : keys[side][at].text)),
    weights: places.map((at, side) => (at === null ? 0 : weights[side][at])),
  }));
}

/** Half of all that moved from one word to another: 0 is no change, 1 is all. */
export const moved = (found) => sum(found.map(({weights: [one, two]}) => Math.abs(one - two))) / 2;

/** The words that tell the sentences apart. */
export function differing(one, two) {
  const texts = [one, two].map(({inspection}) => inspection.source.words.map(({text}) => text));
  return texts.map((own, side) => own.find((text) => !texts[1 - side].includes(text)) ?? ["first", "second"][side]);
}
