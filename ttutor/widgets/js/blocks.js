// The Transformer's one picture. Data flows up: y falls.
import {
  css,
  formatCount,
  formatNumber,
  make,
  moveOnce,
  onTraits,
  openCard,
  refill,
  setTraits,
  shareWord,
  svg,
} from "./core.js";
import { button, choice, player, rovingGrid } from "./controls.js";
import { bars, preview } from "./drawing.js";

const CSS = css`
  .picture {
    max-width: 46rem;
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
  .words {
    --f: 45%;
    pointer-events: none;
  }
  .pick {
    pointer-events: all;
    cursor: pointer;
  }
  .web {
    pointer-events: none;
  }
  .words text {
    font-size: var(--size);
  }
  .met rect {
    stroke: var(--tt-memory-line);
    stroke-width: 3;
  }
  .web path {
    fill: none;
    stroke: var(--tt-weights-line);
    stroke-width: var(--w, 1.2);
  }
  .web .other {
    opacity: 0;
  }
  .charts {
    display: grid;
    grid-auto-flow: column;
    grid-auto-columns: minmax(0, 1fr);
    gap: 1rem;
    align-items: start;
  }
  .strip {
    display: flex;
    gap: 2px;
    height: 2.25rem;
    margin-block: 0.25rem;
  }
  .strip i {
    width: 0.75rem;
    height: 50%;
    background: var(--c);
    box-shadow: inset 0 0 0 1px var(--l);
    transform: scaleY(var(--v));
    transform-origin: bottom;
  }
  .gone,
  .told > text {
    opacity: 0;
    pointer-events: none;
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
    .words {
      transition: transform 1s;
    }
    .web,
    .out {
      transition: opacity 0.5s 0.7s;
    }
  }
  @keyframes flow {
    to {
      stroke-dashoffset: -16;
    }
  }
  .tt-finding {
    min-height: 2.9em;
  }
  .tt[data-acted] .tt-finding {
    min-height: 12.5em;
  }
  .tt-note {
    display: none;
  }
  @container (min-width: 46rem) {
    .tt[data-level="full"] .tt-finding {
      position: absolute;
      top: 3rem;
      width: 21rem;
      font-size: 0.875rem; /* all lines of a part stand above the memory */
      line-height: 1.4;
    }
  }
  .tt-card {
    position: relative;
  }
  .tt-found span {
    display: block;
  }
  .tt-found > span:first-child:has(+ *) {
    font-weight: 600;
  }
`;

const TRAITS = [
  "facts",
  "batch",
  "source_length",
  "target_length",
  "level",
  "norm",
  "selected",
  "step",
  "run",
  "source_word",
  "target_word",
];
const PORTS = [
  ["V", "value"],
  ["K", "key"],
  ["Q", "query"],
];

const [MOST_READ, MOST_WRITTEN] = [9, 4]; // tokens that have room, as in stations.py

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
  // An attention says first what it does to the word that is framed, or to one in the middle.
  const example = (id) => {
    const [read, written] = ["source", "target"].map((side) => state.facts.sentences[`${side}_ids`].split(" "));
    const at = (words, trait) => (scene.run ? scene[trait] : words.length >> 1);
    const [i, j] = [at(read, "source_word"), at(written, "target_word")];
    return {
      attend: `“${read[i]}” looks at every word of its sentence. `,
      masked: `“${written[j]}” looks at “${written.slice(0, j + 1).join(" ")}”, not ahead. `,
      cross: `“${written[j]}” asks every word that was read. `,
    }[parts[id][0]];
  };
  const words = (id) => {
    const [name, role, formula, counted] = kind(id);
    const place = levels[id.replace(/\.?\w+$/, "")];
    const count = parts[id][state.norm === "post" ? 2 : 3];
    return [
      name + (place ? `, ${place[0]}` : ""),
      role,
      `Shape: ${parts[id][1].replaceAll(" ", " × ")} = ${numbers(id)}`,
      `Parameters: ${count ? counted + formatCount(count) : "none"}`,
      formula,
    ];
  };
  const scene = {
    ...state,
    ...state.facts,
    parts,
    width,
    narrow: width < 460,
    pre: state.norm === "pre",
    run: state.run.norm === state.norm ? state.run : null,
    words,
    example,
    name: (id) => kind(id)[0],
    shape: numbers,
    nodes: [],
    wires: [],
  };
  return scene;
}

const fit = (text, room, letter = 6.4) => text.match(new RegExp(`.{1,${Math.floor(room / letter)}}( |$)|\\S+`, "g"));

// Below, a column grows upwards: `x` is its middle, `y` its top so far, `out` its side (-1 encoder,
// 1 decoder).
function wire({ scene }, to, path, tone = "plain", head) {
  scene.wires.push({ to, path, tone, head });
}

function rise(column, to, length = column.gap) {
  wire(column, to, `M${column.x} ${column.y}v${4 - length}`, undefined, [column.x, column.y - length, 0]);
  column.y -= length;
}

/** A part with name and shape, above an arrow. */
function box(column, id, tone = column.tone, up = column.gap) {
  if (up) rise(column, id, up);
  const { level, name, shape } = column.scene;
  const full = level === "full";
  // Of the ids only the words are seen.
  const lines = /_ids/.test(id) ? [] : full ? [name(id).split(" ×")[0]] : fit(name(id), column.width, 6.8);
  const bold = lines.length;
  if (!full && !/norm/.test(id)) lines.push(...fit(shape(id), column.width));
  const height = 14 * lines.length + 9 + (column.room || 0);
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
  });
  return column.y;
}

function sum({ scene, x, y }, id) {
  scene.nodes.push({ id, x, y, width: 20, height: 20, tone: "plain", lines: ["+"], bold: 1 });
}

function plus(column, id) {
  rise(column, id);
  column.y -= 20;
  sum(column, id);
}

/** `notes`: what stands in it, each at its `[x, y]`. */
function frame({ scene, x, y, width, tone }, id, foot, ...notes) {
  scene.nodes.push({ id, x, y, width, height: foot - y, tone, notes });
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
  } else {
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
    frame(column, id, foot, [scene.name(id), x, column.y + 15]);
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
  frame({ ...column, x: x + (out * lane) / 2, width: width + lane + 16 }, column.side, y, [
    label,
    x + out * (width / 4 + lane / 2 + 4),
    column.y + 15,
  ]);
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

const trunk = (scene, path, head) => scene.nodes.push({ id: "arrow", tone: "memory", path, head });

/** Words side by side around 0, in two lines at most: `[word, left, top, width]`. */
function inLines(text, room) {
  const words = text.split(" ");
  let [unit, lines] = [Math.min(8, room / (text.length + 0.3 * words.length + 1)), []];
  const lay = () => {
    lines = [[]];
    let used = 0;
    for (const word of words) {
      const wide = unit * (word.length + 0.9);
      if (used && used + wide > room) (lines.push([]), (used = 0));
      lines.at(-1).push([word, used, wide]);
      used += wide + 0.4 * unit;
    }
    return lines;
  };
  // Where one line would be too small to read, two are as large as they can be.
  if (unit < 5) for (unit = 8; lay().length > 2 && unit > 5; ) unit -= 0.25;
  else lay();
  if (lines[2]) lines[1].at(-1)[0] = "…";
  const laid = lines.slice(0, 2).flatMap((line, i) => {
    const half = line.at(-1)[1] / 2 + line.at(-1)[2] / 2;
    return line.map(([word, left, wide]) => [word, left - half, 22 * i, wide]);
  });
  return { laid, unit, row: 20 + laid.at(-1)[2] };
}

const LANE = 8;
const THIN = 15;

function strip(column, id, up) {
  rise(column, id, up);
  column.y -= THIN;
  const { scene, x, y, width } = column;
  scene.nodes.push({ id, x, y, width, height: THIN, tone: "masked", lines: [scene.name(id)], bold: 0 });
}

/** A sublayer of the whole picture, with the words inside: the norm stands before it, or behind the sum. */
function station(column, name, i, room, up = column.scene.narrow ? 6 : 9) {
  const { scene, x, side, width, out, tone } = column;
  const [norm, branch] = [`${side}.norm_${i}`, column.y - up + 8];
  if (scene.pre) strip(column, norm, up);
  column.y = box({ ...column, room }, `${side}.${name}`, tone, scene.pre ? 8 : up) - 16;
  const { y } = column;
  scene.nodes.push(
    { id: `${side}.add_${i}`, x, y, width: 16, height: 16, tone: "plain", lines: ["+"], bold: 1 },
    {
      id: `${side}.skip_${i}`,
      tone,
      head: [x + out * 8, y + 8, out],
      path: `M${x} ${branch}h${out * (width / 2 + LANE - 6)}q${out * 6} 0 ${out * 6} -6V${y + 14}q0 -6 ${-out * 6} -6H${x + out * 14}`,
    },
  );
  if (!scene.pre) strip(column, norm, 8);
}

/** Both towers, the words inside the part that works on them. */
function drawFull(scene) {
  const gap = scene.narrow ? 16 : 56;
  const width = Math.min((scene.width - gap - 2 * LANE - 24) / 2, 260);
  scene.laid = Object.fromEntries(Object.entries(scene.sentences).map(([id, text]) => [id, inLines(text, width - 6)]));
  scene.laid.arrow = scene.laid.source_ids; // the memory stays, and is read
  const [from, to] = ["source_ids", "target_ids"].map((id) => scene.laid[id].row);
  const name = scene.narrow ? 18 : 0; // on a phone words stand where the name stood
  const arrow = scene.narrow ? 9 : 16;
  const tower = (out) => {
    // On a phone a sentence of two lines lifts its own tower alone.
    const row = scene.narrow ? (out < 0 ? from : to) : Math.max(from, to);
    const column = newColumn(scene, out, scene.width / 2 + out * (gap / 2 + 6 + width / 2), width, 0, 12);
    const { x, side, seq } = column;
    box({ ...column, room: row - 1 }, `${seq}_ids`, "plain", 0);
    column.y = -row - 8;
    const half = { ...column, width: width / 2 - 4 };
    box({ ...half, x: x + width / 4 + 8, y: column.y - 9 }, `${seq}_positions`, column.tone, 0);
    column.y = box({ ...half, x: x - width / 4 - 8 }, `${seq}_embedding`, column.tone, 9);
    sum({ ...column, y: column.y + 1.5 }, `${seq}_add`);
    wire(column, `${side}.self_attention`, `M${x} ${column.y + 1.5}v${-row - 5}`);
    column.y -= row + 5;
    return column;
  };
  const [left, right] = [-1, 1].map(tower);
  const feet = { encoder: left.y, decoder: right.y };
  const hull = (column, { x, y, side, out } = column) => {
    const foot = feet[side];
    frame(
      { ...column, x: x + (out * LANE) / 2, y: y - 6, width: width + 12 + LANE },
      side,
      foot,
      [side, x - width / 4, foot + 15],
      [`${scene.n_layers} layers`, x + width / 4, foot + 15],
    );
    if (scene.pre) strip(column, `${side}.final_norm`, 13);
  };
  station(left, "self_attention", 1, from + 12, arrow);
  station(left, "feed_forward", 2, from);
  hull(left);
  const memory = box({ ...left, room: from }, "memory", left.tone, scene.pre ? 10 : arrow);
  station(right, "self_attention", 1, to + 12 - name, arrow);
  station(right, "cross_attention", 2, from + to + 12);
  const gate = right.y + (scene.pre ? 36 : 57) + from / 2;
  station(right, "feed_forward", 3, to - name);
  hull(right);
  right.y = box({ ...right, room: to - name }, "logits", right.tone, scene.pre ? 8 : arrow - 2);
  box({ ...right, room: to - name }, "softmax", right.tone, scene.narrow ? 6 : 8);
  const [edge, start] = [right.x - width / 2, left.x + width / 2];
  trunk(scene, `M${start} ${memory + 20}H${(edge + start) / 2}V${gate}H${edge - 6}`, [edge, gate, -1]);
}

function drawLayer(scene, side) {
  const [out, free] = side === "decoder" ? [1, scene.narrow ? 84 : 140] : [-1, 0];
  const width = Math.min(scene.width - 46 - free, 300);
  const column = newColumn(scene, out, scene.width / 2 + (free - out * 26) / 2, width, 26, 13);
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

const tip = ([x, y, way, letter]) => [
  svg("path", { class: "head", d: `M${x} ${y}l${way ? `${way * 6} -4v8` : "-4 6h8"}z` }),
  letter ? svg("text", { class: "name", x: x + 9, y: y + 14, text: letter }) : null,
];
const colours = (tone) => `--c: var(--tt-${tone}, var(--tt-masked)); --l: var(--tt-${tone}-line, currentColor)`;

/** A sentence: a chip for each word, around the point to which it is carried. */
function paintWords(id, { laid, unit }, run) {
  const tone = /^(sou|a)/.test(id) ? "memory" : "decoder";
  return svg(
    "g",
    {
      class: `words${id === "softmax" ? " out" : ""}${run ? " pick" : ""}`,
      "data-words": id,
      style: `--size: ${1.75 * unit}px; ${colours(tone)}`,
      "aria-hidden": "true",
    },
    ...laid.map(([text, x, y, width], i) =>
      svg(
        "g",
        { "data-word": i },
        svg("rect", { class: "shape", x, y, width, height: 20, rx: 6 }),
        svg("text", { x: x + width / 2, y: y + 14.5, text }),
      ),
    ),
  );
}

/** Who looks where: an attention, whose words ask, which are asked, and at which step. */
const LOOKS = [
  ["encoder.self_attention", "source_ids", "source_ids", 3],
  ["decoder.self_attention", "target_ids", "target_ids", 5],
  ["decoder.cross_attention", "target_ids", "arrow", 6],
];

/** Lines from each word that asks to each that it may look at, as thick as the weight where it is known. */
function webOf({ nodes, laid, run }, [id, asks, asked]) {
  const { x, y, height } = nodes.find((node) => node.id === id);
  const top = y + height - laid[asks].row - 4;
  const middles = (name) => laid[name].laid.map(([, left, down, wide]) => [x + left + wide / 2, down]);
  const paths = middles(asks).flatMap(([to, down], i) =>
    middles(asked).flatMap(([from, below], j) => {
      if (id === "decoder.self_attention" && j > i) return [];
      const weight = run?.weights[id][i][j];
      const [lift, start] = [asks === asked ? 22 : 0, top + down];
      const end = lift ? top + below : y + 38 + below;
      const d = lift
        ? i === j
          ? `M${to} ${start}c-8 -14 8 -14 0 0`
          : `M${to} ${start}Q${(to + from) / 2} ${Math.min(start, end) - lift} ${from} ${end}`
        : `M${to} ${start}L${from} ${end}`;
      return [svg("path", { d, "data-asks": i, style: run ? `--w: ${0.4 + 9 * weight}` : null })];
    }),
  );
  return svg("g", { class: "web", "data-web": id }, ...paths);
}

function paintPart(scene, { id, x, y, width, height, tone, lines = [], bold, notes, head, path }, order) {
  const first = y + (height < 17 ? height - 3.5 : 15);
  const text = (text, i) => svg("text", { class: i < bold ? "name" : "", x, y: first + 14 * i, text });
  return svg(
    "g",
    {
      class: `part ${notes ? "frame" : path ? id : ""}`,
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
      : [svg("rect", { class: "shape", x: x - width / 2, y, width, height, rx: 10 })]),
    ...lines.map(text),
    ...(notes || []).map(([text, x, y]) => svg("text", { x, y, text })),
    ...(head ? tip(head) : []),
  );
}

/** The parts in the order of computing. */
function paint(scene) {
  (scene.level === "full" ? drawFull : drawLayer)(scene, scene.level);
  const top = Math.min(...scene.nodes.map(({ y }) => y ?? 0)) - (scene.laid ? 2 : 18);
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
    ...Object.entries(scene.laid || {}).map(([id, words]) => paintWords(id, words, scene.run)),
    ...(scene.laid ? LOOKS.map((look) => webOf(scene, look)) : []),
  );
}

/** What to do on a level; words can be tapped where they have numbers, and under post-norm a norm stands on the stream. */
const lookAt = (levels, { level, pre, run }) =>
  level === "encoder" && !pre
    ? "Follow the lines on the left: each sublayer adds to the stream, and a norm behind it changes all that passes. Tap any part."
    : level === "full" && run
      ? levels[level][1].replace("a part", "a word or a part")
      : levels[level][1];

const MET = "The two have met in one kind of box only, cross-attention: there the target asks and the source answers.";

/** In which part a sentence stands after each step. */
const UP = "source_ids source_ids source_embedding encoder.self_attention memory";
const WAYS = {
  source_ids: UP,
  arrow: `${UP} memory decoder.cross_attention`,
  target_ids:
    "target_ids target_ids target_embedding target_embedding target_embedding decoder.self_attention " +
    "decoder.cross_attention decoder.feed_forward logits decoder.cross_attention",
  softmax: "softmax",
};
const traitOf = (name) => (/get|max/.test(name) ? "target_word" : "source_word");

function carry(picture, { nodes, laid, run, narrow, step, ...scene }) {
  for (const group of picture.querySelectorAll("[data-words]")) {
    const name = group.dataset.words;
    const way = WAYS[name].split(" ");
    const id = way[Math.min(step, way.length - 1)];
    const { y, height } = nodes.find((node) => node.id === id);
    const { x } = nodes.find((node) => node.id === id.replace("embedding", "ids")); // the column's middle
    const { row } = laid[name];
    const top = /embed/.test(id) ? -row - 4 : name === "arrow" && /cross/.test(id) ? 20 : height - row - 4;
    group.style.transform = `translate(${x}px, ${y + top}px)`;
    const { classList } = picture.querySelector(`[data-id="${id}"]`);
    if (name === "target_ids") picture.querySelectorAll(".told").forEach((part) => part.classList.remove("told"));
    if (narrow && /der\.(self|feed)|logits|softmax/.test(id) && name[0] !== "a")
      classList.toggle("told", name !== "softmax" || step > 8);
    group.classList.toggle("met", step > 5 && /get|max/.test(name));
    group.classList.toggle("gone", name === "softmax" && step < 9);
    for (const word of group.children)
      word.classList.toggle("on", !!run && +word.dataset.word === scene[traitOf(name)]);
  }
  for (const [id, asks, , at] of LOOKS) {
    const web = picture.querySelector(`[data-web="${id}"]`);
    web.classList.toggle("gone", step !== at && (at < 6 || step < 9));
    for (const path of web.children)
      path.classList.toggle("other", !!run && +path.dataset.asks !== scene[traitOf(asks)]);
  }
}

/** The numbers of a step, for the words that are picked: `[a sentence, what is drawn below it]`. */
function numbersOf({ run, sizes, n_layers, step, ...scene }) {
  const [i, j] = [scene.source_word, scene.target_word];
  const [read, written] = [`“${run.tokens[i]}”`, `“${run.target[j]}”`];
  const strips = (id, k, tone) => {
    const numbers = run.vectors[id][k];
    const most = Math.max(...numbers.map(Math.abs));
    const cells = numbers.map((x) => make("i", { style: `--v: ${x / most}` }));
    const few = numbers.slice(0, 3).map((x) => formatNumber(x, 2));
    return [
      make("div", { class: "strip", style: colours(tone), "aria-hidden": "true" }, ...cells),
      make("span", {
        text: `${few.join(", ")}, …: a vector of ${sizes.d_model} numbers and length ${formatNumber(run.lengths[id][k], 1)}.`,
      }),
    ];
  };
  const chart = (rows, decimals, colour) => {
    const most = Math.max(...rows.map(([, value]) => value));
    const one = ([label, value]) => ({ label, share: value / most, text: formatNumber(value, decimals), colour });
    const half = rows.length > 6 ? Math.ceil(rows.length / 2) : rows.length;
    const parts = [rows.slice(0, half), rows.slice(half)].filter(({ length }) => length);
    return make("div", { class: "charts" }, ...parts.map((part) => bars().show(part.map(one))));
  };
  const last = `In the last of ${n_layers} layers, the mean of ${sizes.heads} heads:`;
  const looks = (id, k, keys) =>
    chart(
      keys.map((key, at) => [key, run.weights[id][k][at]]),
      3,
      "weights",
    );
  const best = (at) => run.best[j].map((row) => [row[0], row[at]]);
  return [
    [
      `${read} is row ${formatCount(run.ids[0][i])} of the table’s ${formatCount(sizes.vocab_size)}, ` +
        `${written} is row ${formatCount(run.ids[1][j])}.`,
    ],
    [`${read} has become a vector, and so has every word:`, ...strips("source_add", i, "memory")],
    [`${last} where ${read} looks. It adds up to 1.`, looks("encoder.self_attention", i, run.tokens)],
    [`${read} has heard the others, and leaves as a note:`, ...strips("memory", i, "memory")],
    [
      `${last} where ${written} looks. It adds up to 1.`,
      looks("decoder.self_attention", j, run.target.slice(0, j + 1)),
    ],
    [`${last} what ${written} asks. It adds up to 1.`, looks("decoder.cross_attention", j, run.tokens)],
    [
      `${written} alone goes through both maps; what comes out is added to it:`,
      ...strips("decoder.feed_forward", j, "decoder"),
    ],
    [
      `${written} gets a number for each of ${formatCount(sizes.vocab_size)} tokens. The largest:`,
      chart(best(1), 2, "decoder"),
    ],
    [`After ${written} the most probable is “${run.next[j]}”: it is written.`, chart(best(2), 3, "decoder")],
  ][step - 1];
}

function mark(picture, { steps, step, selected }) {
  for (const node of picture.querySelectorAll("[data-id], [data-to]")) {
    const { id, to } = node.dataset;
    node.classList.toggle("lit", !!steps[step - 1]?.[1].includes(id || to));
    node.classList.toggle("on", id === selected);
    node.setAttribute("aria-selected", id === selected);
  }
}

/** The traits of a sentence that the page's translator reads, where its words have room side by side. */
function readBy({ tokens, stations }, model) {
  const old = model.get("run");
  if (tokens.length > MOST_READ || tokens.join(" ") === old.tokens.join(" ")) return null;
  const run = { ...stations(MOST_WRITTEN), norm: old.norm };
  const [read, written] = [run.tokens, run.target];
  const sentences = { source_ids: read, target_ids: written, softmax: run.next };
  for (const [id, words] of Object.entries(sentences)) sentences[id] = words.join(" ");
  return {
    run,
    facts: { ...model.get("facts"), sentences },
    source_length: read.length,
    target_length: written.length,
    source_word: Math.min(model.get("source_word"), read.length - 1),
    target_word: Math.min(model.get("target_word"), written.length - 1),
  };
}

function render({ model, el, alone }) {
  const { steps, ...facts } = model.get("facts");
  const levels = table(facts.levels);
  const start = read(model);
  const set = (values) => setTraits(model, values);
  const go = (level) => set({ level, selected: "" });
  const card = openCard(el, {
    label: "The Transformer",
    question: "",
    invite: lookAt(levels, newScene(model, 0)),
    onReset: () => {
      controls.step.pause();
      // The sentence stays that of the translator.
      const { level, norm, selected, step } = start;
      const word = (side) => Math.min(start[`${side}_word`], model.get(`${side}_length`) - 1);
      set({ level, norm, selected, step, source_word: word("source"), target_word: word("target") });
    },
    css: CSS,
  });
  const controls = {
    norm: choice({
      label: "Norms",
      options: ["post", "pre"].map((norm) => [norm, `${norm}-norm`]),
      onChange: (norm) => set({ norm }),
    }),
    step: player({
      count: () => steps.length + 1,
      describe: (step) => `step ${step} of ${steps.length}`,
      onStep: (step) => set({ step, level: "full", selected: steps[step - 1]?.[1].at(-1) || "" }),
    }),
  };
  const picture = make("div", { class: "picture" });
  card.stage.append(picture);
  card.controls.append(controls.step.node, controls.norm.node);
  controls.step.node.children[1].classList.add("tt-call");
  const find = (name, value) => picture.querySelector(`[data-${name}="${value}"]`);
  const roving = rovingGrid(
    picture,
    (row) => find("row", row),
    () => ({ firstRow: 0, lastRow: 99, firstColumn: 0, lastColumn: 0 }),
  );
  const picked = (target) => {
    const { dataset, parentNode } = target.closest("[data-id], [data-word]");
    return dataset.id ? { selected: dataset.id } : { [traitOf(parentNode.dataset.words)]: +dataset.word };
  };
  const pick = (event) => {
    const { id, word } = event.target.closest("[data-id], .pick [data-word]")?.dataset || {};
    if (word) return set(picked(event.target));
    const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter" && levels[id]) go(id);
    else if (along && painted?.run) {
      // The words of the side that works: the decoder's from the step at which it begins.
      const [trait, words] = model.get("step") > 4 ? ["target_word", "target"] : ["source_word", "tokens"];
      const to = model.get(trait) + along;
      if (painted.run[words][to]) set({ [trait]: to });
    } else if (id && !event.key && id !== model.get("selected")) set({ selected: id });
  };
  for (const kind of ["focusin", "click", "keydown"]) picture.addEventListener(kind, pick);
  // Pointing shows what tapping keeps.
  preview(picture, (event) => {
    under = event?.target.closest("[data-id], .pick [data-word]");
    if (under) card.root.dataset.acted = "1";
    update();
  });
  let [drawn, painted, under] = ["", null, null];
  const update = () => {
    const seen = picture.clientWidth || 320;
    const scene = newScene(model, model.get("level") === "full" && seen > 460 ? seen / 1.2 : seen);
    if (under?.isConnected) Object.assign(scene, picked(under));
    const now = `${scene.width},${TRAITS.slice(1, 6).map((name) => scene[name])}`;
    if (now !== drawn) {
      const focused = picture.contains(card.root.getRootNode().activeElement);
      refill(picture, paint(scene));
      painted = scene;
      const first = find("id", scene.selected) || find("row", 99);
      roving.makeStop(first);
      if (focused) first.focus();
    }
    drawn = now;
    card.root.dataset.level = scene.level;
    card.root.querySelector(".tt-question").textContent =
      scene.level === "full" ? "Where do the two sentences meet?" : "What happens in here?";
    mark(picture, scene);
    if (painted.laid) carry(picture, { ...scene, nodes: painted.nodes, laid: painted.laid });
    for (const [name, control] of Object.entries(controls)) control.set(scene[name]);
    const full = scene.level === "full";
    controls.norm.node.hidden = full;
    controls.step.node.hidden = !full;
    const [title, made] = (full && steps[scene.step - 1]) || [];
    const words = scene.selected ? scene.words(scene.selected) : [lookAt(levels, scene)];
    const example = scene.selected && scene.example(scene.selected);
    const line = (text) => make("span", { text });
    const look = (label, level) => button({ label, onClick: () => go(level) });
    const goes = made?.at(-1) === scene.selected; // it is the step that is told
    const end = scene.step === steps.length;
    let about = example ? words.with(1, example + words[1]) : words;
    if (goes) about = [`${title}.`, end ? MET : example || words[1].split(/(?<=\.) /)[0]];
    if (goes && scene.run) about = [`${title}.`, ...numbersOf(scene), end ? `${MET.split(":")[0]}.` : null];
    card.find(
      ...about.filter(Boolean).map((part) => (part.nodeType ? part : line(part))),
      !goes && levels[scene.selected] && scene.selected !== scene.level ? look("Look inside", scene.selected) : null,
      full ? null : look("Back to the whole", "full"),
    );
  };
  const stop = onTraits(model, TRAITS, () => {
    under = null; // what was done counts, wherever the mouse rests
    update();
  });
  // The words that are read, and, by their places in the translation, those that are written.
  const run = () => ({ tokens: [], target: [], ...model.get("run") });
  const shares = [
    shareWord(
      model,
      "source_word",
      (at) => at,
      (source_word) => ({ source_word }),
      () => run().tokens,
    ),
    shareWord(
      model,
      "target_word",
      (at) => at - 1,
      (at) => run().target[at + 1] && { target_word: at + 1 },
      () => [...run().tokens, "→"],
    ),
  ];
  const follow = ({ detail }) => {
    const values = readBy(detail, model);
    if (!values) return;
    drawn = "";
    set(values);
  };
  if (alone && model.get("follows")) document.addEventListener("tt-sentence", follow);
  const watcher = new ResizeObserver(update);
  watcher.observe(picture);
  update();
  const still = moveOnce(card, model, { step: 2 });
  return () =>
    [stop, still, ...shares, () => document.removeEventListener("tt-sentence", follow), controls.step.close, () => watcher.disconnect(), card.close].forEach((end) => end());
}

export default { render };
