// The theme that was chosen, before anything is painted; a module would come too late.
try {
  const chosen = JSON.parse(localStorage.getItem("qkv.theme"));
  if (chosen && chosen !== "system") document.documentElement.dataset.theme = chosen;
} catch {
  // Nothing can be kept in this browser: it is as the system is.
}
