/** Scaled dot-product attention (section 3.2.1) for one pair of tokens, worked out with this sentence's numbers. */
import {barChart} from "./bars.js";
import {headControls} from "./controls.js";
import {bar, html, line, math, scrolled, selection, table, word} from "./elements.js";
import {decimal, percent, strongest} from "./numbers.js";
import {uses} from "./readings.js";
import {scaledDotProduct, vectorSource} from "./vectors.js";

export function equationView(context) {
  const {data, store} = context;
  const vectors = vectorSource(context);
  const controls = headControls(context, false);
  const query = selection("Who looks", (value) => store.set({query: Number(value), key: undefined}));
  const key = selection("At whom", (value) => store.set({key: Number(value)}));
  const steps = html("div", {class: "steps"});
  const check = html("p", {class: "check", "aria-live": "polite"});
  const element = html(
    "div",
    {class: "equation"},
    html("div", {class: "toolbar"}, controls.elements, query.element, key.element),
    formula(),
    steps,
    check,
  );
  let asked = "";

  async function update(state) {
    const now = {...state, head: Number.isInteger(state.head) ? state.head : 0};
    const [queries, keys] = [data.queries(now.use, "tokens"), data.keys(now.use, "tokens")];
    const numbered = (items) => items.map(({text}, at) => [at, `${at + 1}  ${text}`]);
    controls.update(state);
    query.update(now.query, numbered(queries));
    // Nothing is known yet of what stands after a token that the decoder reads.
    key.update(now.key, numbered(now.use === "decoder" ? keys.slice(0, now.query + 1) : keys));
    const wanted = (asked = [now.use, now.layer, now.head, now.query, now.key].join());
    const tell = (message) => {
      if (wanted !== asked) return;
      steps.replaceChildren(html("p", {class: "problem"}, message));
      check.textContent = "";
    };
    try {
      const found = vectors(now.use, now.layer, now.head, {waiting: ({message}) => tell(message)});
      if (found instanceof Promise)
        steps.replaceChildren(html("p", {class: "quiet"}, "Fetching this head's vectors …"));
      const given = await found;
      if (wanted !== asked) return;
      const {parts, says} = worked(data, now, queries, keys, given);
      steps.replaceChildren(...parts);
      check.textContent = says;
    } catch (error) {
      tell(error.message);
    }
  }

  return {element, update};
}

function worked(data, {use, layer, head, query, key}, queries, keys, vectors) {
  const seen = use === "decoder" ? query + 1 : keys.length;
  const found = scaledDotProduct(vectors, query, key, seen);
  const {product, root, scores, top, total, weights, value} = found;
  const width = found.asks.length;
  const share = percent(weights[key]);
  const model = percent(data.matrix(use, layer, head, "tokens").values[query * keys.length + key]);
  const [looking, looked] = [queries[query].text, keys[key].text];
  const result = (...parts) => html("b", {class: "result"}, parts);
  const masked = use === "decoder" ? " up to here (later ones are masked: not written yet)" : "";
  const parts = [
    step(
      "Query and key",
      [
        word(looking),
        " asks with its query q, ",
        word(looked),
        ` offers its key k: ${width} numbers each, made in layer ${layer + 1} by head ${head + 1}'s own matrices. `,
        "Multiply them pair by pair.",
      ],
      numbers([
        ["q", found.asks],
        ["k", found.offers],
        ["q × k", found.products],
      ]),
    ),
    step("Dot product", ["Add the products up. ", result(`q · k = ${decimal(product)}`)], bars(found.products)),
    step("Scale by √d", [
      `Divide by √${width} = ${decimal(root)}, or long vectors would make the softmax too sure. `,
      result(`${decimal(product)} / ${decimal(root)} = ${decimal(product / root)}`),
    ]),
    step(
      "Softmax over all keys",
      [
        `The same for each of the ${seen} keys${masked}; then e to the power of each score, divided by the sum of all. `,
        result("e", html("sup", {}, decimal(scores[key] - top)), ` / ${decimal(total)} = ${share}`),
        html(
          "span",
          {class: "quiet"},
          ` The largest score, ${decimal(top)}, is taken off each first: shares stay the same, and no power overflows.`,
        ),
      ],
      softmax(keys, key, found),
    ),
    step(
      "Weighted values",
      [
        `Each token's value v is multiplied by its share, and all are added up: that is what head ${head + 1} hands on for `,
        word(looking),
        ".",
      ],
      numbers([
        [`v of ${looked}`, value],
        [`${share} of it`, value.map((number) => number * weights[key])],
        [`all ${seen}, added`, found.output],
      ]),
    ),
  ];
  const says = `The model's own weight here is ${model}; worked out from the vectors: ${share}. (${uses[use].long}; the vectors are kept in half precision.)`;
  return {parts, says};
}

function step(title, says, ...more) {
  return html("section", {class: "step"}, html("h2", {}, title), html("p", {}, says), more);
}

/** Rows of numbers, one column a dimension; colour tells the sign and the size. */
function numbers(rows) {
  const lines = rows.map(([name, values]) => {
    const largest = Math.max(...values.map(Math.abs)) || 1;
    const cells = Array.from(values, (value) => {
      const cell = html("td", {class: value < 0 ? "below" : "above"}, decimal(value));
      cell.style.setProperty("--strength", `${Math.round((35 * Math.abs(value)) / largest)}%`);
      return cell;
    });
    return line([name, ...cells]);
  });
  const dimensions = Array.from(rows[0][1], (_, at) => at + 1);
  return scrolled("Numbers of each dimension", table(["dimension", ...dimensions], lines, {class: "numbers"}));
}

/** What each dimension adds to the dot product. */
function bars(products) {
  const most = Math.max(...products.map(Math.abs)) || 1;
  const [smallest, largest] = [Math.min(...products), Math.max(...products)];
  return barChart({
    label: `Product of each of ${products.length} dimensions, from ${decimal(smallest)} to ${decimal(largest)}`,
    caption: "Product q × k in each dimension",
    values: Array.from(products, (value, at) => ({value, says: `dimension ${at + 1}: ${decimal(value)}`})),
    ticks: [most, 0, -most],
    written: decimal,
    tall: 100,
  });
}

function softmax(keys, key, {scores, top, powers, weights}) {
  const lines = strongest(weights, weights.length).map((at) => {
    const cells = [keys[at].text, decimal(scores[at]), decimal(powers[at], 3), percent(weights[at])];
    return line([...cells, html("td", {class: "wide"}, bar(weights[at]))], {class: at === key ? "on" : null});
  });
  const power = html("span", {}, "e", html("sup", {}, `score − ${decimal(top)}`));
  return scrolled(
    "Softmax over all keys",
    table(["key", "score q·k/√d", power, "share", "drawn"], lines, {class: "softmax"}),
  );
}

/** Attention(Q, K, V) = softmax(Q Kᵀ / √d) V, equation 1. */
function formula() {
  const name = (text) => math("mi", {}, text);
  const sign = (text) => math("mo", {stretchy: "false"}, text);
  const wide = (text) => math("mo", {}, text);
  return html(
    "p",
    {class: "formula"},
    math(
      "math",
      {displaystyle: "true"},
      math(
        "mrow",
        {},
        name("Attention"),
        sign("("),
        name("Q"),
        sign(","),
        name("K"),
        sign(","),
        name("V"),
        sign(")"),
        sign("="),
        name("softmax"),
        wide("("),
        math(
          "mfrac",
          {},
          math("mrow", {}, name("Q"), math("msup", {}, name("K"), name("T"))),
          math("msqrt", {}, name("d")),
        ),
        wide(")"),
        name("V"),
      ),
    ),
  );
}
