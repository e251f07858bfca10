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
    fill: color-mix(in srgb, currentColor 22%, transparent);
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
    stroke: var(--tt-loss-line);
    stroke-width: 4;
  }
  .tt-picture .score {
    font-size: 1rem;
    font-weight: 600;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const TILE = 4;
const ROW = 96;

/** A row's largest score and its sum of powers after `seen` scores. */
function running(row, seen) {
  const known = row.slice(0, seen);
  const top = Math.max(...known);
  return { seen, top, sum: known.reduce((sum, one) => sum + Math.exp(one - top), 0) };
}

/** What the tile that came last did to its row: what was there, by which factor it shrank, and what came. */
function lastTile({ scores, step }) {
  const across = scores[0].length / TILE;
  const [line, column] = [Math.floor(Math.max(step - 1, 0) / across), Math.max(step - 1, 0) % across];
  const [before, now] = [column, column + (step > 0)].map((tiles) => running(scores[line], tiles * TILE));
  return { line, column, across, before, now, factor: before.seen ? Math.exp(before.top - now.top) : 1 };
}

/** Each row: its scores, of which only those of the tile are there, and below them the sum so far. */
function drawRows({ column, line, kept, added }, width, { scores, step, most }) {
  const size = (width - 4) / scores[0].length;
  const last = lastTile({ scores, step });
  const bar = (sum) => (sum / most) * (width - 6);
  return [
    ...scores.flatMap((row, i) => {
      const top = 2 + i * ROW;
      const isOn = step > 0 && i === last.line;
      const seen = isOn ? last.now.seen : i < last.line ? row.length : 0;
      const { top: largest, sum } = running(row, seen);
      const isShrunk = isOn && last.factor < 1;
      let end = 1 + bar(isOn ? kept : sum);
      const y = { y: top + 60, height: 20 };
      return [
        ...row.flatMap((score, j) => {
          const now = isOn && j < seen && j >= seen - TILE;
          const power = Math.exp(score - largest);
          const from = end;
          if (now) end += bar(power * added);
          return [
            [
              `cell${i}-${j}`,
              "rect",
              {
                class: now ? "cell power" : j < seen ? "cell gone" : "cell",
                "fill-opacity": now ? power : null,
                x: 2 + j * size,
                y: top,
                width: size,
                height: 34,
              },
            ],
            now && [
              `score${i}-${j}`,
              "text",
              { class: "score", x: 2 + (j + 0.5) * size, y: top + 23, "text-anchor": "middle", text: score },
            ],
            now && [`part${i}-${j}`, "rect", { ...y, class: "power", x: from, width: end - from }],
          ];
        }),
        seen > 0 && [
          `sum${i}`,
          "rect",
          { ...y, class: "sum", "data-value": sum.toFixed(9), x: 1, width: bar(isOn ? kept : sum) },
        ],
        seen > 0 && [
          `mark${i}`,
          "path",
          { class: "mark", d: `M${1 + bar(running(row, row.length).sum)} ${top + 56}v28` },
        ],
        seen > 0 && [
          `factor${i}`,
          "text",
          {
            class: isShrunk ? "score" : null,
            x: 2,
            y: top + 52,
            text: isShrunk ? `old sum × ${formatNumber(last.factor, 2)}` : "sum so far",
          },
        ],
        seen > 0 && [
          `top${i}`,
          "text",
          {
            x: width,
            y: top + 52,
            "text-anchor": "end",
            "font-weight": isShrunk ? 700 : 400,
            text: `largest: ${largest}`,
          },
        ],
      ];
    }),
    step > 0 && [
      "tile",
      "rect",
      { class: "tile", x: 2 + column * TILE * size, y: 2 + line * ROW, width: TILE * size, height: 34, rx: 4 },
    ],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { step: get("step") };
  const scores = get("scores");
  const count = (scores.length * scores[0].length) / TILE;
  const card = openCard(el, {
    label: "The moving tile",
    question: "Can a sum come out right when its numbers are forgotten?",
    invite: "Move the tile to the right: what happens to the old sum when a larger number comes?",
    onReset: () => set(initial),
    css: CSS,
  });
  const most = Math.max(
    ...scores.flatMap((row) => row.map((_, j) => running(row, TILE * Math.ceil((j + 1) / TILE)).sum)),
  );
  const picture = stage({
    label: "Rows of scores, the tile that is computed now, and each row’s largest score and sum so far",
    height: ROW * scores.length - 8,
    draw: (numbers, width) => drawRows(numbers, width, { scores, step: get("step"), most }),
  });
  const steps = slider({
    label: "Tile",
    min: 0,
    max: count,
    step: 1,
    format: (step) => `${step} of ${count}`,
    onInput: (step) => set({ step }),
  });
  card.stage.append(picture.node);
  card.controls.append(steps.node);
  card.caption.textContent =
    "Grey: forgotten. A score counts e to the power of (score − largest so far): the largest counts 1, so that no number " +
    "grows too large. Mark: the sum of the whole row.";
  let later = 0;
  const draw = () => {
    const step = get("step");
    const { line, column, before, now, factor } = lastTile({ scores, step });
    const kept = factor * before.sum;
    steps.set(step);
    clearTimeout(later);
    // First the old sum shrinks, then what is new comes to it.
    picture.show({ column, line, kept: before.sum, added: 0 }, 0);
    picture.show({ column, line, kept, added: 0 });
    if (reducedMotion()) picture.show({ column, line, kept, added: 1 });
    else later = setTimeout(() => picture.show({ column, line, kept, added: 1 }), factor < 1 ? 900 : 450);
    card.find(findingOf({ scores, step }));
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
  const { column, across, before, now, factor } = lastTile({ scores, step });
  if (!step) return "Nothing is computed yet.";
  const told =
    factor < 1
      ? `${now.top} is larger than ${before.top}: the old sum shrinks by one factor, because each of its numbers would.`
      : column
        ? "No larger number came: the new ones are only added."
        : "A new row: its sum begins with this tile.";
  return column === across - 1 ? `${told} The bar ends on its mark, though the row is forgotten.` : told;
}

export default { render };
