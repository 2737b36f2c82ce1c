// What is kept in this browser, and nowhere else. A browser that keeps nothing is one where everything is new.

export function read(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`qkv.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function write(name, value) {
  try {
    localStorage.setItem(`qkv.${name}`, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page works without.
  }
}
