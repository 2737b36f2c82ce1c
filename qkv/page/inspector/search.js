/** The beam search as a tree: a column for each step, the best at the top, and why the others were dropped. */
import {html, scrolled, svg, word} from "./elements.js";
import {shortened} from "./lines.js";
import {decimal} from "./numbers.js";

const [wide, tall, margin] = [104, 34, 30];

const states = {chosen: "on the way to the translation", kept: "kept", finished: "a finished translation", dropped: "dropped"};

export function searchView({data}) {
  const {search} = data.inspection;
  if (!search || search.nodes.length === 0) return {element: html("p", {}, "This inspection carries no search."), update() {}};
  const nodes = laidOut(search.nodes);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const [steps, lanes] = [Math.max(...nodes.map(({step}) => step)), Math.max(...nodes.map(({lane}) => lane)) + 1];
  const [width, height] = [(steps + 1) * wide + margin, lanes * tall + 2 * margin];
  const x = ({step}) => step * wide + margin;
  const y = ({lane}) => lane * tall + 2 * margin;
  const told = html("div", {class: "told", "aria-live": "polite"});
  const edges = new Map();
  const marks = new Map();
  const hideDropped = html("input", {type: "checkbox", on: {change: () => drawing.classList.toggle("no-dropped", hideDropped.checked)}});

  for (const node of nodes) {
    const parent = byId.get(node.parent);
    if (parent && node !== parent) {
      const [from, to] = [x(parent) + 70, x(node) - 4];
      edges.set(node.id, svg("path", {class: `edge ${node.state}`, d: `M${from} ${y(parent)}C${(from + to) / 2} ${y(parent)} ${(from + to) / 2} ${y(node)} ${to} ${y(node)}`}));
    }
    marks.set(node.id, svg("g", {class: `node ${node.state}`, transform: `translate(${x(node)} ${y(node)})`, on: {click: () => tell(node)}},
      svg("title", {}, `${plainToken(node)} ${decimal(node.score)}: ${node.why ?? states[node.state]}`),
      svg("rect", {x: -4, y: -14, width: 76, height: 28, rx: 5}),
      svg("text", {y: -1}, shortened(plainToken(node), 10)), node.step > 0 && svg("text", {y: 10, class: "value"}, decimal(node.score))));
  }
  const drawing = svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, class: "tree", role: "img", "aria-label": `Beam search with ${search.beam} hypotheses over ${steps} steps; the buttons of each step below tell the same`},
    Array.from({length: steps}, (_, at) => svg("text", {x: x({step: at + 1}), y: 18, class: "heading"}, `step ${at + 1}`)), ...edges.values(), ...marks.values());
  const scene = html("div", {class: "scroll tree-scene", tabindex: 0, role: "application", "aria-roledescription": "beam search tree", "aria-label": "Beam search; arrow keys walk the tree", on: {keydown: walked}}, drawing);
  let now = nodes.find(({state, step}) => state === "chosen" && step === 1) ?? nodes[0];

  function tell(node) {
    now = node;
    const path = [];
    for (let at = node; at && at.step > 0; at = byId.get(at.parent)) path.unshift(at);
    const on = new Set(path.map(({id}) => id));
    for (const [id, edge] of edges) edge.classList.toggle("on", on.has(id));
    for (const [id, mark] of marks) mark.classList.toggle("on", id === node.id);
    const sentence = path.map(({token}) => token).join("").replaceAll("▁", " ").trim();
    told.replaceChildren(html("p", {class: "sentence"}, word(sentence || "(nothing written yet)", "bdi")),
      html("p", {}, html("b", {class: `tag ${node.state}`}, states[node.state]), node.why && node.why !== states[node.state] ? ` ${node.why}.` : "",
        node.step > 0 && ` Log probability ${decimal(node.log_probability, 3)}, score with length penalty ${search.length_penalty}: ${decimal(node.score, 3)}.`));
  }

  function walked(event) {
    const shown = nodes.filter(({state}) => !(hideDropped.checked && state === "dropped"));
    const beside = (by) => shown.filter(({step}) => step === now.step).sort((one, other) => one.lane - other.lane)
      .find((node, at, all) => all[at - by] === now);
    const next = {
      ArrowLeft: () => byId.get(now.parent),
      ArrowRight: () => shown.filter(({parent, step}) => parent === now.id && step > now.step).sort((one, other) => one.lane - other.lane)[0],
      ArrowDown: () => beside(1),
      ArrowUp: () => beside(-1),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const found = next();
    if (!found) return;
    tell(found);
    scene.scrollTo({left: x(found) - scene.clientWidth / 2});
  }

  tell(now);
  const dropped = nodes.filter(({state}) => state === "dropped");
  const element = html("div", {class: "search"},
    html("p", {}, `At each step every hypothesis is continued by its most probable tokens, and the best ${search.beam} of all are kept. Each column is a step, the best at the top; numbers are scores (log probability, with a length penalty of ${search.length_penalty}).`),
    html("div", {class: "toolbar"}, html("label", {class: "check-box"}, hideDropped, " Hide what was dropped"),
      html("ul", {class: "key"}, Object.entries(states).map(([state, says]) => html("li", {class: `tag ${state}`}, says)))),
    scene, told,
    html("details", {class: "as-text"}, html("summary", {}, `What was dropped, and why (${dropped.length})`), scrolled("What was dropped", html("table", {},
      html("thead", {}, html("tr", {}, ["Step", "Token", "Score", "Why"].map((name) => html("th", {scope: "col"}, name)))),
      html("tbody", {}, dropped.map((node) => html("tr", {}, html("td", {}, node.step), html("th", {scope: "row"}, word(plainToken(node), "bdi")), html("td", {}, decimal(node.score, 3)), html("td", {}, node.why))))))));
  return {element, update() {}, picture: () => drawing, name: () => "beam-search"};
}

const plainToken = ({token}) => (token ?? "begin").replaceAll("▁", " ").trim() || "␣";

/** Lanes by score within a step, what was dropped below what was kept. */
function laidOut(nodes) {
  const steps = Map.groupBy(nodes, ({step}) => step);
  const rank = ({state, score}) => (state === "dropped" ? 1e6 : 0) - score;
  return [...steps.values()].flatMap((group) => [...group].sort((one, other) => rank(one) - rank(other)).map((node, lane) => ({...node, lane})));
}
