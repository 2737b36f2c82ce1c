/** How sure the model was of each token it wrote, and what it would have written instead. */
import {bar, html, line, scrolled, table, visible, word} from "./elements.js";
import {decimal, percent, sum} from "./numbers.js";

/** Runners-up below this are left out. */
const least = 0.001;

export function probabilitiesView({data}) {
  const {probabilities, target} = data.inspection;
  const logarithm = sum(probabilities.map(({probability}) => Math.log(probability)));
  const perToken = Math.exp(logarithm / probabilities.length);
  const about =
    "After each token the model gives every token of its vocabulary a probability; the search writes what makes " +
    "the whole most probable, so it is not always the first.";
  const lines = probabilities.map(({probability, others}, at) =>
    line(
      [
        html("td", {class: "quiet"}, at + 1),
        visible(target.tokens[at].text),
        html("td", {class: "wide"}, html("span", {class: "figure"}, percent(probability)), bar(probability)),
        html("ol", {class: "others"}, runnersUp(probability, others)),
      ],
      {},
      1,
    ),
  );
  const element = html(
    "div",
    {class: "probabilities"},
    html("p", {}, about),
    html(
      "p",
      {class: "result"},
      `Whole translation: log probability ${decimal(logarithm)}; per token ${percent(perToken)} (geometric mean).`,
    ),
    scrolled("Probabilities", table(["Step", "Written", "Probability", "Runners-up"], lines)),
  );
  return {element, update() {}};
}

function runnersUp(written, others) {
  return others
    .filter(({probability}) => probability >= least)
    .map(({text, probability}) =>
      html(
        "li",
        {class: probability > written ? "better" : null},
        word(visible(text), "bdi"),
        ` ${percent(probability)}`,
      ),
    );
}
