// A link that brings somebody here with the same text. All of it stands behind the #, which browsers send to no server.
// What is being looked at inside stands there too, under names that begin with `i.`.

const INSIDE = "i.";
const behind = () => new URLSearchParams(location.hash.slice(1));

/** Puts the link into the address, so that it can be copied or come back to. */
export function keep({ q, source, target }, { inside } = { inside: true }) {
  const said = new URLSearchParams({ from: source, to: target, q });
  for (const [name, value] of inside ? behind() : []) if (name.startsWith(INSIDE)) said.set(name, value);
  history.replaceState(history.state, "", `#${said}`);
}

/** What a link asks for; nothing where it is none of ours. */
export function shared() {
  const said = behind();
  if (!said.has("q")) return null;
  const inside = [...said.keys()].some((name) => name.startsWith(INSIDE));
  return { q: said.get("q"), source: said.get("from"), target: said.get("to"), inside };
}
