/** The beam search: its tree, how far each hypothesis came, and why the others were dropped. */
import {html, line, scrolled, table, word} from "./elements.js";
import {decimal} from "./numbers.js";
import {laidOut, tokenOf, treePicture} from "./tree.js";

const states = {
  chosen: "on the way to the translation",
  kept: "kept",
  finished: "a finished translation",
  dropped: "dropped",
};

export function searchView({data}) {
  const {search} = data.inspection;
  if (search === null) return {element: html("p", {}, "This inspection carries no search."), update() {}};
  const nodes = laidOut(search.nodes);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const told = html("div", {class: "told", "aria-live": "polite"});
  const tree = treePicture(nodes, `Beam search with ${search.beam} hypotheses; what was dropped is listed below`, tell);
  const hide = html("input", {
    type: "checkbox",
    on: {change: () => tree.element.classList.toggle("no-dropped", hide.checked)},
  });
  const scene = html(
    "div",
    {
      class: "scroll tree-scene",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "beam search tree",
      "aria-label": "Beam search; arrow keys walk the tree",
      on: {keydown: walked},
    },
    tree.element,
  );
  let now = null;

  function tell(node) {
    now = node;
    const path = [];
    for (let at = node; at.step > 0; at = byId.get(at.parent)) path.unshift(at);
    tree.light(path);
    told.replaceChildren(...inWords(node, path, search));
  }

  function walked(event) {
    const shown = nodes
      .filter(({state}) => !(hide.checked && state === "dropped"))
      .sort((one, other) => one.lane - other.lane);
    const beside = (by) => shown.filter(({step}) => step === now.step).find((_, at, all) => all[at - by] === now);
    const next = {
      ArrowLeft: () => byId.get(now.parent),
      ArrowRight: () => shown.find(({parent}) => parent === now.id),
      ArrowDown: () => beside(1),
      ArrowUp: () => beside(-1),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const found = next();
    if (!found) return;
    tell(found);
    scene.scrollTo({left: tree.across(found) - scene.clientWidth / 2});
  }

  tell(nodes.find(({state, step}) => state === "chosen" && step === 1) ?? nodes[0]);
  const about =
    `At each step every hypothesis is continued by its most probable tokens, and the best ${search.beam} of all are kept. ` +
    "Each column is a step, the best at the top; numbers are scores " +
    `(log probability, with a length penalty of ${search.length_penalty}).`;
  const tags = Object.entries(states).map(([state, says]) => html("li", {class: `tag ${state}`}, says));
  const element = html(
    "div",
    {class: "search"},
    html("p", {}, about),
    html(
      "div",
      {class: "toolbar"},
      html("label", {}, hide, " Hide what was dropped"),
      html("ul", {class: "key"}, tags),
    ),
    scene,
    told,
    dropped(nodes.filter(({state}) => state === "dropped")),
  );
  return {element, update() {}, picture: () => tree.element, name: () => "beam-search"};
}

function inWords(node, path, {length_penalty: penalty}) {
  const sentence = path
    .map(({token}) => token)
    .join("")
    .replaceAll("▁", " ")
    .trim();
  const why = node.why === states[node.state] ? "" : ` ${node.why}.`;
  const scores = `Log probability ${decimal(node.log_probability, 3)}, score with length penalty ${penalty}: ${decimal(node.score, 3)}.`;
  return [
    html("p", {class: "sentence"}, word(sentence || "(nothing written yet)", "bdi")),
    html("p", {}, html("b", {class: `tag ${node.state}`}, states[node.state]), why, node.step > 0 && ` ${scores}`),
  ];
}

function dropped(nodes) {
  const lines = nodes.map((node) => line([node.step, tokenOf(node), decimal(node.score, 3), node.why], {}, 1));
  return html(
    "details",
    {class: "as-text"},
    html("summary", {}, `What was dropped, and why (${nodes.length})`),
    scrolled("What was dropped", table(["Step", "Token", "Score", "Why"], lines)),
  );
}
