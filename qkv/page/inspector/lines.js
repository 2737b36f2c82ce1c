/** One head as lines between words: left those who look, right those looked at. */
import {html, svg} from "./elements.js";
import {column, percent, row} from "./numbers.js";

/** Weaker lines than this are left out, except those of the word that is looked at closely. */
const faintest = 0.04;

/** Between where lines end and bars begin, beside the words; what a figure takes; and the least for lines and bars. */
const [besideLabel, figureRoom, leastLines, leastBar] = [24, 46, 56, 22];

export function linesPicture({chosen, moved}) {
  const scene = html("div", {
    class: "lines",
    tabindex: 0,
    role: "slider",
    "aria-orientation": "vertical",
    "aria-valuemin": 1,
    on: {keydown: moved, pointerleave: () => show()},
  });
  const observer = new ResizeObserver(() => draw());
  let given = null;
  let measures = null;
  let light = null;
  observer.observe(scene);

  function update(next) {
    given = next;
    const {queries, keys, matrix, query, label} = given;
    scene.setAttribute("aria-label", label);
    scene.setAttribute("aria-valuemax", queries.length);
    scene.setAttribute("aria-valuenow", query + 1);
    const weights = row(matrix, query);
    const best = Array.from(weights.keys())
      .sort((one, other) => weights[other] - weights[one])
      .slice(0, 3);
    scene.setAttribute(
      "aria-valuetext",
      `${queries[query].text} looks at ${best.map((at) => `${keys[at].text} ${percent(weights[at])}`).join(", ")}`,
    );
    draw();
    if (document.activeElement === scene) light.querySelector(".mark").scrollIntoView({block: "nearest"});
  }

  function draw() {
    if (given === null || scene.clientWidth === 0) return;
    measures = measured(given, scene.clientWidth, getComputedStyle(scene).fontFamily);
    const {width, height, left, right, size} = measures;
    const {queries, keys, matrix} = given;
    const faint = [];
    for (let from = 0; from < matrix.rows; from += 1) {
      row(matrix, from).forEach((weight, to) => weight >= faintest && faint.push(line(from, to, weight, 0.3)));
    }
    light = svg("g", {});
    const labels = (items, side, x) =>
      items.map((item, at) =>
        svg(
          "text",
          {
            x,
            y: measures.y(side, at),
            dy: "0.35em",
            class: item.special ? "special" : null,
            "text-anchor": side === 0 ? "end" : "start",
            "font-size": size,
          },
          shortened(item.text, measures.longest),
        ),
      );
    const zones = (items, side, x, span) =>
      items.map((item, at) =>
        svg(
          "rect",
          {
            x,
            width: span,
            y: measures.y(side, at) - measures.step(side) / 2,
            height: measures.step(side),
            class: "zone",
            on: {pointerenter: () => show(side, at), click: () => chosen(side === 0 ? {query: at} : {key: at})},
          },
          svg("title", {}, item.text),
        ),
      );
    scene.replaceChildren(
      svg(
        "svg",
        {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"},
        svg("g", {}, faint),
        light,
        svg("text", {x: left - 10, y: 14, "text-anchor": "end", class: "heading"}, "looks"),
        svg("text", {x: right + 10, y: 14, class: "heading"}, "is looked at"),
        svg("g", {}, labels(queries, 0, left - 10)),
        svg("g", {}, labels(keys, 1, right + 10)),
        svg("g", {}, zones(queries, 0, 0, left), zones(keys, 1, right, width - right)),
      ),
    );
    show();
  }

  /** Lights the lines of one word; of the chosen one where the pointer is nowhere. */
  function show(side = 0, at = given.query) {
    const {matrix} = given;
    const weights = side === 0 ? row(matrix, at) : column(matrix, at);
    const lit = [];
    const {width, right, left, labelWidth, size} = measures;
    const start = right + besideLabel + labelWidth;
    const room = width - start - figureRoom;
    weights.forEach((weight, other) => {
      const [from, to] = side === 0 ? [at, other] : [other, at];
      if (weight < 0.005) return;
      lit.push(line(from, to, weight, 1));
      if (side === 0) {
        const y = measures.y(1, other);
        lit.push(svg("rect", {x: start, y: y - 4, height: 8, rx: 1.5, width: room * weight, class: "fill"}));
        lit.push(
          svg(
            "text",
            {x: start + room * weight + 6, y, dy: "0.35em", class: "value", "font-size": Math.min(12, size)},
            percent(weight),
          ),
        );
      }
    });
    const box = (on, place, name) =>
      svg("rect", {
        x: on === 0 ? left - labelWidth - 18 : right + 3,
        width: labelWidth + 15,
        rx: 4,
        class: name,
        y: measures.y(on, place) - Math.min(13, measures.step(on) / 2),
        height: Math.min(26, measures.step(on)),
      });
    light.replaceChildren(
      box(side, at, "mark"),
      ...(side === 0 && at === given.query ? [box(1, given.key, "outline")] : []),
      ...lit,
    );
  }

  function line(from, to, weight, strong) {
    const {left, right} = measures;
    const [start, end] = [measures.y(0, from), measures.y(1, to)];
    const middle = (left + right) / 2;
    return svg("path", {
      d: `M${left} ${start}C${middle} ${start} ${middle} ${end} ${right} ${end}`,
      class: "line",
      "stroke-width": (0.6 + 3.4 * weight).toFixed(2),
      opacity: (strong * (0.15 + 0.85 * Math.sqrt(weight))).toFixed(3),
    });
  }

  return {element: scene, update, picture: () => scene.firstElementChild};
}

const pen = document.createElement("canvas").getContext("2d");

function measured({queries, keys}, room, family) {
  const many = Math.max(queries.length, keys.length);
  const [size, tall] = many > 50 ? [11, 17] : many > 30 ? [13, 21] : [15, 27];
  pen.font = `${size}px ${family}`;
  const widest = (letters) =>
    Math.max(...[...queries, ...keys].map(({text}) => pen.measureText(shortened(text, letters)).width));
  const width = Math.max(280, room);
  const needed = (labelWidth) => 20 + besideLabel + figureRoom + leastLines + leastBar + 2 * labelWidth;
  let longest = 18;
  while (longest > 4 && needed(widest(longest)) > width) longest -= 1;
  const labelWidth = widest(longest);
  const left = labelWidth + 20;
  const spare = width - needed(labelWidth);
  // Two thirds of what is left over make the lines longer, the rest the bars.
  const right = left + leastLines + Math.min(270, (2 * spare) / 3);
  const span = many * tall;
  const step = (side) => span / (side === 0 ? queries.length : keys.length);
  return {
    width,
    height: span + 30,
    left,
    right,
    size,
    longest,
    labelWidth,
    step,
    y: (side, at) => 24 + (at + 0.5) * step(side),
  };
}

export function shortened(text, longest) {
  const letters = [...text];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : text;
}
