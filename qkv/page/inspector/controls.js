/** What chooses the use, the layer and the head, in every view that has one. */
import {choice, selection} from "./elements.js";
import {summaries, uses} from "./readings.js";

/** `whole` offers the mean, maximum and rollout too. */
export function headControls({data, store}, whole) {
  const use = choice(
    "Attention of",
    Object.entries(uses).map(([key, {name}]) => [key, name]),
    (value) => store.set({use: value}),
  );
  const layer = selection("Layer", (value) => store.set({layer: Number(value), key: undefined}));
  const head = selection("Head", (value) =>
    store.set({head: value in summaries ? value : Number(value), key: undefined}),
  );
  return {
    elements: [use.element, layer.element, head.element],
    update(state) {
      use.update(state.use);
      layer.update(
        state.layer,
        Array.from({length: data.layers(state.use)}, (_, at) => [at, String(at + 1)]),
      );
      const heads = Array.from({length: data.heads(state.use)}, (_, at) => [at, String(at + 1)]);
      head.update(
        whole || Number.isInteger(state.head) ? state.head : 0,
        whole ? [...heads, ...Object.entries(summaries).map(([key, {name}]) => [key, name])] : heads,
      );
    },
  };
}
