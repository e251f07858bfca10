// The Transformer's one picture. Data flows up: y falls.
import { formatCount, make, onTraits, openFrame, refill, setTraits, svg } from "./core.js";
import { button, choice, player, rovingGrid, select, toggle } from "./controls.js";

const CSS = `
.blocks { display: flex; flex-wrap: wrap; gap: 0.75rem 1.5rem; align-items: flex-start; }
.picture { flex: 3 1 20rem; min-width: 0; max-width: 38rem; }
.picture svg { display: block; width: 100%; overflow: visible; }
.picture text { fill: currentColor; font-size: 11.5px; text-anchor: middle; pointer-events: none; }
.picture .name { font-weight: 600; }
.part { cursor: pointer; }
.shape { fill: color-mix(in srgb, var(--c) var(--f, 20%), var(--b, var(--tt-page))); stroke: var(--l); }
.frame { --f: 8%; --b: transparent; }
.lit { --f: 50%; stroke-width: 3; }
.frame.lit { --f: 22%; }
.wire { fill: none; stroke: var(--l); stroke-width: 1.6; }
.head { fill: var(--l); }
.arrow .wire { stroke-width: 3.5; }
.lit .wire { stroke-width: 5; }
.on :is(.shape, .wire) { stroke: currentColor; stroke-width: 2.5; }
.hit { fill: none; stroke: transparent; stroke-width: 20; }
.panel { flex: 2 1 15rem; position: sticky; bottom: 0; padding: 0 0.7rem 0.3rem; background: var(--tt-page); border: 1px solid; border-radius: 0.5rem; }
.panel p { margin: 0.3rem 0 0; }
.panel p:first-child:not(:last-child) { font-weight: 600; }
.trace { flex: 1 1 100%; margin: 0; columns: 19rem; column-gap: 2rem; padding: 0 0 0 1.5rem; }
.trace li { break-inside: avoid; }
.trace .now { outline: 2px solid; }
@container (min-width: 44rem) { .panel { top: 0.5rem; bottom: auto; min-height: 13rem; } }
`;

const TRAITS = ["facts", "batch", "source_length", "target_length", "level", "norm", "numbers", "selected", "step"];
const PORTS = [["V", "value"], ["K", "key"], ["Q", "query"]];

const read = (model) => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
const table = (rows) => Object.fromEntries(rows.map(([id, ...facts]) => [id, facts]));

function newScene(model, width) {
  const state = read(model);
  const { kinds, sizes } = state.facts;
  const [parts, levels] = [table(state.facts.parts), table(state.facts.levels)];
  const all = { ...sizes, batch: state.batch, source: state.source_length, target: state.target_length };
  const numbers = (id) => parts[id][1].split(" ").map((axis) => formatCount(all[axis])).join(" × ");
  const kind = (id) => kinds[parts[id][0]];
  const words = (id) => {
    const [name, role, formula, counted] = kind(id);
    const place = levels[id.replace(/\.?\w+$/, "")];
    const count = parts[id][state.norm === "post" ? 2 : 3];
    return [name + (place ? `, ${place[0]}` : ""), role, `Shape: ${parts[id][1].replaceAll(" ", " × ")} = ${numbers(id)}`,
      `Parameters: ${count ? counted + formatCount(count) : "none"}`, formula || null];
  };
  return { ...state, ...state.facts, parts, width, narrow: width < 460, pre: state.norm === "pre", words, name: (id) => kind(id)[0],
    shape: (id) => (state.numbers ? numbers(id) : parts[id][1]), nodes: [], wires: [] };
}

const fit = (text, room, letter = 6.4) => text.match(new RegExp(`.{1,${Math.floor(room / letter)}}( |$)|\\S+`, "g"));

// Below, c is a column that grows: its scene s, middle x, width w, top y so far, side (out: -1 encoder, 1 decoder).
function wire({ s }, to, d, tone = "plain", head) {
  s.wires.push({ to, d, tone, head });
}

function rise(c, to, length = c.gap, tone) {
  wire(c, to, `M${c.x} ${c.y}v${4 - length}`, tone, [c.x, c.y - length, 0]);
  c.y -= length;
}

/** A part with name and shape, above an arrow. */
function box(c, id, tone = c.tone, up = c.gap, via, grid) {
  if (up) rise(c, id, up, via);
  const lines = c.s.name(id).split(/ (?=×)/).flatMap((words) => fit(words, c.w, 6.8));
  const bold = lines.length;
  if (!/norm|positions/.test(id)) lines.push(...fit(c.s.shape(id), c.w));
  const h = 14 * lines.length + 9 + (grid ? grid[0] * grid[2] + 8 : 0);
  c.y -= h;
  c.s.nodes.push({ id, x: c.x, y: c.y, w: c.w, h, tone, lines, bold: lines.length > bold ? bold : 0, grid });
  return c.y;
}

function plus(c, id) {
  rise(c, id);
  c.y -= 20;
  c.s.nodes.push({ id, x: c.x, y: c.y, w: 20, h: 20, tone: "plain", lines: ["+"], bold: 1 });
}

function frame({ s, x, y, w, tone }, id, foot, label, at) {
  s.nodes.push({ id, x, y, w, h: foot - y, tone, lines: [label], at });
}

/** Arrows into an attention; V and K may come from the memory, at the gate. */
function fan(c, id, gate) {
  const { x, y, w } = c;
  c.y -= gate ? 46 : 32;
  PORTS.forEach(([letter, tone], i) => {
    const port = x + (i - 1) * w * 0.3;
    wire(c, id, !gate || i === 2 ? `M${x} ${y}C${x} ${y - 12} ${port} ${y - 4} ${port} ${y - 18}V${c.y + 4}`
      : `M${gate} ${c.y + 22}V${c.y + 17 + 10 * i}H${port - 6}q6 0 6 -6V${c.y + 4}`, tone, [port, c.y, 0, letter]);
  });
  if (gate) c.onGate(c.y + 22);
}

function sublayer(c, name, i) {
  const { s, x, w, side, out, lane, tone } = c;
  const [id, branch, turn] = [`${side}.${name}`, c.y - 4, out * 10];
  const norm = () => box(c, `${side}.norm_${i}`, "masked");
  if (s.pre) norm();
  else c.y = branch;
  if (name !== "feed_forward") {
    fan(c, id, name[0] === "c" && c.gate);
    box(c, id, tone, 0);
  } else if (s.level === "full") box(c, id);
  else {
    rise(c, id);
    const foot = c.y;
    for (const [part, share] of [["widen", 0.6], ["activation", 0.9], ["narrow", 0.6]]) {
      c.y = box({ ...c, w: w * share, y: c.y - 4 }, `${side}.${part}`, tone, 0);
    }
    c.y -= 20;
    frame(c, id, foot, s.name(id), x);
  }
  plus(c, `${side}.add_${i}`);
  s.nodes.push({ id: `${side}.skip_${i}`, tone, head: [x + turn, c.y + 10, out],
    d: `M${x} ${branch}h${out * (w / 2 + lane) - turn}q${turn} 0 ${turn} -10V${c.y + 20}q0 -10 ${-turn} -10H${x + turn}` });
  if (!s.pre) norm();
}

function layer(c, label) {
  const { x, y, w, out, lane } = c;
  ["self_attention", ...(out > 0 ? ["cross_attention"] : []), "feed_forward"].forEach((name, i) => sublayer(c, name, i + 1));
  wire(c, "", `M${x} ${c.y}v-20`);
  c.y -= 20;
  frame({ ...c, x: x + (out * lane) / 2, w: w + lane + 16 }, c.side, y, label, x + out * (w / 4 + lane / 2 + 4));
}

const column = (s, out, x, w, lane, gap) => ({ s, out, x, w, y: 0, lane, gap,
  ...(out > 0 ? { side: "decoder", seq: "target", tone: "decoder" } : { side: "encoder", seq: "source", tone: "memory" }) });

function stack(c) {
  const { s, x, w, out, lane, seq, side } = c;
  box(c, `${seq}_ids`, "plain", 0);
  box(c, `${seq}_embedding`);
  plus(c, `${seq}_add`);
  const far = w / 2 + lane + 8;
  const wide = Math.min(far - 20, 92);
  box({ ...c, x: x + out * (far - wide / 2), w: wide, y: c.y + 21.5 }, `${seq}_positions`, c.tone, 0);
  wire(c, "", `M${x + out * (far - wide)} ${c.y + 10}h${out * (wide - far + 10)}M${x} ${c.y}v-10`);
  c.y -= 10;
  layer(c, `${s.n_layers} layers`);
  if (s.pre) box(c, `${side}.final_norm`, "masked");
}

const trunk = (s, d) => s.nodes.push({ id: "arrow", tone: "memory", d });

function drawFull(s) {
  const [gap, lane] = s.narrow ? [22, 13] : [60, 22];
  const [w, middle] = [Math.min((s.width - gap) / 2, 260) - lane - 16, s.width / 2];
  const [left, right] = [-1, 1].map((out) => column(s, out, middle + out * (gap / 2 + 8 + w / 2), w, lane, 14));
  stack(left);
  const y = box(left, "memory") + 19;
  right.gate = middle;
  right.onGate = (end) => trunk(s, `M${left.x + w / 2} ${y}H${middle - 10}q10 0 10 10V${end}`);
  stack(right);
  for (const id of ["logits", "softmax"]) box(right, id);
  rise(right, "");
}

function drawLayer(s, side) {
  const [out, free] = side === "decoder" ? [1, s.narrow ? 84 : 140] : [-1, 0];
  const w = Math.min(s.width - 46 - free, 300);
  const c = column(s, out, s.width / 2 + (free - out * 26) / 2, w, 26, 18);
  c.gate = c.x - w / 2 + 2;
  c.onGate = (y) => {
    box({ s, x: c.gate - 12 - free / 2, w: free - 20, y: y + 20 }, "memory", "memory", 0);
    trunk(s, `M${c.gate - 22} ${y}h22`);
  };
  box(c, `${side}.input`, "plain", 0);
  wire(c, "", `M${c.x} ${c.y}v-16`);
  c.y -= 16;
  layer(c, `1 of ${s.n_layers}`);
  box(c, `${side}.output`, "plain");
}

function drawAttention(s, level) {
  const gap = s.narrow ? 10 : 22;
  const w = Math.min((s.width - 2 * gap - 8) / 3, 168);
  const [x, step, tone] = [s.width / 2, w + gap, level[0] === "e" ? "memory" : "decoder"];
  const [all, two] = [w + 2 * step, w + step];
  const part = (name, at, wide, y, hue = tone, ...more) => box({ s, x: at, w: wide, y, gap: 20 }, `${level}.${name}`, hue, ...more);
  const arrow = (name, i, y, via, length = 20) => rise({ s, x: x + i * step, y }, `${level}.${name}`, length, via);
  const row = (names, y) => Math.min(...names.map((name, i) =>
    part(name, x + (i - 1) * step, w, y, PORTS[i][1], 20, PORTS[i][1])));
  const cross = level.includes("cross");
  let y = part("q_input", cross ? x + step : x, cross ? w : all, 0, tone, 0);
  if (cross) part("k_input", x - step / 2, two, 0, "memory", 0);
  const cut = row(["v", "k", "q"], row(["to_value", "to_key", "to_query"], y)) - 7;
  arrow("weights", 0, cut, "key");
  arrow("weights", 1, cut, "query");
  const grid = s.parts[`${level}.weights`][1].split(" ").slice(2).map((axis) => s[`${axis}_length`]);
  const cell = Math.min(12, 100 / Math.max(...grid));
  y = part("weights", x + step / 2, two, cut - 20, "weights", 0, "", [...grid, cell]) - 7;
  arrow("context", -1, cut, "value", cut - y + 20);
  arrow("context", 0.5, y, "weights");
  y = part("context", x, all, y - 20, "value", 0) - 7;
  part("to_output", x, all, part("merged", x, all, y));
}

/** Weights: queries down, keys across, masked ones struck. */
function cells(level, left, y, [rows, columns, a]) {
  const cell = (i, j) => `M${left + j * a} ${y + i * a}h${a}v${a}h${-a}z${j > i && level[0] + level[8] === "ds" ? `l${a} ${a}` : ""}`;
  return svg("path", { class: "wire", d: Array.from({ length: rows * columns }, (_, n) => cell(Math.floor(n / columns), n % columns)).join("") });
}

const tip = ([x, y, way, letter]) => [svg("path", { class: "head", d: `M${x} ${y}l${way ? `${way * 6} -4v8` : "-4 6h8"}z` }),
  letter ? svg("text", { class: "name", x: x + 9, y: y + 14, text: letter }) : null];
const colours = (tone) => `--c: var(--tt-${tone}, var(--tt-masked)); --l: var(--tt-${tone}-line, currentColor)`;

function paintPart(s, { id, x, y, w, h, tone, lines = [], bold, at, head, d, grid }, order) {
  const rect = (shift) => svg("rect", { class: "shape", x: x - w / 2 + shift, y: y - shift, width: w, height: h, rx: 10 });
  const text = (text, i) => svg("text", { class: i < bold ? "name" : "", x: at || x, y: y + 15 + 14 * i, text });
  return svg("g", { class: `part ${at ? "frame" : d ? id : ""}`, "data-id": id, "data-row": 99 - order, "data-column": 0, role: "option", tabindex: -1, style: colours(tone),
    "aria-label": s.words(id).slice(0, 4).join(". ").replace("..", ".") },
  ...(d ? ["hit", "wire"].map((kind) => svg("path", { class: kind, d })) : (s.parts[id][1].includes("heads") ? [6, 3, 0] : [0]).map(rect)), ...lines.map(text),
  ...(head ? tip(head) : []), grid ? cells(s.level, x - (grid[1] * grid[2]) / 2, y + h - grid[0] * grid[2] - 8, grid) : null);
}

/** The parts in the order of computing. */
function paint(s) {
  const draw = { full: drawFull, encoder: drawLayer, decoder: drawLayer }[s.level] || drawAttention;
  draw(s, s.level);
  const top = Math.min(...s.nodes.map(({ y }) => y ?? 0)) - 18;
  const order = Object.keys(s.parts);
  s.nodes.sort((one, two) => order.indexOf(one.id) - order.indexOf(two.id));
  return svg("svg", { viewBox: `0 ${top} ${s.width} ${4 - top}`, role: "listbox", "aria-label": "Parts, first to last" },
    ...s.wires.map(({ to, d, tone, head }) => svg("g", { "data-to": to, style: colours(tone), "aria-hidden": "true" },
      svg("path", { class: "wire", d }), ...(head ? tip(head) : []))), ...s.nodes.map((part, i) => paintPart(s, part, i)));
}

function mark(picture, { steps, step, selected }) {
  for (const node of picture.querySelectorAll("[data-id], [data-to]")) {
    const { id, to } = node.dataset;
    node.classList.toggle("lit", !!steps[step - 1]?.[1].includes(id || to));
    node.classList.toggle("on", id === selected);
    node.setAttribute("aria-selected", id === selected);
  }
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "The Transformer", CSS);
  const { steps, ...facts } = model.get("facts");
  const levels = table(facts.levels);
  const start = read(model);
  const set = (values, words = "") => say(words, setTraits(model, values));
  const go = (level) => set({ level, selected: "" }, levels[level][0]);
  const controls = {
    level: select({ label: "Show", options: facts.levels, onChange: go }),
    norm: choice({ label: "Norms", options: ["post", "pre"].map((norm) => [norm, `${norm}-norm`]), onChange: (norm) => set({ norm }, `${norm}-norm`) }),
    numbers: toggle({ label: "shapes as numbers", onChange: (numbers) => set({ numbers }) }),
    step: player({ count: () => steps.length + 1, onReset: () => set(start, "Reset"),
      describe: (step) => (model.get("level") === "full" ? `step ${step} of ${steps.length}` : "A step goes back to the full architecture."),
      onStep: (step) => set({ step, level: "full", selected: steps[step - 1]?.[1].at(-1) || "" }, steps[step - 1]?.[0]) }),
  };
  const [picture, panel, trace] = ["div", "div", "ol"].map((tag, i) => make(tag, { class: ["picture", "panel", "trace"][i] }));
  const again = [...controls.step.node.querySelectorAll("button")].at(-1); // it resets all, and stops the player
  again.textContent = "Start over";
  root.append(make("div", { class: "tt-controls" }, ...Object.values(controls).map(({ node }) => node), again), make("div", { class: "blocks" }, picture, panel, trace));
  const find = (name, value) => picture.querySelector(`[data-${name}="${value}"]`);
  const roving = rovingGrid(picture, (row) => find("row", row), () => ({ firstRow: 0, lastRow: 99, firstColumn: 0, lastColumn: 0 }));
  const pick = (event) => {
    const id = event.target.closest("[data-id]")?.dataset.id;
    if (event.key === "Enter" && levels[id]) go(id);
    else if (id && !event.key && id !== model.get("selected")) setTraits(model, { selected: id });
  };
  for (const kind of ["pointerover", "focusin", "click", "keydown"]) picture.addEventListener(kind, pick);
  let drawn = "";
  const update = () => {
    const s = newScene(model, picture.clientWidth || 320);
    const now = `${s.width},${TRAITS.slice(1, 7).map((name) => s[name])}`;
    if (now !== drawn) {
      const focused = picture.contains(root.getRootNode().activeElement);
      refill(picture, paint(s));
      const first = find("id", s.selected) || find("row", 99);
      roving.makeStop(first);
      if (focused) first.focus();
    }
    drawn = now;
    mark(picture, s);
    for (const [name, control] of Object.entries(controls)) control.set(s[name]);
    refill(panel, ...(s.selected ? s.words(s.selected) : [levels[s.level][1]]).map((text) => text && make("p", { text })),
      levels[s.selected] && s.selected !== s.level ? button({ label: "Look inside", onClick: () => go(s.selected) }) : null);
    refill(trace, ...steps.map(([title, , shapes], i) => make("li", { class: i + 1 === s.step ? "now" : "",
      text: `${title}: ${shapes.map(([word, id]) => `${word} (${s.shape(id)})`.replaceAll(" ", "\u00a0")).join(", ")}` })));
  };
  const stop = onTraits(model, TRAITS, update);
  const watcher = new ResizeObserver(update);
  watcher.observe(picture);
  update();
  return () => [stop, controls.step.close, () => watcher.disconnect(), close].forEach((end) => end());
}

export default { render };
