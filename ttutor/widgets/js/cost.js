// What attention costs by the length, measured and counted. On logarithmic axes a slope is an
// exponent.
import {
  css,
  formatCount,
  formatNumber,
  formatSize,
  make,
  onTraits,
  openFrame,
  refill,
  setTraits,
} from "./core.js";
import { button, select, toggle } from "./controls.js";
import { chart } from "./drawing.js";

const CSS = css`
  .cost {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem 1.5rem;
    align-items: flex-start;
  }
  .cost .tt-chart {
    flex: 2 1 20rem;
  }
  .told {
    flex: 1 1 20rem;
    min-width: min(20rem, 100%);
    font-variant-numeric: tabular-nums;
  }
  .told table {
    border-collapse: collapse;
    width: 100%;
    margin-block-end: 1rem;
  }
  .told caption {
    font-weight: 600;
    text-align: start;
  }
  .told th {
    font-weight: 400;
    text-align: start;
  }
  .told td,
  .told th {
    padding: 0.15rem 0.4rem 0.15rem 0;
    border-block-end: 1px solid var(--line);
  }
  .told td + td {
    white-space: nowrap;
  }
  .told ul {
    padding-inline-start: 1.1rem;
  }
  .cost .key {
    display: inline-block;
    margin-inline-end: 1rem;
  }
  .cost .key svg {
    display: inline;
    width: 1.75rem;
  }
  @container (max-width: 44rem) {
    .cost {
      display: block;
    }
    .told {
      margin-block-start: 0.8rem;
    }
  }
  /* A dash for each kind of attention, the same in every view: the chart's own go by what is shown. */
  .line[stroke*="decoder"] {
    stroke-dasharray: none;
  }
  .line[stroke*="masked"] {
    stroke-dasharray: 2 3;
  }
  .line[stroke*="query"] {
    stroke-dasharray: 7 3;
  }
  .line[stroke*="memory"] {
    stroke-dasharray: 22 3;
  }
  .line[stroke*="value"] {
    stroke-dasharray: 9 3 2 3;
  }
  .line[stroke*="key"] {
    stroke-dasharray: 4 2;
  }
  .line[stroke*="loss"] {
    stroke-dasharray: 9 3 2 3 2 3;
  }
`;

function readState(model) {
  const [lines, figure] = [
    model.get("lines"),
    model.get("figures").find(({ name }) => name === model.get("quantity")),
  ];
  const shown = model
    .get("names")
    .filter(([line]) => figure.lines[line] && lines.includes(line))
    .map(([line, name, colour]) => ({
      name,
      colour,
      points: figure.lines[line],
      dots: true,
      growth: figure.growth[line],
    }));
  const nameOf = Object.fromEntries(model.get("names"));
  const groups = {}; // by length, then by the line that is less from there on
  for (const [length, one, other] of figure.crossings) {
    if (lines.includes(one) && lines.includes(other))
      ((groups[length] ||= {})[one] ||= []).push(`“${nameOf[other]}”`);
  }
  const crossings = Object.entries(groups).map(
    ([length, less]) =>
      `From ${formatCount(Number(length))} tokens on, ${Object.entries(less)
        .map(
          ([one, others], i) =>
            `“${nameOf[one]}” ${i ? "" : "costs "}less than ` +
            others.join(", ").replace(/, (“[^”]*”)$/, " and $1"),
        )
        .join("; ")}.`,
  );
  return {
    figure,
    shown,
    crossings: crossings.length
      ? crossings
      : ["Nowhere: at the lengths that two lines share, their order stays."],
  };
}

function drawTold(told, { shown, crossings }) {
  const row = (tag, [head, ...cells]) =>
    make(
      "tr",
      {},
      make("th", { scope: tag === "th" ? "col" : "row", text: head }),
      ...cells.map((text) => make(tag, { text })),
    );
  refill(
    told,
    make(
      "table",
      {},
      make("caption", { text: "How each line grows at its end" }),
      make("thead", {}, row("th", ["line", "tokens", "cost", "exponent"])),
      make(
        "tbody",
        {},
        ...shown.map(({ name, growth }) =>
          row("td", [
            name,
            `${formatCount(growth.from)} → ${formatCount(growth.to)}`,
            `×\u00a0${formatNumber(growth.times, 2)}`,
            formatNumber(growth.exponent, 2),
          ]),
        ),
      ),
    ),
    make("b", { text: "Where lines cross" }),
    make("ul", {}, ...crossings.map((text) => make("li", { text }))),
  );
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Cost", CSS);
  const names = ["quantity", "lines"];
  const initial = Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const change = (values, words) => {
    setTraits(model, values);
    const { shown } = readState(model);
    const exponents = shown.map(
      ({ name, growth }) => `${name}: exponent ${formatNumber(growth.exponent, 2)}`,
    );
    say(`${words}. ${exponents.join(", ")}`);
  };
  const quantity = select({
    label: "Show",
    options: model.get("figures").map(({ name, label }) => [name, label]),
    onChange: (name) => change({ quantity: name }, "Shown"),
  });
  const lines = model.get("names").map(([name, label]) => ({
    name,
    ...toggle({
      label,
      onChange: (on) =>
        change(
          { lines: [...model.get("lines").filter((one) => one !== name), ...(on ? [name] : [])] },
          `${label} ${on ? "shown" : "hidden"}`,
        ),
    }),
  }));
  const plot = chart({ label: "Cost by length", height: 320 });
  const [told, source] = [make("div", { class: "told" }), make("p", { class: "tt-note" })];
  const look = make("p", {
    class: "tt-note",
    text: "Look at the slopes: 2 is four times the cost for twice the text, 1 twice the cost, 0 the same.",
  });
  root.append(
    make(
      "div",
      { class: "tt-controls" },
      quantity.node,
      button({ label: "Reset", onClick: () => change(initial, "Reset") }),
    ),
    make("div", { class: "tt-controls" }, ...lines.map(({ node }) => node)),
    look,
    make("div", { class: "cost" }, plot.node, told),
    source,
  );

  const draw = () => {
    const state = readState(model);
    const { figure, shown } = state;
    const all = shown.flatMap(({ points }) => points);
    const range = (axis) =>
      all.length
        ? [Math.min, Math.max].map((most) => most(...all.map((point) => point[axis])))
        : [1, 10];
    const [low, high] = range(1).map(Math.log10);
    quantity.set(model.get("quantity"));
    for (const { name, node, set } of lines) {
      set(model.get("lines").includes(name));
      node.hidden = !(name in figure.lines);
    }
    const format = (value) =>
      figure.unit !== "ms"
        ? formatSize(value, figure.unit)
        : value < 1000
          ? `${Number(value.toPrecision(3))}\u00a0ms`
          : formatSize(value / 1000, "s");
    plot.draw({
      title: figure.label,
      series: shown,
      x: { label: "length in tokens", domain: range(0), log: true, format: formatCount },
      y: {
        label: figure.unit === "ms" ? "time" : figure.unit ? "bytes" : "multiply-adds",
        domain: [10 ** Math.floor(low), 10 ** Math.ceil(high)],
        log: true,
        format,
      },
    });
    drawTold(told, state);
    source.textContent = `${figure.note} ${model.get("source")[figure.kind]}`;
  };
  const stop = onTraits(model, names, draw);
  draw();
  return () => {
    stop();
    plot.close();
    close();
  };
}

export default { render };
