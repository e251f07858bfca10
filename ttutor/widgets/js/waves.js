// Waves: the encoding of 64 positions as a picture, a line to drag down it, and the hands of clocks
// that its pairs of features are.
import { choice } from "./controls.js";
import { css, formatCount, formatNumber, onTraits, openCard, setTraits } from "./core.js";
import { arrow, stage } from "./drawing.js";

const CSS = css`
  .picture {
    image-rendering: pixelated;
  }
  .handle {
    fill: var(--tt-loss);
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .alike {
    fill: var(--tt-loss);
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
    stroke: var(--tt-loss);
    stroke-opacity: 1;
    stroke-width: 3;
  }
  .second {
    stroke: var(--tt-query-line);
    stroke-dasharray: 4 2;
  }
  .handle.second {
    fill: var(--tt-query-line);
    stroke: var(--tt-page);
    stroke-dasharray: none;
  }
`;
const SIZE = 64;
const HANDS = [0, 4, 8, 12, 16, 20, 24, 31];
const READS = { fast: [0], middle: [8], slow: [31], all: Array.from({ length: 32 }, (_, i) => i) };
const NAMES = { fast: "Fastest hand", middle: "Middle", slow: "Slowest", all: "All" };
const LINES = ["", "second"];
const TOLERANCE = 0.3; // between two tips of a hand of length 1: an angle of 17 degrees
const frequency = (pair) => 10000 ** ((-2 * pair) / SIZE);

/** The encoding as a picture, a row a position: features are sines and cosines in turn. */
function waves() {
  const canvas = Object.assign(document.createElement("canvas"), { width: SIZE, height: SIZE });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(SIZE, SIZE);
  for (let position = 0; position < SIZE; position += 1)
    for (let feature = 0; feature < SIZE; feature += 1) {
      const angle = position * frequency(Math.floor(feature / 2));
      const value = feature % 2 ? Math.cos(angle) : Math.sin(angle);
      const grey = 128 + 112 * value;
      pixels.data.set([grey, grey, grey, 255], 4 * (SIZE * position + feature));
    }
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

/** The positions where the hands that are read look as they do here. */
const lookAlike = (here, reads) => [...Array(SIZE).keys()].filter((place) => READS[reads].every(alike(place - here)));
const alike = (apart) => (pair) => Math.abs(2 * Math.sin((apart * frequency(pair)) / 2)) < TOLERANCE;

/** A clock for some of the pairs, from the fastest to the slowest. */
function clocks(places, reads, { left, top, side }) {
  return HANDS.flatMap((pair, i) => {
    const x = left + ((i % 4) + 0.5) * side;
    const y = top + (Math.floor(i / 4) + 0.5) * (side + 18);
    const [radius, turn] = [side / 2 - 8, frequency(pair)];
    const period = (2 * Math.PI) / turn;
    return [
      [`dial${i}`, "circle", { class: `dial${READS[reads].includes(pair) ? " read" : ""}`, cx: x, cy: y, r: radius }],
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

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const near = Math.min(Math.round(get("position")) + 4, SIZE - 1);
  let other = near; // where the second line is
  const initial = { position: get("position"), reads: get("reads") };
  const card = openCard(el, {
    label: "Waves",
    question: "How can clocks tell a word where it stands?",
    invite: "Drag the blue line to another mark: which clocks tell its place from the orange one?",
    onReset: () => {
      set(initial);
      compare(near);
    },
    css: CSS,
  });
  const url = waves();
  const within = (place) => Math.min(Math.max(place, 0), SIZE - 1);
  const move = (position) => set({ position: within(position) });
  const compare = (place, snaps) => {
    const [here, there] = [get("position"), place].map(Math.round);
    const marks = snaps ? lookAlike(here, get("reads")) : [];
    const mark = [0, 1, -1, 2, -2].find((by) => there + by !== here && marks.includes(there + by));
    other = within(there + (mark || 0));
    draw();
  };
  const picture = stage({
    label: "The encoding of 64 positions, and a clock for each of eight pairs of features",
    height: (width) => (width < 520 ? 388 : 340),
    draw: ({ position }, width, height) => {
      const narrow = width < 520;
      const [wide, tall] = narrow ? [width - 18, 214] : [width * 0.5, height - 20];
      const row = tall / SIZE;
      const lines = [position, other];
      const place = narrow
        ? { left: 0, top: tall + 24, side: Math.min(width / 4, 62) }
        : { left: wide + 40, top: 0, side: Math.min((width - wide - 40) / 4, 100) };
      if (narrow) place.left = (width - 4 * place.side) / 2;
      else place.top = (tall - 2 * (place.side + 18)) / 2;
      return [
        ["waves", "image", { class: "picture", href: url, width: wide, height: tall, preserveAspectRatio: "none" }],
        ["rows", "text", { x: 0, y: tall + 17, text: "positions ↓ features →" }],
        [
          "columns", // of the hands that are read: two each
          "rect",
          {
            class: "read",
            x: (wide * READS[get("reads")][0]) / 32 - 1,
            y: 0,
            width: wide * (get("reads") === "all" ? 1 : 1 / 32) + 2,
            height: tall,
          },
        ],
        ...lookAlike(Math.round(position), get("reads")).map((place) => [
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
          [`reading${k}`, "path", { class: `read ${LINES[k]}`, d: `M0 ${(at + 0.5) * row}H${wide}` }],
          [
            `handle${LINES[k]}`,
            "circle",
            {
              class: `handle pull ${LINES[k]}`,
              cx: wide * (0.5 + 0.2 * k),
              cy: (at + 0.5) * row,
              r: 9,
              pull: (x, to) => [move, compare][k](to / row - 0.5, x !== wide * 0.7), // a key goes straight down
              stride: row,
              "aria-label": `the ${LINES[k]} line of the position`,
              "aria-valuenow": Math.round(at),
              "aria-valuemin": 0,
              "aria-valuemax": SIZE - 1,
            },
          ],
        ]),
        ...clocks(lines, get("reads"), place),
      ];
    },
  });
  const reads = choice({
    name: "Read",
    options: Object.entries(NAMES),
    onChange: (value) => set({ reads: value }),
  });
  card.stage.append(picture.node);
  card.controls.append(reads.node);
  card.caption.textContent =
    "Marks: where the framed clock looks as at the orange line. Below a clock: the places for a round.";
  const draw = () => {
    reads.set(get("reads"));
    picture.show({ position: get("position") }, 0);
    const [here, framed] = [Math.round(get("position")), get("reads")];
    const differ = HANDS.filter((pair) => !alike(other - here)(pair)).length;
    card.find(
      framed === "all"
        ? `Slow hands tell far places apart, fast ones neighbours: ${here} looks like no other.`
        : other === here
          ? `Both lines stand at ${here}.`
          : READS[framed].every(alike(other - here))
            ? `The framed clock cannot tell ${here} from ${other}. Of the 8 clocks ${differ} can, because there the hands differ.`
            : `The framed clock tells ${other} from ${here}, but none of the ${lookAlike(here, framed).length - 1} other marks.`,
    );
  };
  const stops = [onTraits(model, ["position", "reads"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
