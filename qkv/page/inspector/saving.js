/** What is on view as a file: SVG, PNG, or the whole inspector as one page that needs nothing else. */
import {html, svg} from "./elements.js";

const copied = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "display",
];

/** A copy of a drawing that carries its own style and background. */
export function standalone(drawing, home) {
  const outside = !drawing.isConnected;
  // Style is known only of what is on the page.
  const shelf = html("div", {class: "shelf"}, outside ? drawing : null);
  home.append(shelf);
  const copy = drawing.cloneNode(true);
  const [from, to] = [
    [drawing, ...drawing.querySelectorAll("*")],
    [copy, ...copy.querySelectorAll("*")],
  ];
  from.forEach((each, at) => {
    const style = getComputedStyle(each);
    for (const property of copied) to[at].setAttribute(property, style.getPropertyValue(property));
    to[at].removeAttribute("class");
  });
  const [, , width, height] = copy.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.querySelectorAll("[fill='rgba(0, 0, 0, 0)'], [display='none']").forEach((hidden) => hidden.remove());
  copy.prepend(svg("rect", {width, height, fill: getComputedStyle(home).backgroundColor}));
  shelf.remove();
  return {text: new XMLSerializer().serializeToString(copy), width, height};
}

export function saveSvg(drawing, home, name) {
  download(new Blob([standalone(drawing, home).text], {type: "image/svg+xml"}), `${name}.svg`);
}

export async function savePng(drawing, home, name) {
  const {text, width, height} = standalone(drawing, home);
  // Twice the size for print, but never more than canvases can hold.
  const scale = Math.min(2, 8000 / Math.max(width, height));
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await picture.decode();
  const canvas = html("canvas", {width: Math.round(width * scale), height: Math.round(height * scale)});
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  download(await new Promise((done) => canvas.toBlob(done, "image/png")), `${name}.png`);
}

/** In a saved page the data stands in the page itself; it saves itself again, with what was compared since. */
export async function saveHtml(data, name) {
  const written = JSON.stringify(data).replaceAll("<", "\\u003c");
  const own = document.getElementById("inspection");
  const text = own ? copyOfPage(written) : await newPage(data.inspection.source.text, written);
  download(new Blob([text], {type: "text/html"}), `${name}.html`);
}

function copyOfPage(written) {
  const page = document.documentElement.cloneNode(true);
  page.querySelector("#inspection").textContent = written;
  page.querySelector("#inspector").replaceChildren();
  return `<!doctype html>\n${page.outerHTML}`;
}

async function newPage(title, data) {
  const parts = {title: title.replaceAll("&", "&amp;").replaceAll("<", "&lt;"), data};
  return (await fetched("saved.html")).replace(/\{\{(title|data)\}\}/g, (_, part) => parts[part]);
}

async function fetched(name) {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name} cannot be read (${answer.status}); is the server still there?`);
  return answer.text();
}

function download(blob, name) {
  const link = html("a", {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
