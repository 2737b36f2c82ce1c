// What was translated, kept in this browser only.

import { $, make, say } from "./dom.js";
import { read, write } from "./kept.js";

const MOST = 50;

export class History {
  /** `chosen` is told which entry somebody wants back. */
  constructor({ chosen }) {
    this.chosen = chosen;
    this.entries = read("history", []);
    $("remember").checked = read("remember", true);
    $("remember").addEventListener("change", () => {
      write("remember", $("remember").checked);
      if (!$("remember").checked) this.clear();
    });
    $("forget").addEventListener("click", () => this.clear());
    this.draw();
  }

  add(entry) {
    if (!$("remember").checked || !entry.q.trim()) return;
    // Who types on means one text, not many.
    const last = this.entries[0];
    const goesOn = last && last.source === entry.source && (entry.q.startsWith(last.q) || last.q.startsWith(entry.q));
    this.entries = [entry, ...(goesOn ? this.entries.slice(1) : this.entries)].slice(0, MOST);
    write("history", this.entries);
    this.draw();
  }

  clear() {
    this.entries = [];
    write("history", []);
    this.draw();
    say("The history is empty.");
  }

  draw() {
    $("forget").hidden = !this.entries.length;
    const rows = this.entries.map((entry) =>
      make("li", {}, make("button", { type: "button", class: "entry", onclick: () => this.chosen(entry) },
        make("span", { class: "pair-name" }, `${entry.source} → ${entry.target}`),
        make("span", { dir: "auto", lang: entry.source }, entry.q), make("span", { dir: "auto", lang: entry.target }, entry.text))));
    $("history").replaceChildren(...(rows.length ? rows : [make("li", { class: "hint" }, "Nothing yet.")]));
  }
}
