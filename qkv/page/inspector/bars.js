/** Numbers as bars beside each other, above and below a line at zero. */
import {html, svg} from "./elements.js";
import {chartWidth} from "./paint.js";

/** `values` is [{value, says, name}, ...]; a name stands below its bar, where there is one. */
export function barChart({label, caption, values, ticks, written, tall}) {
  const [width, top, left] = [chartWidth(), 10, 56];
  const [high, low] = [Math.max(...ticks), Math.min(...ticks)];
  const each = (width - left) / values.length;
  const y = (value) => top + (tall * (high - value)) / (high - low);
  const named = values.some(({name}) => name !== undefined);
  return html(
    "figure",
    {class: "chart"},
    svg(
      "svg",
      {viewBox: `0 0 ${width} ${top + tall + (named ? 24 : 10)}`, role: "img", "aria-label": label},
      ticks.map((tick) => [
        svg("line", {x1: left - 2, x2: width, y1: y(tick), y2: y(tick), class: "rule"}),
        svg("text", {x: left - 8, y: y(tick), dy: "0.35em", "text-anchor": "end"}, written(tick)),
      ]),
      values.map(({value, says, name}, at) => [
        svg(
          "rect",
          {
            x: left + at * each,
            width: Math.max(1, each - Math.min(4, each / 6)),
            y: Math.min(y(value), y(0)),
            height: Math.abs(y(value) - y(0)),
            class: value < 0 ? "fill below" : "fill",
          },
          svg("title", {}, says),
        ),
        name !== undefined &&
          svg("text", {x: left + (at + 0.5) * each, y: top + tall + 18, "text-anchor": "middle"}, name),
      ]),
    ),
    html("figcaption", {}, caption),
  );
}
