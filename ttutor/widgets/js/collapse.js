// All words become equal: the words of a sentence as dots that fall together, or stay apart, layer by layer.
import { slider, toggle } from "./controls.js";
import { css, formatNumber, moveOnce, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .dot {
    fill: var(--tt-memory);
    stroke: var(--tt-memory-line);
    stroke-width: 2;
  }
  .room {
    fill: color-mix(in srgb, currentColor 4%, transparent);
  }
  .trail,
  .trace,
  .axis,
  .other,
  .curve {
    fill: none;
    stroke: currentColor;
  }
  .trail {
    stroke: var(--tt-memory);
    stroke-opacity: 0.6;
    stroke-width: 2;
    stroke-linecap: round;
    stroke-linejoin: round;
  }
  .trace {
    stroke-opacity: 0.3;
  }
  .axis {
    stroke-opacity: 0.3;
  }
  .other {
    stroke-opacity: 0.35;
    stroke-dasharray: 4 4;
  }
  .curve {
    stroke: var(--tt-memory-line);
    stroke-width: 3;
  }
  .tt-picture text {
    font-size: 0.9375rem;
  }
  .tt-picture .name {
    paint-order: stroke;
    stroke: var(--tt-page);
    stroke-width: 3;
  }
  .tt-picture .small {
    font-size: 0.8125rem;
  }
  .tt-picture .on {
    font-weight: 600;
  }
  @container (max-width: 27rem) {
    .tt-slider {
      flex-basis: 9rem;
    }
  }
`;
const RUNS = ["attention", "skips", "networks", "both"];
const NARROW = 560;
const [TALL, LOW] = [330, 214]; // heights of the plane: beside the curve, and above it
const [LINE, DOT] = [18, 8];

const path = (points) => `M${points.map((point) => point.map((one) => one.toFixed(1)).join(" ")).join("L")}`;

/** The pixels of a place in a plane of this size. */
function pixels(side, height, [left, right, bottom, top]) {
  const unit = (height - 46) / (top - bottom);
  return ([x, y]) => [side / 2 + unit * (x - (left + right) / 2), height / 2 - unit * (y - (bottom + top) / 2)];
}

/**
 * Where each name stands beside its dot, `[across, down]`: in the direction in which the word lay first, if that is
 * free; else turned, and else further out.
 */
function namesOf(dots, homes, wide, high) {
  const taken = dots.map(([x, y]) => [x, y, 2 * DOT, 2 * DOT]);
  const free = ([x, y, width, height]) =>
    y - LINE / 2 >= 2 &&
    y + LINE / 2 <= high - 2 &&
    taken.every(([left, top, w, h]) => 2 * Math.abs(x - left) >= width + w || 2 * Math.abs(y - top) >= height + h);
  return dots.map(([x, y], i) => {
    for (let ring = 0; ring < 12; ring += 1)
      for (let turn = 0; turn < 16; turn += 1) {
        const angle = homes[i] + (Math.ceil(turn / 2) * (turn % 2 ? 1 : -1) * Math.PI) / 8;
        const across = Math.cos(angle) * (wide[i] / 2 + 11 + 14 * ring);
        const down = Math.sin(angle) * (LINE + LINE * ring);
        const box = [x + across, y + down, wide[i], LINE];
        if (!free(box)) continue;
        taken.push(box);
        return [across, down];
      }
    return [0, 0];
  });
}

/** The words in their plane, each with its name beside it and the way that it came. */
function drawWords({ trails, names }, { side, height }, { tokens, box }) {
  const at = pixels(side, height, box);
  const dots = trails.map((trail) => at(trail.at(-1)));
  return [
    ["room", "rect", { class: "room", x: 0, y: 0, width: side, height, rx: 10 }],
    ...trails.map((trail, i) => [`trail${i}`, "path", { class: "trail", d: path(trail.map(at)) }]),
    ...dots.map(([x, y], i) => {
      const [across, down] = names[i];
      // A name that has room beside its dot needs no line.
      return (
        Math.abs(down) > LINE + 6 && [
          `trace${i}`,
          "path",
          {
            class: "trace",
            d: path([
              [x, y],
              [x + across * 0.8, y + down * 0.8],
            ]),
          },
        ]
      );
    }),
    ...dots.map(([x, y], i) => [
      `dot${i}`,
      "circle",
      { class: "dot", cx: x, cy: y, r: DOT, "data-value": Math.hypot(...trails[i].at(-1)).toFixed(9) },
    ]),
    ...tokens.map((text, i) => [
      `name${i}`,
      "text",
      { class: "name", x: dots[i][0] + names[i][0], y: dots[i][1] + names[i][1] + 5, "text-anchor": "middle", text },
    ]),
  ];
}

/** The spread after each layer, of this stack and, dashed, of the other three; each with its name at its end. */
function drawSpread({ depth, ends }, { left, right, top, floor }, { spreads, run }) {
  const n = spreads[run].length - 1;
  const x = (at) => left + (at / n) * (right - left);
  const y = (value) => floor - value * (floor - top);
  // Only as far as the reader has gone.
  const line = (values) => {
    const low = Math.min(Math.floor(depth), n - 1);
    const end = values[low] + (depth - low) * (values[low + 1] - values[low]);
    return path([...values.slice(0, low + 1).map((value, at) => [x(at), y(value)]), [x(depth), y(end)]]);
  };
  // Names of curves that end close together stand on one another, the lowest first.
  const down = [];
  let last = floor + 15;
  for (const i of RUNS.map((_, i) => i).sort((a, b) => ends[a] - ends[b]))
    down[i] = last = Math.min(y(ends[i]), last - 15);
  return [
    ["title", "text", { class: "small", x: left - 18, y: top - 12, text: "spread" }],
    ["axis", "path", { class: "axis", d: `M${left} ${top}V${floor}H${right}` }],
    ["one", "text", { class: "small", x: left - 6, y: top + 5, "text-anchor": "end", text: "1" }],
    ["zero", "text", { class: "small", x: left - 6, y: floor + 5, "text-anchor": "end", text: "0" }],
    ["first", "text", { class: "small", x: left, y: floor + 20, text: "no layer" }],
    ["last", "text", { class: "small", x: right, y: floor + 20, "text-anchor": "end", text: `${n} layers` }],
    ...RUNS.filter((one) => one !== run).map((one) => [one, "path", { class: "other", d: line(spreads[one]) }]),
    ["curve", "path", { class: "curve", d: line(spreads[run]) }],
    ["here", "circle", { class: "dot", cx: x(depth), cy: y(ends[RUNS.indexOf(run)]), r: 6 }],
    ...RUNS.map(
      (one, i) =>
        depth > 0 && [
          `called-${one}`,
          "text",
          {
            class: one === run ? "small on" : "small",
            x: x(depth) + 11,
            y: down[i] + 4,
            text: one === "attention" ? "neither" : one,
          },
        ],
    ),
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const changes = ["depth", "skips", "networks"];
  const initial = Object.fromEntries(changes.map((name) => [name, get(name)]));
  const run = () => RUNS[Number(get("skips")) + 2 * Number(get("networks"))];
  const [tokens, all] = [get("tokens"), Object.values(get("places")).flat(2)];
  const box = [0, 1].flatMap((axis) => [Math.min, Math.max].map((end) => end(...all.map((place) => place[axis]))));
  const n = get("spreads").both.length - 1;
  const card = openCard(el, {
    label: "All words become equal",
    question: "How deep can words go and stay different?",
    invite: "Drag the depth. Which of the two keeps the words apart: skips, or feed-forward networks?",
    onReset: () => set(initial),
    css: CSS,
  });
  const picture = stage({
    label: "Each word as a dot, and the words’ spread after each layer",
    height: (width) => (width < NARROW ? LOW + 136 : TALL),
    draw: ({ names, ...numbers }, width) => {
      const narrow = width < NARROW;
      const words = narrow ? { side: width, height: LOW } : { side: Math.min(width - 290, 480), height: TALL };
      const curve = narrow
        ? { left: 18, right: width - 72, top: LOW + 34, floor: LOW + 112 }
        : { left: words.side + 44, right: width - 76, top: 34, floor: TALL - 26 };
      return [
        ...drawWords({ ...numbers, names: names[+narrow] }, words, { tokens, box }),
        ...drawSpread(numbers, curve, { spreads: get("spreads"), run: run() }),
      ];
    },
  });
  const depth = slider({
    label: "Layers",
    min: 0,
    max: n,
    step: 1,
    format: String,
    plays: 0.5,
    onInput: (value) => set({ depth: value }),
  });
  const skips = toggle({ label: "skips", onChange: (skips) => set({ skips, depth: get("depth") || n }) });
  const networks = toggle({
    label: "feed-forward networks",
    onChange: (networks) => set({ networks, depth: get("depth") || n }),
  });
  card.stage.append(picture.node);
  card.controls.append(depth.node, skips.node, networks.node);
  card.caption.textContent =
    "A sentence’s words in untrained layers, in the plane where they differ most. Pale: the way each came.";
  const homes = get("places").both[0].map(([x, y]) => Math.atan2(-y, x));
  const wide = tokens.map((token) => 9 * token.length + 6);
  const draw = () => {
    const [at, name] = [get("depth"), run()];
    depth.set(at);
    skips.set(get("skips"));
    networks.set(get("networks"));
    const [stack, spreads] = [get("places")[name], get("spreads")];
    picture.show({
      depth: at,
      ends: RUNS.map((one) => spreads[one][at]),
      trails: tokens.map((_, i) => stack.map((_, depth) => stack[Math.min(depth, at)][i])),
      names: [TALL, LOW].map((height) => namesOf(stack[at].map(pixels(0, height, box)), homes, wide, height)),
    });
    card.find(findingOf(at, spreads[name], get("skips"), get("networks")));
  };
  const stops = [
    onTraits(model, changes, draw),
    moveOnce(card, model, { depth: Math.min(initial.depth + 2, n) }),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** What is left of the differences, and why. */
function findingOf(depth, spreads, skips, networks) {
  const left = formatNumber(spreads[depth], 2);
  if (!depth) return `Before the first layer the words are far apart: their spread is ${left}.`;
  const after = `After ${depth} ${depth === 1 ? "layer" : "layers"} the spread is ${left}`;
  if (skips) return `${after}: each word keeps what it was, and the averages of all words are only added to it.`;
  const reason = `each attention puts averages of all words in their place${networks ? ", and a network works on each word alone: on equal words it writes the same" : ""}`;
  return spreads[depth] < 0.005
    ? `${after}: all words are one vector, because ${reason}.`
    : `${after}, because ${reason}.`;
}

export default { render };
