// A Transformer that translates: type a sentence, force a word, switch off a head. On a page without
// a kernel the model runs here (translator_model.js); with one Python answers, and this only shows.
import { css, formatCount, formatNumber, make, onTraits, openCard, refill, setTraits, shareWord, svg } from "./core.js";
import { button, choice, rovingGrid, select, toggle } from "./controls.js";
import { bars } from "./drawing.js";
import { BOS, bytesOf, EOS, FINISHED, KEPT, logSoftmax, topPlaces, TranslatorModel } from "./translator_model.js";

const CSS = css`
  .ask {
    margin: 0 0 0.75rem;
  }
  .ask input {
    font: inherit;
    color: inherit;
    background: transparent;
    width: 100%;
    min-height: 2.75rem;
    padding: 0 0.75rem;
    border: 1px solid var(--line);
    border-radius: 0.5rem;
  }
  .examples label {
    position: absolute;
    clip-path: inset(50%);
  }
  .examples select {
    width: 6.4rem;
    contain: paint; /* or WebKit makes the page as wide as the longest example */
    min-height: 2.75rem;
  }
  .stage {
    position: relative;
    display: grid;
    gap: 1.4rem;
  }
  .stage > svg {
    position: absolute;
    width: 100%;
    height: 100%;
    overflow: visible;
    pointer-events: none;
  }
  .stage path {
    fill: none;
    stroke: var(--tt-weights-line);
    stroke-linecap: round;
  }
  .chips {
    display: flex;
    flex-wrap: wrap;
    gap: 0.3rem 0;
    min-height: 2rem;
    align-content: flex-start;
    font-size: 1.125rem;
  }
  .written {
    min-height: 4.6rem;
    font-weight: 600;
  }
  @container (min-width: 40rem) {
    .stage {
      gap: 1.8rem;
    }
    .chips {
      font-size: 1.375rem;
    }
    .heads {
      --widest: 4.5rem;
    }
    .found li {
      --bar: 11rem;
    }
    .written {
      min-height: 2.4rem;
    }
    .examples select {
      min-height: 2.25rem;
    }
    .tt-card > .tt-note {
      min-height: 1.45em;
    }
  }
  .chip {
    font: inherit;
    color: inherit;
    min-height: 2rem;
    padding: 0 0.2rem;
    margin-inline-start: -0.3rem;
    border: 2px solid transparent;
    border-radius: 0.4rem;
    cursor: pointer;
    background: color-mix(in srgb, var(--tt-weights) calc(var(--w, 0) * 100%), transparent);
  }
  .chip.word {
    margin-inline-start: 0;
  }
  .written .chip {
    position: relative;
    padding-bottom: 0.4rem;
    background-image: linear-gradient(color-mix(in srgb, currentColor 20%, transparent) 0 0);
    background-size: calc(100% - 0.4rem) 3px;
    background-position: left 0.2rem bottom 0.1rem;
    background-repeat: no-repeat;
  }
  .written .chip::after,
  .written .chip.was::before {
    content: "";
    position: absolute;
    left: 0.2rem;
    bottom: 0.1rem;
    width: calc((100% - 0.4rem) * var(--p));
    height: 3px;
    background: var(--tt-decoder);
  }
  .written .chip.was::before {
    left: calc(0.2rem + (100% - 0.4rem) * var(--was) - 1px);
    bottom: calc(0.1rem - 2px);
    width: 2px;
    height: 7px;
    background: currentColor;
  }
  .chip.on {
    border-color: currentColor;
  }
  .chip.other {
    text-decoration: underline 3px var(--tt-loss);
    text-underline-offset: 0.2em;
  }
  .panel {
    min-height: 12.6rem;
    margin-top: 0.6rem;
  }
  .next {
    display: grid;
    margin: 0.3rem 0 0;
  }
  .next button {
    font: inherit;
    color: inherit;
    background: transparent;
    border: 0;
    border-radius: 0.4rem;
    display: grid;
    grid-template-columns: minmax(5.5rem, auto) 1fr;
    grid-column: 1 / -1;
    align-items: center;
    gap: 0.6rem;
    min-height: 2.1rem;
    padding: 0 0.4rem;
    text-align: start;
    cursor: pointer;
  }
  .next button.on {
    background: color-mix(in srgb, currentColor 8%, transparent);
  }
  @media (hover: hover) {
    .next button:hover {
      background: color-mix(in srgb, currentColor 8%, transparent);
    }
  }
  .next button.on {
    font-weight: 600;
  }
  .next .share {
    display: flex;
    align-items: center;
    gap: 0.5rem;
  }
  .next .bar {
    max-width: calc(100% - 3.5rem);
  }
  .bar {
    height: 0.75rem;
    min-width: 2px;
    border-radius: 2px;
    background: var(--tt-decoder);
  }
  .next .name {
    width: 5.5rem;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .number {
    text-align: end;
    font-variant-numeric: tabular-nums;
  }
  .heads {
    display: grid;
    grid-template-columns: auto repeat(var(--n), minmax(2.75rem, var(--widest, 0)));
    gap: 0.3rem;
    margin: 0.6rem 0;
    justify-content: start;
    align-items: stretch;
  }
  .switch {
    font: inherit;
    font-size: 0.875rem;
    color: inherit;
    min-height: 2.1rem;
    border: 1px solid var(--tt-weights-line);
    border-radius: 0.4rem;
    background: color-mix(in srgb, var(--tt-weights) 35%, transparent);
    cursor: pointer;
  }
  .switch.layer {
    border-color: var(--line);
    background: transparent;
    padding: 0 0.4rem;
  }
  .switch.on {
    outline: 2px solid currentColor;
    outline-offset: 1px;
  }
  .switch[aria-checked="false"] {
    text-decoration: line-through;
    border-style: dashed;
    background: transparent;
  }
  .heads span {
    align-self: center;
    font-size: 0.875rem;
  }
  .found {
    margin: 0.5rem 0 0;
    padding: 0;
    list-style: none;
  }
  .found li {
    display: grid;
    grid-template-columns: 1fr var(--bar, 4rem) 2.6rem;
    align-items: center;
    gap: 0.6rem;
    min-height: 2.5rem;
    padding: 0.2rem 0;
    border-top: 1px solid color-mix(in srgb, currentColor 18%, transparent);
    font-size: 1rem;
    line-height: 1.3;
  }
  .found li:first-child {
    font-weight: 600;
  }
  .found .other {
    text-decoration: underline 2px var(--tt-loss);
    text-underline-offset: 0.2em;
  }
  .strange {
    margin: 0 0 0.6rem;
    font-size: 0.875rem;
  }
  @media (prefers-reduced-motion: no-preference) {
    .chip {
      transition: background-color 300ms;
    }
    .bar,
    .written .chip::after {
      transition: width 300ms;
    }
    .chip.new {
      animation: appear 200ms;
    }
    @keyframes appear {
      from {
        opacity: 0;
      }
    }
  }
`;

const QUESTION = ["text", "off", "by", "beginning", "view", "part", "layer", "head"];
const PARTS = [
  ["encoder", "Encoder"],
  ["decoder", "Decoder"],
  ["cross", "Cross"],
];
const SWITCHES = [
  ["positions", "positions"],
  ["causal", "causal mask"],
  ["scale", "scale"],
];
const [LONGEST, LONGEST_TEXT, RUNNERS_UP, WIDTH] = [40, 200, 5, 4];
const round = (value, decimals) => Number(value.toFixed(decimals)) + 0;

// ------------------------------------------------------------------ the answer, as in translator.py

const NOTHING = {
  source: [],
  written: [],
  usual: [],
  usual_probabilities: [],
  tokens: {},
  weights: [],
  tree: [],
  strange: [],
  translation: "",
  usual_translation: "",
};

const breath = () =>
  new Promise((done) => {
    requestAnimationFrame(done);
    setTimeout(done, 60); // where nothing is drawn
  });

const bare = (token) => token.replace(/^▁(?=.)/, "");

/** Everything that the figure shows; `onToken(partial)` after each token, before the page may draw. */
async function answerTo(model, asked, onToken) {
  const { text, off, by, beginning, view } = asked;
  const source = model.read(text);
  if (source.length === 1) return NOTHING;
  const run = async (options, tell) => {
    const steps = [];
    for (const step of model.greedy(source, { longest: LONGEST, ...options })) {
      steps.push(step);
      if (tell && !(await tell(steps))) return null;
    }
    return steps;
  };
  const written = (steps) =>
    steps.map(({ id, logits }) => {
      const log = logSoftmax(logits);
      const best = topPlaces(logits, RUNNERS_UP);
      return [id, round(Math.exp(log[id]), 4), best.map((one) => [one, round(Math.exp(log[one]), 4)])];
    });
  const named = (ids) => Object.fromEntries([...new Set(ids)].map((id) => [id, model.tokenizer.token(id)]));
  const idsOf = (steps) => steps.map(({ id }) => id);
  const told = (steps) => {
    const list = written(steps);
    const ids = [...source, ...list.flatMap(([id, , best]) => [id, ...best.map(([one]) => one)])];
    return { source, written: list, tokens: named(ids) };
  };
  const changes = { off: new Set(off), by, beginning };
  const steps = await run(changes, (all) => onToken(told(all)));
  if (!steps) return null;
  // A change has one cause: parts that are off are compared with the same words and all parts on.
  const isFree = view === "beam" && beginning.length > 0;
  const before = isFree ? { ...changes, beginning: [] } : off.length ? { beginning } : {};
  const usual = off.length || beginning.length ? await run(before) : steps;
  const tree = view === "beam" ? treeOf(model, source, changes) : [];
  const told_ = told(steps);
  // Figures of this model on the same page go on with this sentence.
  if (!off.length) {
    const tokens = source.map((id) => bare(model.tokenizer.token(id)));
    const stations = (count) => model.stations(source, [BOS, ...idsOf(steps)].slice(0, count));
    const detail = { tokens, heads: steps[0].weights.encoder, stations };
    document.dispatchEvent(new CustomEvent("tt-sentence", { detail }));
  }
  const others = [...idsOf(usual), ...tree.flatMap((step) => step.map(([, id]) => id))];
  return {
    ...told_,
    usual: idsOf(usual),
    usual_probabilities: written(usual).map(([, probability]) => probability),
    tokens: { ...told_.tokens, ...named(others) },
    weights: shownWeights(steps, asked),
    tree,
    strange: model.strangeWords(text),
    translation: model.text(idsOf(steps), text),
    usual_translation: model.text(idsOf(usual), text),
  };
}

function treeOf(model, source, { off, by }) {
  const search = model.beam(source, { off, by, size: WIDTH, longest: LONGEST });
  return [...search].map(({ candidates }) =>
    candidates.map(({ parent, id, total, fate }) => [parent, id, round(total, 3), fate]),
  );
}

/** The weights of a part, layer and head, or the mean of all that are on: a row for each token, or none. */
function shownWeights(steps, { part, layer, head, off }) {
  const isOff = (i, j) => off.includes(`${part}.${i}.${j}`) || off.includes(`${stackOf(part)}.${i}`);
  const chosen = ({ weights }) =>
    weights[part].flatMap((heads, i) =>
      heads.filter((_, j) => (layer < 0 || i === layer) && (head < 0 || j === head) && !isOff(i, j)),
    );
  if (!chosen(steps[0]).length) return []; // what is off looks nowhere
  const mean = (heads, row) =>
    Array.from({ length: heads[0].columns }, (_, key) =>
      round(heads.reduce((sum, { columns, data }) => sum + data[row * columns + key], 0) / heads.length, 3),
    );
  if (part === "encoder") {
    const heads = chosen(steps[0]);
    return Array.from({ length: heads[0].rows }, (_, row) => mean(heads, row));
  }
  const rows = steps.map((step) => mean(chosen(step), chosen(step)[0].rows - 1));
  const longest = rows.at(-1).length;
  return rows.map((row) => [...row, ...Array(longest - row.length).fill(0)]);
}

/** The model of these weights, from a script beside the page's own; once for all figures of a page. */
function loadModel(name, base) {
  const models = (globalThis.ttutorModels ||= {});
  return (models[name] ||= new Promise((done, fail) => {
    const take = () => {
      const packed = globalThis.ttutorWeights?.[name];
      if (!packed) return false;
      delete globalThis.ttutorWeights[name];
      done(new TranslatorModel(bytesOf(packed)));
      return true;
    };
    if (take()) return;
    if (!name) {
      fail(new Error("its weights are not on this page"));
      return;
    }
    const script = make("script", { src: new URL(`${name}.js`, base).href });
    script.onload = () => take() || fail(new Error(`${name}.js holds no weights`));
    script.onerror = () => fail(new Error(`${name}.js did not load`));
    document.head.append(script);
  }));
}

// ------------------------------------------------------------------ words

const piece = (token) => token.replace("▁", "").replace("<eos>", "■").replace("<bos>", "…") || "␣";
const SAME = 3;
/** How many equal tokens stand at the end. */
const tailOf = (ids) => ids.length - ids.findLastIndex((id) => id !== ids.at(-1)) - 1;
const short = (value) => (value < 0.005 && value > 0 ? "<0.01" : formatNumber(value, 2));
const stackOf = (part) => (part === "encoder" ? part : "decoder");
/** A probability that may be very small, in words. */
function inWords(probability) {
  if (probability >= 0.005) return short(probability);
  const [one, power] = [1 / probability, Math.round(-Math.log10(probability))];
  const raised = [...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return `1 in ${power < 7 ? formatCount(Number(one.toPrecision(2))) : `10${raised}`}`;
}

function nameOf(off) {
  const [part, layer, head] = off.split(".");
  const kind = { encoder: "encoder", decoder: "decoder", cross: "cross-attention" }[part];
  if (head !== undefined) return `head ${head} of layer ${layer} (${kind})`;
  return layer === undefined ? Object.fromEntries(SWITCHES)[off] : `the whole ${part} layer ${layer}`;
}

/** What else became of the tokens after a place: which stand instead of others, are new, gone or elsewhere. */
function hunksAfter(place, ids, usual) {
  const [after, was] = [ids, usual].map((all) => all.slice(place + 1).filter((id) => id !== EOS));
  const [differs, lost] = [differing(after, was), differing(was, after)];
  const hunks = [];
  for (let [i, j] = [0, 0]; i < after.length || j < was.length; [i, j] = [i + 1, j + 1]) {
    const [from, since] = [i, j];
    while (differs[i]) i += 1;
    while (lost[j]) j += 1;
    const [now, then] = [after.slice(from, i), was.slice(since, j)];
    hunks.push({
      added: now.filter((id) => !usual.includes(id)),
      moved: now.filter((id) => usual.includes(id)),
      gone: then.filter((id) => !ids.includes(id)),
    });
  }
  return hunks;
}

/** The place of each token of `ids` in `others`, along a longest common part; -1 for those that are no part of it. */
function partners(ids, others) {
  const table = Array.from({ length: ids.length + 1 }, () => new Array(others.length + 1).fill(0));
  for (let i = ids.length - 1; i >= 0; i -= 1)
    for (let j = others.length - 1; j >= 0; j -= 1)
      table[i][j] = ids[i] === others[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  const found = ids.map(() => -1);
  for (let [i, j] = [0, 0]; i < ids.length && j < others.length;) {
    if (ids[i] === others[j]) [found[i], i, j] = [j, i + 1, j + 1];
    else if (table[i + 1][j] >= table[i][j + 1]) i += 1;
    else j += 1;
  }
  return found;
}

/** Which tokens of `ids` belong to no longest common part with `others`. */
const differing = (ids, others) => partners(ids, others).map((place) => place < 0);

// ------------------------------------------------------------------ what stands on the page

/** Rows of chips that keep their elements, so that their colours glide. */
function chips(row, label, onPick) {
  const node = make("div", { class: "chips", role: "group", "aria-label": label });
  const all = [];
  return {
    node,
    at: (column) => all[column],
    show: (list) => {
      while (all.length > list.length) all.pop().remove();
      list.forEach(({ token, weight, on, other, p, was, label: words }, column) => {
        if (!all[column]) {
          const events = { onclick: () => onPick(column) };
          all[column] = make("button", {
            type: "button",
            tabindex: -1,
            "data-row": row,
            "data-column": column,
            ...events,
          });
          node.append(all[column]);
        }
        const chip = all[column];
        const kinds = { word: token.startsWith("▁") || column === 0, on, other, was: was !== undefined };
        chip.className = ["chip", ...Object.keys(kinds).filter((kind) => kinds[kind])].join(" ");
        if (chip.textContent !== piece(token)) {
          chip.textContent = piece(token);
          chip.classList.add("new");
        }
        for (const [name, value] of Object.entries({ w: weight, p, was })) chip.style.setProperty(`--${name}`, value);
        chip.setAttribute("aria-label", words);
        chip.setAttribute("aria-pressed", String(!!on));
      });
    },
  };
}

/** What a beam search found, the best first: `{ ids, total }`. */
function foundIn(tree) {
  let open = [{ ids: [] }];
  const ended = tree.flatMap((candidates) => {
    const nodes = candidates.map(([parent, id, total, fate]) => ({ ids: [...open[parent].ids, id], total, fate }));
    open = nodes.filter(({ fate }) => fate === KEPT);
    return nodes.filter(({ fate }) => fate >= FINISHED);
  });
  const score = ({ ids, total }) => total / ((5 + ids.length) / 6);
  return ended.sort((a, b) => a.fate - b.fate || score(b) - score(a));
}

function render({ model, el, alone }) {
  const start = Object.fromEntries([...QUESTION, "selected", "answer"].map((key) => [key, model.get(key)]));
  const asked = () => Object.fromEntries(QUESTION.map((key) => [key, model.get(key)]));
  const isReading = () => model.get("part") === "encoder";
  /** The beam knows nothing of words that the reader forced. */
  const isFree = () => model.get("view") === "beam" && model.get("beginning").length > 0;
  const { layers, heads: nHeads } = model.get("sizes");
  let [partial, engine, round_, waiting, trouble] = [null, null, 0, 0, ""];
  // Nothing is said of an answer that is still computed.
  const busy = (yes) => (yes ? root.setAttribute("aria-busy", "true") : root.removeAttribute("aria-busy"));
  const isBusy = () => root.hasAttribute("aria-busy");
  const card = openCard(el, {
    label: "A Transformer that translates",
    question: "What does the model write?",
    invite: "Tap the first word of the translation and put another there: what changes after it?",
    onReset: () => {
      clearTimeout(waiting);
      round_ += 1;
      partial = null;
      busy(false);
      setTraits(model, start);
    },
    css: CSS,
  });
  const { root, say } = card;

  // ---- asking: the traits say what is asked; whoever has the model answers

  const compute = async () => {
    const mine = ++round_;
    try {
      const runs = await engine;
      const answer = await answerTo(runs, asked(), async (told) => {
        partial = told;
        draw();
        await breath();
        return mine === round_;
      });
      if (!answer || mine !== round_) return;
      partial = null;
      busy(false);
      setTraits(model, { answer });
      draw(); // also where the answer is the one that stood
      say(`${answer.translation} ${finding()}`);
    } catch (error) {
      if (mine !== round_) return;
      partial = null;
      busy(false);
      trouble = `The model could not be loaded here (${error.message}); what you see is stored.`;
      draw();
    }
  };
  const load = () => (engine ||= loadModel(model.get("weights"), alone.base));
  const ask = (values) => {
    busy(!!alone);
    setTraits(model, values);
    if (!alone) return draw();
    load();
    compute();
    writeAddress();
  };
  const writeAddress = () => {
    if (window !== window.top) return;
    const state = new URLSearchParams(QUESTION.map((key) => [key, [model.get(key)].flat().join(",")]));
    history.replaceState(null, "", `#what-if?${state}`);
  };
  /** What an address asks for; nothing where it names what this model has not. */
  const fromAddress = () => {
    const [, text] = location.hash.match(/^#what-if\?(.*)$/) || [];
    if (text === undefined) return null;
    const given = new URLSearchParams(text);
    const words = (name) => (given.get(name) || "").split(",").filter(Boolean);
    const number = (name, top) => Math.min(Math.max(Number.parseInt(given.get(name), 10) || 0, -1), top);
    const known = (name, options, otherwise) => (options.includes(given.get(name)) ? given.get(name) : otherwise);
    const off = words("off").filter((name) => switchNames().includes(name));
    return {
      text: (given.get("text") || start.text).slice(0, LONGEST_TEXT),
      off,
      by: known("by", ["zero", "mean"], "zero"),
      beginning: words("beginning")
        .map(Number)
        .filter((id) => Number.isInteger(id) && id > EOS),
      view: known("view", ["words", "heads", "beam"], "words"),
      part: known(
        "part",
        PARTS.map(([part]) => part),
        "cross",
      ),
      layer: number("layer", layers - 1),
      head: number("head", nHeads - 1),
    };
  };
  const numbers = (n) => [...Array(n).keys()];
  const switchNames = () => [
    ...PARTS.flatMap(([part]) => numbers(layers).flatMap((i) => numbers(nHeads).map((j) => `${part}.${i}.${j}`))),
    ...["encoder", "decoder"].flatMap((stack) => numbers(layers).map((i) => `${stack}.${i}`)),
    ...SWITCHES.map(([name]) => name),
  ];
  const flip = (name, more = {}) => {
    const off = new Set(model.get("off"));
    if (!off.delete(name)) off.add(name);
    ask({ off: switchNames().filter((one) => off.has(one)), ...more });
  };

  // ---- the line to type in

  /** Another sentence; its first word that is written is framed, unless the switches show the encoder. */
  const begin = (text) => {
    const part = isReading() && model.get("view") !== "heads" ? "cross" : model.get("part");
    ask({ text, beginning: [], selected: 0, part });
  };
  const input = make("input", {
    type: "text",
    "aria-label": "English sentence",
    maxlength: LONGEST_TEXT,
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => {
      clearTimeout(waiting);
      busy(true);
      tell();
      waiting = setTimeout(() => begin(input.value), 120);
    },
  });
  const examples = select({
    label: "Examples",
    options: [["", "Examples"], ...model.get("examples").map((text) => [text, text])],
    onChange: (text) => (text ? begin(text) : draw()),
  });
  const form = make("form", { class: "ask", onsubmit: (event) => event.preventDefault() }, input);
  const strange = make("p", { class: "strange" });

  // ---- the two sentences

  const pick = (row) => (column) => {
    const isSource = row === 0;
    const part = isSource ? "encoder" : model.get("part") === "encoder" ? "cross" : model.get("part");
    if (part === model.get("part")) setTraits(model, { selected: column });
    else ask({ part, selected: column });
    say(looking());
  };
  const [read, written] = [chips(0, "what was read", pick(0)), chips(1, "the translation", pick(1))];
  written.node.classList.add("written");
  const lines = svg("svg", { "aria-hidden": "true" });
  const stage = make("div", { class: "stage" }, lines, read.node, written.node);
  const roving = rovingGrid(
    stage,
    (row, column) => {
      const line = [read, written][row];
      return line.at(Math.min(column, line.node.children.length - 1));
    },
    () => ({ firstRow: 0, lastRow: 1, firstColumn: 0, lastColumn: 199 }),
  );

  // ---- the panel: what might have been written, the switches, or the beam

  const views = choice({
    name: "What to look at",
    options: [
      ["words", "Words"],
      ["heads", "Heads"],
      ["beam", "Beam"],
    ],
    onChange: (view) => ask({ view }),
  });
  const panel = make("div", { class: "panel" });
  const next = make("div", { class: "next", role: "group", "aria-label": "words in this place" });
  const looks = bars();
  const nextNote = make("p", { class: "tt-note" });
  const parts = choice({
    name: "Which attention",
    options: PARTS,
    onChange: (part) => ask({ part, selected: 0 }),
  });
  const grid = make("div", { class: "heads", role: "group", "aria-label": "heads" });
  grid.style.setProperty("--n", nHeads);
  const cells = [];
  const cell = (row, column, text, onclick) => {
    const node = make("button", {
      type: "button",
      role: "switch",
      tabindex: -1,
      class: "switch",
      "data-row": row,
      "data-column": column,
      text,
      onclick,
    });
    (cells[row] ||= {})[column] = node;
    return node;
  };
  for (const layer of numbers(layers)) {
    const first = cell(layer, 0, "", () => flip(`${stackOf(model.get("part"))}.${layer}`));
    first.classList.add("layer");
    grid.append(first);
    for (const head of numbers(nHeads))
      grid.append(
        cell(layer, head + 1, `${head}`, () => flip(`${model.get("part")}.${layer}.${head}`, { layer, head })),
      );
  }
  rovingGrid(
    grid,
    (row, column) => cells[row]?.[column],
    () => ({
      firstRow: 0,
      lastRow: layers - 1,
      firstColumn: 0,
      lastColumn: nHeads,
    }),
  ).makeStop(cells[0][1]);
  const all = button({
    label: "Show the mean of all",
    onClick: () => ask({ layer: -1, head: -1 }),
  });
  const by = choice({
    label: "Off gives",
    options: [
      ["zero", "nothing"],
      ["mean", "its mean"],
    ],
    onChange: (value) => ask({ by: value }),
  });
  const toggles = SWITCHES.map(([name, label]) => [name, toggle({ label, onChange: () => flip(name) })]);
  const hint = (text) => make("p", { class: "tt-note", text });
  const headsNote = hint("");
  const headsView = [
    parts.node,
    headsNote,
    grid,
    make("div", { class: "tt-controls" }, ...toggles.map(([, one]) => one.node), by.node, all),
  ];
  const beamNote = hint("");
  const found = make("ol", { class: "found" });
  const wordsView = [nextNote, next, looks.node];
  const contents = {
    words: wordsView,
    heads: headsView,
    beam: [beamNote, found],
  };
  card.stage.append(form, strange, stage);
  examples.node.classList.add("examples");
  card.controls.append(views.node, examples.node);
  card.controls.after(panel);
  card.more("About this model", make("p", { class: "tt-note", text: model.get("note") }));

  // ---- drawing: everything follows from the traits, and from the words that are just being written

  const looked = () => {
    const { source, written: tokens } = model.get("answer");
    const part = model.get("part");
    const n = part === "encoder" ? source.length : tokens.length;
    return { part, place: Math.min(model.get("selected"), n - 1) };
  };
  const keysOf = (part, { source, written: list }) => (part === "decoder" ? [null, ...list.map(([id]) => id)] : source);
  const name = (id) =>
    id === null ? "the start" : id === EOS ? "the end mark" : `“${piece(model.get("answer").tokens[id])}”`;
  /** How probable each token was before, where it stood there, too. */
  const before = ({ written: list, usual, usual_probabilities: were }) =>
    partners(
      list.map(([id]) => id),
      usual,
    ).map((place) => were[place]);
  /** Whose probability moved most after a place, of the words that stay. */
  const moved = (place) => {
    const answer = model.get("answer");
    const was = before(answer);
    const all = answer.written.map(([id, now], i) => [name(id), was[i] ?? now, now]).slice(place + 1);
    const far = ([, then, now]) => Math.abs(now - then);
    const [who, then, now] = all.reduce((a, b) => (far(b) > far(a) ? b : a), ["", 0, 0]);
    if (now === then) return "";
    return short(now) === short(then)
      ? "no probability moves by 0.01"
      : `${who} ${now < then ? "falls" : "rises"} most, from ${short(then)} to ${short(now)}`;
  };
  const looking = () => {
    const [answer, { part, place }] = [model.get("answer"), looked()];
    const row = answer.weights[place] || [];
    const top = row.indexOf(Math.max(...row));
    const query = part === "encoder" ? answer.source[place] : answer.written[place]?.[0];
    if (!answer.weights.length && answer.source.length) return "What is switched off looks nowhere.";
    if (top < 0 || query === undefined) return "";
    const key = keysOf(part, answer)[top];
    const who =
      model.get("layer") < 0
        ? model.get("view") === "heads"
          ? ", on average of all heads"
          : ""
        : ` in layer ${model.get("layer")}, head ${model.get("head")}`;
    const forced = model.get("beginning").length;
    const isForced = model.get("view") === "words" && !model.get("off").length && place === forced - 1;
    if (isForced && part !== "encoder") {
      const changes = changesAfter(place, answer);
      const why = query === EOS ? "nothing is written after your end mark" : `it writes on from your ${name(query)}`;
      return changes
        ? `It ${changes}, because ${why}.`
        : `After your ${name(query)} come only words that were there before${moved(place) && `; ${moved(place)}`}.`;
    }
    const verb = part === "encoder" ? "Reading" : "Writing";
    return `${verb} ${name(query)}, it looks most at ${name(key)}${who}.`;
  };
  const changesAfter = (place, { written: list, usual }) => {
    const quoted = (ids) => `“${textOf(ids)}”`;
    const told = hunksAfter(
      place,
      list.map(([id]) => id),
      usual,
    ).flatMap(({ added, moved, gone }) => [
      added.length && (gone.length ? `writes ${quoted(added)} instead of ${quoted(gone)}` : `adds ${quoted(added)}`),
      !added.length && gone.length && `leaves out ${quoted(gone)}`,
      moved.length && `moves ${quoted(moved)}`,
    ]);
    const words = told.filter(Boolean).join(", ");
    const last = words.lastIndexOf(", ");
    return last < 0 ? words : `${words.slice(0, last)} and ${words.slice(last + 2)}`;
  };
  const finding = () => {
    const [{ written: list, usual }, off] = [model.get("answer"), model.get("off")];
    if (model.get("view") === "beam") return beamed();
    if (!off.length) return looking();
    const n = differing(
      list.map(([id]) => id),
      usual,
    ).filter(Boolean).length;
    const lost = differing(
      usual,
      list.map(([id]) => id),
    ).filter(Boolean).length;
    const ids = list.map(([id]) => id);
    const what = off.length > 2 ? `${off.length} parts` : off.map(nameOf).join(" and ");
    const many = (count, of = "") => `${count}${of} token${of || count > 1 ? "s" : ""}`;
    const repeats = tailOf(ids) > SAME;
    const changed =
      n + lost === 0
        ? moved(-1)
          ? `no word changes; ${moved(-1)}`
          : "nothing changes"
        : repeats && lost === usual.length
          ? "nothing is left of the translation: it repeats one token"
          : (lost
              ? `${many(lost, ` of ${usual.length}`)} ${lost === 1 ? "changes" : "change"}`
              : `${many(n)} ${n === 1 ? "is" : "are"} added`) + (repeats ? ", and the last is repeated" : "");
    return `Without ${what}, ${changed}.`;
  };

  const drawChips = () => {
    const answer = model.get("answer");
    const { part, place } = looked();
    const now = partial || answer;
    const row = isBusy() ? [] : answer.weights[place] || [];
    const other = isBusy()
      ? []
      : differing(
          answer.written.map(([id]) => id),
          answer.usual,
        );
    const at = (key) => row[key] || 0;
    const was = isBusy() ? [] : before(answer);
    const said = (token, weight, more) =>
      `${token === "<eos>" ? "end" : piece(token)}${more}${weight ? `, weight ${short(weight)}` : ""}`;
    read.show(
      now.source.map((id, i) => {
        const token = now.tokens[id];
        const weight = part === "decoder" ? 0 : at(i);
        return {
          token,
          weight,
          on: part === "encoder" && i === place,
          label: said(token, weight, ""),
        };
      }),
    );
    const tail = tailOf(now.written.map(([id]) => id));
    const nShown = now.written.length - (tail > SAME ? tail - SAME : 0);
    written.show(
      now.written.slice(0, nShown).map(([id, probability], i) => {
        const token = now.tokens[id];
        const weight = part === "decoder" ? at(i + 1) : 0;
        const hasMoved = was[i] !== undefined && Math.abs(was[i] - probability) >= 0.005;
        const more = `, probability ${short(probability)}${hasMoved ? `, before ${short(was[i])}` : ""}${other[i] ? ", changed" : ""}`;
        return {
          token,
          weight,
          p: probability,
          was: hasMoved ? was[i] : undefined,
          other: other[i],
          on: part !== "encoder" && i === place && !partial,
          label: said(token, weight, more),
        };
      }),
    );
    const stop_ = (part === "encoder" ? read : written).at(place) || read.at(0);
    if (stop_) roving.makeStop(stop_);
    drawLines(part, place, row);
  };
  const drawLines = (part, place, row) => {
    const box = stage.getBoundingClientRect();
    const middle = (chip, low) => {
      const rect = chip.getBoundingClientRect();
      return [rect.left + rect.width / 2 - box.left, (low ? rect.bottom : rect.top) - box.top];
    };
    const from = (part === "encoder" ? read : written).at(place);
    const to = part === "decoder" ? written : read;
    const drawn = row.flatMap((weight, key) => {
      const chip = to.at(part === "decoder" ? key - 1 : key);
      if (!from || !chip || weight < 0.05 || chip === from) return [];
      const within = part !== "cross";
      const [[x, y], [u, v]] = [middle(from, part === "encoder"), middle(chip, part !== "decoder")];
      const bend = within ? (part === "encoder" ? 26 : -26) : (v - y) / 2;
      const d = `M${x} ${y}C${x} ${y + bend} ${u} ${within ? v + bend : v - bend} ${u} ${v}`;
      return [svg("path", { d, "stroke-width": 1 + 6 * weight, "stroke-opacity": 0.25 + 0.75 * weight })];
    });
    refill(lines, ...drawn);
  };

  const drawWords = () => {
    const answer = model.get("answer");
    const { part, place } = looked();
    next.hidden = part === "encoder";
    looks.node.hidden = !next.hidden;
    if (next.hidden) {
      const row = answer.weights[place] || [];
      const tokens = answer.source.map((token, i) => [piece(answer.tokens[token]), row[i] || 0]);
      const most = tokens.sort(([, one], [, two]) => two - one).slice(0, RUNNERS_UP);
      nextNote.textContent = "Where it looks most. To change a word, tap one of the translation.";
      return looks.show(most.map(([label, share]) => ({ label, share, text: short(share) })));
    }
    const [id, share, ranked] = answer.written[place] || [];
    const isAmong = !ranked || ranked.some(([one]) => one === id);
    const list = isAmong ? ranked || [] : [...ranked.slice(0, -1), [id, share]];
    nextNote.textContent = list.length
      ? "Tap another word to have it in the frame instead:"
      : "There is nothing to translate yet.";
    while (next.children.length > list.length) next.lastChild.remove();
    list.forEach(([token, probability], i) => {
      if (!next.children[i])
        next.append(
          make(
            "button",
            { type: "button" },
            make("span", { class: "name" }),
            make("span", { class: "share" }, make("span", { class: "bar" }), make("span", { class: "number" })),
          ),
        );
      const line = next.children[i];
      const [title, { firstChild: bar, lastChild: number }] = line.children;
      title.textContent =
        token === EOS ? "■ end" : (/^▁/.test(answer.tokens[token]) ? "" : "·") + piece(answer.tokens[token]);
      bar.style.width = `${100 * probability}%`;
      number.textContent = short(probability);
      line.className = token === id ? "on" : "";
      line.onclick = () => {
        const before = answer.written.slice(0, place).map(([one]) => one);
        ask({ beginning: [...before, token], selected: place });
      };
    });
  };
  const drawHeads = () => {
    const off = new Set(model.get("off"));
    const part = model.get("part");
    const stack = stackOf(part);
    for (const layer of numbers(layers))
      for (const column of numbers(nHeads + 1)) {
        const node = cells[layer][column];
        const name = column ? `${part}.${layer}.${column - 1}` : `${stack}.${layer}`;
        const seen = model.get("layer") === layer && model.get("head") === column - 1;
        node.setAttribute("aria-checked", String(!off.has(name) && !off.has(`${stack}.${layer}`)));
        node.setAttribute("aria-label", nameOf(name).replace("the ", ""));
        if (!column) node.textContent = `${stack} layer ${layer}`;
        node.classList.toggle("on", column > 0 && seen);
      }
    const [layer, isMean] = [model.get("layer"), model.get("layer") < 0];
    const who = isMean ? "all these heads" : `head ${model.get("head")} of layer ${layer}`;
    const seen = isMean ? `the heads${off.size ? " that are on" : ""} look, on average` : `${who} looks`;
    headsNote.textContent = `Tap a head to switch it off. ${
      isBusy() || model.get("answer").weights.length
        ? `Lines: where ${seen}.`
        : model.get("answer").source.length
          ? `No lines: ${who} ${isMean ? "are" : "is"} off and ${isMean ? "look" : "looks"} nowhere.`
          : ""
    }`;
    parts.set(part);
    by.set(model.get("by"));
    for (const [name, one] of toggles) one.set(!off.has(name));
  };
  const textOf = (ids) => {
    const { tokens } = model.get("answer");
    return ids
      .map((id) => (id === EOS ? "" : tokens[id].replace("▁", " ")))
      .join("")
      .trim();
  };
  /** How much less probable something is, by the difference of the logarithms. */
  const beside = (apart) => {
    const times = Math.exp(Math.abs(apart));
    if (times < 1.05) return "as probable";
    const said = times < 10 ? formatNumber(times, 1) : formatCount(times);
    return apart > 0
      ? `${said} times less probable`
      : `${said} times more probable, but shorter, and the search allows for length`;
  };
  /** What the beam's best is beside what greedy search wrote. */
  const beamed = () => {
    const answer = model.get("answer");
    const [best, second] = foundIn(answer.tree);
    if (!best) return answer.source.length ? "The beam is searching." : "There is nothing to translate yet.";
    if (best.fate > FINISHED) return "No translation ended.";
    const greedy = isFree() ? answer.usual : answer.written.map(([id]) => id);
    const free = isFree() ? "The beam searches without your words. " : "";
    return (
      free +
      (best.ids.join() === greedy.join()
        ? `Its best is what greedy search writes${isFree() ? " without them" : ""}, too${second ? `; the next in this list is ${beside(best.total - second.total)}` : ""}.`
        : `It finds “${textOf(best.ids)}”, where greedy search writes “${textOf(greedy)}”, because it keeps four beginnings. What is probable need not be right.`)
    );
  };
  const drawBeam = () => {
    const answer = model.get("answer");
    const all = foundIn(answer.tree).slice(0, WIDTH);
    const first = all[0]?.total;
    const most = Math.max(...all.map(({ total }) => total));
    beamNote.textContent = all.length
      ? `What a beam of four finds${all.some(({ total }, i) => i && total > all[i - 1].total) ? ", ranked by probability for their length" : ""}: the best, of probability ${inWords(Math.exp(first))}${all.length > 1 ? ", and how probable the others are beside it" : ""}.`
      : "";
    refill(
      found,
      ...all.map(({ ids, total }, i) => {
        const other = differing(ids, all[0].ids);
        const words = ids.slice(0, ids.at(-1) === EOS ? -1 : ids.length).flatMap((id, at) => {
          const [, blank, text] = answer.tokens[id].match(/^(▁?)(.*)/s);
          return [blank && " ", make("span", { class: i && other[at] ? "other" : "", text })];
        });
        const bar = make("div", { class: "bar", style: `width:${100 * Math.exp(total - most)}%` });
        const share = make("span", { class: "number", text: i ? short(Math.exp(total - first)) : "1" });
        if (!words.some((part) => part)) words.push("(nothing)");
        return make("li", { "data-value": total.toFixed(9) }, make("span", {}, ...words), make("div", {}, bar), share);
      }),
    );
  };

  const draw = () => {
    const view = model.get("view");
    if (input.value !== model.get("text") && root.getRootNode().activeElement !== input)
      input.value = model.get("text");
    examples.set("");
    drawChips();
    views.set(view);
    if (panel.firstChild !== contents[view][0]) refill(panel, ...contents[view]);
    drawHeads();
    tell();
    if (isBusy()) return refill(found);
    drawWords();
    if (view === "beam") drawBeam();
  };
  /** What is said in words, of an answer that is there. */
  const tell = () => {
    const answer = model.get("answer");
    if (isBusy()) {
      strange.hidden = true;
      card.caption.textContent = "";
      card.find("It writes …");
      return;
    }
    const words = answer.strange.map((word) => `“${word}”`).join(", ");
    strange.textContent =
      trouble || (words ? `The model never read ${words}. It knows captions of photographs, and guesses here.` : "");
    strange.hidden = !strange.textContent;
    const isCompared = before(answer).some((was, i) => Math.abs(was - answer.written[i][1]) >= 0.005);
    const key = answer.written.length
      ? `Bars: how probable${isCompared ? "; ticks: before" : " each word is"}.`
      : "";
    card.caption.textContent =
      answer.usual_translation === answer.translation
        ? key
        : `${key} Underlined: changed. ${isFree() ? "Without your words" : model.get("off").length ? "With all on" : "Before"}: ${answer.usual_translation}`;
    card.find(finding());
  };
  const stop = onTraits(model, [...QUESTION, "selected", "answer", "examples", "sizes", "weights", "note"], draw);
  const readWords = () => model.get("answer").source.map((id) => bare(model.get("answer").tokens[id]));
  const isOwn = () => !isBusy() && !model.get("beginning").length && !model.get("off").length;
  const shares = [
    shareWord(
      model,
      "selected",
      (at) => (isReading() && isOwn() ? at : -1),
      (selected) => isReading() && { selected },
      readWords,
      "answer",
    ),
    shareWord(
      model,
      "selected",
      (at) => (isReading() || !isOwn() ? -1 : at),
      (selected) => !isReading() && isOwn() && model.get("answer").written[selected] && { selected },
      () => [...readWords(), "→"],
    ),
  ];
  const watcher = new ResizeObserver(() => drawChips());
  watcher.observe(stage);
  const close = () => {
    round_ += 1;
    clearTimeout(waiting);
    watcher.disconnect();
    sight?.disconnect();
    for (const end of [stop, ...shares, card.close]) end();
  };
  let sight = null;
  if (alone) {
    const linked = fromAddress();
    sight = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      sight.disconnect();
      load();
      engine.catch(() => {}); // told when somebody asks
    });
    sight.observe(el);
    if (linked) {
      el.scrollIntoView({ block: "center" });
      ask({ ...linked, selected: 0 });
    }
  }
  draw();
  return close;
}

export default { render };
