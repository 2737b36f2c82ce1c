/** How sure the model was of each token it wrote, and what it would have written instead. */
import {html, scrolled, word} from "./elements.js";
import {percent, sum} from "./numbers.js";

export function probabilitiesView({data}) {
  const {probabilities, target} = data.inspection;
  const logarithm = sum(probabilities.map(({probability}) => Math.log(probability)));
  const perToken = Math.exp(logarithm / probabilities.length);
  const element = html("div", {class: "probabilities"},
    html("p", {}, "After each token the model gives every token of its vocabulary a probability; the search writes what makes the whole most probable, so it is not always the first."),
    html("p", {class: "result"}, `Whole translation: log probability ${logarithm.toFixed(2).replace("-", "−")}; per token ${percent(perToken)} (geometric mean).`),
    scrolled("Probabilities", html("table", {},
      html("thead", {}, html("tr", {}, html("th", {scope: "col"}, "Step"), html("th", {scope: "col"}, "Written"), html("th", {scope: "col"}, "Probability"), html("th", {scope: "col"}, "Runners-up"))),
      html("tbody", {}, probabilities.map(({probability, others}, at) => html("tr", {class: others[0] && others[0].probability > probability ? "overtaken" : null},
        html("td", {class: "quiet"}, at + 1), html("th", {scope: "row"}, word(plain(target.tokens[at].text), "bdi")),
        html("td", {class: "wide"}, share(probability)),
        html("td", {}, html("ol", {class: "others"}, others.filter((other) => other.probability >= 0.001).map((other) =>
          html("li", {class: other.probability > probability ? "better" : null}, word(plain(other.text), "bdi"), html("span", {}, ` ${percent(other.probability)}`)))))))))));
  return {element, update() {}};
}

const plain = (text) => text.replaceAll("▁", " ").trim() || "␣";

function share(probability) {
  const bar = html("span", {class: "bar"});
  bar.style.setProperty("--share", probability);
  return [html("span", {class: "figure"}, percent(probability)), bar];
}
