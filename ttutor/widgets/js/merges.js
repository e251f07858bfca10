// Type and merge: a text of the reader's own as letters; over each two neighbours stands how often they are
// together in the training text, and byte-pair merges join the commonest first.
import { slider } from "./controls.js";
import { css, make, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .box {
    fill: currentColor;
    stroke: color-mix(in srgb, currentColor 55%, transparent);
  }
  .new {
    stroke: currentColor;
    stroke-width: 2.5;
  }
  .bar {
    fill: color-mix(in srgb, currentColor 40%, transparent);
  }
  .bar.most {
    fill: currentColor;
  }
  .hit {
    fill: transparent;
  }
  .hit:is(:hover, .on) {
    fill: color-mix(in srgb, currentColor 10%, transparent);
  }
  .tt-picture .letter {
    font:
      1rem ui-monospace,
      Menlo,
      monospace;
  }
  .tt-picture .count {
    font-size: 0.6875rem;
  }
  .own {
    flex: 1 1 14rem;
    min-width: 0;
    font: inherit;
    color: inherit;
    background: transparent;
    min-height: 2.75rem;
    padding: 0.2rem 0.6rem;
    border: 1px solid color-mix(in srgb, currentColor 50%, transparent);
    border-radius: 0.5rem;
  }
`;
const [LETTER, PAD, GAP, TOP, ROW, TALL] = [11, 5, 7, 24, 86, 28];
const MOST = 48;
// As in Python: a blank belongs to the word after it, and no token reaches over the end of a word.
const PIECES = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{Nd}+| ?(?:[^\p{L}\p{N}\s]|_)+|\s+(?!\S)|\s+|\p{N}/gu;
const keyOf = (two) => JSON.stringify(two);
const visible = (token) => token.replaceAll(" ", "▁");

/** The pieces of a text, each a list of tokens, with one pair joined wherever it stands. */
const join = (pieces, [left, right]) =>
  pieces.map((tokens) => {
    const joined = [];
    for (let i = 0; i < tokens.length; i += 1)
      joined.push(tokens[i] === left && tokens[i + 1] === right ? left + tokens[(i += 1)] : tokens[i]);
    return joined;
  });

/**
 * The text after each merge that occurs in it, first as letters: `{ pair, tokens, joints }`. The joints are told
 * by the letter before them, each as `[letter, [left, right], times]`: how often the two tokens stand together in
 * the training text when the next merge is chosen.
 */
function history(text, merges, words) {
  let pieces = (text.match(PIECES) || []).map((piece) => [...piece]);
  let corpus = words.map(([word]) => [...word]);
  const steps = [{ tokens: pieces.flat() }];
  const count = () => {
    const counts = {};
    corpus.forEach((tokens, word) => {
      tokens.forEach((token, i) => {
        const key = keyOf([token, tokens[i + 1]]);
        counts[key] = (counts[key] || 0) + words[word][1];
      });
    });
    let letter = -1;
    steps.at(-1).joints = pieces.flatMap((tokens) =>
      tokens.flatMap((token, i) => {
        letter += [...token].length;
        const two = [token, tokens[i + 1]];
        return i + 1 < tokens.length ? [[letter, two, counts[keyOf(two)] || 0]] : [];
      }),
    );
  };
  for (const pair of merges) {
    const next = join(pieces, pair);
    if (next.flat().length < pieces.flat().length) {
      count();
      steps.push({ pair, tokens: next.flat() });
    }
    [pieces, corpus] = [next, join(corpus, pair)];
  }
  count();
  return steps;
}

const mostOf = ({ joints }) => Math.max(0, ...joints.map(([, , times]) => times));
const timesOf = (times) => (times === 0 ? "never" : times === 1 ? "once" : `${times} times`);
const named = (two) => two.map(visible).join(" and ");

/** Where each letter stands when the text is cut into these tokens, row by row. */
function placed({ tokens }, width) {
  let [x, y] = [0, TOP + ROW - 18];
  return tokens.flatMap((token) => {
    const wide = [...token].length * LETTER + 2 * PAD;
    if (x + wide > width && x > 0) [x, y] = [0, y + ROW];
    const start = x + PAD + LETTER / 2;
    x += wide + GAP;
    return [...token].map((_, i) => [start + i * LETTER, y]);
  });
}

/** So high that all cuts of this text, and others of its length, have room. */
function heightOf(steps, width) {
  const longest = Math.ceil(MOST / Math.floor((width + GAP) / (LETTER + 2 * PAD + GAP)));
  const rows = steps.map((step) => ((placed(step, width).at(-1)?.[1] || 0) + 18 - TOP) / ROW);
  return TOP + ROW * Math.max(longest, ...rows);
}

/** The boxes of the tokens around their letters, on their way from one cut to the next, and a bar over each joint. */
function drawTokens(reached, steps, width, tapped, press) {
  const next = Math.min(Math.ceil(reached), steps.length - 1);
  const share = 1 - (next - reached);
  const [before, after] = [steps[Math.max(next - 1, 0)], steps[next]];
  const { pair } = after;
  const [from, to] = [before, after].map((step) => placed(step, width));
  const between = (a, b) => a + share * (b - a);
  const letters = to.map(([x, y], i) => [between(from[i][0], x), between(from[i][1], y)]);
  const edge = PAD + LETTER / 2;
  // Those that join close up before they are one.
  const side = (i, j) =>
    letters[j]?.[1] === letters[i][1] ? Math.min(edge, Math.abs(letters[j][0] - letters[i][0]) / 2) : edge;
  const { tokens } = share < 1 ? before : after;
  let first = 0;
  const boxes = tokens.map((token, at) => {
    const [start, length] = [first, [...token].length];
    first += length;
    const isPair = (i) => pair && tokens[i] === pair[0] && tokens[i + 1] === pair[1];
    const joins = share < 1 ? isPair(at - 1) || isPair(at) : token === pair?.join("");
    const left = letters[start][0] - side(start, start - 1);
    return [
      `box${start}`,
      "rect",
      {
        class: joins ? "box new" : "box",
        "data-token": visible(token),
        "fill-opacity": Math.min(0.03 + 0.045 * length, 0.3),
        x: left,
        y: letters[start][1] - 24,
        width: Math.max(letters[first - 1][0] + side(first - 1, first) - left, 0),
        height: 36,
        rx: 7,
      },
    ];
  });
  const text = [...tokens.join("")];
  const tall = ({ joints }, letter) => {
    const times = joints.find(([one]) => one === letter)?.[2] || 0;
    return (TALL * times) / Math.max(...joints.map((one) => one[2]), 5); // few are drawn as few
  };
  const { joints } = share < 1 ? before : after;
  const most = mostOf({ joints });
  return [
    ...boxes,
    ...letters.map(([x, y], i) => [
      `letter${i}`,
      "text",
      { class: "letter", x, y, "text-anchor": "middle", text: visible(text[i]) },
    ]),
    ...joints.flatMap(([letter, two, times]) => {
      const [x, y] = [letters[letter][0] + edge + GAP / 2, letters[letter][1] - 28];
      const height = between(tall(before, letter), tall(after, letter));
      const bar = tapped >= 0 && times === most ? "bar most" : "bar";
      return [
        [`bar${letter}`, "rect", { class: bar, x: x - 4, y: y - height, width: 8, height, rx: 1.5 }],
        [`count${letter}`, "text", { class: "count", x, y: y - height - 4, "text-anchor": "middle", text: times }],
        [
          `hit${letter}`,
          "rect",
          {
            class: tapped === letter ? "hit on" : "hit",
            "aria-label": `${named(two)}, together ${timesOf(times)}`,
            x: x - 14,
            y: y - TALL - 16,
            width: 28,
            height: TALL + 56,
            rx: 6,
            press: (event) => press(letter, event),
          },
        ],
      ];
    }),
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { text: get("text"), step: get("step") };
  const card = openCard(el, {
    label: "Type and merge",
    question: "How do letters become tokens?",
    invite: "Which two should join first? Tap between them. Then type words of your own.",
    onReset: () => set(initial),
    css: CSS,
  });
  let [steps, at, shown, tapped] = [[], 0, "", -1];
  const read = () => {
    steps = history(get("text"), get("merges"), get("words"));
    at = Math.min(get("step"), steps.length - 1);
  };
  /** The commonest pair joins, wherever it stands; another is compared with it. */
  const press = (letter, { type }) => {
    // While the picture glides, what is pressed may be gone already.
    const two = steps[at].joints.find(([one]) => one === letter)?.[1];
    if (!two) return;
    if (keyOf(steps[at + 1]?.pair) !== keyOf(two)) {
      tapped = letter;
      return show();
    }
    set({ step: at + 1 });
    // What joined is no button any longer: the keys go on at the next.
    const { joints } = steps[at];
    const [next] = joints.find(([one]) => one > letter) || joints[0] || [];
    if (type === "keydown") picture.node.querySelector(`[data-key=hit${next}]`)?.focus();
  };
  const picture = stage({
    label: "The text, cut into tokens",
    height: (width) => heightOf(steps, width),
    draw: ({ reached }, width) => [
      ["key", "text", { x: 0, y: 11, text: "how often they stand together in the training text by now" }],
      ...drawTokens(Math.min(reached, steps.length - 1), steps, width, tapped, press),
    ],
  });
  const own = make("input", {
    class: "own",
    type: "text",
    maxlength: MOST,
    "aria-label": "Your text",
    oninput: () => set({ text: own.value }),
  });
  const merges = slider({
    label: "Merges",
    min: 0,
    max: 1,
    step: 1,
    format: (step) => `${step} of ${steps.length - 1}`,
    plays: 0.8,
    onInput: (step) => set({ step }),
  });
  card.stage.append(picture.node);
  card.controls.append(own, merges.node);
  const draw = () => {
    tapped = -1;
    read();
    merges.input.max = steps.length - 1;
    merges.input.disabled = steps.length === 1;
    merges.set(at);
    if (own.value !== get("text")) own.value = get("text");
    show();
  };
  const show = () => {
    picture.show({ reached: at }, get("text") === shown ? undefined : 0);
    shown = get("text");
    card.caption.textContent = `▁ is the blank before a word; no pair reaches over a word's end. Of ${get("merges").length} learned merges ${steps.length - 1} occur${steps.length === 2 ? "s" : ""} in this text.`;
    card.find(finding());
  };
  const finding = () => {
    const [{ pair, tokens, joints }, most] = [steps[at], mostOf(steps[at])];
    const next = steps[at + 1]?.pair;
    if (tapped >= 0) {
      const [, two, times] = joints.find(([letter]) => letter === tapped);
      const here = `${named(two)} ${times ? `stood together ${timesOf(times)}` : "stand together nowhere in the training text as it is cut now"}`;
      if (!next) return `${here}. Learning ended at ${get("merges").length} merges.`;
      return times === most
        ? `${here}, as often as ${named(next)}: of equals the pair with the older tokens joins first.`
        : `${here}, ${named(next)} ${timesOf(most)}: these join first.`;
    }
    if (!pair)
      return next
        ? "Each character is a token of its own."
        : get("text")
          ? "None of the learned merges occurs here: each character stays a token."
          : "There is nothing to cut yet.";
    if (next)
      return `${named(pair)} join: they stood together ${timesOf(mostOf(steps[at - 1]))}, no pair here more often.`;
    const rest = !joints.length
      ? "No pair is left"
      : most
        ? `No pair left here stood together more than ${timesOf(most)}`
        : "The pairs left here stand together nowhere in the training text";
    return `${tokens.length} tokens for ${[...get("text")].length} characters. ${rest}.`;
  };
  const stops = [
    onTraits(model, ["text", "step", "merges", "words"], draw),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
