// The form of a new study.
import { busy, call, element, explain, mark, takeFiles, unmark } from "./lab.js";

const form = document.getElementById("new-study");
const list = document.getElementById("parameters");
const template = document.getElementById("parameter");
const table = document.getElementById("table");
let count = 0;

function addParameter(filled = {}) {
  const row = template.content.firstElementChild.cloneNode(true);
  const mine = ++count;
  for (const input of row.querySelectorAll("[data-field]")) {
    input.id = `p${mine}-${input.dataset.field}`;
    const label = input.closest(".field")?.querySelector("label");
    if (label) label.htmlFor = input.id;
    const given = filled[input.dataset.field];
    if (given === undefined || given === null) continue;
    if (input.type === "checkbox") input.checked = given;
    else input.value = Array.isArray(given) ? given.join("\n") : given;
  }
  const kind = row.querySelector("[data-field=type]");
  const adapt = () => {
    for (const part of row.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind.value);
  };
  kind.addEventListener("change", adapt);
  adapt();
  row.querySelector(".remove").addEventListener("click", () => {
    const next = row.nextElementSibling || row.previousElementSibling;
    row.remove();
    name();
    (next?.querySelector("input") || document.getElementById("add-parameter")).focus();
  });
  list.append(row);
  name();
  return row;
}

function name() {
  [...list.children].forEach((row, i) => {
    row.querySelector("legend").textContent = `Parameter ${i + 1}`;
    row.querySelector(".remove").setAttribute("aria-label", `Remove parameter ${i + 1}`);
    row.querySelector(".remove").hidden = list.children.length === 1;
  });
}

const isNumber = (text) => text.trim() !== "" && Number.isFinite(Number(text.replace(",", ".")));
const asNumber = (text) => Number(text.replace(",", "."));

function parameter(row) {
  const get = (field) => row.querySelector(`[data-field=${field}]`).value.trim();
  const type = get("type");
  const made = { type, name: get("name") };
  if (get("when")) {
    const [name, ...rest] = get("when").split("=");
    const values = rest.join("=").split(",").map((part) => part.trim()).filter(Boolean);
    made.when = { parameter: name.trim(), values: values.every(isNumber) ? values.map(asNumber) : values };
  }
  if (type !== "categorical") made.unit = get("unit");
  if (type === "float" || type === "int") {
    made.low = get("low");
    made.high = get("high");
    if (get("step")) made.step = get("step");
    made.log = row.querySelector("[data-field=log]").checked;
  } else if (type === "fixed") {
    made.value = isNumber(get("value")) ? asNumber(get("value")) : get("value");
  } else {
    const lines = get("choices").split("\n").map((line) => line.trim()).filter(Boolean);
    made.choices = lines.length && lines.every(isNumber) ? lines.map(asNumber) : lines;
  }
  return made;
}

function space() {
  return {
    parameters: [...list.children].map(parameter),
    constraints: document.getElementById("constraints").value.split("\n").map((line) => line.trim()).filter(Boolean),
    value: document.getElementById("value").value.trim() || "result",
    table: table.value,
  };
}

function fieldAt(at) {
  const parts = at.split(".");
  if (parts[0] === "parameters" && parts.length > 1) {
    const row = list.children[Number(parts[1])];
    return row?.querySelector(`[data-field="${parts[2] || "name"}"]`) || row?.querySelector("[data-field=name]");
  }
  return form.querySelector(`[data-at="${parts[0]}"]`);
}

function refused(error) {
  const summary = document.getElementById("summary");
  const { first, rest } = explain(form, error.problems, fieldAt);
  for (const { at, message } of rest) {
    const note = form.querySelector(`[data-error="${at}"]`);
    if (note) [note.textContent, note.hidden] = [message, false];
  }
  const places = error.problems.length;
  summary.textContent = !places ? error.message : `${places === 1 ? "One thing needs" : `${places} things need`} your attention${first ? ", marked below" : `: ${error.message}`}.`;
  summary.hidden = false;
  (first || summary).focus();
  (first || summary).scrollIntoView({ block: "center" });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const get = (id) => document.getElementById(id).value.trim();
  const study = {
    ...space(),
    name: get("name"),
    unit: get("unit"),
    notes: get("notes"),
    goal: form.elements.goal.value,
    noisy: form.elements.noisy.value === "yes",
    batch: Number(get("batch")) || 1,
  };
  busy(document.getElementById("create"), async () => {
    try {
      const made = await call("POST", "/api/studies", study);
      location.assign(`/studies/${encodeURIComponent(made.id)}`);
    } catch (error) {
      refused(error);
    }
  });
});

document.getElementById("add-parameter").addEventListener("click", () => addParameter().querySelector("input").focus());

document.getElementById("check").addEventListener("click", (event) => busy(event.target, async () => {
  const preview = document.getElementById("preview");
  preview.replaceChildren();
  unmark(form);
  document.getElementById("summary").hidden = true;
  if (!table.value.trim()) return mark(table, "Paste the results first.");
  try {
    const trials = await call("POST", "/api/check-table", space());
    preview.append(listing(trials));
  } catch (error) {
    refused(error);
  }
}));

function listing(trials) {
  const failed = trials.filter((trial) => trial.status === "failed").length;
  const many = trials.length === 1 ? "One result" : `${trials.length} results`;
  const names = Object.keys(trials[0]?.config || {});
  const line = (kind, cells) => element("tr", "", ...cells.map((cell) => element(kind, "", cell ?? "")));
  return element("div", "",
    element("p", "", `${many} understood${failed ? `, ${failed} of them failed` : ""}.`),
    element("table", "",
      line("th", [...names, document.getElementById("value").value || "result"]),
      ...trials.slice(0, 5).map((trial) => line("td", [...names.map((name) => trial.config[name]), trial.value ?? "failed"]))),
    ...(trials.length > 5 ? [element("p", "muted", `and ${trials.length - 5} more`)] : []));
}

takeFiles(() => table, (text) => {
  table.value = text;
  document.getElementById("check").click();
});

const filled = JSON.parse(document.getElementById("filled")?.textContent || "null");
if (filled) {
  for (const id of ["name", "value", "unit", "notes", "batch", "table"]) document.getElementById(id).value = filled[id];
  form.elements.goal.value = filled.goal;
  form.elements.noisy.value = filled.noisy ? "yes" : "no";
  document.getElementById("constraints").value = filled.constraints.join("\n");
  if (filled.constraints.length) document.getElementById("limits").open = true;
  filled.parameters.forEach(addParameter);
} else {
  addParameter();
}
// Unless somebody has begun to type already.
if (document.activeElement === document.body) document.getElementById("name").focus();
window.labIsReady();
