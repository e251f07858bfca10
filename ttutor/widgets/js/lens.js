// The logit lens: a word climbs the layers of a language model, and at each the best guess at the next
// word is read.
import { choice, slider } from "./controls.js";
import { css, distinct, make, moveOnce, onTraits, openCard, setTraits } from "./core.js";
import { stage } from "./drawing.js";

const CSS = css`
  .rail,
  .rung {
    stroke: currentColor;
    stroke-opacity: 0.35;
  }
  .rail {
    stroke-width: 2;
  }
  .tt-stage > .tt-choice {
    margin-bottom: 0.75rem;
    align-items: baseline;
  }
  .tt-stage .tt-option {
    border-color: transparent;
    border-radius: 0.35rem;
    padding-inline: 0.3rem;
  }
  .gap {
    min-width: 4.5em;
    margin: 0 0.3rem;
    text-align: center;
    font-weight: 700;
    border-bottom: 2px solid;
  }
  .gap ~ .tt-option {
    opacity: 0.5;
  }
  .strip {
    fill: none;
    stroke: currentColor;
    stroke-opacity: 0.5;
  }
  .group0 {
    fill: var(--tt-decoder);
  }
  .group1 {
    fill: color-mix(in srgb, currentColor 35%, transparent);
  }
  .guess {
    fill: color-mix(in srgb, var(--tt-decoder) var(--part, 22%), var(--tt-page));
    stroke: var(--tt-decoder-line);
  }
  .answer {
    --part: 75%;
  }
  .flow {
    stroke: none;
    fill-opacity: 0.4;
  }
  .ahead {
    stroke-opacity: 0.2;
  }
  .tt-picture .other {
    text-anchor: middle;
  }
  .climbed {
    stroke: currentColor;
    stroke-width: 5;
    stroke-linecap: round;
  }
  .tt-picture .best {
    font-size: 1rem;
    font-weight: 700;
  }
  @container (max-width: 27rem) {
    .tt-finding {
      min-height: 5.8em;
    }
  }
`;
const SURE = 0.8;
const [RUNG, HALF] = [44, 11]; // from rung to rung, and half of a bar

/** The ladder, from the first layer below to the last above: at each rung the best guess, and what
 * groups of words have together, as a strip. */
function drawLadder({ depth }, right, { layers, guesses, chances, shares, groups, reached }) {
  const last = guesses.length - 1;
  const y = (rung) => 22 + (last - rung + 0.5) * RUNG;
  const [rail, name] = [64, 82];
  const [start, end] = [name + 76, right - 4];
  const isGroups = groups.length > 0;
  /** What stands side by side at a rung: a group or a guess, where it begins and how wide it is. */
  const partsOf = guesses.slice(0, reached + 1).map((five, rung) => {
    let x = start;
    return (isGroups ? shares : chances)[rung].map((share, i) => {
      const width = share * (end - start);
      x += width;
      const kind = five[i] === guesses[last][0] ? "guess answer" : "guess";
      return { share, x: x - width, width, word: isGroups ? i : five[i], kind: isGroups ? `group${i}` : kind };
    });
  });
  /** A word that is among the guesses at two rungs flows from one to the other. */
  const flows = partsOf.flatMap((parts, rung) =>
    parts.map(({ x, width, word, kind }, i) => {
      const below = rung > 0 && partsOf[rung - 1].find((one) => one.word === word);
      const [from, to] = [y(rung - 1) - HALF, y(rung) + HALF];
      const middle = (from + to) / 2;
      return (
        below && [
          `flow${rung}-${i}`,
          "path",
          {
            class: `flow ${kind}`,
            d:
              `M${below.x} ${from}C${below.x} ${middle} ${x} ${middle} ${x} ${to}H${x + width}` +
              `C${x + width} ${middle} ${below.x + below.width} ${middle} ${below.x + below.width} ${from}Z`,
          },
        ]
      );
    }),
  );
  return [
    ...flows,
    ...(isGroups ? [] : [[name, "best guess"], [start, "how probable five guesses are"]]).map(([x, text], i) => [
      `head${i}`,
      "text",
      { x, y: 12, text },
    ]),
    ...groups.flatMap(([group], i) => [
      [`swatch${i}`, "rect", { class: `group${i}`, x: right - 219 + 110 * i, y: 2, width: 12, height: 12 }],
      [`group${i}`, "text", { x: right - 202 + 110 * i, y: 12, text: group }],
    ]),
    ["rail", "path", { class: "rail", d: `M${rail} ${y(0)}V${y(last)}` }],
    ...guesses.flatMap((five, rung) => {
      const strip = { y: y(rung) - HALF, height: 2 * HALF };
      const isClimbed = rung <= reached;
      const parts = (partsOf[rung] || []).flatMap(({ share, x, width, kind }, i) => {
        const part = { class: kind, x, width, "data-value": share.toFixed(9) };
        // The first guess stands before the bar, the others in it.
        const isNamed = !isGroups && i && width > 8 * five[i].length + 8;
        return [
          [`part${rung}-${i}`, "rect", { ...strip, ...part }],
          isNamed && [`name${rung}-${i}`, "text", { class: "other", x: x + width / 2, y: y(rung) + 4, text: five[i] }],
        ];
      });
      const words = layers[rung] ? `after ${layers[rung]}` : "start";
      return [
        [`layer${rung}`, "text", { x: rail - 12, y: y(rung) + 4, "text-anchor": "end", text: words }],
        [`rung${rung}`, "path", { class: "rung", d: `M${rail - 6} ${y(rung)}h12` }],
        isClimbed && [`best${rung}`, "text", { class: "best", x: name, y: y(rung) + 4, text: five[0].slice(0, 8) }],
        ...parts,
        [`strip${rung}`, "rect", { ...strip, class: isClimbed ? "strip" : "strip ahead", x: start, width: end - start }],
      ];
    }),
    ["climbed", "path", { class: "climbed", d: `M${rail} ${y(0)}V${y(depth) - 0.1}` }],
  ];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (values) => setTraits(model, values);
  const initial = { token: get("token"), depth: get("depth") };
  const [tokens, groups, subject, layers] = [get("tokens"), get("groups"), get("subject"), get("layers")];
  const top = layers.length - 1;
  const card = openCard(el, {
    label: "The logit lens",
    question: "When does a model know its next word?",
    invite: subject
      ? `Climb the layers: from which one on does the verb agree with “${subject}”?`
      : "Climb the layers: from which one on is the answer there?",
    onReset: () => set(initial),
    css: CSS,
  });
  const sharesOf = () => get("shares")[get("token")] || [];
  const read = () => ({
    layers,
    guesses: get("guesses")[get("token")],
    chances: get("chances")[get("token")],
    shares: sharesOf(),
    // The groups are shown where one of them has the next word.
    groups: sharesOf()
      .at(-1)
      ?.some((share) => share > SURE)
      ? groups
      : [],
    subject,
    reached: get("depth"),
  });
  const picture = stage({
    label: "A ladder of layers with the best guess at each",
    height: 22 + layers.length * RUNG,
    draw: (numbers, width) => drawLadder(numbers, width, read()),
  });
  const names = distinct(tokens);
  const words = choice({
    name: "The last word that is read",
    options: names.map((name, i) => [i, name]),
    onChange: (token) => set({ token }),
  });
  const climb = slider({
    label: "Layers",
    min: 0,
    max: top,
    step: 1,
    format: (depth) => `${layers[depth]} of ${layers[top]}`,
    plays: 1,
    onInput: (depth) => set({ depth }),
  });
  const gap = make("b", { class: "gap" }); // the sentence goes on with what stands here
  card.stage.append(words.node, picture.node);
  card.controls.append(climb.node);
  card.caption.textContent =
    "Each layer’s result is read as if it were the last: which word would come next?" +
    (get("guesses").flat(2).includes("▁") ? " ▁: a blank alone." : "");
  card.more("About the data", make("p", { class: "tt-note", text: get("note") }));
  const draw = () => {
    const [token, depth] = [get("token"), get("depth")];
    words.set(token);
    climb.set(depth);
    words.node.querySelectorAll(".tt-option")[token].after(gap);
    gap.textContent = layers[depth] ? get("guesses")[token][depth][0] : "?";
    picture.show({ depth });
    card.find(findingOf(read(), tokens[token], depth));
  };
  const stops = [
    onTraits(model, ["token", "depth"], draw),
    moveOnce(card, model, { depth: Math.min(initial.depth + 1, top) }),
    picture.close,
    card.close,
  ];
  draw();
  return () => stops.forEach((stop) => stop());
}

/** The best guess at this rung, and since when it is of the kind that the last layer gives. */
function findingOf({ layers, guesses, shares, groups, subject }, word, depth) {
  const best = guesses[depth][0];
  if (!layers[depth] && best === word)
    return `Before the first layer the lens gives back the word that it reads: “${word}”.`;
  const before = depth > 0 && guesses[depth - 1][0];
  const changed = before && ![best, word].includes(before) ? `, no longer “${before}”` : "";
  const here = `${layers[depth] ? `After ${count(layers[depth])}` : "Before the first layer"}: “${best}”${changed}.`;
  const kind = groups.findIndex((_, group) => shares.at(-1)[group] > SURE);
  const last = guesses.at(-1)[0];
  const isSame = (rung) => (kind < 0 ? guesses[rung][0] === last : shares[rung][kind] > SURE);
  const first = guesses.findIndex((_, from) => guesses.every((_, rung) => rung < from || isSame(rung)));
  const why =
    subject && subject !== word ? `, which agree with “${subject}”, though “${word}” stands next to them` : "";
  const what = kind < 0 ? `“${last}” leads` : `nearly all probability goes to ${groups[kind][0]}${why}`;
  // What the layers above will say is not told before the word has climbed there.
  if (depth < guesses.length - 1) return `${here} ${kind >= 0 && isSame(depth) ? `Now ${what}. ` : ""}Will it last?`;
  if (kind < 0 && first === depth) return `${here} In none of the readings before does “${last}” lead.`;
  // Of layers that were not read nothing is known.
  const [from, lowest] = [layers[first] ? count(layers[first]) : "the start", Math.max(first - 1, 0)];
  const isWhole = layers.slice(lowest).every((layer, i) => layer === layers[lowest] + i);
  return `${here} ${isWhole ? "From" : "In every reading from"} ${from} on ${what}.`;
}

const count = (layers) => `${layers} layer${layers > 1 ? "s" : ""}`;

export default { render };
