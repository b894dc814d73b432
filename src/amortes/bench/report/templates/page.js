"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = () =>
    root.dataset.theme
      ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
  // Pages opened from a file may have no storage.
  try { const kept = localStorage.getItem("theme"); if (kept) root.dataset.theme = kept; } catch {}
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch {}
    label();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();
})();
