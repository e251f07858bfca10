// The attention map: queries are rows, keys are columns, and a disc's area is weight, so that all
// rows hold the same; beside it, where there are some of two features, the arrows that decide.
import { css, distinct, formatNumber, make, onTraits, openCard, refill, setTraits } from "./core.js";
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
  .board.large {
    flex: 2 1 20rem;
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

const SHOWN_IN_PANEL = 8;

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

/** Everything that the picture needs, worked out from the traits. */
function readState(model) {
  const get = (name) => model.get(name);
  const [queries, keys, scores] = [get("tokens"), get("key_tokens"), get("scores")];
  const scale = (get("d_head") && get("scaled") ? 1 / Math.sqrt(get("d_head")) : 1) / get("temperature");
  const padding = get("padding_masked") ? get("padding") : [];
  const allowed = allowedKeys(queries.length, keys.length, get("mask"), get("causal"), padding);
  return {
    queries,
    keys,
    allowed,
    weights: attentionWeights(scores, allowed, scale),
    selected: get("selected"),
    arrows: get("arrows"),
  };
}

/** What is selected, as words, and as the list that the panel shows. */
function describe({ queries, keys, allowed, weights, selected, arrows }) {
  if (selected.length !== 2) return null;
  const [row, column] = selected;
  if (row >= queries.length || column >= keys.length) return null;
  const byRow = row >= 0;
  const entries = distinct(byRow ? keys : queries).map((token, index) => {
    const [i, j] = byRow ? [row, index] : [index, column];
    return {
      token,
      index,
      weight: weights[i][j],
      open: allowed[i][j],
      on: byRow ? index === column : false,
    };
  });
  const sorted = entries.filter((entry) => entry.open).sort((a, b) => b.weight - a.weight || a.index - b.index);
  const title =
    byRow && !sorted.length
      ? `“${queries[row]}” may attend to no key (all masked): its weights are all 0`
      : !sorted.length
        ? `Nobody may attend to “${keys[column]}”`
        : !byRow
          ? `Most attention to “${keys[column]}” comes from “${sorted[0].token}”`
          : column < 0
            ? `“${queries[row]}” attends most to “${sorted[0].token}”, because ${
                arrows.length ? "that key (orange) fits its query (blue) best" : "that key fits its query best"
              }`
            : allowed[row][column]
              ? `“${queries[row]}” → “${keys[column]}”: weight ${formatNumber(weights[row][column])}`
              : `“${queries[row]}” may not attend to “${keys[column]}” (masked)`;
  const [first] = sorted;
  return { title, sorted, pair: first && (byRow ? [row, first.index] : [first.index, column]) };
}

/** The panel beside the map: the heaviest entries as bars. */
function drawPanel(list, { sorted }) {
  const shown = sorted.filter((entry, rank) => rank < SHOWN_IN_PANEL || entry.on);
  list.show(
    shown.map(({ token, weight, on }) => ({
      ...{ label: token, share: weight, text: formatNumber(weight), on },
    })),
  );
}

/** One word's query among all keys; the key that it looks at most is named. */
function drawArrows({ query }, width, height, { arrows: [queries, keys], tokens, pair: [asks, found] }) {
  const [left, right, low, high] = [0, 1].flatMap((axis) => {
    const all = [0, ...[...queries, ...keys].map((one) => one[axis])];
    return [Math.min(...all), Math.max(...all)];
  });
  const unit = Math.min((width - 50) / (right - left), (height - 36) / (high - low));
  const end = ([x, y], more = 0) => {
    const part = unit + more / (Math.hypot(x, y) || 1);
    return [width / 2 + part * x - (unit * (left + right)) / 2, height / 2 - part * y + (unit * (low + high)) / 2];
  };
  const from = (one) => arrow(...end([0, 0]), ...end(one), 9);
  const name = (key, one, text) => {
    const [x, y] = end(one, 16);
    return [key, "text", { x, y: y + 4, "text-anchor": "middle", text }];
  };
  const apart = Math.hypot(query[0] - keys[found][0], query[1] - keys[found][1]);
  return [
    ...keys.map((key, i) => [
      `arrow${i}`,
      "path",
      { class: "key-arrow", d: from(key), "stroke-opacity": i === found ? 1 : 0.35 },
    ]),
    ["query", "path", { class: "query-arrow", d: from(query) }],
    name("found", keys[found], tokens[1][found]),
    unit * apart > 30 && name("asks", query, tokens[0][asks]),
  ];
}

/**
 * What stands in a cell: a disc, hatched where masked.
 */
function drawCells(grid, { queries, keys, allowed, weights, selected }) {
  grid.fill((i, j) => {
    const [weight, open] = [weights[i][j], allowed[i][j]];
    return {
      level: Math.sqrt(weight),
      hatch: !open,
      value: weight,
      label: `${queries[i]} attends to ${keys[j]}: ${open ? formatNumber(weight) : "masked"}`,
    };
  });
  grid.mark(...(selected.length === 2 ? selected : [-1, -1]));
}

function render({ model, el }) {
  const set = (values) => setTraits(model, values);
  const settings = ["temperature", "scaled", "causal", "padding_masked", "selected"];
  const initial = Object.fromEntries(settings.map((name) => [name, model.get(name)]));
  const keys = model.get("key_tokens");
  const isOwn = JSON.stringify(model.get("tokens")) === JSON.stringify(keys);
  const asked = keys[Math.floor((keys.length - 1) / 2)];
  const card = openCard(el, {
    label: "Attention map",
    question: isOwn ? "Who attends to whom?" : `Which word attends to “${asked}”?`,
    invite: isOwn
      ? "Tap a word on the left: where does it look? Then drag the temperature: who wins?"
      : `Tap “${asked}” above, then “${model.get("tokens").at(-1)}” on the left.`,
    onReset: () => set(initial),
    css: CSS,
  });
  const list = bars();
  let about = null;
  const picture = stage({
    label: "One word’s query among all keys",
    height: (width) => (width < 160 ? 110 : 220),
    draw: (numbers, ...sizes) => (about?.pair ? drawArrows(numbers, ...sizes, about) : []),
  });
  const panel = make("div", { class: "panel" }, list.node);
  const place = make("div", { class: "map" });
  let [grid, shown, preview] = [null, "", null];
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

  /** The selected row or column, or, without one, the first row. */
  const describeNow = (state) => describe({ ...state, selected: preview || state.selected });
  const drawSelection = (state) => {
    about = {
      ...(describeNow(state) || describe({ ...state, selected: [0, -1] })),
      ...{ arrows: state.arrows, tokens: [state.queries, state.keys] },
    };
    drawCells(grid, { ...state, selected: preview || state.selected });
    drawPanel(list, about);
    if (state.arrows.length && about.pair) picture.show({ query: state.arrows[0][about.pair[0]] });
    const warm = model.get("temperature");
    const turned =
      warm === 1
        ? ""
        : warm < 1
          ? " Colder: gaps between scores grow, so the first takes more."
          : " Warmer: gaps shrink, so all come closer.";
    card.find(about.sorted.length ? `${about.title}.${turned}` : about.title);
  };
  const draw = () => {
    const state = readState(model);
    const tokens = JSON.stringify([state.queries, state.keys]);
    if (tokens !== shown) {
      shown = tokens;
      grid = matrix({
        label: "Attention weights. Rows are queries, columns are keys.",
        rows: state.queries,
        columns: state.keys,
        corner: ["keys →", "queries ↓"],
        onSelect: (row, column) => set({ selected: [row, column] }),
        onPreview: (...at) => {
          preview = at.length ? at : null;
          drawSelection(readState(model));
        },
      });
      const large = grid.node.classList.contains("large");
      refill(place, make("div", { class: `board${large ? " large" : ""}` }, grid.node), panel);
      if (state.arrows.length) panel.append(picture.node);
      panel.style.minHeight = `${1.36 * Math.min(Math.max(state.keys.length, state.queries.length), SHOWN_IN_PANEL) + 3}rem`;
    }
    const used = {
      causal: isOwn,
      scaled: model.get("d_head"),
      padding_masked: model.get("padding").length,
    };
    temperature.set(model.get("temperature"));
    for (const [name, { node, set: show }] of switches) {
      show(model.get(name));
      node.hidden = !used[name];
    }
    const [queries, keys] = model.get("total");
    const capped = queries > state.queries.length || keys > state.keys.length;
    card.caption.textContent =
      "Disc: attention. Each row has one whole to share out." +
      (state.allowed.some((row) => row.includes(false)) ? " Hatched: masked." : "") +
      (capped
        ? ` The first ${state.queries.length} of ${queries} queries and ${state.keys.length} of ${keys} keys; ` +
          "the weights are shared among the keys shown."
        : "");
    drawSelection(state);
  };
  const names = ["tokens", "key_tokens", "scores", "mask", "d_head", "padding", "total"];
  const stop = onTraits(model, [...names, ...settings], draw);
  draw();
  return () => [stop, picture.close, card.close].forEach((end) => end());
}

export default { render };
