/** What the decoder looks at while it writes one sentence, checkpoint by checkpoint: alignment as it emerges. */
import {html, svg, visible} from "../inspector/elements.js";
import {stepChoice} from "./steps.js";
import {strip} from "./strip.js";

const cell = 22;
/** What a sign of a label takes at most, along it. */
const sign = 7;

export function attentionPart() {
  const says = html("p", {});
  const legend = html(
    "p",
    {class: "quiet"},
    "A row is a token that is written, its columns are the tokens of the source; heads on average. The stronger the colour, the more (by the square root of the share).",
  );
  const place = html("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Attention"});
  const said = html("output", {class: "said"});
  const layers = html("select", {on: {change: () => show()}});
  const steps = stepChoice("Checkpoint of", (chosen) => {
    at = chosen;
    show();
  });
  const pictures = strip((place) => steps.set(place));
  const element = html(
    "section",
    {class: "part", hidden: true},
    html("h2", {}, "What each word looks at while it is written"),
    says,
    legend,
    html("div", {class: "tools"}, steps.element, html("label", {}, "Layer ", layers)),
    pictures.element,
    place,
    said,
  );
  let told = null;
  let at = 0;

  function show() {
    const {source, target, checkpoints} = told;
    const weights = checkpoints[at].layers[Number(layers.value)];
    // Labels above are turned by 60 degrees.
    const margin = {left: 12 + room(target), top: 18 + room(source) * Math.sin(Math.PI / 3)};
    const overhang = room(source.slice(-2)) / 2;
    const [width, height] = [margin.left + source.length * cell + overhang, margin.top + target.length * cell + 8];
    const label = `Attention of layer ${Number(layers.value) + 1} after step ${checkpoints[at].step}`;
    const picture = svg(
      "svg",
      {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label},
      source.map((token, column) =>
        svg("text", {class: "label", transform: `translate(${margin.left + (column + 0.7) * cell} ${margin.top - 8}) rotate(-60)`}, visible(token)),
      ),
      target.map((token, row) =>
        svg("text", {class: "label", x: margin.left - 8, y: margin.top + (row + 0.7) * cell, "text-anchor": "end"}, visible(token)),
      ),
      weights.map((shares, row) =>
        shares.map((share, column) =>
          svg(
            "rect",
            {
              class: "weight",
              x: margin.left + column * cell,
              y: margin.top + row * cell,
              width: cell - 1,
              height: cell - 1,
              "fill-opacity": Math.sqrt(share).toFixed(3),
              on: {pointerenter: () => tell(row, column, share)},
            },
          ),
        ),
      ),
    );
    place.replaceChildren(picture);
    pictures.update(checkpoints, Number(layers.value), at);
    said.textContent = summary(weights);
  }

  function tell(row, column, share) {
    said.textContent = `${visible(told.target[row])} looks at ${visible(told.source[column])} with ${Math.round(100 * share)} %`;
  }

  return {
    element,
    update(found) {
      element.hidden = !found;
      if (!found) return;
      const before = told?.checkpoints.length;
      told = found;
      says.textContent = found.texts.join(" → ");
      const count = found.checkpoints[0].layers.length;
      if (layers.options.length !== count) {
        layers.replaceChildren(...Array.from({length: count}, (_, layer) => html("option", {value: layer}, layer + 1)));
        layers.value = count - 1;
      }
      const chosen = steps.update(found.checkpoints.map(({step}) => step));
      const same = chosen === at && before === found.checkpoints.length && place.firstChild;
      at = chosen;
      if (!same) show();
    },
  };
}

const room = (tokens) => sign * Math.max(...tokens.map((token) => visible(token).length));

/** How decided attention is: sharper rows are words that have found what they came from. */
function summary(weights) {
  const strongest = weights.map((shares) => Math.max(...shares));
  const mean = strongest.reduce((total, share) => total + share, 0) / strongest.length;
  return `On average a token gives ${Math.round(100 * mean)} % of its attention to one token of the source.`;
}
