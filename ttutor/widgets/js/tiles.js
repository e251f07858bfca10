// The moving tile: only one tile of the scores exists at a time, and each row's maximum and sum are
// corrected as it passes.
import { slider } from "./controls.js";
import { css, formatNumber, moveOnce, onTraits, openCard, reducedMotion, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .cell {
    fill: transparent;
    stroke: color-mix(in srgb, currentColor 25%, transparent);
  }
  .power {
    fill: var(--tt-weights);
    stroke: var(--tt-weights-line);
  }
  .gone {
    fill: color-mix(in srgb, currentColor 28%, transparent);
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
  .axis {
    stroke: currentColor;
    stroke-opacity: 0.3;
  }
  .mark {
    stroke: var(--tt-loss-line);
    stroke-width: 3;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 4.4em;
    }
  }
`;
const TILE = 4;

/** Each row's largest score and its sum of powers after this many tiles. */
function running(scores, step) {
  const across = scores.length / TILE;
  return scores.map((row, i) => {
    const seen = Math.min(Math.max(step - Math.floor(i / TILE) * across, 0), across) * TILE;
    const top = Math.max(...row.slice(0, seen));
    return {
      seen,
      top,
      sum: row.slice(0, seen).reduce((sum, one) => sum + Math.exp(one - top), 0),
    };
  });
}

/** How far each row's old sum shrinks when this tile comes: 1 where no score is larger. */
const shrinks = (rows, before) => rows.map(({ top }, i) => (before[i].seen ? Math.exp(before[i].top - top) : 1));

function drawSweep({ column, line, kept, added }, width, { scores, step, rows, before, whole, most }) {
  const n = scores.length;
  const size = cellSize(width, n);
  const left = 0;
  const top = 30;
  const [from, to] = [n * size + 52, width - 6];
  const bar = (sum) => (sum / most) * (to - from);
  const factors = shrinks(rows, before);
  const [row, tile] = [Math.floor((step - 1) / (n / TILE)), (step - 1) % (n / TILE)];
  const inTile = (i, j) => step > 0 && Math.floor(i / TILE) === row && Math.floor(j / TILE) === tile;
  return [
    ["scores", "text", { x: left, y: 14, text: "scores" }],
    ["max", "text", { x: from - 4, y: 14, "text-anchor": "end", text: "largest" }],
    ["sum", "text", { x: from + 4, y: 14, text: "sum so far" }],
    ...scores.flatMap((values, i) =>
      values.map((score, j) => {
        const now = inTile(i, j);
        return [
          `cell${i}-${j}`,
          "rect",
          {
            class: now ? "power" : j < rows[i].seen ? "cell gone" : "cell",
            "fill-opacity": now ? Math.exp(score - rows[i].top) : null,
            x: left + j * size + 0.5,
            y: top + i * size + 0.5,
            width: size - 1,
            height: size - 1,
          },
        ];
      }),
    ),
    step > 0 && [
      "tile",
      "rect",
      {
        class: "tile",
        x: left + column * TILE * size,
        y: top + line * TILE * size,
        width: TILE * size,
        height: TILE * size,
        rx: 3,
      },
    ],
    ["axis", "path", { class: "axis", d: `M${from} ${top}v${n * size}` }],
    ...rows.flatMap(({ seen, top: largest, sum }, i) => {
      const [y, tall] = [top + (i + 0.22) * size, 0.56 * size];
      const words = { y: top + (i + 0.5) * size + 4 };
      return [
        seen > 0 && [
          `top${i}`,
          "text",
          {
            ...words,
            x: from - 4,
            "text-anchor": "end",
            "font-weight": factors[i] < 1 ? 700 : 400,
            text: formatNumber(largest, 2),
          },
        ],
        seen > 0 && [
          `sum${i}`,
          "rect",
          { class: "sum", "data-value": sum.toFixed(9), x: from, width: bar(kept[i]), y, height: tall },
        ],
        seen > 0 && [
          `added${i}`,
          "rect",
          { class: "power", x: from + bar(kept[i]), width: bar(added[i]), y, height: tall },
        ],
        seen > 0 && [`mark${i}`, "path", { class: "mark", d: `M${from + bar(whole[i].sum)} ${y - 2}v${tall + 4}` }],
      ];
    }),
  ];
}

const cellSize = (width, n) => Math.min(26, (width - 130) / n);

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { step: get("step") };
  const scores = get("scores");
  const [n, across] = [scores.length, scores.length / TILE];
  const card = openCard(el, {
    label: "The moving tile",
    question: "Can a sum come out right when its numbers are forgotten?",
    invite: "Move the tile to the right, and watch the bars shrink and grow. Where do they end?",
    onReset: () => set(initial),
    css: CSS,
  });
  const all = Array.from({ length: across * across + 1 }, (_, step) => running(scores, step));
  const whole = all.at(-1);
  const most = Math.max(...all.flat().map(({ sum }) => sum));
  const read = (step = get("step")) => ({
    scores,
    step,
    rows: all[step],
    before: all[Math.max(step - 1, 0)],
    whole,
    most,
  });
  const picture = stage({
    label: "A table of scores, the tile that is computed now, and each row’s largest score and sum so far",
    height: (width) => 40 + n * cellSize(width, n),
    draw: (numbers, width) => drawSweep(numbers, width, read()),
  });
  const steps = slider({
    label: "Tile",
    min: 0,
    max: across * across,
    step: 1,
    format: (step) => `${step} of ${across * across}`,
    onInput: (step) => set({ step }),
  });
  card.stage.append(picture.node);
  card.controls.append(steps.node);
  card.caption.textContent =
    "Purple: a row’s numbers, each measured against its largest so far. Mark: the sum of the whole row. Grey: " +
    `used and forgotten; of ${n * n} scores never more than ${TILE * TILE} are held.`;
  let later = 0;
  const draw = () => {
    const state = read();
    const { step, rows, before } = state;
    const place = Math.max(step - 1, 0);
    const [column, line] = [place % across, Math.floor(place / across)];
    const kept = shrinks(rows, before).map((factor, i) => factor * before[i].sum);
    const added = rows.map(({ sum }, i) => sum - kept[i]);
    steps.set(step);
    clearTimeout(later);
    // First the old sums shrink, then what is new comes to them.
    picture.show({ column, line, kept: before.map(({ sum }) => sum), added: added.map(() => 0) }, 0);
    picture.show({ column, line, kept, added: added.map(() => 0) });
    if (reducedMotion()) picture.show({ column, line, kept, added });
    else later = setTimeout(() => picture.show({ column, line, kept, added }), 450);
    card.find(findingOf(state));
  };
  const stops = [
    onTraits(model, ["step"], draw),
    moveOnce(card, model, { step: Math.min(initial.step + 1, across * across) }),
    () => clearTimeout(later),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** What the last tile did to the sums: most of all where the largest score rose. */
function findingOf({ rows, before, step }) {
  const across = rows.length / TILE;
  if (!step) return "Nothing is computed yet.";
  if (step % across === 0)
    return "Each bar ends on its mark: a larger score shrinks the whole old sum by one factor, so its numbers are never needed again.";
  if (step % across === 1) return "New rows: their sums begin with this tile.";
  const factors = shrinks(rows, before);
  return factors.every((one) => one === 1)
    ? "No row met a larger score: the new numbers are only added."
    : "A row met a larger score (bold). Measured against it, the old sum shrinks as a whole; then the new numbers are added.";
}

export default { render };
