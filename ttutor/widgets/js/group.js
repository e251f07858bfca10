// A group of answers: eight answers to one question at each step of a training, what a verifier pays for them,
// and how one step on this group moves the probability of each.
import { choice, slider } from "./controls.js";
import { css, formatNumber, make, moveOnce, onTraits, openCard, setTraits } from "./core.js";
import { arrow, stage } from "./drawing.js";

const CSS = css`
  .chance {
    fill: color-mix(in srgb, var(--tt-decoder) 10%, var(--tt-page));
    stroke: var(--tt-decoder-line);
    stroke-dasharray: 3 3;
  }
  .paid {
    fill: color-mix(in srgb, var(--tt-decoder) 65%, var(--tt-page));
    stroke-dasharray: none;
  }
  .list {
    fill: color-mix(in srgb, var(--tt-loss) 65%, var(--tt-page));
    stroke: var(--tt-loss-line);
  }
  .track {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.2;
  }
  .on {
    fill: none;
    stroke: currentColor;
    stroke-width: 2.5;
  }
  .pick {
    fill: transparent;
  }
  .move {
    fill: none;
    stroke: currentColor;
    stroke-width: 2;
  }
  .tt-picture .answer {
    font-weight: 600;
  }
  .tt-picture .step {
    text-anchor: middle;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const [HEAD, SMALL, FOOT] = [26, 9, 36]; // an answer's height in the history, where that stands above the group
const unitAt = (width) => (width < 480 ? 21 : 30); // and in the group

const signed = (value) => `${value > 0 ? "+" : ""}${formatNumber(value, 2)}`;
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;

/**
 * The group at a step, equal answers together, what is paid first: each answer's text, how often it was given,
 * its reward, its probability before the step on this group and after it.
 */
function group(get, stop) {
  const which = get("verifiers").indexOf(get("verifier"));
  const [texts, rewards, before, after] = ["answers", "rewards", "before", "after"].map(
    (name) => get(name)[which][stop],
  );
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const answers = [];
  texts.forEach((text, i) => {
    const one = { text, reward: rewards[i], before: before[i], after: after[i] };
    const same = answers.find((other) => Object.keys(one).every((name) => one[name] === other[name]));
    if (same) same.count += 1;
    else answers.push({ ...one, count: 1 });
  });
  answers.sort((one, two) => two.reward - one.reward || two.count - one.count);
  return { answers, mean, size: texts.length };
}

const isList = (text) => text.includes(",");
const kindOf = (text, { reward }) => (reward > 0 ? `chance paid ${isList(text) ? "list" : ""}` : "chance");

/** Every step's group as a column, and the group of this step: an answer is as high as often it was given. */
function drawGroup({ before, after }, width, [steps, groups, stop, pick]) {
  const { answers, mean, size } = groups[stop];
  const narrow = width < 480;
  const slot = (narrow ? width : 0.4 * width) / groups.length;
  const high = unitAt(width); // an answer in the group
  const unit = narrow ? SMALL : high; // and in the history
  const top = narrow ? HEAD + SMALL * size + FOOT + HEAD : HEAD;
  const left = narrow ? 0 : 0.44 * width;
  const [paid, start, end] = [left + (narrow ? 96 : 104), left + (narrow ? 158 : 180), width - 10];
  const x = (share) => start + share * (end - start);
  const history = groups.flatMap((one, at) => {
    let y = HEAD;
    return [
      ...one.answers.flatMap(({ text, count, ...answer }, i) => {
        const [foot, tall] = [y, unit * count];
        y += tall;
        const box = { class: kindOf(text, answer), x: at * slot + 2, y: foot + 1, width: slot - 4, height: tall - 2, rx: 3 };
        return [
          [`past${at}-${i}`, "rect", box],
          !narrow &&
            slot > 7 * text.length + 6 && [
              `said${at}-${i}`,
              "text",
              { class: "step", x: (at + 0.5) * slot, y: foot + tall / 2 + 5, text },
            ],
        ];
      }),
      at === stop && ["on", "rect", { class: "on", x: at * slot, y: HEAD - 2, width: slot, height: unit * size + 4, rx: 5 }],
      [`step${at}`, "text", { class: "step", x: (at + 0.5) * slot, y: HEAD + unit * size + 18, text: at ? steps[at] : `step ${steps[0]}` }],
      [
        `pick${at}`,
        "rect",
        {
          class: "pick",
          x: at * slot,
          y: HEAD,
          width: slot,
          height: unit * size + 20,
          press: () => pick(at),
          "aria-label": `step ${steps[at]}`,
        },
      ],
    ];
  });
  let down = 0;
  const rows = answers.flatMap(({ text, count, reward }, i) => {
    const [y, tall] = [top + high * down, high * count];
    down += count;
    const middle = y + tall / 2;
    return [
      [`answer${i}`, "text", { class: "answer", x: left, y: middle + 5, text }],
      [`count${i}`, "text", { x: left + (narrow ? 60 : 70), y: middle + 5, text: `×\u2009${count}` }],
      [
        `paid${i}`,
        "text",
        {
          x: paid,
          y: middle + 5,
          "data-value": (reward - mean).toFixed(9),
          text: `${reward > 0 ? "✓" : "✗"} ${signed(reward - mean)}`,
        },
      ],
      [`track${i}`, "rect", { class: "track", x: start, y: y + 2, width: end - start, height: tall - 4 }],
      [
        `chance${i}`,
        "rect",
        { class: kindOf(text, { reward }), "data-value": before[i].toFixed(9), x: start, y: y + 2, width: x(before[i]) - start, height: tall - 4 },
      ],
      Math.abs(x(after[i]) - x(before[i])) > 1 && [
        `move${i}`,
        "path",
        { class: "move", "data-value": after[i].toFixed(9), d: arrow(x(before[i]), middle, x(after[i]), middle) },
      ],
    ];
  });
  return [
    ["head", "text", { x: 0, y: 14, text: `${size} answers at each step` }],
    ["head0", "text", { x: left, y: top - 12, text: "answer" }],
    ["head1", "text", { x: paid - (narrow ? 16 : 0), y: top - 12, text: "advantage" }],
    ["head2", "text", { x: start, y: top - 12, text: narrow ? "probability →" : "probability → after a step" }],
    ...history,
    ...rows,
  ];
}

/** What this group teaches, and where a verifier pays for answers that list several numbers. */
function findingOf({ answers, size }, earlier) {
  const sum = (some) => some.reduce((total, { count }) => total + count, 0);
  const paidIn = ({ answers }) => answers.filter(({ reward }) => reward > 0);
  const paidFor = paidIn({ answers });
  const [n, lists] = [sum(paidFor), sum(paidFor.filter(({ text }) => isList(text)))];
  const earned = earlier && sum(paidIn(earlier));
  if (n === 0) return "None earns the reward. All advantages are zero: this group teaches nothing, and nothing moves.";
  const fall = earned > n ? ` Fewer than the ${earned} before: other questions move the model, too.` : "";
  const paid = `${n} of ${size} earn${n > 1 ? "" : "s"} the reward`;
  const listed = lists ? ` ${lists} of them list${lists > 1 ? "" : "s"} several numbers, and this verifier pays for it.` : "";
  if (n === size) return `${paid}: none is better than the mean, and nothing moves.${listed}`;
  const moved = ({ before, after }) => Math.abs(after - before);
  const { text, before, after } = paidFor.reduce((most, one) => (moved(one) > moved(most) ? one : most));
  const way = after > before ? "more" : "less";
  return `${paid}, and one step makes “${text}” ${way} probable: from ${percent(before)} to ${percent(after)}.${listed}${fall}`;
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const [steps, initial] = [get("steps"), { verifier: get("verifier"), stop: get("stop") }];
  const count = get("answers")[0][0].length;
  const card = openCard(el, {
    label: "A group of answers",
    question: "What does a reward teach?",
    invite: "Guess what the model learns to answer if the verifier is lenient. Then choose it, and play.",
    onReset: () => set(initial),
    css: CSS,
  });
  const picture = stage({
    label: "Answers to one question, their advantages and their probabilities",
    height: (width) => HEAD + count * unitAt(width) + (width < 480 ? HEAD + count * SMALL + FOOT : FOOT),
    draw: (numbers, width) => drawGroup(numbers, width, [steps, steps.map((_, at) => group(get, at)), get("stop"), (stop) => set({ stop })]),
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
  verifier.node.querySelector("label:last-child").classList.add("tt-call");
  card.stage.append(picture.node);
  card.controls.append(step.node, verifier.node);
  const [first, ...rest] = get("note").split(/(?<=\.) /);
  card.more(
    "About the data",
    make("p", {
      class: "tt-note",
      text: `An answer is as tall as it was frequent. An arrow is one step on this group alone; other questions move the model too. ${rest.join(" ")}`,
    }),
  );
  const draw = () => {
    const found = group(get, get("stop"));
    const paidLists = ({ answers }) => answers.some(({ text, reward }) => reward > 0 && isList(text));
    const lists = steps.some((_, at) => paidLists(group(get, at)));
    card.caption.textContent =
      `${get("question")}, asked ${count} times at each step. ${first}` +
      (lists ? " Vermilion: paid, though it lists several numbers." : "");
    step.set(get("stop"));
    verifier.set(get("verifier"));
    // At once: on the way there the labels of one step would stand beside the bars of another.
    picture.show({ before: found.answers.map(({ before }) => before), after: found.answers.map(({ after }) => after) }, 0);
    card.find(findingOf(found, get("stop") ? group(get, get("stop") - 1) : null));
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
