/** A few held-out sentences and what became of them, validation by validation. */
import {html, line, scrolled, table} from "../inspector/elements.js";
import {stepChoice} from "./steps.js";

export function samplesPart() {
  const place = html("div", {});
  const steps = stepChoice("Validation after", (at) => show(at));
  const element = html("section", {class: "part", hidden: true}, html("h2", {}, "Samples"), steps.element, place);
  let samples = [];

  function show(at) {
    const text = (words) => html("td", {dir: "auto"}, words);
    const lines = samples[at].sentences.map((one) =>
      line([html("th", {scope: "row", dir: "auto"}, one.source), text(one.text), text(one.reference)]),
    );
    place.replaceChildren(scrolled("Samples", table(["sentence", "translation", "as a person said it"], lines)));
  }

  return {
    element,
    update(found) {
      samples = found;
      element.hidden = !samples.length;
      if (samples.length) show(steps.update(samples.map(({step}) => step)));
    },
  };
}
