// One word looks up: its query as an arrow to pull, the keys that it meets, and where its attention
// goes: the products, the shares and the blend, each word in its own column.
import { css, formatNumber, onTraits, openCard, setTraits, shareWord } from "./core.js";
import { choice } from "./controls.js";
import { arrow, preview, stage } from "./drawing.js";

const CSS = css`
  .arc {
    fill: none;
    stroke: var(--tt-weights);
    stroke-linecap: round;
  }
  .weight {
    fill: var(--tt-weights);
    stroke: var(--tt-weights-line);
  }
  .part {
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .product {
    fill: color-mix(in srgb, currentColor 25%, transparent);
    stroke: currentColor;
  }
  .value-part {
    fill: color-mix(in srgb, var(--tt-value) 55%, transparent);
    stroke: var(--tt-page);
  }
  .query-arrow,
  .key-arrow,
  .value-arrow {
    fill: none;
    stroke-linecap: round;
    stroke-linejoin: round;
    stroke-width: 3;
  }
  .query-arrow {
    stroke: var(--tt-query-line);
  }
  .key-arrow {
    stroke: var(--tt-key-line);
  }
  .value-arrow {
    stroke: var(--tt-value-line);
  }
  .shadow {
    stroke: var(--tt-key-line);
    stroke-width: 11;
    stroke-opacity: 0.8;
    stroke-linecap: round;
  }
  .handle {
    fill: var(--tt-query);
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .faint {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.3;
  }
  .asks {
    fill: color-mix(in srgb, var(--tt-query) 16%, transparent);
    stroke: var(--tt-query-line);
    stroke-width: 2;
  }
  .place {
    fill: transparent;
  }
`;

const STEPS = [
  ["project", "Look"],
  ["scores", "Compare"],
  ["scale", "Scale"],
  ["softmax", "Softmax"],
  ["blend", "Blend"],
];
const CHANGES = ["selected", "asked", "pulled", "step"];
const sum = (list) => list.reduce((total, value) => total + value, 0);
const dot = (one, other) => sum(one.map((value, i) => value * other[i]));
/** The cosine of the angle between two arrows. */
const alike = (one, other) => dot(one, other) / (Math.hypot(...one) * Math.hypot(...other) || 1);
const two = (value) => formatNumber(value, 2);
const vector = (numbers) => `(${numbers.map(two).join(", ")})`;

/** Everything that follows from the traits. */
function look(get) {
  const [keys, values, selected] = [get("key"), get("value"), get("selected")];
  const query = get("pulled").length ? get("pulled") : get("query")[selected];
  const products = keys.map((key) => dot(query, key));
  const scores = products.map((product) => product / Math.sqrt(query.length));
  const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
  const weights = powers.map((power) => power / sum(powers));
  const heaviest = weights.indexOf(Math.max(...weights));
  const output = values[0].map((_, i) =>
    dot(
      weights,
      values.map((value) => value[i]),
    ),
  );
  const longest = Math.max(...get("query").map((one) => Math.hypot(...one)));
  return {
    ...{ query, keys, values, products, scores, weights, heaviest, output, selected, longest },
    tokens: get("tokens"),
    features: get("features"),
    step: STEPS.findIndex(([name]) => name === get("step")),
    asked: get("asked") < 0 ? heaviest : get("asked"),
    largest: Math.max(longest, ...[keys, values].flat().map((one) => Math.hypot(...one))) || 1,
    limit: longest * Math.max(...keys.map((one) => Math.hypot(...one))) || 1,
  };
}

/** The numbers of the step: products, scores or weights. */
const numbersAt = ({ step, products, scores, weights }) => (step < 2 ? products : step === 2 ? scores : weights);

/** Keys in the plane: as they are, or, of more than two features, at their angle from the query. */
function inPlane({ query, keys, products }) {
  if (query.length === 2) return { query, keys };
  const length = Math.hypot(...query) || 1;
  return {
    query: [length, 0],
    keys: keys.map((key, i) => {
      const along = products[i] / length;
      const across = Math.sqrt(Math.max(dot(key, key) - along * along, 0));
      return [along, i % 2 ? -across : across];
    }),
  };
}

/** The numbers that the picture glides through. */
function numbersOf(state) {
  const { step, weights, values } = state;
  const shares = step >= 3;
  const drawable = values[0].length === 2;
  const ends = [[0, 0]];
  values.forEach((value, i) => ends.push(value.map((part, axis) => ends[i][axis] + weights[i] * part)));
  return {
    ...inPlane(state),
    weights,
    bars: numbersAt(state).map((number) => (shares ? number : number / state.limit)),
    drawn: step === 0 ? 0 : 1,
    opened: step === 0 ? 1 : 0,
    baseline: shares ? 1 : 0.5,
    strip: shares ? 1 : 0,
    blended: step === 4 && drawable ? 1 : 0,
    chain: values.map((value, i) =>
      step === 4 && drawable ? [...ends[i], ...ends[i + 1]] : [0, 0, value[0], value[1] || 0],
    ),
  };
}

/** Where things stand: the plane beside the words' columns, or below them on a phone. */
function layoutOf(width, height, numbers, state) {
  const narrow = width < 520;
  const side = narrow ? 196 : Math.min(300, 0.42 * width);
  const left = narrow ? 0 : side + 24;
  const column = (width - left) / state.tokens.length;
  const [middle, floor] = narrow ? [[width / 2, height - side / 2], 176] : [[side / 2, height / 2], 290];
  const unit = (side / 2 - 16) / state.largest;
  return {
    left,
    right: width,
    column,
    floor,
    words: 82 + numbers.opened * 0.55 * (floor - 82),
    bars: [108, floor - 126], // their top, and the height of all
    center: (i) => left + (i + 0.5) * column,
    reach: unit * state.largest,
    unit,
    middle,
    at: ([x, y]) => [middle[0] + unit * x, middle[1] - unit * y],
  };
}

/** An arc from the word that looks up to each word, as thick as its weight. */
function arcs({ weights, opened }, { center, words }, { selected }) {
  return weights.map((weight, i) => {
    const [from, to, foot] = [center(selected), center(i), words - 14];
    const own = i === selected ? 8 : 0;
    const top = foot - (own ? 34 : 26 + (0.18 + 0.3 * opened) * Math.abs(to - from));
    return [
      `arc${i}`,
      "path",
      {
        class: "arc",
        d: `M${from - own} ${foot}C${from - own} ${top} ${to + own} ${top} ${to + own} ${foot}`,
        "stroke-width": 0.5 + 14 * weight,
        "stroke-opacity": 0.35 + 0.65 * weight,
      },
    ];
  });
}

/** The words, each a button that makes it ask; the one that asks is framed. */
function words({ center, column, words: y }, { tokens, selected, heaviest }, ask) {
  const fit = Math.floor(column / 7.5);
  const short = (token) => (token.length > fit ? `${token.slice(0, fit - 1)}…` : token);
  const box = (i, more) => ({ x: center(i) - column / 2 + 1, width: column - 2, ...more });
  return [
    ["asks", "rect", { class: "asks", ...box(selected, { y: y - 11, height: 26, rx: 6 }) }],
    ...tokens.flatMap((token, i) => [
      [
        `word${i}`,
        "text",
        {
          x: center(i),
          y: y + 7,
          "text-anchor": "middle",
          "font-weight": i === heaviest ? 700 : 400,
          text: short(token),
        },
      ],
      [
        `ask${i}`,
        "rect",
        {
          class: "place",
          ...box(i, { y: y - 20, height: 44 }),
          press: () => ask(i),
          "aria-label": `let “${token}” look up`,
        },
      ],
    ]),
  ];
}

/** Under each word its product, its score or its weight; a bar is a button for the sum behind it. */
function columns(numbers, { center, column, bars: [top, tall] }, state, askWhy) {
  const base = top + tall * numbers.baseline;
  return state.tokens.flatMap((token, i) => {
    const number = numbersAt(state)[i];
    const height = numbers.bars[i] * tall * numbers.baseline * numbers.drawn;
    const wide = { x: center(i) - 0.34 * column, width: 0.68 * column };
    return [
      [
        `bar${i}`,
        "rect",
        {
          class: state.step >= 3 ? "weight" : "product",
          "data-value": number.toFixed(9),
          "stroke-width": i === state.asked ? 2.5 : 1,
          ...wide,
          y: Math.min(base, base - height),
          height: Math.abs(height),
        },
      ],
      state.step && [
        `number${i}`,
        "text",
        {
          x: center(i),
          y: base - height + (height < 0 ? 14 : -5),
          "text-anchor": "middle",
          text: two(number),
        },
      ],
      state.step && [
        `why${i}`,
        "rect",
        {
          class: "place",
          ...wide,
          y: top,
          height: tall,
          press: () => askWhy(i),
          "aria-label": `the sum behind “${token}”: ${two(number)}`,
        },
      ],
    ];
  });
}

/** All shares side by side: they fill the strip exactly. */
function strip(numbers, { left, right, floor }, { tokens, step }) {
  let from = left;
  return numbers.weights.flatMap((weight, i) => {
    const width = weight * (right - left) * numbers.strip;
    const start = from;
    from += width;
    return [
      [
        `strip${i}`,
        "rect",
        {
          class: step === 4 ? "value-part" : "weight part",
          x: start,
          width,
          y: floor - 13,
          height: 26,
        },
      ],
      width > 8 * tokens[i].length && [
        `share${i}`,
        "text",
        { x: start + width / 2, y: floor + 5, "text-anchor": "middle", text: tokens[i] },
      ],
    ];
  });
}

/** The plane of two features: the keys, the query among them, and at the end the values as a chain. */
function plane(numbers, { at, unit, reach, middle: [x, y] }, state, pull) {
  const { step, asked, query, tokens, features, largest } = state;
  const shown = 1 - numbers.blended;
  const along = dot(numbers.query, numbers.keys[asked]) / (dot(numbers.query, numbers.query) || 1);
  const foot = at(numbers.query.map((part) => part * along));
  const from = (point, size) => arrow(x, y, ...at(point), size);
  // A name stands beyond its arrow's tip, or, where a longer arrow would cross it, on the side where the query is not.
  const label = (key, point, text, more, isCrossed) => {
    const [px, py] = at(point);
    const far = (isCrossed ? 0 : 12) / (Math.hypot(px - x, py - y) || 1);
    const isLow = shown && numbers.query[1] * point[0] > numbers.query[0] * point[1];
    return [
      key,
      "text",
      {
        x: px + far * (px - x) + (px < x ? -3 : 3),
        y: py + far * (py - y) + (isCrossed ? (isLow ? 22 : -12) : 3),
        "text-anchor": isCrossed ? "middle" : px < x ? "end" : "start",
        text,
        ...more,
      },
    ];
  };
  const crossed = (key) =>
    numbers.keys.some((other) => Math.hypot(...other) > 1.2 * Math.hypot(...key) && alike(key, other) > 0.97);
  const end = numbers.chain.at(-1).slice(2);
  return [
    ["axes", "path", { class: "faint", d: `M${x - reach} ${y}h${2 * reach}M${x} ${y - reach}v${2 * reach}` }],
    ...features.map((name, i) =>
      i
        ? ["up", "text", { x, y: y - reach - 16, text: `${name} ↑` }]
        : ["right", "text", { x: x + reach + 24, y: y + 34, "text-anchor": "end", text: `${name} →` }],
    ),
    step === 1 && ["shadow", "path", { class: "shadow", d: `M${x} ${y}L${foot.join(" ")}` }],
    step === 1 && [
      "drop",
      "path",
      {
        class: "faint",
        "stroke-dasharray": "3 3",
        d: `M${at(numbers.keys[asked]).join(" ")}L${foot.join(" ")}`,
      },
    ],
    ...numbers.keys.flatMap((key, i) => [
      [`key${i}`, "path", { class: "key-arrow", d: from(key, 9), "stroke-opacity": shown * (i === asked ? 1 : 0.5) }],
      label(
        `of${i}`,
        key,
        tokens[i].slice(0, 9),
        { "fill-opacity": shown, "font-weight": i === asked ? 700 : 400 },
        crossed(key),
      ),
    ]),
    ...numbers.chain.flatMap(([x1, y1, x2, y2], i) => [
      step === 4 && [
        `whole${i}`,
        "path",
        {
          class: "value-arrow",
          d: from(state.values[i], 7),
          "stroke-opacity": 0.25 * numbers.blended,
        },
      ],
      [
        `value${i}`,
        "path",
        {
          class: "value-arrow",
          "stroke-opacity": numbers.blended,
          d: arrow(...at([x1, y1]), ...at([x2, y2]), 6),
        },
      ],
      step === 4 &&
        state.weights[i] * Math.hypot(...state.values[i]) > largest / 15 &&
        label(`gives${i}`, state.values[i], tokens[i].slice(0, 9), {
          "fill-opacity": 0.7 * numbers.blended,
        }),
    ]),
    step === 4 &&
      numbers.blended &&
      label("output", end, "output", { "font-weight": 700 }, Math.abs(end[0]) > Math.abs(end[1])),
    ["query", "path", { class: "query-arrow", "stroke-opacity": shown, d: from(numbers.query, 12) }],
    query.length === 2 &&
      step < 4 && [
        "pull",
        "circle",
        {
          class: "handle pull",
          cx: at(numbers.query)[0],
          cy: at(numbers.query)[1],
          r: 10,
          pull: (px, py) => pull([(px - x) / unit, (y - py) / unit]),
          "aria-label": `query of “${tokens[state.selected]}”: pull, or use the arrow keys`,
          "aria-valuenow": Math.round((Math.atan2(query[1], query[0]) * 180) / Math.PI),
          "aria-valuemin": -180,
          "aria-valuemax": 180,
          "aria-valuetext": vector(query),
        },
      ],
  ];
}

function render({ model, el }) {
  let over = {}; // what the mouse points at, in place of what is picked
  const get = (name) => over[name] ?? model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = Object.fromEntries(CHANGES.map((name) => [name, get(name)]));
  const card = openCard(el, {
    label: "One word looks up",
    question: "How does a word decide where to look?",
    invite:
      get("query")[0].length === 2
        ? "Pull the blue arrow, the word’s question, onto another arrow: where does it look now?"
        : "Tap another word: it asks its own question. Then go through the steps.",
    onReset: () => set(initial),
    css: CSS,
  });
  let state = look(get);
  const asking = (selected) => ({ selected, pulled: [], asked: -1 });
  const ask = (selected) => set(asking(selected));
  const askWhy = (asked) => set({ asked });
  const pull = (point) => {
    const most = Math.min(1, state.longest / (Math.hypot(...point) || 1));
    set({ pulled: point.map((part) => Number((part * most).toFixed(3))), asked: -1 });
  };
  const picture = stage({
    label: "A sentence, one word’s query among the keys, and the shares of its attention",
    height: (width) => (width < 520 ? 400 : 340),
    draw: (numbers, width, height) => {
      const place = layoutOf(width, height, numbers, state);
      return [
        ...arcs(numbers, place, state),
        ...words(place, state, ask),
        ...columns(numbers, place, state, askWhy),
        ...strip(numbers, place, state),
        ...plane(numbers, place, state, pull),
      ];
    },
  });
  preview(picture.node, (event) => {
    const [, kind, i] = event?.target.dataset.key?.match(/^(ask|why)(\d+)$/) || [];
    over = kind === "ask" ? asking(+i) : kind ? { asked: +i } : {};
    if (kind) card.root.dataset.acted = "1";
    show();
  });
  const steps = choice({ name: "Step", options: STEPS, onChange: (step) => set({ step }) });
  card.stage.append(picture.node);
  card.controls.append(steps.node);

  const show = () => {
    state = look(get);
    steps.set(get("step"));
    picture.show(numbersOf(state), get("pulled").length ? 0 : undefined);
    card.find(findingOf(state));
    card.caption.textContent = get("note");
  };
  const change = () => {
    over = {};
    show();
  };
  const stops = [
    onTraits(model, [...CHANGES, "note"], change),
    picture.close,
    card.close,
    shareWord(model, "selected", (at) => at, asking),
  ];
  show();
  return () => stops.forEach((stop) => stop());
}

/** What the step has found, with the sum behind the number that is looked at. */
function findingOf(state) {
  const { tokens, step, asked: key, query, keys, products, scores, weights, output } = state;
  const [asking, asked] = [`“${tokens[state.selected]}”`, `“${tokens[key]}”`];
  const terms = (one, other) => one.map((value, i) => `${two(value)}·${two(other[i])}`).join(" + ");
  const root = `√${query.length}`;
  const most = weights[state.heaviest];
  if (step === 0 && most < 0.3) return `No word wins: the largest share is ${two(most)}.`;
  if (step === 0)
    return `${asking} gives ${two(most)} of its attention to “${tokens[state.heaviest]}”: its question ${
      alike(query, keys[state.heaviest]) > 0.9 ? "points where that word’s key points" : "fits that word’s key best"
    }.`;
  if (step === 1)
    return `${asking} · ${asked} = ${terms(query, keys[key])} = ${two(products[key])}: the longer the key’s shadow on the query, the more.`;
  if (step === 2)
    return `${two(products[key])} / ${root} = ${two(scores[key])}: the more products in a sum, the louder; the root evens that out.`;
  if (step === 3)
    return `${asked} gets ${two(weights[key])} of the attention, its share of the strip: e to its score, over the sum of all.`;
  return `${asking} becomes ${most > 0.5 ? `mostly “${tokens[state.heaviest]}”` : "a mixture"}: all values, each times its weight, = ${vector(output)}.`;
}

export default { render };
