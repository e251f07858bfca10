// A model's sizes and their costs: formulas that come from Python as text, worked out exactly.
import {
  css,
  formatNumber,
  formatSize,
  make,
  onTraits,
  openFrame,
  refill,
  setTraits,
} from "./core.js";
import { button, choice, rovingGrid, select, slider, toggle } from "./controls.js";
import { bars } from "./drawing.js";

const CSS = css`
  .sliders,
  .views {
    display: grid;
    grid-template-columns: repeat(auto-fill, minmax(min(18rem, 100%), 1fr));
    gap: 0 1.5rem;
    margin: 0 0 0.6rem;
  }
  .sliders .tt-slider {
    max-width: none;
  }
  .sliders label {
    width: 7em;
  }
  .sliders output {
    width: 4.2em;
  }
  .views {
    grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr));
    gap: 0.4rem;
  }
  .views legend {
    display: none;
  }
  .views label {
    border: 1px solid var(--line);
    border-radius: 0.4rem;
    padding: 0.3rem 0.6rem;
    white-space: pre-line;
  }
  .views label:has(:checked) {
    border-color: currentColor;
    box-shadow: inset 0 0 0 1px;
  }
  .rows,
  .formula {
    max-width: 46rem;
    --tt-part: color-mix(in srgb, currentColor 22%, transparent);
    --tt-part-line: var(--line);
  }
  .rows .tt-bars {
    grid-template-columns: fit-content(45%) 1fr auto;
  }
  .rows .token {
    white-space: normal;
  }
  .rows li {
    min-height: 1.75rem;
  }
  .formula {
    margin: 0.5rem 0;
    padding: 0 0.7rem;
    border-inline-start: 3px solid var(--line);
    min-height: 8em;
    overflow-wrap: anywhere;
  }
  .made {
    font:
      0.9em/1.6 ui-monospace,
      Menlo,
      monospace;
  }
`;

const BYTES = { fp32: 4, bf16: 2, int8: 1 };
const VIEWS = {
  parameters: ["Parameters", ""],
  operations: ["One forward pass", "FLOP"],
  running: ["Memory to run", "B"],
  training: ["Memory to train", "B"],
};
const exact = (value) => value.toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
const total = (rows) => rows.reduce((sum, row) => sum + row.value, 0n);
const divisors = (number) =>
  Array.from({ length: Math.min(number, 128) }, (_, i) => i + 1).filter((i) => number % i === 0);

/** The divisor of n that is nearest to a value, by ratio. */
function divisorNear(value, number) {
  const far = (one) => Math.abs(Math.log(one / value));
  return divisors(number).reduce((best, one) => (far(one) < far(best) ? one : best));
}

/**
 * The sizes with one changed and the others made to fit: heads stay as wide, d_ff in proportion.
 */
function withSize(sizes, name, value, grouped) {
  const next = { ...sizes, [name]: value };
  if (name === "d_model") {
    next.h = divisorNear(value / sizes.d_head, value);
    next.d_ff = Math.max(1, Math.round((sizes.d_ff / sizes.d_model) * value));
  }
  if (next.h !== sizes.h)
    next.h_kv = grouped ? divisorNear((sizes.h_kv / sizes.h) * next.h, next.h) : next.h;
  next.d_head = next.d_model / next.h;
  return next;
}

/** What a formula of numbers, names, + − × and brackets gives, in whole numbers of any size. */
function evaluate(formula, names) {
  const flat = (text) =>
    text
      .split(" + ")
      .reduce(
        (sum, term) =>
          sum + term.split(" × ").reduce((product, one) => product * BigInt(names[one] ?? one), 1n),
        0n,
      );
  let text = formula.replaceAll(" − ", " + -1 × ");
  while (text.includes("(")) text = text.replace(/\(([^()]*)\)/g, (_, inner) => flat(inner));
  return flat(text);
}

/** The rows of every view, with their numbers. */
function readState(model) {
  const [form, sizes, tiled] = [
    model.get("forms")[model.get("form")],
    model.get("sizes"),
    model.get("tiled"),
  ];
  const [names, views] = [{ ...sizes, bytes: BYTES[model.get("precision")] }, {}];
  for (const view of Object.keys(VIEWS)) {
    views[view] = form.rows[view].map((row) => {
      const formula = (tiled && row.tiled) || row.formula;
      return {
        ...row,
        remark: model.get("remarks")[row.name] || "",
        formula,
        value: evaluate(formula, names),
        square: formula.includes("T × T"),
      };
    });
    names.parameters ||= total(views[view]);
  }
  const size = (view) => formatSize(Number(total(views[view])), VIEWS[view][1]);
  return {
    form,
    sizes,
    names,
    views,
    size,
    view: model.get("view"),
    rows: views[model.get("view")],
  };
}

function lookAt({ view, form, sizes, names }) {
  const [words, above, below] = form.looks[view];
  const put = below
    ? words.replace("{}", exact(evaluate(above, names) / evaluate(below, names)))
    : words;
  return (
    put +
    (view === "training" && names.bytes === 1 ? form.looks.int8 : "") +
    (sizes.rows && sizes.T > sizes.rows ? form.looks.rows : "")
  );
}

function drawFormula(panel, row, { names, rows }) {
  const put = row.formula.replace(/[a-z]\w*/gi, (name) => exact(names[name]));
  const share = formatNumber((100 * Number(row.value)) / Number(total(rows) || 1n), 1);
  refill(
    panel,
    make("p", {}, make("b", { text: row.name }), `: ${share}\u00a0% of all. ${row.remark}`),
    ...[row.formula, `= ${put}`, `= ${exact(row.value)}`].map((text) =>
      make("p", { class: "made", text }),
    ),
  );
}

/** Bars with one tab stop; `onSelect(index)` follows pointer, focus and taps. */
function rowList(rows, onSelect) {
  const node = bars().show(
    rows.map(({ name, square }) => ({
      label: name + (square ? " · T²" : ""),
      share: 0,
      colour: square ? "weights" : "part",
    })),
  );
  const items = [...node.children];
  const mark = (item, values) =>
    Object.entries(values).forEach((pair) => item.setAttribute(...pair));
  mark(node, { role: "listbox", "aria-label": "Parts" });
  items.forEach((item, i) =>
    mark(item, { role: "option", tabindex: i ? -1 : 0, "data-row": i, "data-column": 0 }),
  );
  rovingGrid(
    node,
    (row) => items[row],
    () => ({ firstRow: 0, lastRow: items.length - 1, firstColumn: 0, lastColumn: 0 }),
  );
  for (const kind of ["pointerover", "focusin", "click"]) {
    node.addEventListener(
      kind,
      ({ target }) => target.closest("li") && onSelect(items.indexOf(target.closest("li"))),
    );
  }
  const set = (values, unit, selected) =>
    items.forEach((item, i) => {
      const value = Number(values[i]);
      item.querySelector(".tt-bar").style.width =
        `${(100 * value) / Math.max(1, ...values.map(Number))}%`;
      item.lastChild.textContent = formatSize(value, unit);
      item.classList.toggle("on", i === selected);
      mark(item, { "aria-selected": i === selected, "data-value": values[i] });
    });
  return { node, set };
}

/**
 * A slider over steps, or over divisors, and the value that stands; hidden where the model has no
 * such size.
 */
function sizeSlider([name, label, steps], onSize) {
  let stops = [];
  const { node, input, set } = slider({
    label,
    min: 0,
    step: 1,
    format: (i) => exact(stops[i] || 0),
    onInput: (i) => onSize(name, stops[i], label),
  });
  const show = ({ sizes, form }) => {
    node.hidden = !sizes[name] || (name === "h_kv" && !form.grouped);
    if (node.hidden) return;
    const possible = steps.length ? steps : divisors(name === "h" ? sizes.d_model : sizes.h);
    stops = [...new Set([...possible, sizes[name]])].sort((a, b) => a - b);
    input.max = stops.length - 1;
    set(stops.indexOf(sizes[name]));
  };
  return { node, show };
}

/** All controls; `show(state)` sets them to what stands. */
function makeControls(model, change, reset) {
  const presets = model.get("presets");
  const pick = select({
    label: "Model",
    options: [...presets.map((one) => [one, one.name]), [undefined, "other sizes"]],
    onChange: (one) =>
      change(
        one ? { form: one.form, sizes: { ...one.sizes, B: model.get("sizes").B } } : {},
        one ? one.name : "Shown",
      ),
  });
  const sliders = model.get("sliders").map((one) =>
    sizeSlider(one, (name, value, label) => {
      const { sizes, form } = readState(model);
      change({ sizes: withSize(sizes, name, value, form.grouped) }, `${label} ${exact(value)}`);
    }),
  );
  const views = choice({
    label: "Count",
    options: Object.entries(VIEWS).map(([view, [label]]) => [view, label]),
    onChange: (view) => change({ view, selected: 0 }, "Shown"),
  });
  views.node.classList.add("views");
  const precision = choice({
    label: "a number is",
    options: Object.keys(BYTES).map((name) => [name, name]),
    onChange: (value) => change({ precision: value }, value),
  });
  const tiled = toggle({
    label: "tiled attention",
    onChange: (value) => change({ tiled: value }, value ? "Tiled" : "Not tiled"),
  });
  const row = (name, ...children) => make("div", { class: name }, ...children);
  const show = (state) => {
    const { sizes, view, size } = state;
    pick.set(
      presets.find(
        (one) =>
          one.form === model.get("form") &&
          Object.entries(one.sizes).every(([name, value]) => name === "B" || sizes[name] === value),
      ),
    );
    for (const one of sliders) one.show(state);
    views.set(view);
    Object.entries(VIEWS).forEach(([name, [label]], i) =>
      refill(views.node.querySelectorAll("span")[i], `${label}\n`, make("b", { text: size(name) })),
    );
    precision.set(model.get("precision"));
    tiled.set(model.get("tiled"));
    precision.node.hidden = VIEWS[view][1] !== "B";
    tiled.node.hidden = view !== "training";
  };
  const nodes = [
    row("tt-controls", pick.node, reset),
    row("sliders", ...sliders.map(({ node }) => node)),
    views.node,
    row("tt-controls", precision.node, tiled.node),
  ];
  return { nodes, show };
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Sizes", CSS);
  const names = ["form", "sizes", "precision", "view", "tiled", "selected"];
  const initial = Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const change = (values, words) => {
    setTraits(model, values);
    const { view, size } = readState(model);
    say(`${words}. ${VIEWS[view][0]}: ${size(view)}`);
    controls.show(readState(model));
  };
  const controls = makeControls(
    model,
    change,
    button({ label: "Reset", onClick: () => change(initial, "Reset") }),
  );
  const [look, head, place, panel] = ["tt-note", "head", "rows", "formula"].map((name) =>
    make("div", { class: name }),
  );
  root.append(...controls.nodes, look, head, place, panel);

  let [list, shown] = [null, ""];
  const draw = () => {
    const state = readState(model);
    const { view, rows } = state;
    const unit = VIEWS[view][1];
    controls.show(state);
    const kind = [model.get("form"), view, model.get("tiled")].join();
    if (kind !== shown) {
      shown = kind;
      list = rowList(rows, (i) => setTraits(model, { selected: i }));
      refill(place, list.node);
    }
    const selected = Math.min(Math.max(model.get("selected"), 0), rows.length - 1);
    list.set(
      rows.map(({ value }) => value),
      unit,
      selected,
    );
    head.textContent = `${exact(total(rows))} ${unit === "B" ? "bytes" : view}`;
    drawFormula(panel, rows[selected], state);
    look.textContent = lookAt(state);
  };
  const stop = onTraits(model, names, draw);
  draw();
  return () => {
    stop();
    close();
  };
}

export default { render };
