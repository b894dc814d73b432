// Charts by Plotly, in the colours of the page.
import { element, show, words } from "./lab.js";

// A large script: the page is drawn before it is read, and nothing else waits for it.
const loaded = new Promise((resolve) => {
  const script = document.createElement("script");
  script.src = new URL("vendor/plotly-cartesian.min.js", import.meta.url);
  script.addEventListener("load", resolve);
  const begin = () => setTimeout(() => document.head.append(script));
  if (document.hidden) begin(); else requestAnimationFrame(begin); // hidden pages are not drawn
});
async function draw(place, traces, look) {
  await loaded;
  if (!document.getElementById(place)) return; // replaced meanwhile
  await Plotly.react(place, traces, look, OPTIONS);
}

// A finger scrolls the page; a mouse zooms, and a double click shows everything again.
const TOUCH = matchMedia("(hover: none)").matches;
// Of the buttons only the camera: Plotly would offer to upload a chart, and each is a stop for Tab.
const OPTIONS = { displaylogo: false, responsive: true, plotlyServerURL: "", modeBarButtons: [["toImage"]], toImageButtonOptions: { format: "svg" } };

function resolved(name) {
  // light-dark() is resolved where a colour is used.
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const rgb = getComputedStyle(probe).color;
  probe.remove();
  return rgb;
}

function theme() {
  return { ink: resolved("--ink"), muted: resolved("--muted"), grid: resolved("--grid"), accent: resolved("--accent"), good: resolved("--good"), bad: resolved("--bad"), card: resolved("--card") };
}

function layout(t, more = {}) {
  const axis = { fixedrange: TOUCH, gridcolor: t.grid, zeroline: false, linecolor: t.grid, automargin: true, title: { standoff: 6 } };
  const { xaxis, yaxis, ...rest } = more;
  return { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: t.ink, family: "system-ui, sans-serif", size: 12 }, margin: { l: 48, r: 12, t: 12, b: 40 }, showlegend: false, hovermode: "closest", dragmode: TOUCH ? false : "zoom", modebar: { bgcolor: "rgba(0,0,0,0)", color: t.muted, activecolor: t.accent }, ...rest, xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis } };
}

const titled = (study) => (study.unit ? `${study.value} (${study.unit})` : study.value);
const named = (study, name) => (study.units[name] ? `${name} (${study.units[name]})` : name);
const faded = (rgb, alpha) => rgb.replace(/^rgb\(([^)]*)\)$/, `rgba($1, ${alpha})`);
// Names are text, never markup.
const plain = (value) => words(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// Long names are cut in the middle, with as many letters as tell them apart.
function cut(text, most) {
  const tail = Math.ceil(most / 2) - 1;
  return text.length > most ? `${text.slice(0, most - tail - 1)}…${text.slice(-tail)}` : text;
}
export function shortened(texts, most) {
  for (; most < 60; most += 4) {
    const short = texts.map((text) => cut(text, most));
    if (new Set(short).size === new Set(texts).size) return short;
  }
  return texts;
}
// Where values are on an axis of a parameter: categories by their names, of which some may be left out.
function placesOn({ axis, values }) {
  if (axis !== "category") return (value) => value ?? null;
  const shown = new Set(values.map(plain));
  return (value) => (value !== undefined && shown.has(plain(value)) ? plain(value) : null);
}
function parameterAxis({ axis: type, values }) {
  if (type === "category") return { type, categoryarray: values.map(plain), categoryorder: "array", ...nameTicks(values, 12, 25) };
  return type === "log" ? { type, ...logTicks(values) } : { type };
}
// Bars from `lower` to `upper` around medians.
const intervals = (parts, color, thickness) => ({ type: "data", symmetric: false, array: parts.map((p) => p.upper - p.median), arrayminus: parts.map((p) => p.median - p.lower), color, thickness, width: 0 });

// Ticks of an axis of names: all of them, or only some if they would not be readable.
function nameTicks(values, most, room) {
  const every = Math.ceil(values.length / room);
  const shown = values.filter((_, i) => i % every === 0);
  return { tickvals: shown.map(plain), ticktext: shortened(shown.map(words), most).map(plain), tickfont: { size: shown.length > 12 ? 10 : 12 } };
}

// Ticks of a logarithmic axis: powers of ten, over few decades 2 and 5 times these, too.
function logTicks(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const decades = Math.log10(high / low);
  if (decades > 6) return {};
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) for (const f of decades > 3 ? [1] : [1, 2, 5]) ticks.push(f * 10 ** e);
  const inside = ticks.filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
  return { tickvals: inside, ticktext: inside.map((v) => show(v)) };
}

// The axis of the results: logarithmic over decades, and without any so bad that the others would
// look alike, as in the figures of `opt.plot`.
export function valueAxis(values, goal) {
  const decades = (some) => Math.min(...some) > 0 && Math.max(...some) >= 100 * Math.min(...some);
  const wide = decades(values);
  const sign = goal === "maximize" ? -1 : 1;
  const badness = (v) => sign * (wide ? Math.log10(v) : v);
  const sorted = [...values].sort((a, b) => badness(a) - badness(b));
  const worse = sorted.map(badness);
  const usual = worse[Math.floor((3 * (worse.length - 1)) / 4)];
  const spread = usual - worse[0] || (worse.find((v) => v > usual) ?? usual) - usual;
  const shown = sorted.filter((v) => badness(v) <= usual + (wide ? Math.max(2 * spread, 3) : 20 * spread));
  const beyond = sorted.length - shown.length;
  const log = decades(shown);
  const type = log ? "log" : "linear";
  if (beyond === 0) return { type, note: "" };
  const [low, high] = [Math.min(...shown), Math.max(...shown)].map((v) => (log ? Math.log10(v) : v));
  const room = 0.3 * (high - low) || 1;
  return { type, range: [low - room, high + room], note: `${beyond} ${beyond === 1 ? "result" : "results"} off the axis, ${sign < 0 ? "down" : "up"} to ${show(sorted.at(-1), 3)}` };
}

export function drawResults(study) {
  const t = theme();
  const done = study.trials.filter((trial) => trial.value !== null);
  if (!done.length) return;
  const better = study.goal === "maximize" ? Math.max : Math.min;
  let best = null;
  const so_far = done.map((trial) => (best = best === null ? trial.value : better(best, trial.value)));
  const numbers = done.map((trial) => trial.number);
  const predicted = done.filter((trial) => trial.predicted && trial.predicted.median !== null);
  const failed = study.trials.filter((trial) => trial.status === "failed");
  const { note, ...scale } = valueAxis(done.map((trial) => trial.value), study.goal);
  const last = Math.max(...[...done, ...failed].map((trial) => trial.number));
  draw("convergence", [
    { x: predicted.map((p) => p.number), y: predicted.map((p) => p.predicted.median), mode: "markers", name: "expected", marker: { color: faded(t.accent, 0.45), size: 5, symbol: "square" }, error_y: intervals(predicted.map((p) => p.predicted), faded(t.accent, 0.45), 5), hovertemplate: "trial %{x}: expected %{y:.4g}<extra></extra>" },
    { x: numbers, y: so_far, mode: "lines", line: { shape: "hv", color: t.good, width: 2 }, name: "best so far", hovertemplate: "best %{y:.4g}<extra></extra>" },
    { x: numbers, y: done.map((trial) => trial.value), mode: "markers", name: "result", marker: { color: t.ink, size: 7 }, hovertemplate: "trial %{x}: %{y:.4g}<extra></extra>" },
    { x: failed.map((trial) => trial.number), y: failed.map(() => 0.03), yaxis: "y2", mode: "markers", name: "failed", marker: { color: t.bad, symbol: "x", size: 8 }, hovertemplate: "trial %{x} failed<extra></extra>" },
  ], layout(t, { showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } }, margin: { l: 48, r: 12, t: 34, b: 40 }, xaxis: { title: { text: "trial" }, range: [-0.5, last + 0.5], tickformat: "d", ...(last < 10 ? { dtick: 1 } : {}) }, yaxis: { title: { text: plain(titled(study)) }, ...scale }, yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true }, annotations: noted(t, note) }));
}

const noted = (t, text) => (text ? [{ text, xref: "paper", yref: "paper", x: 1, y: 1, showarrow: false, font: { color: t.muted, size: 11 } }] : []);

export function drawOverview(study, overview) {
  const t = theme();
  const { recommendation: r } = overview;
  const place = document.getElementById("recommended");
  const unit = study.unit ? ` ${study.unit}` : "";
  place.replaceChildren(
    element("p", "big", show(r.median), element("small", "", unit)),
    element("p", "config", ...Object.entries(r.config).filter(([name]) => study.space.parameters[name].type !== "fixed").map(([name, value]) => element("span", "", `${name} `, element("b", "", show(value)), ` ${study.units[name] || ""}`))),
    element("p", "muted", `expected; a result there will be between ${show(r.lower, 3)} and ${show(r.upper, 3)} with ${Math.round(100 * r.level)} % probability`),
  );
  const verdict = { yes: "Yes", maybe: "Perhaps", no: "Probably not" }[overview.worth];
  document.getElementById("worth").replaceChildren(element("p", "big", verdict), element("p", "", overview.worth_text));
  document.getElementById("cautions").replaceChildren(...overview.cautions.map((text) => element("p", "banner", `Note: ${text}`)));
  const names = Object.keys(overview.importance).reverse();
  const unknown = names.every((name) => overview.importance[name] === 0) ? "more results are needed to tell" : "";
  draw("importance", [{ type: "bar", orientation: "h", y: names.map(plain), x: names.map((name) => 100 * overview.importance[name]), marker: { color: t.accent }, hovertemplate: "%{y}: %{x:.0f} %<extra></extra>" }],
    layout(t, { xaxis: { title: { text: "share of the variation (%)" }, range: [0, 100] }, yaxis: { type: "category", ...nameTicks(names, 24, 16) }, annotations: noted(t, unknown) }));
}

export function drawSlices(study, { panels, results, numbers, centre }) {
  const t = theme();
  const { note, ...scale } = valueAxis(results, study.goal);
  // All places first: a chart takes the width that it finds. Which parameters matter may change with
  // the recommendation.
  const all = document.getElementById("slices");
  const shown = JSON.stringify(panels.map((panel) => panel.name));
  if (all.dataset.shown !== shown) {
    all.dataset.shown = shown;
    all.replaceChildren(...panels.map((panel, i) => {
      const place = element("div", "chart");
      place.id = `slice-${i}`;
      place.setAttribute("role", "img");
      place.setAttribute("aria-label", `Expected ${study.value} along ${panel.name}`);
      return element("figure", "", element("figcaption", "", named(study, panel.name)), place);
    }));
  }
  panels.forEach((panel, i) => {
    const id = `slice-${i}`;
    const place = placesOn(panel);
    const isChoice = panel.axis === "category";
    const x = panel.values.map(place);
    const told = panel.told.map((value) => place(value ?? undefined));
    // Lines are placed by the number of a category: its name may be a number, too.
    const here = isChoice ? x.indexOf(plain(centre[panel.name])) : centre[panel.name];
    const points = { x, y: panel.median, name: "expected", hovertemplate: "%{x}: %{y:.4g}<extra></extra>" };
    const parts = x.map((_, k) => ({ lower: panel.lower[k], median: panel.median[k], upper: panel.upper[k] }));
    const traces = isChoice
      ? [{ ...points, mode: "markers", marker: { color: t.accent, size: 9 }, error_y: intervals(parts, faded(t.accent, 0.6), 4) }]
      : [{ x, y: panel.upper, mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
         { x, y: panel.lower, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: faded(t.accent, 0.22), hoverinfo: "skip" },
         { ...points, mode: "lines", line: { color: t.accent, width: 2 } }];
    const gain = { x, y: panel.gain, xaxis: "x", yaxis: "y2", name: "gain", hovertemplate: "gain %{y:.3g}<extra></extra>" };
    draw(id, [...traces,
      { x: told, y: results, mode: "markers", marker: { color: t.ink, size: 5, opacity: 0.45 }, name: "results", text: numbers, hovertemplate: "trial %{text}: %{y:.4g}<extra></extra>" },
      isChoice ? { ...gain, type: "bar", marker: { color: faded(t.good, 0.7) } } : { ...gain, mode: "lines", fill: "tozeroy", line: { color: t.good, width: 1.5 }, fillcolor: faded(t.good, 0.2) },
    ], layout(t, {
      xaxis: { ...parameterAxis(panel), anchor: "y2" },
      yaxis: { domain: [0.32, 1], title: { text: plain(study.unit || study.value) }, ...scale },
      annotations: noted(t, note),
      yaxis2: { domain: [0, 0.22], gridcolor: t.grid, zeroline: false, rangemode: "tozero", showticklabels: false, title: { text: "gain", font: { size: 11 } } },
      shapes: [{ type: "line", x0: here, x1: here, yref: "paper", y0: 0, y1: 1, line: { color: t.good, width: 1, dash: "dash" } }],
    }));
  });
}

// Limits of the colours if all values are the same but for rounding.
function flatLimits(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const size = Math.max(Math.abs(low), Math.abs(high));
  return high - low > 1e-6 * size ? [] : [low - (size / 10 || 1), high + (size / 10 || 1)];
}

export function drawContour(study, pair) {
  const t = theme();
  const axis = (part) => ({ ...parameterAxis(part), title: { text: plain(named(study, part.name)) } });
  const [onX, onY] = [placesOn(pair.x), placesOn(pair.y)];
  const smooth = [pair.x, pair.y].every((part) => part.axis !== "category" && part.values.length > 8);
  const mark = (trials, marker, hovertemplate = "trial %{text}<extra></extra>") => ({ mode: "markers", type: "scatter", x: trials.map((p) => onX(p.x)), y: trials.map((p) => onY(p.y)), text: trials.map((p) => p.number), marker, hovertemplate });
  const having = (status) => pair.told.filter((p) => p.status === status);
  const dark = { color: "#222", width: 1 };
  const marks = [
    mark(having("done"), { color: "#fff", size: 6, line: dark }),
    mark(having("pending"), { color: "#F0E442", size: 10, symbol: "diamond", line: dark }),
    mark([{ x: pair.centre[pair.x.name], y: pair.centre[pair.y.name] }], { symbol: "star", size: 13, color: "#D55E00", line: { color: "#fff", width: 1 } }, "recommended<extra></extra>"),
  ];
  const { type, range } = valueAxis(study.trials.filter((trial) => trial.value !== null).map((trial) => trial.value), study.goal);
  const limits = type === "linear" && range ? { median: range, half_width: [0, range[1] - range[0]] } : {};
  for (const [kind, scale] of [["median", "Viridis"], ["half_width", "Cividis"], ["gain", "YlGnBu"]]) {
    const z = pair[kind].map((row, i) => row.map((value, j) => (pair.allowed[i][j] === null ? null : value)));
    const [zmin, zmax] = limits[kind] ?? flatLimits(z.flat().filter((value) => value !== null));
    const surface = { zmin, zmax, zauto: zmin === undefined, type: smooth ? "contour" : "heatmap", x: pair.x.values.map(onX), y: pair.y.values.map(onY), z, colorscale: scale, reversescale: kind === "gain" || (kind === "median" && study.goal === "minimize"), contours: { coloring: "heatmap" }, line: { width: 0.6, color: "rgba(255,255,255,.5)" }, ncontours: 12, colorbar: { thickness: 10, outlinewidth: 0, tickfont: { size: 10 } }, hovertemplate: "%{x}, %{y}: %{z:.4g}<extra></extra>" };
    draw(`contour-${kind}`, [surface, ...marks], layout(t, { xaxis: axis(pair.x), yaxis: axis(pair.y) }));
  }
}
