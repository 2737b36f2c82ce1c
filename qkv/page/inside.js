// Looking inside: the attention of a sentence. The inspector is a large part, fetched when somebody opens it first.

import { post } from "./api.js";
import { $, afterPause, make } from "./dom.js";
import { isOpen } from "./tabs.js";

// What "it" is changes with one word, and the languages that have genders show it.
const CONTRAST = [[/\btired\b/, "wide"], [/\bwide\b/, "tired"]];

export class Inside {
  constructor({ order, sentences }) {
    this.order = order;
    this.sentences = sentences;
    this.shown = "";
    $("tab-inside").addEventListener("opened", () => this.draw());
    $("inside-sentence").addEventListener("change", () => this.contrast());
    $("inside-beside").addEventListener("input", afterPause(500, () => this.draw()));
  }

  /** The sentences are others now. */
  refresh() {
    const sentences = this.sentences();
    const choices = sentences.map((text, place) => make("option", { value: place }, text));
    $("inside-sentence").replaceChildren(...choices);
    this.contrast();
  }

  contrast() {
    const text = this.sentence;
    const animal = /^The animal didn.t cross the street/.test(text);
    const [word, other] = CONTRAST.find(([one]) => animal && one.test(text)) ?? [];
    $("inside-beside").value = word ? text.replace(word, other) : "";
    this.draw();
  }

  get sentence() {
    return this.sentences()[Number($("inside-sentence").value) || 0] ?? "";
  }

  async draw() {
    if (!isOpen("inside")) return;
    const { source, target } = this.order();
    const texts = [this.sentence, $("inside-beside").value.trim()].filter(Boolean);
    const wanted = JSON.stringify([source, target, texts]);
    if (wanted === this.shown) return;
    this.shown = wanted;
    if (!texts.length || !this.sentence) {
      this.tell("Write a sentence above; its attention is drawn here.");
      return;
    }
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController());
    this.tell("Looking inside …");
    try {
      const { mount } = await inspector();
      const body = (q) => ({ q, source, target });
      const [inspection, compare] = await Promise.all(texts.map((text) => post("/inspect", body(text), signal)));
      if (signal.aborted) return;
      this.tell("");
      const fetchVectors = (vectors) => post("/inspect", { ...body(texts[0]), vectors });
      mount($("inside"), inspection, { compare, fetchVectors });
    } catch (problem) {
      if (signal.aborted) return;
      this.shown = "";
      this.tell(problem.kind === "missing" ? "This server cannot be looked into." : problem.message);
    }
  }

  tell(text) {
    $("inside-hint").textContent = text;
    $("inside-hint").hidden = !text;
    if (text) $("inside").replaceChildren();
  }
}

async function inspector() {
  const found = await import("./inspector/main.js").catch(() => {
    throw new Error("The inspector is not part of this server.");
  });
  const style = "/page/inspector/inspector.css";
  if (!document.querySelector(`link[href="${style}"]`)) document.head.append(make("link", { rel: "stylesheet", href: style }));
  return found;
}
