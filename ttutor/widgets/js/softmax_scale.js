// Two races: the same eight keys with raw scores and with scores divided by the root of the width,
// on the same axes, while the head gets wider.
import { button, slider } from "./controls.js";
import { css, formatNumber, moveOnce, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .funnel {
    fill: color-mix(in srgb, currentColor 10%, transparent);
  }
  .axis {
    stroke: currentColor;
    stroke-opacity: 0.35;
  }
  .path {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.35;
    stroke-width: 0.8;
  }
  .key {
    fill: var(--tt-key);
    stroke: var(--tt-key-line);
  }
  .path.lead {
    stroke: var(--tt-key-line);
    stroke-opacity: 1;
    stroke-width: 3;
  }
  .weight {
    fill: color-mix(in srgb, var(--tt-weights) var(--part, 35%), var(--tt-page));
  }
  .weight.lead {
    --part: 100%;
  }
  .meter {
    fill: color-mix(in srgb, currentColor 10%, transparent);
  }
  .left {
    fill: var(--tt-loss);
  }
  .tt-picture text {
    font-size: 0.9375rem;
  }
  .tt-picture .name {
    font-weight: 600;
  }
  .tt-picture .most {
    font-size: 1.25rem;
    font-weight: 700;
  }
  @container (max-width: 27rem) {
    .tt-slider {
      flex-basis: 9rem;
      input {
        width: 0;
      }
    }
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const KEYS = 8;
const [GOAL, MOST] = [6, 10]; // the paper's head and the widest have 2 to this power features
/** Of the axis of scores, in which twice the expected spread has room; on a narrow head as much as on one of 100. */
const reachAt = (width) => Math.max(22, 2.1 * Math.sqrt(width));
const TRACE = Array.from({ length: 8 * MOST + 1 }, (_, i) => Math.round(2 ** (i / 8)));
const drawn = {};

const sum = (list) => list.reduce((total, value) => total + value, 0);
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;

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
  drawn[draw] = [new Array(KEYS).fill(0)];
  for (let feature = 1; feature <= 2 ** MOST; feature += 1) {
    const query = normal();
    drawn[draw].push(drawn[draw][feature - 1].map((total) => total + query * normal()));
  }
  return drawn[draw];
}

/** One race: its scores on the way to this width, its weights, and what is left of its gradient. */
function race(get, divide) {
  const [width, at] = [get("width"), products(get("draw"))];
  const scoresAt = (features) => at[features].map((product) => (divide ? product / Math.sqrt(features) : product));
  const scores = scoresAt(width);
  const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
  const [exponent, line] = [Math.log2(width), get("gradients")[Number(divide)]];
  const [low, high] = [Math.floor(exponent), Math.ceil(exponent)];
  return {
    divide,
    trace: [...TRACE.filter((features) => features < width), width].map((features) => [
      Math.log2(features),
      scoresAt(features),
    ]),
    scores,
    weights: powers.map((power) => power / sum(powers)),
    left: line[low] + (exponent - low) * (line[high] - line[low]),
    top: 1 / sum(powers), // the largest power is 1
  };
}

/** A race from top to bottom: how the scores spread as the head widens, the shares, the gradient. */
function drawRace({ divide, trace, scores, weights, left, top }, from, to, get) {
  const key = (name) => `${name}${Number(divide)}`;
  const [start, end, middle] = [from + 26, to - 8, 88];
  const x = (exponent) => start + (exponent / MOST) * (end - start);
  const [reach, widest] = [reachAt(get("width")), Math.log2(get("width")) + 0.001];
  const y = (score) => middle - (64 * score) / reach;
  const spread = (sign) =>
    Array.from({ length: 21 }, (_, i) => {
      const exponent = (i / 20) * Math.max(widest, 2 * Math.log2(10.4));
      return `${x(exponent).toFixed(1)} ${y(sign * (divide ? 1 : 2 ** (exponent / 2)) * 2).toFixed(1)}`;
    });
  const lead = weights.indexOf(top);
  const [slot, floor, high] = [(end - start) / KEYS, 297, 92];
  return [
    [key("name"), "text", { class: "name maths", x: start, y: 14, text: divide ? "scores ÷ √d" : "raw scores" }],
    [key("funnel"), "path", { class: "funnel", d: `M${spread(1).join("L")}L${spread(-1).reverse().join("L")}Z` }],
    ...[-1, 0, 1].map((side) => side * (reach > 50 ? 50 : 20)).flatMap((score, i) => [
      [key(`line${i}`), "path", { class: "axis", d: `M${start} ${y(score)}H${end}` }],
      [
        key(`tick${i}`),
        "text",
        { x: start - 4, y: y(score) + 4, "text-anchor": "end", text: score ? formatNumber(score, 0) : "" },
      ],
    ]),
    ...scores.map((_, i) => [
      key(`path${i}`),
      "path",
      {
        class: i === lead ? "path lead" : "path",
        d: `M${trace.map(([exponent, all]) => `${x(exponent).toFixed(1)} ${y(all[i]).toFixed(1)}`).join("L")}`,
      },
    ]),
    ...scores.map((score, i) => [
      key(`key${i}`),
      "circle",
      {
        class: "key",
        "data-value": score.toFixed(9),
        cx: x(Math.log2(get("width"))),
        cy: y(score),
        r: i === lead ? 8 : 4.5,
      },
    ]),
    [
      key("most"),
      "text",
      {
        class: "most",
        x: Math.min(Math.max(start + (lead + 0.5) * slot, start + 22), end - 22),
        y: floor - high * top - 6,
        "text-anchor": "middle",
        text: percent(top),
      },
    ],
    ...weights.map((weight, i) => [
      key(`weight${i}`),
      "rect",
      {
        class: i === lead ? "weight lead" : "weight",
        "data-value": weight.toFixed(9),
        x: start + (i + 0.12) * slot,
        width: 0.76 * slot,
        y: floor - high * weight,
        height: high * weight,
        rx: 2,
      },
    ]),
    [key("floor"), "path", { class: "axis", d: `M${start} ${floor}H${end}` }],
    [key("meter"), "rect", { class: "meter", x: start, y: 329, width: end - start - 48, height: 10, rx: 5 }],
    [key("bar"), "rect", { class: "left", x: start, y: 329, width: (end - start - 48) * left, height: 10, rx: 5 }],
    [key("share"), "text", { x: end, y: 339, "text-anchor": "end", text: percent(left) }],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { width: get("width"), draw: get("draw") };
  const card = openCard(el, {
    label: "Two races",
    question: "Why divide by √d?",
    invite: "Drag the width to the mark, that of the paper: on which side does one key take all?",
    onReset: () => set(initial),
    css: CSS,
  });
  const picture = stage({
    label: "Scores of eight keys by the width of the head, raw and scaled, and their softmax",
    height: 365,
    draw: (_, width) => [
      ...drawRace(race(get, false), 0, width / 2 - 6, get),
      ...drawRace(race(get, true), width / 2 + 6, width, get),
      ["shares", "text", { class: "name", x: 26, y: 172, text: "how the attention is shared out" }],
      ["left", "text", { class: "name", x: 26, y: 318, text: "what a mistake still teaches" }],
      ["draws", "text", { x: 26, y: 358, text: "mean of 200 draws" }],
    ],
  });
  const width = slider({
    label: "Width d",
    min: 0,
    max: MOST,
    step: 0.125,
    format: (exponent) => String(Math.round(2 ** exponent)),
    onInput: (exponent) => set({ width: Math.round(2 ** exponent) }),
  });
  card.stage.append(picture.node);
  card.controls.append(
    width.node,
    button({ label: "Other keys", onClick: () => set({ draw: (get("draw") + 1) % 2 ** 20 }) }),
  );
  const share = GOAL / MOST;
  width.input.style.background = `linear-gradient(var(--tt-weights-line) 0 0) calc(${share} * (100% - 20px) + 8px) / 4px no-repeat`;
  card.caption.textContent =
    "Eight random keys; thick: the leader. Grey: twice the expected spread. Meter: how far a mistake still moves the shares.";

  const draw = () => {
    width.set(Math.log2(get("width")));
    picture.show({}, 0);
    const [raw, scaled] = [race(get, false), race(get, true)];
    card.find(
      raw.top - scaled.top < 0.1
        ? `Here the sides hardly differ: ${percent(raw.top)} and ${percent(scaled.top)}.`
        : `Left one key takes ${percent(raw.top)}, because scores grow with the width; right, divided by √d, ` +
            `${percent(scaled.top)}. In the mean of 200 draws a mistake moves the shares by ${percent(raw.left)} of what it could at most on the left, by ${percent(scaled.left)} on the right.`,
    );
  };
  const stops = [
    onTraits(model, ["width", "draw", "gradients"], draw),
    moveOnce(card, model, { width: Math.min(4 * initial.width, 2 ** MOST) }),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
