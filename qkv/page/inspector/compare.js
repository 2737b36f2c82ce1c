/** Two sentences side by side: for one word of both, what changes in its attention and in what is written for it. */
import {headControls} from "./controls.js";
import {html, selection, word} from "./elements.js";
import {named} from "./grid.js";
import {percent} from "./numbers.js";
import {differing, moved, paired, placeOf, shares, sourceWord} from "./pairs.js";
import {reading, uses} from "./readings.js";
import {beside, languageName, writtenElsewhere, writtenSection} from "./written.js";

export function compareView(context) {
  const {data, store, options} = context;
  const controls = headControls(context, true);
  const which = selection("Word", (value) => store.set({query: Number(value)}));
  const body = html("div", {class: "comparison"});
  const second = html("input", {
    type: "text",
    id: "inspector-second",
    dir: "auto",
    value: suggestion(data.inspection.source.text),
  });
  const problem = html("p", {class: "problem", role: "alert"});
  const under = html("p", {class: "quiet", role: "status"});
  const form =
    options.inspect &&
    html(
      "form",
      {class: "ask", on: {submit: ask}},
      html("label", {for: "inspector-second"}, "Second sentence"),
      second,
      html("button", {type: "submit"}, "Compare"),
    );
  const element = html(
    "div",
    {class: "compare"},
    form,
    under,
    problem,
    html("div", {class: "toolbar"}, controls.elements, which.element),
    body,
  );
  let other = options.compare ? reading(options.compare) : null;
  let elsewhere = (options.elsewhere ?? []).map((pair) => pair.map(reading));
  let asking = new AbortController();

  /** Asks for `other` and `elsewhere`; what was asked for before is not wanted any more. */
  async function attempt(ask) {
    asking.abort();
    asking = new AbortController();
    const {signal} = asking;
    const tell = (going, wrong = "") => ([under.textContent, problem.textContent] = [going, wrong]);
    tell("Looking inside …");
    try {
      const found = await ask({signal, waiting: ({message}) => tell("", message)});
      if (signal.aborted) return;
      tell("");
      [other, elsewhere] = found;
      // Nobody works out an equation in the other languages.
      const light = elsewhere.map((pair) => pair.map(({inspection}) => ({...inspection, vectors: null})));
      context.compared(other.inspection, light);
      update(store.get());
    } catch (error) {
      if (!signal.aborted) tell("", error.message);
    }
  }

  function ask(event) {
    event.preventDefault();
    attempt(async (how) => [reading(await options.inspect(second.value, how)), []]);
  }

  /** The same two sentences in another language. */
  function askIn(target) {
    const texts = [data, other].map(({inspection}) => inspection.source.text);
    attempt(async (how) => {
      const found = await Promise.all(texts.map((text) => options.inspect(text, {target, ...how})));
      return [other, [...elsewhere, found.map(reading)]];
    });
  }

  function inOthers(pair) {
    const shown = [data.inspection.to, ...elsewhere.map(([{inspection}]) => inspection.to)];
    const left = (options.inspect && options.languages?.filter((code) => !shown.includes(code))) ?? [];
    return [
      ...elsewhere.map((both) => writtenElsewhere(...both, pair)),
      left.length > 0 &&
        html(
          "p",
          {class: "chips step"},
          left.map((code) =>
            html("button", {type: "button", on: {click: () => askIn(code)}}, `The same in ${languageName(code)}`),
          ),
        ),
    ];
  }

  function update(state) {
    controls.update(state);
    which.element.hidden = other === null;
    if (other === null) {
      body.replaceChildren(
        html("p", {class: "quiet"}, "Give a second sentence that differs in a word, and see what the difference does."),
      );
      return;
    }
    const [words, others] = [data.inspection.source.words, other.inspection.source.words];
    const shared = paired(words, others).filter(([one, two]) => words[one]?.text === others[two]?.text);
    const source = sourceWord(data, state, shared);
    const places = shared.map(([one]) => [placeOf(data, state.use, one), words[one].text]);
    which.update(
      placeOf(data, state.use, source),
      places.filter(([place]) => place !== null),
    );
    const pair = shared.find(([one]) => one === source);
    body.replaceChildren(
      sentences(data, other),
      ...(pair
        ? [
            writtenSection(data, other, pair),
            ...inOthers(pair),
            changes(context, other, state, pair),
            attention(data, other, state, pair),
          ].filter(Boolean)
        : []),
    );
  }

  return {element, update};
}

/** The sentence of the well-known example, and what to set beside it. */
function suggestion(text) {
  return text.includes("tired") ? text.replace("tired", "wide") : text.replace("wide", "tired");
}

function sentences(one, two) {
  const show = ({text, words}, pairs, side, name) => {
    let end = 0;
    return html(
      "p",
      {dir: "auto", class: name},
      words.flatMap((each, at) => {
        const [left, right] = pairs.find((pair) => pair[side] === at);
        const changed =
          left === null ||
          right === null ||
          one.inspection[name].words[left].text !== two.inspection[name].words[right].text;
        const start = Math.max(end, text.indexOf(each.text, end));
        const between = text.slice(end, start);
        end = start + each.text.length;
        return [between, html(changed ? "mark" : "span", {}, each.text)];
      }),
    );
  };
  const pairs = Object.fromEntries(
    ["source", "target"].map((name) => [name, paired(one.inspection[name].words, two.inspection[name].words)]),
  );
  return html(
    "div",
    {class: "two"},
    [one, two].map((data, side) =>
      html(
        "div",
        {class: "sentence-pair"},
        ["source", "target"].map((name) => show(data.inspection[name], pairs[name], side, name)),
      ),
    ),
  );
}

function changes({data, store}, other, state, pair) {
  const heads = Array.from({length: data.layers(state.use)}, (_, layer) =>
    Array.from({length: data.heads(state.use)}, (__, head) => ({layer, head})),
  )
    .flat()
    .map((place) => ({...place, found: shares(data, other, {...state, ...place}, pair)}))
    .filter(({found}) => found !== null)
    .map((place) => ({...place, change: moved(place.found)}))
    .sort((one, two) => two.change - one.change)
    .slice(0, 8);
  return html(
    "section",
    {class: "step"},
    html("h2", {}, "Heads in which its attention changes most"),
    heads.length === 0
      ? html("p", {class: "quiet"}, "This attention has no row for the word in both sentences.")
      : html(
          "div",
          {class: "chips"},
          heads.map(({layer, head, change}) =>
            html(
              "button",
              {
                type: "button",
                "aria-pressed": String(layer === state.layer && head === state.head),
                on: {click: () => store.set({layer, head})},
              },
              named(layer, head),
              " ",
              html("b", {}, percent(change)),
            ),
          ),
        ),
  );
}

function attention(one, two, state, pair) {
  const found = shares(one, two, state, pair);
  if (found === null) return null;
  const labels = differing(one, two);
  return html(
    "section",
    {class: "step"},
    html("h2", {}, `${uses[state.use].long}, ${named(state.layer, state.head).toLowerCase()}`),
    html(
      "p",
      {},
      "Where it looks, with ",
      word(labels[0]),
      " and with ",
      word(labels[1]),
      `: ${percent(moved(found))} of its attention goes elsewhere.`,
    ),
    beside("is looked at", labels, found),
  );
}
