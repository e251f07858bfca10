// The dependency map: which outputs (rows) move when an input (column) is nudged.
import { css, formatNumber, make, onTraits, openFrame, refill, setTraits, svg } from "./core.js";
import { button, select } from "./controls.js";
import { matrix } from "./drawing.js";

const CSS = css`
  .wires {
    display: block;
    width: 100%;
    max-width: 46rem;
  }
  text {
    font-size: 12px;
    fill: currentColor;
    text-anchor: middle;
  }
  rect {
    fill: transparent;
  }
  .on rect {
    fill: color-mix(in srgb, var(--c) 25%, transparent);
    stroke: var(--l);
  }
  line {
    stroke: var(--tt-loss-line);
  }
  .title {
    font-weight: 600;
    min-height: 2.9em;
    overflow-wrap: anywhere;
  }
  .legend {
    display: flex;
    flex-wrap: wrap;
    gap: 0.2rem 0.9rem;
  }
  i {
    display: inline-block;
    width: 1.1rem;
    height: 0.8rem;
    margin-inline-end: 0.3rem;
    border: 1px solid var(--line);
    background-color: color-mix(in srgb, var(--tt-loss-line) var(--w), transparent);
  }
`;
const HINT =
  "Point at an input for the outputs that it moves, at an output for the inputs that it hears.";

function write(value) {
  if (value >= 0.001) return formatNumber(value, value >= 10 ? 1 : 3);
  const [digits, exponent] = value.toExponential(1).split("e-");
  return value ? `${digits} · ${power(-exponent)}` : "never";
}

const power = (exponent) =>
  `10${String(exponent).replace(/./g, (sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] || "⁻")}`;

function readState(model) {
  const [tokens, names, maps, shown, selected] = [
    "tokens",
    "names",
    "maps",
    "shown",
    "selected",
  ].map((name) => model.get(name));
  const top = Math.round(Math.log10(Math.max(...maps.flat(2)) || 1));
  // How strong a colour is: a fifth less for each power of ten, and never nothing.
  const level = (value) =>
    value && Math.min(1, Math.max(0.12, 1 - 0.22 * (top - Math.log10(value))));
  const [row, column] = selected.length ? selected : [-1, -1];
  return {
    tokens,
    names,
    shown,
    row,
    column,
    top,
    level,
    table: maps[names.indexOf(shown)] || maps[0],
  };
}

function describe({ tokens, table, row, column }) {
  if (row < 0 && column < 0) return HINT;
  const [to, from] = [`the output “${tokens[row]}”`, `the input “${tokens[column]}”`];
  if (row >= 0 && column >= 0) {
    const value = table[row][column];
    return value
      ? `Nudge ${from} by 1: ${to} moves by ${write(value)}.`
      : `Nudge ${from} as you like: ${to} never moves.`;
  }
  const moved = (row < 0 ? table.map((line) => line[column]) : table[row]).filter((value) => value);
  const count = `${moved.length} of ${tokens.length}`;
  const sizes = moved.length
    ? `, by ${write(Math.min(...moved))} to ${write(Math.max(...moved))}`
    : "";
  return row < 0
    ? `Nudge ${from} by 1: ${count} outputs move${sizes}.`
    : `Nudge the inputs by 1: ${count} move ${to}${sizes}.`;
}

/** A line wherever an input, below, moves an output, above: of what is selected, or all. */
function drawWires(picture, { tokens, table, row, column, level }, width, pick) {
  const step = (width - 52) / tokens.length;
  const x = (i) => 52 + (i + 0.5) * step;
  const letters = Math.max(2, Math.floor(step / 8));
  const near = (i, j) => (row < 0 || i === row) && (column < 0 || j === column);
  const lines = table
    .flatMap((line, i) =>
      line.map(
        (value, j) =>
          value &&
          near(i, j) &&
          svg("line", {
            x1: x(j),
            y1: 108,
            x2: x(i),
            y2: 26,
            "stroke-opacity": 0.3 + 0.7 * level(value),
            "stroke-width": 0.6 + 2.4 * level(value),
          }),
      ),
    )
    .filter(Boolean);
  const ends = [
    [17, "query", row],
    [124, "key", column],
  ].flatMap(([y, colour, on], below) =>
    tokens.map((token, i) => {
      const select = () => pick(...(below ? [-1, i] : [i, -1]));
      return svg(
        "g",
        {
          class: i === on && "on",
          style: `--c: var(--tt-${colour}); --l: var(--tt-${colour}-line)`,
          onpointerover: select,
          onclick: select,
        },
        svg("rect", { x: x(i) - step / 2, y: y - 16, width: step, height: 24, rx: 4 }),
        svg("text", {
          x: x(i),
          y,
          text: token.length > letters ? `${token.slice(0, letters - 1)}…` : token,
        }),
      );
    }),
  );
  picture.setAttribute("viewBox", `0 0 ${width} 134`);
  refill(
    picture,
    ...lines,
    svg("text", { x: 24, y: 17, text: "outputs" }),
    svg("text", { x: 24, y: 124, text: "inputs" }),
    ...ends,
  );
}

function drawLegend(place, { top, tokens }, total) {
  const key = (text, share, name) =>
    make("span", {}, make("i", { class: name, style: `--w: ${share}%` }), text);
  refill(
    place,
    "moves, for a nudge of 1, by",
    ...[0, 1, 2, 3, 4].map((below) =>
      key(power(top - below) + (below === 4 ? " or less" : ""), 100 - 22 * below),
    ),
    key("never", 0, "tt-hatch"),
    total > tokens.length ? `Only the first ${tokens.length} of ${total} tokens.` : "",
  );
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Dependency map", CSS);
  const initial = { shown: model.get("shown"), selected: model.get("selected") };
  const picture = svg("svg", { class: "wires", role: "img" });
  const [title, place, legend, controls] = ["title", "", "tt-note legend", "tt-controls"].map(
    (name) => make("div", { class: name }),
  );
  const change = (values, words) => {
    setTraits(model, values);
    say(`${words} ${describe(readState(model))}`);
  };
  const pick = (row, column, event) => {
    if (String([row, column]) === String(model.get("selected"))) return;
    setTraits(model, { selected: [row, column] });
    // A cell's own label is read on focus.
    if (event && event.type === "focusin" && Math.min(row, column) < 0)
      say(describe(readState(model)));
  };
  root.append(controls, picture, title, place, legend);
  let [grid, list, known] = [null, null, ""];

  const rebuild = ({ tokens, names }) => {
    grid = matrix({
      label: "Rows are outputs, columns inputs.",
      rows: tokens,
      columns: tokens,
      corner: ["inputs →", "outputs ↓"],
      onSelect: pick,
    });
    list = select({
      label: "Function",
      options: names.map((name) => [name, name]),
      onChange: (shown) => change({ shown }, `${shown}.`),
    });
    refill(
      controls,
      list.node,
      button({ label: "Reset", onClick: () => change(initial, "Reset.") }),
    );
    refill(place, grid.node);
  };
  const draw = () => {
    const state = readState(model);
    const { tokens, names, shown, row, column, table, level } = state;
    if (known !== (known = JSON.stringify([tokens, names]))) rebuild(state);
    list.set(shown);
    grid.fill((i, j) => ({
      level: level(table[i][j]),
      colour: "loss",
      hatch: !table[i][j],
      value: table[i][j],
      label: `input ${tokens[j]} moves output ${tokens[i]}: ${write(table[i][j])}`,
    }));
    grid.mark(row, column);
    drawWires(picture, state, Math.min(root.clientWidth || 300, 736), pick);
    picture.setAttribute("aria-label", `${shown}: lines from inputs to outputs`);
    title.textContent = describe(state);
    drawLegend(legend, state, model.get("total"));
  };
  const watcher = new ResizeObserver(draw);
  watcher.observe(root);
  const ends = [
    onTraits(model, ["tokens", "names", "maps", "shown", "selected", "total"], draw),
    () => watcher.disconnect(),
    close,
  ];
  draw();
  return () => ends.forEach((end) => end());
}

export default { render };
