/** The view of attention itself: the grid of heads, and the chosen one as lines or as a matrix. */
import {choice, html, scrolled, selection, word} from "./elements.js";
import {headGrid, named} from "./grid.js";
import {linesPicture} from "./lines.js";
import {matrixPicture} from "./matrix.js";
import {percent, row, strongest} from "./numbers.js";
import {legend} from "./paint.js";
import {rightToLeft, summaries, uses} from "./readings.js";

/** Bars and lists that choose the use, the layer and the head; `whole` offers the mean, maximum and rollout too. */
export function headControls({data, store}, whole) {
  const use = choice("Attention of", Object.entries(uses).map(([key, {name}]) => [key, name]), (value) => store.set({use: value}));
  const layer = selection("Layer", (value) => store.set({layer: Number(value), key: undefined}));
  const head = selection("Head", (value) => store.set({head: value in summaries ? value : Number(value), key: undefined}));
  return {
    elements: [use.element, layer.element, head.element],
    update(state) {
      use.update(state.use);
      layer.update(state.layer, Array.from({length: data.layers(state.use)}, (_, at) => [at, String(at + 1)]));
      const heads = Array.from({length: data.heads(state.use)}, (_, at) => [at, String(at + 1)]);
      head.update(whole || Number.isInteger(state.head) ? state.head : 0, whole ? [...heads, ...Object.entries(summaries).map(([key, {name}]) => [key, name])] : heads);
    },
  };
}

const keyboard = [
  [["↑", "↓"], "who looks"], [["←", "→"], "at whom"], [["[", "]"], "layer"], [["1", "…", "9"], "head"],
  [["m"], "mean"], [["x"], "maximum"], [["r"], "rollout"], [["Enter"], "works it out"],
];

export function attentionView(context) {
  const {data, store} = context;
  const controls = headControls(context, true);
  const as = choice("Drawn as", [["lines", "Lines"], ["matrix", "Matrix"]], (value) => store.set({as: value}));
  const unit = choice("Each", [["words", "Word"], ["tokens", "Token"]], (value) => store.set({unit: value}));
  const grid = headGrid(context);
  const says = html("p", {class: "says"});
  const status = html("p", {class: "status", "aria-live": "polite"});
  const inWords = html("details", {class: "as-text", on: {toggle: () => tell(store.get())}}, html("summary", {}, "The same as a table"), scrolled("Table of attention"));
  const parts = {chosen, moved};
  const pictures = {lines: linesPicture(parts), matrix: matrixPicture(parts)};
  const stage = html("div", {class: "stage"});
  const workOut = html("button", {type: "button", class: "plain", on: {click: () => store.set({view: "equation"})}}, "Work it out step by step");
  const title = html("h2", {});
  const element = html("div", {class: "attention"},
    html("div", {class: "toolbar"}, controls.elements, as.element, unit.element),
    html("div", {class: "split"},
      html("section", {class: "main", "aria-label": "Chosen head"}, title, says, stage,
        html("div", {class: "under"}, status, workOut),
        html("p", {class: "quiet keys"}, keyboard.map(([keys, says]) => html("span", {}, keys.map((key) => html("kbd", {}, key)), ` ${says}`))),
        inWords),
      html("section", {class: "side", "aria-label": "All heads"}, html("h2", {}, "All heads"), html("p", {class: "quiet"}, "Rows are layers, columns heads."), html("div", {class: "scroll"}, grid.element), legend())));

  function scene(state) {
    const {use, layer, head, unit: by} = state;
    const [queries, keys] = [data.queries(use, by), data.keys(use, by)];
    const holds = (items, token) => items.findIndex(({start, end}) => start <= token && token < end);
    return {queries, keys, matrix: data.matrix(use, layer, head, by), query: holds(queries, state.query), key: holds(keys, state.key)};
  }

  function update(state) {
    const now = scene(state);
    const name = named(state.layer, state.head);
    controls.update(state);
    as.update(state.as);
    unit.update(state.unit);
    grid.update(state);
    title.textContent = `${uses[state.use].long}: ${name.toLowerCase()}`;
    says.textContent = [uses[state.use].says, summaries[state.head]?.says].filter(Boolean).join(" ");
    const picture = pictures[state.as];
    if (stage.firstElementChild !== picture.element) stage.replaceChildren(picture.element);
    picture.update({...now, label: `${uses[state.use].long}, ${name}. Arrow keys choose who looks and at whom.`});
    const weight = now.matrix.values[now.query * now.matrix.columns + now.key];
    status.replaceChildren(word(now.queries[now.query].text), " looks at ", word(now.keys[now.key].text), " with ", html("b", {}, percent(weight)));
    workOut.hidden = !Number.isInteger(state.head);
    tell(state);
  }

  function tell(state) {
    if (!inWords.open) return;
    const {queries, keys, matrix} = scene(state);
    inWords.lastElementChild.replaceChildren(html("table", {},
      html("caption", {}, "For each that looks, the five it looks at most"),
      html("thead", {}, html("tr", {}, html("th", {scope: "col"}, "looks"), html("th", {scope: "col", colspan: 5}, "is looked at"))),
      html("tbody", {}, queries.map(({text}, at) => {
        const weights = row(matrix, at);
        return html("tr", {}, html("th", {scope: "row", dir: "auto"}, text),
          strongest(weights, 5).filter((to) => weights[to] > 0).map((to) => html("td", {}, word(keys[to].text, "bdi"), ` ${percent(weights[to])}`)));
      }))));
  }

  /** Takes places among the words that are drawn; a new row is shown with what it looks at most. */
  function chosen({query, key}) {
    const now = scene(store.get());
    const change = {};
    if (query !== undefined && query !== now.query) Object.assign(change, {query: now.queries[query].start, key: undefined});
    if (key !== undefined) change.key = now.keys[key].start;
    store.set(change);
  }

  function moved(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const state = store.get();
    const {use, layer} = state;
    const now = scene(state);
    const within = (at, count) => Math.min(count - 1, Math.max(0, at));
    // Columns of a language that is written from right to left are drawn so.
    const forward = state.as === "matrix" && rightToLeft(now.keys.map(({text}) => text).join(" ")) ? -1 : 1;
    const acts = {
      ArrowUp: () => chosen({query: within(now.query - 1, now.queries.length)}),
      ArrowDown: () => chosen({query: within(now.query + 1, now.queries.length)}),
      ArrowLeft: () => chosen({key: within(now.key - forward, now.keys.length)}),
      ArrowRight: () => chosen({key: within(now.key + forward, now.keys.length)}),
      Home: () => chosen({query: 0}),
      End: () => chosen({query: now.queries.length - 1}),
      "[": () => store.set({layer: within(layer - 1, data.layers(use)), key: undefined}),
      "]": () => store.set({layer: within(layer + 1, data.layers(use)), key: undefined}),
      m: () => store.set({head: "mean", key: undefined}),
      x: () => store.set({head: "max", key: undefined}),
      r: () => store.set({head: "rollout", key: undefined}),
      Enter: () => Number.isInteger(state.head) && store.set({view: "equation"}),
    };
    for (let head = 0; head < Math.min(9, data.heads(use)); head += 1) acts[head + 1] = () => store.set({head, key: undefined});
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  }

  return {element, update, picture: () => pictures[store.get().as].picture(),
    name: () => [store.get().use, `layer${store.get().layer + 1}`, Number.isInteger(store.get().head) ? `head${store.get().head + 1}` : store.get().head].join("-")};
}
