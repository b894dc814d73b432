// Light or dark as the system has it, unless chosen here; before the page is drawn.
const kept = localStorage.getItem("amortes-theme");
if (kept) document.documentElement.dataset.theme = kept;
addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector("script[type=module]")) window.labIsReady();
  document.getElementById("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("amortes-theme", next);
    dispatchEvent(new Event("theme"));
  });
});

// What is clicked before the page's script has arrived is done when it has.
let waiting = [];
for (const kind of ["submit", "click"]) {
  addEventListener(kind, (event) => {
    const action = kind === "submit" ? event.target : event.target.closest("button[type=button]");
    if (!waiting || !action) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!waiting.includes(action)) waiting.push(action);
  }, true);
}
window.labIsReady = () => {
  const kept = waiting;
  waiting = null;
  for (const action of kept || []) action.tagName === "FORM" ? action.requestSubmit() : action.click();
};
