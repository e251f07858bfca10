// What a longer text costs: at every length the parts of a forward pass share the height; below, all costs at one.
import { css, formatCount, formatNumber, formatSize, make, onTraits, openCard, refill, setTraits } from "./core.js";
import { select } from "./controls.js";
import { stage } from "./drawing.js";

const CSS = css`
  .part,
  .square {
    fill: color-mix(in srgb, currentColor var(--f), var(--tt-page));
    stroke: var(--tt-page);
  }
  .square {
    fill: var(--tt-weights);
    stroke: var(--tt-weights-line);
    stroke-width: 2;
  }
  .rule {
    stroke: currentColor;
    stroke-dasharray: 5 5;
    stroke-opacity: 0.6;
  }
  .here {
    stroke: currentColor;
    stroke-width: 2;
  }
  .knob {
    fill: currentColor;
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .costs {
    border-collapse: collapse;
    width: 100%;
    margin-top: 0.75rem;
    font-variant-numeric: tabular-nums;
  }
  .costs :is(th, td) {
    padding: 0.2rem 0 0.2rem 0.75rem;
    text-align: end;
    border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent);
  }
  .costs tr > :first-child {
    padding-inline-start: 0;
    text-align: start;
  }
  .costs .row > th {
    padding-inline-start: 1rem;
    font-weight: 400;
  }
  .costs small {
    display: block;
    overflow-wrap: anywhere;
    font-family: ui-monospace, Menlo, monospace;
  }
  .tt-finding {
    min-height: 4.4em;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 8.7em;
    }
  }
`;

const STEPS = 13; // doublings from the shortest text to the longest
const LENGTHS = Array.from({ length: 2 * STEPS + 1 }, (_, i) => 16 * 2 ** (i >> 1) * (i % 2 ? 1.5 : 1));
const VIEWS = [
  ["One forward pass", "FLOP"],
  ["Parameters", ""],
  ["Memory to run", "B"],
  ["Memory to train", "B"],
];
const doublings = (length) => Math.log2(length / LENGTHS[0]);
const costAt = (length) => (one) => one[0] + length * (one[1] + length * one[2]);
const total = (rows, length) => rows.map(costAt(length)).reduce((sum, cost) => sum + cost, 0);

/** The model that is shown: of each view its rows `[name, formula, growth]`, what grows with the square first. */
function readState(model) {
  const [length, name] = [model.get("n_tokens"), model.get("model")];
  const facts = model.get("models").find((one) => one.name === name);
  const views = model
    .get("forms")
    [facts.form].map(([, rows], view) =>
      rows.map((row, i) => [...row, facts.growth[view][i]]).sort(([, , one], [, , other]) => !!other[2] - !!one[2]),
    );
  const work = views[0].map(([, , growth]) => growth);
  const square = work.filter(([, , squares]) => squares);
  const share = (at) => total(square, at) / total(work, at);
  const [words, text, size] = facts.word === "patch" ? ["patches", "image", "large"] : ["words", "text", "long"];
  const [more, most] = ["er", "est"].map((end) => size.replace(/e?$/, end) + ` ${text}`);
  return { ...facts, length, views, work, share, words, text, size, more, most, half: halfOf(share) };
}

/** The length at which half of the work grows with the square; none where even the longest text stays below. */
function halfOf(share) {
  let [low, high] = [1, LENGTHS.at(-1)];
  if (share(high) < 0.5) return null;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (share(middle) < 0.5) low = middle;
    else high = middle;
  }
  return high;
}

const nearest = (list, doubled) =>
  list.reduce((best, one) => (Math.abs(doublings(one) - doubled) < Math.abs(doublings(best) - doubled) ? one : best));

/** Where the ball can stand: the length of half takes the place of the one that is nearest to it. */
const stopsOf = ({ half }) => {
  const replaced = half && nearest(LENGTHS, doublings(half));
  return LENGTHS.map((length) => (length === replaced ? half : length));
};

/** The parts one above the other, what grows with the square lowest. */
function drawShares({ at, share, tops }, width, height, { views, longest, length, words, text, size, drag }) {
  const [left, right, top, floor] = [46, width - 10, 24, height - 24];
  const x = (doubled) => left + (Math.min(Math.max(doubled, 0), STEPS) / STEPS) * (right - left);
  const y = (part) => floor - part * (floor - top);
  const line = (parts) => parts.map((part, i) => `${x(doublings(LENGTHS[i])).toFixed(1)} ${y(part).toFixed(1)}`);
  const below = (i, k) => (i ? tops[i - 1][k] : 0);
  const areas = views[0].map(([name, , growth], i) => [
    name,
    "path",
    {
      class: growth[2] ? "square" : "part",
      style: `--f: ${8 + 8 * i}%`,
      d: `M${[...line(tops[i]), ...line(LENGTHS.map((_, k) => below(i, k))).reverse()].join("L")}Z`,
    },
  ]);
  // A name stands where its part has room for the whole of it, in one line or word by word, clear of the ball.
  const fit = (lines, i, atEnd) => {
    const [wide, tall] = [6.8 * Math.max(...lines.map((line) => line.length)), 17 * lines.length];
    const from = atEnd ? right - 10 - wide : left + 10;
    const ends = [from, from + wide].map((to) => Math.round(((to - left) / (right - left)) * (LENGTHS.length - 1)));
    const [upper, lower] = [Math.min(...ends.map((k) => tops[i][k])), Math.max(...ends.map((k) => below(i, k)))];
    const middle = y((upper + lower) / 2);
    const aside = Math.abs(x(at) - from - wide / 2) > wide / 2 + 14 || Math.abs(y(share) - middle) > tall / 2 + 12;
    if (!aside || y(lower) - y(upper) < tall) return null;
    return lines.map((text, row) => ({ x: from, y: middle + 5 + 17 * (row - (lines.length - 1) / 2), text }));
  };
  const names = views[0].flatMap(([name, , growth], i) =>
    ([[name], name.split(" ")].map((lines) => fit(lines, i, growth[2])).find(Boolean) || []).map((line, row) => [
      `name ${name} ${row}`,
      "text",
      { class: "part-name", ...line },
    ]),
  );
  const rule = (key, d) => [key, "path", { class: "rule", d }];
  const end = longest && x(doublings(longest));
  return [
    ...areas,
    ...names,
    ...[0, 0.5, 1].map((part) => [
      `share${part}`,
      "text",
      { x: left - 6, y: y(part) + 4, "text-anchor": "end", text: `${100 * part}\u00a0%` },
    ]),
    ...(width < 400 ? [16, 4096, 65_536] : [16, 256, 4096, 65_536]).map((count, i) => [
      `length${count}`,
      "text",
      {
        x: x(doublings(count)),
        y: floor + 18,
        "text-anchor": i ? "middle" : "start",
        text: formatCount(count) + (i ? "" : ` ${words}`),
      },
    ]),
    rule("half", `M${left} ${y(0.5)}H${right}`),
    longest && rule("longest", `M${end} ${top}V${floor}`),
    ["here", "path", { class: "here", d: `M${x(at)} ${top - 4}V${floor}` }],
    [
      "told",
      "text",
      {
        x: Math.min(Math.max(x(at), left + 60), right - 60),
        y: 13,
        "text-anchor": "middle",
        "font-weight": 600,
        text: `${formatCount(length)} ${words}`,
      },
    ],
    [
      "knob",
      "circle",
      {
        class: "knob pull",
        cx: x(at),
        cy: y(share),
        r: 11,
        "data-value": share.toFixed(9),
        "aria-label": `how ${size} the ${text} is`,
        "aria-valuenow": length,
        "aria-valuetext": `${formatCount(length)} ${words}`,
        stride: (right - left) / (LENGTHS.length - 1),
        pull: (to) => drag(((to - left) / (right - left)) * STEPS),
      },
    ],
  ];
}

const percent = (share) =>
  share < 0.0005 ? "less than 0.1\u00a0%" : `${formatNumber(100 * share, share < 0.0995 ? 1 : 0)}\u00a0%`;

/** What comparing all with all takes of the work now, and at twice the length. */
function findingOf({ name, length, share, work, words, more, longest, half, causal }) {
  const times = formatNumber(total(work, 2 * length) / total(work, length), 1);
  return (
    (length === half
      ? `Here purple is half of the work, at ${formatCount(length)} ${words}: `
      : `With ${formatCount(length)} ${words} purple is ${percent(share(length))} of the work: `) +
    `all pairs of ${words} are counted${causal ? ", also those that a causal mask hides" : ""}. ` +
    `Twice as many ${words} take ${times} times the work, and purple is ${percent(share(2 * length))} of it.` +
    (longest && length > longest
      ? ` But ${name} ends at ${formatCount(longest)} positions: a ${more} is a calculation only.`
      : "")
  );
}

/** All costs at this length and at twice that, each part with its formula. */
function tableOf({ views, length, words }) {
  const cells = (growth, unit) =>
    [length, 2 * length].map((at) =>
      make("td", { "data-value": total(growth, at), text: formatSize(total(growth, at), unit) }),
    );
  const line = (name, words, ...rest) => make("tr", { class: name }, make("th", { scope: "row" }, ...words), ...rest);
  const head = [length, 2 * length].map((at) => make("th", { scope: "col", text: `${formatCount(at)} ${words}` }));
  return [
    make("thead", {}, make("tr", {}, make("td"), ...head)),
    ...VIEWS.map(([name, unit], i) =>
      make(
        "tbody",
        {},
        line(
          "total",
          [name],
          ...cells(
            views[i].map(([, , growth]) => growth),
            unit,
          ),
        ),
        ...views[i].map(([name, formula, growth]) =>
          line("row", [name, make("small", { text: formula })], ...cells([growth], unit)),
        ),
      ),
    ),
  ];
}

function render({ model, el }) {
  const [start, set] = [
    { model: model.get("model"), n_tokens: model.get("n_tokens") },
    (values) => setTraits(model, values),
  ];
  const card = openCard(el, {
    label: "Sizes",
    onReset: () => set(start),
    css: CSS,
  });
  let state = readState(model);
  const drag = (doubled) => set({ n_tokens: nearest(stopsOf(state), doubled) });
  const picture = stage({
    label: "The share of each part in a forward pass, by the length of the text",
    height: (width) => Math.min(320, 130 + 0.4 * width),
    draw: (numbers, width, height) => drawShares(numbers, width, height, { ...state, drag }),
  });
  const models = select({
    label: "Model",
    options: model.get("models").map(({ name }) => [name, name]),
    onChange: (name) => set({ model: name }),
  });
  const table = make("table", { class: "costs" });
  const sizes = make("p", { class: "tt-note" });
  card.stage.append(picture.node);
  card.controls.append(models.node);
  card.more("All costs, each part with its formula", table, sizes);

  const draw = () => {
    state = readState(model);
    const { length, work, share, text, size, more, most, half } = state;
    card.ask(
      `What does a ${more} cost?`,
      half
        ? `Drag the ball to where purple is half of the work. How ${size} is the ${text} there?`
        : `Drag the ball to a ${more}: what becomes of purple?`,
    );
    models.set(state.name);
    const tops = work.map((_, i) => LENGTHS.map((at) => total(work.slice(0, i + 1), at) / total(work, at)));
    picture.show({ at: doublings(length), share: share(length), tops });
    card.find(findingOf(state));
    card.caption.textContent = state.longest
      ? `Dashed: half of the work, and the ${most} of this model.`
      : "Dashed: half of the work.";
    refill(table, ...tableOf(state));
    sizes.textContent = `One ${text}, each number in ${model.get("precision")}. ${state.sizes.map(([name, size]) => `${name} = ${formatCount(size)}`).join(", ")}.`;
  };
  const stops = [onTraits(model, ["model", "n_tokens"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
