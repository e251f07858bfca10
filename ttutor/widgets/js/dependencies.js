// The dependency map: nudge an input word and see which outputs move, and how far.
import { choice, select } from "./controls.js";
import { css, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .wire {
    fill: none;
    stroke: currentColor;
  }
  .moved {
    fill: var(--tt-loss);
    stroke: var(--tt-loss-line);
  }
  .never {
    fill: var(--tt-page);
    stroke: var(--tt-masked-line);
    stroke-dasharray: 3 3;
  }
  .node,
  .on {
    fill: var(--tt-page);
    stroke: currentColor;
  }
  .on {
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

/** Everything that follows from the traits: what is nudged or heard, and how far each other end moves. */
function readState(model) {
  const [tokens, names, maps, shown, selected] = "tokens names maps shown selected"
    .split(" ")
    .map((name) => model.get(name));
  const table = maps[names.indexOf(shown)] || maps[0];
  const [row, column] = selected.length ? selected : [-1, 0];
  const fromInput = column >= 0;
  return {
    ...{ tokens, shown, table, fromInput },
    at: fromInput ? column : row,
    sizes: fromInput ? table.map((line) => line[column]) : table[row],
    most: Math.max(...table.flat()) || 1,
  };
}

/** Who does not hear, and whether the network as a whole fades with distance. */
function describe({ tokens, sizes, fromInput, at, shown, table }) {
  const who = `“${tokens[at]}”`;
  const isWhole = sizes.every((size) => size);
  const heard = fromInput
    ? `${isWhole ? "Every" : "No dashed"} word hears ${who}.`
    : `${who} hears ${isWhole ? "every" : "no dashed"} word.`;
  if (sizes.filter((size) => size).length < 4) return heard;
  const means = tokens.map((_, apart) => {
    const all = table.flatMap((row, i) => row.filter((size, j) => size && Math.abs(i - j) === apart));
    return all.reduce((total, size) => total + size, 0) / (all.length || 1);
  });
  const isFading = means.every((mean, apart) => !apart || !mean || mean < means[apart - 1]);
  const because = isFading
    ? /recurrent|RNN|GRU|LSTM/.test(shown)
      ? "It fades, because it passes through all between."
      : "It fades with distance."
    : /attention/.test(shown)
      ? "Far need not be fainter: nothing lies between."
      : "";
  return `${heard} ${because}`.trim();
}

/** Inputs below, outputs above; lines and discs, as large as what they hear, of the one that is chosen. */
function drawMap({ shares }, width, { tokens, sizes, fromInput, at }, pick) {
  const slot = (width - 60) / tokens.length;
  const x = (i) => 60 + (i + 0.5) * slot;
  const most = Math.min(0.46 * slot, 36);
  const [high, low] = [70, 216];
  const fit = Math.max(2, Math.floor(slot / 9));
  const short = (token) => (token.length > fit ? `${token.slice(0, fit - 1)}…` : token);
  const row = (name, y, label, output) =>
    tokens.flatMap((token, i) => {
      const heard = fromInput === output;
      const size = sizes[i];
      return [
        [
          `${name}node${i}`,
          "circle",
          {
            class: heard ? (size ? "moved" : "never") : i === at ? "on" : "node",
            "data-value": heard ? size.toFixed(9) : null,
            cx: x(i),
            cy: y,
            r: heard && size ? Math.max(most * Math.sqrt(shares[i]), 2) : Math.min(i === at && !heard ? 11 : 7, most),
          },
        ],
        [`${name}${i}`, "text", { x: x(i), y: label, "text-anchor": "middle", text: short(token) }],
        [
          `pick${name}${i}`,
          "rect",
          {
            class: "place",
            x: x(i) - slot / 2,
            y: Math.min(y, label) - 20,
            width: slot,
            height: Math.abs(y - label) + 36,
            press: () => pick(output ? [i, -1] : [-1, i]),
            "aria-label": output ? `what moves the output ${token}` : `nudge the input ${token}`,
          },
        ],
      ];
    });
  return [
    ["outputs", "text", { x: 0, y: 18, text: "outputs" }],
    ["inputs", "text", { x: 0, y: 272, text: "inputs" }],
    ...sizes.map(
      (size, i) =>
        size > 0 && [
          `wire${i}`,
          "path",
          {
            class: "wire",
            d: `M${x(fromInput ? at : i)} ${low}L${x(fromInput ? i : at)} ${high}`,
            "stroke-width": 0.7 + 7 * shares[i],
            "stroke-opacity": 0.35 + 0.65 * shares[i],
          },
        ],
    ),
    ...row("output", high, 18, true),
    ...row("input", low, 272, false),
  ];
}

function render({ model, el }) {
  const set = (values) => setTraits(model, values);
  const initial = { shown: model.get("shown"), selected: model.get("selected") };
  const card = openCard(el, {
    label: "Dependency map",
    question: "Who hears whom?",
    invite: "Tap a word below to nudge it: who hears it? Then try another network.",
    onReset: () => set(initial),
    css: CSS,
  });
  let [state, list, known] = [null, null, ""];
  const picture = stage({
    label: "Inputs below, outputs above, and how far each moves",
    height: 282,
    draw: (numbers, width) => drawMap(numbers, width, state, (selected) => set({ selected })),
  });
  card.stage.append(picture.node);
  const draw = () => {
    const names = model.get("names");
    state = readState(model);
    if (known !== (known = JSON.stringify(names))) {
      const short = names.join("").length < 48;
      list = (short ? choice : select)({
        ...(short ? { name: "Network" } : { label: "Network" }),
        options: names.map((name) => [name, name]),
        onChange: (shown) => set({ shown }),
      });
      card.controls.replaceChildren(list.node);
    }
    list.set(state.shown);
    picture.show({ shares: state.sizes.map((size) => size / state.most) });
    card.find(describe(state));
    const [total, { length }] = [model.get("total"), state.tokens];
    card.caption.textContent =
      "A disc’s area: how far it moves. Dashed: never, however hard you nudge." +
      (total > length ? ` Only the first ${length} of ${total} tokens.` : "");
  };
  const names = ["tokens", "names", "maps", "shown", "selected", "total"];
  const stops = [onTraits(model, names, draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
