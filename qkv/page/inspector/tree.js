/** The tree of a beam search, drawn: a column for each step, the best at the top. */
import {svg, visible} from "./elements.js";
import {shortened} from "./lines.js";
import {decimal} from "./numbers.js";

const [wide, tall, margin] = [104, 34, 30];

const x = ({step}) => step * wide + margin;
const y = ({lane}) => lane * tall + 2 * margin;

export const tokenOf = ({token}) => (token === null ? "begin" : visible(token));

/** Gives nodes their lanes: by score within a step, what was dropped below what was kept. */
export function laidOut(nodes) {
  const steps = Map.groupBy(nodes, ({step}) => step);
  const rank = ({state, score}) => (state === "dropped" ? 1e6 : 0) - score;
  return [...steps.values()].flatMap((group) =>
    [...group].sort((one, other) => rank(one) - rank(other)).map((node, lane) => ({...node, lane})),
  );
}

/** Draws nodes that have lanes; `light(path)` marks the way to the last of some nodes. */
export function treePicture(nodes, label, chosen) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const [steps, lanes] = ["step", "lane"].map((name) => Math.max(...nodes.map((node) => node[name])));
  const [width, height] = [(steps + 1) * wide + margin, (lanes + 1) * tall + 2 * margin];
  const edges = new Map(nodes.filter(({step}) => step > 0).map((node) => [node.id, edge(byId.get(node.parent), node)]));
  const marks = new Map(nodes.map((node) => [node.id, mark(node, chosen)]));
  const names = Array.from({length: steps}, (_, at) =>
    svg("text", {x: x({step: at + 1}), y: 18, class: "heading"}, `step ${at + 1}`),
  );
  const drawn = [...names, ...edges.values(), ...marks.values()];
  const size = {width, height, viewBox: `0 0 ${width} ${height}`};
  return {
    element: svg("svg", {...size, class: "tree", role: "img", "aria-label": label}, drawn),
    across: x,
    light(path) {
      const on = new Set(path.map(({id}) => id));
      for (const [id, line] of edges) line.classList.toggle("on", on.has(id));
      for (const [id, box] of marks) box.classList.toggle("on", id === path.at(-1)?.id);
    },
  };
}

function edge(parent, node) {
  const [from, to] = [x(parent) + 70, x(node) - 4];
  const middle = (from + to) / 2;
  const d = `M${from} ${y(parent)}C${middle} ${y(parent)} ${middle} ${y(node)} ${to} ${y(node)}`;
  return svg("path", {class: `edge ${node.state}`, d});
}

function mark(node, chosen) {
  return svg(
    "g",
    {class: `node ${node.state}`, transform: `translate(${x(node)} ${y(node)})`, on: {click: () => chosen(node)}},
    svg("title", {}, `${tokenOf(node)} ${decimal(node.score)}: ${node.why}`),
    svg("rect", {x: -4, y: -14, width: 76, height: 28, rx: 5}),
    svg("text", {y: -1}, shortened(tokenOf(node), 10)),
    node.step > 0 && svg("text", {y: 10, class: "value"}, decimal(node.score)),
  );
}
