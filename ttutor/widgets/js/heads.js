// Attention heads as small maps, one of them large as lines, and the sum of what they write.
import { css, formatNumber, make, onTraits, openFrame, refill, setTraits, svg } from "./core.js";
import { button, rovingGrid, select, toggle } from "./controls.js";
import { bars } from "./drawing.js";

const CSS = css`
  .heads {
    display: grid;
    grid-template-columns: repeat(auto-fill, minmax(7rem, 1fr));
    gap: 0.5rem;
    margin: 0.5rem 0;
  }
  .heads div {
    display: grid;
    grid-template-rows: 1fr auto;
  }
  .heads .tt-button {
    padding: 0.3rem;
    text-align: start;
  }
  .heads [aria-pressed="true"] {
    box-shadow: inset 0 0 0 2px;
  }
  .off svg {
    opacity: 0.3;
  }
  .heads small,
  svg {
    display: block;
  }
  .heads svg {
    height: 4.5rem;
  }
  .lines {
    display: grid;
    grid-template-columns: auto minmax(3rem, 13rem) auto;
  }
  .view {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem 2rem;
    margin: 0.3rem 0 1rem;
  }
  .view > :last-child {
    flex: 0 1 22rem;
  }
  svg {
    width: 100%;
    height: 100%;
    fill: var(--tt-weights-line);
    stroke: var(--tt-weights-line);
  }
  rect {
    stroke: none;
  }
  line {
    vector-effect: non-scaling-stroke;
  }
  .end {
    display: flex;
    justify-content: space-between;
    align-items: center;
    gap: 0.5rem;
    width: 100%;
    height: 2rem;
    padding: 0 0.3rem;
    border-color: transparent;
  }
  button.end {
    justify-content: end;
  }
  .end span {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: pre;
    max-width: 6em;
  }
  .end[aria-pressed="true"] {
    border-color: var(--tt-query-line);
    background: color-mix(in srgb, var(--tt-query) 14%, transparent);
  }
  p {
    font-size: 0.85em;
    margin: 0.4rem 0;
  }
  .sum {
    display: grid;
    grid-template-columns: auto minmax(4rem, 26rem) auto auto;
    gap: 0.2rem 0.7rem;
    max-width: 46rem;
    align-items: center;
  }
  .sum div {
    height: 0.9rem;
    outline: 1px dashed;
  }
  data {
    text-align: end;
    font-variant-numeric: tabular-nums;
  }
`;

const KEPT = ["layer", "head", "query", "on"];
const STATE = [
  ..."tokens key_tokens weights products score_names scores labels layers note rest_name".split(
    " ",
  ),
  ...KEPT,
];
const two = (value) => formatNumber(value, 2);
const number = (value) => make("data", { "data-value": value.toFixed(9), text: two(value) });
const add = (values) => values.reduce((sum, value) => sum + value, 0);

/** Lengths of the parts that are on, their parts along the sum, and the sum's length. */
function writeParts(products, on) {
  const dot = (i, j) => (i < j ? dot(j, i) : products[(i * (i + 1)) / 2 + j]);
  const shares = on.map((yes, i) => add(on.map((also, j) => (yes && also ? dot(i, j) : 0))));
  const total = Math.sqrt(Math.max(add(shares), 0));
  return [
    on.map((yes, i) => (yes ? Math.sqrt(dot(i, i)) : 0)),
    shares.map((one) => one / (total || 1)),
    total,
  ];
}

function drawing(weights, mark, width = weights[0].length, height = weights.length) {
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...weights.flatMap((row, y) =>
      row.map((weight, x) => (weight < 0.01 ? null : mark(weight, x, y))),
    ),
  );
}

function drawLines({ tokens, key_tokens: keys, weights: all, layer, head, query }, onQuery) {
  const weights = all[layer][head];
  const end = (tag, text, more, weight) =>
    make(tag, { class: "end tt-button", ...more }, make("span", { text, title: text }), weight);
  const queries = tokens.map((token, i) => {
    const follow = () => onQuery(i);
    const top = Math.max(...weights[i]);
    return end("button", token, {
      "data-row": i,
      "data-column": 0,
      tabindex: i === query ? 0 : -1,
      "aria-pressed": String(i === query),
      "aria-label": `${token} attends most to ${keys[weights[i].indexOf(top)]}, ${two(top)}`,
      onpointerover: follow,
      onfocus: follow,
      onclick: follow,
    });
  });
  const node = make(
    "div",
    { class: "lines" },
    ...["queries", "", "keys"].map((text) => make("b", { text })),
    make("div", {}, ...queries),
    drawing(
      weights,
      (weight, x, y) =>
        svg("line", {
          x2: 9,
          y1: y + 0.5,
          y2: x + 0.5,
          "stroke-width": 9 * weight,
          opacity: (y === query ? 1 : 0.3) * (0.2 + 0.8 * weight),
        }),
      9,
      Math.max(tokens.length, keys.length),
    ),
    make("div", {}, ...keys.map((text, j) => end("div", text, {}, number(weights[query][j])))),
  );
  rovingGrid(
    node,
    (row) => queries[row],
    () => ({ firstRow: 0, lastRow: tokens.length - 1, firstColumn: 0, lastColumn: 0 }),
  );
  return node;
}

/** Each box begins where the sum had come to, and goes back if it points against it. */
function drawSum({ products, layer, query, on, tokens, rest_name: rest }) {
  const [lengths, along, total] = writeParts(products[layer][query], [...on, true]);
  const starts = lengths.map((length, i) => add(along.slice(0, i)) - (along[i] < 0 ? length : 0));
  const low = Math.min(0, ...starts);
  const unit = 100 / (Math.max(total, ...starts.map((from, i) => from + lengths[i])) - low || 1);
  const row = (text, from, length, part, colour) => [
    make("span", { text }),
    make("div", {
      style:
        `margin-left: ${unit * (from - low)}%; width: ${unit * length}%; ` +
        `background: linear-gradient(to ${part < 0 ? "left" : "right"},` +
        `var(--tt-${colour}) ${(100 * Math.abs(part)) / (length || 1)}%, transparent 0)`,
    }),
    number(length),
    number(part),
  ];
  return [
    make("b", { text: `Through W_O: what the layer adds at “${tokens[query]}”` }),
    make(
      "div",
      { class: "sum" },
      ...["", "", "length", "along sum"].map((text) => make("small", { text })),
      ...lengths.flatMap((length, i) =>
        row(i in on ? `head ${i}` : rest, starts[i], length, along[i], "value"),
      ),
      ...row("sum", 0, total, total, "memory"),
    ),
    make("p", {
      text:
        `Lengths (outlined) add up to ${two(add(lengths))}, the sum has length ${two(total)}: ` +
        "less, where heads " +
        "write in different directions. The parts along the sum (filled) add up exactly.",
    }),
  ];
}

function headCard(head, pick, turn) {
  const open = make("button", { class: "tt-button", onclick: pick });
  const isOn = toggle({ label: `head ${head} on`, onChange: turn });
  const node = make("div", {}, open, isOn.node);
  return {
    node,
    draw: (state) => {
      open.setAttribute("aria-pressed", state.head === head);
      node.className = state.on[head] ? "" : "off";
      isOn.set(state.on[head]);
      refill(
        open,
        drawing(state.weights[state.layer][head], (opacity, x, y) =>
          svg("rect", { x, y, width: 1, height: 1, opacity }),
        ),
        make("b", { text: `head ${head}` }),
        make("small", { text: state.labels[state.layer][head] }),
      );
    },
  };
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Attention heads", CSS);
  const read = (names) => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const initial = read(KEPT);
  const change = (values, words) => {
    setTraits(model, values);
    say(words || title.textContent);
  };
  const turn = (label, next) => change({ on: model.get("on").map(next) }, label);
  const all = (label, yes) => button({ label, onClick: () => turn(label, () => yes) });
  const layer = select({
    label: "Layer",
    options: model.get("layers").map((text, i) => [i, text]),
    onChange: (at) => change({ layer: at }),
  });
  const heads = initial.on.map((_, head) =>
    headCard(
      head,
      () => change({ head }),
      (yes) =>
        turn(`Head ${head} ${yes ? "on" : "off"}`, (was, other) => (other === head ? yes : was)),
    ),
  );
  const [title, place, facts, sum, note] = ["b", "div", "div", "div", "p"].map((tag) => make(tag));
  root.append(
    make(
      "div",
      { class: "tt-controls" },
      layer.node,
      all("All on", true),
      all("All off", false),
      button({ label: "Reset", onClick: () => change(initial, "Reset") }),
    ),
    "Choose a head, then a query. Do all heads look the same way?",
    make("div", { class: "heads" }, ...heads.map(({ node }) => node)),
    title,
    make("div", { class: "view" }, place, facts),
    sum,
    note,
  );
  const onQuery = (query) => query !== model.get("query") && setTraits(model, { query });
  const draw = () => {
    const state = read(STATE);
    for (const one of heads) one.draw(state);
    layer.set(state.layer);
    title.textContent =
      `Layer ${state.layers[state.layer]}, head ${state.head}: ` +
      `${state.labels[state.layer][state.head]}`;
    const focused = place.contains(el.shadowRoot.activeElement);
    refill(place, drawLines(state, onQuery));
    if (focused) place.querySelector("[tabindex='0']").focus();
    const scores = state.scores[state.layer][state.head];
    refill(
      facts,
      make("b", { text: "Mean weight that goes to" }),
      bars().show(
        scores
          .slice(0, -1)
          .map((share, i) => ({ label: state.score_names[i], share, text: two(share) })),
      ),
      `${two(scores.at(-1))} keys in effect (e to the entropy)`,
    );
    refill(sum, ...(state.products.length ? drawSum(state) : []));
    note.textContent = state.note;
  };
  const stop = onTraits(model, STATE, draw);
  draw();
  return () => {
    stop();
    close();
  };
}

export default { render };
