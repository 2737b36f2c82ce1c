// Files that are dropped or chosen: sent, translated, and saved again.

import { gone, keyHeaders, problemOf } from "./api.js";
import { $, make, say } from "./dom.js";
import { patiently } from "./patience.js";

const EVERY = 400;

export class Files {
  /** `languages` gives the two, `opened` shows the list. */
  constructor({ languages, opened, kinds }) {
    this.languages = languages;
    this.opened = opened;
    $("file").accept = kinds.join(",");
    $("files-hint").textContent += ` It may be ${kinds.map((kind) => kind.replace(".", "")).join(", ")}.`;
    $("file").addEventListener("change", () => {
      this.take($("file").files);
      $("file").value = "";
    });
    this.listenToDrops();
  }

  listenToDrops() {
    const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragover", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      $("drop").hidden = false;
    });
    addEventListener("dragleave", (event) => event.relatedTarget || ($("drop").hidden = true));
    addEventListener("drop", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      $("drop").hidden = true;
      this.take(event.dataTransfer.files);
    });
  }

  take(files) {
    this.opened();
    for (const file of files) this.translate(file);
  }

  async translate(file) {
    const bar = make("progress", { max: "1", value: "0", "aria-label": `Progress of ${file.name}` });
    const told = make("span", { class: "state" });
    const row = make("li", {}, make("span", { class: "name", dir: "auto" }, file.name), bar, told);
    $("files").prepend(row);
    try {
      const { source, target } = this.languages();
      const form = new FormData();
      form.append("target_lang", target);
      if (source !== "auto") form.append("source_lang", source);
      form.append("file", file);
      // A server that was gone knows of no file any more: it is sent anew.
      const attempt = async () => {
        told.textContent = "sending";
        const { document_id: number, document_key: key } = await sent(form, (share) => (bar.value = share / 10));
        return this.done(number, key, bar, told);
      };
      const waiting = ({ message }) => (told.textContent = message);
      const name = await patiently(attempt, { waiting });
      row.replaceChildren(make("span", { class: "name", dir: "auto" }, name.name), make("span", { class: "spring" }),
        make("a", { class: "button", href: name.url, download: name.name }, "Download"));
      say(`${file.name} is translated.`);
    } catch (problem) {
      bar.remove();
      told.classList.add("wrong");
      told.textContent = problem.message;
      say(`${file.name}: ${problem.message}`);
    }
  }

  /** Waits for a file, and fetches it. */
  async done(number, key, bar, told) {
    for (;;) {
      const state = await (await asked(`/v2/document/${number}`, key)).json();
      if (state.status === "error") throw new Error(state.error_message.replace(/^Invalid request: /, ""));
      if (state.status === "done") break;
      told.textContent = "translating";
      // How much there is at all is known once the file has been read.
      if (state.characters) bar.value = 0.1 + (0.9 * state.translated_characters) / state.characters;
      await new Promise((resume) => setTimeout(resume, EVERY));
    }
    const response = await asked(`/v2/document/${number}/result`, key);
    const [, quoted] = /filename\*=UTF-8''([^;]+)/.exec(response.headers.get("Content-Disposition")) ?? [];
    return { name: decodeURIComponent(quoted ?? "translation"), url: URL.createObjectURL(await response.blob()) };
  }
}

/** Sends a form and tells how far it is, which only the older way of asking can. */
function sent(form, progressed) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/v2/document");
    for (const [name, value] of Object.entries(keyHeaders("DeepL-Auth-Key"))) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => progressed(event.loaded / event.total));
    request.addEventListener("error", () => reject(gone()));
    request.addEventListener("load", async () => {
      if (request.status === 200) resolve(JSON.parse(request.responseText));
      else reject(await problemOf(new Response(request.responseText, {
        status: request.status,
        headers: { "Retry-After": request.getResponseHeader("Retry-After") ?? "" },
      })));
    });
    request.send(form);
  });
}

async function asked(path, key) {
  const body = new URLSearchParams({ document_key: key });
  const response = await fetch(path, { method: "POST", body, headers: keyHeaders("DeepL-Auth-Key") }).catch(() => { throw gone(); });
  if (!response.ok) throw await problemOf(response);
  return response;
}
