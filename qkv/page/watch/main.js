/** How a run learns: curves, samples, and the attention of one sentence over the checkpoints. */
import {html} from "../inspector/elements.js";
import {attentionPart} from "./attention.js";
import {chart} from "./chart.js";
import {samplesPart} from "./samples.js";
import {standing, wentBack} from "./standing.js";

const charts = [
  {title: "Loss", unit: "nats per target token", value: "loss", kinds: ["train", "validation"], digits: 3},
  {title: "Validation BLEU", unit: "greedy, on some held-out sentences", value: "bleu", kinds: ["validation"], digits: 1},
  {title: "Learning rate", unit: "of each step", value: "learning_rate", kinds: ["train"], digits: 6},
  {title: "Speed", unit: "tokens a second", value: "tokens_per_second", kinds: ["train"], digits: 0},
];

/** Gives a function that shows what is told of a run, as often as there is more. */
export function mount(place) {
  const title = html("h1", {});
  const where = html("p", {class: "quiet"});
  const problem = html("p", {class: "problem", role: "status"});
  const setbacks = html("ul", {class: "setbacks"});
  const drawn = charts.map((about) => chart(about));
  const later = html("p", {class: "part quiet"});
  const samples = samplesPart();
  const attention = attentionPart();
  place.replaceChildren(
    html("header", {}, title, where, problem, setbacks),
    html("div", {class: "charts"}, drawn.map(({element}) => element)),
    later,
    attention.element,
    samples.element,
  );
  return (told) => {
    const wrong = told.problem ?? "";
    // What is written again is read out again.
    if (problem.textContent !== wrong) problem.textContent = wrong;
    if (!told.name) return;
    title.textContent = told.name;
    where.textContent = standing(told);
    setbacks.replaceChildren(...told.rollbacks.map((one) => html("li", {}, wentBack(one))));
    for (const each of drawn) each.update(told);
    later.hidden = told.validation.length > 0 || !told.validate_every;
    later.textContent = `BLEU, samples and attention come with the first validation, after step ${told.validate_every?.toLocaleString("en")}.`;
    attention.update(told.attention);
    samples.update(told.samples);
  };
}

/** Shows what a saved page carries. */
export function mountSaved() {
  const told = JSON.parse(document.getElementById("told").textContent);
  // What was true when it was saved.
  mount(document.getElementById("watch"))({...told, seconds_left: null, seconds_since: null});
}
