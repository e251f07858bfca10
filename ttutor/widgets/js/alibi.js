// ALiBi: a text as one head hears it from its last word, each word as strong as distance leaves it.
import { slider } from "./controls.js";
import { css, formatNumber, make, onTraits, openCard, setTraits } from "./core.js";

const CSS = css`
  .text {
    margin: 0;
    font-size: 1.0625rem;
    line-height: 2;
  }
  .word {
    padding: 0.15rem 0.25rem;
    border-radius: 0.3rem;
    background: color-mix(in srgb, var(--tt-weights) calc(var(--w) * 100%), transparent);
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
  const card = openCard(el, {
    label: "ALiBi",
    question: "How far back does each head hear?",
    invite: "Go through the heads: the framed word listens, and purple is what it hears.",
    onReset: () => setTraits(model, initial),
    css: CSS,
  });
  const words = tokens.map((text, i) =>
    make("span", { class: `word tt-ease${i === tokens.length - 1 ? " last" : ""}`, text }),
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
    "All words fit equally well here; only distance tells them apart. Each head has the same amount to give; the nearest word has the full colour.";
  const draw = () => {
    const slope = get("slopes")[get("head") - 1];
    const left = tokens.map((_, i) => Math.exp(-slope * (tokens.length - 1 - i)));
    const total = left.reduce((sum, part) => sum + part, 0);
    head.set(get("head"));
    words.forEach((word, i) => {
      word.style.setProperty("--w", (left[i] / left[tokens.length - 2]).toFixed(4));
      word.dataset.value = (left[i] / total).toFixed(9);
    });
    let [reach, heard] = [0, 0];
    while (heard < 0.9) {
      heard += left[tokens.length - 1 - reach] / total;
      reach += 1;
    }
    card.find(
      `Head ${get("head")} takes ${formatNumber(slope, slope < 0.1 ? 3 : 2)} off a score for every word of distance: nine ` +
        `tenths of its attention stay within ${reach} of the ${tokens.length} words.`,
    );
  };
  const stops = [onTraits(model, ["head"], draw), card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
