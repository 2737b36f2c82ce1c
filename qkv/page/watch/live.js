/** The page of a run that goes on: it asks every few seconds what there is to tell. */
import {mount} from "./main.js";

const every = 3000;
const show = mount(document.getElementById("watch"));
let told = {};

async function ask() {
  try {
    const answer = await fetch("/told");
    const found = await answer.json();
    if (!answer.ok || found.error) throw new Error(found.error ?? "The run cannot be read.");
    told = found;
  } catch (error) {
    const gone = error instanceof TypeError;
    // Nobody knows what becomes of the run meanwhile.
    const unknown = {seconds_left: null, seconds_since: null};
    told = {...told, ...unknown, problem: gone ? "qkv watch has ended: this is what it showed last." : error.message};
  }
  if (told.name) document.title = `Training: ${told.name}`;
  show(told);
  setTimeout(ask, every);
}

ask();
