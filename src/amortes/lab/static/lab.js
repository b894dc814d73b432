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

export function say(text, { wrong = false, action = null } = {}) {
  const box = document.createElement("div");
  box.className = wrong ? "message wrong" : "message";
  if (wrong) box.setAttribute("role", "alert");
  const words = document.createElement("span");
  words.textContent = text;
  box.append(words);
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "action";
    button.textContent = action.label;
    button.addEventListener("click", () => { box.remove(); action.run(); });
    box.append(button);
  }
  if (wrong) {
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => box.remove());
    box.append(close);
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
    note = document.createElement("p");
    note.className = "error";
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

export function busy(button, work) {
  if (!button) return work();
  if (button.getAttribute("aria-busy") === "true") return Promise.resolve();
  button.setAttribute("aria-busy", "true");
  return work().finally(() => button.removeAttribute("aria-busy"));
}

export function show(value, digits = 4) {
  if (typeof value !== "number") return String(value);
  const [size, rounded] = [Math.abs(value), Number(value.toPrecision(digits))];
  if (size >= 1e12 || (size > 0 && size < 1e-4) || (size >= 1e6 && !Number.isInteger(value))) return rounded.toExponential().replace("-", "−");
  return rounded.toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: false }).replace("-", "−");
}
