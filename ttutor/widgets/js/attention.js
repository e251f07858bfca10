// The attention map: queries are rows, keys are columns, purple is weight.
import {
  button, formatNumber, make, onTraits, openFrame, refill, rovingGrid, setTraits, slider, toggle,
} from "./core.js";

const CSS = `
.map { display: flex; flex-wrap: wrap; gap: 0.5rem 1.5rem; align-items: flex-start; }
.scroll { flex: 0 1 auto; min-width: 0; max-width: 100%; overflow: auto; padding: 3px; }
.scroll.large { flex: 2 1 20rem; max-height: 28rem; }
table { border-collapse: separate; border-spacing: 2px; }
th { font-weight: 500; padding: 0.1rem 0.3rem; cursor: default; border: 2px solid transparent; border-radius: 0.25rem; background: var(--tt-page); }
th .token { display: block; overflow: hidden; text-overflow: ellipsis; white-space: pre; max-width: 8em; }
th[scope="row"] { text-align: end; position: sticky; left: 0; z-index: 1; }
th[scope="col"] { vertical-align: bottom; padding-inline: 0; }
.large thead th { position: sticky; top: 0; z-index: 2; }
.tall th[scope="col"] .token { writing-mode: vertical-rl; transform: rotate(180deg); max-width: none; max-height: 7em; margin: 0 auto; }
.corner { font-size: 0.75rem; font-weight: 400; line-height: 1.3; white-space: nowrap; text-align: end; vertical-align: bottom; }
.corner span { display: block; }
td { width: var(--cell); min-width: var(--cell); height: var(--cell); padding: 0; text-align: center; cursor: default;
  font-size: var(--digits, 0.8rem); font-variant-numeric: tabular-nums; border-radius: 3px;
  box-shadow: inset 0 0 0 1px color-mix(in srgb, currentColor 30%, transparent);
  background-color: color-mix(in srgb, var(--tt-weights) calc(var(--w) * 100%), transparent); }
td.bare { background-color: color-mix(in srgb, var(--tt-weights-line) calc(var(--w) * 100%), transparent); }
.hatch, td.hatch { background-color: color-mix(in srgb, var(--tt-masked) 45%, transparent);
  background-image: repeating-linear-gradient(135deg, var(--tt-masked-line) 0 1px, transparent 1px 6px); }
th.row-on { border-color: var(--tt-query-line); background: color-mix(in srgb, var(--tt-query) 14%, var(--tt-page)); }
th.column-on { border-color: var(--tt-key-line); background: color-mix(in srgb, var(--tt-key) 20%, var(--tt-page)); }
td.near { box-shadow: inset 0 0 0 1px currentColor; }
td.on { box-shadow: inset 0 0 0 2px currentColor; }
.panel { flex: 1 1 15rem; min-width: min(15rem, 100%); max-width: 26rem; min-height: 11rem; }
.title { font-weight: 600; margin: 0 0 0.4rem; min-height: 1.45em; overflow-wrap: anywhere; }
.title.hint { font-weight: 400; }
.panel ol { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: fit-content(9em) 1fr auto; column-gap: 0.6rem; }
.panel li { display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; align-items: center; padding: 0 0.3rem; border-radius: 0.25rem; }
.panel li.on { box-shadow: inset 0 0 0 1px currentColor; }
.panel li .token { overflow: hidden; text-overflow: ellipsis; white-space: pre; }
.panel li .number, .panel .sum { font-variant-numeric: tabular-nums; text-align: end; }
.bar { height: 0.75rem; border-radius: 2px; background: var(--tt-weights); box-shadow: inset 0 0 0 1px var(--tt-weights-line); }
.panel .sum { margin: 0.3rem 0.3rem 0; padding-top: 0.2rem; border-top: 1px solid var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: 0.3rem 1.25rem; align-items: center; }
.scale { display: inline-block; width: 6rem; height: 0.75rem; margin: 0 0.4rem; vertical-align: middle; border: 1px solid var(--line);
  background: linear-gradient(to right, transparent, var(--tt-weights)); }
.swatch { display: inline-block; width: 1.1rem; height: 0.75rem; margin-inline-end: 0.4rem; vertical-align: middle; border: 1px solid var(--line); }
@container (max-width: 27rem) { table { --cell: 2rem !important; --digits: 0.7rem; font-size: 0.85rem; } }
`;

const SHOWN_IN_PANEL = 8;

/** The weights of each row: a softmax over the keys that the row may see, zeros when it may see none. */
export function attentionWeights(scores, allowed, scale) {
  return scores.map((row, i) => {
    const open = row.map((_, j) => allowed[i][j]);
    const top = Math.max(...row.map((score, j) => (open[j] ? score * scale : -Infinity)));
    const powers = row.map((score, j) => (open[j] ? Math.exp(score * scale - top) : 0));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => (total > 0 ? power / total : 0));
  });
}

/** True where query i may attend to key j: the given mask, and the causal one when it is on (last query, last key). */
export function allowedKeys(nQueries, nKeys, mask, causal) {
  return Array.from({ length: nQueries }, (_, i) =>
    Array.from({ length: nKeys }, (_, j) => (mask.length ? mask[i][j] : true) && (!causal || j <= i + nKeys - nQueries)));
}

/** Everything that the picture needs, worked out from the traits. */
function readState(model) {
  const get = (name) => model.get(name);
  const [queries, keys, scores] = [get("tokens"), get("key_tokens"), get("scores")];
  const scale = (get("d_head") && get("scaled") ? 1 / Math.sqrt(get("d_head")) : 1) / get("temperature");
  const allowed = allowedKeys(queries.length, keys.length, get("mask"), get("causal"));
  return { queries, keys, allowed, weights: attentionWeights(scores, allowed, scale), selected: get("selected") };
}

/** What is selected, as words, and as the list that the panel shows. */
function describe({ queries, keys, allowed, weights, selected }) {
  if (selected.length !== 2) return null;
  const [row, column] = selected;
  if (row >= queries.length || column >= keys.length) return null;
  const byRow = row >= 0;
  const entries = (byRow ? keys : queries).map((token, index) => {
    const [i, j] = byRow ? [row, index] : [index, column];
    return { token, index, weight: weights[i][j], open: allowed[i][j], on: byRow ? index === column : false };
  });
  const sum = entries.reduce((total, entry) => total + entry.weight, 0);
  const sorted = entries.filter((entry) => entry.open).sort((a, b) => b.weight - a.weight || a.index - b.index);
  const title = !byRow ? `Who attends to “${keys[column]}”`
    : column < 0 ? `What “${queries[row]}” attends to`
    : allowed[row][column] ? `“${queries[row]}” → “${keys[column]}”: weight ${formatNumber(weights[row][column])}`
    : `“${queries[row]}” may not attend to “${keys[column]}” (masked)`;
  return { title, sorted, sum, hidden: entries.length - sorted.length, byRow };
}

const HINT = "Point at, tap or move to a cell for its weight, or to a word for its whole row or column.";

function drawPanel(heading, panel, description) {
  heading.textContent = description ? description.title : HINT;
  heading.classList.toggle("hint", !description);
  if (!description) {
    refill(panel);
    return;
  }
  const { sorted, sum, hidden, byRow } = description;
  const shown = sorted.filter((entry, rank) => rank < SHOWN_IN_PANEL || entry.on);
  const items = shown.map((entry) => {
    const bar = make("div", { class: "bar tt-ease" });
    bar.style.width = `${100 * entry.weight}%`;
    return make("li", { class: entry.on ? "on" : "" },
      make("span", { class: "token", text: entry.token, title: entry.token }), make("div", {}, bar),
      make("span", { class: "number", text: formatNumber(entry.weight) }));
  });
  const rest = sorted.length - shown.length;
  const restSum = sum - shown.reduce((total, entry) => total + entry.weight, 0);
  refill(panel,
    make("ol", {}, ...items),
    rest > 0 ? make("p", { class: "tt-note", text: `${rest} more, together ${formatNumber(restSum)}` }) : null,
    make("p", { class: "sum", text: `Sum of the ${byRow ? "row" : "column"}: ${formatNumber(sum)}` }),
    hidden > 0 ? make("p", { class: "tt-note", text: `${hidden} masked` }) : null,
  );
}

/** The table, built once for given tokens; its numbers are filled in by `fill`. */
function buildTable(queries, keys) {
  const tall = keys.length > 12 || keys.some((token) => token.length > 5);
  const side = keys.length <= 12 ? "2.4rem" : keys.length <= 24 ? "1.75rem" : "1.3rem";
  const heads = keys.map((token, j) =>
    make("th", { scope: "col", role: "columnheader", tabindex: -1, "data-row": -1, "data-column": j, title: token },
      make("span", { class: "token", text: token })));
  const cells = queries.map((_, i) =>
    keys.map((_, j) => make("td", { role: "gridcell", tabindex: -1, "data-row": i, "data-column": j })));
  const labels = queries.map((token, i) =>
    make("th", { scope: "row", role: "rowheader", tabindex: -1, "data-row": i, "data-column": -1, title: token },
      make("span", { class: "token", text: token })));
  const corner = make("th", { class: "corner", role: "columnheader" }, make("span", { text: "keys →" }), make("span", { text: "queries ↓" }));
  const table = make("table", { role: "grid", class: tall ? "tall" : "", "aria-label": "Attention weights. Rows are queries, columns are keys." },
    make("thead", {}, make("tr", { role: "row" }, corner, ...heads)),
    make("tbody", {}, ...cells.map((row, i) => make("tr", { role: "row" }, labels[i], ...row))));
  table.style.setProperty("--cell", side);
  return { table, heads, labels, cells };
}

function fill({ heads, labels, cells }, state) {
  const { queries, keys, allowed, weights, selected } = state;
  const [row, column] = selected.length === 2 ? selected : [-1, -1];
  const near = (i, j) => (row >= 0 ? i === row : j === column);
  const withText = keys.length <= 12;
  cells.forEach((line, i) => line.forEach((cell, j) => {
    const [weight, open] = [weights[i][j], allowed[i][j]];
    cell.style.setProperty("--w", weight.toFixed(4));
    cell.dataset.weight = weight.toFixed(9);
    cell.textContent = withText && open ? formatNumber(weight, 2) : "";
    cell.className = ["tt-ease", open ? (withText ? "" : "bare") : "hatch", i === row && j === column ? "on" : near(i, j) ? "near" : ""].join(" ");
    cell.setAttribute("aria-label", `${queries[i]} attends to ${keys[j]}: ${open ? formatNumber(weight) : "masked"}`);
  }));
  labels.forEach((label, i) => label.classList.toggle("row-on", i === row));
  heads.forEach((head, j) => head.classList.toggle("column-on", j === column));
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Attention map", CSS);
  const initial = Object.fromEntries(["temperature", "scaled", "causal", "selected"].map((name) => [name, model.get(name)]));
  const scroll = make("div", { class: "scroll" });
  const heading = make("p", { class: "title" });
  const panel = make("div", { class: "panel" });
  const legend = make("div", { class: "tt-note legend" });
  let parts = null;
  let shown = "";

  const change = (values, words) => {
    setTraits(model, values);
    const description = describe(readState(model));
    say(description ? `${words}. ${description.title}` : words);
  };
  const temperature = slider({ label: "Temperature", min: 0.1, max: 5, step: 0.1,
    onInput: (value) => change({ temperature: value }, `Temperature ${formatNumber(value, 1)}`) });
  const scaled = toggle({ label: "divide by √d_head",
    onChange: (value) => change({ scaled: value }, value ? "Scaled" : "Not scaled") });
  const causal = toggle({ label: "causal mask",
    onChange: (value) => change({ causal: value }, value ? "Causal mask on" : "Causal mask off") });
  const reset = button({ label: "Reset", onClick: () => change(initial, "Reset") });
  const controls = make("div", { class: "tt-controls" }, temperature.node, scaled.node, causal.node, reset);
  root.append(controls, heading, make("div", { class: "map" }, scroll, panel), legend);

  const grid = rovingGrid(scroll,
    (row, column) => (row < 0 && column < 0 ? null : row < 0 ? parts.heads[column] : column < 0 ? parts.labels[row] : parts.cells[row][column]),
    () => ({ firstRow: -1, lastRow: parts.cells.length - 1, firstColumn: -1, lastColumn: parts.heads.length - 1 }));

  const drawLegend = (state) => {
    const masked = state.allowed.some((row) => row.includes(false));
    const [allQueries, allKeys] = model.get("total");
    const capped = allQueries > state.queries.length || allKeys > state.keys.length;
    refill(legend,
      make("span", {}, "weight 0", make("span", { class: "scale", "aria-hidden": "true" }), "1"),
      masked ? make("span", {}, make("span", { class: "swatch hatch", "aria-hidden": "true" }), "masked") : null,
      capped ? make("span", { class: "capped", text: `Showing the first ${state.queries.length} of ${allQueries} queries and `
        + `${state.keys.length} of ${allKeys} keys; the weights are shared among the keys shown.` }) : null);
  };

  const draw = () => {
    const state = readState(model);
    const tokens = JSON.stringify([state.queries, state.keys]);
    if (tokens !== shown) {
      shown = tokens;
      parts = buildTable(state.queries, state.keys);
      refill(scroll, parts.table);
      scroll.classList.toggle("large", Math.max(state.queries.length, state.keys.length) > 16);
      grid.makeStop(parts.cells[0][0]);
    }
    temperature.set(model.get("temperature"));
    scaled.set(model.get("scaled"));
    scaled.node.hidden = !model.get("d_head");
    causal.set(model.get("causal"));
    causal.node.hidden = JSON.stringify(state.queries) !== JSON.stringify(state.keys);
    fill(parts, state);
    drawPanel(heading, panel, describe(state));
    drawLegend(state);
  };

  const select = (event) => {
    const cell = event.target.closest("[data-row]");
    if (!cell) return;
    const next = [Number(cell.dataset.row), Number(cell.dataset.column)];
    if (String(next) === String(model.get("selected"))) return;
    setTraits(model, { selected: next });
    // A cell's own label is read on focus; a word's list has to be said.
    if (event.type === "focusin" && next.includes(-1)) {
      const { title, sorted } = describe(readState(model));
      say(`${title}: ${sorted.slice(0, 3).map(({ token, weight }) => `${token} ${formatNumber(weight)}`).join(", ")}`);
    }
  };
  for (const kind of ["pointerover", "focusin", "click"]) scroll.addEventListener(kind, select);

  const stop = onTraits(model,
    ["tokens", "key_tokens", "scores", "mask", "temperature", "scaled", "d_head", "causal", "selected", "total"], draw);
  draw();
  return () => {
    stop();
    close();
  };
}

export default { render };
