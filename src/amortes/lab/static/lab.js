// What all pages share: requests, messages, mistakes beside their fields.

export class Refused extends Error {
  constructor(status, answer) {
    super(answer.error || `The lab answered ${status}.`);
    this.status = status;
    this.problems = answer.problems || [];
  }
}

export async function call(method, path, body, version) {
  const headers = { "Content-Type": "application/json" };
  if (version) headers["If-Match"] = `"${version}"`;
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refused(0, { error: "The lab does not answer: was it stopped? Nothing was saved; what you typed is still here." });
  }
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) answer.error = "The lab was started anew: open the address that it printed. What you typed is still here.";
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

export function element(kind, className, ...children) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// A message that goes away by itself; `undo` takes back what it is about.
export function say(text, { wrong = false, undo = null } = {}) {
  const box = element("div", wrong ? "message wrong" : "message", element("span", "", text));
  const button = (className, label, run) => {
    const made = element("button", className, label);
    made.type = "button";
    made.addEventListener("click", () => { box.remove(); run?.(); });
    box.append(made);
    return made;
  };
  if (undo) button("action", "Undo", undo);
  if (wrong) {
    box.setAttribute("role", "alert");
    button("", "×").setAttribute("aria-label", "Close");
  }
  const area = document.getElementById("messages");
  if (!wrong) for (const old of area.querySelectorAll(".action")) old.remove(); // it was about an earlier state
  area.replaceChildren(...[...area.children].slice(-2), box);
  setTimeout(() => box.remove(), wrong ? 20000 : 7000);
}

let count = 0;
const described = (input) => (input.getAttribute("aria-describedby") || "").split(" ").filter(Boolean);

export function mark(input, text) {
  const id = input.id || (input.id = `field-${++count}`);
  input.setAttribute("aria-invalid", "true");
  let note = document.getElementById(`${id}-error`);
  if (!note) {
    note = element("p", "error");
    note.id = `${id}-error`;
    input.after(note);
  }
  note.textContent = note.textContent ? `${note.textContent}\n${text}` : text;
  input.setAttribute("aria-describedby", [...new Set([...described(input), note.id])].join(" "));
}

export function unmark(root) {
  for (const input of root.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.setAttribute("aria-describedby", described(input).filter((id) => id !== `${input.id}-error`).join(" "));
    document.getElementById(`${input.id}-error`)?.remove();
  }
  for (const note of root.querySelectorAll("[data-error]")) {
    note.textContent = "";
    note.hidden = true;
  }
}

// Mistakes beside their fields, of which the first gets the focus; those to be said elsewhere are left.
export function explain(form, problems, fieldAt) {
  unmark(form);
  let first = null;
  const rest = [];
  for (const problem of problems) {
    const field = fieldAt(problem.at);
    const crowded = field?.closest(".row"); // no room for a text
    if (!field || crowded) rest.push(problem);
    if (!field) continue;
    if (crowded) field.setAttribute("aria-invalid", "true"); else mark(field, problem.message);
    field.closest("details")?.setAttribute("open", "");
    if (!first || field.compareDocumentPosition(first) & Node.DOCUMENT_POSITION_FOLLOWING) first = field;
  }
  first?.focus();
  return { first, rest };
}

export function busy(button, work) {
  if (!button) return work();
  if (button.getAttribute("aria-busy") === "true") return Promise.resolve();
  button.setAttribute("aria-busy", "true");
  return work().finally(() => button.removeAttribute("aria-busy"));
}

// Tables in files, chosen or dropped anywhere: for one that missed its field, a browser would leave
// the page. `place` gives the field, if there is one now.
export function takeFiles(place, take) {
  const read = async (file) => {
    const text = file && await textOf(file);
    if (text) take(text);
  };
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      place()?.classList.toggle("dropping", kind === "dragover");
      if (kind === "drop" && place()) read(event.dataTransfer.files[0]);
    });
  }
  document.addEventListener("change", (event) => {
    if (event.target.type !== "file") return;
    read(event.target.files[0]);
    event.target.value = ""; // or the same file could not be chosen again
  });
}

async function textOf(file) {
  if (file.size > 1e6) return say("This file is larger than 1 MB.", { wrong: true });
  const bytes = new Uint8Array(await file.arrayBuffer());
  const wide = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.slice(0, 2).join()];
  if (!wide && bytes.includes(0)) return say(`${file.name} is not a text file. Save the table as CSV in your spreadsheet program, or copy it and paste it here.`, { wrong: true });
  try {
    return new TextDecoder(wide || "utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes); // as spreadsheets on Windows save it
  }
}

export const words = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

export function show(value, digits = 4) {
  if (typeof value !== "number") return words(value);
  const [size, rounded] = [Math.abs(value), Number(value.toPrecision(digits))];
  if (size >= 1e12 || (size > 0 && size < 1e-4) || (size >= 1e6 && !Number.isInteger(value))) return rounded.toExponential().replace("-", "−");
  return rounded.toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: false }).replace("-", "−");
}
