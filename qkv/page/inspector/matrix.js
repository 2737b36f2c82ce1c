/** One head as a matrix: a row for each word that looks, a column for each that is looked at. */
import {html, svg} from "./elements.js";
import {percent} from "./numbers.js";
import {colour, paint, strength} from "./paint.js";
import {rightToLeft} from "./readings.js";
import {shortened} from "./lines.js";

export function matrixPicture({chosen, moved}) {
  const canvas = html("canvas", {"aria-hidden": "true"});
  const [rows, columns] = [html("div", {class: "row-labels"}), html("div", {class: "column-labels"})];
  const [band, beam, cell] = ["band", "beam", "cell"].map((name) => html("div", {class: name}));
  const tip = html("output", {class: "tip", hidden: true});
  const field = html(
    "div",
    {class: "field", on: {pointermove: hovered, pointerleave: () => point(given.query, given.key), click: picked}},
    canvas,
    band,
    beam,
    cell,
    tip,
  );
  const scene = html(
    "div",
    {
      class: "matrix",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "attention matrix",
      on: {keydown: moved},
    },
    html("div", {class: "corner"}),
    columns,
    rows,
    field,
  );
  // Only what surrounds it may change the size of its cells: its own labels grow and shrink with them.
  const observer = new ResizeObserver(() => given && scene.offsetWidth !== sizedFor && size());
  let given = null;
  let mirrored = false;
  let drawnIn = null;
  let sizedFor = 0;
  observer.observe(scene);

  function update(next) {
    const ink = colour(canvas);
    // Another place in the same matrix needs no new picture.
    if (given?.matrix !== next.matrix || String(drawnIn) !== String(ink)) draw(next, ink);
    given = next;
    point(given.query, given.key);
    bringIntoView();
  }

  function draw(next, ink) {
    given = next;
    drawnIn = ink;
    const {queries, keys, matrix, label} = given;
    mirrored = rightToLeft(keys);
    const labels = (items) =>
      items.map((item) =>
        html(
          "span",
          {class: item.special ? "special" : null, title: item.text},
          html("bdi", {}, shortened(item.text, 16)),
        ),
      );
    scene.setAttribute("aria-label", label);
    rows.replaceChildren(...labels(queries));
    columns.replaceChildren(...(mirrored ? labels(keys).reverse() : labels(keys)));
    size();
    paint(canvas, matrix, ink, mirrored);
  }

  /** The labels stay where they are, and cover what is scrolled under them. */
  function bringIntoView() {
    const [top, left] = [columns.offsetHeight, rows.offsetWidth];
    const {offsetTop, offsetLeft, offsetWidth: side} = cell;
    const within = (now, start, room) => Math.min(Math.max(now, start + side + 4 - room), start);
    scene.scrollTo(
      within(scene.scrollLeft, offsetLeft, scene.clientWidth - left),
      within(scene.scrollTop, offsetTop, scene.clientHeight - top),
    );
  }

  function size() {
    sizedFor = scene.offsetWidth;
    const room = (scene.clientWidth - rows.offsetWidth - 8) / given.keys.length;
    scene.style.setProperty(
      "--cell",
      `${Math.max(given.keys.length > 30 ? 14 : 20, Math.min(32, Math.floor(room)))}px`,
    );
    scene.style.setProperty("--rows", given.queries.length);
    scene.style.setProperty("--columns", given.keys.length);
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    const within = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    const across = within((event.clientX - box.left) / box.width, given.keys.length);
    return [
      within((event.clientY - box.top) / box.height, given.queries.length),
      mirrored ? given.keys.length - 1 - across : across,
    ];
  }

  function hovered(event) {
    point(...place(event));
    tip.hidden = false;
  }

  function picked(event) {
    const [query, key] = place(event);
    chosen({query, key});
  }

  function point(query, key) {
    const across = mirrored ? given.keys.length - 1 - key : key;
    field.style.setProperty("--row", query);
    field.style.setProperty("--column", across);
    rows.childNodes.forEach((label, at) => label.classList.toggle("on", at === query));
    columns.childNodes.forEach((label, at) => label.classList.toggle("on", at === across));
    tip.hidden = true;
    tip.classList.toggle("far", across > given.keys.length / 2);
    tip.replaceChildren(
      html("bdi", {}, given.queries[query].text),
      " → ",
      html("bdi", {}, given.keys[key].text),
      ` ${percent(given.matrix.values[query * given.matrix.columns + key])}`,
    );
  }

  /** The same as SVG, with squares as shapes: for papers. */
  function picture() {
    const {queries, keys, matrix} = given;
    const [side, margin] = [22, 110];
    const x = (key) => margin + side * (mirrored ? keys.length - 1 - key : key);
    const squares = [];
    matrix.values.forEach((weight, at) => {
      const [query, key] = [Math.floor(at / keys.length), at % keys.length];
      if (weight >= 0.002)
        squares.push(
          svg("rect", {
            x: x(key),
            y: margin + side * query,
            width: side,
            height: side,
            class: "fill",
            opacity: strength(weight).toFixed(3),
          }),
        );
    });
    const [width, height] = [margin + side * keys.length + 60, margin + side * queries.length + 10];
    return svg(
      "svg",
      {width, height, viewBox: `0 0 ${width} ${height}`},
      squares,
      queries.map(({text}, at) =>
        svg(
          "text",
          {x: margin - 8, y: margin + side * (at + 0.5), dy: "0.35em", "text-anchor": "end"},
          shortened(text, 14),
        ),
      ),
      keys.map(({text}, at) =>
        svg(
          "text",
          {transform: `translate(${x(at) + side / 2} ${margin - 8}) rotate(-60)`, dy: "0.35em"},
          shortened(text, 14),
        ),
      ),
    );
  }

  return {element: scene, update, picture};
}
