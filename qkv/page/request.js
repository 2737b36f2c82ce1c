// The request behind a translation, as somebody would write it in a shell or in Python.

import { $ } from "./dom.js";

export function drawRequest({ q, source, target, glossary }) {
  const body = { q, source, target, format: "text" };
  const terms = Object.keys(glossary).length > 0;
  // Only the server's own address takes a glossary with the text.
  const path = terms ? "/explain" : "/translate";
  const sent = terms ? { q, source, target, glossary } : body;
  const url = location.origin + path;
  $("curl").textContent = `curl ${url} \\\n  -H 'Content-Type: application/json' \\\n  -d ${shell(JSON.stringify(sent, null, 2))}`;
  const read = terms
    ? 'print("".join(one["before"] + one["wordings"][0]["text"] for one in answer["sentences"]))'
    : 'print(answer["translatedText"])';
  $("python").textContent = [
    "import json", "from urllib.request import Request, urlopen", "",
    `body = ${python(sent)}`, `request = Request(${JSON.stringify(url)}, json.dumps(body).encode(), {"Content-Type": "application/json"})`,
    "answer = json.load(urlopen(request))", read,
  ].join("\n");
}

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
// Objects of texts look the same in Python as in JSON.
const python = (value) => JSON.stringify(value, null, 4);
