/** Two sentences side by side: for one word of both, what changes in its attention and in what is written for it. */
import {headControls} from "./attention.js";
import {html, scrolled, selection, word} from "./elements.js";
import {named} from "./grid.js";
import {percent, row, sum} from "./numbers.js";
import {reading, uses} from "./readings.js";

export function compareView(context) {
  const {data, store, options} = context;
  const controls = headControls(context, true);
  const which = selection("Word", (value) => store.set({query: Number(value)}));
  const body = html("div", {class: "comparison"});
  const second = html("input", {type: "text", id: "inspector-second", dir: "auto", value: suggestion(data.inspection.source.text)});
  const problem = html("p", {class: "problem", role: "alert"});
  const form = options.inspect && html("form", {class: "ask", on: {submit: ask}}, html("label", {for: "inspector-second"}, "Second sentence"), second, html("button", {type: "submit"}, "Compare"));
  const element = html("div", {class: "compare"}, form, problem, html("div", {class: "toolbar"}, controls.elements, which.element), body);
  let other = options.compare ? reading(options.compare) : null;

  async function ask(event) {
    event.preventDefault();
    problem.textContent = "";
    try {
      const found = await options.inspect(second.value);
      other = reading(found);
      context.compared(found);
      update(store.get());
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  function update(state) {
    controls.update(state);
    if (other === null) {
      body.replaceChildren(html("p", {class: "quiet"}, "Give a second sentence that differs in a word, and see what the difference does."));
      return;
    }
    const words = paired(data.inspection.source.words, other.inspection.source.words);
    const shared = words.filter(([one, two]) => one !== null && two !== null && same(data, other, one, two));
    const source = sourceWord(data, state, shared);
    const places = shared.map(([one]) => [placeOf(data, state.use, one), data.inspection.source.words[one].text]);
    which.update(placeOf(data, state.use, source), places.filter(([place]) => place !== null));
    const pair = shared.find(([one]) => one === source);
    body.replaceChildren(sentences(data, other), ...(pair ? [written(data, other, pair), changes(context, other, state, pair), attention(data, other, state, pair)].filter(Boolean) : []));
  }

  return {element, update};
}

/** The sentence of the well-known example, and what to set beside it. */
function suggestion(text) {
  return text.includes("tired") ? text.replace("tired", "wide") : text.replace("wide", "tired");
}

const same = (one, two, at, to) => one.inspection.source.words[at].text === two.inspection.source.words[to].text;

/** Pairs of places by the longest common subsequence of texts; what stands between two matches is paired in order. */
export function paired(one, two) {
  const length = Array.from({length: one.length + 1}, () => new Uint16Array(two.length + 1));
  for (let at = one.length - 1; at >= 0; at -= 1) {
    for (let to = two.length - 1; to >= 0; to -= 1) {
      length[at][to] = one[at].text === two[to].text ? length[at + 1][to + 1] + 1 : Math.max(length[at + 1][to], length[at][to + 1]);
    }
  }
  const pairs = [];
  let [at, to] = [0, 0];
  let [left, right] = [[], []];
  const settle = () => {
    for (let place = 0; place < Math.max(left.length, right.length); place += 1) pairs.push([left[place] ?? null, right[place] ?? null]);
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

/** The word of the translation that stands for a word of the source. */
function targetFor({inspection}, source) {
  const at = inspection.alignment.findIndex((sources) => sources.includes(source));
  return at < 0 ? null : at;
}

/** The row of the chosen attention that a word of the source stands for: its own, or that of what is written for it. */
function rowFor(data, use, source) {
  const wanted = use === "encoder" ? source : targetFor(data, source);
  const at = data.queries(use, "words").findIndex((query) => query.word !== null && query.word === wanted);
  return at < 0 ? null : at;
}

function placeOf(data, use, source) {
  const at = rowFor(data, use, source);
  return at === null ? null : data.queries(use, "words")[at].start;
}

function sourceWord(data, {use, query}, shared) {
  const chosen = data.queries(use, "words").find(({start, end}) => start <= query && query < end).word;
  const sources = use === "encoder" ? [chosen] : data.inspection.alignment[chosen] ?? [];
  return shared.map(([one]) => one).find((one) => sources.includes(one)) ?? shared[0]?.[0];
}

function sentences(one, two) {
  const show = ({text, words}, pairs, side, name) => {
    let end = 0;
    return html("p", {dir: "auto", class: name}, words.flatMap((each, at) => {
      const [left, right] = pairs.find((pair) => pair[side] === at);
      const changed = left === null || right === null || one.inspection[name].words[left].text !== two.inspection[name].words[right].text;
      const start = Math.max(end, text.indexOf(each.text, end));
      const between = text.slice(end, start);
      end = start + each.text.length;
      return [between, html(changed ? "mark" : "span", {}, each.text)];
    }));
  };
  const pairs = Object.fromEntries(["source", "target"].map((name) => [name, paired(one.inspection[name].words, two.inspection[name].words)]));
  return html("div", {class: "two"}, [one, two].map((data, side) => html("div", {class: "sentence-pair"},
    ["source", "target"].map((name) => show(data.inspection[name], pairs[name], side, name)))));
}

/** What each translation has for the word, and what else it nearly had. */
function written(one, two, pair) {
  const about = html("h2", {}, "What is written for ", word(one.inspection.source.words[pair[0]].text));
  const places = [one, two].map((data, side) => targetFor(data, pair[side]));
  if (places.includes(null)) return html("section", {class: "step"}, about, html("p", {class: "quiet"}, "A translation has no word that is aligned with it."));
  const candidates = [one, two].map(({inspection: {target, probabilities}}, side) => {
    const [first] = target.words[places[side]].tokens;
    return [{text: target.tokens[first].text, probability: probabilities[first].probability}, ...probabilities[first].others];
  });
  const likely = candidates.flatMap((each) => each.slice(0, 4).map(({text}) => text));
  const rows = [...new Set(likely)].map((text) => ({
    texts: [text.replaceAll("▁", "")], weights: candidates.map((each) => each.find((candidate) => candidate.text === text)?.probability ?? null)}));
  const [left, right] = [one, two].map(({inspection}, side) => word(inspection.target.words[places[side]].text));
  return html("section", {class: "step"}, about, html("p", {class: "written"}, left, " / ", right), beside("candidate", differing(one, two), rows));
}

/** The words that tell the sentences apart. */
function differing(one, two) {
  const texts = [one, two].map(({inspection}) => inspection.source.words.map(({text}) => text));
  return texts.map((own, side) => own.find((text) => !texts[1 - side].includes(text)) ?? ["first", "second"][side]);
}

function signed(change) {
  return Math.abs(change) < 0.0005 ? "" : `${change < 0 ? "−" : "+"}${percent(Math.abs(change))}`;
}

/** A table with a bar for each sentence; null is a number that nobody knows. */
function beside(about, labels, rows) {
  const bar = (weight, side) => {
    if (weight === null) return html("span", {class: "quiet"}, "less");
    const made = html("span", {class: side ? "bar second" : "bar"});
    made.style.setProperty("--share", weight);
    return [html("span", {class: "figure"}, percent(weight)), made];
  };
  return scrolled(about, html("table", {class: "beside"},
    html("thead", {}, html("tr", {}, html("th", {scope: "col"}, about), labels.map((label) => html("th", {scope: "col", dir: "auto"}, label)), html("th", {scope: "col"}, "change"))),
    html("tbody", {}, rows.map(({texts, weights}) => {
      const change = weights[1] - weights[0];
      return html("tr", {}, html("th", {scope: "row", dir: "auto"}, [...new Set(texts.filter((text) => text !== null))].join(" / ")),
        weights.map((weight, side) => html("td", {class: "wide"}, bar(weight, side))),
        html("td", {class: Math.abs(change) >= 0.05 ? "strong" : "quiet"}, weights.includes(null) ? "" : signed(change)));
    }))));
}

/** Shares of the word's attention in both sentences, over the words that both have and those that differ. */
function shares(one, two, {use, layer, head}, pair) {
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
const moved = (found) => sum(found.map(({weights: [one, two]}) => Math.abs(one - two))) / 2;

function changes({data, store}, other, state, pair) {
  const heads = Array.from({length: data.layers(state.use)}, (_, layer) => Array.from({length: data.heads(state.use)}, (__, head) => ({layer, head}))).flat()
    .map((place) => ({...place, found: shares(data, other, {...state, ...place}, pair)})).filter(({found}) => found !== null)
    .map((place) => ({...place, change: moved(place.found)})).sort((one, two) => two.change - one.change).slice(0, 8);
  return html("section", {class: "step"}, html("h2", {}, "Heads in which its attention changes most"),
    heads.length === 0 ? html("p", {class: "quiet"}, "This attention has no row for the word in both sentences.")
      : html("div", {class: "chips"}, heads.map(({layer, head, change}) => html("button", {type: "button", "aria-pressed": String(layer === state.layer && head === state.head),
        on: {click: () => store.set({layer, head})}}, named(layer, head), " ", html("b", {}, percent(change))))));
}

function attention(one, two, state, pair) {
  const found = shares(one, two, state, pair);
  if (found === null) return null;
  const labels = differing(one, two);
  return html("section", {class: "step"}, html("h2", {}, `${uses[state.use].long}, ${named(state.layer, state.head).toLowerCase()}`),
    html("p", {}, "Where it looks, with ", word(labels[0]), " and with ", word(labels[1]), `: ${percent(moved(found))} of its attention goes elsewhere.`),
    beside("is looked at", labels, found));
}
