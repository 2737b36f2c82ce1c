// Words that somebody wants translated in a certain way; for each pair of languages a list of its own.

import { $, make, say } from "./dom.js";
import { read, write } from "./kept.js";

export class Glossary {
  /** `pair` gives the languages, `changed` is told when the list is another. */
  constructor({ pair, changed }) {
    this.pair = pair;
    this.changed = changed;
    this.all = read("glossary", {});
    $("glossary-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.set({ ...this.entries, [$("term").value.trim()]: $("becomes").value.trim() });
      say(`Added: ${$("term").value} becomes ${$("becomes").value}.`);
      event.target.reset();
      $("term").focus();
    });
  }

  get entries() {
    return this.all[this.pair()] ?? {};
  }

  set(entries) {
    this.all = { ...this.all, [this.pair()]: entries };
    write("glossary", this.all);
    this.draw();
    this.changed();
  }

  draw() {
    $("glossary").replaceChildren(...Object.entries(this.entries).map(([term, becomes]) =>
      make("li", {},
        make("span", { dir: "auto" }, term), make("span", { class: "arrow", "aria-label": "becomes", role: "img" }, "→"),
        make("span", { dir: "auto" }, becomes), make("span", { class: "spring" }),
        make("button", { type: "button", class: "ghost", "aria-label": `Remove ${term}`, onclick: () => this.remove(term) }, "Remove"))));
  }

  remove(term) {
    const { [term]: _, ...rest } = this.entries;
    this.set(rest);
    say(`Removed: ${term}.`);
    $("term").focus();
  }
}
