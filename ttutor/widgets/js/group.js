// A group of answers: eight answers to one question, what a verifier pays for them, and how one step on
// this group moves the probability of each.
import { choice, slider } from "./controls.js";
import { css, formatNumber, moveOnce, onTraits, openCard, setTraits } from "./core.js";
import { arrow, stage } from "./drawing.js";

const CSS = css`
  .track {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.25;
  }
  .chance {
    fill: color-mix(in srgb, var(--tt-decoder) 14%, transparent);
    stroke: var(--tt-decoder-line);
    stroke-dasharray: 3 3;
  }
  .chance.paid {
    fill: color-mix(in srgb, var(--tt-decoder) 65%, transparent);
    stroke-dasharray: none;
  }
  .move {
    fill: none;
    stroke: currentColor;
    stroke-width: 2;
  }
  .tt-picture .answer {
    font-weight: 600;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 7.2em;
    }
  }
`;
const [HEAD, ROW] = [26, 30];

const signed = (value) => `${value > 0 ? "+" : ""}${formatNumber(value, 2)}`;
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;

/** The group that is shown: texts, rewards, advantages, and the probabilities before the step and after it. */
function group(get) {
  const [which, stop] = [get("verifiers").indexOf(get("verifier")), get("stop")];
  const [texts, rewards, before, after] = ["answers", "rewards", "before", "after"].map(
    (name) => get(name)[which][stop],
  );
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  return { texts, rewards, before, after, mean, advantages: rewards.map((reward) => reward - mean) };
}

/** One answer a row: its text, its advantage, its probability, and an arrow to that after the step. */
function drawGroup({ before, after }, width, { texts, rewards, advantages }) {
  const [paid, start, end] = [Math.min(0.29 * width, 100), Math.min(0.5 * width, 200), width - 10];
  const x = (share) => start + share * (end - start);
  return [
    ["head0", "text", { x: 0, y: 14, text: "answer" }],
    ["head1", "text", { x: paid, y: 14, text: "advantage" }],
    ["head2", "text", { x: start, y: 14, text: "probability → after a step" }],
    ...texts.flatMap((text, i) => {
      const [top, middle, isPaid] = [HEAD + i * ROW, HEAD + (i + 0.5) * ROW, rewards[i] > 0];
      const moves = Math.abs(x(after[i]) - x(before[i])) > 1;
      return [
        [`answer${i}`, "text", { class: "answer", x: 0, y: middle + 5, text }],
        [
          `paid${i}`,
          "text",
          {
            x: paid,
            y: middle + 5,
            "data-value": advantages[i].toFixed(9),
            text: `${isPaid ? "✓" : "✗"} ${signed(advantages[i])}`,
          },
        ],
        [`track${i}`, "rect", { class: "track", x: start, y: top + 4, width: end - start, height: ROW - 8 }],
        [
          `chance${i}`,
          "rect",
          {
            class: isPaid ? "chance paid" : "chance",
            "data-value": before[i].toFixed(9),
            x: start,
            y: top + 4,
            width: x(before[i]) - start,
            height: ROW - 8,
          },
        ],
        moves && [
          `move${i}`,
          "path",
          { class: "move", "data-value": after[i].toFixed(9), d: arrow(x(before[i]), middle, x(after[i]), middle) },
        ],
      ];
    }),
  ];
}

/** What this group teaches, and where a verifier pays for answers that list several numbers. */
function findingOf({ texts, rewards, before, after, mean }) {
  const n = rewards.filter((reward) => reward > 0).length;
  const lists = texts.filter((text, i) => text.includes(",") && rewards[i] > 0).length;
  if (n === 0) return "None earns the reward. All advantages are zero: this group teaches nothing, and nothing moves.";
  const paid = `${n} of ${texts.length} earn the reward`;
  const listed = lists ? ` ${lists} of them list two numbers, and this verifier pays for it.` : "";
  if (n === texts.length) return `${paid}: none is better than the mean, and nothing moves.${listed}`;
  const best = rewards.findIndex((reward) => reward > mean);
  const way = after[best] > before[best] ? "more" : "less";
  return `${paid}, and one step makes “${texts[best]}” ${way} probable: from ${percent(before[best])} to ${percent(after[best])}.${listed}`;
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const [steps, initial] = [get("steps"), { verifier: get("verifier"), stop: get("stop") }];
  const count = get("answers")[0][0].length;
  const card = openCard(el, {
    label: "A group of answers",
    question: "What does a reward teach?",
    invite: "Go through the steps with the strict verifier. Then take the lenient one, and read the answers.",
    onReset: () => set(initial),
    css: CSS,
  });
  const picture = stage({
    label: "Answers to one question, their advantages and their probabilities",
    height: HEAD + count * ROW,
    draw: (numbers, width) => drawGroup(numbers, width, group(get)),
  });
  const step = slider({
    label: "Step of the training",
    min: 0,
    max: steps.length - 1,
    step: 1,
    format: (stop) => String(steps[stop]),
    plays: 0.3,
    onInput: (stop) => set({ stop }),
  });
  const verifier = choice({
    label: "Verifier",
    options: get("verifiers").map((name) => [name, name]),
    onChange: (name) => set({ verifier: name }),
  });
  card.stage.append(picture.node);
  card.controls.append(step.node, verifier.node);
  card.caption.textContent = `${get("question")}, asked ${count} times. ✓: earns the reward. An arrow is one step on this group alone; other questions move the model too. ${get("note")}`;
  const draw = () => {
    const found = group(get);
    step.set(get("stop"));
    verifier.set(get("verifier"));
    picture.show({ before: found.before, after: found.after });
    card.find(findingOf(found));
  };
  const stops = [
    onTraits(model, ["stop", "verifier"], draw),
    moveOnce(card, model, { stop: Math.min(initial.stop + 1, steps.length - 1) }),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
