// Patches of an image, the sequence that they become, and what a ViT's attention draws from.
import { css, formatCount, formatNumber, make, onTraits, openCard, reducedMotion, refill, setTraits } from "./core.js";
import { choice, rovingGrid, slider } from "./controls.js";
import { bars } from "./drawing.js";

const CSS = css`
  .views {
    margin-bottom: 0.75rem;
  }
  .both {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem 1.5rem;
  }
  .picture {
    position: relative;
    flex: 0 0 min(18rem, 100%);
    align-self: flex-start;
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
    flex: 0 0 2.2rem;
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
  .side {
    flex: 1 1 15rem;
    min-height: 15.5rem;
  }
  .side .tt-bars {
    margin-bottom: 0.5rem;
  }
  .side p:first-child {
    font-weight: 600;
    margin: 0 0 0.4rem;
  }
  .tt-controls {
    min-height: 3.25rem; /* of a slider */
  }
  .numbers span {
    padding: 0.4rem 0.3rem;
  }
  @container (max-width: 27rem) {
    .both {
      flex-wrap: nowrap;
      column-gap: 0.75rem;
    }
    .picture {
      flex-basis: 10rem;
    }
    .side {
      flex-basis: 0;
      min-width: 0;
      min-height: 0;
      font-size: 0.85rem;
    }
    .side .numbers,
    .side li:nth-child(n + 6) {
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
    }
    .up {
      height: calc(1.1rem * var(--w));
    }
  }
`;
const SET = ["patch_size", "view", "layer", "selected"];
const TRAITS = [...SET, "pixels", "channels", "step", "model_patch_size", "attention", "positions", "notes"];
const VIEWS = ["image", "attention", "rollout", "positions"];
const [MOST_TOKENS, MOST_NUMBERS] = [257, 64];

/** How much of each token reaches token `from`; the layers are in thousandths. */
function rollOut(layers, from) {
  return layers.reduceRight(
    (row, layer) =>
      row.map((share, key) => share / 2 + row.reduce((sum, part, query) => sum + (part * layer[query][key]) / 2000, 0)),
    layers[0].map((_, i) => (i === from ? 1 : 0)),
  );
}

function patchState(model) {
  const traits = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const { pixels, channels, step, patch_size: patch, attention, positions, view, layer } = traits;
  const [height, width] = [pixels.length * step, (pixels[0].length / 2 / channels) * step];
  const count = (size) => (height * width) / size ** 2 + 1;
  const selected = Math.min(traits.selected, count(patch) - 1);
  const weights =
    patch !== traits.model_patch_size || view === "image"
      ? null
      : view === "positions"
        ? positions[selected].map((cosine) => cosine / 100)
        : view === "attention"
          ? attention[layer - 1][selected].map((weight) => weight / 1000)
          : rollOut(attention.slice(0, layer), selected);
  const sizes = pixels
    .map((_, i) => (i + 1) * step)
    .filter((size) => (height % size) + (width % size) === 0 && count(size) <= MOST_TOKENS)
    .map((size) => ({ size, nTokens: count(size) }));
  return {
    ...traits,
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
    colour: view === "positions" ? "memory" : "weights",
    top: Math.max(1e-9, ...(weights || []).filter((_, i) => i !== selected)),
  };
}

const noteOf = (text) => make("p", { class: "tt-note", text });
const nameOf = (place) => (place ? `patch ${place}` : "CLS");

/** A place in words, with its weight. */
function placeWords({ columns, weights }, place) {
  const where = place ? `, row ${Math.ceil(place / columns)}, column ${((place - 1) % columns) + 1}` : "";
  return nameOf(place) + where + (weights ? `: ${formatNumber(weights[place])}` : "");
}

/** What the picture shows of the chosen place: how long it is, what it draws from, or whom it resembles. */
function findingOf({ weights, view, selected, patch, channels, nTokens, positions, columns }) {
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
    rollout: ["draws", "from"],
    positions: ["is, by position,", "like"],
  }[view];
  const spread = Math.exp(-weights.reduce((sum, weight) => sum + (weight > 0 ? weight * Math.log(weight) : 0), 0));
  const told = `${name} ${verb} most ${at} ${nameOf(others[0])}, then ${at} ${nameOf(others[1])}, itself apart.`;
  if (view === "positions") return `${told} ${neighboursOf(positions, columns)}`;
  if (view === "rollout") return told;
  return `${told} It is spread as widely as equal shares for ${Math.round(spread)} of the ${nTokens} tokens.`;
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
  const { selected, patch, channels, side, notes } = state;
  if (!selected) return [make("p", { text: notes.CLS })];
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
  return [
    make("p", {
      text: `${patch} × ${patch} × ${channels} = ${patch ** 2 * channels} numbers. ${notes.image}`,
    }),
    make("div", { class: "numbers", style: `grid-template-columns: repeat(${Math.min(side, 8)}, auto)` }, ...spans),
    rest ? noteOf(`and ${rest} more`) : null,
  ];
}

function panelOf(state, list) {
  const { weights, view, layer, selected, colour } = state;
  if (!weights) return patchNumbers(state);
  const title = {
    attention: `attends to in layer ${layer}`,
    rollout: `draws from, layers 1 to ${layer}`,
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
        colour,
        on: i === selected,
      })),
    ),
  ];
}

function costOf({ height, width, patch, rows, columns, nTokens, step, sizes, notes }) {
  const words = [
    notes.source,
    step > 1 ? `Each drawn pixel is the mean of ${step} × ${step}.` : "",
    ...VIEWS.slice(1).map((view) => notes[view]),
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
  root.style.setProperty("--c", `var(--tt-${state.colour}-line)`);
  for (const node of tokens) {
    const place = Number(node.dataset.place);
    const weight = state.weights ? state.weights[place] : 0;
    const isOn = place === state.selected;
    node.style.setProperty("--w", isOn ? 0 : Math.max(0, weight / state.top));
    node.classList.toggle("on", isOn);
    node.setAttribute("aria-label", placeWords(state, place));
    node.dataset.value = weight.toFixed(9);
  }
}

/** What can be chosen: of a model its views and layers, of an image alone the patch size. */
function patchControls({ sizes, attention, positions }, set) {
  const size = slider({
    label: "Patch size",
    min: 0,
    max: sizes.length - 1,
    step: 1,
    format: (i) => `${sizes[i].size} × ${sizes[i].size}`,
    onInput: (i) => set({ selected: 0, patch_size: sizes[i].size }),
  });
  const options = VIEWS.filter((view) => view === "image" || (view === "positions" ? positions : attention).length).map(
    (view) => [view, view],
  );
  const views = choice({ name: "Show", options, onChange: (view) => set({ view }) });
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
      layer.node.hidden = !"attention rollout".includes(state.view);
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
    question: "How does a Transformer read an image?",
    invite: "Tap a patch: where does it stand in the sentence below?",
    onReset: () => set(first),
    css: CSS,
  });
  const [picture, strip, side] = ["picture", "strip", "side"].map((name) => make("div", { class: name }));
  const [list, cost] = [bars(), make("div", { class: "cost" })];
  let state = patchState(model);
  let pinned = state.selected;
  let [cut, grids] = ["", []];
  const controls = patchControls(state, set);
  card.stage.append(...[controls.views, make("div", { class: "both" }, picture, side), strip].filter(Boolean));
  card.controls.append(...controls.nodes);
  card.more("About the image", cost);

  const stops = [picture, strip].map((node, which) =>
    listenTo(
      node,
      () => grids[which],
      (place, keep) => {
        const flies = keep && place !== pinned;
        if (keep) pinned = place;
        setTraits(model, { selected: place ?? pinned });
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
    }
    controls.show(state);
    showWeights(card.root, grids.flat(2), state);
    const panel = panelOf(state, list);
    if (!side.contains(list.node) || !panel.includes(list.node)) refill(side, ...panel);
    else side.firstChild.replaceWith(panel[0]); // the bars stay, and so can grow
    card.find(findingOf(state));
    card.caption.textContent = state.weights
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
