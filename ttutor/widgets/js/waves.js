// Waves: the encoding of up to 64 positions as a picture whose cells can be read, a line to drag down
// it, and the hands of clocks that its pairs of features are.
import { choice, slider } from "./controls.js";
import { css, formatCount, formatNumber, onTraits, openCard, setTraits } from "./core.js";
import { arrow, stage } from "./drawing.js";

const CSS = css`
  .picture {
    image-rendering: pixelated;
    cursor: crosshair;
  }
  .veil {
    fill: var(--tt-page);
    pointer-events: none;
  }
  .cell {
    fill: none;
    stroke: currentColor;
    stroke-width: 2;
    pointer-events: none;
  }
  .knob {
    fill: var(--tt-key);
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .alike {
    fill: currentColor;
  }
  .dial,
  .hand,
  .read {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.4;
  }
  .hand,
  .read {
    stroke-opacity: 1;
    stroke-width: 3;
    pointer-events: none;
  }
  .dial {
    pointer-events: all;
  }
  .tells {
    fill: color-mix(in srgb, currentColor 14%, transparent);
  }
  .hand,
  .line {
    stroke: var(--tt-key-line);
  }
  .second {
    stroke: var(--tt-query-line);
    stroke-dasharray: 4 2;
  }
  .knob.second {
    fill: var(--tt-query-line);
    stroke: var(--tt-page);
    stroke-dasharray: none;
  }
`;
const SIZE = 64;
const HANDS = [0, 4, 8, 12, 16, 20, 24, 31];
const READS = {
  fast: [0],
  middle: [8],
  slow: [31],
  all: Array.from({ length: 32 }, (_, i) => i),
  ...Object.fromEntries(HANDS.map((pair) => [`pair ${pair}`, [pair]])),
};
/** What is read when one pair is: the name of the choice, where it has one. */
const alone = (pair) => Object.keys(READS).find((name) => String(READS[name]) === String(pair));
const NAMES = { fast: "Fastest hand", middle: "Middle", slow: "Slowest", all: "All" };
const LINES = ["", "second"];
const TOLERANCE = 0.3; // between two tips of a hand of length 1: an angle of 17 degrees
const frequency = (pair) => 10000 ** ((-2 * pair) / SIZE);
const FEWEST = 8;

/** What stands in one cell of the picture. */
function value(position, feature) {
  const angle = position * frequency(Math.floor(feature / 2));
  return feature % 2 ? Math.cos(angle) : Math.sin(angle);
}

/** The cell in words: place, feature, wavelength, value. */
function told(position, feature) {
  const round = (2 * Math.PI) / frequency(Math.floor(feature / 2));
  const places = round < 100 ? formatNumber(round, 1) : formatCount(round);
  const kind = feature % 2 ? "cos" : "sin";
  return `position ${position}, feature ${feature}: ${kind}, ${places} a round, ${formatNumber(value(position, feature), 3)}`;
}

/** The encoding as a picture, a row a position: features are sines and cosines in turn. */
function waves() {
  const canvas = Object.assign(document.createElement("canvas"), { width: SIZE, height: SIZE });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(SIZE, SIZE);
  for (let position = 0; position < SIZE; position += 1)
    for (let feature = 0; feature < SIZE; feature += 1) {
      const grey = 128 + 112 * value(position, feature);
      pixels.data.set([grey, grey, grey, 255], 4 * (SIZE * position + feature));
    }
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

/** The positions, of so many, where the hands that are read look as they do here. */
const lookAlike = (here, reads, shown) =>
  [...Array(shown).keys()].filter((place) => READS[reads].every(alike(place - here)));
const alike = (apart) => (pair) => Math.abs(2 * Math.sin((apart * frequency(pair)) / 2)) < TOLERANCE;

/** A clock for some of the pairs, from the fastest to the slowest. */
function clocks(places, reads, { left, top, side }, frame) {
  return HANDS.flatMap((pair, i) => {
    const x = left + ((i % 4) + 0.5) * side;
    const y = top + (Math.floor(i / 4) + 0.5) * (side + 18);
    const [radius, turn] = [side / 2 - 8, frequency(pair)];
    const period = (2 * Math.PI) / turn;
    return [
      [
        `dial${i}`,
        "circle",
        {
          class: `dial${READS[reads].includes(pair) ? " read" : ""}${alike(places[1] - places[0])(pair) ? "" : " tells"}`,
          cx: x,
          cy: y,
          r: radius,
          press: () => frame(pair),
          "aria-label": `clock of ${formatNumber(period, 1)} places`,
        },
      ],
      ...places.map((at, k) => [
        `hand${i}${LINES[k]}`,
        "path",
        {
          class: `hand ${LINES[k]}`,
          d: arrow(x, y, x + radius * Math.sin(at * turn), y - radius * Math.cos(at * turn), 6),
        },
      ]),
      [
        `period${i}`,
        "text",
        {
          x,
          y: y + radius + 15,
          "text-anchor": "middle",
          text: period < 10 ? formatNumber(period, 1) : formatCount(period),
        },
      ],
    ];
  });
}

/** At how many other places the framed clock looks as it does here. */
function othersOf(count) {
  if (!count) return ", and looks like this nowhere else.";
  return count === 1 ? ", but looks the same at one other mark." : `, but looks the same at ${count} other marks.`;
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const near = () => Math.min(Math.round(get("position")) + 4, get("shown") - 1);
  let other = near(); // where the second line is
  const initial = { position: get("position"), feature: get("feature"), reads: get("reads"), shown: get("shown") };
  let pointed = null; // the cell under the pointer, where there is one
  const card = openCard(el, {
    label: "Waves",
    question: "How can clocks tell a word where it stands?",
    invite: "Drag the blue line to another mark: which clocks tell its place from the orange one?",
    onReset: () => {
      set(initial);
      compare(near());
    },
    css: CSS,
  });
  const url = waves();
  const within = (place, size = get("shown")) => Math.min(Math.max(place, 0), size - 1);
  const move = (position, feature) => set({ position: within(position), feature: within(Math.round(feature), SIZE) });
  /** Frame the clocks that are read, and read the cell of the first. */
  const frame = (reads) => set({ reads, feature: 2 * READS[reads][0] });
  const compare = (place, snaps) => {
    const [here, there] = [get("position"), place].map(Math.round);
    const marks = snaps ? lookAlike(here, get("reads"), get("shown")) : [];
    const mark = [0, 1, -1, 2, -2].find((by) => there + by !== here && marks.includes(there + by));
    other = within(there + (mark || 0));
    draw();
  };
  const size = (width, height) => (width < 520 ? [width - 18, 202] : [width * 0.5, height - 20]);
  const picture = stage({
    label: "The encoding of up to 64 positions, and a clock for each of eight pairs of features",
    height: (width) => (width < 520 ? 376 : 340),
    draw: ({ position }, width, height) => {
      const narrow = width < 520;
      const [wide, tall] = size(width, height);
      const [row, column, shown] = [tall / SIZE, wide / SIZE, get("shown")];
      const cell = pointed || [Math.round(position), get("feature")];
      const lines = [position, other];
      const place = narrow
        ? { left: 0, top: tall + 24, side: Math.min(width / 4, 62) }
        : { left: wide + 40, top: 0, side: Math.min((width - wide - 40) / 4, 100) };
      if (narrow) place.left = (width - 4 * place.side) / 2;
      else place.top = (tall - 2 * (place.side + 18)) / 2;
      return [
        ["waves", "image", { class: "picture", href: url, width: wide, height: tall, preserveAspectRatio: "none" }],
        ["veil", "rect", { class: "veil", x: 0, y: shown * row, width: wide, height: tall - shown * row }],
        ["cell", "rect", { class: "cell", x: cell[1] * column, y: cell[0] * row, width: column, height: row }],
        ["rows", "text", { x: 0, y: tall + 17, text: told(...cell) }],
        [
          "columns", // of the hands that are read: two each
          "rect",
          {
            class: "read",
            x: (wide * READS[get("reads")][0]) / 32 - 1,
            y: 0,
            width: wide * (get("reads") === "all" ? 1 : 1 / 32) + 2,
            height: shown * row,
          },
        ],
        ...lookAlike(Math.round(position), get("reads"), shown).map((place) => [
          `alike${place}`,
          "rect",
          {
            class: "alike",
            "data-value": place,
            x: wide + 3,
            y: place * row,
            width: 9,
            height: Math.max(row - 0.6, 2),
          },
        ]),
        ...lines.flatMap((at, k) => [
          [`reading${k}`, "path", { class: `read line ${LINES[k]}`, d: `M0 ${(at + 0.5) * row}H${wide}` }],
          [
            `handle${LINES[k]}`,
            "circle",
            {
              class: `knob pull ${LINES[k]}`,
              cx: k ? wide * 0.7 : (get("feature") + 0.5) * column,
              cy: (at + 0.5) * row,
              r: 9,
              pull: (x, to, byKey) => (k ? compare(to / row - 0.5, !byKey) : move(to / row - 0.5, x / column - 0.5)),
              stride: [k ? 0 : column, row],
              "aria-label": `the ${LINES[k]} line of the position`,
              "aria-valuenow": Math.round(at),
              "aria-valuemin": 0,
              "aria-valuemax": shown - 1,
              "aria-valuetext": k ? `position ${Math.round(at)}` : told(Math.round(at), get("feature")),
            },
          ],
        ]),
        ...clocks(lines, get("reads"), place, (pair) => frame(alone(pair))),
      ];
    },
  });
  const reads = choice({
    name: "Read",
    options: Object.entries(NAMES),
    onChange: frame,
  });
  const shown = slider({
    label: "Positions",
    min: FEWEST,
    max: SIZE,
    step: 1,
    format: String,
    onInput: (count) => set({ shown: count, position: Math.min(get("position"), count - 1) }),
  });
  /** The cell where an event happens; nothing beside the picture. */
  const cellAt = (event) => {
    const box = picture.node.getBoundingClientRect();
    const [wide, tall] = size(box.width, box.height);
    const cell = [((event.clientY - box.top) / tall) * SIZE, ((event.clientX - box.left) / wide) * SIZE].map(
      Math.floor,
    );
    return cell[0] >= 0 && cell[0] < get("shown") && cell[1] >= 0 && cell[1] < SIZE ? cell : null;
  };
  const point = (cell) => {
    if (String(cell) === String(pointed)) return;
    pointed = cell;
    draw();
  };
  picture.node.onpointermove = (event) => point(event.buttons ? null : cellAt(event));
  picture.node.onpointerleave = () => point(null);
  picture.node.onclick = (event) => {
    const cell = event.target.matches(".picture") && cellAt(event);
    if (cell) move(...cell);
  };
  card.stage.append(picture.node);
  card.controls.append(reads.node, shown.node);
  card.caption.textContent =
    "Grey: a clock that tells the two apart. Tap one to frame it; marks: where it looks alike. Below: the places for a round. Point at a cell to read it.";
  const draw = () => {
    reads.set(get("reads"));
    shown.set(get("shown"));
    picture.show({ position: get("position") }, 0);
    const [here, framed] = [Math.round(get("position")), get("reads")];
    const differ = HANDS.filter((pair) => !alike(other - here)(pair)).length;
    card.find(
      framed === "all"
        ? `Fast hands tell neighbours apart, slower ones what lies farther: ${here} looks like no other.`
        : other === here
          ? `Both lines stand at ${here}.`
          : `${differ} of the 8 clocks tell ${other} from ${here}: their hands are 17° apart or more. ` +
            (READS[framed].every(alike(other - here))
              ? "The framed one is none of them."
              : `The framed one does${othersOf(lookAlike(here, framed, get("shown")).length - 1)}`),
    );
  };
  const stops = [
    onTraits(model, ["shown"], () => (other = near())),
    onTraits(model, ["position", "feature", "reads", "shown"], draw),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
