// A model's sizes and their costs: formulas that come from Python as text, worked out exactly.
import { css, formatNumber, formatSize, make, onTraits, openCard, refill, setTraits } from "./core.js";
import { choice, rovingGrid, select, slider, toggle } from "./controls.js";
import { bars } from "./drawing.js";

const CSS = css`
  .sliders {
    display: grid;
    grid-template-columns: repeat(auto-fill, minmax(min(18rem, 100%), 1fr));
    gap: 0 1.5rem;
    margin: 0.5rem 0;
  }
  .sliders label {
    width: 8em;
  }
  .sliders output {
    width: 4.2em;
  }
  .views {
    margin-bottom: 0.75rem;
  }
  .views .tt-option {
    white-space: pre-line;
  }
  .rows,
  .formula {
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
    min-height: 2.25rem;
  }
  .rows .tt-bar {
    height: 1.25rem;
  }
  .rows .tt-bar::after {
    content: "";
    display: block;
    height: 100%;
    width: var(--twice);
    background: inherit;
    opacity: 0.35;
  }
  .rows :has(> :nth-child(8)) li {
    min-height: 1.75rem;
  }
  .formula {
    margin: 0.5rem 0;
    overflow-wrap: anywhere;
  }
  .made {
    font:
      0.9em/1.6 ui-monospace,
      Menlo,
      monospace;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
    .rows .tt-bars {
      grid-template-columns: 1fr auto;
    }
    .rows li > div {
      padding-bottom: 0.3rem;
      order: 1;
      grid-column: 1 / -1;
    }
    .rows :has(> :nth-child(8)) li {
      min-height: 0;
      > * {
        grid-row: 1;
        position: relative;
      }
      > span {
        z-index: 1;
        grid-column: 1;
      }
      > .number {
        grid-column: 2;
      }
      > div {
        padding: 0;
        align-self: end;
      }
      .tt-bar {
        height: 0.3rem;
      }
    }
    .views {
      display: grid;
      grid-template-columns: 1fr 1fr;
    }
    .views .tt-option {
      border-radius: 0;
      margin-top: -1px;
    }
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
  if (next.h !== sizes.h) next.h_kv = grouped ? divisorNear((sizes.h_kv / sizes.h) * next.h, next.h) : next.h;
  next.d_head = next.d_model / next.h;
  return next;
}

/** What a formula of numbers, names, + − × and brackets gives, in whole numbers of any size. */
function evaluate(formula, names) {
  const flat = (text) =>
    text
      .split(" + ")
      .reduce(
        (sum, term) => sum + term.split(" × ").reduce((product, one) => product * BigInt(names[one] ?? one), 1n),
        0n,
      );
  let text = formula.replaceAll(" − ", " + -1 × ");
  while (text.includes("(")) text = text.replace(/\(([^()]*)\)/g, (_, inner) => flat(inner));
  return flat(text);
}

/** The rows of every view, with their numbers. */
function readState(model) {
  const [form, sizes, tiled] = [model.get("forms")[model.get("form")], model.get("sizes"), model.get("tiled")];
  const [names, views] = [{ ...sizes, bytes: BYTES[model.get("precision")] }, {}];
  const twice = { ...names, T: 2 * names.T };
  for (const view of Object.keys(VIEWS)) {
    views[view] = form.rows[view].map((row) => {
      const formula = (tiled && row.tiled) || row.formula;
      const [value, doubled] = [evaluate(formula, names), evaluate(formula, twice)];
      return {
        ...row,
        remark: model.get("remarks")[row.name] || "",
        formula,
        value,
        doubled,
        grows: doubled !== value,
        square: formula.includes("T × T"),
      };
    });
    twice.parameters = names.parameters ||= total(views[view]);
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
  const put = below ? words.replace("{}", exact(evaluate(above, names) / evaluate(below, names))) : words;
  return (
    put +
    (view === "training" && names.bytes === 1 ? form.looks.int8 : "") +
    (sizes.rows && sizes.T > sizes.rows ? form.looks.rows : "")
  );
}

/** Whether, in a text of this length, no part costs more than those that grow with its square. */
function overtakes({ rows, names }, length) {
  const values = rows.map(({ formula }) => evaluate(formula, { ...names, T: length }));
  const most = values.reduce((one, other) => (other > one ? other : one));
  return rows.some(({ square }, i) => square && values[i] === most);
}

/** What twice the text would cost, and why. */
function findingOf(state) {
  const { view, rows, names, sizes } = state;
  const word = sizes.patch ? "patch" : "word";
  const exactly = rows.every(({ square, value, doubled }) => !square || doubled === 4n * value);
  return (
    (overtakes(state, names.T)
      ? overtakes(state, names.T - 1)
        ? "Purple has overtaken all others. "
        : "Level: purple has caught up. "
      : "") +
    (rows.some(({ square }) => square)
      ? `Twice the length makes grey at most about twice as long, but purple ${exactly ? "" : "up to "}four times, because every ${word} meets every ${word}.`
      : rows.some(({ grows }) => grows)
        ? "Twice the length makes each part at most about twice as large."
        : `No part grows with the length: the same parameters read every ${word}.`) +
    (sizes.rows && sizes.T > sizes.rows
      ? ` But this model ends at ${exact(sizes.rows)} positions: longer texts are a calculation only.`
      : "") +
    ({ running: " A phone has about 8 GB.", training: " A large graphics card has 80 GB." }[view] || "")
  );
}

function drawFormula(panel, row, { names, rows }) {
  const put = row.formula.replace(/[a-z]\w*/gi, (name) => exact(names[name]));
  const share = formatNumber((100 * Number(row.value)) / Number(total(rows) || 1n), 1);
  refill(
    panel,
    make("p", {}, make("b", { text: row.name }), `: ${share}\u00a0% of all. ${row.remark}`),
    ...[row.formula, `= ${put}`, `= ${exact(row.value)}`].map((text) => make("p", { class: "made", text })),
  );
}

/** Bars with one tab stop; `onSelect(index)` follows pointer, focus and taps. */
function rowList(rows, onSelect) {
  const node = bars().show(
    rows.map(({ name, square }) => ({
      label: name,
      share: 0,
      colour: square ? "weights" : "part",
    })),
  );
  const items = [...node.children];
  const mark = (item, values) => Object.entries(values).forEach((pair) => item.setAttribute(...pair));
  mark(node, { role: "listbox", "aria-label": "Parts" });
  items.forEach((item, i) => mark(item, { role: "option", tabindex: i ? -1 : 0, "data-row": i, "data-column": 0 }));
  rovingGrid(
    node,
    (row) => items[row],
    () => ({ firstRow: 0, lastRow: items.length - 1, firstColumn: 0, lastColumn: 0 }),
  );
  for (const kind of ["focusin", "click"]) {
    node.addEventListener(kind, ({ target }) => target.closest("li") && onSelect(items.indexOf(target.closest("li"))));
  }
  // What does not grow with the square leaves room, so that what does is seen to grow.
  const set = (rows, unit, selected) => {
    const others = rows.filter(({ square }) => !square).map(({ value }) => Number(value));
    const room = others.length < rows.length ? 2.5 : 1;
    const most = Math.max(1, room * Math.max(0, ...others), ...rows.map(({ doubled }) => Number(doubled)));
    items.forEach((item, i) => {
      const value = Number(rows[i].value);
      const { style } = item.querySelector(".tt-bar");
      style.width = `${(100 * value) / most}%`;
      style.setProperty("--twice", `${(100 * Number(rows[i].doubled)) / value}%`);
      item.lastChild.textContent = formatSize(value, unit);
      item.classList.toggle("on", i === selected);
      mark(item, { "aria-selected": i === selected, "data-value": rows[i].value });
    });
  };
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
    onInput: (i) => onSize(name, stops[i]),
  });
  const show = (state) => {
    const { sizes, form } = state;
    node.hidden = !sizes[name] || (name === "h_kv" && !form.grouped);
    if (node.hidden) return;
    const possible = steps.length ? steps : divisors(name === "h" ? sizes.d_model : sizes.h);
    stops = [...new Set([...possible, sizes[name]])].sort((a, b) => a - b);
    input.max = stops.length - 1;
    set(stops.indexOf(sizes[name]));
    // The mark: from this length on nothing costs more than what grows with the square.
    const goal = name === "T" ? stops.findIndex((length) => overtakes(state, length)) : -1;
    input.style.background =
      goal < 1
        ? ""
        : `linear-gradient(var(--tt-weights-line) 0 0) calc(${goal / (stops.length - 1)} * (100% - 20px) + 8px) / 4px no-repeat`;
  };
  return { node, show };
}

/** All controls; `show(state)` sets them to what stands. */
function makeControls(model, change) {
  const presets = model.get("presets");
  const pick = select({
    label: "Model",
    options: [...presets.map((one) => [one, one.name]), [undefined, "other sizes"]],
    onChange: (one) => change(one ? { form: one.form, sizes: { ...one.sizes, B: model.get("sizes").B } } : {}),
  });
  const sliders = model.get("sliders").map((one) =>
    sizeSlider(one, (name, value) => {
      const { sizes, form } = readState(model);
      change({ sizes: withSize(sizes, name, value, form.grouped) });
    }),
  );
  const views = choice({
    name: "Count",
    options: Object.entries(VIEWS).map(([view, [label]]) => [view, label]),
    onChange: (view) => change({ view, selected: 0 }),
  });
  views.node.classList.add("views");
  const precision = choice({
    label: "a number is",
    options: Object.keys(BYTES).map((name) => [name, name]),
    onChange: (value) => change({ precision: value }),
  });
  const tiled = toggle({
    label: "tiled attention",
    onChange: (value) => change({ tiled: value }),
  });
  const row = (name, ...children) => make("div", { class: name }, ...children);
  const show = (state) => {
    const { sizes, view, size } = state;
    pick.set(
      presets.find(
        (one) =>
          one.form === model.get("form") &&
          Object.entries(one.sizes).every(([name, value]) => "BT".includes(name) || sizes[name] === value),
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
  const length = model.get("sliders").findIndex(([name]) => name === "T");
  return {
    views: views.node,
    first: [pick.node, sliders[length].node],
    more: [
      row("tt-controls", precision.node, tiled.node),
      row("sliders", ...sliders.filter((_, i) => i !== length).map(({ node }) => node)),
    ],
    show,
  };
}

function render({ model, el }) {
  const names = ["form", "sizes", "precision", "view", "tiled", "selected"];
  const initial = Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const change = (values) => {
    setTraits(model, values);
    controls.show(readState(model));
  };
  const card = openCard(el, {
    label: "Sizes",
    question: "What does a longer text cost?",
    invite: "Drag the length to the purple mark: what happens there?",
    onReset: () => change(initial),
    css: CSS,
  });
  const controls = makeControls(model, change);
  const [place, panel, look] = ["rows", "formula", "tt-note"].map((name) => make("div", { class: name }));
  card.stage.append(controls.views, place);
  card.controls.append(...controls.first);
  card.caption.textContent = "Pale: with twice the length.";
  card.more("How it is counted", panel, look);
  card.more("More sizes", ...controls.more);

  let [list, shown] = [null, ""];
  const draw = () => {
    const state = readState(model);
    const { view, rows } = state;
    controls.show(state);
    const kind = [model.get("form"), view, model.get("tiled")].join();
    if (kind !== shown) {
      shown = kind;
      list = rowList(rows, (i) => setTraits(model, { selected: i }));
      refill(place, list.node);
    }
    const selected = Math.min(Math.max(model.get("selected"), 0), rows.length - 1);
    list.set(rows, VIEWS[view][1], selected);
    drawFormula(panel, rows[selected], state);
    look.textContent = lookAt(state);
    card.find(findingOf(state));
  };
  const stop = onTraits(model, names, draw);
  draw();
  return () => {
    stop();
    card.close();
  };
}

export default { render };
