// The dependency map: nudge an input word and see which outputs move, and how far.
import { choice, select } from "./controls.js";
import { css, formatNumber, onTraits, openCard, setTraits } from "./core.js";
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
    fill: color-mix(in srgb, var(--tt-masked) 60%, transparent);
    stroke: var(--tt-masked-line);
    stroke-dasharray: 3 3;
  }
  .on {
    fill: color-mix(in srgb, var(--tt-loss) 18%, transparent);
    stroke: var(--tt-loss-line);
    stroke-width: 2;
  }
  .place {
    fill: transparent;
  }
`;

/** How many times; above ten without decimals. */
const write = (times) =>
  times < 9.95 ? formatNumber(times, 1) : times < 1e4 ? formatNumber(times, 0) : "over 10\u202f000";

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

function describe({ tokens, sizes, fromInput, at }) {
  const moved = sizes.filter((size) => size);
  const times = Math.max(...moved) / Math.min(...moved);
  // From the nearest to the farthest: does it fade, or does distance not matter?
  const apart = (i) => Math.abs(i - at);
  const order = sizes.map((_, i) => i).filter((i) => sizes[i]);
  order.sort((a, b) => apart(a) - apart(b));
  const isFading = order.every(
    (i, place) => !place || apart(i) === apart(order[place - 1]) || sizes[i] < sizes[order[place - 1]],
  );
  const shape = times < 3 ? " Distance hardly matters." : isFading ? " It fades with distance." : "";
  const range = moved.length > 1 ? `, the loudest ${write(times)} times the faintest.${shape}` : ".";
  return fromInput
    ? `Nudge “${tokens[at]}”: ${moved.length} of ${tokens.length} outputs hear it${range}`
    : `“${tokens[at]}” hears ${moved.length} of ${tokens.length} words${range}`;
}

/** Inputs below, outputs above; lines and bars of the one that is chosen. */
function drawMap({ shares }, width, { tokens, sizes, fromInput, at }, pick) {
  const slot = (width - 64) / tokens.length;
  const x = (i) => 64 + (i + 0.5) * slot;
  const [high, low] = [150, 236];
  const fit = Math.max(2, Math.floor(slot / 8));
  const short = (token) => (token.length > fit ? `${token.slice(0, fit - 1)}…` : token);
  const word = (name, y, output) =>
    tokens.flatMap((token, i) => [
      fromInput !== output &&
        i === at && [
          `on${name}`,
          "rect",
          { class: "on", x: x(i) - slot / 2 + 1, y: y - 13, width: slot - 2, height: 26, rx: 6 },
        ],
      [`${name}${i}`, "text", { x: x(i), y: y + 5, "text-anchor": "middle", text: short(token) }],
      [
        `pick${name}${i}`,
        "rect",
        {
          class: "place",
          x: x(i) - slot / 2,
          y: y - 22,
          width: slot,
          height: 44,
          press: () => pick(output ? [i, -1] : [-1, i]),
          "aria-label": output ? `what moves the output ${token}` : `nudge the input ${token}`,
        },
      ],
    ]);
  return [
    ["outputs", "text", { x: 0, y: high + 5, text: "outputs" }],
    ["inputs", "text", { x: 0, y: low + 5, text: "inputs" }],
    ...sizes.map(
      (size, i) =>
        size > 0 && [
          `wire${i}`,
          "path",
          {
            class: "wire",
            d: `M${x(fromInput ? at : i)} ${low - 16}L${x(fromInput ? i : at)} ${high + 16}`,
            "stroke-width": 0.7 + 5 * shares[i],
            "stroke-opacity": 0.35 + 0.65 * shares[i],
          },
        ],
    ),
    ...sizes.map((size, i) => {
      const tall = size ? Math.max(118 * shares[i], 2) : 6;
      return [
        `bar${i}`,
        "rect",
        {
          class: size ? "moved" : "never",
          "data-value": size.toFixed(9),
          x: x(i) - 0.3 * slot,
          width: 0.6 * slot,
          y: fromInput ? high - 16 - tall : low + 18,
          height: fromInput ? tall : 0.5 * tall,
        },
      ];
    }),
    ...word("output", high, true),
    ...word("input", low, false),
  ];
}

function render({ model, el }) {
  const set = (values) => setTraits(model, values);
  const initial = { shown: model.get("shown"), selected: model.get("selected") };
  const card = openCard(el, {
    label: "Dependency map",
    question: "Who hears whom?",
    invite: "Tap an input below to nudge it: which outputs move? Tap an output to see what it hears.",
    onReset: () => set(initial),
    css: CSS,
  });
  let [state, list, known] = [null, null, ""];
  const picture = stage({
    label: "Inputs below, outputs above, and how far each moves",
    height: 310,
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
      "The bars have one scale for each network. Dashed: does not move, however hard you nudge." +
      (total > length ? ` Only the first ${length} of ${total} tokens.` : "");
  };
  const names = ["tokens", "names", "maps", "shown", "selected", "total"];
  const stops = [onTraits(model, names, draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
