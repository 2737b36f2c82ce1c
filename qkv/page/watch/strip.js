/** Small pictures of some checkpoints side by side: how attention changes is seen at a glance, and one is chosen. */
import {html} from "../inspector/elements.js";
import {colour, paint, pooled} from "../inspector/paint.js";

const picturesAtMost = 12;
const finest = 48;

export function strip(chosen) {
  const element = html("div", {class: "strip", role: "group", "aria-label": "Checkpoints"});
  let shown = [];
  let redraw = () => {};
  // Canvases are painted in the colours of their time.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());

  function update(checkpoints, layer, at) {
    redraw = () => update(checkpoints, layer, at);
    const focused = shown.findIndex(({button}) => button === document.activeElement);
    const ink = colour(element);
    shown = spread(checkpoints.length).map((place) => {
      const canvas = html("canvas", {"aria-hidden": "true"});
      paint(canvas, pooled(flat(checkpoints[place].layers[layer]), finest), ink);
      const step = checkpoints[place].step.toLocaleString("en");
      const button = html(
        "button",
        {type: "button", "aria-pressed": String(place === at), "aria-label": `Step ${step}`, on: {click: () => chosen(place)}},
        canvas,
        html("span", {}, step),
      );
      return {place, button};
    });
    element.hidden = shown.length < 2;
    element.replaceChildren(...shown.map(({button}) => button));
    shown[focused]?.button.focus();
  }

  return {element, update};
}

/** Places of some of so many, the first and the last among them. */
function spread(count) {
  const some = Math.min(count, picturesAtMost);
  return Array.from({length: some}, (_, at) => (some === 1 ? 0 : Math.round((at * (count - 1)) / (some - 1))));
}

const flat = (shares) => ({rows: shares.length, columns: shares[0].length, values: shares.flat()});
