// A study's page: what is typed goes to the API, and the page follows the run, whoever changes it.
import { busy, call, explain, mark, Refused, say, show, takeFiles, unmark } from "./lab.js";
import { drawContour, drawOverview, drawResults, drawSlices } from "./charts.js";

const root = document.getElementById("study");
const id = encodeURIComponent(root.dataset.id);
const api = `/api/studies/${id}`;
const POLL = 1500;
let tag = null;
let study = null;
let drawn = null;

const version = () => document.getElementById("headline").dataset.version;
for (const place of document.querySelectorAll(".origin")) place.textContent = location.origin;

// The parts of the page that change with the study; what is being typed stays.
async function refresh({ busy = null } = {}) {
  const response = await fetch(`/studies/${id}/board`).catch(() => null);
  if (!response?.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const drafts = new Map();
  for (const input of root.querySelectorAll("#next input, #next textarea, #next select")) {
    const changed = input.type === "checkbox" ? input.checked !== input.defaultChecked
      : input.tagName === "SELECT" ? !input.selectedOptions[0]?.defaultSelected : input.value !== input.defaultValue;
    if (changed) drafts.set(input.id, input.type === "checkbox" ? input.checked : input.value);
  }
  const open = [...root.querySelectorAll("details[open]")].map((details) => details.id);
  const focused = document.activeElement?.id;
  const lost = [...drafts.keys()].filter((key) => key.startsWith("value-") && key !== `value-${busy}` && !fresh.getElementById(key));
  const kept = ["recommended", "worth"].map((key) => [key, document.getElementById(key)?.innerHTML]);
  for (const key of ["headline", "next", "results"]) document.getElementById(key).replaceWith(fresh.getElementById(key));
  for (const [key, html] of kept) if (html && document.getElementById(key)) document.getElementById(key).innerHTML = html;
  for (const [key, value] of drafts) {
    const input = document.getElementById(key);
    if (!input) continue;
    if (input.type === "checkbox") input.checked = value; else input.value = value;
  }
  for (const key of open) if (key) document.getElementById(key)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus();
  for (const key of lost) {
    const number = key.slice("value-".length);
    say(`Trial ${number} was changed elsewhere while you typed ${drafts.get(key)} for it. Your entry was not saved; look at trial ${number} below.`, { wrong: true });
  }
}

// One look after the other: who awaits it finds the page as it is then.
let looking = Promise.resolve();
function follow() {
  looking = looking.then(look, look);
  return looking;
}

async function look() {
  const response = await fetch(api, tag ? { headers: { "If-None-Match": tag } } : {}).catch(() => null);
  document.getElementById("offline").hidden = response !== null && response.status !== 401;
  if (!response?.ok) return;
  tag = response.headers.get("ETag");
  study = await response.json();
  if (study.version !== version() || (study.owned && !study.in_use) !== (document.getElementById("headline").dataset.editable === "true")) await refresh();
  document.getElementById("learned").hidden = study.results === 0;
  drawResults(study);
  learn();
}

// What the model says takes a moment; the page does not wait for it.
let learning = false;
async function learn() {
  if (learning || !study || study.results === 0 || drawn === study.version) return;
  learning = true;
  const wanted = study.version;
  try {
    drawOverview(study, await call("GET", `${api}/overview`));
    drawSlices(study, await call("GET", `${api}/slices`));
    await pair();
    drawn = wanted;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status !== 0) say(error.message, { wrong: true });
    drawn = wanted;
  } finally {
    learning = false;
  }
  if (study.version !== wanted) learn();
}

async function pair() {
  const chosen = () => ["pair-x", "pair-y"].map((key) => document.getElementById(key).value);
  const [x, y] = chosen();
  const stale = () => String(chosen()) !== String([x, y]); // another pair was chosen meanwhile
  if (document.getElementById("pair").hidden) return; // there is only one
  const [charts, note] = ["pair-charts", "pair-note"].map((key) => document.getElementById(key));
  try {
    study ??= await call("GET", api);
    const answer = await call("GET", `${api}/contour?${new URLSearchParams({ x, y })}`);
    if (stale()) return;
    [charts.hidden, note.hidden] = [false, true];
    drawContour(study, answer);
  } catch (error) {
    if (error.status !== 409) throw error;
    if (stale()) return;
    [charts.hidden, note.hidden, note.textContent] = [true, false, error.message];
  }
}

async function poll() {
  if (!document.hidden) await follow().catch(console.error);
  setTimeout(poll, POLL);
}

function configOf(form, { onlyIfChanged = false } = {}) {
  const config = {};
  let changed = false;
  for (const input of form.querySelectorAll("[data-config]")) {
    const select = input.tagName === "SELECT";
    const other = select ? !input.selectedOptions[0].defaultSelected : input.value !== input.defaultValue;
    changed ||= other;
    config[input.dataset.config] = select ? JSON.parse(input.value) : other ? input.value : input.dataset.exact ?? "";
  }
  return onlyIfChanged && !changed ? undefined : config;
}

function resultOf(form) {
  const result = { failed: form.elements.failed?.checked || false };
  for (const name of ["value", "cost", "violation", "note"]) {
    const text = form.elements[name]?.value.trim();
    if (text) result[name] = text;
  }
  return result;
}

// Whether what is wrong could be said in the form itself.
function refused(form, error) {
  const { first, rest } = explain(form, error.problems, (at) => {
    const [kind, ...name] = at.replace(/^result\./, "").split(".");
    if (kind !== "config") return form.elements.namedItem(kind);
    return [...form.querySelectorAll("[data-config]")].find((input) => input.dataset.config === name.join("."));
  });
  const texts = error.problems.length ? rest.map((problem) => problem.message) : [error.message];
  const note = form.querySelector("[data-error]");
  if (texts.length && note) [note.textContent, note.hidden] = [texts.join("\n"), false];
  return first !== null || (note !== null && error.status === 422);
}

// One change. If the study has changed since it was drawn, look again; only if the trial in question
// is still as it was seen, the change is made after all.
async function change(method, path, body, number, seen = trialText(number)) {
  if (trialText(number) === seen) {
    try {
      return await call(method, api + path, body, version());
    } catch (error) {
      if (error.status !== 412) throw error;
    }
    study = await call("GET", api);
    if (trialText(number) === seen) return call(method, api + path, body, study.version);
  }
  await refresh({ busy: number });
  const { value, status } = study.trials[number] || {};
  const now = status === "done" ? `has the result ${value} now` : `is ${status} now`;
  throw new Refused(409, { error: `Trial ${number} was changed meanwhile, in another window or by a program: it ${now}. Your entry ${body?.value ?? ""} was not saved.`.replace("  ", " ") });
}

const trialText = (number) => JSON.stringify(study?.trials[number]);

// Only what was seen is taken back, never a later change by somebody else.
async function undo(seen) {
  const answer = await call("POST", `${api}/undo`, undefined, seen);
  await follow();
  say(answer.message);
}

const SUBMIT = {
  ask: async (form) => {
    const { trials } = await change("POST", "/ask", { n: Number(form.elements.n.value) });
    await follow();
    document.getElementById(`value-${trials[0].number}`)?.focus();
    say(trials.length === 1 ? "One suggestion." : `${trials.length} suggestions.`);
  },
  tell: async (form) => {
    const number = Number(form.dataset.number);
    const body = { ...resultOf(form), config: configOf(form, { onlyIfChanged: true }) };
    await done(await change("POST", `/trials/${number}/tell`, body, number), form);
    (document.querySelector("#next form[data-action=tell] input") || document.querySelector("#next form[data-action=ask] button"))?.focus();
  },
  add: async (form) => {
    const result = resultOf(form);
    const has = result.value !== undefined || result.failed;
    await done(await change("POST", "/trials", { config: configOf(form), ...(has ? { result } : {}) }), form);
  },
  table: async (form) => done(await change("POST", "/table", { table: form.elements.table.value }), form),
  correct: async (form) => {
    const number = Number(form.dataset.number);
    const answer = await change("PUT", `/trials/${number}/result`, resultOf(form), number, form.dataset.seen);
    document.getElementById("correct").close();
    await done(answer);
  },
  edit: async (form) => {
    const changed = ["name", "value", "unit", "notes"].map((name) => form.elements[name]).filter((input) => input.value !== input.defaultValue);
    const now = await call("GET", api);
    const other = changed.filter((input) => now[input.name] !== input.defaultValue);
    for (const input of other) {
      mark(input, `This was changed meanwhile, in another window: “${now[input.name]}”. Save again to replace it by yours.`);
      input.defaultValue = now[input.name];
    }
    if (other.length) return other[0].focus();
    await call("PATCH", api, Object.fromEntries(changed.map((input) => [input.name, input.value])), now.version);
    location.reload();
  },
};

const CLICK = {
  undo: () => undo(version()),
  adopt: async () => {
    const answer = await call("POST", `${api}/adopt`);
    tag = null;
    await follow();
    say(answer.message);
  },
  withdraw: async (button) => {
    const number = Number(button.dataset.number);
    await done(await change("POST", `/trials/${number}/withdraw`, undefined, number));
  },
  "open-correct": async (button) => {
    const number = Number(button.dataset.number);
    study ??= await call("GET", api); // clicked before the first look
    const trial = study.trials[number];
    const dialog = document.getElementById("correct");
    const form = dialog.querySelector("form");
    unmark(form);
    form.dataset.number = number;
    form.dataset.seen = JSON.stringify(trial);
    dialog.querySelector("h2 span").textContent = number;
    dialog.querySelector(".config").textContent = Object.entries(trial.config).map(([name, value]) => `${name} ${show(value)}`).join(", ");
    for (const name of ["value", "cost", "violation", "note"]) form.elements[name].value = trial[name] ?? "";
    form.elements.failed.checked = trial.status === "failed";
    dialog.showModal();
    form.elements.value.select();
  },
};

// After a change: the page as it is now.
async function done(answer, form = null) {
  form?.reset();
  await follow();
  say(answer.message, { undo: () => attempt(null, () => undo(answer.version)) });
}

function attempt(form, work) {
  return work().catch((error) => {
    if (!(error instanceof Refused)) throw error;
    if (!form || !refused(form, error)) say(error.message, { wrong: true });
    if (error.status === 409 || error.status === 412) follow();
  });
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  const action = SUBMIT[form.dataset.action];
  if (!action) return;
  event.preventDefault();
  unmark(form);
  busy(form.querySelector("button:not([type=button])"), () => attempt(form, () => action(form)));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.hasAttribute("data-close")) button.closest("dialog").close();
  const action = CLICK[button?.dataset.action];
  if (action) busy(button, () => attempt(null, () => action(button)));
  const menu = document.getElementById("export");
  if (menu?.open && !menu.contains(event.target)) menu.open = false;
});

takeFiles(() => document.getElementById("paste-table"), (text) => {
  const field = document.getElementById("paste-table");
  field.closest("details").open = true;
  field.value = text;
  field.focus();
});
for (const key of ["pair-x", "pair-y"]) document.getElementById(key)?.addEventListener("change", () => attempt(null, pair));
addEventListener("keydown", (event) => {
  const menu = document.getElementById("export");
  if (event.key === "Escape" && menu?.open) { menu.open = false; menu.querySelector("summary").focus(); }
});
addEventListener("theme", () => { drawn = null; if (study) { drawResults(study); learn(); } });
addEventListener("beforeunload", (event) => {
  if ([...root.querySelectorAll("#next input[name=value], #paste-table")].some((input) => input.value)) event.preventDefault();
});
window.labIsReady();
poll();
