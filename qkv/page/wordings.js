// Other ways to say each sentence, as choices.

import { $, make, percent } from "./dom.js";

const BEFORE = "Other ways to say each sentence are listed here once there is a translation.";
const AFTER = "The figures are how likely the model finds each wording. Words of the translation that are underlined are those it is less sure of; a click on a word shows what else could stand there.";

export function drawWordings(words) {
  $("wordings-hint").textContent = words.sentences.length ? AFTER : BEFORE;
  $("wordings").replaceChildren(...words.sentences.map((one, sentence) => group(words, one, sentence)));
}

function group(words, one, sentence) {
  return make("fieldset", { class: "wordings" },
    make("legend", { dir: "auto" }, one.text),
    ...one.wordings.map((wording, number) => {
      const box = make("input", {
        type: "radio", name: `wording-${sentence}`, checked: number === one.chosen,
        onchange: () => words.choose(sentence, number),
      });
      return make("label", {}, box, make("span", { dir: "auto" }, wording.text), make("i", {}, percent(wording.probability)));
    }));
}
