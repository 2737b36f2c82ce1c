/** Elements by name: those of HTML, SVG and MathML. */

const spaces = {
  html: "http://www.w3.org/1999/xhtml",
  svg: "http://www.w3.org/2000/svg",
  math: "http://www.w3.org/1998/Math/MathML",
};

/** html("button", {class: "quiet", on: {click}}, "Save"): null, false and absent attributes and children are left out. */
export const html = maker(spaces.html);
export const svg = maker(spaces.svg);
export const math = maker(spaces.math);

function maker(space) {
  return (name, attributes = {}, ...children) => {
    const made = document.createElementNS(space, name);
    const {on = {}, ...rest} = attributes;
    for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
    for (const [key, value] of Object.entries(rest)) {
      if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return made;
  };
}

/** A word of the sentence inside a sentence of ours: its direction is its own. */
export function word(text, name = "b") {
  return html(name, {dir: "auto", class: "word"}, text);
}

/** A token as people write it; one that nobody would see is called by its numbers. */
export function visible(text) {
  const written = text.replaceAll("▁", " ").trim();
  if (!/^[\p{Cc}\p{Cf}\p{M}]+$/u.test(written)) return written || "␣";
  return [...written].map((sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join(" ");
}

/** A bar as long as a share of its place. */
export function bar(share, name = "bar") {
  const made = html("span", {class: name});
  made.style.setProperty("--share", share);
  return made;
}

/** A row of a table: the cell at `heading` names it; a cell that is an element already stays as it is. */
export function line(cells, attributes = {}, heading = 0) {
  const cell = (content, at) =>
    content instanceof HTMLTableCellElement
      ? content
      : at === heading
        ? html("th", {scope: "row", dir: "auto"}, content)
        : html("td", {}, content);
  return html("tr", attributes, cells.map(cell));
}

export function table(columns, lines, attributes = {}) {
  const names = html(
    "tr",
    {},
    columns.map((name) => html("th", {scope: "col"}, name)),
  );
  return html("table", attributes, html("thead", {}, names), html("tbody", {}, lines));
}

/** What may be wider than its place: scrolled by finger, wheel and arrow keys. */
export function scrolled(label, ...children) {
  return html("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": label}, children);
}

/** Gives each radio of a group one name: groups of one page must not share it. */
let groups = 0;

/** Radios that look like one bar; `choices` is [[value, label], ...]. */
export function choice(label, choices, chosen) {
  const name = `inspector-${(groups += 1)}`;
  const inputs = choices.map(([value]) =>
    html("input", {type: "radio", name, value, on: {change: () => chosen(value)}}),
  );
  return {
    element: html(
      "fieldset",
      {class: "choice"},
      html("legend", {}, label),
      html(
        "div",
        {},
        choices.map(([, text], index) => html("label", {}, inputs[index], html("span", {}, text))),
      ),
    ),
    update: (value) => inputs.forEach((input) => (input.checked = input.value === String(value))),
  };
}

/** A labelled select; update takes its value and, where they change, its options. */
export function selection(label, chosen) {
  const select = html("select", {on: {change: () => chosen(select.value)}});
  let known = "";
  return {
    element: html("label", {class: "selection"}, html("span", {}, label), select),
    update(value, options) {
      const wanted = JSON.stringify(options);
      if (wanted !== known) {
        select.replaceChildren(...options.map(([key, text]) => html("option", {value: key}, text)));
        known = wanted;
      }
      select.value = value;
    },
  };
}
