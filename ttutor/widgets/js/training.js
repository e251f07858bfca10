// Training: the learning rate over time, the shift of the decoder's input, and the target of label
// smoothing.
import {
  css,
  formatCount,
  formatNumber,
  make,
  onTraits,
  openFrame,
  refill,
  setTraits,
} from "./core.js";
import { button, choice, player, rovingGrid, slider, toggle } from "./controls.js";
import { bars, chart } from "./drawing.js";

const CSS = css`
  .facts {
    margin: 0.4rem 0;
    overflow-wrap: anywhere;
  }
  .lanes {
    overflow-x: auto;
    padding: 3px;
    margin: 0.2rem 0 0.6rem;
  }
  .lanes table {
    border-collapse: separate;
    border-spacing: 4px 10px;
  }
  .lanes th {
    text-align: start;
    font-weight: 600;
    padding-inline-end: 0.6rem;
    white-space: nowrap;
    position: sticky;
    left: 0;
    background: var(--tt-page);
  }
  .lanes td {
    padding: 0.25rem 0.6rem;
    text-align: center;
    border-radius: 0.3rem;
    border: 2px solid var(--line);
    white-space: pre;
    cursor: default;
  }
  .lanes td.read {
    border-color: var(--tt-memory-line);
    background: color-mix(in srgb, var(--tt-memory) 25%, transparent);
  }
  .lanes td.say {
    border: 3px solid var(--tt-decoder-line);
    background: color-mix(in srgb, var(--tt-decoder) 15%, transparent);
  }
  .lanes td.wrong {
    border: 3px dashed var(--tt-loss-line);
    background: color-mix(in srgb, var(--tt-loss) 20%, transparent);
  }
  .views {
    display: grid;
    gap: 0.8rem 1.5rem;
    grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr));
    align-items: start;
  }
  @container (max-width: 27rem) {
    .lanes table {
      border-spacing: 2px 10px;
      font-size: 0.9rem;
    }
    .lanes td {
      padding-inline: 0.25rem;
    }
    .lanes th {
      padding-inline-end: 0.3rem;
      white-space: normal;
      line-height: 1.2;
      min-width: 3.9rem;
    }
  }
`;

/** The paper's rate, equation 3 of Vaswani et al. (2017). */
const paperRate = (step, width, warmup, factor) =>
  factor * width ** -0.5 * Math.min(step ** -0.5, step * warmup ** -1.5);

/**
 * The four schedules at one step; the second half of the training is the way down where there is
 * one.
 */
export function ratesAt(step, { d_model: width, warmup, factor, steps }) {
  const peak = paperRate(warmup, width, warmup, factor);
  const progress = Math.min(step / steps, 1);
  const down = progress > 0.5 ? (1 - progress) / 0.5 : 1;
  return {
    paper: paperRate(step, width, warmup, factor),
    "paper, then to zero": peak * Math.min(step / warmup, Math.sqrt(warmup / step)) * down,
    trapezoid: peak * Math.min(step / warmup, 1) * down,
    "no warm-up": paperRate(step, width, 1, factor),
  };
}

/** The smoothed target and the loss of a prediction that shares the rest equally; nats. */
export function smoothed({ epsilon, vocab_size: size }, confidence) {
  const other = epsilon / size;
  const right = 1 - epsilon + other;
  const xlogy = (x, y) => (x === 0 ? 0 : x * Math.log(y));
  const rest = (1 - confidence) / (size - 1);
  return {
    right,
    other,
    floor: -(xlogy(right, right) + (size - 1) * xlogy(other, other)),
    loss: -(xlogy(right, confidence) + (size - 1) * xlogy(other, rest)),
  };
}

const COLOURS_OF = {
  paper: "query",
  "paper, then to zero": "value",
  trapezoid: "key",
  "no warm-up": "loss",
};
/** A small number with its power of ten: 6.99·10⁻⁴. */
const short = (value) => {
  if (value === 0) return "0";
  const [digits, power] = value.toExponential(2).split("e");
  const raised = (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)];
  return `${digits}·10${power.replace("+", "").replace(/[-\d]/g, raised)}`;
};

/** A number in words that also carries itself in full, for whoever looks closer. */
const exact = (name, value, text) =>
  make("output", { "data-name": name, "data-value": value.toPrecision(12), text });

/** Sliders for width, warm-up, factor and length, and the four lines. */
function scheduleView(get, change) {
  const picture = chart({ label: "Learning rate by step", height: 260 });
  const facts = make("p", { class: "facts" });
  const width = slider({
    label: "width d_model",
    min: 6,
    max: 12,
    step: 1,
    format: (power) => formatCount(2 ** power),
    onInput: (power) => change({ d_model: 2 ** power }, `Width ${2 ** power}`),
  });
  const warmup = slider({
    label: "warm-up",
    min: 100,
    max: 10000,
    step: 100,
    format: (steps) => `${formatCount(steps)} steps`,
    onInput: (value) => change({ warmup: value }, `Warm-up ${value} steps`),
  });
  const factor = slider({
    label: "factor",
    min: 0.1,
    max: 4,
    step: 0.1,
    onInput: (value) => change({ factor: value }, `Factor ${value}`),
  });
  const length = slider({
    label: "length of the training",
    min: 2000,
    max: 100000,
    step: 1000,
    format: (steps) => `${formatCount(steps)} steps`,
    onInput: (value) => change({ steps: value }, `Training of ${value} steps`),
  });
  const node = make(
    "div",
    {},
    make("div", { class: "tt-controls" }, width.node, warmup.node, factor.node, length.node),
    picture.node,
    facts,
  );
  const draw = () => {
    const state = {
      d_model: get("d_model"),
      warmup: get("warmup"),
      factor: get("factor"),
      steps: get("steps"),
    };
    width.set(Math.log2(state.d_model));
    warmup.set(state.warmup);
    factor.set(state.factor);
    length.set(state.steps);
    const places = [
      ...new Set([
        1,
        Math.min(state.warmup, state.steps),
        ...Array.from({ length: 121 }, (_, i) => Math.max(1, Math.round((state.steps * i) / 120))),
      ]),
    ];
    places.sort((a, b) => a - b);
    const peak = paperRate(state.warmup, state.d_model, state.warmup, state.factor);
    const series = Object.keys(COLOURS_OF).map((name) => ({
      name,
      colour: COLOURS_OF[name],
      points: places.map((step) => [step, ratesAt(step, state)[name]]),
    }));
    picture.draw({
      series,
      x: { label: "step", domain: [0, state.steps], format: formatCount },
      y: { label: "learning rate", domain: [0, 1.6 * peak], format: short },
    });
    refill(
      facts,
      `The paper's peak is factor · (d_model · warm-up)`,
      make("sup", { text: "−½" }),
      ` = ${formatNumber(state.factor, 1)} · (${formatCount(state.d_model)} · ` +
        `${formatCount(state.warmup)})`,
      make("sup", { text: "−½" }),
      " = ",
      exact("peak", peak, short(peak)),
      `, at step ${formatCount(state.warmup)}. `,
      state.warmup > state.steps
        ? "This training ends before the warm-up does."
        : "Without the warm-up the same curve starts ",
      state.warmup > state.steps
        ? null
        : exact(
            "start",
            ratesAt(1, state)["no warm-up"] / peak,
            formatCount(ratesAt(1, state)["no warm-up"] / peak),
          ),
      state.warmup > state.steps ? null : " times as high.",
    );
  };
  return { node, draw, close: picture.close };
}

/** Two lanes of tokens: what is read, what has to be said. */
function shiftView(get, change, say) {
  const lanes = make("div", { class: "lanes" });
  const facts = make("p", { class: "facts" });
  const words = (position) => `position ${position + 1} of ${get("tokens").length + 1}`;
  const steps = player({
    count: () => get("tokens").length + 1,
    onStep: (position) => change({ position }, describe(position)),
    describe: words,
  });
  const shift = toggle({
    label: "shift the input by one",
    onChange: (shifted) => change({ shifted }, describe(get("position"), shifted)),
  });
  const node = make(
    "div",
    {},
    make("div", { class: "tt-controls" }, steps.node, shift.node),
    lanes,
    facts,
  );

  const rows = (shifted = get("shifted")) => ({
    labels: [...get("tokens"), "</s>"],
    input: shifted ? ["<s>", ...get("tokens")] : [...get("tokens"), "</s>"],
  });
  const describe = (position, shifted = get("shifted")) => {
    const { labels, input } = rows(shifted);
    const read = input.slice(0, position + 1).join(" ");
    return shifted
      ? `At ${words(position)} the decoder reads “${read}” and has to say “${labels[position]}”, ` +
          "which it has not seen. " +
          "The causal mask hides everything to the right, so that all positions can be trained in one pass."
      : `At ${words(position)} the decoder reads “${read}” and has to say “${labels[position]}”: ` +
          "the answer is the last token that it reads. It learns to copy, the loss falls to nearly " +
          "zero, and when it has to translate there is nothing to copy from.";
  };
  let [grid, built] = [null, ""];
  const build = ({ labels, input }) => {
    const names = ["reads", "has to say"];
    grid = [input, labels].map((tokens, row) =>
      tokens.map((text, column) =>
        make("td", {
          role: "gridcell",
          tabindex: -1,
          "data-row": row,
          "data-column": column,
          text,
        }),
      ),
    );
    refill(
      lanes,
      make(
        "table",
        { role: "grid", "aria-label": "What the decoder reads and what it has to say" },
        make(
          "tbody",
          {},
          ...grid.map((line, row) =>
            make(
              "tr",
              { role: "row" },
              make("th", { role: "rowheader", scope: "row", text: names[row] }),
              ...line,
            ),
          ),
        ),
      ),
    );
    roving.makeStop(grid[0][0]);
  };
  /** Scroll the box, not the page, as little as shows the cell beside the names of the rows. */
  const follow = ({ offsetLeft: start, offsetWidth: width, parentNode: row }) => {
    const first = start - row.firstChild.offsetWidth - 6;
    lanes.scrollLeft = Math.min(
      Math.max(lanes.scrollLeft, start + width + 8 - lanes.clientWidth),
      Math.max(first, 0),
    );
  };
  const draw = () => {
    const [lines, position, shifted] = [rows(), get("position"), get("shifted")];
    if (built !== JSON.stringify(lines)) build(lines);
    built = JSON.stringify(lines);
    steps.set(position);
    shift.set(shifted);
    grid[0].forEach((cell, column) => {
      const answer = !shifted && column === position;
      cell.className = column > position ? "tt-hatch" : answer ? "wrong" : "read";
      cell.setAttribute(
        "aria-label",
        `reads ${lines.input[column]}` +
          (column > position ? ", masked" : answer ? ", which is the answer" : ""),
      );
    });
    grid[1].forEach((cell, column) => cell.classList.toggle("say", column === position));
    facts.textContent = describe(position);
    follow(grid[0][position]);
  };
  const roving = rovingGrid(
    lanes,
    (row, column) => grid[row][column],
    () => ({ firstRow: 0, lastRow: 1, firstColumn: 0, lastColumn: grid[0].length - 1 }),
  );
  const pick = (event) => {
    const cell = event.target.closest("[data-column]");
    if (cell && Number(cell.dataset.column) !== get("position"))
      change({ position: Number(cell.dataset.column) }, "");
  };
  for (const kind of ["pointerover", "focusin", "click"]) lanes.addEventListener(kind, pick);
  return { node, draw, close: steps.close, say };
}

/** The target's bars, and the loss as the model grows surer. */
function smoothingView(get, change) {
  const picture = chart({ label: "Loss by the probability of the right token", height: 240 });
  const [target, facts] = [make("div"), make("p", { class: "facts" })];
  const epsilon = slider({
    label: "smoothing ε",
    min: 0,
    max: 0.5,
    step: 0.01,
    decimals: 2,
    onInput: (value) => change({ epsilon: value }, `Smoothing ${value}`),
  });
  const size = slider({
    label: "vocabulary",
    min: 1,
    max: 17,
    step: 1,
    format: (power) => formatCount(2 ** power),
    onInput: (power) => change({ vocab_size: 2 ** power }, `${2 ** power} tokens`),
  });
  const sure = slider({
    label: "probability of the right token",
    min: 0.001,
    max: 0.999,
    step: 0.001,
    decimals: 3,
    onInput: (value) => change({ confidence: value }, `Probability ${value}`),
  });
  const node = make(
    "div",
    {},
    make("div", { class: "tt-controls" }, epsilon.node, size.node, sure.node),
    make("div", { class: "views" }, make("div", {}, target, facts), picture.node),
  );
  const draw = () => {
    const [state, confidence] = [
      { epsilon: get("epsilon"), vocab_size: get("vocab_size") },
      get("confidence"),
    ];
    epsilon.set(state.epsilon);
    size.set(Math.log2(state.vocab_size));
    size.node.querySelector("output").textContent = formatCount(state.vocab_size);
    sure.set(confidence);
    const { right, other, floor, loss } = smoothed(state, confidence);
    refill(
      target,
      bars().show([
        {
          label: "right token, target",
          share: right,
          text: formatNumber(right, 4),
          colour: "value",
        },
        {
          label: "right token, model",
          share: confidence,
          text: formatNumber(confidence, 3),
          colour: "query",
        },
        {
          label: "all others, target",
          share: 1 - right,
          text: formatNumber(1 - right, 4),
          colour: "key",
        },
        { label: "each other, target", share: other, text: short(other), colour: "key" },
      ]),
    );
    refill(
      facts,
      "Loss of this prediction: ",
      exact("loss", loss, formatNumber(loss)),
      " nats. No prediction comes below ",
      exact("floor", floor, formatNumber(floor)),
      " nats, the entropy of the target",
      state.epsilon
        ? `; being surer than ${formatNumber(right)} costs.`
        : ": without smoothing it is zero.",
    );
    const places = Array.from({ length: 199 }, (_, i) => (i + 1) / 200).concat([0.998, 0.999]);
    const line = (name, one, colour) => ({
      name,
      colour,
      points: places.map((confidence) => [
        confidence,
        smoothed({ ...state, epsilon: one }, confidence).loss,
      ]),
    });
    picture.draw({
      x: {
        label: "probability of the right token",
        domain: [0, 1],
        format: (value) => formatNumber(value, value > 0.99 ? 3 : 2),
      },
      y: {
        label: "loss (nats)",
        domain: [0, Math.max(5, 2 * floor)],
        format: (value) => formatNumber(value, 1),
      },
      series: [
        line(`ε = ${formatNumber(state.epsilon, 2)}`, state.epsilon, "loss"),
        line("no smoothing", 0, "query"),
      ],
    });
  };
  return { node, draw, close: picture.close };
}

const TRAITS = [
  "tokens",
  "view",
  "d_model",
  "warmup",
  "factor",
  "steps",
  "position",
  "shifted",
  "epsilon",
  "vocab_size",
  "confidence",
];

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Training", CSS);
  const get = (name) => model.get(name);
  const initial = Object.fromEntries(TRAITS.slice(1).map((name) => [name, get(name)]));
  const change = (values, words) => {
    setTraits(model, values);
    if (words) say(words);
  };
  const views = {
    schedule: scheduleView(get, change),
    shift: shiftView(get, change, say),
    smoothing: smoothingView(get, change),
  };
  const which = choice({
    label: "Show",
    options: [
      ["schedule", "learning rate"],
      ["shift", "shifted input"],
      ["smoothing", "label smoothing"],
    ],
    onChange: (view) => change({ view }, ""),
  });
  const reset = button({
    label: "Reset all",
    onClick: () => change({ ...initial, view: get("view") }, "Reset"),
  });
  root.append(
    make("div", { class: "tt-controls" }, which.node, reset),
    ...Object.values(views).map((view) => view.node),
  );
  const draw = () => {
    which.set(get("view"));
    for (const [name, view] of Object.entries(views)) {
      view.node.hidden = name !== get("view");
      if (!view.node.hidden) view.draw();
    }
  };
  const stop = onTraits(model, TRAITS, draw);
  draw();
  return () => {
    stop();
    for (const view of Object.values(views)) view.close();
    close();
  };
}

export default { render };
