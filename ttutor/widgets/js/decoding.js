// Decoding: beam search token by token. Beginnings are streams, each as broad as it is probable, and
// greedy search's one beginning runs through the middle.
import { css, formatNumber, make, onTraits, openCard, setTraits } from "./core.js";
import { player, select, slider } from "./controls.js";
import { preview, stage } from "./drawing.js";

const CSS = css`
  .stream {
    fill: color-mix(in srgb, var(--tt-decoder-line) 60%, var(--tt-page));
  }
  .node {
    stroke: var(--tt-decoder-line);
    fill: color-mix(in srgb, var(--tt-decoder) 25%, var(--tt-page));
  }
  .stream.greedy {
    fill: color-mix(in srgb, currentColor 45%, var(--tt-page));
  }
  .node.greedy {
    stroke: color-mix(in srgb, currentColor 65%, var(--tt-page));
    fill: color-mix(in srgb, currentColor 12%, var(--tt-page));
  }
  .node.lead {
    stroke-width: 3;
  }
  .node.dead {
    stroke-dasharray: 3;
    fill: var(--tt-page);
  }
  .node.on {
    stroke: currentColor;
  }
  .tt-picture .word {
    font-size: 0.875rem;
    font-weight: 600;
  }
  .tt-picture text,
  .to-come {
    pointer-events: none;
  }
  .to-come {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.4;
    stroke-dasharray: 2 4;
  }
  @container (max-width: 27rem) {
    .tt-picture .word {
      font-size: 0.8125rem;
    }
    .tt-finding {
      min-height: 7.3em;
    }
  }
`;

const KEPT = 1; // 0 dropped, 2 finished, 3 cut off
/** A log-probability as a share in per cent: two digits, but no more than hundredths. */
function percent(total) {
  const share = 100 * Math.exp(total);
  return share < 0.005 ? "<\u00a00.01\u00a0%" : `${formatNumber(share, share < 0.95 ? 2 : share < 9.5 ? 1 : 0)}\u00a0%`;
}
const sum = (values) => values.reduce((one, other) => one + other, 0);
const sumOf = (pairs) => sum(pairs.map(([, value]) => value));
const shareOf = ({ total }) => Math.exp(total);

/**
 * The search as a tree: for each length its nodes; each knows its parent, its tokens, and its lane. Greedy's
 * has the lane 0 and is there to its end, also where the beam has dropped it.
 */
function growTree({ candidates, greedy }) {
  let own = { total: 0, fate: KEPT, ids: [], lane: 0, beam: 0, column: 0, greedy: true };
  let open = [own];
  return [
    open,
    ...candidates.map((ranked, step) => {
      const column = step + 1;
      const grow = (parent, token, total, fate) => ({
        parent,
        token,
        total,
        fate,
        column,
        ids: [...parent.ids, token],
      });
      const nodes = ranked.filter(([, , , fate]) => fate).map(([from, ...rest]) => grow(open[from], ...rest));
      open = nodes.filter(({ fate }) => fate === KEPT);
      open.forEach((node, beam) => Object.assign(node, { beam }));
      if (column <= greedy.length) {
        const next = grow(own, greedy[step][0], sumOf(greedy.slice(0, column)), 0);
        own = nodes.find(({ ids }) => String(ids) === String(next.ids));
        if (!own) nodes.push((own = next));
        own.greedy = true;
      }
      const taken = [0];
      nodes.sort((a, b) => b.total - a.total);
      for (const node of nodes) {
        let [away, lane] = [0, node.parent.lane];
        while (!node.greedy && taken.includes(lane)) {
          away += 1;
          lane = node.parent.lane + (away % 2 ? -(away + 1) / 2 : away / 2);
        }
        taken.push((node.lane = lane));
      }
      // Streams leave a beginning side by side.
      nodes.sort((a, b) => a.lane - b.lane);
      for (const node of nodes) {
        const beside = nodes.filter(({ parent }) => parent === node.parent).map(shareOf);
        const above = nodes.filter((other) => other.parent === node.parent && other.lane < node.lane);
        node.leaves = sum(above.map(shareOf)) + (shareOf(node) - sum(beside)) / 2;
      }
      return nodes;
    }),
  ];
}

/** The uppermost lane, and how many there are. */
function lanesOf(columns) {
  const lanes = columns.flat().map(({ lane }) => lane);
  return [Math.min(...lanes), 1 + Math.max(...lanes) - Math.min(...lanes)];
}

const upwards = (node) => (node ? [node, ...upwards(node.parent)] : []);

function readState(model) {
  const [tokens, sentence] = [model.get("tokens"), model.get("sentences")[model.get("sentence")]];
  const { candidates, greedy } = sentence;
  const columns = growTree(sentence);
  const step = Math.min(model.get("step"), candidates.length - 1);
  const done = step === candidates.length - 1;
  const shown = columns.slice(0, step + 2);
  const nodes = shown.flat();
  const alive = new Set(
    nodes.filter(({ fate, column, greedy: own }) => own || fate > KEPT || column > step).flatMap(upwards),
  );
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
  const newest = shown[step + 1];
  const lead = done
    ? found[0]
    : newest.filter(({ fate }) => fate).reduce((one, other) => (other.total > one.total ? other : one));
  const soFar = done ? greedy : greedy.slice(0, step + 1);
  return {
    ...sentence,
    nodes,
    alive,
    found,
    text,
    step,
    done,
    lead,
    newest,
    length: candidates.length,
    lanes: lanesOf(columns),
    // One height for all sentences.
    most: Math.max(...model.get("sentences").map((one) => lanesOf(growTree(one))[1])),
    path: upwards(lead),
    chosen: nodes.find((node) => node.column === step && node.fate === KEPT && node.beam === model.get("beam")),
    greedy: soFar,
    wrote: text(soFar.map(([id]) => id)),
    // A token by itself: a dot in front where it goes on with a word.
    piece: (id) => (id ? (/^[▁<]/.test(tokens[id]) ? "" : "·") + tokens[id].replace("▁", "") : "end"),
  };
}

/** What became of a beginning, and what it is called. */
const fateOf = (node, { alive }) =>
  ["dropped", alive.has(node) ? "kept" : "kept at first", "finished", "cut off"][node.fate] +
  (node.greedy ? ", greedy’s" : "");
const nameOf = ({ column, ids }, { text }) => (column ? `“${text(ids)}”` : "the start");
const wordsOf = (node, state) => `${nameOf(node, state)}: ${percent(node.total)}, ${fateOf(node, state)}`;

/** A beginning with its numbers: what it is worth, and by which product. */
function numbersOf(node, state) {
  const share = (total) => (total < -4.6 ? percent(total) : formatNumber(Math.exp(total)));
  const { parent, total, token } = node;
  const product = parent?.column
    ? ` = ${share(parent.total)} × ${share(total - parent.total)} for “${state.piece(token)}”`
    : "";
  return `${nameOf(node, state)}: ${share(total)}${product}; ${fateOf(node, state)}.`;
}

const [START, PITCH] = [8, 52];

/** The tree as far as it fits: a stream into every node, as broad as its beginning is probable. */
function drawTree({ last, columns, low, pitch }, width, state, guess, told, widthOf, onPick) {
  const { nodes, alive, chosen, lead, piece, newest } = state;
  const tall = pitch - 17;
  const most = Math.max(3, Math.floor((width - START) / 60));
  const first = Math.max(last - most, 0); // the last of those that are out of sight
  const wide = (width - START) / Math.min(columns, most);
  const box = Math.min(0.82 * wide, 120);
  const leftOf = (column) => (column ? START + (column - first) * wide - box : 0);
  const middleOf = (lane) => (lane - low + 0.5) * pitch + 14;
  const isSeen = ({ column }) => (column ? column > first + 0.5 : first < 0.5);
  const inView = nodes.filter(isSeen);
  const way = upwards(told);
  const streams = inView.flatMap((node) => {
    const { parent, lane, column } = node;
    if (!parent) return [];
    const [x, to] = [leftOf(column), middleOf(lane)];
    // From a beginning that is out of sight a stream comes in from the left edge.
    const from = isSeen(parent) ? leftOf(parent.column) + (parent.column ? box : 8) : 0;
    const [middle, y] = [(x + from) / 2, isSeen(parent) ? middleOf(parent.lane) + tall * node.leaves : to];
    // As an area: a broad line that bends steeply would bulge over its ends.
    const half = Math.max(tall * shareOf(node), 1) / 2;
    const edge = (from, y, x, to) => `${from} ${y}C${middle} ${y} ${middle} ${to} ${x} ${to}`;
    return [
      [
        `stream${node.ids}`,
        "path",
        {
          class: `stream ${node.greedy ? "greedy" : ""}`,
          "data-broad": 2 * half,
          d: `M${edge(from, y - half, x, to - half)}L${edge(x, to + half, from, y + half)}Z`,
        },
      ],
    ];
  });
  const boxes = inView.flatMap((node) => {
    const { lane, column, greedy, total, token, fate } = node;
    const [x, y] = [leftOf(column), middleOf(lane)];
    const dead = !alive.has(node) || !fate;
    const name = [
      greedy && !nodes.some((other) => other.greedy && other.column > column) && "greedy",
      node === lead && (!greedy || state.done) && (state.done ? "best" : "leads"),
      node === chosen && guess && "yours",
    ];
    const press = {
      class: `node ${dead ? "dead" : ""} ${greedy ? "greedy" : ""} ${node === lead ? "lead" : ""} ${way.includes(node) ? "on" : ""}`,
      "aria-label": wordsOf(node, state),
      "data-column": column,
      "data-value": total.toFixed(9),
      press: () => onPick(node),
    };
    const label = column ? piece(token) : "";
    const at = { x: x + box / 2, "text-anchor": "middle" };
    return [
      [
        `box${node.ids}`,
        "rect",
        { ...press, x, y: y - tall / 2, width: column ? box : 8, height: tall, rx: column ? 6 : 3 },
      ],
      [
        `word${node.ids}`,
        "text",
        {
          ...at,
          class: "word",
          y: y - 3,
          text: label,
          textLength: widthOf(label) > box - 6 ? box - 6 : null, // squeezed, never stretched
          lengthAdjust: "spacingAndGlyphs",
        },
      ],
      [`share${node.ids}`, "text", { ...at, y: y + 13, text: column ? percent(total) : "" }],
      [`name${node.ids}`, "text", { ...at, y: y - tall / 2 - 5, text: name.filter(Boolean).join(", ") }],
      newest.includes(node) &&
        fate === KEPT &&
        total > -4.6 && [`next${node.ids}`, "path", { class: "to-come", d: `M${x + box} ${y}H${width}` }],
    ];
  });
  const gone = upTo(lead, first);
  const before = gone.length && [
    "gone",
    "text",
    { x: 0, y: 13, class: "earlier", text: `before: ${state.text(gone).slice(-Math.floor(width / 8))}` },
  ];
  return [before, ...streams, ...boxes].filter(Boolean);
}

/** The tokens of a beginning that are out of sight on the left. */
const upTo = ({ ids }, first) => ids.slice(0, first);

const timesOf = (gain) => `${formatNumber(Math.exp(Math.abs(gain)), 1)} times as probable`;

/** Whose beginning leads, of all that are in the search after this step. */
function raceOf({ newest, lead: best, text, wrote, why }) {
  const own = newest.find((node) => node.greedy && node.fate);
  if (!own) return `Greedy search wrote “${wrote}”; the beam goes on with others.`;
  if (own === best) return `Greedy’s beginning leads: “${text(own.ids)}”.`;
  return (
    `“${text(best.ids)}” has overtaken greedy’s “${text(own.ids)}”: it is ${timesOf(best.total - own.total)}. ` +
    (why || "Greedy cannot go back.")
  );
}

/** What a length penalty would change at the end. */
function penaltyOf({ done, found }) {
  if (!done) return "The penalty counts at the end of the search. ";
  const bestAt = (alpha) =>
    found
      .filter(({ fate }) => fate === found[0].fate)
      .reduce((best, one) =>
        one.total / ((5 + one.column) / 6) ** alpha > best.total / ((5 + best.column) / 6) ** alpha ? one : best,
      );
  return bestAt(0) === bestAt(2)
    ? "Here the same one is best for every α from 0 to 2. "
    : "Here α decides which one is best. ";
}

/** How both searches compare at the end. */
function verdictOf({ found, text, wrote, greedy, why = "" }) {
  const gain = found[0].total - sumOf(greedy);
  const times = timesOf(gain);
  const verdict =
    text(found[0].ids) === wrote
      ? "Both write the same sentence."
      : gain > 0
        ? `They differ: the beam’s best is ${times} as greedy’s.`
        : `They differ: greedy’s is ${times}, but ${
            found.some((node) => node.greedy && node.column < found[0].column)
              ? "shorter. The beam divides by the length, so that short texts do not win."
              : "the beam did not finish it."
          }`;
  return `${verdict} ${why}`;
}

function render({ model, el }) {
  const keys = ["sentence", "step", "beam", "alpha"];
  const initial = Object.fromEntries(keys.map((key) => [key, model.get(key)]));
  let guess = false; // whether the reader chose the beginning that is gone on with
  let [tapped, pointed, told] = []; // tokens of a beginning, and the beginning that is told of
  const go = (values, own = false, ids) => {
    [guess, tapped, pointed] = [own, ids];
    setTraits(model, values);
    draw();
  };
  const card = openCard(el, {
    label: "Decoding",
    question: "Why keep more than one beginning?",
    invite: "Greedy takes the likeliest word. Tap the one that you would keep: does it lead one word later?",
    onReset: () => {
      steps.pause();
      go(initial);
    },
    css: CSS,
  });
  let state = readState(model);
  const picture = stage({
    label: "Beginnings of the translation",
    height: () => state.most * PITCH + 14,
    draw: (numbers, width) => drawTree(numbers, width, state, guess, told, widthOf, pick),
  });
  const ruler = document.createElement("canvas").getContext("2d");
  /** How wide a token is as the picture writes it. */
  const widthOf = (word) => {
    const { font } = getComputedStyle(picture.node.querySelector(".word") || picture.node);
    ruler.font = font;
    return ruler.measureText(word).width;
  };
  const sentences = select({
    label: "Translate",
    options: model.get("sentences").map(({ source }, i) => [i, source]),
    onChange: (sentence) => go({ sentence, step: 0, beam: 0 }),
  });
  const steps = player({
    count: () => state.length,
    onStep: (step) => go({ step, beam: 0 }),
    describe: (step) => `token ${step + 1} of ${state.length}`,
  });
  const alpha = slider({
    label: "Length penalty α",
    min: 0,
    max: 2,
    step: 0.1,
    onInput: (value) => go({ alpha: value }),
  });
  const pick = (node) => {
    steps.pause();
    const stays = node.fate !== KEPT || (state.done && node.column > state.step);
    go(stays ? {} : { step: node.column, beam: node.beam }, !stays && node.column > state.step, String(node.ids));
  };
  preview(picture.node, (event) => {
    const key = event?.target.dataset.key;
    const before = pointed;
    pointed = key?.startsWith("box") ? key.slice(3) : undefined;
    if (pointed === before) return;
    card.root.dataset.acted = "1";
    draw();
  });
  card.stage.append(sentences.node, picture.node);
  card.controls.append(steps.node);
  const about = make("p", { class: "tt-note" });
  card.more("Length penalty and data", alpha.node, about);

  const draw = () => {
    state = readState(model);
    sentences.set(model.get("sentence"));
    steps.set(state.step);
    alpha.set(model.get("alpha"));
    const last = state.step + 1;
    told = state.nodes.find(({ ids }) => String(ids) === (pointed ?? tapped));
    const isOpen = told?.fate === KEPT && told === state.chosen;
    picture.show({
      last,
      columns: Math.min(last + 0.7, state.length),
      low: state.lanes[0],
      pitch: (state.most * PITCH) / state.lanes[1],
    });
    card.find(
      told ? `${numbersOf(told, state)} ` : "",
      told && (pointed !== undefined || !isOpen)
        ? ""
        : (guess ? (state.path.includes(state.chosen) ? "Yes. " : "No. ") : "") +
            (state.done ? verdictOf(state) : raceOf(state)),
    );
    card.caption.textContent =
      `The likelier a beginning, the broader its stream. The beam keeps ${model.get("beam_size")} of them, greedy search one.` +
      (state.nodes.some(({ token }) => token !== undefined && state.piece(token)[0] === "·")
        ? " “·” goes on with a word."
        : "") +
      (state.model ? ` Written by the translator ${state.model} of training.` : "");
    about.textContent = `${penaltyOf(state)}The best at the end has the highest log p ÷ ((5 + n) ÷ 6)^α for n tokens. ${model.get("note")}`;
  };
  const stops = [
    onTraits(model, ["tokens", "sentences", "note", ...keys], draw),
    picture.close,
    steps.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
