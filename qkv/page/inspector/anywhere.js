/** What a word looks at in any head of any layer: the heads worth a look, one for each word that it looks at. */
import {html, word} from "./elements.js";
import {named} from "./grid.js";
import {percent, row} from "./numbers.js";

/** How many are shown, and how large a share is worth it. */
const [shownAtMost, worthShowing] = [4, 0.1];

/** Gives [{key, layer, head, weight}, ...], strongest first; ends, tags and the word itself are left out. */
export function strongestAnywhere(data, use, unit, query) {
  const keys = data.keys(use, unit);
  const self = use !== "cross";
  const best = keys.map((_, key) => ({key, layer: 0, head: 0, weight: 0}));
  for (let layer = 0; layer < data.layers(use); layer += 1) {
    for (let head = 0; head < data.heads(use); head += 1) {
      row(data.matrix(use, layer, head, unit), query).forEach((weight, key) => {
        if (weight > best[key].weight) best[key] = {key, layer, head, weight};
      });
    }
  }
  return best
    .filter(({key, weight}) => weight >= worthShowing && !keys[key].special && !(self && key === query))
    .sort((one, other) => other.weight - one.weight)
    .slice(0, shownAtMost);
}

/** The same as buttons that lead there. */
export function anywhereButtons({data, store}) {
  const element = html("div", {class: "anywhere chips", role: "group"});

  function update({use, unit, layer, head}, query) {
    const [asks, keys] = [data.queries(use, unit)[query], data.keys(use, unit)];
    const found = strongestAnywhere(data, use, unit, query);
    element.hidden = found.length === 0;
    element.setAttribute("aria-label", `What ${asks.text} looks at in any head`);
    element.replaceChildren(
      html("span", {class: "quiet"}, word(asks.text), " looks most, in any head, at"),
      ...found.map((one) =>
        html(
          "button",
          {
            type: "button",
            "aria-pressed": String(one.layer === layer && one.head === head),
            on: {click: () => store.set({layer: one.layer, head: one.head, key: keys[one.key].start})},
          },
          html("bdi", {}, keys[one.key].text),
          " ",
          html("b", {}, percent(one.weight)),
          html("span", {class: "quiet"}, ` ${named(one.layer, one.head).toLowerCase()}`),
        ),
      ),
    );
  }

  return {element, update};
}
