// Light or dark as the system has it, unless chosen here; before the page is drawn.
const kept = localStorage.getItem("amortes-theme");
if (kept) document.documentElement.dataset.theme = kept;
addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("amortes-theme", next);
    dispatchEvent(new Event("theme"));
  });
});
