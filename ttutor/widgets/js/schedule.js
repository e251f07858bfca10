// The warm-up: the paper's learning rate by step, on axes that stay while the warm-up is dragged.
import { slider } from "./controls.js";
import { css, formatCount, onTraits, openCard, setTraits } from "./core.js";
import { stage, ticks } from "./drawing.js";

const CSS = css`
  .axis {
    stroke: currentColor;
    stroke-opacity: 0.3;
  }
  .rate {
    fill: none;
    stroke: var(--tt-loss);
    stroke-width: 3;
  }
  .without {
    fill: none;
    stroke: currentColor;
    stroke-width: 1.5;
    stroke-dasharray: 5 4;
  }
  .peak {
    fill: var(--tt-loss);
  }
`;
const WITHOUT = 1; // step of warm-up

/** The paper's rate, equation 3 of Vaswani et al. (2017). */
const rate = (step, width, warmup) => width ** -0.5 * Math.min(step ** -0.5, step * warmup ** -1.5);

/** A small number with its power of ten: 6.99·10⁻⁴. */
function short(value) {
  const [digits, power] = value.toExponential(2).split("e");
  const raised = (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)];
  return `${digits}·10${power.replace("+", "").replace(/[-\d]/g, raised)}`;
}

function drawCurves({ warmup }, width, height, { d_model, steps }) {
  const [left, right, top, floor] = [56, width - 12, 18, height - 40];
  const most = 1.15 * rate(1000, d_model, 1000);
  const x = (step) => left + (step / steps) * (right - left);
  const y = (value) => floor - (value / most) * (floor - top);
  const line = (warm) => {
    const places = Array.from({ length: 241 }, (_, i) => Math.max(1, (steps * i) / 240));
    const inside = [...places, Math.min(warm, steps)]
      .sort((a, b) => a - b)
      .map((step) => [step, rate(step, d_model, warm)])
      .filter(([, value]) => value <= most);
    return `M${inside.map(([step, value]) => `${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
  };
  const peak = rate(warmup, d_model, warmup);
  return [
    ...ticks([0, steps], width < 520 ? 3 : 5).flatMap((step) => [
      [`step${step}`, "text", { x: x(step), y: floor + 18, "text-anchor": "middle", text: formatCount(step) }],
    ]),
    ...ticks([0, most], 4).flatMap((value, i) => [
      [`line${i}`, "path", { class: "axis", d: `M${left} ${y(value)}H${right}` }],
      [
        `rate${i}`,
        "text",
        {
          x: left - 6,
          y: y(value) + 4,
          "text-anchor": "end",
          text: value ? short(value).replace(/\.?0+·/, "·") : "0",
        },
      ],
    ]),
    ["steps", "text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle", text: "step" }],
    ["name", "text", { x: left, y: 10, text: "learning rate" }],
    ["without", "path", { class: "without", d: line(WITHOUT) }],
    [
      "withoutname",
      "text",
      {
        x: right,
        y: y(rate(steps, d_model, 1)) - 60,
        "text-anchor": "end",
        text: "dashed: without warm-up",
      },
    ],
    ["curve", "path", { class: "rate", d: line(warmup) }],
    peak <= most &&
      warmup <= steps && [
        "peak",
        "circle",
        { class: "peak", cx: x(warmup), cy: y(peak), r: 6, "data-value": peak.toFixed(12) },
      ],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const initial = { warmup: get("warmup") };
  const sizes = { d_model: get("d_model"), steps: get("steps") };
  const card = openCard(el, {
    label: "The warm-up",
    question: "What does a longer warm-up do?",
    invite: "Drag the warm-up: where does the peak go?",
    onReset: () => setTraits(model, initial),
    css: CSS,
  });
  const picture = stage({
    label: "Learning rate by step, with the warm-up and without it",
    height: 280,
    draw: (numbers, width, height) => drawCurves(numbers, width, height, sizes),
  });
  const warmup = slider({
    label: "Warm-up",
    min: 100,
    max: 10000,
    step: 100,
    format: (steps) => `${formatCount(steps)} steps`,
    onInput: (value) => setTraits(model, { warmup: value }),
  });
  card.stage.append(picture.node);
  card.controls.append(warmup.node);
  card.caption.textContent = `The paper’s schedule for a width of ${sizes.d_model}: it rises in a line, then falls as one over the root of the step.`;
  const draw = () => {
    const steps = get("warmup");
    const peak = rate(steps, sizes.d_model, steps);
    warmup.set(steps);
    picture.show({ warmup: steps }, 0);
    card.find(
      steps > sizes.steps
        ? "This training ends before the warm-up does."
        : `The peak is ${short(peak)}, at step ${formatCount(steps)}: four times the warm-up halves it. Without warm-up ` +
            `the same curve starts ${formatCount(rate(1, sizes.d_model, WITHOUT) / peak)} times as high.`,
    );
  };
  const stops = [onTraits(model, ["warmup"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
