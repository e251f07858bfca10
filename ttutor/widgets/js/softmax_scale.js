// Softmax and scale: one draw of scores, its softmax, and what is left of the gradient, by the
// width of the head.
import { button, choice, slider, toggle } from "./controls.js";
import { css, formatNumber, make, onTraits, openFrame, refill, setTraits, svg } from "./core.js";
import { bars, chart } from "./drawing.js";

const CSS = css`
  .tt {
    --tt-now-line: currentColor;
  }
  .sides {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem 1.5rem;
  }
  .sides > * {
    flex: 1 1 18rem;
    min-width: 0;
  }
  .key:has([stroke*="now"]) svg {
    display: none;
  }
  .draw text {
    font-size: 12px;
    fill: currentColor;
  }
  .draw line {
    stroke: currentColor;
    stroke-opacity: 0.25;
  }
  .draw circle {
    fill: var(--tt-page);
    stroke: currentColor;
  }
  .unit {
    fill: color-mix(in srgb, currentColor 14%, transparent);
  }
  .weight {
    fill: var(--tt-weights);
    stroke: var(--tt-weights-line);
  }
`;
const WIDTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const NAMES = ["width", "n_keys", "scaled", "temperature", "draw", "quantity"];
const drawn = {};

const sum = (list) => list.reduce((total, value) => total + value, 0);
const two = (value) => formatNumber(value, 2);

/** The query's product with each key at every width: mulberry32 and Box-Muller, as in Python. */
function products(draw) {
  if (drawn[draw]) return drawn[draw];
  let state = Math.imul(draw, 0x9e3779b9);
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log1p(-uniform())) * Math.cos(2 * Math.PI * uniform());
  let sums = new Array(64).fill(0);
  drawn[draw] = {};
  for (let feature = 1; feature <= 1024; feature += 1) {
    const query = normal();
    sums = sums.map((total) => total + query * normal());
    drawn[draw][feature] = WIDTHS.includes(feature) && sums;
  }
  return drawn[draw];
}

function measure(get) {
  const [width, keys] = [get("width"), get("n_keys")];
  const divisor = (get("scaled") ? Math.sqrt(width) : 1) * get("temperature");
  const scores = products(get("draw"))
    [width].slice(0, keys)
    .map((product) => product / divisor);
  const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
  const weights = powers.map((power) => power / sum(powers));
  const squares = sum(weights.map((weight) => weight * weight));
  const gradient = Math.sqrt(
    sum(
      weights.map(
        (weight) => weight * weight * ((1 - weight) ** 2 + Math.max(squares - weight * weight, 0)),
      ),
    ),
  );
  const spread = Math.sqrt(sum(scores.map((score) => (score - sum(scores) / keys) ** 2)) / keys);
  return {
    scores,
    weights,
    gradient,
    most: Math.log2(keys),
    dead: Number(gradient < 0.01),
    entropy: -sum(weights.map((weight) => (weight > 0 ? weight * Math.log2(weight) : 0))),
    text:
      `Scores: q·k / ${two(divisor)}. Standard deviation ${two(spread)}; ` +
      `expected √${width} / ${two(divisor)} = ${two(Math.sqrt(width) / divisor)}.`,
  };
}

/** Each key a column, its score a dot above, its weight a bar below; x in percent, y in pixels. */
function picture({ scores, weights }) {
  let reach = 4;
  while (reach < Math.max(...scores.map(Math.abs))) reach *= 2;
  const y = (score) => 95 - (75 * score) / reach;
  const x = (key, part) => `${(100 * (key + part)) / scores.length}%`;
  const lines = (...all) =>
    all.flatMap(([at, text]) => [
      svg("line", { x2: "100%", y1: at, y2: at }),
      svg("text", { y: at - 3, text }),
    ]);
  return [
    svg("rect", { class: "unit", width: "100%", y: y(1), height: 150 / reach }),
    ...lines([20, `score ${reach}`], [95, "0"], [170, `−${reach}`], [200, "weight 1"], [290, "0"]),
    ...scores.map((score, key) =>
      svg("circle", {
        "data-value": score.toFixed(9),
        cx: x(key, 0.5),
        cy: y(score),
        r: scores.length > 32 ? 2.5 : 4,
      }),
    ),
    ...weights.map((weight, key) =>
      svg("rect", {
        class: "weight",
        "data-value": weight.toFixed(9),
        x: x(key, 0.2),
        width: x(0, 0.6),
        y: 290 - 90 * weight,
        height: 90 * weight,
      }),
    ),
  ];
}

function lines(state, get) {
  const name = get("quantity");
  const series = get("curves")[get("n_keys")][name].map((values, i) => ({
    name: i ? "scaled" : "not scaled",
    colour: i ? "query" : "loss",
    dots: true,
    points: values.map((value, j) => [WIDTHS[j], value]),
  }));
  series.push({
    name: "● this draw",
    colour: "now",
    dots: true,
    points: [[get("width"), state[name]]],
  });
  return {
    series,
    title: get("lesson")[2],
    x: { label: "width d_head", domain: [1, 1024], log: true, format: String },
    y: {
      label: name,
      domain: [0, { entropy: state.most, gradient: 0.5, dead: 1 }[name]],
      format: two,
    },
  };
}

function controlsFor(get, change, initial) {
  const power = (label, name, min, max, parts, format = String) => [
    name,
    slider({
      label,
      min,
      max,
      step: 1,
      format: (exponent) => format(2 ** (exponent / parts)),
      onInput: (exponent) => change({ [name]: 2 ** (exponent / parts) }),
    }),
    (value) => parts * Math.log2(value),
  ];
  const all = [
    power("Width d_head", "width", 0, 10, 1),
    power("Keys", "n_keys", 2, 6, 1),
    power("Temperature", "temperature", -4, 10, 2, two),
    [
      "scaled",
      toggle({ label: "divide by √d_head", onChange: (scaled) => change({ scaled }) }),
      Boolean,
    ],
    [
      "quantity",
      choice({
        label: "Line:",
        onChange: (quantity) => change({ quantity }),
        options: [
          ["entropy", "entropy (bits)"],
          ["gradient", "gradient"],
          ["dead", "share dead"],
        ],
      }),
      String,
    ],
  ];
  const nodes = all.map(([, control]) => control.node);
  nodes.splice(
    4,
    0,
    button({ label: "Another draw", onClick: () => change({ draw: (get("draw") + 1) % 2 ** 20 }) }),
    button({ label: "Reset", onClick: () => change(initial) }),
  );
  return {
    nodes,
    show: () => all.forEach(([name, control, from]) => control.set(from(get(name)))),
  };
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Softmax and scale", CSS);
  const get = (name) => model.get(name);
  const drawing = svg("svg", {
    class: "draw",
    height: 292,
    width: "100%",
    role: "img",
    "aria-label": "Scores as dots, weights as bars",
  });
  const [text, panel, plot] = [
    make("p"),
    make("div"),
    chart({ label: "Averages by width", height: 220 }),
  ];
  const change = (values) => {
    setTraits(model, values);
    say(`${text.textContent} ${panel.innerText}`);
  };
  const controls = controlsFor(
    get,
    change,
    Object.fromEntries(NAMES.map((name) => [name, get(name)])),
  );
  root.append(
    make("div", { class: "tt-controls" }, ...controls.nodes.slice(0, 6)),
    make("div", { text: get("lesson")[0] }),
    text,
    make(
      "div",
      { class: "sides" },
      make("div", {}, drawing),
      make("div", {}, panel, controls.nodes[6], plot.node),
    ),
  );
  const draw = () => {
    const state = measure(get);
    const { entropy, most, weights, gradient, dead } = state;
    const top = Math.max(...weights);
    controls.show();
    text.textContent = state.text;
    refill(drawing, ...picture(state));
    refill(
      panel,
      bars().show(
        [
          ["entropy", entropy / most, `${two(entropy)} of ${two(most)} bits`],
          ["largest weight", top, formatNumber(top)],
          ["gradient", gradient / 0.5, formatNumber(gradient, 4) + (dead ? ": dead" : ""), "loss"],
        ].map(([label, share, number, colour]) => ({ label, share, text: number, colour })),
      ),
      make("div", { class: "tt-note", text: get("lesson")[1] }),
    );
    plot.draw(lines(state, get));
  };
  const stops = [onTraits(model, [...NAMES, "curves"], draw), plot.close, close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
