// The translation as words: how sure each one is, which words of the source it came from, and what else could be there.

import { post } from "./api.js";
import { $, make, percent, say } from "./dom.js";
import { patiently } from "./patience.js";

const CHOICES = 5;
const LEVELS = [[0.25, "unsure"], [0.6, "fair"]];

export class Words {
  /** `order` gives what is being translated now, `changed` is told when another wording was chosen. */
  constructor({ order, changed }) {
    this.order = order;
    this.changed = changed;
    this.target = $("target");
    this.mirror = $("mirror");
    this.menu = $("others");
    this.sentences = [];
    this.after = "";
    this.known = new Map();
    this.listen();
  }

  get text() {
    return this.sentences.map((one) => one.before + one.wordings[one.chosen].text).join("") + this.after;
  }

  /** Plain text, of which nothing is known yet. */
  grow(text, source) {
    this.forget(source);
    this.target.textContent = text;
  }

  /** What the server knows of a translation. */
  show(explained, source) {
    this.sentences = explained.sentences.map((one) => ({ ...one, chosen: 0 }));
    this.after = explained.after;
    this.source = source;
    this.draw();
  }

  /** Another wording of a sentence. */
  choose(sentence, wording) {
    this.sentences[sentence].chosen = wording;
    this.draw();
    this.changed();
  }

  forget(source) {
    this.sentences = [];
    this.after = "";
    this.known.clear();
    this.hideMenu();
    $("tip").textContent = "";
    this.mirror.replaceChildren(`${source}\n`);
  }

  draw() {
    const focused = this.target.contains(document.activeElement) ? [...this.all()].indexOf(document.activeElement) : -1;
    this.forgetMarks();
    const written = [];
    const sources = [];
    let place = 0;
    this.sentences.forEach((one, number) => {
      const wording = one.wordings[one.chosen];
      const start = this.source.indexOf(one.text, place);
      place = start + one.text.length;
      written.push(one.before, ...this.wordsOf(wording, number, start));
      for (const [from, to] of wording.words.flatMap((word) => word.sources)) sources.push([start + from, start + to]);
    });
    this.target.replaceChildren(...written, this.after);
    this.drawMirror(sources);
    const words = [...this.all()];
    const first = words[Math.max(0, Math.min(focused, words.length - 1))];
    if (first) first.tabIndex = 0;
    if (focused >= 0) first?.focus();
  }

  wordsOf(wording, sentence, start) {
    const parts = [];
    let place = 0;
    wording.words.forEach((word, number) => {
      const [from, to] = word.span;
      parts.push(wording.text.slice(place, from));
      const text = wording.text.slice(from, to);
      const level = LEVELS.find(([most]) => word.probability < most)?.[1];
      const element = make("span", {
        class: `word ${level ?? ""}`, role: "button", tabindex: "-1", "aria-haspopup": "menu", "aria-describedby": "tip",
      }, text);
      this.known.set(element, { sentence, number, word, text, sources: word.sources.map(([a, b]) => [start + a, start + b]) });
      parts.push(element);
      place = to;
    });
    return [...parts, wording.text.slice(place)];
  }

  /** The source again, behind what is typed, so that its words can be marked. */
  drawMirror(spans) {
    const ends = [...new Map(spans.map((span) => [span[0], span])).values()].sort((one, other) => one[0] - other[0]);
    const parts = [];
    let place = 0;
    for (const [from, to] of ends) {
      if (from < place) continue;
      parts.push(this.source.slice(place, from), make("span", { "data-from": from }, this.source.slice(from, to)));
      place = to;
    }
    // A last empty line has a height only if something follows it.
    this.mirror.replaceChildren(...parts, `${this.source.slice(place)}\n`);
  }

  all() {
    return this.target.querySelectorAll(".word");
  }

  forgetMarks() {
    this.known.clear();
    this.unmark();
  }

  unmark() {
    for (const one of [...this.target.querySelectorAll(".on"), ...this.mirror.querySelectorAll(".on")]) one.classList.remove("on");
    $("tip").textContent = "";
  }

  /** Marks a word of the translation and those it came from. */
  mark(element) {
    const known = this.known.get(element);
    if (!known) return;
    this.unmark();
    element.classList.add("on");
    const sources = known.sources.map(([from, to]) => {
      this.mirror.querySelector(`[data-from="${from}"]`)?.classList.add("on");
      return `“${this.source.slice(from, to)}”`;
    });
    const origin = sources.length ? sources.join(", ") : "no word in particular";
    $("tip").textContent = `${percent(known.word.probability)} sure · from ${origin}`;
  }

  /** Marks what became of a word of the source. */
  markFrom(place) {
    this.unmark();
    for (const [element, { sources }] of this.known) {
      const span = sources.find(([from, to]) => from <= place && place < to);
      if (!span) continue;
      element.classList.add("on");
      this.mirror.querySelector(`[data-from="${span[0]}"]`)?.classList.add("on");
    }
  }

  listen() {
    const wordAt = (event) => event.target.closest?.(".word");
    this.target.addEventListener("mouseover", (event) => wordAt(event) && this.mark(wordAt(event)));
    this.target.addEventListener("mouseleave", () => this.unmark());
    this.target.addEventListener("focusin", (event) => wordAt(event) && this.mark(wordAt(event)));
    this.target.addEventListener("focusout", () => this.menu.matches(":popover-open") || this.unmark());
    this.target.addEventListener("click", (event) => {
      // Who selects text does not want a menu.
      if (wordAt(event) && getSelection().isCollapsed) this.offer(wordAt(event));
    });
    this.target.addEventListener("keydown", (event) => this.move(event));
    const source = $("source");
    source.addEventListener("mousemove", (event) => {
      const under = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.dataset?.from);
      if (under) this.markFrom(Number(under.dataset.from));
      else this.unmark();
    });
    source.addEventListener("mouseleave", () => this.unmark());
    document.addEventListener("selectionchange", () => {
      if (document.activeElement === source && this.known.size) this.markFrom(source.selectionStart);
    });
    this.menu.addEventListener("keydown", (event) => this.moveInMenu(event));
    this.menu.addEventListener("toggle", (event) => {
      // Focus goes back to the word, unless it went elsewhere by itself.
      if (event.newState === "closed" && (document.activeElement === document.body || this.menu.contains(document.activeElement))) this.offered?.focus();
    });
  }

  move(event) {
    const words = [...this.all()];
    const place = words.indexOf(event.target);
    if (place < 0) return;
    const forward = getComputedStyle(this.target).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const backward = forward === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const steps = { [forward]: place + 1, ArrowDown: place + 1, [backward]: place - 1, ArrowUp: place - 1, Home: 0, End: words.length - 1 };
    if (event.key in steps) {
      const next = words[Math.max(0, Math.min(words.length - 1, steps[event.key]))];
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.offer(event.target);
    } else return;
    event.preventDefault();
  }

  moveInMenu(event) {
    const items = [...this.menu.querySelectorAll("[role=menuitem]")];
    const place = items.indexOf(document.activeElement);
    const steps = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: items.length - 1 };
    if (!(event.key in steps) || !items.length) return;
    items[(steps[event.key] + items.length) % items.length].focus();
    event.preventDefault();
  }

  hideMenu() {
    this.asking?.abort();
    if (this.menu.matches(":popover-open")) this.menu.hidePopover();
  }

  /** Asks what else could stand in the place of a word, and offers it. */
  async offer(element) {
    const { sentence, word } = this.known.get(element);
    const one = this.sentences[sentence];
    const prefix = one.wordings[one.chosen].text.slice(0, word.span[0]);
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.offered = element;
    const { source, target } = this.order();
    this.menu.replaceChildren(make("p", { class: "hint", role: "presentation" }, "Looking for other words …"));
    this.place(element);
    try {
      const body = { q: one.text, source, target, prefix, alternatives: CHOICES };
      const waiting = ({ message }) => this.menu.replaceChildren(make("p", { class: "hint" }, message));
      const { signal } = asking;
      const { sentences } = await patiently(() => post("/explain", body, signal), { waiting, signal });
      const found = sentences[0]?.wordings ?? [];
      const current = one.wordings[one.chosen].text;
      this.menu.replaceChildren(...found.map((wording) => this.item(sentence, wording, word.span[0], wording.text === current)));
    } catch (problem) {
      if (asking.signal.aborted) return;
      this.menu.replaceChildren(make("p", { class: "hint" }, problem.message));
    }
    this.place(element);
    (this.menu.querySelector("[aria-current]") ?? this.menu.querySelector("[role=menuitem]"))?.focus();
  }

  item(sentence, wording, from, current) {
    const rest = wording.text.slice(from).trimStart();
    const at = wording.text.length - rest.length;
    const end = wording.words.find((word) => word.span[1] > at)?.span[1] ?? at;
    const chance = wording.words.find((word) => word.span[1] > at)?.probability ?? 0;
    return make("button", {
      type: "button", role: "menuitem", "aria-current": current && "true",
      onclick: () => {
        const one = this.sentences[sentence];
        let place = one.wordings.findIndex((other) => other.text === wording.text);
        if (place < 0) place = one.wordings.push(wording) - 1;
        this.hideMenu();
        this.choose(sentence, place);
        say(`Now: ${wording.text}`);
      },
    }, make("b", {}, wording.text.slice(at, end)), make("span", {}, wording.text.slice(end)), make("i", {}, percent(chance)));
  }

  place(element) {
    if (!this.menu.matches(":popover-open")) this.menu.showPopover();
    const box = element.getBoundingClientRect();
    const { width, height } = this.menu.getBoundingClientRect();
    const room = document.documentElement.clientWidth - width - 8;
    this.menu.style.left = `${Math.max(8, Math.min(box.left, room))}px`;
    const below = box.bottom + 6;
    this.menu.style.top = `${below + height > innerHeight && box.top > height + 6 ? box.top - height - 6 : below}px`;
  }
}
