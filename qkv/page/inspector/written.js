/** What two translations have for one word of their sentences, in this language and in others. */
import {bar, html, line, scrolled, table, visible, word} from "./elements.js";
import {percent} from "./numbers.js";
import {differing} from "./pairs.js";

/** What a person writes for "it" in the well-known example: a tired animal, a wide street. */
const persons = {
  de: {tired: ["es", "das Tier"], wide: ["sie", "die Straße"]},
  fr: {tired: ["il", "l’animal"], wide: ["elle", "la rue"]},
};

/** The name of a language in English. */
export function languageName(code) {
  return code ? new Intl.DisplayNames(["en"], {type: "language", fallback: "code"}).of(code) : "this language";
}

/** What each translation has for the word, and what else it nearly had; null where one has nothing for it. */
export function writtenFor(one, two, pair) {
  const found = [one, two].map((data, side) => data.writtenFor(pair[side]));
  if (found.includes(null)) return null;
  const sides = [one, two].map(({inspection: {target, probabilities}}, side) => {
    const own = target.words[found[side].word];
    const [first] = own.tokens;
    const {probability, others} = probabilities[first];
    const itself = {text: target.tokens[first].text, probability};
    return {text: own.text, first: itself, candidates: [itself, ...others]};
  });
  return {sides, aligned: found.every(({aligned}) => aligned)};
}

export function writtenSection(one, two, pair) {
  const found = writtenFor(one, two, pair);
  if (found === null) return null;
  const candidates = found.sides.map((side) => side.candidates);
  const likely = candidates.flatMap((each) => each.slice(0, 4).map(({text}) => text));
  const rows = [...new Set(likely)].map((text) => ({
    texts: [visible(text)],
    weights: candidates.map((each) => each.find((candidate) => candidate.text === text)?.probability ?? null),
  }));
  return html(
    "section",
    {class: "step"},
    html("h2", {}, "What is written for ", word(one.inspection.source.words[pair[0]].text)),
    inShort(one, two, pair, found),
    found.aligned
      ? null
      : html("p", {class: "quiet"}, "No word is aligned with it: this is the one that looks at it most, over all heads."),
    beside("candidate", differing(one, two), rows),
  );
}

/** The same in another language, in a few lines. */
export function writtenElsewhere(one, two, pair) {
  const found = writtenFor(one, two, pair);
  return html(
    "section",
    {class: "step elsewhere"},
    html("h2", {}, `In ${languageName(one.inspection.to)}`),
    [one, two].map(({inspection}) => html("p", {class: "target", dir: "auto"}, inspection.target.text)),
    found && inShort(one, two, pair, found),
  );
}

function inShort(one, two, pair, {sides: [left, right]}) {
  return [
    html("p", {class: "written"}, word(left.text), " / ", word(right.text)),
    html("p", {class: "verdict"}, verdict(one, two, left, right), " ", person(one, two, pair, left, right)),
  ];
}

/** Whether the difference changed the word, and if not, how much surer the model is of it. */
function verdict(one, two, left, right) {
  const [, second] = differing(one, two);
  if (left.text.toLowerCase() !== right.text.toLowerCase())
    return ["The word changes: ", word(left.text), " becomes ", word(right.text), "."];
  const change = right.first.probability - left.first.probability;
  const surer = Math.abs(change) < 0.005 ? "as sure of it" : change < 0 ? "less sure of it" : "surer of it";
  const [from, to] = [left, right].map(({first}) => percent(first.probability));
  return ["The word stays the same; with ", word(second), ` the model is ${surer} (${from} and ${to}).`];
}

/** What a person would have written, where that is known. */
function person(one, two, pair, left, right) {
  const words = differing(one, two);
  const known = persons[one.inspection.to];
  const texts = one.inspection.source.words.map(({text}) => text.toLowerCase());
  const example = ["animal", "street"].every((text) => texts.includes(text)) && texts[pair[0]] === "it";
  if (!known || !example || !words.every((each) => each in known)) return null;
  const [[first, noun], [second, other]] = words.map((each) => known[each]);
  const [own, others] = [left, right].map(({text}) => text.toLowerCase());
  const model =
    own === others
      ? "this model does not tell them apart here."
      : own === first && others === second
        ? "so does this model."
        : "this model chooses otherwise.";
  return ["A person writes ", word(first), ` for the animal (${noun}) and `, word(second), ` for the street (${other}): ${model}`];
}

function signed(change) {
  return Math.abs(change) < 0.0005 ? "" : `${change < 0 ? "−" : "+"}${percent(Math.abs(change))}`;
}

/** A table with a bar for each sentence; null is a number that nobody knows. */
export function beside(about, labels, rows) {
  const shown = (weight, side) =>
    weight === null
      ? html("span", {class: "quiet"}, "less")
      : [html("span", {class: "figure"}, percent(weight)), bar(weight, side ? "bar second" : "bar")];
  const lines = rows.map(({texts, weights}) => {
    const change = weights.includes(null) ? 0 : weights[1] - weights[0];
    return line([
      [...new Set(texts.filter((text) => text !== null))].join(" / "),
      ...weights.map((weight, side) => html("td", {class: "wide"}, shown(weight, side))),
      html("td", {class: Math.abs(change) >= 0.05 ? "strong" : "quiet"}, signed(change)),
    ]);
  });
  return scrolled(
    about,
    table([about, ...labels.map((label) => word(label, "bdi")), "change"], lines, {class: "beside"}),
  );
}
