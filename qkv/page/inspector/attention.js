/** The view of attention itself: the grid of heads, and the chosen one as lines or as a matrix. */
import {anywhereButtons} from "./anywhere.js";
import {headControls} from "./controls.js";
import {choice, html, line, scrolled, table, word} from "./elements.js";
import {headGrid, named} from "./grid.js";
import {linesPicture} from "./lines.js";
import {matrixPicture} from "./matrix.js";
import {percent, row, strongest} from "./numbers.js";
import {legend} from "./paint.js";
import {rightToLeft, summaries, uses} from "./readings.js";

const keyboard = [
  [["↑", "↓"], "who looks"],
  [["←", "→"], "at whom"],
  [["[", "]"], "layer"],
  [["1", "…", "9"], "head"],
  [["m"], "mean"],
  [["x"], "maximum"],
  [["r"], "rollout"],
  [["Enter"], "works it out"],
];

export function attentionView(context) {
  const {data, store} = context;
  const controls = headControls(context, true);
  const as = choice(
    "Drawn as",
    [
      ["lines", "Lines"],
      ["matrix", "Matrix"],
    ],
    (value) => store.set({as: value}),
  );
  const unit = choice(
    "Each",
    [
      ["words", "Word"],
      ["tokens", "Token"],
    ],
    (value) => store.set({unit: value}),
  );
  const grid = headGrid(context);
  const anywhere = anywhereButtons(context);
  const says = html("p", {class: "says"});
  const status = html("p", {class: "status", "aria-live": "polite"});
  const inWords = html(
    "details",
    {class: "as-text", on: {toggle: () => tell(store.get())}},
    html("summary", {}, "The same as a table"),
    scrolled("Table of attention"),
  );
  const parts = {chosen, moved};
  const pictures = {lines: linesPicture(parts), matrix: matrixPicture(parts)};
  const stage = html("div", {class: "stage"});
  const workOut = html(
    "button",
    {type: "button", class: "plain", on: {click: () => store.set({view: "equation"})}},
    "Work it out step by step",
  );
  const under = html("div", {class: "under"}, status, workOut);
  const title = html("h2", {});
  const element = html(
    "div",
    {class: "attention"},
    html("div", {class: "toolbar"}, controls.elements, as.element, unit.element),
    html(
      "div",
      {class: "split"},
      html(
        "section",
        {class: "main", "aria-label": "Chosen head"},
        title,
        says,
        anywhere.element,
        stage,
        under,
        html(
          "p",
          {class: "quiet keys"},
          keyboard.map(([keys, says]) => html("span", {}, ...keys.map((key) => html("kbd", {}, key)), ` ${says}`)),
        ),
        inWords,
      ),
      html(
        "section",
        {class: "side", "aria-label": "All heads"},
        html("h2", {}, "All heads"),
        html("p", {class: "quiet"}, "Rows are layers, columns heads."),
        html("div", {class: "scroll"}, grid.element),
        legend(),
      ),
    ),
  );

  function scene(state) {
    const {use, layer, head, unit: by} = state;
    const [queries, keys] = [data.queries(use, by), data.keys(use, by)];
    const holds = (items, token) => items.findIndex(({start, end}) => start <= token && token < end);
    return {
      queries,
      keys,
      matrix: data.matrix(use, layer, head, by),
      query: holds(queries, state.query),
      key: holds(keys, state.key),
    };
  }

  function update(state) {
    const now = scene(state);
    const name = named(state.layer, state.head);
    controls.update(state);
    as.update(state.as);
    unit.update(state.unit);
    grid.update(state);
    anywhere.update(state, now.query);
    title.textContent = `${uses[state.use].long}: ${name.toLowerCase()}`;
    says.textContent = [uses[state.use].says, summaries[state.head]?.says].filter(Boolean).join(" ");
    const picture = pictures[state.as];
    if (stage.firstElementChild !== picture.element) stage.replaceChildren(picture.element);
    picture.update({...now, label: `${uses[state.use].long}, ${name}. Arrow keys choose who looks and at whom.`});
    // Below a picture that is longer than a screen, nobody would see it.
    under.classList.toggle("long", Math.max(now.queries.length, now.keys.length) > 25);
    const weight = now.matrix.values[now.query * now.matrix.columns + now.key];
    status.replaceChildren(
      word(now.queries[now.query].text),
      " looks at ",
      word(now.keys[now.key].text),
      " with ",
      html("b", {}, percent(weight)),
    );
    workOut.hidden = !Number.isInteger(state.head);
    tell(state);
  }

  function tell(state) {
    if (!inWords.open) return;
    inWords.lastElementChild.replaceChildren(inTable(scene(state)));
  }

  /** Takes places among the words that are drawn; a new row is shown with what it looks at most. */
  function chosen({query, key}) {
    const now = scene(store.get());
    const change = {};
    if (query !== undefined && query !== now.query)
      Object.assign(change, {query: now.queries[query].start, key: undefined});
    if (key !== undefined) change.key = now.keys[key].start;
    store.set(change);
  }

  function moved(event) {
    const act =
      !event.ctrlKey && !event.metaKey && !event.altKey && acts(context, scene(store.get()), chosen)[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  function name() {
    const {use, layer, head} = store.get();
    return [use, `layer${layer + 1}`, Number.isInteger(head) ? `head${head + 1}` : head].join("-");
  }

  return {element, update, picture: () => pictures[store.get().as].picture(), name};
}

/** What each key does where `now` is what is looked at. */
function acts({data, store}, now, chosen) {
  const {use, layer, head, as} = store.get();
  const within = (at, count) => Math.min(count - 1, Math.max(0, at));
  const query = (at) => () => chosen({query: within(at, now.queries.length)});
  const key = (at) => () => chosen({key: within(at, now.keys.length)});
  const ofLayer = (at) => () => store.set({layer: within(at, data.layers(use)), key: undefined});
  const ofHead = (at) => () => store.set({head: at, key: undefined});
  // Columns of a language that is written from right to left are drawn so.
  const forward = as === "matrix" && rightToLeft(now.keys) ? -1 : 1;
  const heads = Array.from({length: Math.min(9, data.heads(use))}, (_, at) => [at + 1, ofHead(at)]);
  return {
    ArrowUp: query(now.query - 1),
    ArrowDown: query(now.query + 1),
    ArrowLeft: key(now.key - forward),
    ArrowRight: key(now.key + forward),
    Home: query(0),
    End: query(now.queries.length - 1),
    "[": ofLayer(layer - 1),
    "]": ofLayer(layer + 1),
    m: ofHead("mean"),
    x: ofHead("max"),
    r: ofHead("rollout"),
    Enter: Number.isInteger(head) && (() => store.set({view: "equation"})),
    ...Object.fromEntries(heads),
  };
}

function inTable({queries, keys, matrix}) {
  const most = Math.min(5, keys.length);
  const lines = queries.map(({text}, at) => {
    const weights = row(matrix, at);
    return line([
      text,
      ...strongest(weights, most).map((to) => [word(keys[to].text, "bdi"), ` ${percent(weights[to])}`]),
    ]);
  });
  return table(["looks", "most at", ...Array.from({length: most - 1}, (_, at) => `${at + 2}.`)], lines);
}
