"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const show = (theme) => {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
  };
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch {}  // a file may have no storage
  show(chosen || (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => { if (!chosen) show(system.matches ? "dark" : "light"); });
  button.addEventListener("click", () => {
    show(chosen = root.dataset.theme === "dark" ? "light" : "dark");
    try { localStorage.setItem("theme", chosen); } catch {}
  });
})();
