// ALiBi: a text as one head hears it from its last word, each word as strong as distance leaves it.
import { rovingGrid, slider } from "./controls.js";
import { css, formatNumber, make, onTraits, openCard, setTraits } from "./core.js";

const CSS = css`
  .text {
    margin: 0;
    font-size: clamp(1.0625rem, 2.9cqi, 1.3125rem);
    line-height: 1.9;
  }
  .word {
    cursor: pointer;
    padding: 0.15rem 0.25rem;
    border-radius: 0.3rem;
    background: color-mix(in srgb, var(--tt-weights) calc(var(--w) * 100%), transparent);
  }
  .word.edge {
    border-left: 4px solid currentColor;
  }
  .word.mark {
    text-decoration: underline dotted 2px;
    text-underline-offset: 0.25em;
  }
  .word.last {
    box-shadow: inset 0 0 0 2px var(--tt-query-line);
    background: transparent;
  }
`;

function render({ model, el }) {
  const get = (name) => model.get(name);
  const initial = { head: get("head") };
  const tokens = get("tokens");
  const final = tokens.length - 1;
  const longest = tokens.reduce((best, token, i) => (token.length > tokens[best].length ? i : best), 0);
  let mark = longest; // the word that is to be heard
  const card = openCard(el, {
    label: "ALiBi",
    onReset: () => {
      mark = longest;
      setTraits(model, initial);
      draw();
    },
    css: CSS,
  });
  const words = tokens.map((text, i) =>
    make("span", {
      class: `word tt-ease${i === final ? " last" : ""}`,
      role: "button",
      tabindex: -1,
      "data-row": 0,
      "data-column": i,
      text,
    }),
  );
  const head = slider({
    label: "Head",
    min: 1,
    max: get("slopes").length,
    step: 1,
    format: String,
    onInput: (value) => setTraits(model, { head: value }),
  });
  const line = make("p", { class: "text" }, ...words.flatMap((word) => [word, " "]));
  const pick = ({ target }) => {
    const at = words.indexOf(target);
    if (at !== final && words[at]) draw((mark = at));
  };
  for (const kind of ["click", "focusin"]) line.addEventListener(kind, pick);
  rovingGrid(
    line,
    (_, at) => words[at],
    () => ({ firstRow: 0, firstColumn: 0, lastRow: 0, lastColumn: final - 1 }),
  ).makeStop(words[mark]);
  card.stage.append(line);
  card.controls.append(head.node);
  card.caption.textContent =
    "Purple: the share of each word. All fit equally well. Line: before it less than a tenth of the nearest.";
  /** What the framed word's head gives each word, and from which on it is a tenth of the nearest's or more. */
  const hear = (slope) => {
    const left = tokens.map((_, i) => Math.exp(-slope * (final - i)));
    const total = left.reduce((sum, part) => sum + part, 0);
    return { left, total, from: left.findIndex((one) => one >= left[final - 1] / 10) };
  };
  const draw = () => {
    const first = get("slopes").findIndex((slope) => hear(slope).from <= mark) + 1;
    card.ask(
      "How far back does each head hear?",
      `Drag the head, or tap a word: which is the first that lets “${tokens[final]}” hear “${tokens[mark]}”?`,
    );
    const now = get("head");
    const slope = get("slopes")[now - 1];
    const { left, total, from } = hear(slope);
    head.set(now);
    words.forEach((word, i) => {
      // The share itself, in all heads alike, and its root, or small ones would not be seen: full from a quarter on.
      word.style.setProperty("--w", Math.min(2 * Math.sqrt(left[i] / total), 1).toFixed(4));
      word.dataset.value = (left[i] / total).toFixed(9);
      word.classList.toggle("edge", i > 0 && i === from);
      word.classList.toggle("mark", i === mark);
    });
    const isFirst = now > first ? `yes, but head ${first} was the first` : "yes, this is the first";
    const verdict = `“${tokens[mark]}”: ${from > mark ? "not yet" : isFirst}`;
    const reach = from ? `${final - from} words back` : "the whole text";
    const percent = (share) => `${formatNumber(100 * share, 1)}\u00a0%`;
    card.find(
      `${verdict}. Head ${now} hears ${reach}, because each step back takes ${percent(1 - Math.exp(-slope))} off. ` +
        `Of its attention the nearest word gets ${percent(left[final - 1] / total)}, the farthest ${percent(left[0] / total)}.`,
    );
  };
  const stops = [onTraits(model, ["head"], draw), card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
