// Decoding: beam search token by token, where the decoder looks, what it considers, and greedy
// search beside it.
import { css, formatNumber, make, onTraits, openCard, refill, setTraits, svg } from "./core.js";
import { choice, player, rovingGrid, select, slider } from "./controls.js";
import { bars } from "./drawing.js";

const CSS = css`
  .panel {
    min-height: 13rem;
    margin-top: 0.75rem;
  }
  .head {
    font-weight: 600;
    margin: 0 0 0.5rem;
    overflow-wrap: anywhere;
  }
  .row {
    display: flex;
    flex-wrap: wrap;
    gap: 0.3rem;
    list-style: none;
    margin: 0;
    padding: 0;
  }
  .word {
    border: 2px solid var(--tt-memory-line);
    border-radius: 0.35rem;
    padding: 0 0.5rem;
    text-align: center;
    background: color-mix(in srgb, var(--tt-weights) calc(var(--w) * 100%), transparent);
  }
  small {
    display: block;
    font-size: 0.75rem;
    line-height: 1.2;
  }
  .scroll {
    overflow-x: auto;
    padding: 4px 1rem;
    margin-inline: -1rem;
    mask: linear-gradient(90deg, transparent, #000 1rem calc(100% - 1rem), transparent);
  }
  .tree {
    --column: 6rem;
    position: relative;
    display: grid;
    align-items: center;
    width: max-content;
  }
  .tree svg {
    position: absolute;
    width: 100%;
    height: 100%;
  }
  path {
    fill: none;
    stroke: var(--line);
    vector-effect: non-scaling-stroke;
  }
  path.dead {
    stroke-dasharray: 3;
  }
  path.on {
    stroke: var(--tt-decoder-line);
    stroke-width: 3;
  }
  .node {
    position: relative;
    font: inherit;
    font-size: 0.85rem;
    line-height: 1.25;
    color: inherit;
    width: calc(var(--column) - 0.8rem);
    height: 2.3rem;
    padding: 0;
    border: 1px solid var(--tt-decoder-line);
    border-radius: 0.35rem;
    overflow: hidden;
    white-space: nowrap;
    background: color-mix(in srgb, var(--tt-decoder) 16%, var(--tt-page));
  }
  .node.greedy {
    border: 2px solid var(--tt-key-line);
  }
  .node.ended {
    border: 3px double;
  }
  .node.dead {
    border: 1px dashed var(--tt-masked-line);
    background: var(--tt-page);
  }
  .node.lead {
    background: color-mix(in srgb, var(--tt-decoder) 45%, var(--tt-page));
  }
  .node.on {
    box-shadow: 0 0 0 2px var(--tt-decoder-line);
  }
  th {
    text-align: start;
    font-weight: 500;
  }
  td {
    padding-inline-end: 0.6rem;
    vertical-align: top;
  }
  td:nth-child(n + 3),
  td:first-child {
    white-space: nowrap;
  }
  .tt-finding {
    min-height: 4.4em;
  }
  @container (max-width: 27rem) {
    .tree {
      --column: 4.8rem;
    }
    .tt-finding {
      min-height: 8.7em;
    }
  }
`;

const [KEPT, CUT] = [1, 3]; // 0 dropped, 2 finished
const short = (value) => formatNumber(value, 2);
/** A log-probability as a share in per cent: two digits, but no more than hundredths. */
function percent(total) {
  const share = 100 * Math.exp(total);
  return share < 0.005 ? "<\u00a00.01\u00a0%" : `${formatNumber(share, share < 0.95 ? 2 : share < 9.5 ? 1 : 0)}\u00a0%`;
}
const sumOf = (pairs) => pairs.reduce((sum, [, value]) => sum + value, 0);

/**
 * The search as a tree: for each length its nodes, those kept first; each knows its parent and its
 * tokens.
 */
export function growTree({ candidates, greedy }) {
  let open = [{ total: 0, fate: KEPT, ids: [], row: 0, column: 0, greedy: true }];
  return [
    open,
    ...candidates.map((ranked, step) => {
      const nodes = ranked.map(([from, token, total, fate]) => ({
        token,
        total,
        fate,
        parent: open[from],
        column: step + 1,
        ids: [...open[from].ids, token],
        greedy: open[from].greedy && greedy.length > step && greedy[step][0] === token,
      }));
      nodes.sort((a, b) => (a.fate || 9) - (b.fate || 9)).forEach((node, row) => Object.assign(node, { row }));
      open = nodes.filter(({ fate }) => fate === KEPT);
      return nodes;
    }),
  ];
}

function readState(model) {
  const [tokens, sentence] = [model.get("tokens"), model.get("sentences")[model.get("sentence")]];
  const { next, attention, greedy } = sentence;
  const step = Math.min(model.get("step"), next.length - 1);
  const beam = Math.min(model.get("beam"), next[step].length - 1);
  const done = step === next.length - 1;
  const columns = growTree(sentence);
  const shown = columns.slice(0, step + 2).map((nodes) => nodes.filter(({ fate }) => fate));
  const nodes = shown.flat();
  const upwards = (node) => (node ? [node, ...upwards(node.parent)] : []);
  const alive = new Set(nodes.filter(({ fate, column }) => fate > KEPT || (fate && column > step)).flatMap(upwards));
  // Ranked as the search ranks it: by the sum over the length penalty (Wu et al. 2016, equation
  // 14).
  const found = nodes
    .filter(({ fate }) => fate > KEPT)
    .map((node) => Object.assign(node, { score: node.total / ((5 + node.column) / 6) ** model.get("alpha") }))
    .sort((a, b) => a.fate - b.fate || b.score - a.score);
  const text = (ids) =>
    ids
      .map((id) => tokens[id])
      .join("")
      .replace(/▁/g, " ")
      .trim();
  const chosen = columns[step][beam];
  const newest = shown[step + 1];
  const lead = done ? found[0] : newest.reduce((one, other) => (other.total > one.total ? other : one));
  const soFar = done ? greedy : greedy.slice(0, step + 1);
  return {
    ...sentence,
    shown,
    nodes,
    alive,
    found,
    text,
    step,
    done,
    chosen,
    path: new Set(upwards(lead)),
    lead,
    newest,
    next: next[step][beam],
    seen: attention[step][beam],
    greedy: soFar,
    wrote: text(soFar.map(([id]) => id)),
    named: ({ ids }) => (ids.length ? `“${text(ids)}”` : "the start"),
    // A token by itself: a dot in front where it goes on with a word.
    piece: (id) => (id ? (/^[▁<]/.test(tokens[id]) ? "" : "·") + tokens[id].replace("▁", "") : "end"),
  };
}

function wordsOf(node, { named, alive }) {
  const fate = ["dropped", alive.has(node) ? "kept" : "kept at first", "finished", "cut off"][node.fate];
  return `${named(node)}: ${formatNumber(node.total)}, ${fate}${node.greedy ? ", as in greedy search" : ""}`;
}

/** The tree: a column for each length, lines from each partial hypothesis to what extends it. */
function drawTree(tree, state, onPick) {
  const { shown, nodes, alive, chosen, lead, piece, path } = state;
  const rows = Math.max(...shown.map((column) => column.length));
  const lines = nodes.slice(1).map((node) => {
    const [x, from, to] = [node.column, node.parent.row + 0.5, node.row + 0.5];
    return svg("path", {
      class: path.has(node) ? "on" : alive.has(node) ? "" : "dead",
      d: `M${x - 0.13} ${from}C${x} ${from} ${x - 0.13} ${to} ${x} ${to}`,
    });
  });
  tree.style.gridTemplate = `repeat(${rows}, 2.7rem) / repeat(${shown.length}, var(--column))`;
  refill(
    tree,
    svg(
      "svg",
      {
        viewBox: `0 0 ${shown.length} ${rows}`,
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      },
      ...lines,
    ),
    ...nodes.map((node) => {
      const life = node.fate > KEPT ? "ended" : alive.has(node) ? "" : "dead";
      const box = make(
        "button",
        {
          tabindex: -1,
          "aria-label": wordsOf(node, state),
          "aria-pressed": String(node === chosen),
          class: `node ${life} ${node.greedy ? "greedy" : ""} ${node === chosen ? "on" : ""} ${node === lead ? "lead" : ""}`,
          "data-row": node.row,
          "data-column": node.column,
          "data-value": node.total.toFixed(9),
          onclick: () => onPick(node),
        },
        node.column ? ["", "", "■ ", "… "][node.fate] + piece(node.token) : "start",
        life === "dead" ? null : make("small", { text: (node.greedy ? "G " : "") + percent(node.total) }),
      );
      box.style.gridArea = `${node.row + 1} / ${node.column + 1}`;
      return box;
    }),
  );
}

/**
 * The next token's probabilities, and what is added to the hypothesis's; extensions that stay in the
 * search are framed.
 */
function drawNext(likely, { next, newest, chosen, piece }) {
  const own = newest.filter(({ parent }) => parent === chosen).sort((a, b) => b.total - a.total);
  const [best] = own;
  // The number that its bar shows, so that both are rounded alike.
  const shareOf = ({ token, total }) => (next.find(([id]) => id === token) || [0, Math.exp(total - chosen.total)])[1];
  return [
    likely.show(
      [...next, [-1, Math.max(1 - sumOf(next), 0)]].map(([id, probability]) => ({
        share: probability,
        text: formatNumber(probability),
        label: id < 0 ? "all others" : piece(id),
        colour: id < 0 ? "masked" : "decoder",
        on: own.some((one) => one.token === id && one.fate),
      })),
    ),
    note(
      best
        ? `Best extension: ${short(chosen.total)} + ln ${formatNumber(shareOf(best))} = ` + `${short(best.total)}`
        : "No extension of it is among the best of all.",
    ),
  ];
}

/** What both searches wrote, and at the end how they stand to each other. */
function drawResults({ wrote, greedy, found, text }) {
  const line = (kind, ...cells) =>
    make(
      "tr",
      {},
      ...cells.map((cell) =>
        make(kind, cell.toFixed ? { text: short(cell), "data-value": cell.toFixed(9) } : { text: cell }),
      ),
    );
  return [
    make(
      "table",
      {},
      line("th", "search", "translation", "log p", "score"),
      line("td", "greedy", wrote + (greedy.at(-1)[0] ? " …" : ""), sumOf(greedy)),
      ...found.map((one, i) =>
        line("td", `beam ${i + 1}`, text(one.ids) + (one.fate === CUT ? " …" : ""), one.total, one.score),
      ),
    ),
    note(
      "score = log p ÷ ((5 + n) ÷ 6)^α for n tokens, the end included" +
        (found.length ? "" : "; α acts once a translation is finished"),
    ),
  ];
}

const timesOf = (gain) => `${formatNumber(Math.exp(Math.abs(gain)), 1)} times as probable`;

/** Whose beginning leads, of all that are in the search after this step. */
function raceOf({ newest, lead: best, text, wrote, why }) {
  const own = newest.find((node) => node.greedy);
  if (!own) return `Greedy search wrote “${wrote}”; the beam goes on with others.`;
  if (own === best) return `Greedy’s beginning leads: “${text(own.ids)}”.`;
  return (
    `“${text(best.ids)}” has overtaken greedy’s “${text(own.ids)}”: it is ${timesOf(best.total - own.total)}. ` +
    (why || "Greedy cannot go back.")
  );
}

/** What there is to see at this step: who leads or where it looks, and, at the end, how both searches compare. */
function findingOf(state, panel) {
  const { seen, source_tokens: read, chosen, named, done, found, text, wrote, greedy, reference, why } = state;
  if (!done && panel !== "look") return raceOf(state);
  if (!done) {
    const top = seen.indexOf(Math.max(...seen));
    return `After ${named(chosen)} it looks most at “${read[top].replace("▁", "")}”, ${short(seen[top])}.`;
  }
  const gain = found[0].total - sumOf(greedy);
  const times = timesOf(gain);
  const verdict =
    text(found[0].ids) === wrote
      ? "Both write the same sentence."
      : gain > 0
        ? `They differ: the beam’s first is ${times} as greedy’s.`
        : `They differ: greedy’s is ${times}, but the beam ranks by the score.`;
  return verdict + (why ? ` ${why}` : "") + (reference && ` The corpus has “${reference}”.`);
}

const note = (text) => make("p", { class: "tt-note", text });
const head = (text) => make("p", { class: "head", text });

const PANELS = [
  ["tree", "Tree"],
  ["look", "Attention"],
  ["next", "Choices"],
  ["results", "Results"],
];

function render({ model, el }) {
  const keys = ["sentence", "step", "beam", "alpha", "panel"];
  const initial = Object.fromEntries(keys.map((key) => [key, model.get(key)]));
  const go = (values) => setTraits(model, values);
  const card = openCard(el, {
    label: "Decoding",
    question: "Why keep more than one beginning?",
    invite: "Press Next: where does greedy’s beginning (G) lose the lead, and why?",
    onReset: () => {
      steps.pause();
      go(initial);
    },
    css: CSS,
  });
  const [tree, likely] = [make("div", { class: "tree" }), bars()];
  const box = make("div", { class: "scroll", role: "group", "aria-label": "Partial hypotheses" }, tree);
  const sentences = select({
    label: "Sentence",
    options: model.get("sentences").map(({ source }, i) => [i, source]),
    onChange: (sentence) => go({ sentence, step: 0, beam: 0 }),
  });
  const count = () => model.get("sentences")[model.get("sentence")].next.length;
  const steps = player({
    count,
    onStep: (step) => go({ step, beam: 0 }),
    describe: (step) => `token ${step + 1} of ${count()}`,
  });
  const alpha = slider({
    label: "Length penalty α",
    min: 0,
    max: 2,
    step: 0.1,
    onInput: (value) => go({ alpha: value }),
  });
  const panels = choice({
    name: "What to see",
    options: PANELS,
    onChange: (panel) => go({ panel }),
  });
  const panel = make("div", { class: "panel" });
  const cellAt = (row, column) => tree.querySelector(`[data-row="${row}"][data-column="${column}"]`);
  const roving = rovingGrid(box, cellAt, () => ({
    ...{ firstRow: 0, lastRow: 99, firstColumn: 0, lastColumn: 99 },
  }));
  const pick = (node) =>
    node.fate === KEPT ? go({ step: node.column, beam: node.row }) : card.say(wordsOf(node, readState(model)));
  card.stage.append(panels.node, panel);
  card.controls.append(steps.node, sentences.node);
  const about = make("p", { class: "tt-note" });
  card.more("About the data", about);

  const show = {
    tree: ({ source }) => [
      head(`Beginnings of a translation of “${source}”`),
      box,
      note(
        "%: how probable the beginning is. G: greedy’s one beginning. Thick line: the best. Dashed: given up. ■: finished.",
      ),
    ],
    look: (state) => [
      head(`Where ${state.named(state.chosen)} looks to choose its next token`),
      make(
        "ul",
        { class: "row" },
        ...state.seen.map((weight, i) =>
          make(
            "li",
            { class: "word", style: `--w: ${weight}`, "data-value": weight.toFixed(9) },
            state.source_tokens[i].replace("▁", ""),
            make("small", { text: short(weight) }),
          ),
        ),
      ),
    ],
    next: (state) => [head(`Next token after ${state.named(state.chosen)}`), ...drawNext(likely, state)],
    results: (state) => [head("Translations so far"), ...drawResults(state), alpha.node],
  };
  let shown = "";
  const draw = () => {
    const state = readState(model);
    const within = tree.contains(tree.getRootNode().activeElement);
    const sliding = alpha.node.contains(alpha.node.getRootNode().activeElement);
    sentences.set(model.get("sentence"));
    steps.set(state.step);
    alpha.set(model.get("alpha"));
    panels.set(model.get("panel"));
    drawTree(tree, state, pick);
    const parts = show[model.get("panel")](state);
    if (shown === "tree" && model.get("panel") === "tree") parts.length = 0; // it stays where it is
    if (parts.length) refill(panel, ...parts);
    shown = model.get("panel");
    if (sliding) alpha.input.focus();
    card.find(findingOf(state, model.get("panel")));
    about.textContent = `${state.model ? `The model ${state.model} of training. ` : ""}${model.get("note")}`;
    const node = cellAt(state.chosen.row, state.step);
    roving.makeStop(node);
    if (within) node.focus();
    box.scrollLeft = node.offsetLeft - box.clientWidth / 3;
  };
  const stop = onTraits(model, ["tokens", "sentences", "note", ...keys], draw);
  draw();
  return () => {
    stop();
    steps.close();
    card.close();
  };
}

export default { render };
