// Attention, step by step: every matrix from the tokens' vectors to the blend, and the sum behind
// every number.
import { css, formatNumber, make, onTraits, openFrame, refill, setTraits } from "./core.js";
import { player, toggle } from "./controls.js";
import { matrix } from "./drawing.js";

const CSS = css`
  .sym {
    padding: 0 0.2em;
    border-radius: 0.2em;
    border-bottom: 3px solid var(--l, transparent);
    background: color-mix(in srgb, var(--f, transparent) 18%, transparent);
  }
  .formula {
    font:
      1.25rem/1.7 Georgia,
      serif;
    display: flex;
    flex-wrap: wrap;
    gap: 0 1.5rem;
  }
  .sum {
    position: sticky;
    top: 3rem;
    z-index: 3;
    padding: 0.4rem 0.7rem;
    margin: 0.5rem 0;
    border: 1px solid var(--line);
    border-radius: 0.35rem;
    background: var(--tt-page);
    overflow-wrap: anywhere;
    line-height: 1.75;
  }
  .title {
    font-weight: 600;
  }
  .term,
  .name {
    white-space: nowrap;
  }
  .zone {
    display: flex;
    flex-wrap: wrap;
    gap: 0.6rem 0.8rem;
  }
  .zone > * {
    min-width: 0;
    max-width: 100%;
  }
  .old {
    border-top: 1px solid var(--line);
    margin-top: 0.8rem;
  }
  .old .box:not(.used) {
    opacity: 0.8;
  }
  .box {
    padding: 0.3rem;
    border: 2px solid transparent;
    border-radius: 0.5rem;
  }
  .new .box:first-child {
    border-color: var(--l, currentColor);
  }
  td.tt-hatch {
    background-image: none;
  } /* digits stand on it */
  .own .row-on,
  .own .column-on {
    border-color: var(--l, currentColor) !important;
    background: color-mix(in srgb, var(--f, currentColor) 14%, var(--tt-page)) !important;
  }
`;

const view = (matrix) => (i, j) => [
  ["X", i, -1],
  [matrix, j, -1],
];
// What a number is made from: rows (column -1) or columns (row -1) of other matrices, or one
// number.
const FROM = {
  Q: view("W_Q"),
  K: view("W_K"),
  V: view("W_V"),
  QK: (i, j) => [
    ["Q", i, -1],
    ["K", j, -1],
  ],
  S: (i, j) => [["QK", i, j]],
  M: (i, j) => [["S", i, j]],
  A: (i, _, causal) => [[causal ? "M" : "S", i, -1]],
  AV: (i, j) => [
    ["A", i, -1],
    ["V", -1, j],
  ],
};

const sum = (list) => list.reduce((total, value) => total + value, 0);
const times = (rows, columns) =>
  rows.map((row) => columns.map((other) => sum(row.map((value, inner) => value * other[inner]))));
const flip = (table) => table[0].map((_, j) => table.map((row) => row[j]));
const short = (value) => formatNumber(value, 3).replace(/\.?0+$/, "");

function trace(get) {
  const [X, W_Q, W_K, W_V] = ["embeddings", "w_query", "w_key", "w_value"].map(get);
  const [Q, K, V] = [W_Q, W_K, W_V].map((matrix) => times(X, matrix));
  const QK = times(Q, K);
  const S = QK.map((row) => row.map((value) => value / Math.sqrt(W_Q.length)));
  const M = S.map((row, i) => row.map((value, j) => (get("causal") && j > i ? -Infinity : value)));
  const A = M.map((row) => {
    const powers = row.map((value) => Math.exp(value - Math.max(...row)));
    return powers.map((power) => power / sum(powers));
  });
  const AV = times(A, flip(V));
  return {
    X,
    W_Q,
    W_K,
    W_V,
    Q,
    K,
    V,
    QK,
    S,
    M,
    A,
    AV,
    tokens: get("tokens"),
    causal: get("causal"),
    ...get("lesson"),
  };
}

const dye = (state, part, colour = state.parts[part]?.[3]) =>
  colour && `--f: var(--tt-${colour}); --l: var(--tt-${colour}-line)`;
const chip = (state, part, ...children) =>
  make("span", { class: "sym", style: dye(state, part) }, ...children);

/** `W_Q^T` as W with an index and a transpose sign, in colour. */
function formula(state, text) {
  const piece = (one) =>
    ({ _: make("sub", { text: one.slice(1) }), "^": make("sup", { text: one.slice(1) }) })[
      one[0]
    ] || one;
  return make(
    "span",
    {},
    ...text
      .split(" ")
      .flatMap((word) => [
        chip(state, word.replace("^T", ""), ...word.split(/([_^][A-Za-z]+)/).map(piece)),
        " ",
      ]),
  );
}

/** The sum that made a number, with the numbers put in. */
function sumBehind(state, part, i, j) {
  const result = [" = ", make("b", { text: short(state[part][i][j]) })];
  if (!FROM[part]) return [state.parts[part][0], ...result];
  const [[one, numbers], [other, others] = []] = FROM[part](i, j, state.causal).map(
    ([name, row, column]) => [
      name,
      row < 0
        ? flip(state[name])[column]
        : column < 0
          ? state[name][row]
          : [state[name][row][column]],
    ],
  );
  const root = state.W_Q.length;
  if (part === "S")
    return [
      `${short(numbers[0])} / √${root} = ${short(numbers[0])} / ` + `${short(Math.sqrt(root))}`,
      ...result,
    ];
  if (part === "M") return [j > i ? "a later key" : short(numbers[0]), ...result];
  const add = (terms) =>
    terms.flatMap((term, index) => [index ? " + " : "", make("span", { class: "term" }, ...term)]);
  const factor = (name, value, first) =>
    chip(state, name, value < 0 && !first ? `(${short(value)})` : short(value));
  if (others)
    return [
      ...add(
        numbers.map((value, index) => [
          factor(one, value, !index),
          "·",
          factor(other, others[index]),
        ]),
      ),
      ...result,
    ];
  const top = Math.max(...numbers);
  const shift = Math.abs(top) > 10 ? top : 0; // the weights stay the same
  const power = (score) => [
    "e",
    make("span", { class: "tt-hidden", text: "^" }),
    make("sup", { text: short(score - shift) }),
  ];
  const powers = numbers.map((score) => Math.exp(score - shift));
  return [
    shift ? `largest score ${short(shift)} subtracted: ` : "",
    ...power(numbers[j]),
    " / (",
    ...add(numbers.filter(Number.isFinite).map(power)),
    `) = ${short(powers[j])} / ${short(sum(powers))}`,
    ...result,
  ];
}

function title({ parts, tokens }, part, i, j) {
  const [name, rows, columns] = parts[part];
  return rows.startsWith("d_")
    ? `${part}, row ${i}, column ${j}`
    : `${name} of “${tokens[i]}”${columns === "keys" ? ` for “${tokens[j]}”` : `, feature ${j}`}`;
}

function box(state, part, used, onSelect) {
  const [name, down, across, colour, symbol = part] = state.parts[part];
  const labels = (axis, list) =>
    list.map((_, i) => (axis.startsWith("d_") ? `${i}` : state.tokens[i]));
  const [rows, columns] = [labels(down, state[part]), labels(across, state[part][0])];
  const grid = matrix({
    label: `${part}: ${name}`,
    rows,
    columns,
    side: "2.6rem",
    corner: [`${across} →`, `${down} ↓`],
    onSelect: (i, j, event) => i >= 0 && j >= 0 && onSelect([part, i, j], event),
  });
  const largest = Math.max(...state[part].flat().map(Math.abs)) * 2.4 || 1;
  grid.fill((i, j) => {
    const value = state[part][i][j];
    const hatch = "MA".includes(part) && state.M[i][j] === -Infinity;
    return {
      colour,
      hatch,
      value,
      text: formatNumber(value, Math.abs(value) < 100 ? 2 : 0),
      level: part === "A" ? value : colour ? Math.abs(value) / largest : 0,
      label: `${title(state, part, i, j)}: ${hatch ? "masked" : formatNumber(value)}`,
    };
  });
  const style = `box${across === "keys" ? "" : " own"}${used}`;
  return {
    grid,
    node: make(
      "div",
      { class: style, "data-part": part, style: dye(state, part) },
      make(
        "div",
        { class: "name" },
        formula(state, symbol),
        `${name}, ${rows.length} × ${columns.length}`,
      ),
      grid.node,
    ),
  };
}

function stepsOf(get) {
  const steps = get("lesson").steps.filter(([name]) => name !== "mask" || get("causal"));
  const at = steps.findIndex(([name]) => name === get("step"));
  return [steps, at < 0 ? 3 : at]; // the mask's step without a mask: the scale
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Attention, step by step", CSS);
  const get = (name) => model.get(name);
  const initial = Object.fromEntries(
    ["causal", "step", "selected"].map((name) => [name, get(name)]),
  );
  const nodes = ["formula", "why", "sum", "zone new", "zone old", "tt-note"].map((name) =>
    make("div", { class: name }),
  );
  const [equation, text, panel, fresh, old, note] = nodes;
  let [state, boxes] = [];

  const picked = () => {
    const [part, i = 1, j = 0] = get("selected");
    const name = part in boxes ? part : Object.keys(boxes)[0];
    return [name, Math.min(i, state[name].length - 1), Math.min(j, state[name][0].length - 1)];
  };
  const drawSum = () => {
    const [part, i, j] = picked();
    const from = { [part]: [i, j] };
    for (const [name, ...place] of FROM[part]?.(i, j, state.causal) || []) from[name] = place;
    refill(
      panel,
      make("div", { class: "title", text: title(state, part, i, j) }),
      ...sumBehind(state, part, i, j),
    );
    panel.style.minHeight = `${panel.offsetHeight}px`; // never shrinks under the pointer
    for (const name in boxes) boxes[name].grid.mark(...(from[name] || [-1, -1]));
  };
  const select = (selected, event) => {
    if (String(selected) === String(get("selected"))) return;
    setTraits(model, { selected });
    if (event.type === "focusin") say(panel.textContent);
  };
  const draw = () => {
    state = trace(get);
    boxes = {};
    const [steps, at] = stepsOf(get);
    const [, , why, formulas, made] = steps[at];
    const reads = (FROM[made[0][0]]?.(0, 0, state.causal) || [])
      .map(([part]) => part)
      .filter((part) => part[0] !== "W");
    const before = steps
      .slice(0, at)
      .flatMap((step) => step[4].map(([part]) => part))
      .filter((part) => !reads.includes(part));
    const boxed =
      (used = "") =>
      (part) =>
        (boxes[part] = box(state, part, used, select)).node;
    refill(
      equation,
      ...formulas.map((one) =>
        formula(state, state.causal ? one.replace("( S )", "( S_masked )") : one),
      ),
    );
    text.textContent = why;
    refill(fresh, ...made.map((parts) => make("div", {}, ...parts.map(boxed()))));
    refill(old, ...reads.map(boxed(" used")), ...before.map(boxed()));
    panel.style.minHeight = "";
    note.textContent = `${state.hint} ${get("note")}`;
    controls.show();
    drawSum();
  };
  const controls = controlsFor(model, get, initial, picked, say);
  root.append(controls.node, ...nodes);
  const stops = [
    onTraits(model, ["selected"], drawSum),
    onTraits(
      model,
      ["tokens", "embeddings", "w_query", "w_key", "w_value", "causal", "step", "note"],
      draw,
    ),
    controls.close,
    close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

function controlsFor(model, get, initial, picked, say) {
  const walk = player({
    count: () => stepsOf(get)[0].length,
    seconds: 4,
    describe: (i) => `step ${i + 1} of ${stepsOf(get)[0].length}: ${stepsOf(get)[0][i][1]}`,
    onStep: (i) => {
      const [step, , why, , made] = stepsOf(get)[0][i];
      setTraits(model, { step, selected: [made[0][0], ...picked().slice(1)] });
      say(why);
    },
    onReset: () => setTraits(model, initial),
  });
  const causal = toggle({
    label: "causal mask",
    onChange: (value) => setTraits(model, { causal: value }),
  });
  const show = () => {
    causal.set(get("causal"));
    walk.set(stepsOf(get)[1]);
  };
  return {
    node: make("div", { class: "tt-controls" }, walk.node, causal.node),
    show,
    close: walk.close,
  };
}

export default { render };
