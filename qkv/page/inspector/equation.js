/** Scaled dot-product attention (section 3.2.1) for one pair of tokens, worked out with this sentence's numbers. */
import {headControls} from "./attention.js";
import {html, math, scrolled, selection, svg, word} from "./elements.js";
import {decimal, dot, percent, row, strongest, sum, tensor} from "./numbers.js";
import {chartWidth} from "./paint.js";
import {uses} from "./readings.js";

export function equationView(context) {
  const {data, store} = context;
  const vectors = vectorSource(context);
  const controls = headControls(context, false);
  const query = selection("Who looks", (value) => store.set({query: Number(value), key: undefined}));
  const key = selection("At whom", (value) => store.set({key: Number(value)}));
  const steps = html("div", {class: "steps"});
  const check = html("p", {class: "check", "aria-live": "polite"});
  const element = html("div", {class: "equation"},
    html("div", {class: "toolbar"}, controls.elements, query.element, key.element), formula(), steps, check);
  let asked = "";

  async function update(state) {
    const now = {...state, head: Number.isInteger(state.head) ? state.head : 0};
    const [queries, keys] = [data.queries(now.use, "tokens"), data.keys(now.use, "tokens")];
    const numbered = (items) => items.map(({text}, at) => [at, `${at + 1}  ${text}`]);
    controls.update(state);
    query.update(now.query, numbered(queries));
    // Nothing is known yet of what stands after a token that the decoder reads.
    key.update(now.key, numbered(now.use === "decoder" ? keys.slice(0, now.query + 1) : keys));
    const wanted = asked = [now.use, now.layer, now.head, now.query, now.key].join();
    try {
      const found = vectors(now.use, now.layer, now.head);
      if (found instanceof Promise) steps.replaceChildren(html("p", {class: "quiet"}, "Fetching this head's vectors …"));
      const given = await found;
      if (wanted !== asked) return;
      const {parts, says} = worked(data, now, queries, keys, given);
      steps.replaceChildren(...parts);
      check.textContent = says;
    } catch (error) {
      if (wanted !== asked) return;
      steps.replaceChildren(html("p", {class: "problem"}, error.message));
      check.textContent = "";
    }
  }

  return {element, update};
}

/** Gives (use, layer, head) => {q, k, v} or a promise of it: from the inspection, or from whoever can be asked. */
function vectorSource({data: {inspection}, options}) {
  const known = new Map();
  const opened = (packed) => Object.fromEntries(["q", "k", "v"].map((part) => [part, tensor(packed[part])]));
  const placed = (tensors, ...place) => Object.fromEntries(Object.entries(tensors).map(([part, value]) => [part, value.matrix(...place)]));

  async function asked(name, place) {
    try {
      known.set(name, placed(opened(await options.fetchVectors(place))));
    } catch (error) {
      known.delete(name);
      throw error;
    }
    return known.get(name);
  }

  return (use, layer, head) => {
    if (inspection.vectors) {
      if (!known.has(use)) known.set(use, opened(inspection.vectors[use]));
      return placed(known.get(use), layer, head);
    }
    if (!options.fetchVectors) throw new Error(inspection.model.note ?? "This inspection carries no vectors: inspect a shorter sentence, or look at it in qkv serve.");
    const name = [use, layer, head].join();
    if (!known.has(name)) known.set(name, asked(name, {use, layer, head}));
    return known.get(name);
  };
}

function worked(data, {use, layer, head, query, key}, queries, keys, {q, k, v}) {
  const [asks, offers] = [row(q, query), row(k, key)];
  const width = asks.length;
  const products = asks.map((value, at) => value * offers[at]);
  const score = dot(asks, offers);
  const root = Math.sqrt(width);
  const seen = use === "decoder" ? query + 1 : keys.length;
  const scores = Array.from({length: seen}, (_, at) => dot(asks, row(k, at)) / root);
  const top = Math.max(...scores);
  const powers = scores.map((value) => Math.exp(value - top));
  const total = sum(powers);
  const weights = powers.map((power) => power / total);
  const output = Array.from({length: v.columns}, (_, at) => sum(weights.map((weight, from) => weight * row(v, from)[at])));
  const model = data.matrix(use, layer, head, "tokens").values[query * keys.length + key];
  const [looking, looked] = [queries[query].text, keys[key].text];
  const parts = [
    step("Query and key", [word(looking), ` asks with its query q, `, word(looked), ` offers its key k: ${width} numbers each, made in layer ${layer + 1} by head ${head + 1}'s own matrices. Multiply them pair by pair.`],
      numbers([["q", asks], ["k", offers], ["q × k", products]])),
    step("Dot product", ["Add the products up. ", html("b", {class: "result"}, `q · k = ${decimal(score)}`)], bars(products)),
    step("Scale by √d", [`Divide by √${width} = ${decimal(root)}, or long vectors would make the softmax too sure. `,
      html("b", {class: "result"}, `${decimal(score)} / ${decimal(root)} = ${decimal(score / root)}`)]),
    step("Softmax over all keys", [`The same for each of the ${seen} keys`, use === "decoder" ? " up to here (later ones are masked: not written yet)" : "",
      "; then e to the power of each score, divided by the sum of all. ",
      html("b", {class: "result"}, "e", html("sup", {}, decimal(scores[key] - top)), ` / ${decimal(total)} = ${percent(weights[key])}`),
      html("span", {class: "quiet"}, ` The largest score, ${decimal(top)}, is taken off each first: the shares stay the same, and no power overflows.`)],
      softmaxTable(keys, key, scores, top, weights)),
    step("Weighted values", [`Each token's value v is multiplied by its share, and all are added up: that is what head ${head + 1} hands on for `, word(looking), "."],
      numbers([[`v of ${looked}`, row(v, key)], [`${percent(weights[key])} of it`, row(v, key).map((value) => value * weights[key])], [`all ${seen}, added`, output]])),
  ];
  return {parts, says: `The model's own weight here is ${percent(model)}; worked out from the vectors: ${percent(weights[key])}. (${uses[use].long}; the vectors are kept in half precision.)`};
}

function step(title, says, ...more) {
  return html("section", {class: "step"}, html("h2", {}, title), html("p", {}, says), more);
}

/** Rows of numbers, one column a dimension; colour tells the sign and the size. */
function numbers(rows) {
  return scrolled("Numbers of each dimension", html("table", {class: "numbers"},
    html("thead", {}, html("tr", {}, html("th", {scope: "col"}, "dimension"), Array.from(rows[0][1], (_, at) => html("th", {scope: "col"}, at + 1)))),
    html("tbody", {}, rows.map(([name, values]) => {
      const largest = Math.max(...values.map(Math.abs)) || 1;
      return html("tr", {}, html("th", {scope: "row", dir: "auto"}, name), Array.from(values, (value) => {
        const cell = html("td", {class: value < 0 ? "below" : "above"}, decimal(value));
        cell.style.setProperty("--strength", `${Math.round((35 * Math.abs(value)) / largest)}%`);
        return cell;
      }));
    }))));
}

/** What each dimension adds to the dot product. */
function bars(products) {
  const [width, height] = [chartWidth(), 120];
  const most = Math.max(...products.map(Math.abs)) || 1;
  const each = (width - 60) / products.length;
  const y = (value) => 60 - (50 * value) / most;
  return html("figure", {class: "chart"}, svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Product of each of ${products.length} dimensions, from ${decimal(Math.min(...products))} to ${decimal(Math.max(...products))}`},
    [most, 0, -most].map((tick) => [svg("line", {x1: 54, x2: width, y1: y(tick), y2: y(tick), class: "rule"}),
      svg("text", {x: 48, y: y(tick), dy: "0.35em", "text-anchor": "end"}, decimal(tick))]),
    Array.from(products, (value, at) => svg("rect", {x: 56 + at * each, width: Math.max(1, each - 1.5), y: Math.min(y(value), 60), height: Math.abs(y(value) - 60), class: value < 0 ? "fill below" : "fill"},
      svg("title", {}, `dimension ${at + 1}: ${decimal(value)}`)))), html("figcaption", {}, "Product q × k in each dimension"));
}

function softmaxTable(keys, key, scores, top, weights) {
  const shown = strongest(weights, weights.length);
  return scrolled("Softmax over all keys", html("table", {class: "softmax"},
    html("thead", {}, html("tr", {}, ["key", "score q·k/√d", ["e", html("sup", {}, `score − ${decimal(top)}`)], "share"].map((name) => html("th", {scope: "col"}, name)), html("td"))),
    html("tbody", {}, shown.map((at) => {
      const bar = html("span", {class: "bar"});
      bar.style.setProperty("--share", weights[at]);
      return html("tr", {class: at === key ? "on" : null}, html("th", {scope: "row", dir: "auto"}, keys[at].text),
        html("td", {}, decimal(scores[at])), html("td", {}, decimal(Math.exp(scores[at] - top), 3)), html("td", {}, percent(weights[at])), html("td", {class: "wide"}, bar));
    }))));
}

/** Attention(Q, K, V) = softmax(Q Kᵀ / √d) V, equation 1. */
function formula() {
  const name = (text) => math("mi", {}, text);
  const sign = (text) => math("mo", {stretchy: "false"}, text);
  const wide = (text) => math("mo", {}, text);
  return html("p", {class: "formula"}, math("math", {displaystyle: "true"}, math("mrow", {},
    name("Attention"), sign("("), name("Q"), sign(","), name("K"), sign(","), name("V"), sign(")"), sign("="), name("softmax"), wide("("),
    math("mfrac", {}, math("mrow", {}, name("Q"), math("msup", {}, name("K"), name("T"))), math("msqrt", {}, name("d"))), wide(")"), name("V"))));
}
