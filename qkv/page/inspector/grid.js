/** All heads of all layers at a glance, beside their mean, their maximum and the rollout; one is chosen. */
import {html} from "./elements.js";
import {colour, paint, pooled} from "./paint.js";
import {habit, rightToLeft, summaries} from "./readings.js";

/** Names a layer's head, or what is shown instead of one. */
export function named(layer, head) {
  return head === "rollout"
    ? `Rollout up to layer ${layer + 1}`
    : `Layer ${layer + 1}, ${head in summaries ? summaries[head].name.toLowerCase() : `head ${head + 1}`}`;
}

export function headGrid({data, store}) {
  const table = html("div", {
    class: "heads",
    role: "radiogroup",
    "aria-label": "Layer and head",
    on: {keydown: pressed},
  });
  let drawn = "";
  let buttons = [];

  function update(state) {
    const wanted = [state.use, state.unit, colour(table)].join();
    if (wanted !== drawn) draw(state);
    drawn = wanted;
    for (const {button, layer, head} of buttons) {
      const on = layer === state.layer && head === state.head;
      button.setAttribute("aria-checked", on);
      button.tabIndex = on ? 0 : -1;
    }
  }

  function draw({use, unit}) {
    const heads = [...Array(data.heads(use)).keys(), ...Object.keys(summaries)];
    const ink = colour(table);
    const mirrored = rightToLeft(data.keys(use, unit));
    const shape = data.matrix(use, 0, 0, unit);
    buttons = [];
    table.style.setProperty("--heads", heads.length);
    table.style.setProperty("--shape", Math.min(2, Math.max(0.5, shape.columns / shape.rows)));
    const cells = [
      html("span", {"aria-hidden": "true"}),
      ...heads.map((head) =>
        html(
          "span",
          {"aria-hidden": "true", class: head in summaries ? "column-name summary" : "column-name"},
          Number.isInteger(head) ? head + 1 : head.slice(0, 4),
        ),
      ),
    ];
    for (let layer = 0; layer < data.layers(use); layer += 1) {
      cells.push(html("span", {"aria-hidden": "true", class: "row-name"}, layer + 1));
      for (const head of heads) {
        const matrix = data.matrix(use, layer, head, unit);
        const canvas = html("canvas", {"aria-hidden": "true"});
        paint(canvas, pooled(matrix, 32), ink, mirrored);
        const says = `${named(layer, head)}: ${habit(matrix, use !== "cross")}`;
        const button = html(
          "button",
          {
            type: "button",
            role: "radio",
            title: says,
            "aria-label": says,
            class: head in summaries ? "summary" : null,
            on: {click: () => store.set({layer, head, key: undefined})},
          },
          canvas,
        );
        buttons.push({button, layer, head});
        cells.push(button);
      }
    }
    table.replaceChildren(...cells);
  }

  function pressed(event) {
    const across = data.heads(store.get().use) + Object.keys(summaries).length;
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across}[event.key];
    const next = buttons[buttons.findIndex(({button}) => button === event.target) + step];
    if (!next) return;
    event.preventDefault();
    store.set({layer: next.layer, head: next.head, key: undefined});
    next.button.focus();
  }

  return {element: table, update};
}
