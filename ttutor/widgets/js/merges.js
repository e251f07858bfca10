// Type and merge: a text of the reader's own as letters, and byte-pair merges that snap them
// together in the order in which they were learned.
import { slider } from "./controls.js";
import { css, make, moveOnce, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .box {
    fill: color-mix(in srgb, currentColor 9%, transparent);
    stroke: color-mix(in srgb, currentColor 55%, transparent);
  }
  .new {
    fill: color-mix(in srgb, currentColor 28%, transparent);
    stroke: currentColor;
    stroke-width: 2.5;
  }
  .bar {
    fill: color-mix(in srgb, currentColor 25%, transparent);
  }
  .bar.new {
    fill: currentColor;
    stroke: none;
  }
  .tt-picture text {
    font:
      1rem ui-monospace,
      Menlo,
      monospace;
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
const LETTER = 11;
const MOST = 48;
// As in Python: a blank belongs to the word after it, and no token reaches over the end of a word.
const PIECES = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{Nd}+| ?(?:[^\p{L}\p{N}\s]|_)+|\s+(?!\S)|\s+|\p{N}/gu;
const visible = (token) => token.replaceAll(" ", "▁");

/** The pieces of a text, each a list of tokens, with one pair joined wherever it stands. */
const join = (pieces, [left, right]) =>
  pieces.map((tokens) => {
    const joined = [];
    for (let i = 0; i < tokens.length; i += 1)
      joined.push(tokens[i] === left && tokens[i + 1] === right ? left + tokens[(i += 1)] : tokens[i]);
    return joined;
  });

/** The text after each merge that occurs in it: `[merge, tokens, its number]`, first as letters. */
function history(text, merges) {
  let pieces = (text.match(PIECES) || []).map((piece) => [...piece]);
  const steps = [[null, pieces.flat()]];
  merges.forEach((pair, i) => {
    const next = join(pieces, pair);
    if (next.flat().length < pieces.flat().length) steps.push([pair, next.flat(), i]);
    pieces = next;
  });
  return steps;
}

/** Where each letter stands when the text is cut into these tokens, row by row. */
function placed(tokens, width) {
  let [x, y] = [0, 32];
  return tokens.flatMap((token) => {
    const wide = [...token].length * LETTER + 10;
    if (x + wide > width && x > 0) [x, y] = [0, y + 46];
    const start = x + 5 + LETTER / 2;
    x += wide + 5;
    return [...token].map((_, i) => [start + i * LETTER, y]);
  });
}

/** The boxes of the tokens, around their letters, which may be on their way from one cut to the next. */
function drawTokens(reached, steps, width) {
  const next = Math.min(Math.ceil(reached), steps.length - 1);
  const share = 1 - (next - reached);
  const [pair, tokens] = steps[next];
  const [from, to] = [Math.max(next - 1, 0), next].map((at) => placed(steps[at][1], width));
  const letters = to.map(([x, y], i) => [from[i][0] + share * (x - from[i][0]), from[i][1] + share * (y - from[i][1])]);
  let first = 0;
  const boxes = tokens.map((token) => {
    const start = first;
    first += [...token].length;
    const [[left, top], [right]] = [letters[start], letters[first - 1]];
    return [
      `box${start}`,
      "rect",
      {
        class: pair && token === pair.join("") ? "box new" : "box",
        "data-token": visible(token),
        x: left - LETTER / 2 - 5,
        y: top - 24,
        width: Math.max(right - left, 0) + LETTER + 10,
        height: 38,
        rx: 7,
      },
    ];
  });
  const text = [...tokens.join("")];
  return [
    ...boxes,
    ...letters.map(([x, y], i) => [`letter${i}`, "text", { x, y, "text-anchor": "middle", text: visible(text[i]) }]),
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { text: get("text"), step: get("step") };
  const card = openCard(el, {
    label: "Type and merge",
    question: "How do letters become tokens?",
    invite: "Drag the merges: what joins, what stays apart? Then type words of your own.",
    onReset: () => set(initial),
    css: CSS,
  });
  let [steps, at, shown] = [[], 0, ""];
  const read = () => {
    steps = history(get("text"), get("merges"));
    at = Math.min(get("step"), steps.length - 1);
  };
  const picture = stage({
    label: "The text, cut into tokens",
    height: (width) => (placed(steps[0][1], width).at(-1)?.[1] || 32) + 100,
    draw: ({ reached }, width, height) => [
      ...drawTokens(Math.min(reached, steps.length - 1), steps, width),
      // How often each pair stood together, and the number of the one that joins.
      ...get("counts").flatMap((count, number, { length }) => {
        const wide = width / length;
        const [tall, x] = [(56 * count) / get("counts")[0], number * wide];
        const on = steps[at][2] === number;
        return [
          [
            `bar${number}`,
            "rect",
            { class: on ? "bar new" : "bar", x, y: height - tall, width: wide - 1, height: tall },
          ],
          on && ["count", "text", { x: Math.min(x, width - 32), y: height - tall - 5, text: `${count}×` }],
        ];
      }),
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
    plays: 0.3,
    onInput: (step) => set({ step }),
  });
  card.stage.append(picture.node);
  card.controls.append(own, merges.node);
  const draw = () => {
    read();
    merges.input.max = steps.length - 1;
    merges.input.disabled = steps.length === 1;
    merges.set(at);
    if (own.value !== get("text")) own.value = get("text");
    picture.show({ reached: at }, get("text") === shown ? undefined : 0);
    shown = get("text");
    const [pair, tokens, number] = steps[at];
    const times = pair && get("counts")[number];
    card.caption.textContent = `▁ is the blank before a word. Bars: how often each pair stood together. Of ${get("merges").length} learned merges ${steps.length - 1} occur in this text.`;
    card.find(
      pair
        ? at === steps.length - 1
          ? `${tokens.length} tokens for ${[...get("text")].length} characters: what the learned merges join has joined, the rest stays apart${history(` ${get("text")}`, get("merges")).at(-1)[1].length < tokens.length ? ", also a first word without ▁" : ""}.`
          : `${visible(pair[0])} and ${visible(pair[1])} join, because they stood together ${times === 1 ? "once" : `${times} times`} in the training text.`
        : steps.length > 1
          ? "Each character is a token of its own."
          : "None of the learned merges occurs here: each character stays a token.",
    );
  };
  const stops = [
    onTraits(model, ["text", "step", "merges"], draw),
    moveOnce(card, model, { step: initial.step + 1 }),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
