// The moving tile: only one tile of a row's scores exists at a time. When a larger one comes, all that
// was added before shrinks by one factor, so that it is enough to correct the sum. The scores in the tile
// are knobs: the reader sets them, and the sum still comes out right.
import { slider } from "./controls.js";
import { css, formatNumber, moveOnce, onTraits, openCard, reducedMotion, setTraits, writeText } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .ceiling,
  .track {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.3;
  }
  .away {
    fill: color-mix(in srgb, currentColor 5%, transparent);
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
  .knob {
    fill: var(--tt-ink);
  }
  .tt-picture .score {
    font-weight: 600;
    fill: var(--tt-page);
    pointer-events: none;
  }
  .tt-picture .shrinks {
    font-size: 1.0625rem;
    font-weight: 600;
  }
  .tt-note sup {
    line-height: 0;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const TILE = 4;
const HIGH = 6; // scores are set from 0 to this
const ROOM = 8; // the strip holds a sum of so much, and of more where a row has more
const [CEILING, FLOOR, BOTTOM, SUM] = [34, 138, 246, 284]; // where a bar counts 1, and 0; the tile; the strip

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

const written = (score) => String(score).replace("-", "−");
const shortly = (factor) => formatNumber(factor, factor < 0.1 ? 3 : 2);

/** Bars of the powers, relative to `top`; of the last tile's, `come` has grown and `added` is in the sum. */
function drawRow({ tile, top, come, added, scores, most }, width, { step, last, real, pull }) {
  const { before, now, factor } = last;
  const wide = (sum) => Math.min(sum / most, 1) * (width - 4);
  const first = Math.max(step - 1, 0) * TILE;
  const known = scores.slice(0, step * TILE);
  // The tile is wide enough for fingers, also where that leaves little to the others.
  const size = Math.max((width - 4) / scores.length, Math.min((width - 4) / (TILE + 4), 35));
  const narrow = (width - 4 - TILE * size) / Math.max(scores.length - TILE, 1);
  const at = (j) => 2 + narrow * j + (size - narrow) * Math.min(Math.max(j - TILE * tile, 0), TILE);
  const [strip, shrunk] = [{ y: SUM, height: 28 }, factor < 1 && top > before.top];
  // What the whole row will come to, counted as the bars are now: it shrinks with them.
  const total = scores.reduce((sum, score) => sum + Math.exp(score - top), 0);
  const mark = 2 + wide(total);
  const places = scores.map((_, j) => j).filter((j) => j % TILE === 0);
  const round = Math.min(size / 2 - 3, 14);
  const unit = (BOTTOM - FLOOR - 2 * round - 8) / HIGH;
  const down = (score) => BOTTOM - round - 4 - unit * Math.min(Math.max(score, 0), HIGH);
  let end = 2 + wide(step > 1 ? before.sum * Math.exp(before.top - top) : 0);
  return [
    ["ceiling", "path", { class: "ceiling", d: `M0 ${CEILING}H${width}` }],
    [
      "one",
      "text",
      {
        class: shrunk && "shrinks",
        x: 0,
        y: CEILING - 12,
        text: shrunk
          ? `old bars × ${shortly(factor)}`
          : step
            ? `the largest so far, ${written(now.top)}, counts 1`
            : "",
      },
    ],
    [
      "away",
      "path",
      { class: "away", d: places.map((j) => `M${at(j) + 2} ${FLOOR}V${BOTTOM}H${at(j + TILE) - 2}V${FLOOR}`).join("") },
    ],
    ...known.map((score, j) => {
      const high = Math.min(Math.exp(score - top) * (j < first || come), 1.15) * (FLOOR - CEILING);
      const part = { x: at(j) + 1, width: at(j + 1) - at(j) - 2, y: FLOOR - high, height: high };
      return [`bar${j}`, "rect", { ...part, class: j < first ? "gone" : "power" }];
    }),
    ["sum", "rect", { ...strip, class: "sum", "data-value": now.sum.toFixed(9), x: 2, width: end - 2 }],
    ...known.slice(first).map((score, j) => {
      const from = end;
      end = Math.min(end + wide(Math.exp(score - top) * added), width - 2);
      return [`part${j}`, "rect", { ...strip, class: "power", x: from, width: end - from }];
    }),
    [
      "tile",
      "rect",
      { class: "tile", x: at(TILE * tile), width: TILE * size, y: FLOOR, height: BOTTOM - FLOOR, rx: 6 },
    ],
    [
      "kept",
      "text",
      {
        class: shrunk ? "maths shrinks" : "maths",
        x: 0,
        y: SUM - 12,
        text: shrunk ? `old sum × e^{${written(before.top)} − ${written(now.top)}} = ${shortly(factor)}` : "sum so far",
      },
    ],
    [
      "tracks",
      "path",
      {
        class: "track",
        d: known
          .slice(first)
          .map((_, j) => `M${at(first + j + 0.5)} ${FLOOR + 8}V${BOTTOM - 8}`)
          .join(""),
      },
    ],
    ...known.slice(first).flatMap((score, j) => {
      const [x, y, whole] = [at(first + j + 0.5), down(score), real[first + j]];
      return [
        [
          `knob${j}`,
          "circle",
          {
            class: "knob pull",
            cx: x,
            cy: y,
            r: round,
            stride: [0, unit],
            pull: (_, to) => pull(first + j, (BOTTOM - round - 4 - to) / unit),
            "aria-label": `score ${first + j + 1}`,
            "aria-valuenow": whole,
            "aria-valuemin": 0,
            "aria-valuemax": HIGH,
          },
        ],
        [`score${j}`, "text", { class: "score", x, y: y + 5, "text-anchor": "middle", text: written(whole) }],
      ];
    }),
    [
      "held",
      "text",
      {
        x: width,
        y: CEILING - 12,
        "text-anchor": "end",
        text: `held: ${step ? `${TILE} + 2` : 0} of ${scores.length}`,
      },
    ],
    [
      "mark",
      "path",
      { class: "mark", d: total > 1.001 * most ? `M${mark - 8} ${SUM}l8 14l-8 14` : `M${mark} ${SUM - 5}v38` },
    ],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { step: get("step"), scores: get("scores") };
  const count = initial.scores.length / TILE;
  const card = openCard(el, {
    label: "The moving tile",
    question: "Can a sum come out right when its numbers are forgotten?",
    invite: "Drag a score in the tile up or down, then move the tile on: does the sum still end on its mark?",
    onReset: () => set(initial),
    css: CSS,
  });
  const pull = (place, score) => {
    // Home and End come as far beyond the ends: the lowest score, and the highest.
    const whole = Math.min(Math.max(Math.round(Math.abs(score) > 900 ? -score : score), 0), HIGH);
    if (whole !== get("scores")[place]) set({ scores: get("scores").with(place, whole) });
  };
  const picture = stage({
    label: "A row of scores, their powers, and the sum so far",
    height: SUM + 33,
    draw: (numbers, width) => {
      const [step, real] = [get("step"), get("scores")];
      return drawRow(numbers, width, { step, last: lastTile(real, step), real, pull });
    },
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
  card.stage.append(picture.node);
  card.controls.append(steps.node);
  card.caption.classList.add("maths");
  writeText(
    card.caption,
    "Bar: e^{score − largest so far}. Dashed: forgotten, drawn only for you. Thick mark: the whole row’s sum, in the bars’ unit (❯: beyond the edge).",
  );
  let drawn = -1; // the step that was drawn last
  let later = 0;
  const draw = () => {
    const [step, scores] = [get("step"), get("scores")];
    const { before, now, factor } = lastTile(scores, step);
    const most = Math.max(ROOM, ...scores.map((_, j) => running(scores, Math.floor(j / TILE) + 1).sum));
    const tile = Math.max(step - 1, 0);
    // First the new bars grow, perhaps beyond 1; then all shrink by one factor; then the new ones join the sum.
    const acts = [
      { top: step > 1 ? before.top : now.top, added: 0 },
      ...(factor < 1 ? [{ top: now.top, added: 0 }] : []),
      { top: now.top, added: 1 },
    ].map((act) => ({ ...act, tile, scores, most, come: 1 }));
    const show = () => {
      picture.show(acts.shift());
      later = setTimeout(acts.length ? show : tell, acts.length ? 700 : 300);
    };
    const tell = () => card.find(findingOf({ scores, step }));
    steps.set(step);
    clearTimeout(later);
    // A score that is dragged changes all at once; a tile that comes is told in acts.
    const comes = step !== drawn;
    drawn = step;
    if (!comes || reducedMotion()) {
      picture.show(acts.pop());
      tell();
    } else {
      card.find("");
      picture.show({ ...acts[0], come: 0 }, 0);
      show();
    }
  };
  const stops = [
    onTraits(model, ["step", "scores"], draw),
    moveOnce(card, model, { scores: initial.scores.with(Math.max(initial.step, 1) * TILE - 1, HIGH - 1) }),
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
        : `The sum begins: four bars, end to end, are ${formatNumber(now.sum, 2)}.`;
  return step * TILE === scores.length
    ? `${told} It ends on its mark, though no more than ${TILE + 2} numbers were ever held.`
    : told;
}

export default { render };
