// The attention map: queries are rows, keys are columns, purple is weight.
import { css, formatNumber, make, onTraits, openFrame, refill, setTraits } from "./core.js";
import { button, slider, toggle } from "./controls.js";
import { bars, matrix } from "./drawing.js";

const CSS = css`
  .map {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem 1.5rem;
    align-items: flex-start;
  }
  .map .board {
    flex: 0 1 auto;
    min-width: 0;
    max-width: 100%;
  }
  .map .board.large {
    flex: 2 1 20rem;
  }
  .panel {
    flex: 1 1 15rem;
    min-width: min(15rem, 100%);
    max-width: 26rem;
    min-height: 11rem;
  }
  .title {
    font-weight: 600;
    margin: 0 0 0.4rem;
    min-height: 1.45em;
    overflow-wrap: anywhere;
  }
  .title.hint {
    font-weight: 400;
  }
  .panel .sum {
    font-variant-numeric: tabular-nums;
    text-align: end;
    margin: 0.3rem 0.3rem 0;
    padding-top: 0.2rem;
    border-top: 1px solid var(--line);
  }
  .legend {
    display: flex;
    flex-wrap: wrap;
    gap: 0.3rem 1.25rem;
    align-items: center;
    width: 0;
    min-width: max(100%, 13rem);
  }
  .scale {
    display: inline-block;
    width: 6rem;
    height: 0.75rem;
    margin: 0 0.4rem;
    vertical-align: middle;
    border: 1px solid var(--line);
    background: linear-gradient(to right, transparent, var(--tt-weights));
  }
  .swatch {
    display: inline-block;
    width: 1.1rem;
    height: 0.75rem;
    margin-inline-end: 0.4rem;
    vertical-align: middle;
    border: 1px solid var(--line);
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
      (_, j) =>
        (mask.length ? mask[i][j] : true) && !padding[j] && (!causal || j <= i + nKeys - nQueries),
    ),
  );
}

/** Everything that the picture needs, worked out from the traits. */
function readState(model) {
  const get = (name) => model.get(name);
  const [queries, keys, scores] = [get("tokens"), get("key_tokens"), get("scores")];
  const scale =
    (get("d_head") && get("scaled") ? 1 / Math.sqrt(get("d_head")) : 1) / get("temperature");
  const padding = get("padding_masked") ? get("padding") : [];
  const allowed = allowedKeys(queries.length, keys.length, get("mask"), get("causal"), padding);
  return {
    queries,
    keys,
    allowed,
    weights: attentionWeights(scores, allowed, scale),
    selected: get("selected"),
  };
}

/** What is selected, as words, and as the list that the panel shows. */
function describe({ queries, keys, allowed, weights, selected }) {
  if (selected.length !== 2) return null;
  const [row, column] = selected;
  if (row >= queries.length || column >= keys.length) return null;
  const byRow = row >= 0;
  const entries = (byRow ? keys : queries).map((token, index) => {
    const [i, j] = byRow ? [row, index] : [index, column];
    return {
      token,
      index,
      weight: weights[i][j],
      open: allowed[i][j],
      on: byRow ? index === column : false,
    };
  });
  const sum = entries.reduce((total, entry) => total + entry.weight, 0);
  const sorted = entries
    .filter((entry) => entry.open)
    .sort((a, b) => b.weight - a.weight || a.index - b.index);
  const title =
    byRow && !sorted.length
      ? `“${queries[row]}” may attend to no key (all masked): its weights are all 0`
      : !byRow
        ? `Who attends to “${keys[column]}”`
        : column < 0
          ? `What “${queries[row]}” attends to`
          : allowed[row][column]
            ? `“${queries[row]}” → “${keys[column]}”: weight ${formatNumber(weights[row][column])}`
            : `“${queries[row]}” may not attend to “${keys[column]}” (masked)`;
  return { title, sorted, sum, hidden: entries.length - sorted.length, byRow };
}

const HINT =
  "Point at, tap or move to a cell for its weight, or to a word for its whole row or column.";

function drawPanel(heading, panel, description) {
  heading.textContent = description ? description.title : HINT;
  heading.classList.toggle("hint", !description);
  if (!description) {
    refill(panel);
    return;
  }
  const { sorted, sum, hidden, byRow } = description;
  const shown = sorted.filter((entry, rank) => rank < SHOWN_IN_PANEL || entry.on);
  const items = shown.map(({ token, weight, on }) => ({
    label: token,
    share: weight,
    text: formatNumber(weight),
    on,
  }));
  const rest = sorted.length - shown.length;
  const restSum = sum - shown.reduce((total, entry) => total + entry.weight, 0);
  refill(
    panel,
    bars().show(items),
    rest > 0
      ? make("p", { class: "tt-note", text: `${rest} more, together ${formatNumber(restSum)}` })
      : null,
    make("p", {
      class: "sum",
      text: `Sum of the ${byRow ? "row" : "column"}: ${formatNumber(sum)}`,
    }),
    hidden > 0 ? make("p", { class: "tt-note", text: `${hidden} masked` }) : null,
  );
}

/**
 * What stands in a cell: its weight in digits where there is room, in purple everywhere, hatched
 * where masked.
 */
function drawCells(grid, { queries, keys, allowed, weights, selected }) {
  const withText = keys.length <= 12;
  grid.fill((i, j) => {
    const [weight, open] = [weights[i][j], allowed[i][j]];
    return {
      text: withText && open ? formatNumber(weight, 2) : "",
      level: weight,
      hatch: !open,
      value: weight,
      label: `${queries[i]} attends to ${keys[j]}: ${open ? formatNumber(weight) : "masked"}`,
    };
  });
  grid.mark(...(selected.length === 2 ? selected : [-1, -1]));
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Attention map", CSS);
  const initial = Object.fromEntries(
    ["temperature", "scaled", "causal", "padding_masked", "selected"].map((name) => [
      name,
      model.get(name),
    ]),
  );
  const place = make("div", { class: "map" });
  const heading = make("p", { class: "title" });
  const panel = make("div", { class: "panel" });
  const legend = make("div", { class: "tt-note legend" });
  let grid = null;
  let shown = "";

  const change = (values, words) => {
    setTraits(model, values);
    const description = describe(readState(model));
    say(description ? `${words}. ${description.title}` : words);
  };
  const temperature = slider({
    label: "Temperature",
    min: 0.1,
    max: 5,
    step: 0.1,
    onInput: (value) => change({ temperature: value }, `Temperature ${formatNumber(value, 1)}`),
  });
  const scaled = toggle({
    label: "divide by √d_head",
    onChange: (value) => change({ scaled: value }, value ? "Scaled" : "Not scaled"),
  });
  const causal = toggle({
    label: "causal mask",
    onChange: (value) => change({ causal: value }, value ? "Causal mask on" : "Causal mask off"),
  });
  const padding = toggle({
    label: "padding mask",
    onChange: (value) =>
      change({ padding_masked: value }, value ? "Padding mask on" : "Padding mask off"),
  });
  const reset = button({ label: "Reset", onClick: () => change(initial, "Reset") });
  const controls = make(
    "div",
    { class: "tt-controls" },
    temperature.node,
    scaled.node,
    causal.node,
    padding.node,
    reset,
  );
  root.append(controls, heading, place);

  const select = (row, column, event) => {
    if (String([row, column]) === String(model.get("selected"))) return;
    setTraits(model, { selected: [row, column] });
    // A cell's own label is read on focus; a word's list has to be said.
    if (event.type === "focusin" && (row < 0 || column < 0)) {
      const { title, sorted } = describe(readState(model));
      say(
        `${title}: ${sorted
          .slice(0, 3)
          .map(({ token, weight }) => `${token} ${formatNumber(weight)}`)
          .join(", ")}`,
      );
    }
  };

  const drawLegend = (state) => {
    const masked = state.allowed.some((row) => row.includes(false));
    const [allQueries, allKeys] = model.get("total");
    const capped = allQueries > state.queries.length || allKeys > state.keys.length;
    refill(
      legend,
      make("span", {}, "weight 0", make("span", { class: "scale", "aria-hidden": "true" }), "1"),
      masked
        ? make(
            "span",
            {},
            make("span", { class: "swatch tt-hatch", "aria-hidden": "true" }),
            "masked",
          )
        : null,
      capped
        ? make("span", {
            class: "capped",
            text:
              `Showing the first ${state.queries.length} of ${allQueries} queries and ` +
              `${state.keys.length} of ${allKeys} keys; the weights are shared among the keys shown.`,
          })
        : null,
    );
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
        onSelect: select,
      });
      const large = grid.node.classList.contains("large");
      refill(
        place,
        make("div", { class: `board${large ? " large" : ""}` }, grid.node, legend),
        panel,
      );
    }
    temperature.set(model.get("temperature"));
    scaled.set(model.get("scaled"));
    scaled.node.hidden = !model.get("d_head");
    causal.set(model.get("causal"));
    causal.node.hidden = JSON.stringify(state.queries) !== JSON.stringify(state.keys);
    padding.set(model.get("padding_masked"));
    padding.node.hidden = !model.get("padding").length;
    drawCells(grid, state);
    drawPanel(heading, panel, describe(state));
    drawLegend(state);
  };

  const stop = onTraits(
    model,
    [
      "tokens",
      "key_tokens",
      "scores",
      "mask",
      "temperature",
      "scaled",
      "d_head",
      "causal",
      "padding",
      "padding_masked",
      "selected",
      "total",
    ],
    draw,
  );
  draw();
  return () => {
    stop();
    close();
  };
}

export default { render };
