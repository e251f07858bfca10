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
  .trace,
  .axis,
  .other,
  .curve {
    fill: none;
    stroke: currentColor;
  }
  .trace {
    stroke: var(--tt-memory-line);
    stroke-opacity: 0.45;
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
  @container (max-width: 27rem) {
    .tt-slider {
      flex-basis: 9rem;
    }
  }
`;
const RUNS = ["attention", "skips", "networks", "both"];
const NARROW = 560;

/** Names beside their dots, pushed apart where dots lie close together: `[x, y]` of each. */
function namesOf(dots, low, high) {
  const order = dots.map((_, i) => i).sort((a, b) => dots[a][1] - dots[b][1]);
  const gap = Math.min(19, (high - low) / dots.length);
  const down = [];
  order.forEach((i, at) => {
    down[i] = Math.max(dots[i][1], at ? down[order[at - 1]] + gap : low);
  });
  const over = Math.max(0, down[order.at(-1)] - high);
  [...order].reverse().forEach((i, at, all) => {
    down[i] = Math.min(down[i], at ? down[all[at - 1]] - gap : down[i] - over);
  });
  return down;
}

/** The words in their plane, each with its name at the edge. */
function drawWords({ places }, { left, top, side, names }, { tokens, reach }) {
  const middle = [left + side / 2, top + side / 2];
  const unit = (side / 2 - 14) / reach;
  const dots = places.map(([x, y]) => [middle[0] + unit * x, middle[1] - unit * y]);
  const down = namesOf(dots, top + 12, top + side - 8);
  return [
    ["room", "rect", { class: "room", x: left, y: top, width: side, height: side, rx: 10 }],
    ...dots.map(([x, y], i) => [
      `trace${i}`,
      "path",
      { class: "trace", d: `M${x.toFixed(1)} ${y.toFixed(1)}L${names - 4} ${down[i].toFixed(1)}` },
    ]),
    ...dots.map(([x, y], i) => [
      `dot${i}`,
      "circle",
      { class: "dot", cx: x, cy: y, r: 8, "data-value": Math.hypot(...places[i]).toFixed(9) },
    ]),
    ...tokens.map((text, i) => [`name${i}`, "text", { x: names, y: down[i] + 5, text }]),
  ];
}

/** The spread after each layer, of this stack and, dashed, of the other three. */
function drawSpread({ depth, spread }, { left, right, top, floor }, { spreads, run }) {
  const n = spreads[run].length - 1;
  const x = (at) => left + (at / n) * (right - left);
  const y = (value) => floor - value * (floor - top);
  // Only as far as the reader has gone.
  const line = (values) => {
    const low = Math.min(Math.floor(depth), n - 1);
    const end = values[low] + (depth - low) * (values[low + 1] - values[low]);
    const points = [...values.slice(0, low + 1).map((value, at) => [at, value]), [depth, end]];
    return `M${points.map(([at, value]) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
  };
  return [
    ["title", "text", { x: left, y: top - 12, text: "spread" }],
    ["axis", "path", { class: "axis", d: `M${left} ${top}V${floor}H${right}` }],
    ["one", "text", { x: left - 6, y: top + 5, "text-anchor": "end", text: "1" }],
    ["zero", "text", { x: left - 6, y: floor + 5, "text-anchor": "end", text: "0" }],
    ["first", "text", { x: left, y: floor + 20, text: "no layer" }],
    ["last", "text", { x: right, y: floor + 20, "text-anchor": "end", text: `${n} layers` }],
    ...RUNS.filter((one) => one !== run).map((one) => [one, "path", { class: "other", d: line(spreads[one]) }]),
    ["curve", "path", { class: "curve", d: line(spreads[run]) }],
    ["here", "circle", { class: "dot", cx: x(depth), cy: y(spread), r: 7 }],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const changes = ["depth", "skips", "networks"];
  const initial = Object.fromEntries(changes.map((name) => [name, get(name)]));
  const run = () => RUNS[Number(get("skips")) + 2 * Number(get("networks"))];
  const reach = Math.max(
    ...Object.values(get("places"))
      .flat(2)
      .map((place) => Math.hypot(...place)),
  );
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
    height: (width) => (width < NARROW ? 326 : 330),
    draw: (numbers, width) => {
      const narrow = width < NARROW;
      const side = narrow ? Math.min(width - 92, 190) : 322;
      const words = { left: 0, top: 4, side, names: side + 14 };
      const curve = narrow
        ? { left: 18, right: width - 4, top: side + 40, floor: 300 }
        : { left: side + 130, right: width - 4, top: 34, floor: 300 };
      return [
        ...drawWords(numbers, words, { tokens: get("tokens"), reach }),
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
    "Dots: the words of a sentence in fresh layers, untrained, in the plane where they differ most. Dashed: the other three stacks.";
  const draw = () => {
    const [at, name] = [get("depth"), run()];
    depth.set(at);
    skips.set(get("skips"));
    networks.set(get("networks"));
    picture.show({ depth: at, spread: get("spreads")[name][at], places: get("places")[name][at] });
    card.find(findingOf(at, get("spreads")[name], get("skips"), get("networks")));
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
