// One word looks up: its query as an arrow to pull, the keys that it meets, and where its attention
// goes: the products, the shares and the blend, each word in its own column. And all words at once: queries
// are rows, keys are columns, and a disc's area is weight, so that all rows hold the same.
import { css, distinct, formatNumber, make, onTraits, openCard, refill, setTraits, shareWord } from "./core.js";
import { choice, slider, toggle } from "./controls.js";
import { arrow, bars, matrix, preview, stage } from "./drawing.js";

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
  .map {
    display: flex;
    flex-wrap: wrap;
    gap: 0.75rem 1.5rem;
    align-items: flex-start;
  }
  .board {
    min-width: 0;
    max-width: 100%;
  }
  .panel {
    flex: 1 1 15rem;
    min-width: min(15rem, 100%);
  }
  .map td {
    position: relative;
    background-color: color-mix(in srgb, currentColor 4%, transparent);
    box-shadow: none;
  }
  .map td.near {
    background-color: color-mix(in srgb, currentColor 12%, transparent);
    box-shadow: none;
  }
  .map td::before {
    content: "";
    position: absolute;
    inset: 0;
    margin: auto;
    height: 100%;
    aspect-ratio: 1;
    border-radius: 50%;
    background: var(--c);
    transform: scale(var(--w));
  }
  @media (prefers-reduced-motion: no-preference) {
    .map td::before {
      transition: transform 300ms;
    }
  }
  @container (max-width: 27rem) {
    .map th:not(.corner) {
      font-size: 0.75rem;
      padding-inline: 0.1rem;
    }
    .map .corner {
      font-size: 0.65rem;
    }
    .map table {
      --cell: clamp(1.5rem, calc((100cqw - 8rem) / var(--columns)), 2rem) !important;
    }
    .tt-option {
      padding-inline: 0.35rem;
    }
    .panel {
      min-height: 0 !important;
      display: grid;
      grid-template-columns: 1fr auto;
      gap: 0.5rem;
      align-items: start;
    }
    .panel .tt-picture {
      width: 9.5rem;
    }
    .panel li:nth-child(n + 5):not(.on) {
      display: none;
    }
  }
`;

const STEPS = [
  ["project", "Look"],
  ["scores", "Compare"],
  ["scale", "Scale"],
  ["softmax", "Softmax"],
  ["blend", "Blend"],
  ["all", "All"],
];
const ALL = 5;
const SHOWN = 16; // bars beside the map
const WINS = 0.3; // the least share that a winner has
const CHANGES = ["selected", "asked", "pulled", "step", "temperature", "scaled", "causal"];
const sum = (list) => list.reduce((total, value) => total + value, 0);
const QUESTION = "How does a word decide where to look?";
const dot = (one, other) => sum(one.map((value, i) => value * other[i]));
/** The cosine of the angle between two arrows. */
const alike = (one, other) => dot(one, other) / (Math.hypot(...one) * Math.hypot(...other) || 1);
const two = (value) => formatNumber(value, 2);
const vector = (numbers) => `(${numbers.map(two).join(", ")})`;

/** Words in quotes, joined. */
const quoted = (words) => words.map((word) => `“${word}”`).join(" and ");
/** The place of the largest. */
const mostOf = (list) => list.indexOf(Math.max(...list));

/**
 * The weights of each row: a softmax over the keys that the row may see, zeros when it may see
 * none.
 */
export function attentionWeights(scores, allowed, scale) {
  return scores.map((row, i) => {
    const open = row.map((_, j) => allowed[i][j]);
    const top = Math.max(...row.map((score, j) => (open[j] ? score * scale : -Infinity)));
    const powers = row.map((score, j) => (open[j] ? Math.exp(score * scale - top) : 0));
    const total = sum(powers);
    return powers.map((power) => (total > 0 ? power / total : 0));
  });
}

/** True where query i may attend to key j: the given mask, and the causal one if on (last query, last key). */
const allowedKeys = (queries, keys, mask, causal) =>
  queries.map((_, i) =>
    keys.map((_, j) => (mask.length ? mask[i][j] : true) && (!causal || j <= i + keys.length - queries.length)),
  );

/** Everything that follows from the traits. */
function look(get) {
  const [tokens, names, keys, values] = ["tokens", "key_tokens", "key", "value"].map(get);
  const selected = Math.min(get("selected"), tokens.length - 1);
  const pulled = get("pulled").length ? get("pulled") : null;
  const queries = get("query").map((own, i) => (i === selected && pulled) || own);
  const rows = keys.length ? queries.map((one) => keys.map((key) => dot(one, key))) : get("scores");
  const [warm, root] = [get("temperature"), get("scaled") ? Math.sqrt(get("d_head") || 1) : 1];
  const allowed = allowedKeys(tokens, names, get("mask"), get("causal"));
  const map = attentionWeights(rows, allowed, 1 / root / warm);
  const [query, products, weights, open] = [queries, rows, map, allowed].map((all) => all[selected]);
  const heaviest = mostOf(weights);
  const most = two(weights[heaviest]);
  // Words that share the first place to all digits shown win together; below 0.3 none does.
  const winners = names.map((_, i) => i).filter((i) => weights[heaviest] >= WINS && two(weights[i]) === most);
  const picked = get("asked") < names.length ? get("asked") : -1;
  const sizes = (list) => list.map((one) => Math.hypot(...one));
  const longest = Math.max(...sizes(get("query")));
  return {
    ...{ tokens, names, keys, values, selected, warm, root, map, allowed, query, products, weights, open, heaviest },
    ...{ picked, longest, winners },
    scores: products.map((product) => product / root / warm),
    output: values[0]?.map((_, i) =>
      dot(
        weights,
        values.map((value) => value[i]),
      ),
    ),
    features: get("features"),
    raw: get("d_head") && !get("scaled"),
    step: STEPS.findIndex(([name]) => name === get("step")),
    asked: picked < 0 ? heaviest : picked,
    largest: Math.max(longest, ...sizes([...keys, ...values])) || 1,
    limit: longest * Math.max(...sizes(keys)) || 1,
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
  const opened = step && step < ALL ? 0 : 1;
  const most = shares ? 1 : state.limit * (step === 2 ? Math.max(1, 1 / state.root / state.warm) : 1);
  const drawable = values[0].length === 2;
  const ends = [[0, 0]];
  values.forEach((value, i) => ends.push(value.map((part, axis) => ends[i][axis] + weights[i] * part)));
  return {
    ...inPlane(state),
    weights,
    bars: numbersAt(state).map((number) => number / most),
    drawn: 1 - opened,
    opened,
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
  const alone = state.step === ALL; // beside the map
  const narrow = alone || width < 520;
  const side = alone ? Math.min(width, height) : narrow ? 196 : Math.min(300, 0.42 * width);
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
function words({ center, column, words: y }, { tokens, selected, winners }, ask) {
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
          "font-weight": winners.includes(i) ? 700 : 400,
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
function plane(numbers, { at, unit, reach, left, middle: [x, y] }, state, pull) {
  const { step, asked, query, tokens, features, largest, open, winners } = state;
  const isLit = (i) => (step ? i === asked : winners.includes(i));
  const shown = 1 - numbers.blended;
  const alone = step === ALL;
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
    ...(alone ? [] : features).map((name, i) =>
      i
        ? ["up", "text", { x, y: y - reach - 16, text: `${name} ↑` }]
        : [
            "right",
            "text", // beyond the ball's reach, where nothing stands beside the plane
            { x: x + reach + (left ? 0 : 12), y: y + 34, "text-anchor": left ? "end" : "start", text: `${name} →` },
          ],
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
    ...numbers.keys.map((key, i) => [
      `key${i}`,
      "path",
      { class: "key-arrow", d: from(key, 9), "stroke-opacity": shown * (isLit(i) ? 1 : open[i] ? 0.5 : 0.12) },
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
      step !== 4 && [
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
    // Names lie over the handle, which would cover them, and let the pointer through to it.
    ...numbers.keys.map((key, i) =>
      label(
        `of${i}`,
        key,
        tokens[i].slice(0, 9),
        {
          "pointer-events": "none",
          "fill-opacity": alone && i !== asked ? 0 : shown,
          "font-weight": isLit(i) ? 700 : 400,
        },
        crossed(key),
      ),
    ),
  ];
}

/** The map: what stands in a cell is a disc, hatched where masked. */
function drawCells(grid, { tokens, names, allowed, map, selected, picked }) {
  grid.fill((i, j) => {
    const [weight, open] = [map[i][j], allowed[i][j]];
    return {
      level: Math.sqrt(weight),
      hatch: !open,
      value: weight,
      label: `${tokens[i]} attends to ${names[j]}: ${open ? formatNumber(weight) : "masked"}`,
    };
  });
  grid.mark(selected, picked);
}

/** One row of the map, the largest weight first. */
const sorted = ({ names, weights, open, picked }) =>
  distinct(names)
    .map((label, j) => ({ label, share: weights[j], text: formatNumber(weights[j]), on: j === picked, j }))
    .filter(({ j }) => open[j])
    .sort((a, b) => b.share - a.share || a.j - b.j)
    .filter(({ on }, rank) => rank < SHOWN || on);

function render({ model, el }) {
  let over = {}; // what the mouse points at, in place of what is picked
  const get = (name) => over[name] ?? model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = Object.fromEntries(CHANGES.map((name) => [name, get(name)]));
  const [hasSteps, drawable] = [get("query").length > 0, get("query")[0]?.length === 2];
  const isOwn = () => String(get("tokens")) === String(get("key_tokens"));
  const card = openCard(el, {
    label: "One word looks up",
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
  /** A cell of the map; a column alone stands for who looks there most. */
  const cellOf = (row, asked) => {
    const selected = row < 0 ? mostOf(state.map.map((line) => line[asked])) : row;
    return { selected, asked, ...(selected !== model.get("selected") && { pulled: [] }) };
  };
  const point = (traits) => {
    over = traits || {};
    if (traits) card.root.dataset.acted = "1";
    show();
  };
  const picture = stage({
    label: "A sentence, one word’s query among the keys, and the shares of its attention",
    height: (width) => (state.step === ALL ? (width < 160 ? 110 : 170) : width < 520 ? 400 : 340),
    draw: (numbers, width, height) => {
      const place = layoutOf(width, height, numbers, state);
      const arrows = plane(numbers, place, state, pull);
      if (state.step === ALL) return arrows;
      return [
        ...arcs(numbers, place, state),
        ...words(place, state, ask),
        ...columns(numbers, place, state, askWhy),
        ...strip(numbers, place, state),
        ...arrows,
      ];
    },
  });
  preview(picture.node, (event) => {
    const [, kind, i] = event?.target.dataset.key?.match(/^(ask|why)(\d+)$/) || [];
    point(kind && (kind === "ask" ? asking(+i) : { asked: +i }));
  });
  const list = bars();
  const panel = make("div", { class: "panel" });
  const steps = choice({ name: "Step", options: STEPS, onChange: (step) => set({ step }) });
  const temperature = slider({
    label: "Temperature",
    min: 0.1,
    max: 5,
    step: 0.1,
    onInput: (value) => set({ temperature: value }),
  });
  const switches = [
    ["causal", "causal mask", isOwn],
    ["scaled", "divide by √d", () => get("d_head")],
  ].map(([name, label, used]) => [name, used, toggle({ label, onChange: (value) => set({ [name]: value }) })]);
  card.controls.append(steps.node, temperature.node, ...switches.map(([, , { node }]) => node));
  steps.node.hidden = !hasSteps;
  let [grid, built] = [null, ""];

  /** The map, beside it the row of the word and its arrows. */
  const openMap = () => {
    const [rows, columns] = [get("tokens"), get("key_tokens")];
    grid = matrix({
      label: "Attention weights. Rows are queries, columns are keys.",
      rows,
      columns,
      corner: ["keys →", "queries ↓"],
      side: hasSteps && columns.length <= 8 ? "2.2rem" : undefined, // as tall as the other steps
      onSelect: (...cell) => set(cellOf(...cell)),
      onPreview: (...cell) => point(cell.length && cellOf(...cell)),
    });
    panel.style.minHeight = `${1.36 * Math.min(Math.max(columns.length, rows.length), SHOWN) + 3}rem`;
    refill(panel, list.node, hasSteps ? picture.node : null);
    refill(card.stage, make("div", { class: "map" }, make("div", { class: "board" }, grid.node), panel));
  };
  const show = () => {
    state = look(get);
    const all = state.step === ALL;
    const wanted = all && JSON.stringify([state.tokens, state.names]);
    if (wanted !== built) {
      built = wanted;
      if (all) openMap();
      else refill(card.stage, picture.node);
    }
    for (const node of [temperature.node, ...switches.map(([, , { node }]) => node)]) node.hidden = !all;
    steps.set(get("step"));
    temperature.set(state.warm);
    for (const [name, used, { node, set: turn }] of switches) {
      turn(get(name));
      node.hidden ||= !used();
    }
    card.ask(
      ...(all
        ? [
            hasSteps ? QUESTION : "Who attends to whom?",
            "Tap a word on the left. Then make it colder, until it looks nowhere else.",
          ]
        : [
            QUESTION,
            drawable
              ? "Pull the blue arrow, the word’s question, until another word wins."
              : "Tap another word: it asks its own question. Then go through the steps.",
          ]),
    );
    if (hasSteps) picture.show(numbersOf(state), get("pulled").length ? 0 : undefined);
    if (all) {
      drawCells(grid, state);
      list.show(sorted(state));
    }
    card.find(all ? describeRow(state, isOwn()) : findingOf(state));
    card.caption.textContent = all ? captionOf(state, get("total"), get("note")) : get("note");
  };
  const change = () => {
    over = {};
    show();
  };
  const stops = [
    onTraits(model, [...CHANGES, "note", "tokens", "key_tokens", "scores", "mask", "d_head", "total"], change),
    picture.close,
    card.close,
    shareWord(model, "selected", (at) => at, asking),
  ];
  show();
  return () => stops.forEach((stop) => stop());
}

/** What is drawn in the map, and what is left out. */
function captionOf({ tokens, names, allowed }, [queries, keys], note) {
  return [
    "Disc: attention. Each row shares out 1.",
    allowed.some((row) => row.includes(false)) && "Hatched: masked.",
    (queries > tokens.length || keys > names.length) &&
      `The first ${tokens.length} of ${queries} queries and ${names.length} of ${keys} keys; these keys share out 1.`,
    note,
  ]
    .filter(Boolean)
    .join(" ");
}

/** The chosen word's share, why it goes there, and the sum of its row. */
function describeRow({ tokens, names, warm, open, weights, selected, asked, heaviest, raw }, isOwn) {
  const isMost = (j) => formatNumber(weights[j]) === formatNumber(weights[heaviest]);
  const tied = names.filter((_, j) => j !== asked && open[j] && isMost(asked) && isMost(j));
  const asks = `“${tokens[selected]}”`;
  if (!open.includes(true)) return `${asks} may not attend to any word.`;
  if (!open[asked]) return `${asks} may not attend to “${names[asked]}”.`;
  const seen = open.filter(Boolean).length;
  return `${asks} gives ${formatNumber(weights[asked])} of its attention to “${names[asked]}”${
    tied.length
      ? `, as much as to ${tied.length > 2 ? `${tied.length} others` : quoted(tied)}`
      : asked !== heaviest
        ? ""
      : seen < 2
        ? ", the only word that it may see"
        : isOwn
          ? `, because that key suits its query best${seen < names.length ? " of those it sees" : ""}${
              raw ? "; without √d the gaps grow" : ""
            }${warm < 1 ? "; cold widens the gaps" : warm > 1 ? "; warmth narrows the gaps" : ""}`
          : ""
  }. Its row adds up to ${formatNumber(sum(weights))}.`;
}

/** What the step has found, with the sum behind the number that is looked at. */
function findingOf(state) {
  const { tokens, step, asked: key, query, keys, products, scores, weights, output, warm, raw, open } = state;
  const [asking, asked] = [`“${tokens[state.selected]}”`, `“${tokens[key]}”`];
  const terms = (one, other) => one.map((value, i) => `${two(value)}·${two(other[i])}`).join(" + ");
  const by = (raw ? "" : ` / √${query.length}`) + (warm === 1 ? "" : ` / ${formatNumber(warm, 1)}`);
  const most = weights[state.heaviest];
  const winners = state.winners.map((i) => tokens[i]);
  if (step === 0 && !winners.length) return `No word wins: the largest share is ${two(most)}.`;
  if (step === 0 && winners.length > 1)
    return `${asking} gives ${two(most)} of its attention each to ${quoted(winners)}: they tie.`;
  if (step === 0)
    return `${asking} gives ${two(most)} of its attention to “${tokens[state.heaviest]}”: its question ${
      alike(query, keys[state.heaviest]) > 0.9 ? "points where that word’s key points" : "fits that word’s key best"
    }.`;
  if (step === 1)
    return `${asking} · ${asked} = ${terms(query, keys[key])} = ${two(products[key])}: the longer the key’s shadow on the query, the more.`;
  if (step === 2)
    return `${two(products[key])}${by} = ${two(scores[key])}: ${
      raw ? "without the root, wide heads are loud" : "the more products in a sum, the louder; the root evens that out"
    }.`;
  if (step === 3 && !open[key]) return `${asked} is masked: it gets nothing, whatever its score.`;
  if (step === 3)
    return `${asked} gets ${two(weights[key])} of the attention, its share of the strip: e to its score, over the sum of all.`;
  return `${asking} becomes ${most > 0.5 ? `mostly “${tokens[state.heaviest]}”` : "a mixture"}: all values, each times its weight, = ${vector(output)}.`;
}

export default { render };
