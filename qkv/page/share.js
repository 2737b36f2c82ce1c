// A link that brings somebody here with the same text. All of it stands behind the #, which browsers send to no server.

export function link({ q, source, target }) {
  return `${location.origin}${location.pathname}#${new URLSearchParams({ from: source, to: target, q })}`;
}

/** What a link asks for; nothing where it is none of ours. */
export function shared() {
  const said = new URLSearchParams(location.hash.slice(1));
  return said.has("q") ? { q: said.get("q"), source: said.get("from"), target: said.get("to") } : null;
}
