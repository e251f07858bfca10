// The moving tile: only one tile of the scores exists at a time, and each row's maximum and sum are
// corrected as it passes.
import { slider } from "./controls.js";
import { css, formatNumber, moveOnce, onTraits, openCard, setTraits } from "./core.js";
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
    fill: color-mix(in srgb, currentColor 8%, transparent);
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

function drawSweep({ column, line, sums }, width, { scores, step, rows }) {
  const n = scores.length;
  const size = Math.min(24, (width - 130) / n);
  const left = 0;
  const top = 30;
  const [from, to] = [n * size + 46, width - 8];
  const bar = (sum) => (Math.min(sum, 6) / 6) * (to - from - 34);
  const [row, tile] = [Math.floor((step - 1) / (n / TILE)), (step - 1) % (n / TILE)];
  const inTile = (i, j) => step > 0 && Math.floor(i / TILE) === row && Math.floor(j / TILE) === tile;
  return [
    ["scores", "text", { x: left, y: 14, text: "scores" }],
    ["max", "text", { x: from - 4, y: 14, "text-anchor": "end", text: "max" }],
    ["sum", "text", { x: from + 2, y: 14, text: "sum so far" }],
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
    ...rows.flatMap(({ seen, top: most, sum }, i) => [
      [
        `top${i}`,
        "text",
        {
          x: from - 4,
          y: top + (i + 0.5) * size + 4,
          "text-anchor": "end",
          text: seen ? formatNumber(most, 1) : "",
        },
      ],
      seen > 0 && [
        `sum${i}`,
        "rect",
        {
          class: "sum",
          "data-value": sum.toFixed(9),
          x: from,
          width: bar(sums[i]),
          y: top + i * size + 0.22 * size,
          height: 0.56 * size,
        },
      ],
      seen > 0 && [
        `number${i}`,
        "text",
        { x: from + bar(sums[i]) + 5, y: top + (i + 0.5) * size + 4, text: formatNumber(sum, 2) },
      ],
    ]),
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { step: get("step") };
  const scores = get("scores");
  const [n, across] = [scores.length, scores.length / TILE];
  const card = openCard(el, {
    label: "The moving tile",
    question: "How can a softmax be taken without the whole row?",
    invite: "Move the tile. What happens to a sum when a larger score comes?",
    onReset: () => set(initial),
    css: CSS,
  });
  const read = (step = get("step")) => ({ scores, step, rows: running(scores, step) });
  const picture = stage({
    label: "A table of scores, the tile that is computed now, and each row’s maximum and sum so far",
    height: (width) => 40 + n * Math.min(24, (width - 130) / n),
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
    `Purple: e to the score minus the row’s maximum so far, of the ${TILE * TILE} scores that exist now. Grey: ` +
    `thrown away. Of ${n * n} scores never more than ${TILE * TILE} are held, and two numbers for each row.`;
  const draw = () => {
    const { step, rows } = read();
    const place = Math.max(step - 1, 0);
    steps.set(step);
    picture.show({
      column: place % across,
      line: Math.floor(place / across),
      sums: rows.map(({ sum }) => sum),
    });
    card.find(findingOf(rows, read(place).rows, step));
  };
  const stops = [
    onTraits(model, ["step"], draw),
    moveOnce(card.root, 6, (share) => set({ step: Math.max(1, Math.round(share * across * across)) })),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** The row whose sum was corrected most by the last tile. */
function findingOf(rows, before, step) {
  if (!step) return "Nothing is computed yet.";
  const factors = rows.map(({ top }, i) => (before[i].seen ? Math.exp(before[i].top - top) : 1));
  const i = factors.indexOf(Math.min(...factors));
  if (factors[i] === 1)
    return step % (rows.length / TILE) === 1
      ? "New rows: their maxima and sums begin with this tile."
      : "No row met a larger score: the new powers are added, and nothing has to be corrected.";
  return (
    `In row ${i + 1} the maximum rose from ${formatNumber(before[i].top, 2)} to ${formatNumber(rows[i].top, 2)}: the sum ` +
    `so far, ${formatNumber(before[i].sum, 2)}, was multiplied by e to their difference, ${formatNumber(factors[i], 2)}, ` +
    "before the new powers were added. At the end it is the sum over the whole row."
  );
}

export default { render };
