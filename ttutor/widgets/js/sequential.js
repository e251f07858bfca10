// An RNN and a Transformer work on one sentence, one dependent step at a time: a cell lights up as
// soon as all that it needs is done.
import { choice, slider } from "./controls.js";
import { css, moveOnce, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .cell {
    fill: var(--tt-memory);
    stroke: currentColor;
  }
  .waits {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.25;
  }
  .needs {
    fill: none;
    stroke: currentColor;
  }
  .tt-picture text {
    font-size: 0.9375rem;
  }
  .tt-picture .name {
    font-weight: 600;
  }
`;
const LANES = ["RNN", "Transformer"];
const [ROW, FLOOR] = [62, 48]; // of a lane: a layer's height, and its words

/** The step in which a cell can run, counted from 1, and the last step of each lane. */
const dueAt = (rnn, layer, token, { generating, n_layers }) =>
  layer + 1 + (generating ? token * n_layers : rnn ? token : 0);
const endsOf = ({ generating, n_layers, tokens }) =>
  [true, false].map((rnn) => dueAt(rnn, n_layers - 1, tokens.length - 1, { generating, n_layers }));

/** One of the two, from its name down to its words; `tick` may stand between two steps. */
function lane(rnn, top, state, tick, width) {
  const { tokens, n_layers, generating } = state;
  const slot = width / tokens.length;
  const size = Math.min(slot * 0.7, 34);
  const number = rnn ? 0 : 1;
  // Steps that were made; in the mode that is not shown, none or all.
  const count = (mode) => {
    const end = endsOf({ ...state, generating: mode })[number];
    const made = mode === generating ? Math.min(Math.round(tick), end) : generating ? end : "?";
    return `${made}${made === end ? " ✓" : ""}`;
  };
  const x = (token) => (token + 0.5) * slot;
  const y = (layer) => top + 34 + ROW * (n_layers - 1 - layer);
  const base = y(0) + 46;
  const lit = (due) => Math.min(Math.max(tick - due + 1, 0), 1);
  const upright = tokens.some((token) => 8 * token.length > slot);
  const every = Math.ceil(16 / slot);
  const parts = [
    [LANES[number], true, 0],
    [`reading ${count(false)}`, !generating, width - 190],
    [`writing ${count(true)}`, generating, width - 90],
  ].map(([text, on, x], i) => [`name${number}${i}`, "text", { class: on ? "name" : null, x, y: top + 8, text }]);
  for (let layer = 0; layer < n_layers; layer += 1)
    for (let token = 0; token < tokens.length; token += 1) {
      const due = dueAt(rnn, layer, token, state);
      const below = layer ? y(layer - 1) - size / 2 : base;
      const known = generating ? token + 1 : tokens.length; // a sentence that is read is seen whole
      const sources = rnn ? [token] : Array.from({ length: known }, (_, from) => from);
      const lines = sources.map((from) => `M${x(from)} ${below}L${x(token)} ${y(layer) + size / 2}`);
      if (rnn && token) lines.push(`M${x(token - 1) + size / 2} ${y(layer)}H${x(token) - size / 2}`);
      if (generating && token && !layer)
        lines.push(`M${x(token - 1) + size / 2} ${y(n_layers - 1)}L${x(token)} ${base}`);
      const fresh = Math.max(0, 1 - Math.abs(tick - due));
      parts.push(
        lit(due) > 0 && [
          `needs${number}-${layer}-${token}`,
          "path",
          {
            class: "needs",
            d: lines.join(""),
            "stroke-opacity": lit(due) * (0.1 + (sources.length > 1 ? 0.15 : 0.5) * fresh),
          },
        ],
        [
          `cell${number}-${layer}-${token}`,
          "rect",
          {
            class: "cell",
            "data-due": due,
            x: x(token) - size / 2,
            y: y(layer) - size / 2,
            width: size,
            height: size,
            rx: 4,
            "fill-opacity": lit(due) * (0.45 + 0.55 * fresh),
            "stroke-width": 0.6 + 1.6 * fresh,
            "stroke-dasharray": lit(due) > 0 ? null : "2 3",
          },
        ],
      );
    }
  return [
    ...parts,
    ...tokens.map(
      (token, i) =>
        i % every === 0 && [
          `word${number}-${i}`,
          "text",
          {
            x: upright ? x(i) + 4 : x(i),
            y: base + (upright ? 4 : 14),
            transform: upright ? `rotate(-90 ${x(i) + 4} ${base + 4})` : null,
            "text-anchor": upright ? "end" : "middle",
            text: generating && tick < i * n_layers ? "…" : token.slice(0, 9),
          },
        ],
    ),
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { generating: get("generating"), tick: get("tick") };
  const card = openCard(el, {
    label: "Sequential or parallel",
    question: "Who has to wait for whom?",
    invite: "Guess how many steps each needs, then drag. And if they write instead of read?",
    onReset: () => set(initial),
    css: CSS,
  });
  const stateOf = () => ({
    tokens: get("tokens"),
    n_layers: get("n_layers"),
    generating: get("generating"),
  });
  const height = ROW * get("n_layers") + 34 + FLOOR;
  const picture = stage({
    label: "The cells of an RNN and of a Transformer, lit when they have run",
    height: (width) => {
      const long = get("tokens").some((token) => 8 * token.length * get("tokens").length > width);
      return 2 * (height + (long ? 30 : 0));
    },
    draw: ({ tick }, width, tall) => [
      ...lane(true, 8, stateOf(), tick, width),
      ...lane(false, tall / 2 + 8, stateOf(), tick, width),
    ],
  });
  const step = slider({
    label: "Step",
    min: 0,
    max: Math.max(...endsOf(stateOf())),
    step: 1,
    format: String,
    onInput: (tick) => set({ tick }),
  });
  const mode = choice({
    name: "What is computed",
    options: [
      [false, "Reading"],
      [true, "Writing"],
    ],
    onChange: (generating) => set({ generating, tick: 0 }),
  });
  card.stage.append(picture.node);
  card.controls.append(step.node, mode.node);
  card.caption.textContent = "Dashed: to come. Strong: works in this step. Pale: done.";
  const draw = () => {
    const state = stateOf();
    const [rnn, transformer] = endsOf(state);
    step.input.max = rnn;
    step.set(get("tick"));
    mode.set(get("generating"));
    picture.show({ tick: get("tick") });
    card.find(findingOf(get("tick"), rnn, transformer, state.generating));
  };
  const stops = [
    onTraits(model, ["generating", "tick"], draw),
    moveOnce(card, model, { tick: initial.tick ? initial.tick - 1 : 1 }),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** Who has to wait, as far as it has been seen. */
function findingOf(tick, rnn, transformer, generating) {
  if (generating)
    return tick < rnn
      ? "Each word has to be written before the next can be read. Who is done first now?"
      : `Both need ${rnn} steps: when it writes, the Transformer waits for each word, too.`;
  if (tick < transformer) return "A cell works as soon as all that it needs is there. Who waits for whom?";
  if (tick < rnn) return "The Transformer is done: no word waited for another. The RNN goes on.";
  return `The RNN needs ${rnn} steps, because each word waits for the one before. The Transformer needs ${transformer}: no word waits.`;
}

export default { render };
