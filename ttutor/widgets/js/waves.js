// Waves: the encoding of 64 positions as a picture, a line to drag down it, and the hands of clocks
// that its pairs of features are.
import { choice, slider } from "./controls.js";
import { css, formatCount, formatNumber, onTraits, openCard, setTraits } from "./core.js";
import { arrow, stage } from "./drawing.js";

const CSS = css`
  .picture {
    image-rendering: pixelated;
  }
  .reading {
    stroke: var(--tt-loss);
    stroke-width: 2;
  }
  .handle {
    fill: var(--tt-loss);
    stroke: var(--tt-page);
    stroke-width: 2;
  }
  .alike {
    fill: var(--tt-loss);
  }
  .dial {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.4;
  }
  .hand {
    fill: none;
    stroke: currentColor;
    stroke-width: 2;
    stroke-linecap: round;
  }
  .read {
    fill: none;
    stroke: var(--tt-loss);
    stroke-opacity: 1;
    stroke-width: 3;
  }
`;
const SIZE = 64;
const HANDS = [0, 4, 8, 12, 16, 20, 24, 31];
const READS = { fast: [0], middle: [8], slow: [31], all: Array.from({ length: 32 }, (_, i) => i) };
const NAMES = { fast: "Fastest hand", middle: "Middle", slow: "Slowest", all: "All" };
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
function lookAlike(position, reads) {
  const here = Math.round(position);
  return Array.from({ length: SIZE }, (_, other) => other).filter((other) =>
    READS[reads].every((pair) => Math.abs(2 * Math.sin(((other - here) * frequency(pair)) / 2)) < TOLERANCE),
  );
}

/** A clock for some of the pairs, from the fastest to the slowest. */
function clocks(position, reads, { left, top, side, across }) {
  return HANDS.flatMap((pair, i) => {
    const x = left + ((i % across) + 0.5) * side;
    const y = top + (Math.floor(i / across) + 0.5) * (side + 18);
    const [radius, angle] = [side / 2 - 8, position * frequency(pair)];
    const period = (2 * Math.PI) / frequency(pair);
    return [
      [`dial${i}`, "circle", { class: `dial${READS[reads].includes(pair) ? " read" : ""}`, cx: x, cy: y, r: radius }],
      [
        `hand${i}`,
        "path",
        {
          class: READS[reads].includes(pair) ? "hand read" : "hand",
          d: arrow(x, y, x + radius * Math.sin(angle), y - radius * Math.cos(angle), 6),
        },
      ],
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
  const initial = { position: get("position"), reads: get("reads") };
  const card = openCard(el, {
    label: "Waves",
    question: "How can clocks tell a word where it stands?",
    invite: "Drag the line: which places does the fast hand confuse? Then read all hands.",
    onReset: () => set(initial),
    css: CSS,
  });
  const url = waves();
  const move = (position) => set({ position: Math.min(Math.max(Number(position.toFixed(2)), 0), SIZE - 1) });
  const picture = stage({
    label: "The encoding of 64 positions, and a clock for each of eight pairs of features",
    height: (width) => (width < 520 ? 338 : 320),
    draw: ({ position }, width, height) => {
      const narrow = width < 520;
      const [wide, tall] = narrow ? [width - 18, 164] : [width * 0.5, height - 20];
      const row = tall / SIZE;
      const y = (position + 0.5) * row;
      const place = narrow
        ? { left: 0, top: tall + 24, side: Math.min(width / 4, 62), across: 4 }
        : { left: wide + 40, top: 0, side: Math.min((width - wide - 40) / 4, 100), across: 4 };
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
        ...lookAlike(position, get("reads")).map((other) => [
          `alike${other}`,
          "rect",
          {
            class: "alike",
            "data-value": other,
            x: wide + 3,
            y: other * row,
            width: 9,
            height: Math.max(row - 0.6, 2),
          },
        ]),
        ["reading", "path", { class: "reading", d: `M0 ${y}H${wide}` }],
        [
          "handle",
          "circle",
          {
            class: "handle pull",
            cx: wide / 2,
            cy: y,
            r: 9,
            pull: (_, to) => move(to / row - 0.5),
            stride: row,
            "aria-label": "the line of the position",
            "aria-valuenow": Math.round(position),
            "aria-valuemin": 0,
            "aria-valuemax": SIZE - 1,
          },
        ],
        ...clocks(position, get("reads"), place),
      ];
    },
  });
  const position = slider({
    label: "Position",
    min: 0,
    max: SIZE - 1,
    step: 0.25,
    format: (value) => String(Math.round(value)),
    onInput: move,
  });
  const reads = choice({
    name: "Read",
    options: Object.entries(NAMES),
    onChange: (value) => set({ reads: value }),
  });
  card.stage.append(picture.node);
  card.controls.append(position.node, reads.node);
  card.caption.textContent =
    "Framed: two columns are one hand. Below a hand: the positions for a round. Marks: where the framed look as here, within 17°.";
  const draw = () => {
    position.set(get("position"));
    reads.set(get("reads"));
    picture.show({ position: get("position") }, 0);
    const [alike, here] = [lookAlike(get("position"), get("reads")), Math.round(get("position"))];
    card.find(
      {
        fast: `The fast hand comes round again: to it, ${here} looks like ${alike.length - 1} other places.`,
        middle: `The middle hand is slow: to it, ${here} looks like its neighbours.`,
        slow: "The slowest hand hardly moves: to it, all places look the same.",
        all: `Slow hands tell far places apart, fast ones neighbours: ${here} looks like no other.`,
      }[get("reads")],
    );
  };
  const stops = [onTraits(model, ["position", "reads"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
