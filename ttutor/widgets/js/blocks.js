// The Transformer's one picture. Data flows up: y falls.
import { css, formatCount, make, onTraits, openCard, reducedMotion, refill, setTraits, svg } from "./core.js";
import { button, choice, player, rovingGrid, select, toggle } from "./controls.js";

const CSS = css`
  .picture {
    max-width: 38rem;
    margin-inline: auto;
  }
  .picture svg {
    display: block;
    width: 100%;
    overflow: visible;
  }
  .picture text {
    fill: currentColor;
    font-size: 11.5px;
    text-anchor: middle;
    pointer-events: none;
  }
  .picture .name {
    font-weight: 600;
  }
  .part {
    cursor: pointer;
  }
  .shape {
    fill: color-mix(in srgb, var(--c) var(--f, 20%), var(--b, var(--tt-page)));
    stroke: var(--l);
  }
  .frame {
    --f: 8%;
    --b: transparent;
  }
  .lit {
    --f: 50%;
    stroke-width: 3;
  }
  .frame.lit {
    --f: 22%;
  }
  .wire {
    fill: none;
    stroke: var(--l);
    stroke-width: 1.6;
  }
  .head {
    fill: var(--l);
  }
  .arrow .wire {
    stroke-width: 3.5;
  }
  .lit .wire {
    stroke-width: 5;
  }
  .on :is(.shape, .wire) {
    stroke: currentColor;
    stroke-width: 2.5;
  }
  .dot {
    fill: var(--l);
    stroke: none;
  }
  .hit {
    fill: none;
    stroke: transparent;
    stroke-width: 20;
  }
  @media (prefers-reduced-motion: no-preference) {
    .lit .wire {
      stroke-dasharray: 10 6;
      animation: flow 0.8s linear infinite;
    }
    .dot {
      animation: rise 0.6s;
    }
  }
  @keyframes rise {
    from {
      transform: translateY(1.8rem);
    }
  }
  @keyframes flow {
    to {
      stroke-dashoffset: -16;
    }
  }
  .tt-finding {
    min-height: 6em;
  }
  @container (min-width: 40rem) {
    .tt[data-level="full"] .tt-finding {
      position: absolute;
      top: 3.5rem;
      width: 17rem;
    }
  }
  .tt-card {
    position: relative;
  }
  @container (max-width: 27rem) {
    .picture {
      max-height: 21.5rem; /* a window that follows the sentence upwards */
      overflow-y: auto;
      mask: linear-gradient(transparent, #000 1.5rem calc(100% - 1.5rem), transparent);
    }
  }
  .tt-found details {
    display: inline-block;
    margin-inline-end: 1rem;
  }
  .tt-found span {
    display: block;
  }
  .tt-found span:first-child:not(:only-child) {
    font-weight: 600;
  }
  .trace {
    margin: 0.5rem 0 0;
    padding: 0 0 0 1.5rem;
  }
  .trace .now {
    font-weight: 600;
  }
`;

const TRAITS = ["facts", "batch", "source_length", "target_length", "level", "norm", "numbers", "selected", "step"];
const PORTS = [
  ["V", "value"],
  ["K", "key"],
  ["Q", "query"],
];

const read = (model) => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
const table = (rows) => Object.fromEntries(rows.map(([id, ...facts]) => [id, facts]));

function newScene(model, width) {
  const state = read(model);
  const { kinds, sizes } = state.facts;
  const [parts, levels] = [table(state.facts.parts), table(state.facts.levels)];
  const all = {
    ...sizes,
    batch: state.batch,
    source: state.source_length,
    target: state.target_length,
  };
  const numbers = (id) =>
    parts[id][1]
      .split(" ")
      .map((axis) => formatCount(all[axis]))
      .join(" × ");
  const kind = (id) => kinds[parts[id][0]];
  const words = (id) => {
    const [name, role, formula, counted] = kind(id);
    const place = levels[id.replace(/\.?\w+$/, "")];
    const count = parts[id][state.norm === "post" ? 2 : 3];
    return [
      name + (place ? `, ${place[0]}` : ""),
      role,
      `Shape: ${parts[id][1].replaceAll(" ", " × ")} = ${numbers(id)}`,
      `Parameters: ${count ? counted + formatCount(count) : "none"}`,
      formula || null,
    ];
  };
  return {
    ...state,
    ...state.facts,
    parts,
    width,
    narrow: width < 460,
    pre: state.norm === "pre",
    words,
    name: (id) => kind(id)[0],
    shape: (id) => (state.numbers ? numbers(id) : parts[id][1]),
    nodes: [],
    wires: [],
  };
}

const fit = (text, room, letter = 6.4) => text.match(new RegExp(`.{1,${Math.floor(room / letter)}}( |$)|\\S+`, "g"));

// Below, a column grows upwards: `x` is its middle, `y` its top so far, `out` its side (-1 encoder,
// 1 decoder).
function wire({ scene }, to, path, tone = "plain", head) {
  scene.wires.push({ to, path, tone, head });
}

function rise(column, to, length = column.gap, tone) {
  wire(column, to, `M${column.x} ${column.y}v${4 - length}`, tone, [column.x, column.y - length, 0]);
  column.y -= length;
}

/** A part with name and shape, above an arrow. */
function box(column, id, tone = column.tone, up = column.gap, via, grid) {
  if (up) rise(column, id, up, via);
  const { sentences } = column.scene;
  const lines = column.scene
    .name(id)
    .split(/ (?=×)/)
    .flatMap((words) => fit(words, column.width, 6.8));
  const bold = lines.length;
  if (column.scene.level !== "full" && !/norm|positions/.test(id))
    lines.push(...fit(column.scene.shape(id), column.width));
  if (sentences[id]) lines.push(...fit(sentences[id], column.width));
  const height = 14 * lines.length + 9 + (grid ? grid[0] * grid[2] + 8 : 0);
  column.y -= height;
  column.scene.nodes.push({
    id,
    x: column.x,
    y: column.y,
    width: column.width,
    height,
    tone,
    lines,
    bold: lines.length > bold ? bold : 0,
    grid,
  });
  return column.y;
}

function plus(column, id) {
  rise(column, id);
  column.y -= 20;
  column.scene.nodes.push({
    id,
    x: column.x,
    y: column.y,
    width: 20,
    height: 20,
    tone: "plain",
    lines: ["+"],
    bold: 1,
  });
}

function frame({ scene, x, y, width, tone }, id, foot, label, at) {
  scene.nodes.push({ id, x, y, width, height: foot - y, tone, lines: [label], at });
}

/** Arrows into an attention; V and K may come from the memory, at the gate. */
function fan(column, id, gate) {
  const { x, y, width } = column;
  column.y -= gate ? 46 : 32;
  PORTS.forEach(([letter, tone], i) => {
    const port = x + (i - 1) * width * 0.3;
    wire(
      column,
      id,
      !gate || i === 2
        ? `M${x} ${y}C${x} ${y - 12} ${port} ${y - 4} ${port} ${y - 18}V${column.y + 4}`
        : `M${gate} ${column.y + 22}V${column.y + 17 + 10 * i}H${port - 6}q6 0 6 -6V${column.y + 4}`,
      tone,
      [port, column.y, 0, letter],
    );
  });
  if (gate) column.onGate(column.y + 22);
}

function sublayer(column, name, i) {
  const { scene, x, width, side, out, lane, tone } = column;
  const [id, branch, turn] = [`${side}.${name}`, column.y - 4, out * 10];
  const norm = () => box(column, `${side}.norm_${i}`, "masked");
  if (scene.pre) norm();
  else column.y = branch;
  if (name !== "feed_forward") {
    fan(column, id, name[0] === "c" && column.gate);
    box(column, id, tone, 0);
  } else if (scene.level === "full") box(column, id);
  else {
    rise(column, id);
    const foot = column.y;
    for (const [part, share] of [
      ["widen", 0.6],
      ["activation", 0.9],
      ["narrow", 0.6],
    ]) {
      column.y = box({ ...column, width: width * share, y: column.y - 4 }, `${side}.${part}`, tone, 0);
    }
    column.y -= 20;
    frame(column, id, foot, scene.name(id), x);
  }
  plus(column, `${side}.add_${i}`);
  scene.nodes.push({
    id: `${side}.skip_${i}`,
    tone,
    head: [x + turn, column.y + 10, out],
    path:
      `M${x} ${branch}h${out * (width / 2 + lane) - turn}q${turn} 0 ${turn} ` +
      `-10V${column.y + 20}q0 -10 ${-turn} -10H${x + turn}`,
  });
  if (!scene.pre) norm();
}

function layer(column, label) {
  const { x, y, width, out, lane } = column;
  ["self_attention", ...(out > 0 ? ["cross_attention"] : []), "feed_forward"].forEach((name, i) =>
    sublayer(column, name, i + 1),
  );
  wire(column, "", `M${x} ${column.y}v-20`);
  column.y -= 20;
  frame(
    { ...column, x: x + (out * lane) / 2, width: width + lane + 16 },
    column.side,
    y,
    label,
    x + out * (width / 4 + lane / 2 + 4),
  );
}

const newColumn = (scene, out, x, width, lane, gap) => ({
  scene,
  out,
  x,
  width,
  y: 0,
  lane,
  gap,
  ...(out > 0
    ? { side: "decoder", seq: "target", tone: "decoder" }
    : { side: "encoder", seq: "source", tone: "memory" }),
});

function stack(column) {
  const { scene, x, width, out, lane, seq, side } = column;
  box(column, `${seq}_ids`, "plain", 0);
  box(column, `${seq}_embedding`);
  plus(column, `${seq}_add`);
  const far = width / 2 + lane + 8;
  const wide = Math.min(far - 20, 92);
  box(
    { ...column, x: x + out * (far - wide / 2), width: wide, y: column.y + 21.5 },
    `${seq}_positions`,
    column.tone,
    0,
  );
  wire(column, "", `M${x + out * (far - wide)} ` + `${column.y + 10}h${out * (wide - far + 10)}M${x} ${column.y}v-10`);
  column.y -= 10;
  layer(column, `${scene.n_layers} layers`);
  if (scene.pre) box(column, `${side}.final_norm`, "masked");
}

const trunk = (scene, path) => scene.nodes.push({ id: "arrow", tone: "memory", path });

function drawFull(scene) {
  const [gap, lane] = scene.narrow ? [22, 13] : [60, 22];
  const [width, middle] = [Math.min((scene.width - gap) / 2, 260) - lane - 16, scene.width / 2];
  const [left, right] = [-1, 1].map((out) =>
    newColumn(scene, out, middle + out * (gap / 2 + 8 + width / 2), width, lane, 14),
  );
  stack(left);
  const y = box(left, "memory") + 19;
  right.gate = middle;
  right.onGate = (end) => trunk(scene, `M${left.x + width / 2} ${y}H${middle - 10}q10 0 10 10V${end}`);
  stack(right);
  for (const id of ["logits", "softmax"]) box(right, id);
  rise(right, "");
}

function drawLayer(scene, side) {
  const [out, free] = side === "decoder" ? [1, scene.narrow ? 84 : 140] : [-1, 0];
  const width = Math.min(scene.width - 46 - free, 300);
  const column = newColumn(scene, out, scene.width / 2 + (free - out * 26) / 2, width, 26, 18);
  column.gate = column.x - width / 2 + 2;
  column.onGate = (y) => {
    box({ scene, x: column.gate - 12 - free / 2, width: free - 20, y: y + 20 }, "memory", "memory", 0);
    trunk(scene, `M${column.gate - 22} ${y}h22`);
  };
  box(column, `${side}.input`, "plain", 0);
  wire(column, "", `M${column.x} ${column.y}v-16`);
  column.y -= 16;
  layer(column, `1 of ${scene.n_layers}`);
  box(column, `${side}.output`, "plain");
}

function drawAttention(scene, level) {
  const gap = scene.narrow ? 10 : 22;
  const width = Math.min((scene.width - 2 * gap - 8) / 3, 168);
  const [x, step, tone] = [scene.width / 2, width + gap, level[0] === "e" ? "memory" : "decoder"];
  const [all, two] = [width + 2 * step, width + step];
  const part = (name, at, wide, y, hue = tone, ...more) =>
    box({ scene, x: at, width: wide, y, gap: 20 }, `${level}.${name}`, hue, ...more);
  const arrow = (name, i, y, via, length = 20) => rise({ scene, x: x + i * step, y }, `${level}.${name}`, length, via);
  const row = (names, y) =>
    Math.min(...names.map((name, i) => part(name, x + (i - 1) * step, width, y, PORTS[i][1], 20, PORTS[i][1])));
  const cross = level.includes("cross");
  let y = part("q_input", cross ? x + step : x, cross ? width : all, 0, tone, 0);
  if (cross) part("k_input", x - step / 2, two, 0, "memory", 0);
  const cut = row(["v", "k", "q"], row(["to_value", "to_key", "to_query"], y)) - 7;
  arrow("weights", 0, cut, "key");
  arrow("weights", 1, cut, "query");
  const grid = scene.parts[`${level}.weights`][1]
    .split(" ")
    .slice(2)
    .map((axis) => scene[`${axis}_length`]);
  const cell = Math.min(12, 100 / Math.max(...grid));
  y = part("weights", x + step / 2, two, cut - 20, "weights", 0, "", [...grid, cell]) - 7;
  arrow("context", -1, cut, "value", cut - y + 20);
  arrow("context", 0.5, y, "weights");
  y = part("context", x, all, y - 20, "value", 0) - 7;
  part("to_output", x, all, part("merged", x, all, y));
}

/** Weights: queries down, keys across, masked ones struck. */
function cells(level, left, y, [rows, columns, size]) {
  const cell = (i, j) =>
    `M${left + j * size} ${y + i * size}h${size}v${size}h${-size}z` +
    (level === "decoder.self_attention" && j > i ? `l${size} ${size}` : "");
  return svg("path", {
    class: "wire",
    d: Array.from({ length: rows * columns }, (_, index) => cell(Math.floor(index / columns), index % columns)).join(
      "",
    ),
  });
}

const tip = ([x, y, way, letter]) => [
  svg("path", { class: "head", d: `M${x} ${y}l${way ? `${way * 6} -4v8` : "-4 6h8"}z` }),
  letter ? svg("text", { class: "name", x: x + 9, y: y + 14, text: letter }) : null,
];
const colours = (tone) => `--c: var(--tt-${tone}, var(--tt-masked)); --l: var(--tt-${tone}-line, currentColor)`;

function paintPart(scene, { id, x, y, width, height, tone, lines = [], bold, at, head, path, grid }, order) {
  const rect = (shift) =>
    svg("rect", {
      class: "shape",
      x: x - width / 2 + shift,
      y: y - shift,
      width: width,
      height: height,
      rx: 10,
    });
  const text = (text, i) => svg("text", { class: i < bold ? "name" : "", x: at || x, y: y + 15 + 14 * i, text });
  return svg(
    "g",
    {
      class: `part ${at ? "frame" : path ? id : ""}`,
      "data-id": id,
      "data-row": 99 - order,
      "data-column": 0,
      role: "option",
      tabindex: -1,
      style: colours(tone),
      "aria-label": scene.words(id).slice(0, 4).join(". ").replace("..", "."),
    },
    ...(path
      ? ["hit", "wire"].map((kind) => svg("path", { class: kind, d: path }))
      : (scene.parts[id][1].includes("heads") ? [6, 3, 0] : [0]).map(rect)),
    ...lines.map(text),
    ...(head ? tip(head) : []),
    grid ? cells(scene.level, x - (grid[1] * grid[2]) / 2, y + height - grid[0] * grid[2] - 8, grid) : null,
  );
}

/** The parts in the order of computing. */
function paint(scene) {
  const draw = { full: drawFull, encoder: drawLayer, decoder: drawLayer }[scene.level] || drawAttention;
  draw(scene, scene.level);
  const top = Math.min(...scene.nodes.map(({ y }) => y ?? 0)) - 18;
  const order = Object.keys(scene.parts);
  scene.nodes.sort((one, two) => order.indexOf(one.id) - order.indexOf(two.id));
  return svg(
    "svg",
    {
      viewBox: `0 ${top} ${scene.width} ${4 - top}`,
      role: "listbox",
      "aria-label": "Parts, first to last",
    },
    ...scene.wires.map(({ to, path, tone, head }) =>
      svg(
        "g",
        { "data-to": to, style: colours(tone), "aria-hidden": "true" },
        svg("path", { class: "wire", d: path }),
        ...(head ? tip(head) : []),
      ),
    ),
    ...scene.nodes.map((part, i) => paintPart(scene, part, i)),
  );
}

/** A dot for each token on top of what is computed now. */
function carry(picture, scene) {
  for (const old of picture.querySelectorAll(".dot")) old.remove();
  for (const node of picture.querySelectorAll(".lit:not(.frame)")) {
    const box = node.querySelector("rect");
    const axis = scene.parts[node.dataset.id]?.[1].split(" ")[1];
    const [x, y, width] = ["x", "y", "width"].map((name) => Number(box?.getAttribute(name)));
    const n = width > 50 ? scene[`${axis}_length`] || 0 : 0;
    const gap = Math.min(13, width / n);
    for (let i = 0; i < n; i += 1)
      node.append(svg("circle", { class: "dot", cx: x + width / 2 + (i - (n - 1) / 2) * gap, cy: y - 4, r: 4 }));
  }
}

function mark(picture, { steps, step, selected }) {
  for (const node of picture.querySelectorAll("[data-id], [data-to]")) {
    const { id, to } = node.dataset;
    node.classList.toggle("lit", !!steps[step - 1]?.[1].includes(id || to));
    node.classList.toggle("on", id === selected);
    node.setAttribute("aria-selected", id === selected);
  }
}

/** Where the picture is a window, show in its middle what is computed now; at first, the words below. */
function follow(picture) {
  const [box, lit] = [picture, picture.querySelector(".on") || picture.querySelector(".lit")].map((node) =>
    node?.getBoundingClientRect(),
  );
  const middle = lit && lit.top + lit.height / 2 - box.top - box.height / 2;
  picture.scrollTo({
    top: lit ? picture.scrollTop + middle : picture.scrollHeight,
    behavior: lit && !reducedMotion() ? "smooth" : "auto",
  });
}

function render({ model, el }) {
  const { steps, ...facts } = model.get("facts");
  const levels = table(facts.levels);
  const start = read(model);
  const set = (values) => setTraits(model, values);
  const go = (level) => set({ level, selected: "" });
  const card = openCard(el, {
    label: "The Transformer",
    question: "",
    invite: "Press Play: in which box do the dots of both sentences come together? Or tap a part.",
    onReset: () => {
      controls.step.pause();
      set(start);
    },
    css: CSS,
  });
  const controls = {
    level: select({ label: "Show", options: facts.levels, onChange: go }),
    norm: choice({
      label: "Norms",
      options: ["post", "pre"].map((norm) => [norm, `${norm}-norm`]),
      onChange: (norm) => set({ norm }),
    }),
    numbers: toggle({ label: "shapes as numbers", onChange: (numbers) => set({ numbers }) }),
    step: player({
      count: () => steps.length + 1,
      describe: (step) => `step ${step} of ${steps.length}`,
      onStep: (step) => set({ step, level: "full", selected: steps[step - 1]?.[1].at(-1) || "" }),
    }),
  };
  const [picture, trace] = [make("div", { class: "picture" }), make("ol", { class: "trace" })];
  card.stage.append(picture);
  card.controls.append(controls.step.node, controls.level.node);
  card.more(
    "All steps, and how it is drawn",
    make("div", { class: "tt-controls" }, controls.norm.node, controls.numbers.node),
    trace,
  );
  const find = (name, value) => picture.querySelector(`[data-${name}="${value}"]`);
  const roving = rovingGrid(
    picture,
    (row) => find("row", row),
    () => ({ firstRow: 0, lastRow: 99, firstColumn: 0, lastColumn: 0 }),
  );
  const pick = (event) => {
    const id = event.target.closest("[data-id]")?.dataset.id;
    if (event.key === "Enter" && levels[id]) go(id);
    else if (id && !event.key && id !== model.get("selected")) set({ selected: id });
  };
  for (const kind of ["focusin", "click", "keydown"]) picture.addEventListener(kind, pick);
  let [drawn, followed] = ["", ""];
  const update = () => {
    const scene = newScene(model, picture.clientWidth || 320);
    const now = `${scene.width},${TRAITS.slice(1, 7).map((name) => scene[name])}`;
    if (now !== drawn) {
      const focused = picture.contains(card.root.getRootNode().activeElement);
      refill(picture, paint(scene));
      const first = find("id", scene.selected) || find("row", 99);
      roving.makeStop(first);
      if (focused) first.focus();
    }
    drawn = now;
    card.root.dataset.level = scene.level;
    card.root.querySelector(".tt-question").textContent =
      scene.level === "full" ? "Where do the two sentences meet?" : "What happens in here?";
    mark(picture, scene);
    carry(picture, scene);
    const place = `${now},${scene.step}`;
    if (place !== followed) follow(picture);
    followed = place;
    for (const [name, control] of Object.entries(controls)) control.set(scene[name]);
    const [title, made] = (scene.level === "full" && steps[scene.step - 1]) || [];
    const words = scene.selected ? scene.words(scene.selected) : [levels[scene.level][1]];
    const about =
      scene.selected && made?.at(-1) === scene.selected
        ? [
            `${title}.`,
            words[1],
            scene.step === steps.length
              ? "The two sentences have met in one kind of box only: cross-attention, where the target asks and the source answers."
              : null,
          ]
        : words.slice(0, 2);
    const line = (text) => text && make("span", { text });
    card.find(
      ...about.map(line),
      about.length === 2 && scene.selected
        ? make("details", {}, make("summary", { text: "Sizes" }), ...words.slice(2).map(line))
        : null,
      levels[scene.selected] && scene.selected !== scene.level
        ? button({ label: "Look inside", onClick: () => go(scene.selected) })
        : null,
    );
    const shapeWords = ([word, id]) => `${word} (${scene.shape(id)})`.replaceAll(" ", "\u00a0");
    refill(
      trace,
      ...steps.map(([title, , shapes], i) =>
        make("li", {
          class: i + 1 === scene.step ? "now" : "",
          text: `${title}: ${shapes.map(shapeWords).join(", ")}`,
        }),
      ),
    );
  };
  const stop = onTraits(model, TRAITS, update);
  const watcher = new ResizeObserver(update);
  watcher.observe(picture);
  update();
  return () => [stop, controls.step.close, () => watcher.disconnect(), card.close].forEach((end) => end());
}

export default { render };
