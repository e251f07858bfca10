// The warm-up: the paper's learning rate by step, and below it how a network learned with it.
import { slider } from "./controls.js";
import { css, onTraits, openCard, setTraits } from "./core.js";
import { stage, ticks } from "./drawing.js";

const CSS = css`
  .axis {
    stroke: currentColor;
    stroke-opacity: 0.3;
  }
  .rate,
  .loss,
  .without {
    fill: none;
    stroke: var(--tt-query-line);
    stroke-width: 5;
    stroke-opacity: 0.65;
  }
  .loss {
    stroke: var(--tt-loss);
    stroke-width: 2;
    stroke-opacity: 1;
  }
  .without {
    stroke: currentColor;
    stroke-width: 2;
    stroke-opacity: 1;
    stroke-dasharray: 6 5;
  }
  .peak {
    fill: var(--tt-query-line);
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .cut {
    fill: var(--tt-loss);
    opacity: 0.25;
  }
  .tt-picture .name {
    font-size: 0.9375rem;
    font-weight: 600;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const [TOP, FLOOR] = [36, 166]; // of the rate
const [HIGH, LOW] = [212, 340]; // of the loss

/** The paper's rate, equation 3 of Vaswani et al. (2017). */
const rate = (step, width, warmup) => width ** -0.5 * Math.min(step ** -0.5, step * warmup ** -1.5);

function drawCurves({ warmup, losses }, width, { d_model, steps, guessing, runs, pull }) {
  const [left, right] = [4, width - 14];
  const most = 1.1 * rate(runs[1].warmup, d_model, runs[1].warmup);
  const x = (step) => left + (step / steps) * (right - left);
  const y = (step, warm) => FLOOR - Math.min(rate(step, d_model, warm) / most, 1) * (FLOOR - TOP);
  const line = (points) => `M${points.map(([across, down]) => `${across.toFixed(1)} ${down.toFixed(1)}`).join("L")}`;
  const curve = (warm, from = 1, to = steps) =>
    line(
      [...Array.from({ length: 201 }, (_, i) => from + ((to - from) * i) / 200), Math.max(warm, from)]
        .sort((a, b) => a - b)
        .map((step) => [x(step), y(step, warm)]),
    );
  const all = runs.flatMap((run) => run.losses.flat());
  const [least, largest] = [Math.min(...all), Math.max(...all)];
  const down = (loss) => LOW - ((loss - least) / (largest - least)) * (LOW - HIGH);
  const fall = (series) => line(series.map((loss, i) => [x(((i + 0.5) * steps) / series.length), down(loss)]));
  const without = runs[0].warmup;
  const seen = 1 / (d_model * most ** 2); // before that it is above the picture
  return [
    ["cut", "path", { class: "cut", d: `${curve(without, 1, Math.max(warmup, 1.1))}L${x(1)} ${FLOOR}Z` }],
    ...[FLOOR, LOW].map((at, i) => [`axis${i}`, "path", { class: "axis", d: `M${left} ${at}H${right}` }]),
    ...ticks([0, steps], 3).map((step) => [
      `step${step}`,
      "text",
      { x: x(step), y: LOW + 18, "text-anchor": step ? "end" : "start", text: step ? step : "step 0" },
    ]),
    ["name", "text", { class: "name", x: left, y: 14, text: "how far a step goes (learning rate)" }],
    ["lossname", "text", { class: "name", x: left, y: HIGH - 14, text: "how wrong it is (loss)" }],
    ["guess", "path", { class: "axis", d: `M${left} ${down(guessing)}H${right}` }],
    [
      "guessname",
      "text",
      { x: right, y: down(guessing) - 10, "text-anchor": "end", text: "knows only which words are common" },
    ],
    ["withoutloss", "path", { class: "without", d: fall(runs[0].losses[0]) }],
    ...losses.map((series, i) => [`loss${i}`, "path", { class: "loss", d: fall(series) }]),
    ["withoutname", "text", { x: x(0.2 * steps), y: y(0.2 * steps, without) - 10, text: "without a warm-up" }],
    ["curve", "path", { class: "rate", d: curve(warmup, warmup > without ? 1 : seen) }],
    ["without", "path", { class: "without", d: curve(without, seen) }],
    [
      "peak",
      "circle",
      {
        class: "peak pull",
        cx: x(Math.max(warmup, seen)),
        cy: y(warmup, warmup),
        r: 11,
        "data-value": rate(warmup, d_model, warmup).toFixed(12),
        "aria-label": "peak",
        "aria-valuenow": Math.round(warmup),
        stride: 30,
        pull: (px) => pull(((px - left) / (right - left)) * steps),
      },
    ],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const initial = { warmup: get("warmup") };
  const [runs, steps] = [get("runs"), get("steps")];
  const nearest = (step) =>
    runs.reduce((best, one) => (Math.abs(one.warmup - step) < Math.abs(best.warmup - step) ? one : best));
  const given = {
    ...{ runs, steps, d_model: get("d_model"), guessing: get("guessing") },
    pull: (step) => setTraits(model, { warmup: nearest(step).warmup }),
  };
  const card = openCard(el, {
    label: "The warm-up",
    question: "Why does a training start slowly?",
    invite: "This training learns nothing. Drag the ball along the dashed line until it does.",
    onReset: () => setTraits(model, initial),
    css: CSS,
  });
  const picture = stage({
    label: "Learning rate by step, with the warm-up and without it, and the losses of trainings with it",
    height: LOW + 22,
    draw: (numbers, width) => drawCurves(numbers, width, given),
  });
  const warmup = slider({
    label: "Warm-up",
    min: 0,
    max: runs.length - 1,
    step: 1,
    format: (i) => (runs[i].warmup > 1 ? `${runs[i].warmup} steps` : "none"),
    onInput: (i) => setTraits(model, { warmup: runs[i].warmup }),
  });
  card.stage.append(picture.node);
  card.controls.append(warmup.node);
  card.caption.textContent = get("note");
  const draw = () => {
    const run = nearest(get("warmup"));
    warmup.set(runs.indexOf(run));
    picture.show({ warmup: run.warmup, losses: run.losses });
    card.find(findingOf(run, given));
  };
  const stops = [onTraits(model, ["warmup"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** The first point at which a run's trainings know more than how common words are, or Infinity. */
const learns = ({ losses }, guessing) =>
  Math.max(...losses.map((series) => series.findIndex((loss) => loss < guessing - 1) + 1 || Infinity));

/** Whether it learns, and what that says about the beginning. */
function findingOf(run, { runs, guessing }) {
  const [when, soonest] = [learns(run, guessing), Math.min(...runs.map((one) => learns(one, guessing)))];
  const isLate =
    when > 1.5 * soonest && runs.some((one) => one.warmup < run.warmup && learns(one, guessing) === soonest);
  if (when === Infinity)
    return `It ends knowing only which words are common: ${
      run.losses.some((series) => Math.min(...series) < guessing - 0.3)
        ? "a training that learned for a while lost it again"
        : "its first steps went too far"
    }.`;
  return (
    `It learns${isLate ? ", but later: for long its steps are short" : ""}. From step ${run.warmup} on both have the ` +
    "same rate: the steep beginning, cut off here, spoiled the dashed one."
  );
}

export default { render };
