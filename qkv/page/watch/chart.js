/** A curve over the steps, as SVG; the same as a table for who cannot see it. */
import {html, line, scrolled, svg, table} from "../inspector/elements.js";
import {lastStep} from "./standing.js";

const size = {width: 560, height: 230, left: 58, right: 14, top: 12, bottom: 30};
const names = {train: "training", validation: "validation"};
const rowsOfTable = 20;

export function chart({title, unit, value, kinds, digits}) {
  const picture = svg("svg", {viewBox: `0 0 ${size.width} ${size.height}`, role: "img"});
  const said = html("output", {class: "said"});
  const rows = html("div", {});
  const element = html(
    "section",
    {class: "chart"},
    html("h2", {}, title, " ", html("span", {class: "quiet"}, unit)),
    picture,
    html("div", {class: "below"}, kinds.length > 1 && key(kinds), said),
    html("details", {}, html("summary", {}, "The same as a table"), rows),
  );
  const shown = (number) => number.toLocaleString("en", {minimumFractionDigits: digits > 3 ? 0 : digits, maximumFractionDigits: digits});
  let curves = [];
  let scale = null;
  let known = "";
  /** Where the pointer is, if it is here: what it points at stays told while the curve grows. */
  let pointed = null;

  picture.addEventListener("pointermove", ({clientX}) => point((pointed = clientX)));
  picture.addEventListener("pointerleave", () => point((pointed = null)));

  function update(told) {
    curves = kinds.map((kind) => ({
      kind,
      points: told[kind].filter((report) => report[value] !== null).map((report) => [report.step, report[value]]),
    }));
    // All charts end at the same step.
    const end = lastStep(told);
    if (JSON.stringify([curves, end]) === known) return;
    known = JSON.stringify([curves, end]);
    scale = scaled(curves.flatMap(({points}) => points), end);
    picture.replaceChildren(...(scale ? [axes(scale), curves.map((one) => drawn(one, scale))].flat(2) : nothing()));
    rows.replaceChildren(asTable());
    point(pointed);
  }

  /** Says what the curves are at the step that is pointed at, or at the last one. */
  function point(x) {
    if (x === null || !scale) return say(curves.map(({kind, points}) => [kind, points.at(-1)]));
    const box = picture.getBoundingClientRect();
    const step = scale.stepAt(((x - box.left) / box.width) * size.width);
    say(curves.map(({kind, points}) => [kind, nearest(points, step)]));
  }

  function say(found) {
    const there = found.filter(([, at]) => at);
    picture.querySelectorAll(".mark").forEach((mark) => mark.remove());
    for (const [kind, [step, number]] of there)
      picture.append(svg("circle", {class: `mark ${kind}`, cx: scale.x(step), cy: scale.y(number), r: 4}));
    said.textContent = there
      .map(([kind, [step, number]]) => `${kinds.length > 1 ? `${names[kind]} ` : ""}${shown(number)} at step ${step.toLocaleString("en")}`)
      .join(" · ");
    picture.setAttribute("aria-label", `${title}: ${said.textContent || "not reported yet"}`);
  }

  function asTable() {
    const steps = [...new Set(curves.flatMap(({points}) => points.map(([step]) => step)))].sort((one, two) => one - two);
    const stride = Math.ceil(steps.length / rowsOfTable) || 1;
    const kept = steps.filter((_, at) => (steps.length - 1 - at) % stride === 0);
    const cell = (points, step) => {
      const found = points.find(([at]) => at === step);
      return found ? shown(found[1]) : "";
    };
    const lines = kept.map((step) => line([step.toLocaleString("en"), ...curves.map(({points}) => cell(points, step))]));
    return scrolled(`${title} as a table`, table(["step", ...kinds.map((kind) => names[kind])], lines));
  }

  return {element, update};
}

const nothing = () => [
  ...[size.top, size.height - size.bottom].map((y) =>
    svg("line", {class: "rule", x1: size.left, x2: size.width - size.right, y1: y, y2: y}),
  ),
  svg("text", {class: "label", x: (size.left + size.width) / 2, y: size.height / 2, "text-anchor": "middle"}, "not reported yet"),
];

function key(kinds) {
  return html("ul", {class: "key"}, kinds.map((kind) => html("li", {class: kind}, names[kind])));
}

/** Where steps and values lie; nothing where there are none. */
function scaled(points, end) {
  if (!points.length) return null;
  const values = points.map(([, value]) => value);
  const ticks = round(Math.min(0, ...values), Math.max(...values));
  const [low, high] = [ticks[0], ticks.at(-1)];
  const [wide, tall] = [size.width - size.left - size.right, size.height - size.top - size.bottom];
  const whole = end || 1;
  return {
    ticks,
    steps: round(0, whole).filter((step) => step <= whole),
    x: (step) => size.left + (step / whole) * wide,
    y: (value) => size.top + (1 - (value - low) / (high - low || 1)) * tall,
    stepAt: (x) => ((x - size.left) / wide) * whole,
  };
}

/** About five round numbers from below the one to above the other. */
function round(low, high) {
  const raw = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const stride = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw) * power;
  const first = Math.floor(low / stride);
  const count = Math.ceil(high / stride - 1e-9) - first;
  return Array.from({length: Math.max(1, count) + 1}, (_, at) => (first + at) * stride);
}

function axes({ticks, steps, x, y}) {
  const right = size.width - size.right;
  return [
    ...ticks.map((value) => svg("line", {class: "rule", x1: size.left, x2: right, y1: y(value), y2: y(value)})),
    ...ticks.map((value) =>
      svg("text", {class: "label", x: size.left - 8, y: y(value) + 4, "text-anchor": "end"}, short(value)),
    ),
    ...steps.map((step) =>
      svg("text", {class: "label", x: x(step), y: size.height - 8, "text-anchor": "middle"}, short(step)),
    ),
  ];
}

/** A number in little room. */
const short = (value) =>
  value !== 0 && Math.abs(value) < 0.001
    ? value.toExponential(0)
    : value >= 10_000
      ? `${(value / 1000).toLocaleString("en")}k`
      : value.toLocaleString("en", {maximumFractionDigits: 4});

function drawn({kind, points}, {x, y}) {
  const path = points.map(([step, value], at) => `${at ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const dots = kind === "validation" && points.length <= 60;
  return [
    svg("path", {class: `curve ${kind}`, d: path}),
    ...(dots ? points.map(([step, value]) => svg("circle", {class: `dot ${kind}`, cx: x(step), cy: y(value), r: 2.6})) : []),
  ];
}

function nearest(points, step) {
  return points.reduce((best, point) => (!best || Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best), null);
}
