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
  .peak,
  .cut {
    fill: var(--tt-loss);
  }
  .cut {
    opacity: 0.25;
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

function drawCurves({ warmup }, width, height, { d_model, steps, pull }) {
  const [left, right, top, floor] = [56, width - 12, 18, height - 40];
  const most = 1.15 * rate(1000, d_model, 1000);
  const x = (step) => left + (step / steps) * (right - left);
  const y = (value) => floor - (value / most) * (floor - top);
  // Where a steep curve leaves the picture, and where it comes back.
  const [leaves, returns] = [(warm) => most * d_model ** 0.5 * warm ** 1.5, 1 / (d_model * most ** 2)];
  const line = (warm) => {
    const places = Array.from({ length: 241 }, (_, i) => Math.max(1, (steps * i) / 240));
    const parts = [...places, warm, leaves(warm), returns]
      .filter((step) => step >= 1 && step <= steps)
      .sort((a, b) => a - b)
      .map((step) => {
        const value = rate(step, d_model, warm);
        return value <= most * (1 + 1e-9) ? `${x(step).toFixed(1)} ${y(value).toFixed(1)}` : "";
      });
    return parts.map((part, i) => part && `${parts[i - 1] ? "L" : "M"}${part}`).join("");
  };
  const peak = rate(warmup, d_model, warmup);
  const isSeen = peak <= most && warmup <= steps;
  const cut = [returns, ...Array.from({ length: 60 }, (_, i) => returns + ((i + 1) / 60) * (warmup - returns))];
  return [
    isSeen && [
      "cut",
      "path",
      {
        class: "cut",
        d: `M${x(0)} ${y(0)}V${top}${cut.map((step) => `L${x(step)} ${y(rate(step, d_model, WITHOUT))}`).join("")}Z`,
      },
    ],
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
        x: x(0.12 * steps),
        y: y(Math.min(rate(0.12 * steps, d_model, WITHOUT), most)) - 12,
        text: "without a warm-up",
      },
    ],
    ["curve", "path", { class: "rate", d: line(warmup) }],
    isSeen && [
      "peak",
      "circle",
      {
        class: "peak pull",
        cx: x(warmup),
        cy: y(peak),
        r: 9,
        "data-value": peak.toFixed(12),
        "aria-label": "peak",
        "aria-valuenow": warmup,
        pull: (px) => pull(((px - left) / (right - left)) * steps),
      },
    ],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const initial = { warmup: get("warmup") };
  const [low, high] = [Math.min(1000, initial.warmup), 10000];
  const sizes = {
    d_model: get("d_model"),
    steps: get("steps"),
    pull: (step) => setTraits(model, { warmup: Math.min(Math.max(100 * Math.round(step / 100), low), high) }),
  };
  const card = openCard(el, {
    label: "The warm-up",
    question: "What does a warm-up cut off?",
    invite: "Drag the peak along the dashed line.",
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
    min: low,
    max: high,
    step: 100,
    format: (steps) => `${formatCount(steps)} steps`,
    onInput: (value) => setTraits(model, { warmup: value }),
  });
  card.stage.append(picture.node);
  card.controls.append(warmup.node);
  card.caption.textContent = `The paper’s schedule for a width of ${sizes.d_model}: it rises in a straight line to the end of the warm-up, then falls as one over the root of the step.`;
  const draw = () => {
    const steps = get("warmup");
    const times = rate(1, sizes.d_model, WITHOUT) / rate(steps, sizes.d_model, steps);
    warmup.set(steps);
    picture.show({ warmup: steps }, 0);
    card.find(
      steps > sizes.steps
        ? "This training ends before the warm-up does."
        : `The steep beginning: without a warm-up the first step would have ${formatCount(times)} times the rate of the peak. ` +
            "A longer warm-up cuts off more of it, so the peak comes later and lower.",
    );
  };
  const stops = [onTraits(model, ["warmup"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
