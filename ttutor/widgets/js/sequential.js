// An RNN and a Transformer work on one sentence, one dependent step a tick.
import { css, formatCount, make, onTraits, openFrame, refill, setTraits, svg } from "./core.js";
import { choice, player, select, slider } from "./controls.js";

const CSS = css`
  svg,
  small {
    display: block;
    width: 100%;
  }
  svg {
    margin-bottom: 0.5rem;
  }
  text {
    font-size: 12px;
    fill: currentColor;
    text-anchor: middle;
  }
  rect {
    fill: transparent;
    stroke: var(--line);
    stroke-dasharray: 2 2;
  }
  .done,
  .now {
    fill: var(--c);
    fill-opacity: 0.45;
    stroke: var(--l);
    stroke-dasharray: none;
  }
  .now {
    fill-opacity: 1;
    stroke: currentColor;
    stroke-width: 2.5;
  }
  line {
    stroke: var(--line);
    stroke-opacity: 0.4;
  }
  .on {
    stroke: var(--l);
    stroke-opacity: 1;
  }
  .sum {
    font-weight: 600;
  }
  th,
  td {
    text-align: start;
    vertical-align: top;
    padding: 0.2rem 1rem 0.2rem 0;
    font-weight: 400;
  }
`;
const LANES = [
  ["RNN", "memory"],
  ["Transformer", "weights"],
];
const SETTINGS = ["n_tokens", "n_layers", "d_model", "generating", "tick"];

/** Python sends a formula for each number, a sum of products such as T+L+-1 or L·d·d. */
function readState(model) {
  const [T, L, d, generating, tick, tokens, total] = [...SETTINGS, "tokens", "total"].map((name) =>
    model.get(name),
  );
  const sizes = { T, L, d, "min(T, L)": Math.min(T, L) };
  const times = (product, factor) => product * (sizes[factor] || factor);
  const evaluate = (formula) =>
    formula.split("+").reduce((sum, term) => sum + term.split("·").reduce(times, 1), 0);
  const rows = model
    .get("rows")
    .map(([name, ...all]) => [name, ...all.slice(2 * generating, 2 * generating + 2)])
    .filter(([, first]) => first)
    .map(([name, ...lanes]) => [name, ...lanes.map((formula) => [formula, evaluate(formula)])]);
  const ends = rows[0].slice(1).map(([, number]) => number);
  return { T, L, d, generating, tokens, total, rows, ends, tick: Math.min(tick, ends[0]) };
}

function drawLane(picture, rnn, { T, L, generating, tokens, tick }, width) {
  const step = (width - 26) / T;
  const size = Math.max(Math.min(step * 0.62, 30), 3);
  const [every, letters, floor] = [Math.ceil(22 / step), Math.floor(step / 8), 14 + 56 * L];
  const [x, y] = [(token) => 24 + (token + 0.5) * step, (layer) => floor - 56 * layer - 36];
  const [lines, cells] = [[], []];
  const line = (x1, y1, x2, y2, due) => {
    if (due <= tick) lines.push(svg("line", { x1, y1, x2, y2, class: due === tick && "on" }));
  };
  const write = (left, top, text) => cells.push(svg("text", { x: left, y: top, text }));
  const cut = (word, length) => (word.length > length ? `${word.slice(0, length - 1)}…` : word);
  const upright = every === 1 && letters < 4 && tokens.some((word) => word.length > letters);
  for (let token = 0; token < T; token += 1) {
    for (let layer = 0; layer < L; layer += 1) {
      const due = layer + 1 + (generating ? token * L : rnn ? token : 0);
      for (let from = rnn || every > 1 ? token : 0; from <= token; from += 1) {
        line(x(from), layer ? y(layer - 1) - size / 2 : floor, x(token), y(layer) + size / 2, due);
      }
      if (rnn && token) line(x(token - 1) + size / 2, y(layer), x(token) - size / 2, y(layer), due);
      cells.push(
        svg("rect", {
          x: x(token) - size / 2,
          y: y(layer) - size / 2,
          width: size,
          height: size,
          rx: size / 7,
          "data-due": due,
          class: due < tick ? "done" : due === tick && "now",
        }),
      );
    }
    if (generating && token) line(x(token - 1) + size / 2, y(L - 1), x(token), floor, token * L);
    const word = generating && tick < token * L ? "…" : tokens[token % tokens.length];
    if (upright) {
      const place = `translate(${x(token) + 4} ${floor + 5}) rotate(-90)`;
      cells.push(svg("text", { transform: place, style: "text-anchor: end", text: cut(word, 8) }));
    } else
      write(
        x(token),
        floor + 14,
        every > 1 ? ((token + 1) % every ? "" : token + 1) : cut(word, letters),
      );
  }
  for (let layer = 0; layer < L; layer += 1) write(8, y(layer) + 4, `L${layer + 1}`);
  picture.setAttribute("viewBox", `0 0 ${width} ${floor + (upright ? 62 : 20)}`);
  refill(picture, ...lines, ...cells);
}

const progress = ({ tick, ends }) =>
  LANES.map(([title], i) => `${title}: tick ${Math.min(tick, ends[i])} of ${ends[i]}`);

const summary = ({ generating, ends: [rnn], L }) =>
  generating
    ? `Both need ${rnn} ticks: a token has to be written before the next can be read.`
    : `The Transformer is done after tick ${L}, however long the sentence; the RNN after ` +
      `${rnn}, one more for each token.`;

function drawCounts(table, state) {
  const row = ([name, ...lanes]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", text: name }),
      ...lanes.map(([formula, number], i) => {
        const written = formula
          .replace(/(.)·\1/g, "$1²")
          .replace("+-", " − ")
          .replace(/[+·]/g, " $& ");
        const most = Math.max(lanes[0][1], lanes[1][1]);
        const bar = make("div", {
          class: "tt-bar",
          style: `width: ${(5 * number) / most}rem; --c: var(--tt-${LANES[i][1]})`,
        });
        return make(
          "td",
          { "data-value": number },
          make("b", { text: formatCount(number) }),
          most > 999 ? bar : null,
          ...[written, written.replace(/[TLd]/g, (letter) => state[letter])]
            .filter((text) => text !== String(number))
            .map((text) => make("small", { text })),
        );
      }),
    );
  refill(
    table,
    make(
      "tr",
      {},
      make("th", { scope: "col", text: `T = ${state.T}, L = ${state.L}, d = ${state.d}` }),
      ...LANES.map(([text]) => make("th", { scope: "col", text })),
    ),
    ...state.rows.map(row),
  );
}

const notes = ({ T, d, generating, total }) =>
  "Faint: done; outlined: this tick; dashed: waiting. A tick is a step that waits for " +
  "another, not a time. " +
  "The price: between tokens the Transformer multiplies more once " +
  (generating
    ? `T + 1 > d = ${d}.`
    : `T > d / 2 = ${d / 2}. (A linear recurrence could be computed as a scan, in ` +
      `${Math.ceil(Math.log2(T))} rounds a layer.)`) +
  (total > 64 ? ` Only the first 64 of ${total} tokens.` : "");

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Sequential or parallel", CSS);
  const initial = Object.fromEntries(SETTINGS.map((name) => [name, model.get(name)]));
  const change = (values, words) => {
    setTraits(model, values);
    const state = readState(model);
    say(`${words || summary(state)} ${progress(state).join("; ")}`);
  };
  const set = (name) => (value) => change({ [name]: value, tick: 0 });
  const size = (name, label, min, max) =>
    slider({ label, min, max, decimals: 0, onInput: set(name) });
  const steps = player({
    count: () => readState(model).ends[0] + 1,
    seconds: 0.6,
    describe: (tick) => `tick ${tick}`,
    onStep: (tick) => change({ tick }, `Tick ${tick}.`),
    onReset: () => change(initial, "Reset."),
  });
  const controls = [
    size("n_tokens", "Tokens T", 2, 64),
    size("n_layers", "Layers L", 1, 6),
    select({
      label: "Width d",
      options: [...new Set([16, 64, 512, initial.d_model])].map((d) => [d, d]),
      onChange: set("d_model"),
    }),
    choice({
      name: "What is computed",
      options: [
        [false, "training: all tokens known"],
        [true, "generating: one by one"],
      ],
      onChange: set("generating"),
    }),
  ];
  const lanes = LANES.map(([, colour]) =>
    make(
      "div",
      { style: `--c: var(--tt-${colour}); --l: var(--tt-${colour}-line)` },
      make("b"),
      svg("svg", { role: "img" }),
    ),
  );
  const [sum, table, note] = [
    make("p", { class: "sum" }),
    make("table"),
    make("p", { class: "tt-note" }),
  ];
  root.append(
    make("div", { class: "tt-controls" }, ...controls.map(({ node }) => node), steps.node),
    ...lanes,
    sum,
    table,
    note,
  );

  const draw = () => {
    const state = readState(model);
    controls.forEach((control, i) => control.set(model.get(SETTINGS[i])));
    steps.set(state.tick);
    progress(state).forEach((words, i) => {
      const [text, picture] = lanes[i].children;
      drawLane(picture, !i, state, root.clientWidth || 300);
      text.textContent = words;
      picture.setAttribute("aria-label", words);
    });
    sum.textContent = summary(state);
    drawCounts(table, state);
    note.textContent = notes(state);
  };
  const watcher = new ResizeObserver(draw);
  watcher.observe(root);
  const ends = [
    onTraits(model, [...SETTINGS, "tokens"], draw),
    steps.close,
    () => watcher.disconnect(),
    close,
  ];
  draw();
  return () => ends.forEach((end) => end());
}

export default { render };
