// The shifted input: what the decoder reads slides by one place, so that no answer stands in it.
import { toggle } from "./controls.js";
import { css, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .read {
    fill: color-mix(in srgb, var(--tt-memory) 30%, transparent);
    stroke: var(--tt-memory-line);
  }
  .hidden {
    fill: color-mix(in srgb, var(--tt-masked) 40%, transparent);
    stroke: var(--tt-masked-line);
    stroke-dasharray: 3 3;
  }
  .answer {
    fill: color-mix(in srgb, var(--tt-loss) 30%, transparent);
    stroke: var(--tt-loss-line);
    stroke-width: 3;
  }
  .label {
    fill: transparent;
    stroke: color-mix(in srgb, currentColor 50%, transparent);
  }
  .say {
    fill: color-mix(in srgb, var(--tt-decoder) 22%, transparent);
    stroke: var(--tt-decoder-line);
    stroke-width: 3;
  }
  .path {
    fill: none;
    stroke: var(--tt-memory-line);
    stroke-width: 1.5;
  }
  .copy {
    stroke: var(--tt-loss-line);
    stroke-width: 4;
  }
  .tt-picture text {
    font-size: 0.9375rem;
  }
  .place {
    fill: transparent;
  }
`;

/** Two lanes: above what has to be said, below what is read, which slides by `shift` places. */
function drawLanes({ shift }, width, { tokens, source, position, shifted }, pick) {
  const strip = ["<bos>", ...tokens, "<eos>"];
  const slot = Math.min(width / (strip.length - 0.6), 150);
  const left = (width - slot * strip.length) / 2 - slot / 2;
  const fit = Math.max(2, Math.floor((slot - 6) / 8.5));
  const short = (token) => (token.length > fit ? `${token.slice(0, fit - 1)}…` : token);
  const center = (place) => left + (place + 1.5) * slot; // of a position
  const [top, bottom, tall] = [54, 190, 50];
  const box = (key, name, middle, y, token) => [
    [
      key,
      "rect",
      {
        class: name,
        x: middle - slot / 2 + 3,
        y: y - tall / 2,
        width: slot - 6,
        height: tall,
        rx: 7,
      },
    ],
    [`${key}word`, "text", { x: middle, y: y + 5, "text-anchor": "middle", text: short(token) }],
  ];
  const labels = strip.slice(1);
  return [
    [
      "says",
      "text",
      { x: center(0) - slot / 2 + 3, y: 18, text: source ? `has to say, for “${source}”` : "has to say" },
    ],
    ["reads", "text", { x: center(0) - slot / 2 + 3, y: 236, text: "reads" }],
    ...labels.slice(0, position + 1).map((_, place) => [
      `path${place}`,
      "path",
      {
        class: place === position && !shifted ? "path copy" : "path",
        d: `M${center(place)} ${bottom - tall / 2 - 2}L${center(position)} ${top + tall / 2 + 2}`,
      },
    ]),
    ...labels.flatMap((token, place) =>
      box(`label${place}`, place === position ? "say" : "label", center(place), top, token),
    ),
    ...strip.flatMap((token, i) => {
      const place = i - 1 + Math.round(shift);
      if (place < 0 || place >= labels.length) return [];
      const name = place > position ? "hidden" : place === position && !shifted ? "answer" : "read";
      return box(`input${i}`, name, center(i - 1 + shift), bottom, token);
    }),
    ...labels.map((token, place) => [
      `place${place}`,
      "rect",
      {
        class: "place",
        x: center(place) - slot / 2,
        y: top - tall / 2,
        width: slot,
        height: bottom - top + tall,
        press: () => pick(place),
        "aria-label": `position ${place + 1}: has to say ${token}`,
      },
    ]),
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { position: get("position"), shifted: get("shifted") };
  const card = openCard(el, {
    label: "The shifted input",
    question: "Why is the decoder’s input shifted by one?",
    invite: "Take the shift away: where does the answer stand then?",
    onReset: () => set(initial),
    css: CSS,
  });
  const tokens = get("tokens");
  const read = () => ({ tokens, source: get("source"), position: get("position"), shifted: get("shifted") });
  const picture = stage({
    label: "What the decoder has to say, and below it what it reads",
    height: 240,
    draw: (numbers, width) => drawLanes(numbers, width, read(), (position) => set({ position })),
  });
  const shift = toggle({
    label: "shift the input",
    onChange: (shifted) => set({ shifted }),
  });
  card.stage.append(picture.node);
  card.controls.append(shift.node);
  card.caption.textContent = "Dashed: hidden by the causal mask. Tap another word: it has to be said.";
  const draw = () => {
    const { position, shifted } = read();
    const input = shifted ? ["<bos>", ...tokens] : [...tokens, "<eos>"];
    shift.set(shifted);
    picture.show({ shift: shifted ? 1 : 0 });
    const [seen, answer] = [input.slice(0, position + 1).join(" "), [...tokens, "<eos>"][position]];
    card.find(
      `It reads “${seen}” and has to say “${answer}”` +
        (shifted ? ", which it has not seen." : ": it learns to copy. When it writes alone, nothing is there to copy."),
    );
  };
  const stops = [onTraits(model, ["position", "shifted"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
