/** A step that is chosen among some: the newest, until somebody chooses another. */
import {html} from "../inspector/elements.js";

export function stepChoice(label, chosen) {
  const range = html("input", {type: "range", min: 0, value: 0, "aria-label": label, on: {input: () => choose()}});
  const said = html("output", {});
  let steps = [];
  let follows = true;

  function choose() {
    follows = Number(range.value) === steps.length - 1;
    tell();
    chosen(Number(range.value));
  }

  function tell() {
    const text = `step ${steps[range.value].toLocaleString("en")}`;
    said.textContent = text;
    range.setAttribute("aria-valuetext", text);
  }

  return {
    /** As if somebody had moved the slider there. */
    set(at) {
      range.value = at;
      choose();
    },
    element: html("div", {class: "steps"}, html("span", {"aria-hidden": "true"}, label), range, said),
    /** Gives the place of the step that is to be shown. */
    update(found) {
      steps = found;
      range.max = steps.length - 1;
      if (follows || Number(range.value) >= steps.length) range.value = steps.length - 1;
      tell();
      return Number(range.value);
    },
  };
}
