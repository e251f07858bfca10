// Attention heads: each a small map to choose from, one of them large, as lines from the words that
// ask to the words that are found; and, folded, how what they write adds up.
import { css, distinct, formatNumber, make, onTraits, openCard, refill, setTraits, shareWord, svg } from "./core.js";
import { select, toggle } from "./controls.js";
import { preview, stage } from "./drawing.js";

const CSS = css`
  .heads {
    display: grid;
    grid-template-columns: repeat(auto-fit, minmax(4.6rem, 1fr));
    gap: 0.5rem;
    margin-bottom: 0.75rem;
  }
  .heads button {
    display: flex;
    flex-direction: column;
    padding: 0.3rem;
    font-size: 0.8125rem;
    line-height: 1.25;
    text-align: start;
    overflow-wrap: anywhere;
  }
  .heads em {
    display: block;
    min-height: 2.5em;
  }
  .heads [aria-pressed="true"] {
    box-shadow: inset 0 0 0 2px;
  }
  .heads svg {
    display: block;
    width: 100%;
    height: 4rem;
    margin-bottom: 0.2rem;
  }
  .tt-picture text {
    font-size: 0.9375rem;
  }
  .heads path {
    vector-effect: non-scaling-stroke;
  }
  .link {
    fill: none;
    stroke: var(--tt-weights-line);
    stroke-linecap: round;
  }
  .asks {
    fill: color-mix(in srgb, var(--tt-query) 16%, transparent);
    stroke: var(--tt-query-line);
    stroke-width: 2;
  }
  .place {
    fill: transparent;
  }
  .sum {
    display: grid;
    grid-template-columns: auto minmax(4rem, 1fr) auto auto;
    gap: 0.2rem 0.7rem;
    align-items: center;
    margin-block: 0.5rem;
  }
  .sum .length {
    height: 0.9rem;
    outline: 1px dashed;
    background: linear-gradient(to var(--side), var(--fill) var(--part), transparent 0);
  }
  data {
    text-align: end;
    font-variant-numeric: tabular-nums;
  }
`;

const MOST = 24; // tokens that are drawn, as in heads.py
const KEPT = ["layer", "head", "query", "on", "tapped"];
const GIVEN = ["names", "tokens", "key_tokens", "weights", "products", "layers", "note", "rest_name"];
const DIRECTIONS = ["further back", "one place back", "at itself", "ahead"];
const upper = (text) => text[0].toUpperCase() + text.slice(1);
const two = (value) => formatNumber(value, 2);
const add = (values) => values.reduce((sum, value) => sum + value, 0);

/** Where a head looks, seen from the word that asks; how clearly; and the share of its attention that lies there. */
function directionOf(weights) {
  const shares = Array(4).fill(0);
  weights.forEach((row, i) =>
    row.forEach((weight, j) => (shares[Math.max(-2, Math.min(j - i, 1)) + 2] += weight / weights.length)),
  );
  const clear = shares.map((share, side) => share / (side % 3 ? 0.35 : 0.6)); // one place, or all that lie beyond
  const best = mostOf(clear);
  return clear[best] > 1 ? [DIRECTIONS[best], clear[best], shares[best]] : ["in all directions", 0];
}

/** The key that a word finds most in a head. */
const mostOf = (row) => row.indexOf(Math.max(...row));

/** Lengths of the parts that are on, their parts along the sum, and the sum's length. */
function writeParts(products, on) {
  const dot = (i, j) => (i < j ? dot(j, i) : products[(i * (i + 1)) / 2 + j]);
  const shares = on.map((yes, i) => add(on.map((also, j) => (yes && also ? dot(i, j) : 0))));
  const total = Math.sqrt(Math.max(add(shares), 0));
  return [on.map((yes, i) => (yes ? Math.sqrt(dot(i, i)) : 0)), shares.map((one) => one / (total || 1)), total];
}

const links = (weights, least) =>
  weights.flatMap((row, i) => row.flatMap((weight, j) => (weight < least ? [] : [[i, j, weight]])));

/** The same lines as in the large drawing, small. */
function thumbnail(weights) {
  return svg(
    "svg",
    {
      viewBox: `0 0 9 ${Math.max(weights.length, weights[0].length)}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    ...links(weights, 0.05).map(([i, j, weight]) =>
      svg("path", {
        class: "link",
        d: `M0 ${i + 0.5}C3 ${i + 0.5} 6 ${j + 0.5} 9 ${j + 0.5}`,
        "stroke-width": 5 * weight,
        opacity: 0.2 + 0.8 * weight,
      }),
    ),
  );
}

/** One head as lines: queries on the left, keys on the right, as thick as the weight. */
function drawLines({ weights }, width, { tokens, key_tokens: keys, query }, ask) {
  const row = rowHeight(tokens, keys);
  const [left, right] = [Math.min(0.3 * width, 150), width - Math.min(0.36 * width, 190)];
  const y = (i) => 30 + (i + 0.5) * row;
  const fit = Math.floor(left / 8);
  const short = (token) => (token.length > fit ? `${token.slice(0, fit - 1)}…` : token);
  const bend = (right - left) / 3;
  return [
    ["asking", "text", { x: left - 12, y: 14, "text-anchor": "end", text: "asks" }],
    ["found", "text", { x: right + 12, y: 14, text: "looks at" }],
    ["asks", "rect", { class: "asks", x: 1, y: y(query) - row / 2 + 1, width: left - 5, height: row - 2, rx: 6 }],
    ...links(weights, 0.01).map(([i, j, weight]) => [
      `link${i}-${j}`,
      "path",
      {
        class: "link",
        d: `M${left} ${y(i)}C${left + bend} ${y(i)} ${right - bend} ${y(j)} ${right} ${y(j)}`,
        "stroke-width": 0.45 * row * weight,
        "stroke-opacity": (i === query ? 1 : 0.4) * (0.25 + 0.75 * weight),
      },
    ]),
    ...tokens.flatMap((token, i) => [
      [`query${i}`, "text", { x: left - 12, y: y(i) + 4, "text-anchor": "end", text: short(token) }],
      [
        `ask${i}`,
        "rect",
        {
          class: "place",
          x: 0,
          y: y(i) - row / 2,
          width: left,
          height: row,
          press: () => ask(i),
          "aria-label": `${token} asks`,
        },
      ],
    ]),
    ...keys.flatMap((token, j) => [
      [
        `key${j}`,
        "text",
        {
          x: right + 12,
          y: y(j) + 4,
          "font-weight": weights[query][j] > 0.25 ? 700 : 400,
          text: short(token),
        },
      ],
      [
        `weight${j}`,
        "text",
        {
          x: width,
          y: y(j) + 4,
          "text-anchor": "end",
          "data-value": weights[query][j].toFixed(9),
          text: formatNumber(weights[query][j]),
        },
      ],
    ]),
  ];
}

const rowHeight = (tokens, keys) => Math.min(34, Math.max(20, 256 / Math.max(tokens.length, keys.length)));

/** Each box begins where the sum had come to, and goes back if it points against it. */
function drawSum({ products, layer, query, on, rest_name: rest }, nameOf) {
  const [lengths, along, total] = writeParts(products[layer][query], [...on, true]);
  const [all] = writeParts(products[layer][query], [...on.map(() => true), true]);
  const unit = 85 / (add(all) || 1); // the same, whichever heads are on
  const starts = lengths.map((length, i) => add(along.slice(0, i)) - (along[i] < 0 ? length : 0));
  const number = (value) => make("data", { "data-value": value.toFixed(9), text: two(value) });
  const row = (text, from, length, part, colour) => [
    make("span", { text }),
    make("div", {
      class: "length",
      style:
        `margin-left: ${15 + unit * from}%; width: ${unit * length}%; --fill: var(--tt-${colour}); ` +
        `--side: ${part < 0 ? "left" : "right"}; --part: ${(100 * Math.abs(part)) / (length || 1)}%`,
    }),
    number(length),
    number(part),
  ];
  return [
    ...["", "", "length", "along sum"].map((text) => make("small", { text })),
    ...lengths.flatMap((length, i) => row(i in on ? nameOf(i) : rest, starts[i], length, along[i], "value")),
    ...row("sum", 0, total, total, "memory"),
  ];
}

/** The traits of a sentence that the page's translator reads, for heads that are called after their places. */
function readBy(names, { tokens, heads }, query) {
  const rowsOf = ({ rows, columns, data }) =>
    Array.from({ length: rows }, (_, row) => [...data.slice(row * columns, (row + 1) * columns)]);
  const weights = names.map((name) => {
    const [layer, head] = name.match(/\d+/g);
    return rowsOf(heads[layer][head]);
  });
  return { tokens, key_tokens: tokens, weights: [weights], query: Math.min(query, tokens.length - 1) };
}

function render({ model, el, alone }) {
  let over = {}; // what the mouse points at, in place of what is picked
  const read = (names) => Object.fromEntries(names.map((name) => [name, over[name] ?? model.get(name)]));
  const initial = { ...read(KEPT), tapped: model.get("tapped") || [] };
  const set = (values) => setTraits(model, values);
  let state = read([...GIVEN, ...KEPT]);
  const nameOf = (head) => (state.names || [])[head] || `head ${head}`;
  const isOwn = () => JSON.stringify(state.tokens) === JSON.stringify(state.key_tokens);
  let [ways, wanted] = [];
  /** How each head looks; and where one of them does that is to be found. */
  const look = () => {
    ways = state.weights.map((one) => one.map(directionOf));
    const clearest = ways[0][mostOf(ways[0].map(([, share]) => share))];
    wanted = isOwn() && ways.length < 2 && clearest[1] && clearest[0];
  };
  look();
  const card = openCard(el, {
    label: "Attention heads",
    question: "Do all heads look the same way?",
    invite: wanted ? `Find the head that looks ${wanted}, and tap it.` : "Tap the heads: what does each look for?",
    onReset: () => set(initial),
    css: CSS,
  });
  // What was named once stays named, so that heads can be compared.
  const named = () => [...(model.get("tapped") || []), model.get("head")];
  const tap = (head) => set({ head, tapped: [...new Set([...named(), head])].sort((one, other) => one - other) });
  const heads = initial.on.map((_, head) =>
    make("button", { class: "tt-button tt-call", type: "button", onclick: () => tap(head) }),
  );
  const layer = select({
    label: "Layer",
    options: state.layers.map((number, i) => [i, number]),
    onChange: (at) => set({ layer: at }),
  });
  const picture = stage({
    label: "One head: lines from each word that asks to the words that it finds",
    height: () =>
      34 + rowHeight(state.tokens, state.key_tokens) * Math.max(state.tokens.length, state.key_tokens.length),
    draw: (numbers, width) => drawLines(numbers, width, state, (query) => set({ query })),
  });
  card.stage.append(make("div", { class: "heads" }, ...heads), picture.node);
  if (ways.length > 1) card.controls.append(layer.node);
  const sum = make("div", { class: "sum" });
  const switches = heads.map((_, head) =>
    toggle({
      label: nameOf(head),
      onChange: (yes) => set({ on: model.get("on").map((was, i) => (i === head ? yes : was)) }),
    }),
  );
  if (state.products.length)
    card.more(
      "What the heads add up to",
      make("p", {
        class: "tt-note",
        text:
          "W_O turns what each head has found into a vector. Outlined: its length. Filled: how much of it points " +
          "along the sum; these parts add up exactly, lengths do not.",
      }),
      make("div", { class: "tt-controls" }, ...switches.map(({ node }) => node)),
      sum,
    );

  preview(card.stage, (event) => {
    const head = heads.indexOf(event?.target.closest("button"));
    const [, query] = event?.target.dataset.key?.match(/^ask(\d+)$/) || [];
    const before = String(Object.entries(over));
    over = head >= 0 ? { head } : query ? { query: +query } : {};
    if (String(Object.entries(over)) === before) return;
    if (before === "") card.root.dataset.acted = "1";
    draw();
  });

  const draw = () => {
    state = read([...GIVEN, ...KEPT]);
    const [picked, known] = [model.get("head"), named()];
    const keys = distinct(state.key_tokens);
    const finds = state.weights[state.layer].map((rows) => keys[mostOf(rows[state.query])]);
    heads.forEach((button, head) => {
      button.setAttribute("aria-pressed", picked === head);
      refill(
        button,
        thumbnail(state.weights[state.layer][head]),
        make("b", { text: nameOf(head) }),
        make("div", { text: wanted && !known.includes(head) ? "" : `→ ${finds[head]}` }),
        wanted ? make("em", { text: known.includes(head) ? ways[state.layer][head][0] : "?" }) : null,
      );
    });
    layer.set(state.layer);
    const weights = state.weights[state.layer][state.head];
    picture.show({ weights });
    const [way, , share] = ways[state.layer][state.head];
    const row = weights[state.query];
    const found =
      `“${state.tokens[state.query]}” gives most to “${finds[state.head]}”, ${formatNumber(Math.max(...row))}; ` +
      `its row adds up to ${two(add(row))}.`;
    card.find(
      wanted && !known.includes(state.head) // the answer is for those that were tapped
        ? `${nameOf(state.head)}: ${found}`
        : way === wanted
          ? `Yes, ${two(share)} of its attention lies there, on average over all words. Here ${found}`
          : `${wanted ? "No: " : ""}${wanted ? nameOf(state.head) : upper(nameOf(state.head))} ${isOwn() ? `looks ${way}, on the whole. Here` : "asks:"} ${found}`,
    );
    switches.forEach((one, head) => one.set(state.on[head]));
    refill(sum, ...(state.products.length ? drawSum(state, nameOf) : []));
    card.caption.textContent = state.note;
  };
  const change = () => {
    over = {};
    draw();
  };
  const share = shareWord(
    model,
    "query",
    (at) => at,
    (query) => ({ query }),
  );
  const follow = ({ detail }) => {
    const { tokens } = detail;
    if (tokens.length > MOST || tokens.join(" ") === state.tokens.join(" ")) return;
    setTraits(model, readBy(model.get("names"), detail, model.get("query")));
    look();
    draw();
  };
  if (alone && model.get("follows")) document.addEventListener("tt-sentence", follow);
  const stops = [
    onTraits(model, [...GIVEN, ...KEPT], change),
    () => document.removeEventListener("tt-sentence", follow),
    share,
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
