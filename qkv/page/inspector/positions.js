/** How the model knows where a token stands (section 3.5), and how far the chosen head looks. */
import {barChart} from "./bars.js";
import {headControls} from "./controls.js";
import {html, svg, visible, word} from "./elements.js";
import {named} from "./grid.js";
import {angle, decimal, dot, filled, percent, row, tensor} from "./numbers.js";
import {chartWidth, colour, paintSigned} from "./paint.js";
import {uses} from "./readings.js";

const kinds = {
  sinusoidal: {
    says: "To each token's embedding the model adds a pattern of waves that is its position's alone: each pair of dimensions is the sine and the cosine of one wave, from short to very long.",
    width: (model) => model.width,
    written: (position, pair, width) =>
      `sin(${position} / 10000^(${2 * pair}/${width})) = ${decimal(Math.sin(angle(position, pair, width)), 3)},  cos(…) = ${decimal(Math.cos(angle(position, pair, width)), 3)}`,
    alike: "Product of two positions' patterns, divided by that of a position with itself",
  },
  rotary: {
    says: "In self-attention, each pair of dimensions of a query and of a key is turned by an angle that grows with its position. Turned alike, they cancel: a score sees only how far apart two tokens are.",
    width: (model) => model.key_width,
    written: (position, pair, width) =>
      `turned by ${position} / 10000^(${2 * pair}/${width}) = ${decimal(angle(position, pair, width), 3)} radians = ${decimal(((angle(position, pair, width) * 180) / Math.PI) % 360, 0)}°`,
    alike: "Score of a query and a key that differ in nothing but position, divided by that at the same position",
  },
};

export function positionsView(context) {
  const {data, store} = context;
  const {model, source} = data.inspection;
  const kind = kinds[model.positions];
  const controls = headControls(context, true);
  const far = html("section", {class: "step"});
  const pattern = kind ? patterns(kind, kind.width(model), source.tokens) : learned(data.inspection);
  const element = html(
    "div",
    {class: "positions"},
    pattern.element,
    html("div", {class: "toolbar"}, controls.elements),
    far,
  );

  function update(state) {
    controls.update(state);
    pattern.repaint();
    far.replaceChildren(
      html("h2", {}, "How far this head looks"),
      ...(state.use === "cross"
        ? [
            html(
              "p",
              {},
              "Encoder-decoder attention joins two sentences: distance means nothing there. Choose the encoder or the decoder.",
            ),
          ]
        : [
            html(
              "p",
              {},
              `${uses[state.use].long}, ${named(state.layer, state.head).toLowerCase()}: the mean share that goes to the token so many places before or after.`,
            ),
            distances(data.matrix(state.use, state.layer, state.head, "tokens")),
          ]),
    );
  }

  return {element, update, picture: () => element.querySelector("svg"), name: () => "positions"};
}

function patterns(kind, width, tokens) {
  const pairs = width / 2;
  const count = Math.max(tokens.length, 24);
  const canvas = html("canvas", {
    class: "pattern",
    role: "img",
    "aria-label": `Sine and cosine of ${count} positions, a row each, in ${width} dimensions, a column each`,
  });
  const position = range("Position", tokens.length - 1, Math.min(3, tokens.length - 1));
  const pair = range("Pair of dimensions", pairs - 1, Math.min(4, pairs - 1));
  const says = html("p", {class: "result", "aria-live": "polite"});
  const charts = html("div", {class: "charts"});
  const wave = filled(count, width, (at, dimension) => {
    const turned = angle(at, Math.floor(dimension / 2), width);
    return dimension % 2 ? Math.cos(turned) : Math.sin(turned);
  });
  const repaint = () => paintSigned(canvas, wave, colour(canvas), colour(canvas, "outlineColor"));

  function show() {
    const [at, which] = [position.value(), pair.value()];
    const alike = Array.from({length: count}, (_, other) => {
      let total = 0;
      for (let one = 0; one < pairs; one += 1) total += Math.cos(angle(at, one, width) - angle(other, one, width));
      return total / pairs;
    });
    says.replaceChildren(word(visible(tokens[at].text)), `  ${kind.written(at, which, width)}`);
    charts.replaceChildren(
      curve(`Pair ${which}: sine (full) and cosine (dashed) by position`, count, at, [
        (x) => Math.sin(angle(x, which, width)),
        (x) => Math.cos(angle(x, which, width)),
      ]),
      curve(`${kind.alike}, by position`, count, at, [(x) => alike[Math.round(x)]], 1),
    );
  }

  for (const each of [position, pair]) each.input.addEventListener("input", show);
  show();
  const element = section(
    "Positions",
    html("p", {}, kind.says),
    html("figure", {class: "chart"}, canvas, html("figcaption", {}, axes(count, width))),
    html("div", {class: "toolbar"}, position.element, pair.element),
    says,
    charts,
  );
  return {element, repaint};
}

/** The vectors themselves; files of older exports do not carry them. */
function learned({positions, source: {tokens}}) {
  const says =
    "This model learned a vector for each position. It is added to the token's embedding; what the heads make of it is seen below.";
  const vectors = positions && tensor(positions).matrix();
  if (!vectors) return {repaint() {}, element: section("Learned positions", html("p", {}, says))};
  const {rows, columns, values} = vectors;
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  const shades = filled(rows, columns, (at, dimension) => values[at * columns + dimension] / largest);
  const canvas = html("canvas", {
    class: "pattern",
    role: "img",
    "aria-label": `Learned vectors of ${rows} positions, a row each, in ${columns} dimensions, a column each`,
  });
  const position = range("Position", Math.min(rows, tokens.length) - 1, Math.min(3, tokens.length - 1));
  const said = html("p", {class: "result", "aria-live": "polite"});
  const charts = html("div", {class: "charts"});
  const length = (at) => Math.hypot(...row(vectors, at)) || 1;

  function show() {
    const at = position.value();
    const alike = (other) => dot(row(vectors, at), row(vectors, other)) / (length(at) * length(other));
    const nearest = Array.from({length: rows}, (_, other) => other)
      .filter((other) => other !== at)
      .sort((one, other) => alike(other) - alike(one))[0];
    said.replaceChildren(
      word(visible(tokens[at].text)),
      `  position ${at}: most like position ${nearest}, cosine ${decimal(alike(nearest))}`,
    );
    charts.replaceChildren(
      curve("Cosine of this position's vector with each other's", rows, at, [(x) => alike(Math.round(x))], 1),
    );
  }

  position.input.addEventListener("input", show);
  show();
  return {
    repaint: () => paintSigned(canvas, shades, colour(canvas), colour(canvas, "outlineColor")),
    element: section(
      "Learned positions",
      html("p", {}, says),
      html("figure", {class: "chart"}, canvas, html("figcaption", {}, axes(rows, columns))),
      html("div", {class: "toolbar"}, position.element),
      said,
      charts,
    ),
  };
}

function section(title, ...children) {
  return html("section", {class: "step"}, html("h2", {}, title), children);
}

function axes(rows, columns) {
  return `Row: position 0 to ${rows - 1}. Column: dimension 1 to ${columns}. Accent: above zero, grey: below.`;
}

function range(label, max, value) {
  // No output: a label would be that one's, and not the slider's.
  const shown = html("span", {}, value);
  const input = html("input", {
    type: "range",
    min: 0,
    max,
    value,
    on: {input: () => (shown.textContent = input.value)},
  });
  return {
    input,
    value: () => Number(input.value),
    element: html("label", {class: "range"}, html("span", {}, label, " ", shown), input),
  };
}

function curve(caption, count, marked, functions, step = 0.1) {
  const [width, height] = [360, 130];
  const x = (at) => 34 + (at / (count - 1)) * (width - 44);
  const y = (value) => 60 - 48 * value;
  const path = (of) =>
    Array.from(
      {length: Math.floor((count - 1) / step) + 1},
      (_, at) => `${at ? "L" : "M"}${x(at * step).toFixed(1)} ${y(of(at * step)).toFixed(1)}`,
    ).join("");
  return html(
    "figure",
    {class: "chart"},
    svg(
      "svg",
      {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": caption},
      [1, 0, -1].map((tick) => [
        svg("line", {x1: 34, x2: width, y1: y(tick), y2: y(tick), class: "rule"}),
        svg("text", {x: 28, y: y(tick), dy: "0.35em", "text-anchor": "end"}, decimal(tick, 0)),
      ]),
      [0, Math.floor(count / 2), count - 1].map((tick) =>
        svg("text", {x: x(tick), y: 126, "text-anchor": "middle"}, tick),
      ),
      functions.map((of, at) => svg("path", {d: path(of), class: "curve", "stroke-dasharray": at ? "4 4" : null})),
      functions.map((of) => svg("circle", {cx: x(marked), cy: y(of(marked)), r: 4, class: "fill"})),
    ),
    html("figcaption", {}, caption),
  );
}

/** Mean weight by distance; each distance is averaged over the rows where it lies inside the sentence. */
function distances(matrix) {
  const reach = Math.min(chartWidth() < 500 ? 6 : 12, matrix.rows - 1);
  const shares = Array.from({length: 2 * reach + 1}, (_, at) => {
    const found = [];
    for (let from = 0; from < matrix.rows; from += 1) {
      const to = from + at - reach;
      if (to >= 0 && to < matrix.columns) found.push(matrix.values[from * matrix.columns + to]);
    }
    return found.reduce((total, weight) => total + weight, 0) / found.length;
  });
  const most = Math.max(...shares, 0.01);
  const told = shares.map((share, at) => ({
    value: share,
    says: percent(share),
    name: at === reach ? "itself" : decimal(at - reach, 0),
  }));
  return barChart({
    label: `Mean share by distance: ${told.map(({says, name}) => `${name}: ${says}`).join(", ")}`,
    caption: "Distance in tokens: before (−) or after",
    values: told,
    ticks: [0, most / 2, most],
    written: percent,
    tall: 130,
  });
}
