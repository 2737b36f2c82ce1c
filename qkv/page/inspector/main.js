/** The attention inspector: mount(element, inspection, options) draws one translation's inside into an element. */
import {attentionView} from "./attention.js";
import {compareView} from "./compare.js";
import {html} from "./elements.js";
import {equationView} from "./equation.js";
import {positionsView} from "./positions.js";
import {probabilitiesView} from "./probabilities.js";
import {reading} from "./readings.js";
import {saveHtml, savePng, saveSvg} from "./saving.js";
import {searchView} from "./search.js";
import {createStore, fragment} from "./state.js";

const views = {
  attention: {name: "Attention", make: attentionView},
  equation: {name: "Step by step", make: equationView},
  positions: {name: "Positions", make: positionsView},
  probabilities: {name: "Probabilities", make: probabilitiesView},
  search: {name: "Beam search", make: searchView},
  compare: {name: "Compare", make: compareView},
};

/** Elements, and what is mounted in them. */
const mounted = new WeakMap();

/**
 * Options, all of which may be absent: `compare` is a second inspection, `elsewhere` has pairs of the same two sentences in
 * other languages, `inspect(text, {target})` promises one, in one of `languages` where that is said,
 * `fetchVectors({use, layer, head})` promises {q, k, v} where the inspection carries none; both are also told how they are
 * asked: by `waiting(problem)` they say why the answer is late, and at `signal` it is not wanted any more. `state` has
 * read() and write(values) where the address's fragment is not the place to keep what is looked at.
 * What was mounted in the element before is taken down.
 */
export function mount(place, inspection, options = {}) {
  mounted.get(place)?.destroy();
  const data = reading(inspection);
  const store = createStore(data, options.state ?? fragment);
  let {compare = null, elsewhere = []} = options;
  const context = {data, store, options, compared: (...found) => ([compare, elsewhere] = found)};
  const made = new Map();
  const shown = Object.entries(views).filter(([name]) => name !== "compare" || options.compare || options.inspect);
  const tabs = new Map(
    shown.map(([name, {name: text}]) => [
      name,
      html(
        "button",
        {
          type: "button",
          role: "tab",
          id: `inspector-tab-${name}`,
          "aria-controls": "inspector-panel",
          on: {click: () => store.set({view: name})},
        },
        text,
      ),
    ]),
  );
  const panel = html("div", {role: "tabpanel", id: "inspector-panel", class: "panel"});
  const problem = html("p", {class: "problem", role: "alert"});
  const [asSvg, asPng, asHtml] = [
    ["SVG", () => saveSvg(current().picture(), root, current().name())],
    ["PNG", () => savePng(current().picture(), root, current().name())],
    ["HTML", () => saveHtml({inspection, compare, elsewhere}, "attention")],
  ].map(([name, save]) =>
    html("button", {type: "button", "aria-label": `Save as ${name}`, on: {click: () => attempt(save)}}, name),
  );
  // What it says itself is English wherever it stands; words of the sentences have directions of their own.
  const root = html(
    "div",
    {class: "inspector", lang: "en", dir: "ltr"},
    heading(inspection),
    html(
      "div",
      {class: "bar-of-tabs"},
      html("div", {role: "tablist", "aria-label": "Ways to look", on: {keydown: turned}}, ...tabs.values()),
      html(
        "div",
        {class: "saves", role: "group", "aria-label": "Save"},
        html("span", {"aria-hidden": "true"}, "Save"),
        asSvg,
        asPng,
        asHtml,
      ),
    ),
    problem,
    panel,
  );

  function current() {
    const name = tabs.has(store.get().view) ? store.get().view : "attention";
    if (!made.has(name)) made.set(name, views[name].make(context));
    return made.get(name);
  }

  function update() {
    const state = store.get();
    const view = current();
    root.dataset.use = state.use;
    for (const [name, tab] of tabs) {
      const on = made.get(name) === view;
      tab.setAttribute("aria-selected", on);
      tab.tabIndex = on ? 0 : -1;
      if (!on) continue;
      panel.setAttribute("aria-labelledby", tab.id);
      tab.parentNode.scrollLeft = tab.offsetLeft - 40;
    }
    if (panel.firstElementChild !== view.element) panel.replaceChildren(view.element);
    view.update(state);
    for (const button of [asSvg, asPng]) button.hidden = !view.picture;
  }

  async function attempt(save) {
    problem.textContent = "";
    try {
      await save();
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  function turned(event) {
    const all = [...tabs.keys()];
    const at = all.indexOf(document.activeElement.id.replace("inspector-tab-", ""));
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const name = all[(to + all.length) % all.length];
    store.set({view: name});
    tabs.get(name).focus();
  }

  // Canvases are painted in the colours of their time.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themes = new MutationObserver(update);
  themes.observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
  dark.addEventListener("change", update);
  store.subscribe(update);
  window.addEventListener("hashchange", store.reload);
  place.replaceChildren(root);
  update();
  const inspector = {
    destroy() {
      themes.disconnect();
      dark.removeEventListener("change", update);
      window.removeEventListener("hashchange", store.reload);
      root.remove();
    },
  };
  mounted.set(place, inspector);
  return inspector;
}

/** Mounts what a saved page carries. */
export function mountPage() {
  const {inspection, ...options} = JSON.parse(document.getElementById("inspection").textContent);
  return mount(document.getElementById("inspector"), inspection, options);
}

function heading({model, source, target, from, to}) {
  const facts = [
    model.name,
    `${model.encoder_layers} + ${model.decoder_layers} layers`,
    `${model.heads} heads`,
    `width ${model.width}`,
    `${model.positions} positions`,
    model.weights,
  ];
  return html(
    "header",
    {class: source.text.length > 160 ? "heading long" : "heading"},
    html("p", {class: "source", lang: from, dir: "auto"}, source.text),
    html("p", {class: "target", lang: to, dir: "auto"}, target.text),
    html("p", {class: "quiet"}, facts.filter(Boolean).join(" · ")),
    model.note && html("p", {class: "note"}, model.note),
  );
}
