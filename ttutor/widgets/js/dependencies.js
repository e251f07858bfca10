// The dependency map: a word of the sentence speaks; arcs and discs show who hears it, and how far each moves.
import { choice, select } from "./controls.js";
import { css, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .wire {
    fill: none;
    stroke: var(--tt-loss-line);
    stroke-linecap: round;
  }
  .moved {
    fill: var(--tt-loss);
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .never {
    fill: var(--tt-page);
    stroke: var(--tt-masked-line);
    stroke-dasharray: 3 3;
  }
  .on {
    fill: color-mix(in srgb, var(--tt-loss) 16%, transparent);
    stroke: var(--tt-loss-line);
    stroke-width: 2;
  }
  .tt-picture text {
    font-size: clamp(0.9375rem, 2.7cqi, 1.25rem);
  }
  .place {
    fill: transparent;
  }
`;

/** Everything that follows from the traits: who speaks, how far each word moves, and whether it is handed on. */
function readState(model) {
  const [tokens, names, maps, shown, selected] = "tokens names maps shown selected"
    .split(" ")
    .map((name) => model.get(name));
  const table = maps[names.indexOf(shown)] || maps[0];
  const at = selected[1] || 0;
  return {
    ...{ tokens, shown, at },
    isChain: /recurrent|RNN|GRU|LSTM/.test(shown),
    sizes: table.map((line) => line[at]),
    most: Math.max(...table.flat()) || 1,
  };
}

/** Who hears best, and why far words do or do not. */
function describe({ tokens, sizes, at, shown, isChain }) {
  const who = `“${tokens[at]}”`;
  const heard = sizes.map((size, i) => (i === at ? 0 : size));
  const best = heard.indexOf(Math.max(...heard));
  const deaf = sizes.includes(0) ? " Dashed words never hear it." : "";
  if (!heard[best]) return `Nobody else hears ${who}.`;
  const after = sizes.slice(at);
  if (isChain && after.every((size, i) => !i || size < after[i - 1]))
    return `Each word passes ${who} on to the next, so it fades.${deaf}`;
  const apart = Math.abs(best - at);
  return `“${tokens[best]}”, ${apart > 1 ? `${apart} words away` : "next to it"}, hears ${who} best${
    apart > 1 && !isChain && !/convolution|layers/.test(shown) ? ": nobody has to pass it on" : ""
  }.${deaf}`;
}

/** The words; above them discs, as large as what they hear; and the way there: hop by hop, or in one leap. */
function drawMap({ shares, from }, width, { tokens, sizes, at, isChain }, pick) {
  const slot = width / tokens.length;
  const x = (i) => (i + 0.5) * slot;
  const most = Math.min(0.46 * slot, 40);
  const fit = Math.max(2, Math.floor(slot / 8));
  const [floor, foot] = [166, 234];
  return [
    ...sizes.map((size, i) => {
      const start = x(isChain ? i - 1 : from);
      const tall = 46 + 0.34 * Math.abs(x(i) - start);
      return (
        size > 0 &&
        i !== at && [
          `wire${i}`,
          "path",
          {
            class: "wire",
            d: `M${start} ${floor}Q${(start + x(i)) / 2} ${floor - Math.min(tall, 150) * 2} ${x(i)} ${floor}`,
            "stroke-width": 1 + 9 * shares[i],
            "stroke-opacity": 0.3 + 0.6 * shares[i],
          },
        ]
      );
    }),
    ["on", "rect", { class: "on", x: x(from) - slot / 2 + 1, y: foot - 21, width: slot - 2, height: 30, rx: 6 }],
    ...tokens.flatMap((token, i) => [
      [
        `node${i}`,
        "circle",
        {
          class: sizes[i] ? "moved" : "never",
          "data-value": sizes[i].toFixed(9),
          cx: x(i),
          cy: floor,
          r: sizes[i] ? Math.max(most * Math.sqrt(shares[i]), 2) : Math.min(9, most),
        },
      ],
      [
        `word${i}`,
        "text",
        {
          x: x(i),
          y: foot,
          "text-anchor": "middle",
          text: token.length > fit ? `${token.slice(0, fit - 1)}…` : token,
        },
      ],
      [
        `pick${i}`,
        "rect",
        {
          class: "place",
          x: x(i) - slot / 2,
          y: 120,
          width: slot,
          height: 128,
          press: () => pick(i),
          "aria-label": `nudge ${token}`,
        },
      ],
    ]),
  ];
}

function render({ model, el }) {
  const set = (values) => setTraits(model, values);
  const initial = { shown: model.get("shown"), selected: model.get("selected") };
  let [state, list, known] = [readState(model), null, ""];
  const card = openCard(el, {
    label: "Dependency map",
    question: "Who hears whom?",
    invite: `${
      model.get("names").length > 1 ? "Choose another network" : "Tap another word"
    }: does a far word hear “${state.tokens[state.at]}” well?`,
    onReset: () => set(initial),
    css: CSS,
  });
  const picture = stage({
    label: "A sentence, and how far each word moves when one of them is nudged",
    height: 250,
    draw: (numbers, width) => drawMap(numbers, width, state, (at) => set({ selected: [-1, at] })),
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
    picture.show({ shares: state.sizes.map((size) => size / state.most), from: state.at });
    card.find(describe(state));
    const [total, { length }] = [model.get("total"), state.tokens];
    card.caption.textContent =
      "Disc: how far the word moves when the framed one is nudged. Dashed: never, however hard." +
      (total > length ? ` Only the first ${length} of ${total} tokens.` : "");
  };
  const names = ["tokens", "names", "maps", "shown", "selected", "total"];
  const stops = [onTraits(model, names, draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
