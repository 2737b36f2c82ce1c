// The page: its parts, and what happens between them.

import { Problem, get, gone, setKey } from "./api.js";
import { $, afterPause, copyFrom, make, say } from "./dom.js";
import { Files } from "./files.js";
import { Glossary } from "./glossary.js";
import { History } from "./history.js";
import { Inside } from "./inside.js";
import { read, write } from "./kept.js";
import { Live } from "./live.js";
import { drawRequest } from "./request.js";
import { keep, shared } from "./share.js";
import { isOpen, listenToTabs, openTab } from "./tabs.js";
import { Words } from "./words.js";
import { drawWordings } from "./wordings.js";

const EXAMPLES = [
  "The animal didn't cross the street because it was too tired.",
  "The animal didn't cross the street because it was too wide.",
];
const THEMES = ["system", "light", "dark"];
// How likely a language is that was found out: below the first, the text is in none that the server knows.
const [UNKNOWN, SURE] = [0.01, 0.8];

const source = $("source");
let names = {};
let targets = {};
let limit = Infinity;
let detected = null;

const order = () => ({
  q: source.value,
  source: $("from").value,
  target: $("to").value,
  glossary: glossary.entries,
});
const languages = () => ({ source: $("from").value === "auto" ? detected ?? "auto" : $("from").value, target: $("to").value });

const words = new Words({
  order: () => ({ ...order(), ...languages() }),
  changed: () => drawWordings(words),
});
const glossary = new Glossary({
  pair: () => `${languages().source}-${languages().target}`,
  changed: () => translate(),
});
const history = new History({ chosen: (entry) => restore(entry) });
const inside = new Inside({
  order: () => ({ ...order(), ...languages() }),
  sentences: () => words.sentences.map((one) => one.text),
  languages: () => targets[languages().source] ?? [],
});
const remember = afterPause(1500, (entry) => history.add(entry));

const live = new Live({
  begun: () => busy(true),
  grown: (text) => {
    problem(null);
    words.grow(text, source.value);
  },
  done: (explained, asked) => {
    problem(null);
    busy(false);
    settle(explained);
    words.show(explained, asked.q);
    drawWordings(words);
    inside.refresh();
    afterwards(words.text.length > 0);
    say(words.text);
    remember({ q: asked.q, text: words.text, source: explained.source, target: explained.target });
  },
  failed: (found) => {
    busy(false);
    problem(found);
  },
});

function busy(is) {
  $("target").setAttribute("aria-busy", is);
  // They are wordings of what was written before.
  $("wordings").inert = is;
}

/** What the server made of the languages. */
function settle({ source: code, target, confidence }) {
  const automatic = $("from").value === "auto";
  const changed = automatic && detected !== code;
  detected = automatic ? code : null;
  const name = names[code] ?? code;
  const certainty = confidence < UNKNOWN ? "though unlikely" : confidence < SURE ? "perhaps" : "detected";
  if (automatic) tellDetected(code === target ? `Already ${name}` : `${name} · ${certainty}`);
  source.lang = code;
  $("target").lang = target;
  if (changed) glossary.draw();
  allowSwap();
}

function tellDetected(text = "Detect language") {
  const choice = $("from").querySelector("[value=auto]");
  if (choice) choice.textContent = text;
}

function problem(found) {
  $("problem").hidden = !found;
  $("problem").textContent = found?.message ?? "";
  if (!found) return;
  words.grow("", source.value);
  afterwards(false);
  drawWordings(words);
  if (found.kind === "key") $("key-form").hidden = false;
}

/** What can be done with a translation, once there is one. */
function afterwards(there) {
  for (const id of ["copy", "share"]) $(id).disabled = !there;
}

/** Translates what is written, soon: whoever types on is waited for. */
function translate({ now = false } = {}) {
  const asked = order();
  const length = [...asked.q].length;
  $("count").textContent = `${length.toLocaleString("en")} / ${limit.toLocaleString("en")}`;
  $("count").classList.toggle("over", length > limit);
  $("clear").hidden = !asked.q;
  $("examples").hidden = Boolean(asked.q) || !targets.en;
  words.mirror.replaceChildren(`${asked.q}\n`);
  drawRequest({ ...asked, q: asked.q || EXAMPLES[0] });
  remember.cancel();
  live.stop();
  if (!asked.q.trim()) {
    nothing();
  } else if (length > limit) {
    problem(new Problem("long", `The text has ${length.toLocaleString("en")} characters, and this server takes ${limit.toLocaleString("en")} at once. Shorten it, or send it as a file.`));
  } else if (now) {
    live.now(asked);
  } else {
    live.soon(asked);
  }
}

function nothing() {
  problem(null);
  words.forget("");
  $("target").replaceChildren();
  busy(false);
  detected = null;
  tellDetected();
  afterwards(false);
  drawWordings(words);
  inside.refresh();
  allowSwap();
}

function restore({ q, source: from, target: to }) {
  const possible = choosePair(from ?? "auto", to);
  source.value = q;
  translate({ now: true });
  if (!possible) refuse(from, to);
  source.focus();
}

/** Chooses both languages, and tells whether there are such. */
function choosePair(from, to) {
  const known = choose("from", from);
  fillTargets(to);
  return known && (!to || $("to").value === to);
}

/** A link may come from another server, with languages that this one does not have. */
function refuse(from, to) {
  live.stop();
  problem(new Problem("language", `This server has no model from ${names[from] ?? from} to ${names[to] ?? to}. Choose other languages.`));
}

function choose(id, code) {
  const there = [...$(id).options].some((one) => one.value === code);
  if (there) $(id).value = code;
  return there;
}

function fillSources() {
  const codes = Object.keys(targets);
  $("from").replaceChildren(make("option", { value: "auto" }, "Detect language"),
    ...codes.map((code) => make("option", { value: code }, names[code])));
}

function fillTargets(wanted = $("to").value) {
  const from = $("from").value;
  const codes = from === "auto" ? [...new Set(Object.values(targets).flat())] : targets[from];
  $("to").replaceChildren(...codes.map((code) => make("option", { value: code }, names[code] ?? code)));
  choose("to", wanted);
  allowSwap();
}

function allowSwap() {
  const { source: from, target: to } = languages();
  const possible = from !== "auto" && from !== to && Boolean(targets[to]?.includes(from));
  $("swap").disabled = !possible;
  $("swap").title = possible || from === "auto" || from === to ? "" : `This server has no model from ${names[to] ?? to} to ${names[from] ?? from}.`;
}

function swap() {
  const { source: from, target: to } = languages();
  const text = words.text;
  choose("from", to);
  fillTargets(from);
  if (text) source.value = text;
  say(`Now from ${names[to]} to ${names[from]}.`);
  changedLanguages();
}

function changedLanguages() {
  detected = null;
  tellDetected();
  write("languages", { source: $("from").value, target: $("to").value });
  glossary.draw();
  allowSwap();
  translate({ now: true });
}

function drawTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (theme === "system") delete document.documentElement.dataset.theme;
  const name = theme[0].toUpperCase() + theme.slice(1);
  $("theme-name").textContent = name;
  $("theme").setAttribute("aria-label", `Colours: ${name}`);
}

function listen() {
  listenToTabs();
  source.addEventListener("input", () => translate());
  source.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate({ now: true });
  });
  $("from").addEventListener("change", () => {
    fillTargets();
    changedLanguages();
  });
  $("to").addEventListener("change", changedLanguages);
  $("swap").addEventListener("click", swap);
  $("clear").addEventListener("click", () => {
    source.value = "";
    translate();
    source.focus();
  });
  $("copy").addEventListener("click", () => copyFrom($("copy"), words.text));
  $("share").addEventListener("click", () => {
    keep({ ...order(), ...languages() }, { inside: isOpen("inside") });
    copyFrom($("share"), location.href, "See address bar");
  });
  $("copy-curl").addEventListener("click", () => copyFrom($("copy-curl"), $("curl").textContent));
  $("copy-python").addEventListener("click", () => copyFrom($("copy-python"), $("python").textContent));
  $("theme").addEventListener("click", () => {
    const theme = THEMES[(THEMES.indexOf(read("theme", "system")) + 1) % THEMES.length];
    write("theme", theme);
    drawTheme(theme);
  });
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    write("key", $("key").value);
    setKey($("key").value);
    translate({ now: true });
  });
  addEventListener("hashchange", () => shared() && restore(shared()));
  $("examples-list").append(...EXAMPLES.map((text) =>
    make("li", {}, make("button", { type: "button", onclick: () => restore({ q: text, source: "en", target: $("to").value }) }, text))));
}

async function begin() {
  drawTheme(read("theme", "system"));
  setKey(read("key", ""));
  listen();
  // Before anything is waited for: whoever opens another tab meanwhile stays there.
  if (shared()?.inside) openTab("inside");
  const [known, settings] = await untilThere(() => Promise.all([get("/languages"), get("/frontend/settings")]));
  names = Object.fromEntries(known.flatMap(({ code, name }) => [[code, name]]));
  const spoken = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
  for (const { code, targets: some } of known) {
    targets[code] = some;
    for (const other of some) names[other] ??= spoken.of(other);
  }
  limit = settings.charLimit;
  $("key-form").hidden = !settings.keyRequired || Boolean(read("key", ""));
  new Files({ languages, opened: () => openTab("files"), kinds: settings.supportedFilesFormat });
  fillSources();
  const asked = shared() ?? read("languages", {});
  // Where there is one language to choose, nothing needs to be found out.
  const possible = choosePair(asked.source ?? (known.length === 1 ? known[0].code : "auto"), asked.target);
  glossary.draw();
  // What somebody typed while the page was coming is not lost.
  source.value ||= asked.q ?? "";
  translate({ now: true });
  if (shared() && !possible) refuse(asked.source, asked.target);
}

/** Asks until the server answers; a page that was opened too early mends itself. */
async function untilThere(ask) {
  for (;;) {
    try {
      return await ask();
    } catch {
      problem(gone());
      await new Promise((resume) => setTimeout(resume, 3000));
    }
  }
}

begin();
