// An RNN and a Transformer work on one sentence, one dependent step at a time: a cell lights up as
// soon as all that it needs is done; each one's bar counts its steps, up to the reader's guess or past it. And
// who hears whom in any network: a word of the sentence speaks;
// arcs and discs show who hears it, and how far each moves.
import { choice, select, slider } from "./controls.js";
import { css, moveOnce, onTraits, openCard, setTraits, shareWord } from "./core.js";
import { preview, stage } from "./drawing.js";

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
  .wire {
    fill: none;
    stroke: var(--tt-memory-line);
    stroke-linecap: round;
  }
  .moved {
    fill: var(--tt-memory);
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .never {
    fill: var(--tt-page);
    stroke: var(--tt-masked-line);
    stroke-dasharray: 3 3;
  }
  .on {
    fill: color-mix(in srgb, currentColor 10%, transparent);
    stroke: currentColor;
    stroke-width: 2;
  }
  .place {
    fill: transparent;
  }
  .time,
  .made {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.12;
    stroke-width: 12;
  }
  .made {
    stroke-opacity: 0.6;
  }
  .guess {
    fill: var(--tt-page);
    stroke: currentColor;
    stroke-width: 2;
  }
  .tt-picture .guessed {
    font-size: 0.75rem;
    font-weight: 600;
    pointer-events: none;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
  .tt-picture text {
    font-size: 0.9375rem;
  }
  .tt[data-hears] .tt-picture text {
    font-size: clamp(0.9375rem, 2.7cqi, 1.25rem);
  }
  .tt-picture .name {
    font-weight: 600;
  }
`;
const LANES = ["RNN", "Transformer"];
const [ROW, TOP, FLOOR] = [62, 52, 72]; // of a lane: a layer's height, where the highest stands, and its words
const LEFT = 168; // where the bars begin

/** The step in which a cell can run, counted from 1, and the last step of each lane. */
const dueAt = (rnn, layer, token, { generating, n_layers }) =>
  layer + 1 + (generating ? token * n_layers : rnn ? token : 0);
const endsOf = ({ generating, n_layers, tokens }) =>
  [true, false].map((rnn) => dueAt(rnn, n_layers - 1, tokens.length - 1, { generating, n_layers }));

/** How many steps a bar has room for: more than either needs. */
const roomOf = ({ n_layers, tokens }) => n_layers * tokens.length + 2;

/** One of the two, from its name down to its words; `tick` may stand between two steps. */
function lane(rnn, top, state, { tick, guesses }, width) {
  const { tokens, n_layers, generating } = state;
  const slot = width / tokens.length;
  const size = Math.min(slot * 0.7, 34);
  const number = rnn ? 0 : 1;
  const end = endsOf(state)[number];
  const made = Math.min(Math.round(tick), end);
  const room = roomOf(state);
  const unit = (width - 12 - LEFT) / room;
  const at = LEFT + unit * guesses[number];
  const guess = state.guesses[number];
  const bar = (kind, steps) => [
    `${kind}${number}`,
    "path",
    { class: kind, d: `M${LEFT} ${top + 14}h${unit * steps}`, "stroke-dasharray": `${unit - 1.5} 1.5` },
  ];
  const x = (token) => (token + 0.5) * slot;
  const y = (layer) => top + TOP + ROW * (n_layers - 1 - layer);
  const base = y(0) + 44;
  const lit = (due) => Math.min(Math.max(tick - due + 1, 0), 1);
  const upright = tokens.some((token) => 8 * token.length > slot);
  const every = Math.ceil(16 / slot);
  const parts = [
    [`name${number}`, "text", { class: "name", x: 0, y: top + 19, text: LANES[number] }],
    [
      `count${number}`,
      "text",
      { x: LEFT - 12, y: top + 19, "text-anchor": "end", text: `${made}${made === end ? " ✓" : ""}` },
    ],
    bar("time", room),
    bar("made", Math.min(tick, end)),
    [
      `guess${number}`,
      "circle",
      {
        class: "guess pull",
        cx: at,
        cy: top + 14,
        r: 12,
        stride: unit,
        pull: (to) => state.pull(number, Math.min(Math.max(Math.round((to - LEFT) / unit), 1), room)),
        "aria-label": `guess for the ${LANES[number]}`,
        "aria-valuenow": guess || room,
        "aria-valuemin": 1,
        "aria-valuemax": room,
        "aria-valuetext": guess ? `${guess} steps` : "no guess yet",
      },
    ],
    [`guessed${number}`, "text", { class: "guessed", x: at, y: top + 18, "text-anchor": "middle", text: guess || "?" }],
  ];
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

/** Who speaks, how far each word moves, and whether it is handed on. */
function heardIn(model, pointed) {
  const [tokens, names, maps, shown, selected] = "tokens names maps shown selected"
    .split(" ")
    .map((name) => model.get(name));
  const table = maps[names.indexOf(shown)] || maps[0];
  const at = pointed ?? selected;
  return {
    ...{ tokens, shown, at },
    isChain: /recurrent|RNN|GRU|LSTM/.test(shown),
    sizes: table.map((line) => line[at]),
    most: Math.max(...table.flat()) || 1,
  };
}

/** Who hears best, and why far words do or do not. */
function describeHeard({ tokens, sizes, at, shown, isChain }) {
  const who = `“${tokens[at]}”`;
  const heard = sizes.map((size, i) => (i === at ? 0 : size));
  const best = heard.indexOf(Math.max(...heard));
  const deaf = sizes.includes(0) ? " Dashed words never hear it." : "";
  if (!heard[best]) return `Nobody else hears ${who}.`;
  const after = sizes.slice(at);
  if (isChain && after.every((size, i) => !i || size < after[i - 1]))
    return `Each word passes ${who} on to the next, so it fades.${deaf}`;
  const apart = Math.abs(best - at);
  const equal = heard.filter((size) => size === heard[best]).length;
  if (equal > 1) return `${equal} words hear ${who} equally well, and nobody hears it better.${deaf}`;
  return `“${tokens[best]}”, ${apart > 1 ? `${apart} words away` : "next to it"}, hears ${who} best${
    apart > 1 && !isChain && !/convolution|layers/.test(shown) ? ": nobody has to pass it on" : ""
  }.${deaf}`;
}

/** The words; above them discs, as large as what they hear; and the way there: hop by hop, or in one leap. */
function drawMap({ shares, from }, width, { tokens, sizes, at, isChain }, pick) {
  const slot = width / tokens.length;
  const x = (i) => (i + 0.5) * slot;
  const most = Math.min(0.46 * slot, 40);
  const fit = Math.max(2, Math.floor(slot / 8));
  const [floor, foot] = [166, 234];
  return [
    ...sizes.map((size, i) => {
      const start = x(isChain ? i - 1 : from);
      const tall = 46 + 0.34 * Math.abs(x(i) - start);
      return (
        size > 0 &&
        i !== at && [
          `wire${i}`,
          "path",
          {
            class: "wire",
            d: `M${start} ${floor}Q${(start + x(i)) / 2} ${floor - Math.min(tall, 150) * 2} ${x(i)} ${floor}`,
            "stroke-width": 1 + 9 * shares[i],
            "stroke-opacity": 0.3 + 0.6 * shares[i],
          },
        ]
      );
    }),
    ["on", "rect", { class: "on", x: x(from) - slot / 2 + 1, y: foot - 21, width: slot - 2, height: 30, rx: 6 }],
    ...tokens.flatMap((token, i) => [
      [
        `node${i}`,
        "circle",
        {
          class: sizes[i] ? "moved" : "never",
          "data-value": sizes[i].toFixed(9),
          cx: x(i),
          cy: floor,
          r: sizes[i] ? Math.max(most * Math.sqrt(shares[i]), 2) : Math.min(9, most),
        },
      ],
      [
        `word${i}`,
        "text",
        {
          x: x(i),
          y: foot,
          "text-anchor": "middle",
          text: token.length > fit ? `${token.slice(0, fit - 1)}…` : token,
        },
      ],
      [
        `pick${i}`,
        "rect",
        {
          class: "place",
          x: x(i) - slot / 2,
          y: 120,
          width: slot,
          height: 128,
          press: () => pick(i),
          "aria-label": `nudge ${token}`,
        },
      ],
    ]),
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const traits = ["generating", "tick", "guesses", "hearing", "shown", "selected"];
  const initial = Object.fromEntries(traits.map((name) => [name, get(name)]));
  const names = get("names");
  let [heard, pointed] = [null, null];
  const card = openCard(el, {
    label: "Sequential or parallel",
    onReset: () => set(initial),
    css: CSS,
  });
  const stateOf = () => ({
    tokens: get("tokens"),
    n_layers: get("n_layers"),
    generating: get("generating"),
    guesses: get("guesses"),
    pull: (lane, guess) => {
      if (guess !== get("guesses")[lane]) set({ guesses: get("guesses").with(lane, guess) });
    },
  });
  const height = ROW * (get("n_layers") - 1) + TOP + FLOOR;
  const picture = stage({
    label: "A sentence; above it cells that have run, or how far each word moves when one of them is nudged",
    height: (width) => {
      if (heard) return 250;
      const long = get("tokens").some((token) => 8 * token.length * get("tokens").length > width);
      return 2 * (height + (long ? 30 : 0));
    },
    draw: (numbers, width, tall) =>
      heard
        ? drawMap(numbers, width, heard, (selected) => set({ selected }))
        : [...lane(true, 0, stateOf(), numbers, width), ...lane(false, tall / 2, stateOf(), numbers, width)],
  });
  const step = slider({
    label: "Step",
    min: 0,
    max: Math.max(...endsOf(stateOf())),
    step: 1,
    format: String,
    plays: 0.5,
    onInput: (tick) => set({ tick }),
  });
  const mode = choice({
    name: "What is computed",
    options: [[false, "Reading"], [true, "Writing"], ...(names.length ? [["hearing", "Who hears whom"]] : [])],
    onChange: (mode) =>
      set(mode === "hearing" ? { hearing: true } : { hearing: false, generating: mode, tick: 0, guesses: [0, 0] }),
  });
  const isShort = names.join("").length < 48;
  const list = (isShort ? choice : select)({
    ...(isShort ? { name: "Network" } : { label: "Network" }),
    options: names.map((name) => [name, name]),
    onChange: (shown) => set({ shown }),
  });
  preview(picture.node, (event) => {
    pointed = heard && event?.target.dataset.key?.match(/^pick(\d+)$/)?.[1];
    if (heard) draw();
  });
  card.stage.append(picture.node);
  card.controls.append(step.node, mode.node, list.node);
  const drawHeard = () => {
    list.set(heard.shown);
    const shares = heard.sizes.map((size) => size / heard.most);
    picture.show({ tick: get("tick"), shares, from: heard.at });
    card.find(describeHeard(heard));
    const [total, { length }] = [get("total"), heard.tokens];
    card.caption.textContent =
      "Disc: how far the word moves when the framed one is nudged. Dashed: never, however hard." +
      (total > length ? ` Only the first ${length} of ${total} tokens.` : "");
  };
  const draw = () => {
    const state = stateOf();
    heard = get("hearing") ? heardIn(model, pointed ? +pointed : undefined) : null;
    if (pointed) card.root.dataset.acted = "1";
    card.root.toggleAttribute("data-hears", !!heard);
    if (heard)
      card.ask(
        "Who hears whom?",
        `${names.length > 1 ? "Choose another network" : "Tap another word"}: does a far word hear “${heard.tokens[heard.at]}” well?`,
      );
    else
      card.ask(
        "Who has to wait for whom?",
        "How many steps does each need? Drag each “?” to your guess, then press Play.",
      );
    step.node.hidden = !!heard;
    list.node.hidden = !heard;
    mode.set(heard ? "hearing" : get("generating"));
    if (heard) return drawHeard();
    card.caption.textContent = "Dashed: to come. Strong: works in this step. Pale: done.";
    const [rnn, transformer] = endsOf(state);
    step.input.max = rnn;
    step.set(get("tick"));
    picture.show({ tick: get("tick"), guesses: state.guesses.map((guess) => guess || roomOf(state)) });
    card.find(findingOf(get("tick"), rnn, transformer, state));
  };
  const stops = [
    onTraits(model, traits, () => {
      pointed = null;
      draw();
    }),
    initial.hearing ? () => {} : moveOnce(card, model, { guesses: [1, 1].map(() => Math.ceil(roomOf(stateOf()) / 3)) }),
    shareWord(
      model,
      "selected",
      (at) => at,
      (selected) => ({ selected }),
    ),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** Who has to wait, as far as it has been seen; and what the reader guessed. */
function findingOf(tick, rnn, transformer, { generating, guesses, n_layers }) {
  const said = guesses.flatMap((guess, i) => (guess ? `${guess} for the ${LANES[i]}` : []));
  const guessed = said.length ? ` You guessed ${said.join(", ")}.` : "";
  if (guessed && tick <= 1 && tick < transformer) return `${guessed} Now press Play.`;
  if (generating)
    return tick < rnn
      ? "Each word has to be written before the next can be read. Who is done first now?"
      : `Both need ${rnn} steps: when it writes, the Transformer waits for each word, too. To read, it needs ${n_layers}.${guessed}`;
  if (tick < transformer) return "A cell works as soon as all that it needs is there. Who waits for whom?";
  if (tick < rnn) return "The Transformer is done: no word waited for another. The RNN goes on.";
  return `The RNN needs ${rnn} steps, because each word waits for the one before. The Transformer needs ${transformer}: no word waits.${guessed}`;
}

export default { render };
