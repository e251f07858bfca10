// Warm-up and peak of the learning rate, and below it how a network learned with them.
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
    stroke: currentColor;
    stroke-width: 4;
  }
  .loss {
    stroke: var(--tt-loss);
    stroke-width: 2;
  }
  .without {
    stroke: currentColor;
    stroke-width: 1.5;
    stroke-dasharray: 6 5;
  }
  .peak {
    fill: currentColor;
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .place {
    fill: color-mix(in srgb, currentColor var(--tried, 0%), var(--tt-page));
    stroke: currentColor;
  }
  .under {
    fill: currentColor;
    fill-opacity: 0.07;
  }
  .tt-picture .name {
    font-size: 0.9375rem;
    font-weight: 600;
  }
  .tt-slider output {
    min-width: 4.5em;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const TOP = 34;
/** Where the rate has its floor, the loss its top and its floor, and the picture its end; a phone has less room. */
const heightsAt = (width) => (width < 520 ? [148, 186, 312, 336] : [192, 234, 400, 424]);
const [LEAST, MOST] = [3, 7]; // of the axis of the loss, in nats

const line = (points) => `M${points.map(([across, down]) => `${across.toFixed(1)} ${down.toFixed(1)}`).join("L")}`;

function drawCurves({ warmup, peak, losses, without }, width, { steps, guessing, peaks, warmups, triedAt, pull }) {
  const [left, right] = [54, width - 14];
  const [floor, high, low] = heightsAt(width);
  const highest = Math.max(...peaks);
  const x = (step) => left + (step / steps) * (right - left);
  const y = (rate) => floor - (rate / highest) * (floor - TOP);
  const down = (loss) => low - ((Math.min(loss, MOST) - LEAST) / (MOST - LEAST)) * (low - high);
  const fall = (series) => line(series.map((loss, i) => [x(((i + 0.5) * steps) / series.length), down(loss)]));
  const rises = (warm) =>
    line([
      [x(0), warm > 1 ? floor : y(peak)],
      [x(warm > 1 ? warm : 0), y(peak)],
      [x(steps), y(peak)],
    ]);
  const across = (key, at, text) => [
    [`line${key}`, "path", { class: "axis", d: `M${left} ${at}H${right}` }],
    [`tick${key}`, "text", { x: left - 14, y: at + 4, "text-anchor": "end", text }],
  ];
  return [
    ["name", "text", { class: "name", x: 4, y: 14, text: "learning rate" }],
    ["lossname", "text", { class: "name", x: 4, y: high - 16, text: "loss, nats a word" }],
    ...[0, ...peaks].flatMap((rate, i) => across(`rate${i}`, y(rate), rate)),
    ...[3, 4, 5, 6].flatMap((loss) => across(`loss${loss}`, down(loss), loss)),
    ...ticks([0, steps], 3).map((step) => [
      `step${step}`,
      "text",
      { x: x(step), y: low + 19, "text-anchor": step === steps ? "end" : "middle", text: step ? step : "step 0" },
    ]),
    ["guess", "path", { class: "axis", "stroke-dasharray": "2 3", d: `M${left} ${down(guessing)}H${right}` }],
    ["guessname", "text", { x: right, y: down(guessing) - 7, "text-anchor": "end", text: "word frequencies alone" }],
    ...without.map((series, i) => [`without${i}`, "path", { class: "without", d: fall(series) }]),
    ...losses.map((series, i) => [`loss-${i}`, "path", { class: "loss", d: fall(series) }]),
    ["under", "path", { class: "under", d: `${rises(warmup)}V${floor}H${x(0)}Z` }],
    ["without", "path", { class: "without", d: rises(1) }],
    ["rate", "path", { class: "rate", d: rises(warmup) }],
    ...peaks.flatMap((one) =>
      warmups.map((warm) => [
        `place${one} ${warm}`,
        "circle",
        { class: "place", cx: x(warm > 1 ? warm : 0), cy: y(one), r: 7, ...triedAt(one, warm) },
      ]),
    ),
    [
      "peak",
      "circle",
      {
        class: "peak pull",
        cx: x(warmup > 1 ? warmup : 0),
        cy: y(peak),
        r: 11,
        "data-value": peak.toFixed(12),
        "aria-label": "warm-up and peak",
        "aria-valuenow": Math.round(warmup),
        "aria-valuetext": `warm-up ${Math.round(warmup)} steps, peak ${Number(peak.toPrecision(2))}`,
        stride: [(right - left) / 6, 0.37 * (floor - TOP)],
        pull: (px, py) => pull(((px - left) / (right - left)) * steps, ((floor - py) / (floor - TOP)) * highest),
      },
    ],
  ];
}

/** The value of a list that is nearest. */
const nearest = (list, to) => list.reduce((best, one) => (Math.abs(one - to) < Math.abs(best - to) ? one : best));

function render({ model, el }) {
  const get = (name) => model.get(name);
  const initial = { warmup: get("warmup"), peak: get("peak"), tried: get("tried") };
  const [runs, steps] = [get("runs"), get("steps")];
  const values = (name) => [...new Set(runs.map((run) => run[name]))].sort((a, b) => a - b);
  const [peaks, warmups] = [values("peak"), values("warmup")];
  const run = (peak, warmup) => runs.find((one) => one.peak === peak && one.warmup === warmup);
  const shownRun = () => run(get("peak"), get("warmup"));
  const isTried = (one) => one === shownRun() || get("tried").includes(runs.indexOf(one));
  const go = (values) =>
    setTraits(model, { ...values, tried: [...new Set([...get("tried"), runs.indexOf(shownRun())])] });
  const given = {
    ...{ steps, peaks, warmups, guessing: get("guessing") },
    // What the reader has tried stays: a ring is as full as many of its seeds learned.
    triedAt: (peak, warmup) => {
      const one = run(peak, warmup);
      const share = learned(one, get("guessing")) / one.losses.length;
      return isTried(one) ? { style: `--tried: ${100 * share}%`, "data-value": share } : { "stroke-dasharray": "2 3" };
    },
    pull: (step, rate) => go({ warmup: nearest(warmups, step), peak: nearest(peaks, rate) }),
  };
  const card = openCard(el, {
    label: "Warm-up and peak",
    question: "Is it the warm-up, or the height of the rate?",
    invite: "Drag the ball: sideways for a longer warm-up, up and down for another peak.",
    onReset: () => setTraits(model, initial),
    css: CSS,
  });
  const picture = stage({
    label: "Learning rate by step, and the losses of trainings with it; dashed: the same peak without a warm-up",
    height: (width) => heightsAt(width)[3],
    draw: (numbers, width) => drawCurves(numbers, width, given),
  });
  const choice = (label, name, list, format) =>
    slider({
      label,
      min: 0,
      max: list.length - 1,
      step: 1,
      format: (i) => format(list[i]),
      onInput: (i) => go({ [name]: list[i] }),
    });
  const warmup = choice("Warm-up", "warmup", warmups, (value) => (value > 1 ? `${value} steps` : "none"));
  const peak = choice("Peak", "peak", peaks, (value) => `${value}`);
  card.stage.append(picture.node);
  card.controls.append(warmup.node, peak.node);
  card.caption.textContent = `${get("note")} Dark circle: all three a nat below.`;
  const draw = () => {
    const shown = shownRun();
    const without = run(get("peak"), warmups[0]);
    warmup.set(warmups.indexOf(shown.warmup));
    peak.set(peaks.indexOf(shown.peak));
    picture.show({ ...shown, without: without.losses });
    // Once a warm-up was tried at every peak, the question has its answer.
    const isAnswered = peaks.every((one) => runs.some((run) => isTried(run) && run.peak === one && run.warmup > 1));
    card.find(
      isAnswered
        ? `${findingOf(shown, without, given.guessing)} ${answerOf(peaks, runs, given.guessing)}`
        : findingOf(shown, without, given.guessing) + verdictOf(shown, runs, given.guessing),
    );
  };
  const stops = [onTraits(model, ["warmup", "peak", "tried"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** Lowest and highest loss at the end, as text. */
const ends = ({ losses }) => {
  const last = losses.map((series) => series.at(-1)).sort((a, b) => a - b);
  return `${last[0].toFixed(2)} to ${last.at(-1).toFixed(2)}`;
};

/** How many of a run's seeds end a nat below the loss of word frequencies. */
const learned = ({ losses }, guessing) => losses.filter((series) => series.at(-1) < guessing - 1).length;

/** Whether all seeds of a run learned, and the runs of one peak, first the one without a warm-up. */
const allOf = (guessing) => (run) => learned(run, guessing) === run.losses.length;
const atPeak = (runs, peak) => runs.filter((run) => run.peak === peak).sort((a, b) => a.warmup - b.warmup);

/** Whether the peak that is shown needs a warm-up for all seeds to learn. */
function verdictOf(run, runs, guessing) {
  const [all, [bare, ...warm]] = [allOf(guessing), atPeak(runs, run.peak)];
  if (run === bare) return "";
  if (all(bare)) return " This peak needs no warm-up.";
  if (all(run)) return " This peak needs a warm-up.";
  return warm.some(all) ? " Another one does better." : " None of these warm-ups lets all seeds learn: this peak is too high.";
}

/** Whether it is the warm-up, or the height: what the trainings at each peak say. */
function answerOf(peaks, runs, guessing) {
  const all = allOf(guessing);
  const told = peaks.map((peak) => {
    const [bare, ...warm] = atPeak(runs, peak);
    return `${peak} ${all(bare) ? "needs no warm-up" : warm.some(all) ? "needs one" : "is too high for any of these"}`;
  });
  return `In all: ${told.join(", ")}.`;
}

/** How it ends, beside the same peak without a warm-up. */
function findingOf(run, without, guessing) {
  const said = `It ends at ${ends(run)} nats, with ${learned(run, guessing)} of ${run.losses.length} seeds a nat below word frequencies`;
  return run === without ? `${said}.` : `${said}; without a warm-up (dashed) at ${ends(without)}.`;
}

export default { render };
