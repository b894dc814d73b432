document.getElementById("print").addEventListener("click", () => print());
window.labIsReady();
