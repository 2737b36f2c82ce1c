/** A head's queries, keys and values, and what equation 1 makes of them. */
import {dot, row, sum, tensor} from "./numbers.js";

/** Gives (use, layer, head, how) => {q, k, v} or a promise of it: from the inspection, or from whoever can be asked. */
export function vectorSource({data: {inspection}, options}) {
  const known = new Map();
  const opened = (packed) => Object.fromEntries(["q", "k", "v"].map((part) => [part, tensor(packed[part])]));
  const placed = (tensors, ...place) =>
    Object.fromEntries(Object.entries(tensors).map(([part, value]) => [part, value.matrix(...place)]));

  async function asked(name, place, how) {
    try {
      known.set(name, placed(opened(await options.fetchVectors(place, how))));
    } catch (error) {
      known.delete(name);
      throw error;
    }
    return known.get(name);
  }

  return (use, layer, head, how) => {
    if (inspection.vectors) {
      if (!known.has(use)) known.set(use, opened(inspection.vectors[use]));
      return placed(known.get(use), layer, head);
    }
    if (!options.fetchVectors)
      throw new Error(
        inspection.model.note ??
          "This inspection carries no vectors: inspect a shorter sentence, or look at it in qkv serve.",
      );
    const name = [use, layer, head].join();
    if (!known.has(name)) known.set(name, asked(name, {use, layer, head}, how));
    return known.get(name);
  };
}

/** Equation 1 for one query, with all that is met on the way; `seen` keys are there to be looked at. */
export function scaledDotProduct({q, k, v}, query, key, seen) {
  const asks = row(q, query);
  const products = asks.map((value, at) => value * row(k, key)[at]);
  const root = Math.sqrt(asks.length);
  const scores = Array.from({length: seen}, (_, at) => dot(asks, row(k, at)) / root);
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const total = sum(powers);
  const weights = powers.map((power) => power / total);
  const output = Array.from({length: v.columns}, (_, at) =>
    sum(weights.map((weight, from) => weight * row(v, from)[at])),
  );
  return {
    asks,
    offers: row(k, key),
    products,
    product: sum(products),
    root,
    scores,
    top,
    powers,
    total,
    weights,
    value: row(v, key),
    output,
  };
}
