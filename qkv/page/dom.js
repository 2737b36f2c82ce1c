// Small helpers for the document.

export const $ = (id) => document.getElementById(id);

/** An element with attributes (an `on…` is a listener) and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Tells people who listen rather than look. */
export function say(text) {
  $("said").textContent = text;
}

/** Calls a function when it was not asked for any more during so many milliseconds. */
export function afterPause(milliseconds, act) {
  let timer;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** Copies a text; the button says for a moment whether that went well. */
export async function copyFrom(button, text, otherwise = "Not allowed") {
  const label = button.lastChild;
  const before = (button.dataset.label ??= label.textContent);
  label.textContent = (await copied(text)) ? "Copied" : otherwise;
  say(label.textContent);
  setTimeout(() => (label.textContent = before), 1500);
}

async function copied(text) {
  // Without encryption a browser has only the old way, by what is selected.
  if (!navigator.clipboard) return copiedBySelection(text);
  return navigator.clipboard.writeText(text).then(() => true, () => false);
}

function copiedBySelection(text) {
  const focused = document.activeElement;
  const field = make("textarea", { class: "hidden" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}

export const percent = (share) => `${share >= 0.995 ? ">99" : share < 0.01 ? "<1" : Math.round(100 * share)} %`;
