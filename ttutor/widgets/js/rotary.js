// Rotary positions: a query and a key stand in a sentence; their arrows turn with their positions,
// and the wedge between them, with the score, depends on the distance alone: a dot on one curve.
import { choice, slider } from "./controls.js";
import { css, formatCount, formatNumber, onTraits, openCard, setTraits } from "./core.js";
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
    fill: color-mix(in srgb, var(--tt-weights) 45%, transparent);
  }
  .ring {
    fill: none;
    stroke: var(--tt-weights-line);
    stroke-width: 5;
  }
  .faint {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.35;
  }
  .curve {
    fill: none;
    stroke: currentColor;
    stroke-width: 2;
  }
  .tt-picture text {
    font-size: 0.9375rem;
  }
  .score {
    fill: currentColor;
  }
  .score[data-value] {
    fill: var(--tt-weights-line);
  }
  @container (max-width: 32rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const TURNS = [1, 0.1, 0.01];
const degrees = (size) => `${formatNumber((180 * size) / Math.PI, Math.abs(size) < 0.05 ? 1 : 0)}°`;
const CHANGES = ["query_position", "key_position", "pair"];

/** Where both arrows point, as length and angle: their own angle, turned by their position. */
function turned({ query, key, places: [at, other], turn }) {
  const polar = ([x, y], position) => [Math.hypot(x, y), Math.atan2(y, x) + position * turn];
  return { query: polar(query, at), key: polar(key, other) };
}

/** The score of two words so many places apart, over the largest that there is. */
const scoreAt = ({ query, key, turn }, apart) =>
  Math.cos(Math.atan2(query[1], query[0]) - Math.atan2(key[1], key[0]) + apart * turn);

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = Object.fromEntries(CHANGES.map((name) => [name, get(name)]));
  const tokens = get("tokens");
  const last = tokens.length - 1;
  const card = openCard(el, {
    label: "Rotary positions",
    question: "How can a score know how far apart two words stand?",
    invite: "Drag “Move both”: the words move, the arrows turn. What stays?",
    onReset: () => {
      before = null;
      set(initial);
      show();
    },
    css: CSS,
  });
  const place = (name, position) => set({ [name]: Math.min(Math.max(Math.round(position), 0), last) });
  // At its place at once, so that a key that is pressed while the arrows turn is not lost.
  const word = (name, y, slot, color) => [
    name,
    "circle",
    {
      class: `${color}-word pull`,
      cx: (get(name) + 0.5) * slot,
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
  const longest = Math.max(...tokens.map((token) => token.length));
  const topOf = (width) => (8.5 * longest > width / tokens.length ? Math.min(14 + 6.5 * longest, 84) : 20);
  const stateOf = () => ({
    query: get("query"),
    key: get("key"),
    places: [get("query_position"), get("key_position")],
    turn: TURNS[get("pair")],
  });
  let passed = []; // where the query has stood before, at this distance from the key: the last places first
  let before = null;
  const draw = (numbers, width) => {
    const { places, turn } = numbers;
    const { query, key } = turned(numbers);
    const narrow = width < 520;
    const [slot, top] = [width / tokens.length, topOf(width)];
    const [slanted, radius] = [top > 20, narrow ? 76 : 120];
    const [x, y] = [radius + 4, top + 50 + radius];
    const unit = radius / Math.max(query[0], key[0]);
    const tip = ([length, angle], part = 1) => [
      x + part * unit * length * Math.cos(angle),
      y - part * unit * length * Math.sin(angle),
    ];
    const between = (((query[1] - key[1]) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
    /** From the key's arrow to the query's, so far from the middle, when both have turned on by an angle. */
    const bend = (size, on = 0) => {
      const [from, to] = [key, query].map(([, angle]) => tip([radius / unit, angle + on], size).join(" "));
      return `${from}A${size * radius} ${size * radius} 0 0 ${between > Math.PI ? 1 : 0} ${to}`;
    };
    // The curve: every distance that two words of the sentence can have, and its score.
    const [left, high] = [2 * radius + (narrow ? 22 : 60), 0.8 * radius];
    const across = (apart) => left + ((apart + last) / (2 * last)) * (width - 8 - left);
    const up = (apart) => y - high * scoreAt(numbers, apart);
    const apart = places[0] - places[1];
    const points = (step) => Array.from({ length: 2 * last * step + 1 }, (_, i) => i / step - last);
    const dot = (name, at, r, more) => [name, "circle", { class: "score", cx: across(at), cy: up(at), r, ...more }];
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
      word("key_position", top + 22, slot, "key"),
      word("query_position", top + 22, slot, "query"),
      ["circle", "circle", { class: "faint", cx: x, cy: y, r: radius }],
      ...passed.map((at, i) => [
        `ring${at}`,
        "path",
        { class: "ring", opacity: 0.8 - 0.2 * i, d: `M${bend(0.6 + 0.11 * i, (at - places[0]) * turn)}` },
      ]),
      ["wedge", "path", { class: "wedge", d: `M${x} ${y}L${bend(0.5)}Z` }],
      ["key", "path", { class: "key-arrow", d: arrow(x, y, ...tip(key), 12) }],
      ["query", "path", { class: "query-arrow", d: arrow(x, y, ...tip(query), 12) }],
      [
        "axis",
        "path",
        { class: "faint", d: `M${left} ${y}H${width - 8}M${across(apart)} ${y + high + 8}V${up(apart)}` },
      ],
      [
        "curve",
        "path",
        {
          class: "curve",
          d: `M${points(8)
            .map((at) => `${across(at)} ${up(at)}`)
            .join("L")}`,
        },
      ],
      ...points(1).map((at, i) => dot(`at${i}`, at, 2.5)),
      dot("score", apart, 8, { "data-value": score().toFixed(9) }),
      ["name", "text", { x: left, y: y - radius + 4, text: `score ${formatNumber(score(), 2)}` }],
      [
        "apart",
        "text",
        {
          x: Math.min(Math.max(across(apart), left + 42), width - 42),
          y: y + high + 22,
          "text-anchor": "middle",
          text: side(),
        },
      ],
    ];
  };
  const picture = stage({
    label: "A query and a key in a sentence, their turned arrows, and their score",
    height: (width) => topOf(width) + (width < 520 ? 206 : 294),
    draw,
  });
  const gap = () => get("query_position") - get("key_position");
  const score = () => Math.hypot(...get("query")) * Math.hypot(...get("key")) * scoreAt(stateOf(), gap());
  const side = () =>
    gap() === 0
      ? "at the same place"
      : `${Math.abs(gap())}\u00a0${Math.abs(gap()) === 1 ? "word" : "words"} ${gap() < 0 ? "before" : "after"}`;
  const pair = slider({
    label: "Move both",
    min: 0,
    max: last,
    step: 1,
    format: String,
    onInput: (to) => set({ query_position: to, key_position: to - gap() }),
  });
  const turn = choice({
    label: "Angle for each word",
    options: TURNS.map((size, i) => [i, degrees(size)]),
    onChange: (index) => set({ pair: index }),
  });
  card.stage.append(picture.node);
  card.controls.append(pair.node, turn.node);
  card.caption.textContent =
    "Blue: the query. Orange: the key. Purple: their wedge, its last places, their score. Curve: every distance.";
  const show = () => {
    // Both have to stay in the sentence.
    [pair.input.min, pair.input.max] = [Math.max(0, gap()), last + Math.min(0, gap())];
    pair.input.disabled = pair.input.min === pair.input.max;
    pair.set(get("query_position"));
    turn.set(get("pair"));
    const now = [get("pair"), gap(), get("query_position")];
    const same = before && now[0] === before[0] && now[1] === before[1];
    passed = same ? [...new Set([before[2], ...passed])].filter((at) => at !== now[2]).slice(0, 4) : [];
    before = now;
    picture.show(stateOf());
    const round = (2 * Math.PI) / TURNS[get("pair")];
    card.find(
      `Each word of distance changes the wedge by ${degrees(TURNS[get("pair")])}; moving both only turns it. ` +
        `So ${side()}, the score is always ${formatNumber(score(), 2)}.` +
        (round > 20 * last ? ` An arrow comes round after ${formatCount(round)} words, so here it hardly turns.` : "") +
        (pair.input.disabled ? " The two stand at both ends: there is no room to move both." : ""),
    );
  };
  const stops = [onTraits(model, [...CHANGES, "query", "key"], show), picture.close, card.close];
  show();
  return () => stops.forEach((stop) => stop());
}

export default { render };
