// Waves: the encoding of up to 64 positions as a picture whose cells can be read, and clocks that its
// pairs of features are. Each clock that is read rules out places, until one is left.
import { slider } from "./controls.js";
import { css, formatCount, formatNumber, onTraits, openCard, setTraits } from "./core.js";
import { arrow, stage } from "./drawing.js";

const CSS = css`
  .picture {
    image-rendering: pixelated;
    cursor: crosshair;
  }
  .veil {
    fill: var(--tt-page);
    fill-opacity: 0.55;
    shape-rendering: crispEdges;
    pointer-events: none;
  }
  .cell,
  .column {
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
  .dial {
    fill: transparent;
    stroke: currentColor;
    stroke-opacity: 0.4;
  }
  @media (hover: hover) {
    .dial:hover {
      fill: color-mix(in srgb, currentColor 8%, transparent);
    }
  }
  .dial.read {
    stroke-opacity: 1;
    stroke-width: 3;
  }
  .sector {
    fill: color-mix(in srgb, currentColor 16%, transparent);
    pointer-events: none;
  }
  .hand,
  .line {
    fill: none;
    stroke: var(--tt-key-line);
    stroke-width: 3;
    pointer-events: none;
  }
  .others {
    stroke: currentColor;
    stroke-opacity: 0.55;
    pointer-events: none;
  }
  .tt-picture .left {
    font-size: 1.125rem;
    font-weight: 600;
  }
  @container (max-width: 32rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const SIZE = 64;
const HANDS = [0, 4, 8, 12, 16, 20, 24, 31];
const TOLERANCE = 0.3; // between two tips of a hand of length 1: an angle of 17 degrees
const frequency = (pair) => 10000 ** ((-2 * pair) / SIZE);
const FEWEST = 8;
/** All that can be read together. */
const CHOICES = Array.from({ length: 1 << HANDS.length }, (_, bits) => HANDS.filter((_, i) => (bits >> i) & 1));

/** What stands in one cell of the picture. */
function value(position, feature) {
  const angle = position * frequency(Math.floor(feature / 2));
  return feature % 2 ? Math.cos(angle) : Math.sin(angle);
}

/** The places that a clock takes for a round, in words. */
const period = (pair) => {
  const round = (2 * Math.PI) / frequency(pair);
  return round < 100 ? formatNumber(round, 1) : formatCount(round);
};

/** The cell in words: place, feature, wavelength, value. */
function told(position, feature) {
  const kind = feature % 2 ? "cos" : "sin";
  return `position ${position}, feature ${feature}: ${kind}, ${period(Math.floor(feature / 2))} a round, ${formatNumber(value(position, feature), 3)}`;
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

/** The positions, of so many, where the clocks that are read look as they do here. */
const lookAlike = (here, reads, shown) =>
  [...Array(shown).keys()].filter((place) =>
    reads.every((pair) => Math.abs(2 * Math.sin(((place - here) * frequency(pair)) / 2)) < TOLERANCE),
  );

/** With how few clocks one place is left. */
const fewest = (here, shown) =>
  Math.min(...CHOICES.filter((reads) => lookAlike(here, reads, shown).length === 1).map(({ length }) => length));

/** The clocks, from the fastest to the slowest: the hand here, and thin ones at the other places that are left. */
function clocks(position, places, reads, { left, top, side }, toggle) {
  return HANDS.flatMap((pair, i) => {
    const x = left + ((i % 4) + 0.5) * side;
    const y = top + Math.floor(i / 4) * (side + 16) + side / 2;
    const [radius, turn, read] = [side / 2 - 5, frequency(pair), reads.includes(pair)];
    const tip = (angle) => [x + radius * Math.sin(angle), y - radius * Math.cos(angle)];
    const wide = 2 * Math.asin(TOLERANCE / 2);
    const [from, to] = [-wide, wide].map((by) => tip(position * turn + by).join(" "));
    return [
      [
        `dial${i}`,
        "circle",
        {
          class: `dial${read ? " read" : ""}`,
          cx: x,
          cy: y,
          r: radius,
          press: () => toggle(pair),
          "aria-pressed": String(read),
          "aria-label": `clock of ${period(pair)} places`,
        },
      ],
      read && [`sector${i}`, "path", { class: "sector", d: `M${x} ${y}L${from}A${radius} ${radius} 0 0 1 ${to}Z` }],
      [
        `others${i}`,
        "path",
        { class: "others", d: places.map((at) => `M${x} ${y}L${tip(at * turn).join(" ")}`).join("") },
      ],
      [`hand${i}`, "path", { class: "hand", d: arrow(x, y, ...tip(position * turn), 7) }],
      [
        `period${i}`,
        "text",
        { x, y: y + radius + 15, "text-anchor": "middle", text: period(pair) + (i ? "" : " a round") },
      ],
    ];
  });
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = Object.fromEntries(["position", "feature", "reads", "shown"].map((name) => [name, get(name)]));
  let pointed = null; // the cell under the pointer, where there is one
  let kept = get("position"); // where the line goes back to when there are positions enough
  let glide = 0; // the line follows at once; what a clock rules out fades
  const gliding = (values) => {
    glide = 400;
    set(values);
    glide = 0;
  };
  const card = openCard(el, {
    label: "Waves",
    question: "How can clocks tell a word where it stands?",
    invite: "Tap clocks until only one place is left: how few do you need?",
    onReset: () => gliding(initial),
    css: CSS,
  });
  const url = waves();
  const within = (place, size) => Math.min(Math.max(place, 0), size - 1);
  const move = (position, feature) =>
    set({ position: within(position, get("shown")), feature: within(Math.round(feature), SIZE) });
  /** Read one clock more, with the cell of its hand, or one less. */
  const toggle = (pair) => {
    const others = get("reads").filter((one) => one !== pair);
    const adds = others.length === get("reads").length;
    gliding(adds ? { reads: [...others, pair], feature: 2 * pair } : { reads: others });
  };
  const size = (width, height) => (width < 520 ? [width - 22, 172] : [width * 0.41, height - 22]);
  const picture = stage({
    label: "The encoding of up to 64 positions, and a clock for each of eight pairs of features",
    height: (width) => (width < 520 ? 222 + 2 * Math.min(width / 4 + 16, 92) : 342),
    draw: ({ position, lit }, width, height) => {
      const narrow = width < 520;
      const [wide, tall] = size(width, height);
      const [shown, reads] = [get("shown"), get("reads")];
      const [row, column] = [tall / shown, wide / SIZE];
      const cell = pointed || [Math.round(position), get("feature")];
      const places = [...Array(shown).keys()];
      const left = places.filter((at) => lit[at] === 1);
      const place = narrow
        ? { side: Math.min(width / 4, 76), top: tall + 52 }
        : { side: Math.min((width - wide - 36) / 4, 120), top: 0 };
      place.left = (narrow ? width : width + wide + 36) / 2 - 2 * place.side;
      if (!narrow) place.top = (tall - 2 * place.side - 32) / 2 + 18;
      return [
        [
          "waves",
          "image",
          {
            class: "picture",
            href: url,
            width: wide,
            height: row * SIZE,
            preserveAspectRatio: "none",
            style: `clip-path:inset(0 0 ${100 - (100 * shown) / SIZE}%)`,
          },
        ],
        ...places
          .filter((at) => lit[at] < 1)
          .map((at) => [
            `veil${at}`,
            "rect",
            { class: "veil", opacity: 1 - lit[at], x: 0, y: at * row, width: wide, height: row },
          ]),
        ...reads.map((pair) => [
          `column${pair}`,
          "rect",
          { class: "column", x: 2 * pair * column, y: 0, width: 2 * column, height: tall },
        ]),
        ["cell", "rect", { class: "cell", x: cell[1] * column, y: cell[0] * row, width: column, height: row }],
        ["rows", "text", { x: 0, y: tall + 17, text: told(...cell) }],
        ...places
          .filter((at) => lit[at])
          .map((at) => [
            `alike${at}`,
            "rect",
            {
              class: "alike",
              "data-value": at,
              opacity: lit[at],
              x: wide + 5 + 20 * (1 - lit[at]),
              y: at * row + 0.5,
              width: 14,
              height: Math.max(row - 1, 2),
            },
          ]),
        ["reading", "path", { class: "line", d: `M0 ${(position + 0.5) * row}H${wide}` }],
        [
          "handle",
          "circle",
          {
            class: "knob pull",
            cx: (get("feature") + 0.5) * column,
            cy: (position + 0.5) * row,
            r: 9,
            pull: (x, y) => move(y / row - 0.5, x / column - 0.5),
            stride: [column, row],
            "aria-label": "the line of the position",
            "aria-valuenow": Math.round(position),
            "aria-valuemin": 0,
            "aria-valuemax": shown - 1,
            "aria-valuetext": told(Math.round(position), get("feature")),
          },
        ],
        [
          "left",
          "text",
          {
            class: "left",
            x: place.left + 2 * place.side,
            y: place.top - 10,
            "text-anchor": "middle",
            text: `${left.length} ${left.length === 1 ? "place" : "places"} left`,
          },
        ],
        ...clocks(position, left, reads, place, toggle),
      ];
    },
  });
  const shown = slider({
    label: "Positions",
    min: FEWEST,
    max: SIZE,
    step: 1,
    format: String,
    onInput: (count) => {
      if (get("position") !== Math.min(kept, get("shown") - 1)) kept = get("position");
      set({ shown: count, position: Math.min(kept, count - 1) });
    },
  });
  /** The cell where an event happens; nothing beside the picture. */
  const cellAt = (event) => {
    const box = picture.node.getBoundingClientRect();
    const [wide, tall] = size(box.width, box.height);
    const cell = [((event.clientY - box.top) / tall) * get("shown"), ((event.clientX - box.left) / wide) * SIZE].map(
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
  card.controls.append(shown.node);
  card.caption.textContent =
    "Thick ring: read. Marks, thin hands: the places left, at most 17.25° off. Point at a cell to read it.";
  const draw = () => {
    const [here, count, reads] = [Math.round(get("position")), get("shown"), get("reads")];
    shown.set(count);
    const steps = reads.map((_, i) => lookAlike(here, reads.slice(0, i + 1), count));
    const alike = lookAlike(here, reads, count);
    const lit = Array.from({ length: count }, (_, at) => Number(alike.includes(at)));
    picture.show({ position: get("position"), lit }, glide);
    if (!reads.length) return card.find(`No clock is read: it could be any of the ${count} places.`);
    const least = fewest(here, count);
    const enough =
      reads.length > least
        ? `, but ${least === 1 ? "one clock" : `${least} clocks`} can do it: which?`
        : least > 1
          ? `, and no fewer clocks would do: fast ones tell neighbours apart, slower ones what lies farther.`
          : ` among ${count} places, by one clock.`;
    card.find(
      `With one clock ${here} looks like ${steps.map(({ length }, i) => (i ? `with ${i + 1} like ${length - 1}` : `${length - 1} other place${length === 2 ? "" : "s"}`)).join(", ")}. ` +
        (alike.length > 1 ? "Next, tap one whose thin hands point apart." : `Only ${here} is left${enough}`),
    );
  };
  const stops = [onTraits(model, ["position", "feature", "reads", "shown"], draw), picture.close, card.close];
  draw();
  return () => stops.forEach((stop) => stop());
}

export default { render };
