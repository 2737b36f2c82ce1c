// Tabs below the translator; arrow keys go from one to the next.

import { $ } from "./dom.js";

const tabs = () => [...document.querySelectorAll("[role=tab]")];

export function openTab(name) {
  for (const tab of tabs()) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  $(`tab-${name}`).dispatchEvent(new CustomEvent("opened"));
}

export const isOpen = (name) => $(`tab-${name}`).getAttribute("aria-selected") === "true";

export function listenToTabs() {
  for (const tab of tabs()) {
    tab.addEventListener("click", () => openTab(tab.id.slice(4)));
    tab.addEventListener("keydown", (event) => {
      const all = tabs();
      const place = all.indexOf(tab);
      const steps = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: all.length - 1 };
      if (!(event.key in steps)) return;
      const next = all[(steps[event.key] + all.length) % all.length];
      openTab(next.id.slice(4));
      next.focus();
      event.preventDefault();
    });
  }
}
