// ALiBi: a text as one head hears it from its last word, each word as strong as distance leaves it.
import { slider } from "./controls.js";
import { css, formatNumber, make, onTraits, openCard, setTraits } from "./core.js";

const CSS = css`
  .text {
    margin: 0;
    font-size: clamp(1.0625rem, 2.9cqi, 1.3125rem);
    line-height: 1.9;
  }
  .word {
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
  const mark = tokens.reduce((best, token, i) => (token.length > tokens[best].length ? i : best), 0); // the longest word
  const card = openCard(el, {
    label: "ALiBi",
    question: "How far back does each head hear?",
    invite: `Drag the head: which is the first that lets “${tokens[final]}” hear “${tokens[mark]}”?`,
    onReset: () => setTraits(model, initial),
    css: CSS,
  });
  const words = tokens.map((text, i) =>
    make("span", { class: `word tt-ease${i === final ? " last" : i === mark ? " mark" : ""}`, text }),
  );
  const head = slider({
    label: "Head",
    min: 1,
    max: get("slopes").length,
    step: 1,
    format: String,
    onInput: (value) => setTraits(model, { head: value }),
  });
  card.stage.append(make("p", { class: "text" }, ...words.flatMap((word) => [word, " "])));
  card.controls.append(head.node);
  card.caption.textContent =
    "Purple: what the framed word hears. All words fit it equally well. Line: words before it count less than a tenth of the nearest.";
  /** What the framed word's head gives each word, and from which on it is a tenth of the nearest's or more. */
  const hear = (slope) => {
    const left = tokens.map((_, i) => Math.exp(-slope * (final - i)));
    const total = left.reduce((sum, part) => sum + part, 0);
    return { left, total, from: left.findIndex((one) => one >= left[final - 1] / 10) };
  };
  const first = get("slopes").findIndex((slope) => hear(slope).from <= mark) + 1;
  const draw = () => {
    const slope = get("slopes")[get("head") - 1];
    const { left, total, from } = hear(slope);
    head.set(get("head"));
    words.forEach((word, i) => {
      word.style.setProperty("--w", (left[i] / left[final - 1]).toFixed(4));
      word.dataset.value = (left[i] / total).toFixed(9);
      word.classList.toggle("edge", i > 0 && i === from);
    });
    const now = get("head");
    const verdict = from > mark ? "Not yet" : now > first ? `Yes, but head ${first} was the first` : "Yes, the first";
    const loses = `each step back takes ${formatNumber(100 * (1 - Math.exp(-slope)), 1)}\u00a0% off`;
    const reach = 1 + Math.floor(Math.log(10) / slope); // down to a tenth of the nearest, however long the text
    card.find(
      reach > final
        ? `${verdict}: head ${now} would hear ${reach} words back, because ${loses}; this text has only ${final}.`
        : `${verdict}: head ${now} hears ${final - from} words back, because ${loses}.`,
    );
  };
  const stops = [onTraits(model, ["head"], draw), card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
