// Patches of an image, the sequence that they become, what a ViT attends to, and what it answers without one of them.
import { css, formatCount, formatNumber, make, onTraits, openCard, reducedMotion, refill, setTraits } from "./core.js";
import { choice, rovingGrid, slider } from "./controls.js";
import { bars } from "./drawing.js";

const CSS = css`
  .views {
    margin-bottom: 0.75rem;
  }
  .both {
    display: grid;
    grid-template: auto 1fr / min(22rem, 52%) minmax(0, 1fr);
    gap: 0 1.5rem;
  }
  .picture {
    position: relative;
    grid-row: 1 / 3;
    align-self: start;
  }
  canvas {
    display: block;
    width: 100%;
    image-rendering: pixelated;
  }
  .cells,
  .cell::before {
    position: absolute;
    inset: 0;
  }
  .cells,
  .numbers {
    display: inline-grid;
  }
  .line,
  [role="row"] {
    display: contents;
    cursor: default;
  }
  .cell {
    position: relative;
    box-shadow: inset 0 0 0 0.5px var(--tt-memory);
  }
  .cell::before {
    content: "";
    background: var(--c);
    opacity: calc(0.85 * var(--w));
  }
  .tile.on,
  .cell.on {
    outline: 3px solid var(--tt-query-line);
  }
  .cell.on {
    box-shadow: 0 0 0 5px #fff;
    z-index: 1;
  }
  .gone.gone {
    outline-color: var(--tt-masked-line);
  }
  .cell.gone {
    background: repeating-linear-gradient(135deg, var(--tt-masked-line) 0 1px, #0000 1px 6px) var(--mean);
  }
  .cell.gone::before {
    content: none;
  }
  .tile.gone canvas {
    object-position: 99rem; /* out of its frame */
    background: var(--mean);
  }
  .left {
    position: absolute;
    right: 0;
    bottom: 0;
    padding: 0 2px;
    font-size: 0.6875rem;
    line-height: 1.2;
    color: #fff;
    background: #000a;
  }
  .answers li {
    grid-template-columns: 1fr auto;
    padding: 0.3rem 0.5rem;
  }
  .answers li div {
    grid-area: 2 / 1 / 3 / 3;
    position: relative;
    height: 1rem;
  }
  .answers li > div::after {
    content: "";
    position: absolute;
    inset: -3px auto -3px var(--was);
    border-left: 2px solid;
  }
  .strip {
    display: flex;
    align-items: end;
    min-height: 6rem;
    gap: 1px;
    padding: 0.6rem 3px;
  }
  .tile {
    flex: 1 1 0;
    min-width: 0;
    text-align: center;
  }
  .tile.on {
    min-width: 2.2rem;
  }
  .tile canvas {
    transform-origin: 0 0;
  }
  .tile,
  .numbers {
    font-size: 0.75rem;
  }
  .up {
    height: calc(2.5rem * var(--w));
    background: var(--c);
  }
  .side p:first-child {
    font-weight: 600;
    margin: 0 0 0.4rem;
  }
  .told {
    text-wrap: pretty;
  }
  .few {
    --pad: min(0.9rem, 1.2cqw);
  }
  .side .tt-bars {
    row-gap: 0.4rem;
  }
  .numbers span {
    padding: var(--pad, 0.4rem) calc(0.75 * var(--pad, 0.4rem));
  }
  @container (max-width: 45rem) {
    .many {
      --pad: 0.2rem;
      font-size: 0.6875rem;
    }
  }
  @container (max-width: 38rem) {
    .many,
    .many + p {
      display: none;
    }
  }
  @container (max-width: 27rem) {
    .side .tt-bars {
      row-gap: 0;
    }
    .both {
      column-gap: 0.75rem;
    }
    .side {
      font-size: 0.85rem;
    }
    .told {
      grid-column: 1 / 3;
    }
    .answers li {
      padding-inline: 0.25rem;
    }
    .told p:first-child {
      margin-top: 0.25rem;
    }
    .numbers {
      font-size: 0.6875rem;
    }
    .side :not(.answers) > li:nth-child(n + 6) {
      display: none;
    }
    .strip {
      display: grid;
      grid-template-columns: repeat(var(--few), minmax(0, 1fr));
      grid-auto-rows: 3.55rem;
      gap: 0 2px;
    }
    .tile {
      font-size: 0.7rem;
      line-height: 1.2;
      min-width: 0 !important;
    }
    .up {
      height: calc(1.1rem * var(--w));
    }
  }
`;
const SET = ["patch_size", "view", "layer", "selected", "tried"];
const OTHERS = ["pixels", "channels", "step", "model_patch_size", "attention", "positions", "hidden", "classes"];
const TRAITS = [...SET, ...OTHERS, "answer", "notes"];
const VIEWS = {
  image: {
    question: () => "How does a Transformer read an image?",
    invite: "Tap a patch: where does it stand in the sentence below?",
  },
  hide: {
    colour: "loss",
    question: riddleOf,
    invite: "Tap a patch: the model sees the image without it.",
  },
  attention: {
    colour: "weights",
    question: () => "Whom does a patch look at?",
    invite: "Tap a patch, or CLS, from which the answer is read.",
  },
  positions: {
    colour: "memory",
    question: () => "Does the model know which patches are neighbours?",
    invite: "Tap a patch: which others resemble it by position?",
  },
};
const [MOST_TOKENS, MOST_NUMBERS] = [257, 64];

function patchState(model) {
  const traits = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const { pixels, channels, step, patch_size: patch, attention, positions, hidden, view, layer } = traits;
  const [height, width] = [pixels.length * step, (pixels[0].length / 2 / channels) * step];
  const count = (size) => (height * width) / size ** 2 + 1;
  const selected = Math.min(traits.selected, count(patch) - 1);
  const tried = [...new Set([...traits.tried, selected])];
  const weights =
    patch !== traits.model_patch_size || view === "image"
      ? null
      : view === "positions"
        ? positions[selected].map((cosine) => cosine / 100)
        : view === "attention"
          ? attention[layer - 1][selected].map((weight) => weight / 1000)
          : hidden.map(([share], i) => (tried.includes(i) ? (hidden[0][0] - share) / 1000 : 0));
  // What an answer can lose is all that it has.
  const others = view === "hide" ? [hidden[0][0] / 1000] : (weights || []).filter((_, i) => i !== selected);
  const sizes = pixels
    .map((_, i) => (i + 1) * step)
    .filter((size) => (height % size) + (width % size) === 0 && count(size) <= MOST_TOKENS)
    .map((size) => ({ size, nTokens: count(size) }));
  return {
    ...traits,
    tried,
    hides: weights && view === "hide",
    patch,
    selected,
    height,
    width,
    weights,
    sizes,
    columns: width / patch,
    rows: height / patch,
    side: patch / step,
    nTokens: count(patch),
    top: Math.max(1e-9, ...others),
  };
}

const noteOf = (text) => make("p", { class: "tt-note", text });
const nameOf = (place) => (place ? `patch ${place}` : "CLS");

/** A place in words, with its weight. */
function placeWords({ columns, weights, hides, hidden, classes, tried }, place) {
  const where = place ? `, row ${Math.ceil(place / columns)}, column ${((place - 1) % columns) + 1}` : "";
  const told = hides
    ? place && tried.includes(place) && `: ${classes[0]} ${formatNumber(hidden[place][0] / 1000)} without it`
    : weights && `: ${formatNumber(weights[place])}`;
  return nameOf(place) + where + (told || "");
}

/** Which class a row of probabilities finds likeliest. */
const bestOf = (row) => row.indexOf(Math.max(...row));

/** The question of the hidden patch: what can be found by hiding one. */
function riddleOf({ hidden, classes, answer }) {
  const said = `The model says ${classes[0]}.`;
  if (!answer || answer === classes[0]) return `${said} Is there a patch without which it says something else?`;
  return hidden.some((row) => classes[bestOf(row)] === answer)
    ? `${said} Which patch has to go for it to see the ${answer}?`
    : `${said} That is wrong: which patch misleads it most?`;
}

/** What the model answers without the chosen patch, and whether that is another answer. */
function answerOf({ hidden, classes, answer, selected }) {
  const [whole, now] = [hidden[0], hidden[selected]].map((row) => row.map((share) => formatNumber(share / 1000)));
  const [said, best] = [classes[0], bestOf(hidden[selected])];
  const right = (i) => (answer && classes[i] === answer ? ", which is right" : "");
  if (!selected) {
    const wrong = answer && answer !== said ? `; right is ${answer}` : right(0);
    return `Nothing is hidden: the model says ${said} (${whole[0]})${wrong}. CLS has no pixels and cannot be hidden.`;
  }
  if (!best) return `Without patch ${selected} the model still says ${said}: ${whole[0]} before, ${now[0]} now.`;
  const others = turningOf(hidden).filter((i) => i !== selected && bestOf(hidden[i]) === best).length;
  return (
    `Without patch ${selected} the model says ${classes[best]} (${now[best]})${right(best)}: ${said} hung on ` +
    `this patch, ${whole[0]} before and ${now[0]} now. ` +
    `Hiding ${["no other gives", "another one also gives"][others] || `${others} others also gives`} ${classes[best]}.`
  );
}

/** The patches without which the model answers something else. */
function turningOf(hidden) {
  return hidden.map((_, i) => i).filter((i) => i && bestOf(hidden[i]));
}

/** Where the hidden patch stands in the attention of CLS, from which the answer is read. */
function rankOf({ attention, selected, nTokens }) {
  const ranks = attention.map(([row]) => 1 + row.filter((weight, i) => i && weight > row[selected]).length);
  const told = ranks.map((rank, i) => `number ${rank} in layer ${i + 1}`).join(", ");
  return `By the attention of CLS, patch ${selected} of ${nTokens - 1} is ${told}.`;
}

/** How many patches that turn the answer are among as many to which CLS attends most. */
function pointedOf({ attention, hidden }) {
  const turning = turningOf(hidden);
  const told = attention.map(([row], layer) => {
    const order = row.map((_, i) => i).slice(1);
    const most = order.sort((a, b) => row[b] - row[a] || a - b).slice(0, turning.length);
    return `for ${most.filter((i) => turning.includes(i)).length} in layer ${layer + 1}`;
  });
  return (
    `Hiding one patch changes the answer for ${turning.length} of the ${hidden.length - 1}. ` +
    `Of the ${turning.length} with most attention from CLS it does so ${told.join(", ")}.`
  );
}

/** What the picture shows of the chosen place: how long it is, what it attends to, or whom it resembles. */
function findingOf(state) {
  const { weights, view, selected, patch, channels, nTokens, positions, columns } = state;
  if (state.hides) return answerOf(state);
  const name = selected ? `Patch ${selected}` : weights ? "CLS, which gives the answer," : "CLS";
  if (!weights)
    return selected
      ? `${name} is ${patch ** 2 * channels} numbers, and one of ${nTokens - 1} words of this sentence.`
      : "CLS is no patch: it gathers what the answer needs.";
  const others = weights
    .map((_, i) => i)
    .filter((i) => i !== selected && (i || view !== "positions"))
    .sort((a, b) => weights[b] - weights[a] || a - b);
  const [verb, at] = {
    attention: ["attends", "to"],
    positions: ["is, by position and among the patches,", "like"],
  }[view];
  const told = `${name} ${verb} most ${at} ${nameOf(others[0])}, then ${at} ${nameOf(others[1])}, itself apart.`;
  return view === "positions" ? `${told} ${neighboursOf(positions, columns)}` : told;
}

/** For how many patches the one that is likest by position lies beside, above or below them. */
function neighboursOf(positions, columns) {
  const place = (i) => [Math.floor((i - 1) / columns), (i - 1) % columns];
  const beside = positions.slice(1).filter((row, at) => {
    const others = row.map((_, i) => i).filter((i) => i && i !== at + 1);
    const likest = others.reduce((best, i) => (row[i] > row[best] ? i : best));
    const [[y, x], [v, u]] = [place(at + 1), place(likest)];
    return Math.abs(y - v) + Math.abs(x - u) === 1;
  });
  return `For ${beside.length} of ${positions.length - 1} patches a neighbour is the likest.`;
}

function pixelAt({ pixels, channels }, x, y, channel) {
  return parseInt(pixels[y].substr(2 * (x * channels + channel), 2), 16);
}

/** The mean of the image, which stands where a patch is hidden. */
function meanOf({ pixels, channels }) {
  const bytes = pixels.join("").match(/../g).map((byte) => parseInt(byte, 16));
  const mean = (channel) => {
    const own = bytes.filter((_, i) => i % channels === channel % channels);
    return own.reduce((sum, byte) => sum + byte, 0) / own.length;
  };
  return `rgb(${[0, 1, 2].map(mean)})`;
}

function paintImage(state) {
  const [width, height] = [state.width / state.step, state.pixels.length];
  const canvas = make("canvas", { width, height, "aria-hidden": "true" });
  const brush = canvas.getContext("2d");
  const image = brush.createImageData(width, height);
  image.data.forEach((_, i, bytes) => {
    const [place, channel] = [i >> 2, i % 4];
    bytes[i] =
      channel > 2 ? 255 : pixelAt(state, place % width, Math.floor(place / width), state.channels > 1 ? channel : 0);
  });
  brush.putImageData(image, 0, 0);
  return canvas;
}

/** Where a patch begins, in drawn pixels. */
function cornerOf({ columns, side }, place) {
  return [((place - 1) % columns) * side, Math.floor((place - 1) / columns) * side];
}

/** The patch's numbers in the order of `patchify`. */
function patchNumbers(state) {
  const { selected, patch, channels, side } = state;
  if (!selected) return [make("p", { text: "CLS" })];
  const [left, top] = cornerOf(state, selected);
  const spans = Array.from({ length: Math.min(channels * side ** 2, MOST_NUMBERS) }, (_, i) => {
    const grey = pixelAt(state, left + (i % side), top + (Math.floor(i / side) % side), Math.floor(i / side ** 2));
    return make("span", {
      style: `background: rgb(${grey},${grey},${grey}); color: ${grey > 117 ? "#000" : "#fff"}`,
      "data-value": grey / 255,
      text: formatNumber(grey / 255, 2),
    });
  });
  const rest = channels * side ** 2 - spans.length;
  const columns = Math.min(side, 8);
  const style = `grid-template-columns: repeat(${columns}, auto)`;
  return [
    make("p", { text: `${patch} × ${patch} × ${channels} = ${patch ** 2 * channels} numbers` }),
    make("div", { class: `numbers ${columns > 4 ? "many" : "few"}`, style }, ...spans),
    rest ? noteOf(`and ${rest} more`) : null,
  ];
}

/** What the model answers: its classes in one order, with a line where each stood with nothing hidden. */
function answersOf(state, list) {
  const { hidden, classes, answer, selected } = state;
  list.show(
    classes.map((name, i) => ({
      label: name + (name === answer ? " (right)" : ""),
      share: hidden[selected][i] / 1000,
      text: formatNumber(hidden[selected][i] / 1000),
      colour: "decoder",
      on: name === answer,
    })),
  );
  hidden[0].forEach((share, i) => list.node.children[i].style.setProperty("--was", `${share / 10}%`));
  return [
    make("p", { text: `The answer ${selected ? `without patch ${selected}` : "to the whole image"}` }),
    list.node,
  ];
}

/** What is to be said below the panel. */
function toldOf(state) {
  const { hides, hidden, selected, attention, weights, notes } = state;
  if (!hides) return weights ? [] : [selected ? notes.image : notes.CLS];
  if (!selected) return [VIEWS.hide.invite];
  const line = "The line: with nothing hidden.";
  if (!attention.length) return [line];
  return [line, rankOf(state), ...(bestOf(hidden[selected]) ? [pointedOf(state)] : [])];
}

function panelOf(state, list, answers) {
  const { weights, view, layer, selected } = state;
  if (state.hides) return answersOf(state, answers);
  if (!weights) return patchNumbers(state);
  const title = {
    attention: `attends to in layer ${layer}`,
    positions: "resembles in position",
  }[view];
  const order = weights
    .map((_, i) => i)
    .sort((a, b) => weights[b] - weights[a] || a - b)
    .slice(0, 8);
  return [
    make("p", { text: `What ${nameOf(selected)} ${title}` }),
    list.show(
      order.map((i) => ({
        label: nameOf(i),
        share: Math.max(0, weights[i] / weights[order[0]]),
        text: formatNumber(weights[i]),
        colour: VIEWS[view].colour,
        on: i === selected,
      })),
    ),
  ];
}

function costOf({ height, width, patch, rows, columns, nTokens, step, sizes, notes }) {
  const words = [
    notes.source,
    step > 1 ? `Each drawn pixel is the mean of ${step} × ${step}.` : "",
    ...Object.keys(VIEWS).slice(1).map((view) => notes[view]),
    notes.scale,
    `${height} × ${width} pixels: ${rows} × ${columns} = ${nTokens - 1} patches, ` +
      `with CLS ${nTokens} tokens. Pairs of query and key in every layer and head: ` +
      `${nTokens}² = ${formatCount(nTokens * nTokens)}.`,
  ];
  return [
    ...words.filter(Boolean).map(noteOf),
    bars().show(
      sizes.map(({ size, nTokens: others }) => ({
        label: `${size} × ${size}: ${others} tokens`,
        share: (others / sizes[0].nTokens) ** 2,
        text: formatCount(others * others),
        on: size === patch,
      })),
    ),
  ];
}

/** The cells over the picture and the tiles in reading order, each a grid for the keyboard. */
function cutUp(state, picture, strip) {
  const { nTokens, columns } = state;
  const token = (kind, place, row, column, ...inside) =>
    make(
      "div",
      {
        class: kind,
        role: "gridcell",
        tabindex: -1,
        "data-place": place,
        "data-row": row,
        "data-column": column,
      },
      ...inside,
    );
  const [whole, side] = [paintImage(state), state.side];
  const tiles = Array.from({ length: nTokens }, (_, i) => {
    const canvas = make("canvas", { width: side, height: side, "aria-hidden": "true" });
    if (i) canvas.getContext("2d").drawImage(whole, ...cornerOf(state, i).map((at) => -at));
    return token("tile", i, 0, i, make("div", { class: "up" }), canvas, i || "CLS");
  });
  const rows = Array.from({ length: state.rows }, (_, y) =>
    Array.from({ length: columns }, (_, x) => token("cell", 1 + y * columns + x, y, x)),
  );
  const grid = (name, label, lines) =>
    make(
      "div",
      {
        class: name,
        role: "grid",
        "aria-label": label,
        style: `grid-template-columns: repeat(${columns}, 1fr)`,
      },
      ...lines.map((line) => make("div", { role: "row" }, ...line)),
    );
  strip.style.setProperty("--few", Math.max(13, Math.ceil(nTokens / 3)));
  refill(picture, whole, grid("cells", "The image, cut into patches", rows));
  refill(strip, grid("line", "The sequence: CLS, then the patches in reading order", [tiles]));
  return [rows, [tiles]];
}

/** Let tokens fly from the picture to their places in the line. */
function fly(picture, tiles, gap) {
  tiles.forEach((tile, i) => {
    const cell = picture.querySelector(`[data-place="${tile.dataset.place}"]`);
    if (!cell || reducedMotion()) return;
    const canvas = tile.querySelector("canvas");
    const [from, to] = [cell, canvas].map((node) => node.getBoundingClientRect());
    const there = `translate(${from.x - to.x}px, ${from.y - to.y}px) scale(${from.width / to.width})`;
    canvas.animate({ transform: [there, "none"] }, { duration: 900, delay: gap * i, fill: "backwards" });
  });
}

function showWeights(root, tokens, state) {
  const { weights, hides, hidden, view, selected, top, tried } = state;
  root.style.setProperty("--c", `var(--tt-${VIEWS[view].colour}-line)`);
  for (const node of tokens) {
    const place = Number(node.dataset.place);
    const weight = weights ? weights[place] : 0;
    const isOn = place === selected;
    node.style.setProperty("--w", isOn && !hides ? 0 : Math.max(0, weight / top));
    node.classList.toggle("on", isOn);
    node.classList.toggle("gone", !!hides && isOn && place > 0);
    node.setAttribute("aria-label", placeWords(state, place));
    node.dataset.value = weight.toFixed(9);
    if (!node.matches(".cell")) continue;
    const left = hides && tried.includes(place) && Math.round(hidden[place][0] / 10);
    refill(node, left === false ? null : make("span", { class: "left", text: left }));
  }
}

/** What can be chosen: of a model its views and layers, of an image alone the patch size. */
function patchControls({ sizes, attention, positions, hidden }, set) {
  const size = slider({
    label: "Patch size",
    min: 0,
    max: sizes.length - 1,
    step: 1,
    format: (i) => `${sizes[i].size} × ${sizes[i].size}`,
    onInput: (i) => set({ selected: 0, patch_size: sizes[i].size }),
  });
  const there = { image: true, hide: hidden.length, attention: attention.length, positions: positions.length };
  const options = Object.keys(VIEWS)
    .filter((view) => there[view])
    .map((view) => [view, view]);
  // The riddle begins with the whole image.
  const onChange = (view) => set(view === "hide" ? { view, selected: 0 } : { view });
  const views = choice({ name: "Show", options, onChange });
  views.node.classList.add("views");
  const layer = slider({
    label: "Layer",
    min: 1,
    max: attention.length || 1,
    step: 1,
    format: (value) => `${value} of ${attention.length}`,
    onInput: (value) => set({ layer: value }),
  });
  return {
    views: options.length > 1 ? views.node : null,
    nodes: options.length > 1 ? [layer.node] : [size.node],
    show: (state) => {
      size.set(sizes.findIndex((one) => one.size === state.patch));
      views.set(state.view);
      layer.set(state.layer);
      layer.node.hidden = state.view !== "attention";
    },
  };
}

/** Pointing shows a token for a while; a click, a tap or the keyboard keeps it. */
function listenTo(node, grid, onToken) {
  const choose = (event) => {
    const token = event.target.closest("[data-place]");
    if (token) onToken(Number(token.dataset.place), event.type !== "pointerover");
  };
  for (const kind of ["pointerover", "focusin", "click"]) node.addEventListener(kind, choose);
  node.addEventListener("pointerleave", () => onToken());
  return rovingGrid(
    node,
    (y, x) => grid()[y][x],
    () => ({
      firstRow: 0,
      firstColumn: 0,
      lastRow: grid().length - 1,
      lastColumn: grid()[0].length - 1,
    }),
  );
}

function render({ model, el }) {
  const first = Object.fromEntries(SET.map((name) => [name, model.get(name)]));
  const set = (values) => {
    pinned = values.selected ?? pinned;
    setTraits(model, values);
  };
  const card = openCard(el, {
    label: "Patches",
    onReset: () => set(first),
    css: CSS,
  });
  const [picture, strip, side, told] = ["picture", "strip", "side", "told"].map((name) => make("div", { class: name }));
  const [list, answers, cost] = [bars(), bars(), make("div", { class: "cost" })];
  answers.node.classList.add("answers");
  let state = patchState(model);
  let pinned = state.selected;
  let [cut, grids] = ["", []];
  const controls = patchControls(state, set);
  card.stage.append(...[controls.views, make("div", { class: "both" }, picture, side, told), strip].filter(Boolean));
  card.controls.append(...controls.nodes);
  card.more("About the image", cost);

  const stops = [picture, strip].map((node, which) =>
    listenTo(
      node,
      () => grids[which],
      (place, keep) => {
        if (state.hides && !keep) return; // pointing would give the riddle away
        const flies = keep && place !== pinned && !state.hides;
        if (keep) pinned = place;
        const tried = state.hides && place ? { tried: [...new Set([...model.get("tried"), place])] } : {};
        setTraits(model, { selected: place ?? pinned, ...tried });
        if (flies) fly(picture, [grids[1][0][place]], 0);
      },
    ),
  );
  const draw = () => {
    state = patchState(model);
    const now = state.patch + state.pixels.join();
    if (now !== cut) {
      cut = now;
      grids = cutUp(state, picture, strip);
      grids.forEach((grid, which) => stops[which].makeStop(grid[0][0]));
      refill(cost, ...costOf(state));
      card.root.style.setProperty("--mean", meanOf(state));
    }
    card.ask(VIEWS[state.view].question(state), VIEWS[state.view].invite);
    controls.show(state);
    card.controls.hidden = controls.nodes.every((node) => node.hidden);
    showWeights(card.root, grids.flat(2), state);
    const panel = panelOf(state, list, answers).filter(Boolean);
    const kept = panel.findIndex((node) => side.contains(node));
    if (kept < 0) refill(side, ...panel);
    else {
      // The bars stay, and so can grow.
      for (const node of [...side.children]) if (node !== panel[kept]) node.remove();
      panel[kept].before(...panel.slice(0, kept));
      panel[kept].after(...panel.slice(kept + 1));
    }
    refill(told, ...toldOf(state).map(noteOf));
    card.find(findingOf(state));
    card.caption.textContent = state.hides
      ? `In a patch that was hidden: per cent for ${state.classes[0]} without it. Colour and bars: what it lost.`
      : state.weights
        ? state.notes[state.view].split(":")[0].replace(/\.?$/, ".")
        : state.notes.source.split(/(?<=\.) (?=[A-Z])/)[0];
  };
  const stop = onTraits(model, TRAITS, draw);
  draw();
  const watcher = new IntersectionObserver(
    ([{ isIntersecting }]) => {
      if (isIntersecting) (watcher.disconnect(), fly(picture, grids[1][0], 25));
    },
    { threshold: 0.7 },
  );
  watcher.observe(strip);
  return () => {
    stop();
    watcher.disconnect();
    card.close();
  };
}

export default { render };
