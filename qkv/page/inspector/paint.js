/** Weights as colour: the accent of the use, its strength the square root of the weight, so that faint ones are seen. */
import {html, svg} from "./elements.js";
import {filled} from "./numbers.js";

export const strength = (weight) => Math.sqrt(Math.min(1, Math.max(0, weight)));

/** The colour that style gives an element, as [red, green, blue]; canvases cannot read custom properties. */
export function colour(styled, property = "color") {
  return getComputedStyle(styled)
    [property].match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);
}

/** One pixel a number; style scales the canvas without smoothing, so that any length costs little. */
function painted(canvas, {rows, columns, values}, ink, mirrored = false) {
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  const pixels = new DataView(image.data.buffer);
  for (let at = 0; at < values.length; at += 1) {
    const across = at % columns;
    const [[red, green, blue], alpha] = ink(values[at]);
    pixels.setUint32(
      4 * (mirrored ? at - across + columns - 1 - across : at),
      (red << 24) | (green << 16) | (blue << 8) | (255 * alpha),
    );
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

export function paint(canvas, matrix, accent, mirrored) {
  painted(canvas, matrix, (weight) => [accent, strength(weight)], mirrored);
}

/** Numbers from -1 to 1: the accent above zero, the quiet colour below. */
export function paintSigned(canvas, matrix, above, below) {
  painted(canvas, matrix, (value) => [value < 0 ? below : above, Math.abs(value)]);
}

/** Made of at most `side` rows and columns, each the largest of those it stands for: small pictures lose no line. */
export function pooled(matrix, side) {
  const [rows, columns] = [Math.min(side, matrix.rows), Math.min(side, matrix.columns)];
  if (rows === matrix.rows && columns === matrix.columns) return matrix;
  const small = filled(rows, columns, () => 0);
  matrix.values.forEach((value, at) => {
    const [from, to] = [Math.floor(at / matrix.columns), at % matrix.columns];
    const place = Math.floor((from * rows) / matrix.rows) * columns + Math.floor((to * columns) / matrix.columns);
    if (value > small.values[place]) small.values[place] = value;
  });
  return small;
}

/** Charts scale to their place; drawn for a narrow one, their text stays large enough. */
export const chartWidth = () => Math.max(320, Math.min(720, innerWidth - 40));

/** What the colours mean. */
export function legend() {
  const ticks = [0, 0.05, 0.25, 0.5, 1];
  return html(
    "figure",
    {class: "legend"},
    html("figcaption", {}, "Share of attention"),
    svg(
      "svg",
      {
        viewBox: "0 0 236 30",
        width: 236,
        height: 30,
        role: "img",
        "aria-label": "Colour scale from 0 to 100 %: stronger colour, larger share",
      },
      Array.from({length: 40}, (_, at) =>
        svg("rect", {x: 14 + at * 5, y: 0, width: 5.2, height: 10, class: "fill", opacity: (at + 0.5) / 40}),
      ),
      ticks.map((tick) =>
        svg("text", {x: 14 + 200 * strength(tick), y: 25, "text-anchor": "middle"}, `${100 * tick} %`),
      ),
    ),
  );
}
