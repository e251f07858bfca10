// The attention map: queries are rows, keys are columns, and a disc's area is weight, so that all
// rows hold the same; beside it, where there are some of two features, the arrows that decide.
import { css, distinct, formatNumber, make, onTraits, openCard, refill, setTraits, shareWord } from "./core.js";
import { slider, toggle } from "./controls.js";
import { arrow, bars, matrix, stage } from "./drawing.js";

const CSS = css`
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
  .panel,
  .lines {
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
    border-radius: 50%;
    background: var(--c);
    transform: scale(var(--w));
  }
  @media (prefers-reduced-motion: no-preference) {
    .map td::before {
      transition: transform 300ms;
    }
  }
  .query-arrow,
  .key-arrow {
    fill: none;
    stroke: var(--tt-key-line);
    stroke-width: 3;
    stroke-linecap: round;
    stroke-linejoin: round;
  }
  .query-arrow {
    stroke: var(--tt-query-line);
  }
  .line {
    stroke: var(--tt-weights-line);
  }
  .tt-picture text {
    font-size: 1rem;
  }
  @container (max-width: 27rem) {
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
    .panel li:nth-child(n + 5) {
      display: none;
    }
  }
`;

const SHOWN = 8; // bars in the panel, and words of two languages that are drawn as two lines of text

/**
 * The weights of each row: a softmax over the keys that the row may see, zeros when it may see
 * none.
 */
export function attentionWeights(scores, allowed, scale) {
  return scores.map((row, i) => {
    const open = row.map((_, j) => allowed[i][j]);
    const top = Math.max(...row.map((score, j) => (open[j] ? score * scale : -Infinity)));
    const powers = row.map((score, j) => (open[j] ? Math.exp(score * scale - top) : 0));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => (total > 0 ? power / total : 0));
  });
}

/**
 * True where query i may attend to key j: no padding, the given mask, and the causal one if on
 * (last query, last key).
 */
export function allowedKeys(nQueries, nKeys, mask, causal, padding) {
  return Array.from({ length: nQueries }, (_, i) =>
    Array.from(
      { length: nKeys },
      (_, j) => (mask.length ? mask[i][j] : true) && !padding[j] && (!causal || j <= i + nKeys - nQueries),
    ),
  );
}

/** The place of the largest. */
const mostOf = (list) => list.indexOf(Math.max(...list));

/** Everything that the picture needs, worked out from the traits; a column alone stands for who looks there most. */
function readState(model, pointed) {
  const get = (name) => (name === "selected" && pointed) || model.get(name);
  const [queries, keys, warm] = [get("tokens"), get("key_tokens"), get("temperature")];
  const scale = (get("d_head") && get("scaled") ? 1 / Math.sqrt(get("d_head")) : 1) / warm;
  const padding = get("padding_masked") ? get("padding") : [];
  const allowed = allowedKeys(queries.length, keys.length, get("mask"), get("causal"), padding);
  const weights = attentionWeights(get("scores"), allowed, scale);
  let [row = 0, column = -1] = get("selected");
  if (row >= queries.length || column >= keys.length) [row, column] = [0, -1];
  if (row < 0) row = mostOf(weights.map((line) => line[column]));
  const sorted = distinct(keys)
    .map((token, j) => ({
      label: token,
      share: weights[row][j],
      text: formatNumber(weights[row][j]),
      on: j === column,
      j,
    }))
    .filter(({ j }) => allowed[row][j])
    .sort((a, b) => b.share - a.share || a.j - b.j);
  const raw = get("d_head") && !get("scaled");
  return { queries, keys, warm, raw, allowed, weights, row, column, sorted, best: sorted[0]?.j, arrows: get("arrows") };
}

/** The chosen word's share, and why it goes there. */
function describe({ queries, keys, warm, raw, allowed, weights, row, column, sorted, best, arrows }, isOwn) {
  const asks = `“${queries[row]}”`;
  const at = column < 0 ? best : column;
  if (!allowed[row][at]) return `${asks} may not attend to ${at >= 0 ? `“${keys[at]}”` : "any word"}.`;
  const top = weights.map(mostOf);
  const back = isOwn ? -1 : top.findIndex((key, i) => Math.abs(i - row) === 1 && (key - top[row]) * (i - row) < 0);
  return `${asks} gives ${formatNumber(weights[row][at])} of its attention to “${keys[at]}”${
    at !== best
      ? ""
      : sorted.length < 2
        ? ", the only word that it may see"
        : isOwn
          ? `, because that key ${arrows.length ? "(orange) " : ""}suits its query best${sorted.length < keys.length ? " of those it sees" : ""}${
              raw ? "; without √d the gaps grow" : ""
            }${warm < 1 ? "; cold widens the gaps" : warm > 1 ? "; warmth narrows the gaps" : ""}`
          : back < 0
            ? ": here the order stays"
            : `, its neighbour “${queries[back]}” looks at “${keys[top[back]]}”: they cross`
  }. Its row adds up to ${formatNumber(weights[row].reduce((sum, weight) => sum + weight, 0))}.`;
}

/** Two lines of text, and between them the weights: where the order changes, lines cross. */
function drawLines({ weights }, width, height, { queries, keys, row: chosen }) {
  const tokens = [queries, keys];
  const x = (side, i) => ((i + 0.5) * width) / tokens[side].length;
  return [
    ...weights.flatMap((row, i) =>
      row.map((weight, j) => [
        `line${i}-${j}`,
        "path",
        {
          class: "line",
          d: `M${x(0, i)} 26L${x(1, j)} ${height - 30}`,
          "stroke-width": 14 * weight,
          "stroke-opacity": (i === chosen ? 1 : 0.5) * Math.min(1, 2 * weight),
        },
      ]),
    ),
    ...tokens.flatMap((words, side) =>
      words.map((text, i) => [
        `word${side}-${i}`,
        "text",
        { x: x(side, i), y: side ? height - 8 : 16, "text-anchor": "middle", text },
      ]),
    ),
  ];
}

/** One word's query among all keys; the key that it looks at most is named. */
function drawArrows(
  { query },
  width,
  height,
  { arrows: [queries, keys], queries: names, keys: others, row, best: found },
) {
  const [left, right, low, high] = [0, 1].flatMap((axis) => {
    const all = [0, ...[...queries, ...keys].map((one) => one[axis])];
    return [Math.min(...all), Math.max(...all)];
  });
  const unit = Math.min((width - 50) / (right - left), (height - 48) / (high - low));
  const end = ([x, y], more = 0) => {
    const part = unit + more / (Math.hypot(x, y) || 1);
    return [width / 2 + part * x - (unit * (left + right)) / 2, height / 2 - part * y + (unit * (low + high)) / 2];
  };
  const from = (one) => arrow(...end([0, 0]), ...end(one), 9);
  const name = (key, one, text, aside) => {
    const [x, y] = end(one, 16);
    return [key, "text", { x, y: y + 4 + aside, "text-anchor": "middle", text }];
  };
  const aside = end(query)[1] < end(keys[found])[1] ? 9 : -9; // the two names make room for one another
  return [
    ...keys.map((key, i) => [
      `arrow${i}`,
      "path",
      { class: "key-arrow", d: from(key), "stroke-opacity": i === found ? 1 : 0.35 },
    ]),
    ["query", "path", { class: "query-arrow", d: from(query) }],
    name("found", keys[found], others[found], aside),
    name("asks", query, names[row], -aside),
  ];
}

/**
 * What stands in a cell: a disc, hatched where masked.
 */
function drawCells(grid, { queries, keys, allowed, weights, row, column }) {
  grid.fill((i, j) => {
    const [weight, open] = [weights[i][j], allowed[i][j]];
    return {
      level: Math.sqrt(weight),
      hatch: !open,
      value: weight,
      label: `${queries[i]} attends to ${keys[j]}: ${open ? formatNumber(weight) : "masked"}`,
    };
  });
  grid.mark(row, column);
}

function render({ model, el }) {
  const set = (values) => setTraits(model, values);
  const settings = ["temperature", "scaled", "causal", "padding_masked", "selected"];
  const initial = Object.fromEntries(settings.map((name) => [name, model.get(name)]));
  const keys = model.get("key_tokens");
  const isOwn = JSON.stringify(model.get("tokens")) === JSON.stringify(keys);
  const isShort = !isOwn && Math.max(keys.length, model.get("tokens").length) <= SHOWN;
  const card = openCard(el, {
    label: "Attention map",
    question: isOwn ? "Who attends to whom?" : "Do the words keep their order?",
    invite: isOwn
      ? "Tap a word on the left. Then make it colder, until it looks nowhere else."
      : "Find the words whose lines cross, and tap one of them on the left.",
    onReset: () => set(initial),
    css: CSS,
  });
  const list = bars();
  let state = null;
  const picture = stage({
    label: "Who looks at whom",
    height: (width) => (width < 160 ? 110 : isShort && el.clientWidth > 600 ? 330 : 190),
    draw: (numbers, ...sizes) =>
      isShort ? drawLines(numbers, ...sizes, state) : state.sorted.length ? drawArrows(numbers, ...sizes, state) : [],
  });
  const panel = make("div", { class: isShort ? "lines" : "panel" }, isShort ? picture.node : list.node);
  const place = make("div", { class: "map" });
  let [grid, shown, pointed] = [null, "", null];
  const temperature = slider({
    label: "Temperature",
    min: 0.1,
    max: 5,
    step: 0.1,
    onInput: (value) => set({ temperature: value }),
  });
  const switches = [
    ["causal", "causal mask"],
    ["scaled", "divide by √d"],
    ["padding_masked", "padding mask"],
  ].map(([name, label]) => [name, toggle({ label, onChange: (value) => set({ [name]: value }) })]);
  card.stage.append(place);
  card.controls.append(temperature.node, ...switches.map(([, { node }]) => node));

  const draw = () => {
    state = readState(model, pointed);
    const tokens = JSON.stringify([state.queries, state.keys]);
    if (tokens !== shown) {
      shown = tokens;
      grid = matrix({
        label: "Attention weights. Rows are queries, columns are keys.",
        rows: state.queries,
        columns: state.keys,
        corner: ["keys →", "queries ↓"],
        side: isShort && "3.9rem",
        onSelect: (row, column) => set({ selected: [row, column] }),
        onPreview: (...cell) => {
          pointed = cell.length ? cell : null;
          if (pointed) card.root.dataset.acted = "1";
          draw();
        },
      });
      refill(place, make("div", { class: "board" }, grid.node), panel);
      if (state.arrows.length) panel.append(picture.node);
      panel.style.minHeight = `${1.36 * Math.min(Math.max(state.keys.length, state.queries.length), SHOWN) + 3}rem`;
    }
    const used = {
      causal: isOwn,
      scaled: model.get("d_head"),
      padding_masked: model.get("padding").length,
    };
    temperature.set(state.warm);
    for (const [name, { node, set: show }] of switches) {
      show(model.get(name));
      node.hidden = !used[name];
    }
    const [queries, keys] = model.get("total");
    const capped = queries > state.queries.length || keys > state.keys.length;
    card.caption.textContent =
      "Disc: attention. Each row shares out 1." +
      (state.allowed.some((row) => row.includes(false)) ? " Hatched: masked." : "") +
      (capped
        ? ` The first ${state.queries.length} of ${queries} queries and ${state.keys.length} of ${keys} keys; ` +
          "these keys share out 1."
        : "");
    drawCells(grid, state);
    list.show(state.sorted.filter(({ on }, rank) => rank < SHOWN || on));
    if (isShort) picture.show({ weights: state.weights });
    else if (state.arrows.length && state.sorted.length) picture.show({ query: state.arrows[0][state.row] });
    card.find(describe(state, isOwn));
  };
  const names = ["tokens", "key_tokens", "scores", "mask", "d_head", "padding", "total"];
  const stop = onTraits(model, [...names, ...settings], () => {
    pointed = null;
    draw();
  });
  draw();
  const share = shareWord(
    model,
    "selected",
    ([row]) => row,
    (row) => ({ selected: [row, -1] }),
  );
  return () => [stop, share, picture.close, card.close].forEach((end) => end());
}

export default { render };
