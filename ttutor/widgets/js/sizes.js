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
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 7.3em;
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
  return { ...facts, length, views, work, share: (at) => total(square, at) / total(work, at) };
}

/** The parts one above the other, what grows with the square lowest. */
function drawShares({ at, share, tops }, width, height, { views, longest, length, word, drag }) {
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
  const names = views[0].map(([name, , growth], i) => {
    const k = growth[2] ? LENGTHS.length - 4 : 3;
    const room = (tops[i][k] - below(i, k)) * (floor - top) > 18;
    const place = growth[2] ? { x: right - 10, "text-anchor": "end" } : { x: left + 10 };
    return [`name ${name}`, "text", { ...place, y: y((tops[i][k] + below(i, k)) / 2) + 5, text: room ? name : "" }];
  });
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
    ...[16, 256, 4096, 65_536].map((count, i) => [
      `length${count}`,
      "text",
      {
        x: x(doublings(count)),
        y: floor + 18,
        "text-anchor": i ? "middle" : "start",
        text: formatCount(count) + (i ? "" : ` ${word}s`),
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
        text: `${formatCount(length)} ${word}s`,
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
        "aria-label": "length of the text",
        "aria-valuenow": length,
        "aria-valuetext": `${formatCount(length)} ${word}s`,
        stride: (right - left) / (LENGTHS.length - 1),
        pull: (to) => drag(((to - left) / (right - left)) * STEPS),
      },
    ],
  ];
}

const percent = (share) => `${formatNumber(100 * share, share < 0.0995 ? 1 : 0)}\u00a0%`;

/** What comparing all with all takes of the work now, and at twice the length. */
function findingOf({ name, length, share, work, word, longest }) {
  const times = formatNumber(total(work, 2 * length) / total(work, length), 1);
  return (
    `With ${formatCount(length)} ${word}s purple is ${percent(share(length))} of the work: each ${word} meets each ${word}. ` +
    `Twice as many ${word}s take ${times} times the work, and purple is ${percent(share(2 * length))} of it.` +
    (longest && length > longest
      ? ` But ${name} ends at ${formatCount(longest)} positions: a longer text is a calculation only.`
      : "")
  );
}

/** All costs at this length and at twice that, each part with its formula. */
function tableOf({ views, length, word }) {
  const cells = (growth, unit) =>
    [length, 2 * length].map((at) =>
      make("td", { "data-value": total(growth, at), text: formatSize(total(growth, at), unit) }),
    );
  const line = (name, words, ...rest) => make("tr", { class: name }, make("th", { scope: "row" }, ...words), ...rest);
  const head = [length, 2 * length].map((at) => make("th", { scope: "col", text: `${formatCount(at)} ${word}s` }));
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
    question: "What does a longer text cost?",
    invite: "Drag the ball to where purple is half of the work. How long is the text there?",
    onReset: () => set(start),
    css: CSS,
  });
  let state = readState(model);
  const far = (doubled) => (length) => Math.abs(doublings(length) - doubled);
  const drag = (doubled) =>
    set({ n_tokens: LENGTHS.reduce((best, one) => (far(doubled)(one) < far(doubled)(best) ? one : best)) });
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
    const { length, work, share } = state;
    models.set(state.name);
    const tops = work.map((_, i) => LENGTHS.map((at) => total(work.slice(0, i + 1), at) / total(work, at)));
    picture.show({ at: doublings(length), share: share(length), tops });
    card.find(findingOf(state));
    card.caption.textContent = state.longest
      ? "Dashed: half of the work, and the longest text of this model."
      : "Dashed: half of the work.";
    refill(table, ...tableOf(state));
    sizes.textContent = `One text, each number in ${model.get("precision")}. ${state.sizes.map(([name, size]) => `${name} = ${formatCount(size)}`).join(", ")}.`;
  };
  const stops = [onTraits(model, ["model", "n_tokens"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
