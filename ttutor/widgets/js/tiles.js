// The moving tile: only one tile of a row's scores exists at a time. When a larger one comes, all that
// was added before shrinks by one factor, so that it is enough to correct the sum.
import { slider } from "./controls.js";
import { css, formatNumber, make, moveOnce, onTraits, openCard, reducedMotion, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .cell,
  .ceiling {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.3;
  }
  .gone {
    fill: color-mix(in srgb, currentColor 8%, transparent);
    stroke: currentColor;
    stroke-opacity: 0.6;
    stroke-dasharray: 3 3;
  }
  .power {
    fill: var(--tt-weights);
    stroke: var(--tt-weights-line);
  }
  .tile {
    fill: none;
    stroke: currentColor;
    stroke-width: 3;
  }
  .sum {
    fill: color-mix(in srgb, currentColor 35%, transparent);
    stroke: currentColor;
  }
  .mark {
    fill: none;
    stroke: currentColor;
    stroke-width: 4;
  }
  .tt-picture .score {
    font-size: 1.0625rem;
    font-weight: 600;
  }
  .why {
    margin: 0;
    sup {
      line-height: 0;
    }
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const TILE = 4;
const ROOM = 2.2; // how much longer the strip is than the largest sum, for the mark
const [CEILING, FLOOR, SUM] = [46, 166, 246]; // heights of the drawing: where a bar counts 1, and 0

/** The largest of the first scores, and the sum of their powers. */
function running(scores, step) {
  const known = scores.slice(0, step * TILE);
  const top = Math.max(...known);
  return { top, sum: known.reduce((sum, one) => sum + Math.exp(one - top), 0) };
}

/** The row before the last tile came and after it, and the factor by which what was there shrinks. */
function lastTile(scores, step) {
  const [before, now] = [Math.max(step - 1, 0), step].map((tiles) => running(scores, tiles));
  return { before, now, factor: step > 1 ? Math.exp(before.top - now.top) : 1 };
}

/** Bars of the powers, relative to `top`; of the last tile's, `come` has grown and `added` is in the sum. */
function drawRow({ tile, top, come, added }, width, { scores, step, most, whole }) {
  const size = (width - 4) / scores.length;
  const { before, now, factor } = lastTile(scores, step);
  const wide = (sum) => Math.min(sum / most, 1) * (width - 4);
  const first = Math.max(step - 1, 0) * TILE;
  const [known, row] = [scores.slice(0, step * TILE), { y: FLOOR, height: 34 }];
  const [strip, shrunk] = [{ y: SUM, height: 28 }, factor < 1 && top > before.top && `× ${formatNumber(factor, 2)}`];
  // What the whole row will come to, counted as the bars are now: it shrinks with them.
  const total = whole.sum * Math.exp(whole.top - top);
  const mark = 2 + wide(total);
  let end = 2 + wide(step > 1 ? before.sum * Math.exp(before.top - top) : 0);
  return [
    ["ceiling", "path", { class: "ceiling", d: `M0 ${CEILING}H${width}` }],
    [
      "one",
      "text",
      {
        class: shrunk && "score",
        x: 0,
        y: CEILING - 24,
        text: shrunk ? `all old bars ${shrunk}` : "the largest so far counts 1",
      },
    ],
    ...scores.map((_, j) => [`cell${j}`, "rect", { ...row, class: "cell", x: 2 + j * size, width: size }]),
    ...known.map((score, j) => {
      const high = Math.min(Math.exp(score - top) * (j < first || come), 1.15) * (FLOOR - CEILING);
      const part = { x: 3 + j * size, width: size - 2, y: FLOOR - high, height: high };
      return [`bar${j}`, "rect", { ...part, class: j < first ? "gone" : "power" }];
    }),
    ["sum", "rect", { ...strip, class: "sum", "data-value": now.sum.toFixed(9), x: 2, width: end - 2 }],
    ...known.slice(first).flatMap((score, j) => {
      const from = end;
      end = Math.min(end + wide(Math.exp(score - top) * added), width - 2);
      return [
        [`part${j}`, "rect", { ...strip, class: "power", x: from, width: end - from }],
        [
          `score${j}`,
          "text",
          { class: "score", x: 2 + (first + j + 0.5) * size, y: FLOOR + 23, "text-anchor": "middle", text: score },
        ],
      ];
    }),
    ["tile", "rect", { ...row, class: "tile", x: 2 + tile * TILE * size, width: TILE * size, rx: 4 }],
    ["kept", "text", { class: "score", x: 0, y: SUM - 12, text: shrunk ? `old sum ${shrunk}` : "sum so far" }],
    [
      "held",
      "text",
      {
        x: width,
        y: SUM - 12,
        "text-anchor": "end",
        text: `held: ${step ? `${TILE} + 2` : 0} of ${scores.length} numbers`,
      },
    ],
    [
      "mark",
      "path",
      { class: "mark", d: total > most ? `M${mark - 8} ${SUM}l8 14l-8 14` : `M${mark} ${SUM - 5}v38` },
    ],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const [scores, initial] = [get("scores"), { step: get("step") }];
  const count = scores.length / TILE;
  const card = openCard(el, {
    label: "The moving tile",
    question: "Can a sum come out right when its numbers are forgotten?",
    invite: "Move the tile on, to a larger number: what happens to the bars already forgotten?",
    onReset: () => set(initial),
    css: CSS,
  });
  const whole = running(scores, count);
  const most = ROOM * Math.max(...scores.map((_, j) => running(scores, Math.floor(j / TILE) + 1).sum));
  const picture = stage({
    label: "A row of scores, their powers, and the sum so far",
    height: SUM + 33,
    draw: (numbers, width) => drawRow(numbers, width, { scores, step: get("step"), most, whole }),
  });
  const steps = slider({
    label: "Tile",
    min: 0,
    max: count,
    step: 1,
    format: (step) => `${step} of ${count}`,
    plays: 1,
    onInput: (step) => set({ step }),
  });
  const why = "A bar is e^{score − largest so far}, because e^{score} explodes: e^{20} is 485 million.";
  card.stage.append(make("p", { class: "why maths", text: why }), picture.node);
  card.controls.append(steps.node);
  card.caption.textContent =
    "Dashed: forgotten, drawn only for you. Thick mark: the whole row’s sum, shrunk as the bars are (❯: beyond the edge).";
  let later = 0;
  const draw = () => {
    const step = get("step");
    const { before, now, factor } = lastTile(scores, step);
    const tile = Math.max(step - 1, 0);
    // First the new bars grow, perhaps beyond 1; then all shrink by one factor; then the new ones join the sum.
    const acts = [
      { top: step > 1 ? before.top : now.top, added: 0 },
      ...(factor < 1 ? [{ top: now.top, added: 0 }] : []),
      { top: now.top, added: 1 },
    ].map((act) => ({ ...act, tile, come: 1 }));
    const show = () => {
      picture.show(acts.shift());
      later = setTimeout(acts.length ? show : tell, acts.length ? 700 : 300);
    };
    const tell = () => card.find(findingOf({ scores, step }));
    steps.set(step);
    clearTimeout(later);
    if (reducedMotion()) {
      picture.show(acts.pop());
      tell();
    } else {
      card.find("");
      picture.show({ ...acts[0], come: 0 }, 0);
      show();
    }
  };
  const stops = [
    onTraits(model, ["step"], draw),
    moveOnce(card, model, { step: Math.min(initial.step + 1, count) }),
    () => clearTimeout(later),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** What the last tile did to the sum: most of all where the largest score rose. */
function findingOf({ scores, step }) {
  const { before, now, factor } = lastTile(scores, step);
  if (!step) return "Nothing is computed yet.";
  const told =
    factor < 1
      ? `From all scores ${+(now.top - before.top).toFixed(2)} more is subtracted: the old bars shrink by one and the same factor, so it is enough to shrink their sum.`
      : step > 1
        ? "No larger number came: the new bars are only added to the sum."
        : "The sum begins.";
  return step * TILE === scores.length
    ? `${told} It ends on its mark, though no more than ${TILE + 2} numbers were ever held.`
    : told;
}

export default { render };
