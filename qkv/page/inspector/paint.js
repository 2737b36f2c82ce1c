/** Weights as colour: the accent of the use, its strength the square root of the weight, so that faint ones are seen. */
import {html, svg} from "./elements.js";

export const strength = (weight) => Math.sqrt(Math.min(1, Math.max(0, weight)));

/** The colour that style gives an element, as [red, green, blue]; canvases cannot read custom properties. */
export function colour(styled, property = "color") {
  return getComputedStyle(styled)[property].match(/[\d.]+/g).slice(0, 3).map(Number);
}

/** One pixel a weight; style scales the canvas without smoothing, so that any length costs little. */
export function paint(canvas, matrix, [red, green, blue], mirrored = false) {
  const {rows, columns, values} = matrix;
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  for (let at = 0; at < values.length; at += 1) {
    const across = at % columns;
    const to = 4 * (at - across + (mirrored ? columns - 1 - across : across));
    image.data.set([red, green, blue, 255 * strength(values[at])], to);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Numbers of either sign: the accent above zero, the quiet colour below; `largest` has full strength. */
export function paintSigned(canvas, matrix, above, below, largest) {
  const {rows, columns, values} = matrix;
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  values.forEach((value, at) => {
    image.data.set([...(value < 0 ? below : above), 255 * Math.min(1, Math.abs(value) / largest)], 4 * at);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Charts scale to their place; drawn for a narrow one, their text stays large enough. */
export const chartWidth = () => Math.max(320, Math.min(720, innerWidth - 40));

/** What the colours mean. */
export function legend() {
  const ticks = [0, 0.05, 0.25, 0.5, 1];
  return html("figure", {class: "legend"}, html("figcaption", {}, "Share of attention"),
    svg("svg", {viewBox: "0 0 236 30", width: 236, height: 30, role: "img", "aria-label": "Colour scale from 0 to 100 %: stronger colour, larger share"},
      Array.from({length: 40}, (_, at) => svg("rect", {x: 14 + at * 5, y: 0, width: 5.2, height: 10, class: "fill", opacity: (at + 0.5) / 40})),
      ticks.map((tick) => svg("text", {x: 14 + 200 * strength(tick), y: 25, "text-anchor": "middle"}, `${100 * tick} %`))));
}
