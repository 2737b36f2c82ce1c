/** A few held-out sentences and what became of them, validation by validation. */
import {html, line, scrolled, table} from "../inspector/elements.js";
import {stepChoice} from "./steps.js";

export function samplesPart() {
  const place = html("div", {});
  const steps = stepChoice("Validation after", (at) => show(at));
  const element = html("section", {class: "part", hidden: true}, html("h2", {}, "Samples"), steps.element, place);
  let samples = [];
  let known = "";

  function show(at) {
    const text = (words) => html("td", {dir: "auto"}, words);
    const {sentences} = samples[at];
    // A run of several directions says which each is of.
    const several = sentences.some(({from}) => from);
    const lines = sentences.map((one) =>
      line([
        html("th", {scope: "row", dir: "auto"}, one.source),
        ...(several ? [html("td", {class: "quiet"}, `${one.from} → ${one.to}`)] : []),
        text(one.text),
        text(one.reference),
      ]),
    );
    const names = ["sentence", ...(several ? ["direction"] : []), "translation", "as a person said it"];
    place.replaceChildren(scrolled("Samples", table(names, lines)));
  }

  return {
    element,
    update(found) {
      // Drawing anew would take away what somebody has selected.
      if (JSON.stringify(found) === known) return;
      known = JSON.stringify(found);
      samples = found;
      element.hidden = !samples.length;
      if (samples.length) show(steps.update(samples.map(({step}) => step)));
    },
  };
}
