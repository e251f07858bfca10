// A translator learns: one training, step by step. The loss falls, lines of attention gather, and
// guesses become words of a translation.
import { slider } from "./controls.js";
import { css, formatNumber, make, moveOnce, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .whole,
  .far {
    fill: none;
    stroke-width: 2;
  }
  .whole {
    stroke-opacity: 0.25;
  }
  .far {
    stroke-width: 2.5;
  }
  .loss {
    stroke: var(--tt-loss);
  }
  .looked {
    stroke: var(--tt-weights-line);
  }
  .said {
    stroke: currentColor;
  }
  .place {
    stroke: var(--tt-page);
  }
  circle.loss {
    fill: var(--tt-loss);
  }
  circle.looked {
    fill: var(--tt-weights-line);
  }
  circle.said {
    fill: currentColor;
  }
  .axis {
    stroke: currentColor;
    stroke-opacity: 0.3;
  }
  .link {
    fill: none;
    stroke: var(--tt-weights-line);
    stroke-linecap: round;
  }
  .wanted {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.4;
  }
  .chance {
    fill: color-mix(in srgb, var(--tt-decoder) 45%, transparent);
  }
  .faint {
    fill-opacity: 0.75;
  }
  .between {
    fill: var(--tt-weights);
    fill-opacity: 0.4;
  }
  .tt-picture .half {
    fill: color-mix(in srgb, var(--tt-weights-line) 65%, currentColor);
    font-weight: 700;
  }
  .alone {
    margin: 0.5rem 0 0;
    min-height: 1.45em;
  }
  @container (max-width: 27rem) {
    .alone {
      margin-top: 0.35rem;
      min-height: 2.9em;
      font-size: 0.8125rem;
    }
    .tt-slider {
      flex-basis: 9rem;
    }
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const ROW = 27;
const NARROW = 560;
const GIVEN = "source target steps losses weights guesses chances written looked said nouns".split(" ");
/** A share in percent; what is not whole is never called 100. */
const percent = (share) => `${share < 1 ? Math.min(Math.round(100 * share), 99) : 100}\u00a0%`;

/** What lies at a place between two stops of a series. */
function at(series, place) {
  const low = Math.min(Math.floor(place), series.length - 1);
  const high = Math.min(low + 1, series.length - 1);
  return series[low] + (place - low) * (series[high] - series[low]);
}

const most = (row) => row.indexOf(Math.max(...row));

/** A place's greatest attention at a stop, where it is strong and on the word on which it is in the end. */
function found({ weights }, stop, i) {
  const top = Math.max(...weights[stop][i]);
  return top > 0.3 && weights[stop][i][most(weights.at(-1)[i])] === top ? top : 0;
}

/** Three lines over the steps: the loss, and how many nouns are found and said. */
function drawCurves(place, left, right, top, floor, { steps, losses, looked, said }) {
  const isShort = right - left < 340;
  const well = isShort ? ":" : " right:";
  const x = (stop) => left + (stop / (steps.length - 1)) * (right - left);
  const lines = [
    ["loss", losses.map((loss) => loss / Math.max(...losses)), `loss: ${formatNumber(at(losses, place), 2)}`],
    ["looked", looked, `looks${well} ${percent(at(looked, place))}`],
    ["said", said, `says${well} ${percent(at(said, place))}`],
  ];
  const y = (share) => floor - share * (floor - top);
  const path = (shares, end) => {
    const inner = shares.slice(0, Math.floor(end) + 1).map((share, i) => [i, share]);
    return `M${[...inner, [end, at(shares, end)]].map(([i, share]) => `${x(i).toFixed(1)} ${y(share).toFixed(1)}`).join("L")}`;
  };
  const columns = (isShort ? [0, 0.31, 0.68] : [0, 0.24, 0.65]).map((share) => left + share * (right - left));
  const [over, under] = [looked, said].map((shares) =>
    path(shares, steps.length - 1)
      .slice(1)
      .split("L"),
  );
  const widest = most(looked.map((share, i) => share - said[i]));
  return [
    ["between", "path", { class: "between", d: `M${[...over, ...under.reverse()].join("L")}Z` }],
    [
      "gap",
      "text",
      { class: "half", x: x(widest) + 0.1 * (right - left), y: (top + floor) / 2, text: "looks right, says wrong" },
    ],
    ["floor", "path", { class: "axis", d: `M${left} ${floor}H${right}` }],
    ["zero", "text", { x: left, y: floor + 16, text: `step ${steps[0]}` }],
    ["end", "text", { x: right, y: floor + 16, "text-anchor": "end", text: steps.at(-1) }],
    ...lines.flatMap(([name, shares, words], i) => [
      [`key${name}`, "path", { class: `far ${name}`, d: `M${columns[i]} 9h12` }],
      [`words${name}`, "text", { x: columns[i] + 16, y: 14, text: words }],
      [`whole${name}`, "path", { class: `whole ${name}`, d: path(shares, steps.length - 1) }],
      [`far${name}`, "path", { class: `far ${name}`, d: path(shares, place) }],
      [`dot${name}`, "circle", { class: `place ${name}`, cx: x(place), cy: y(at(shares, place)), r: 5.5 }],
    ]),
  ];
}

/** The sentence: what is read, lines as thick as the attention, the guess at each place, and the right
 * word in a box that its probability fills. */
function drawSentence({ weights, chances }, stop, left, width, top, given) {
  const { source, target, guesses } = given;
  const span = width - left;
  const [from, guess, right] = [left + Math.max(0.18 * span, 62), left + 0.47 * span, left + 0.72 * span];
  const wide = width - right - 1;
  const y = (i, all) => top + 24 + (i + 0.5) * ROW + (ROW * (Math.max(source.length, target.length) - all.length)) / 2;
  const [start, end] = [guess - 8, from + 4];
  const bend = (start - end) / 2.5;
  // Where it looks right and says wrong, the lines stand out from the others.
  const halves = target.map((token, i) => guesses[stop][i] !== token && found(given, stop, i));
  const dim = (i) => (halves.some(Boolean) && !halves[i] ? 0.4 : 1);
  const head = (key, x, text, anchor) => [key, "text", { class: "faint", x, y: top + 12, "text-anchor": anchor, text }];
  return [
    head("read", from - 4, "reads", "end"),
    head("guessed", guess, "its guess"),
    head("wanted", right + 7, "right word"),
    ...weights.flatMap((row, i) =>
      row.map((weight, j) => [
        `link${i}-${j}`,
        "path",
        {
          class: "link",
          d: `M${start} ${y(i, target)}C${start - bend} ${y(i, target)} ${end + bend} ${y(j, source)} ${end} ${y(j, source)}`,
          "stroke-width": 11 * weight,
          "stroke-opacity": dim(i) * (0.15 + 0.85 * weight),
          "data-value": weight.toFixed(9),
        },
      ]),
    ),
    ...source.map((token, j) => [
      `source${j}`,
      "text",
      { x: from - 4, y: y(j, source) + 4, "text-anchor": "end", text: token },
    ]),
    ...target.flatMap((token, i) => {
      const [said, middle] = [guesses[stop][i], y(i, target)];
      const box = { x: right, y: middle - 11, height: 22, rx: 4 };
      return [
        [
          `guess${i}`,
          "text",
          {
            class: halves[i] ? "said-word half" : "said-word",
            x: guess,
            y: middle + 4,
            "font-weight": said === token ? 700 : 400,
            text: (said === token ? "✓ " : "✗ ") + (said.length > 9 ? `${said.slice(0, 8)}…` : said),
          },
        ],
        [
          `chance${i}`,
          "rect",
          { class: "chance", ...box, width: chances[i] * wide, "data-value": chances[i].toFixed(9) },
        ],
        [`wanted${i}`, "rect", { class: "wanted", ...box, width: wide }],
        [`target${i}`, "text", { x: right + 7, y: middle + 4, text: token.slice(0, 12) }],
      ];
    }),
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const given = Object.fromEntries(GIVEN.map((name) => [name, get(name)]));
  const { steps, source, target } = given;
  const initial = { stop: get("stop") };
  const rows = Math.max(source.length, target.length);
  const card = openCard(el, {
    label: "A translator learns",
    question: "What does a translator learn first?",
    invite: "Drag the step to where it looks at the right word, and still says a wrong one.",
    onReset: () => set(initial),
    css: CSS,
  });
  const sentence = 24 + rows * ROW;
  const picture = stage({
    label: "Loss by step, and one sentence: attention as lines, a guess at each place",
    height: (width) => sentence + (width < NARROW ? 122 : 0),
    draw: (numbers, width, height) =>
      width < NARROW
        ? [
            ...drawCurves(numbers.stop, 4, width - 6, 28, 92, given),
            ...drawSentence(numbers, get("stop"), 0, width, 120, given),
          ]
        : [
            ...drawCurves(numbers.stop, 4, 0.42 * width, 34, height - 24, given),
            ...drawSentence(numbers, get("stop"), 0.46 * width, width, 0, given),
          ],
  });
  const step = slider({
    label: "Step",
    min: 0,
    max: steps.length - 1,
    step: 1,
    format: (stop) => String(steps[stop]),
    plays: 0.3,
    onInput: (stop) => set({ stop }),
  });
  const alone = make("p", { class: "alone" });
  card.stage.append(picture.node, alone);
  card.controls.append(step.node);
  card.caption.textContent =
    "Lines: attention, all heads. A box fills with the probability of its word after the right ones.";
  card.more("About the data", make("p", { class: "tt-note", text: get("note") }));
  const draw = () => {
    const stop = get("stop");
    step.set(stop);
    picture.show({ stop, weights: given.weights[stop], chances: given.chances[stop] });
    alone.textContent = `On its own: ${given.written[stop] || "–"}`;
    card.find(findingOf(given, stop));
  };
  const stops = [
    onTraits(model, ["stop"], draw),
    moveOnce(card, model, { stop: Math.min(initial.stop + 1, steps.length - 1) }),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((end) => end());
}

/** How many nouns are found and how many said; beside it, of the sentence, a noun at which it looks in vain, or what is still wrong. */
function findingOf(given, stop) {
  const { source, target, guesses, weights, looked, said, nouns } = given;
  const shares = `Over many sentences it looks at the right noun in ${percent(looked[stop])} of cases, and says it in ${percent(said[stop])}`;
  const insteadOf = (i) => `says “${guesses[stop][i]}”, not “${target[i]}”`;
  if (looked[stop] < 0.4 || looked[stop] - said[stop] < 0.15) {
    if (said[stop] <= 0.5) return `${shares}: too early${unseen(given, stop)}.`;
    const wrong = target.findIndex((word, i) => guesses[stop][i] !== word);
    return `${shares}: ${Math.min(looked[stop], said[stop]) < 1 ? "most" : "all"} nouns are found and said. This sentence ${wrong < 0 ? "is right" : `still ${insteadOf(wrong)}`}.`;
  }
  const vain = target.map((word, i) => (guesses[stop][i] === word || !nouns.includes(i) ? 0 : found(given, stop, i)));
  const i = most(vain);
  const here = `. In this one it looks at “${source[most(weights[stop][i])]}”, and ${insteadOf(i)}`;
  return `${shares}${vain[i] ? here : ""}. With nouns, first where to look, then what to say.`;
}

/** The words that are said rightly, though nothing is looked at where it will be. */
function unseen(given, stop) {
  const words = given.target.filter((word, i) => given.guesses[stop][i] === word && !found(given, stop, i));
  const listed = [...new Set(words)].map((word) => `“${word}”`).join(", ");
  return listed && `. It says ${listed} rightly already, without looking there`;
}

export default { render };
