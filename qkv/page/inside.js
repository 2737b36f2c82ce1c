// Looking inside: the attention of a sentence. The inspector is a large part, fetched when somebody opens it first.

import { post } from "./api.js";
import { $, make } from "./dom.js";
import { patiently } from "./patience.js";
import { keep } from "./share.js";
import { isOpen } from "./tabs.js";

export class Inside {
  /** `languages` gives the codes of all languages that the order's source can be translated into. */
  constructor({ order, sentences, languages }) {
    this.order = order;
    this.languages = languages;
    this.sentences = sentences;
    this.shown = "";
    $("tab-inside").addEventListener("opened", () => this.draw());
    $("inside-sentence").addEventListener("change", () => this.draw());
  }

  /** The sentences are others now. */
  refresh() {
    const sentences = this.sentences();
    const choices = sentences.map((text, place) => make("option", { value: place }, text));
    $("inside-sentence").replaceChildren(...choices);
    $("inside-choices").hidden = choices.length < 2;
    this.draw();
  }

  get sentence() {
    return this.sentences()[Number($("inside-sentence").value) || 0] ?? "";
  }

  async draw() {
    if (!isOpen("inside")) return;
    const { source, target } = this.order();
    const wanted = JSON.stringify([source, target, this.sentence]);
    if (wanted === this.shown) return;
    this.shown = wanted;
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController());
    const sentence = this.sentence;
    if (!sentence) {
      const written = this.order().q.trim();
      this.tell(written ? "There is no translation to look into." : "Write a sentence above; its attention is drawn here.");
      return;
    }
    this.tell("Looking inside …");
    try {
      const inspect = (q, { waiting, signal: wanted = signal, ...more }) => {
        const both = AbortSignal.any([signal, wanted]);
        return patiently(() => post("/inspect", { q, source, target, ...more }, both), { waiting, signal: both });
      };
      const inspection = await inspect(sentence, { waiting: ({ message }) => this.tell(message) });
      const { mount } = await inspector();
      if (signal.aborted) return;
      this.tell("");
      keep(this.order());
      const fetchVectors = (vectors, how) => inspect(sentence, { vectors, ...how });
      mount($("inside"), inspection, { inspect, fetchVectors, languages: this.languages() });
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
  const style = "/page/inspector/style.css";
  if (!document.querySelector(`link[href="${style}"]`)) document.head.append(make("link", { rel: "stylesheet", href: style }));
  return found;
}
