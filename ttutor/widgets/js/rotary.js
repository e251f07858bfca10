// Rotary positions: a query and a key stand in a sentence; their arrows turn with their positions,
// and the wedge between them, with the score, depends on the distance alone.
import { choice, slider } from "./controls.js";
import { css, formatNumber, onTraits, openCard, setTraits } from "./core.js";
import { arrow, stage } from "./drawing.js";

const CSS = css`
  .query-arrow,
  .key-arrow {
    fill: none;
    stroke-width: 4;
    stroke-linecap: round;
    stroke-linejoin: round;
  }
  .query-arrow {
    stroke: var(--tt-query-line);
  }
  .key-arrow {
    stroke: var(--tt-key-line);
  }
  .query-word {
    fill: var(--tt-query);
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .key-word {
    fill: var(--tt-key);
    stroke: var(--tt-key-line);
    stroke-width: 2;
  }
  .wedge {
    fill: color-mix(in srgb, currentColor 14%, transparent);
  }
  .faint {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.35;
  }
  .ghost {
    stroke-dasharray: 3 4;
    stroke-width: 2;
  }
  .tt-picture text {
    font-size: 0.9375rem;
  }
  .score {
    fill: color-mix(in srgb, currentColor 35%, transparent);
    stroke: currentColor;
  }
`;
const TURNS = [1, 0.1, 0.01];
const degrees = (size) => `${formatNumber((180 * size) / Math.PI, size < 0.05 ? 1 : 0)}°`;
const CHANGES = ["query_position", "key_position", "pair"];

/** Where both arrows point: their own angle, turned by their position. */
function turned(get) {
  const turn = TURNS[get("pair")];
  const polar = ([x, y], position) => [Math.hypot(x, y), Math.atan2(y, x) + position * turn];
  const [query, key] = ["query", "key"].map((name) => polar(get(name), get(`${name}_position`)));
  const score = query[0] * key[0] * Math.cos(query[1] - key[1]);
  return { query, key, score, most: query[0] * key[0] };
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = Object.fromEntries(CHANGES.map((name) => [name, get(name)]));
  const tokens = get("tokens");
  const last = tokens.length - 1;
  const card = openCard(el, {
    label: "Rotary positions",
    question: "How can a score know how far apart two words stand?",
    invite: "Move both along the sentence: does the score change? Then drag the blue dot alone.",
    onReset: () => set(initial),
    css: CSS,
  });
  const place = (name, position) => set({ [name]: Math.min(Math.max(Math.round(position), 0), last) });
  const word = (name, x, y, slot, color) => [
    name,
    "circle",
    {
      class: `${color}-word pull`,
      cx: x,
      cy: y,
      r: 10,
      pull: (to) => place(name, to / slot - 0.5),
      stride: slot,
      "aria-label": `position of the ${color}`,
      "aria-valuenow": get(name),
      "aria-valuemin": 0,
      "aria-valuemax": last,
      "aria-valuetext": `${get(name)}, ${tokens[get(name)]}`,
    },
  ];
  const { pair: _, ...start } = initial; // where the two stood: dashed
  const longest = Math.max(...tokens.map((token) => token.length));
  const topOf = (width) => (8.5 * longest > width / tokens.length ? Math.min(14 + 6.5 * longest, 84) : 20);
  const draw = ({ query, key, score, places }, width) => {
    const narrow = width < 520;
    const [slot, top] = [width / tokens.length, topOf(width)];
    const [slanted, radius] = [top > 20, narrow ? 96 : 120];
    const [x, y] = [narrow ? radius + 4 : width * 0.36, top + 50 + radius];
    const unit = radius / Math.max(query[0], key[0]);
    const tip = ([length, angle], part = 1) => [
      x + part * unit * length * Math.cos(angle),
      y - part * unit * length * Math.sin(angle),
    ];
    const [from, to] = [tip(query, 0.45), tip([query[0], key[1]], 0.45)];
    const apart = (((query[1] - key[1]) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
    const bend = `A${0.45 * unit * query[0]} ${0.45 * unit * query[0]} 0 ${apart > Math.PI ? 1 : 0} 1`;
    const [bar, floor, most] = [narrow ? width - 60 : width * 0.7, y, 0.9 * radius];
    const tall = (most * score) / turned(get).most;
    return [
      ...tokens.map((token, i) => [
        `word${i}`,
        "text",
        {
          x: (i + 0.5) * slot,
          y: top,
          transform: slanted ? `rotate(-50 ${(i + 0.5) * slot} ${top})` : null,
          "text-anchor": slanted ? "start" : "middle",
          text: token,
        },
      ]),
      ["line", "path", { class: "faint", d: `M${slot / 2} ${top + 22}H${width - slot / 2}` }],
      word("key_position", (places[1] + 0.5) * slot, top + 22, slot, "key"),
      word("query_position", (places[0] + 0.5) * slot, top + 22, slot, "query"),
      ["circle", "circle", { class: "faint", cx: x, cy: y, r: radius }],
      ["wedge", "path", { class: "wedge", d: `M${x} ${y}L${from.join(" ")}${bend} ${to.join(" ")}Z` }],
      ...["query", "key"].map((name) => [
        `was${name}`,
        "path",
        { class: "faint ghost", d: arrow(x, y, ...tip(turned((one) => start[one] ?? get(one))[name]), 10) },
      ]),
      ["key", "path", { class: "key-arrow", d: arrow(x, y, ...tip(key), 12) }],
      ["query", "path", { class: "query-arrow", d: arrow(x, y, ...tip(query), 12) }],
      ["axis", "path", { class: "faint", d: `M${bar - 60} ${floor}h120` }],
      [
        "score",
        "rect",
        {
          class: "score",
          x: bar - 26,
          width: 52,
          y: Math.min(floor, floor - tall),
          height: Math.abs(tall),
          "data-value": turned(get).score.toFixed(9),
        },
      ],
      [
        "number",
        "text",
        {
          x: bar,
          y: floor + (tall < 0 ? -8 : 18),
          "text-anchor": "middle",
          text: `score ${formatNumber(score, 2)}`,
        },
      ],
    ];
  };
  const picture = stage({
    label: "A query and a key in a sentence, their turned arrows, and their score",
    height: (width) => topOf(width) + (width < 520 ? 246 : 294),
    draw,
  });
  const gap = () => get("query_position") - get("key_position");
  const pair = slider({
    label: "Move both",
    min: 0,
    max: last,
    step: 1,
    format: String,
    onInput: (to) => {
      const low = Math.min(Math.max(to, Math.max(0, gap())), last + Math.min(0, gap()));
      set({ query_position: low, key_position: low - gap() });
    },
  });
  const turn = choice({
    label: "Angle for each word",
    options: TURNS.map((size, i) => [i, degrees(size)]),
    onChange: (index) => set({ pair: index }),
  });
  card.stage.append(picture.node);
  card.controls.append(pair.node, turn.node);
  card.caption.textContent =
    "Blue: the query. Orange: the key. Each turns by one angle a word. Dashed: where they stood at first.";
  const show = () => {
    const state = turned(get);
    pair.set(get("query_position"));
    turn.set(get("pair"));
    picture.show({ ...state, places: [get("query_position"), get("key_position")] });
    card.find(
      `Both arrows turn alike, so only their distance, ${Math.abs(gap())}\u00a0${Math.abs(gap()) === 1 ? "word" : "words"}, sets the angle between them, and the score.`,
    );
  };
  const stops = [onTraits(model, [...CHANGES, "query", "key"], show), picture.close, card.close];
  show();
  return () => stops.forEach((stop) => stop());
}

export default { render };
