// Positions: waves as a table and as clock hands, products by distance, rotary pairs, ALiBi's
// slopes.
import {
  css,
  formatCount,
  formatNumber,
  make,
  onTraits,
  openFrame,
  refill,
  setTraits,
  svg,
} from "./core.js";
import { button, choice, player, slider } from "./controls.js";
import { chart, matrix } from "./drawing.js";

const CSS = css`
  p {
    max-width: 44rem;
    margin: 0 0 0.5rem;
    overflow-wrap: anywhere;
  }
  .fact {
    min-height: 2.9em;
  }
  .dials {
    list-style: none;
    display: grid;
    grid-template-columns: repeat(auto-fill, minmax(4.6rem, 1fr));
    max-width: 46rem;
    padding: 0;
    text-align: center;
    font-size: 0.75rem;
    white-space: pre-line;
  }
  .dials svg {
    width: 3.6rem;
  }
  .dials svg * {
    fill: none;
    stroke: var(--line);
    stroke-width: 0.06;
  }
  .dials .read {
    font-weight: 600;
  }
  .dials .read svg * {
    stroke: var(--tt-memory-line);
    stroke-width: 0.14;
  }
  .turning {
    overflow: visible;
    fill: currentColor;
  }
  .turning .start {
    fill: none;
    stroke: var(--line);
    stroke-dasharray: 3 4;
  }
  .scale {
    display: inline-block;
    width: 8rem;
    height: 0.75rem;
    margin: 0 0.4rem;
    background: linear-gradient(
      to right,
      var(--tt-decoder-line),
      transparent,
      var(--tt-memory-line)
    );
  }
`;

const count = (size) => [...Array(size).keys()];
const whole = (x) => formatNumber(x, 0);
const short = (x) => formatNumber(x, 2);
const sum = (list) => list.reduce((a, b) => a + b, 0);
const product = (one, other) => sum(one.map((x, i) => x * other[i]));

/** How far each pair of features turns from one position to the next, in radians. */
const turnsOf = (width) => count(width / 2).map((i) => 10000 ** ((-2 * i) / width));
const wavelength = (turn) =>
  turn > 0.063 ? formatNumber((2 * Math.PI) / turn, 2) : formatCount((2 * Math.PI) / turn);

const rotate = ([x, y], angle) => [
  x * Math.cos(angle) - y * Math.sin(angle),
  x * Math.sin(angle) + y * Math.cos(angle),
];

/** A number in bold, with all its digits for whoever measures. */
const result = (value, digits = 3) =>
  make("strong", { "data-value": value.toFixed(9), text: formatNumber(value, digits) });

/** Digits that show four figures of the largest number. */
const digitsFor = (values) =>
  Math.min(Math.max(3 - Math.floor(Math.log10(Math.max(...values.map(Math.abs)) || 1)), 0), 9);

const axis = (label, low, high, format = whole) => ({ label, domain: [low, high], format });
const line = (name, colour, places, valueAt, dots) => ({
  name,
  colour,
  points: places.map((x) => [x, valueAt(x)]),
  dots,
});

/**
 * Queries and keys by the two projections of `random_weights` in positions.py, drawn in the same
 * order.
 */
function project(rows, width) {
  let state = 2017;
  const draw = () => {
    state = (Math.imul(1664525, state) + 1013904223) >>> 0;
    return (state / 2 ** 32 - 0.5) * Math.sqrt(12 / width);
  };
  return [0, 1].map(() => {
    const weights = count(width).map(() => count(width).map(draw));
    return rows.map((row) => count(width).map((j) => sum(row.map((x, i) => x * weights[i][j]))));
  });
}

function readTraits(model) {
  const state = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  state.own = state.table.length > 0;
  state.rows = state.own
    ? state.table.slice(0, state.length)
    : count(state.length).map((place) =>
        turnsOf(state.d_model).flatMap((turn) => [Math.sin(place * turn), Math.cos(place * turn)]),
      );
  state.width = state.rows[0].length;
  for (const name of ["position", "distance"])
    state[name] = Math.min(state[name], state.length - 1);
  state.head = Math.min(state.head, state.n_heads);
  return state;
}

/** What is known of a cell, a row (column -1) or a column (row -1). */
function cellFact({ rows, own, width, selected: [row, column] }, digits) {
  if (column === undefined || row >= rows.length || column >= width)
    return ["Point at, tap or move to a cell for its number."];
  if (column < 0)
    return [
      `Position ${row}: squared length `,
      result(product(rows[row], rows[row])),
      own ? "" : ` = ${width}/2, as everywhere`,
    ];
  const [exponent, wave] = [column - (column % 2), column % 2 ? "cos" : "sin"];
  const angle = row * 10000 ** (-exponent / width);
  const period = wavelength(10000 ** (-exponent / width));
  const name = `Feature ${column}${own ? "" : `, wavelength ${period} positions`}`;
  if (row < 0) return [name];
  const formula = own
    ? []
    : [
        `${wave}(${row} / 10000`,
        make("sup", { text: `${exponent}/${width}` }),
        `) = ${wave}(${formatNumber(angle, 4)}) = `,
      ];
  return [`Position ${row}. ${name}: `, ...formula, result(rows[row][column], own ? digits : 6)];
}

function tableView({ model, change }) {
  const node = make("div");
  let [grid, shown] = [null, ""];
  const onSelect = (row, column, event) => {
    if (String([row, column]) === String(model.get("selected"))) return;
    // A cell's own label is read on focus; what is known of a whole row or column has to be said.
    change({ selected: [row, column] }, event.type === "focusin" && (row < 0 || column < 0));
  };
  return [
    [],
    [node],
    (state) => {
      const digits = state.own ? digitsFor(state.table.flat()) : 3;
      if (shown !== `${state.length} ${state.width}`) {
        shown = `${state.length} ${state.width}`;
        const most = Math.max(...state.rows.flat().map(Math.abs)) || 1;
        grid = matrix({
          label: "Rows are positions, columns are features.",
          rows: count(state.length).map(String),
          columns: count(state.width).map(String),
          corner: ["features →", "positions ↓"],
          onSelect,
        });
        grid.fill((place, i) => {
          const value = state.rows[place][i];
          const text =
            state.width <= 12 && digits < 5
              ? formatNumber(value, Math.min(digits, 2))
              : value < 0
                ? "−"
                : "";
          return {
            value,
            text,
            level: (0.6 * Math.abs(value)) / most,
            colour: value < 0 ? "decoder" : "memory",
            label: `position ${place}, feature ${i}: ${formatNumber(value, digits)}`,
          };
        });
        const [high, [positions, features]] = [
          formatNumber(most, state.own ? digits : 0),
          state.own ? state.total : [0, 0],
        ];
        const capped = positions > state.table.length || features > state.width;
        refill(
          node,
          grid.node,
          make(
            "div",
            { class: "tt-note" },
            `−${high}`,
            make("span", { class: "scale" }),
            `+${high}; − in a cell: below 0. `,
            capped
              ? `First ${state.table.length} of ${positions} positions,` +
                  ` ${state.width} of ${features} features.`
              : "",
          ),
        );
      }
      grid.mark(...(state.selected.length ? state.selected : [-1, -1]));
      return cellFact(state, digits);
    },
  ];
}

function clocksView({ model, change, pick, slide, plot }) {
  const steps = player({
    count: () => model.get("length"),
    seconds: 0.9,
    describe: (place) => `position ${place}`,
    onStep: (position) => change({ position }),
  });
  const reads = pick("Read", "reads", [
    ["fast", "fastest hand"],
    ["turn", "first that does not repeat"],
    ["slow", "slowest"],
    ["all", "all"],
  ]);
  const tolerance = slide("Tips look alike when closer than", "tolerance", 0.05, 1, 0.05, 2);
  const [dials, gaps] = [
    make("ul", { class: "dials" }),
    plot("How far the hands differ at each position", 190),
  ];
  return [
    [steps.node, reads, tolerance],
    [dials, gaps.node],
    ({ rows, width, length, position, ...state }) => {
      const turns = turnsOf(width);
      const once = turns.findIndex((turn) => 2 * Math.PI >= length * turn);
      const read = { fast: [0], turn: [once], slow: [turns.length - 1], all: count(turns.length) }[
        state.reads
      ];
      const here = rows[position];
      refill(
        dials,
        ...turns.map((turn, i) =>
          make(
            "li",
            { class: read.includes(i) && "read" },
            svg(
              "svg",
              { viewBox: "-1.1 -1.1 2.2 2.2", "aria-hidden": "true" },
              svg("circle", { r: 1 }),
              svg("line", { x2: here[2 * i], y2: -here[2 * i + 1] }),
            ),
            `\n${2 * i}, ${2 * i + 1}\nλ ` +
              `${wavelength(turn)}\n${formatNumber(((position * turn * 180) / Math.PI) % 360, 1)}°`,
          ),
        ),
      );
      // Of the hands that are read, the one whose tip is the furthest from where it stands now.
      const far = rows.map((row) =>
        Math.max(
          ...read.map((i) =>
            Math.hypot(row[2 * i] - here[2 * i], row[2 * i + 1] - here[2 * i + 1]),
          ),
        ),
      );
      const places = count(length);
      steps.set(position);
      gaps.draw({
        x: axis("position", 0, length - 1),
        y: axis("distance of the tips", 0, 2, short),
        series: [
          line("furthest hand read", "memory", places, (place) => far[place], true),
          line("look alike below", "masked", places, () => state.tolerance),
        ],
      });
      const alike = places.filter((place) => far[place] < state.tolerance);
      return [
        `Hands at position ${position}. Positions that look the same: `,
        make("strong", { class: "alike", text: alike.join(", ") }),
        ` (${alike.length} of ${length}).`,
      ];
    },
  ];
}

function similarityView({ change, pick, slide, plot }) {
  const projected = pick("Product of", "projected", [
    [false, "the vectors"],
    [true, "them after random W^Q and W^K"],
  ]);
  const curve = plot("Product by distance", 240, (offset) => change({ offset }, false));
  return [
    [slide("Position p", "position", 0, (state) => state.length - 1), projected],
    [curve.node],
    (state) => {
      const [length, place, random] = [state.length, state.position, state.projected && !state.own];
      const [queries, keys] = random ? project(state.rows, state.width) : [state.rows, state.rows];
      const all = queries.map((query, row) =>
        keys.map((key, column) =>
          state.own
            ? state.products[Math.min(row, column)][Math.abs(row - column)]
            : product(query, key),
        ),
      );
      const digits = digitsFor(all.flat());
      const along = (distance) =>
        count(length)
          .filter((row) => row + distance in all)
          .map((row) => all[row][row + distance]);
      const offsets = count(2 * length - 1).map((i) => i - length + 1);
      projected.hidden = state.own;
      curve.draw({
        x: axis("distance k", 1 - length, length - 1),
        y: axis("product", Math.min(0, ...all.flat()), Math.max(...all.flat()), (y) =>
          formatNumber(y, digits),
        ),
        series: [
          line(
            `p = ${place}`,
            "memory",
            offsets.filter((distance) => place + distance in all),
            (distance) => all[place][place + distance],
            true,
          ),
          line("least over all p", "masked", offsets, (distance) => Math.min(...along(distance))),
          line("most", "masked", offsets, (distance) => Math.max(...along(distance))),
        ],
      });
      const chosen = Math.min(Math.max(state.offset, -place), length - 1 - place);
      const mean = sum(along(chosen)) / along(chosen).length;
      const spread = Math.sqrt(
        sum(along(chosen).map((y) => (y - mean) ** 2)) / along(chosen).length,
      );
      return [
        `${random ? "query(p) · key(p + k)" : "PE(p) · PE(p + k)"}, p = ${place}, k = ${whole(chosen)}: `,
        result(all[place][place + chosen], digits),
        `. Over all p: mean ${formatNumber(mean, digits)}, standard deviation `,
        result(spread, digits),
        state.own
          ? ""
          : random
            ? ". One random draw; training may find better projections."
            : `: a sum of ${state.width / 2} cos(kθ), without p.`,
      ];
    },
  ];
}

function rotaryView({ model, change, pick, slide }) {
  const both = (by) =>
    button({
      label: `both ${by > 0 ? "+" : "−"}1`,
      onClick: () => {
        const [query, key] = [model.get("query_position") + by, model.get("key_position") + by];
        if (Math.min(query, key) >= 0 && Math.max(query, key) < 64)
          change({ query_position: query, key_position: key });
      },
    });
  const picture = svg("svg", {
    class: "turning",
    width: 280,
    height: 280,
    viewBox: "-140 -140 280 280",
    "aria-hidden": "true",
  });
  return [
    [
      slide("Query position m", "query_position", 0, 63),
      slide("Key position n", "key_position", 0, 63),
      both(-1),
      both(1),
      pick("Turn per position θ", "pair", [
        [0, "1"],
        [1, "0.1"],
        [2, "0.01"],
        [3, "0.001"],
      ]),
    ],
    [picture],
    ({ query, key, query_position: queryPlace, key_position: keyPlace, pair }) => {
      const turned = (by) => [
        rotate(query, (queryPlace + by) * 10 ** -pair),
        rotate(key, (keyPlace + by) * 10 ** -pair),
      ];
      const [turnedQuery, turnedKey] = turned(0);
      const most = Math.max(Math.hypot(...turnedQuery), Math.hypot(...turnedKey)) || 1;
      const arrow = (start, end, text, colour) => {
        const [[x1, y1], [x, y]] = [start, end].map(([across, up]) => [
          (100 * across) / most,
          (-100 * up) / most,
        ]);
        const stroke = `var(--tt-${colour}-line)`;
        return [
          svg("circle", { class: "start", r: Math.hypot(x, y) }),
          svg("line", { class: "start", x2: x1, y2: y1 }),
          svg("line", { x2: x, y2: y, stroke, "stroke-width": 4 }),
          svg("circle", { cx: x, cy: y, r: 6, fill: stroke }),
          svg("text", { x: 1.25 * x, y: 1.25 * y + 5, "text-anchor": "middle", text }),
        ];
      };
      refill(
        picture,
        ...arrow(query, turnedQuery, `q, ${queryPlace}`, "query"),
        ...arrow(key, turnedKey, `k, ${keyPlace}`, "key"),
      );
      const [queryX, queryY, keyX, keyY] = [...turnedQuery, ...turnedKey].map((x) =>
        formatNumber(x),
      );
      return [
        `q at ${queryPlace}: (${queryX}, ${queryY}), k at ${keyPlace}: (${keyX}, ${keyY}). ` +
          `With m − n = ${whole(queryPlace - keyPlace)} the score is `,
        result(product(turnedQuery, turnedKey)),
        "; 10 positions further on, both, it is ",
        result(product(...turned(10))),
        ".",
      ];
    },
  ];
}

/**
 * 2^(-8h/n) for head h of n; for other n, those of the largest power of two below, then every other
 * of the next.
 */
function slopesOf(heads) {
  const size = 2 ** Math.floor(Math.log2(heads));
  return count(heads).map(
    (head) => 2 ** (head < size ? (-8 * (head + 1)) / size : (-4 * (2 * (head - size) + 1)) / size),
  );
}

function alibiView({ change, slide, plot }) {
  const titles = ["Added to the score", "Weights when all scores are equal"];
  const [bias, effect] = titles.map((title) =>
    plot(title, 220, (distance) => change({ distance }, false)),
  );
  return [
    [slide("Heads", "n_heads", 1, 16), slide("Look at head", "head", 1, (state) => state.n_heads)],
    [bias.node, effect.node],
    ({ n_heads, head, length, distance }) => {
      const [slopes, places, x] = [
        slopesOf(n_heads),
        count(length),
        axis("distance to the key", 0, length - 1),
      ];
      const [slope, steepest] = [slopes[head - 1], Math.max(...slopes)];
      bias.draw({
        title: titles[0],
        x,
        y: axis("bias", -steepest * (length - 1), 0, short),
        series: slopes.map((one, i) =>
          line(
            `head ${i + 1}, slope ${formatNumber(one, 4)}`,
            i === head - 1 ? "weights" : "masked",
            places,
            (distance) => -one * distance,
            i === head - 1,
          ),
        ),
      });
      const weight = (distance, steepness = slope) =>
        Math.exp(-steepness * distance) / sum(places.map((at) => Math.exp(-steepness * at)));
      effect.draw({
        title: titles[1],
        x,
        y: axis("weight", 0, weight(0, steepest), short),
        series: [
          line(`head ${head}`, "weights", places, (distance) => weight(distance), true),
          line("without ALiBi", "masked", places, () => 1 / length),
        ],
      });
      return [
        `Head ${head}, slope `,
        result(slope, 4),
        `: a key ${distance} back gets −${formatNumber(slope, 4)} × ${distance} = `,
        result(-slope * distance),
        " on its score; if all scores were equal, its weight would be ",
        result(weight(distance), 4),
        n_heads & (n_heads - 1)
          ? ". No power of two: the last heads take every other slope of twice as many."
          : ".",
      ];
    },
  ];
}

const VIEWS = {
  table: [
    "table",
    tableView,
    "One row a position. Down a column on the left the sign flips every few rows, on the " +
      "right hardly ever. " +
      "More positions only add rows.",
    "One row a position, one column a feature. There is nothing beyond the last row.",
  ],
  clocks: [
    "clock hands",
    clocksView,
    "Each pair of features is a hand (sine right, cosine up; λ: positions for one turn). Step on: " +
      "which turn? Then read only some of them.",
  ],
  similarity: [
    "similarity",
    similarityView,
    "Move p: only the distance counts. Then put the projections between, as every attention layer does.",
    "Move p: where the two grey lines part, the product does not depend on the distance alone.",
  ],
  rotary: [
    "rotary",
    rotaryView,
    "Query and key turn with their positions. Move both by the same amount: the angle between " +
      "them, and the score, stay.",
  ],
  alibi: [
    "ALiBi",
    alibiView,
    "Each head takes its slope times the distance off a score. Compare how far back the first " +
      "head sees with the last.",
  ],
};
const TRAITS = [
  "view",
  "length",
  "d_model",
  "selected",
  "position",
  "reads",
  "tolerance",
  "projected",
  "offset",
  "query_position",
  "key_position",
  "pair",
  "query",
  "key",
  "n_heads",
  "head",
  "distance",
  "table",
  "products",
  "total",
];

/**
 * Makers of controls that show and set a trait, and of charts; a slider's `most` may be a function
 * of the state.
 */
function kitFor(change) {
  const [shows, charts] = [[], []];
  const shown = (name, { node, set }) => {
    shows.push((state) => set(state[name]));
    return node;
  };
  return {
    shows,
    charts,
    slide: (label, name, min, most, step = 1, decimals = 0) => {
      const made = slider({
        label,
        min,
        step,
        decimals,
        onInput: (value) => change({ [name]: value }),
      });
      shows.push((state) => {
        made.input.max = most.call ? most(state) : most;
      });
      return shown(name, made);
    },
    pick: (label, name, options) =>
      shown(name, choice({ label, options, onChange: (value) => change({ [name]: value }) })),
    plot: (label, height, onCursor) => charts[charts.push(chart({ label, height, onCursor })) - 1],
  };
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Positions", CSS);
  const initial = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const change = (values, aloud = true) => {
    setTraits(model, values);
    if (aloud) say(fact.textContent);
  };
  const kit = kitFor(change);
  const rows = model.get("table").length;
  const names = Object.keys(VIEWS).filter(
    (name) => !rows || name === "table" || name === "similarity",
  );
  const views = Object.fromEntries(
    names.map((name) => [name, VIEWS[name][1]({ model, change, ...kit })]),
  );
  const [controls, place, look, fact] = [
    make("div", { class: "tt-controls" }),
    make("div"),
    make("p"),
    make("p", { class: "fact" }),
  ];
  const length = kit.slide("Length", "length", 2, rows || 64);
  const width = kit.slide("d_model", "d_model", 4, 64, 2);
  const reset = button({ label: "Reset all", onClick: () => change(initial) });
  root.append(
    kit.pick(
      "View",
      "view",
      names.map((name) => [name, VIEWS[name][0]]),
    ),
    look,
    controls,
    fact,
    place,
  );

  let shown = "";
  const draw = () => {
    const state = readTraits(model);
    const [own, pictures, drawView] = views[state.view];
    if (shown !== state.view) {
      shown = state.view;
      look.textContent = VIEWS[shown][state.own ? 3 : 2];
      refill(controls, ...own, length, width, reset);
      refill(place, ...pictures);
    }
    kit.shows.forEach((show) => show(state));
    length.hidden = shown === "rotary";
    width.hidden = state.own || shown === "rotary" || shown === "alibi";
    refill(fact, ...drawView(state));
  };
  const stop = onTraits(model, TRAITS, draw);
  draw();
  return () => {
    stop();
    close();
    kit.charts.forEach((one) => one.close());
  };
}

export default { render };
