// What explorers draw with: a stage whose parts glide, a matrix of cells, rows of bars.
import { css, make, reducedMotion, SHARED_CSS, svg, writeText } from "./core.js";
import { rovingGrid } from "./controls.js";

SHARED_CSS.push(css`
  .tt-picture > svg {
    display: block;
    width: 100%;
    overflow: visible;
    touch-action: pan-y;
  }
  .tt-picture text {
    font-size: 0.8125rem;
    fill: currentColor;
  }
  .tt-picture [role="button"] {
    cursor: pointer;
  }
  .tt-picture .pull {
    cursor: grab;
  }
  .tt-picture .grip {
    fill: currentColor;
    fill-opacity: 0;
    pointer-events: none;
  }
  @media (any-pointer: coarse) {
    .tt-picture .grip {
      pointer-events: all;
    }
  }
  @media (prefers-reduced-motion: no-preference) {
    [data-seen]:not([data-acted]) .grip {
      animation: tt-beckon 1.5s 3;
      transform-box: fill-box;
      transform-origin: center;
    }
  }
  @keyframes tt-beckon {
    from {
      fill-opacity: 0.5;
      transform: scale(0.4);
    }
    to {
      transform: scale(1.1);
    }
  }
  .tt-matrix {
    flex: 0 1 auto;
    min-width: 0;
    max-width: 100%;
    overflow: auto;
    padding: 3px;
  }
  .tt-matrix.large {
    max-height: 28rem;
  }
  .tt-matrix table {
    border-collapse: separate;
    border-spacing: 2px;
  }
  .tt-matrix caption {
    text-align: start;
    padding: 0 0 0.2rem;
    font-weight: 600;
    white-space: nowrap;
  }
  .tt-matrix th {
    font-weight: 500;
    padding: 0.1rem 0.3rem;
    cursor: default;
    border: 2px solid transparent;
    border-radius: 0.25rem;
    background: var(--tt-page);
  }
  .tt-matrix .token {
    display: block;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: pre;
    max-width: 8em;
  }
  .tt-matrix th[scope="row"] {
    text-align: end;
    position: sticky;
    left: 0;
    z-index: 1;
  }
  .tt-matrix th[scope="col"] {
    vertical-align: bottom;
    padding-inline: 0;
  }
  .tt-matrix.large thead th {
    position: sticky;
    top: 0;
    z-index: 2;
  }
  .tt-matrix .tall th[scope="col"] .token {
    writing-mode: vertical-rl;
    transform: rotate(180deg);
    max-width: none;
    max-height: 7em;
    margin: 0 auto;
  }
  .tt-matrix .corner {
    font-size: 0.75rem;
    font-weight: 400;
    line-height: 1.3;
    white-space: nowrap;
    text-align: end;
    vertical-align: bottom;
  }
  .tt-matrix .corner span {
    display: block;
  }
  .tt-matrix td {
    width: var(--cell);
    min-width: var(--cell);
    height: var(--cell);
    padding: 0;
    text-align: center;
    cursor: default;
    font-size: var(--digits, 0.8rem);
    font-variant-numeric: tabular-nums;
    border-radius: 3px;
    box-shadow: inset 0 0 0 1px color-mix(in srgb, currentColor 30%, transparent);
    background-color: color-mix(in srgb, var(--c) calc(var(--w) * 100%), transparent);
  }
  .tt-hatch {
    background-color: color-mix(in srgb, var(--tt-masked) 45%, transparent) !important;
    background-image: repeating-linear-gradient(135deg, var(--tt-masked-line) 0 1px, transparent 1px 6px);
  }
  .tt-matrix th.row-on {
    border-color: var(--tt-query-line);
    background: color-mix(in srgb, var(--tt-query) 14%, var(--tt-page));
  }
  .tt-matrix th.column-on {
    border-color: var(--tt-key-line);
    background: color-mix(in srgb, var(--tt-key) 20%, var(--tt-page));
  }
  .tt-matrix td.near {
    box-shadow: inset 0 0 0 1px currentColor;
  }
  .tt-matrix td.on {
    box-shadow: inset 0 0 0 2px currentColor;
  }
  .tt-bars {
    list-style: none;
    margin: 0;
    padding: 0;
    display: grid;
    grid-template-columns: fit-content(11em) 1fr auto;
    column-gap: 0.6rem;
  }
  .tt-bars li {
    display: grid;
    grid-column: 1 / -1;
    grid-template-columns: subgrid;
    align-items: center;
    padding: 0 0.3rem;
    border-radius: 0.25rem;
  }
  .tt-bars li.on {
    box-shadow: inset 0 0 0 1px currentColor;
  }
  .tt-bars .token {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: pre;
  }
  .tt-bars .number {
    font-variant-numeric: tabular-nums;
    text-align: end;
  }
  .tt-bar {
    height: 0.75rem;
    border-radius: 2px;
    background: var(--c, var(--tt-weights));
    box-shadow: inset 0 0 0 1px var(--l, var(--tt-weights-line));
  }
  @container (max-width: 27rem) {
    .tt-matrix table {
      --cell: clamp(1.75rem, calc((100cqw - 7rem) / var(--columns)), 2rem) !important;
      --digits: 0.7rem;
      font-size: 0.85rem;
    }
  }
`);

/**
 * A table of cells with one tab stop and arrow keys. Rows are queries and columns keys unless the
 * labels say otherwise. `rows` and `columns` are the labels; `corner` the two lines of the corner;
 * `caption` a heading. `onSelect(row, column, event)` follows clicks, taps, Enter and focus (-1 stands for
 * a label: row -1 is the line of column labels); `onPreview(row, column)` follows the mouse, and is
 * called without arguments when the mouse leaves. `fill(cell)` asks `cell(row, column)` for each
 * cell: `{ text, level, colour, hatch, label, value }`: what stands in it, 0 to 1 of the colour
 * `--tt-<colour>` (weights when left out), masked, words for a screen reader, the number.
 * `mark(row, column)` outlines a cell, its row and its column.
 */
export function matrix({ label, rows, columns, corner = ["", ""], caption, side, onSelect = () => {}, onPreview }) {
  const tall = columns.length > 12 || columns.some((token) => token.length > 5);
  const span = (text) => make("span", { class: "token", text });
  const at = (row, column) => ({ tabindex: -1, "data-row": row, "data-column": column });
  const heads = columns.map((text, j) =>
    make("th", { scope: "col", role: "columnheader", ...at(-1, j), title: text }, span(text)),
  );
  const labels = rows.map((text, i) =>
    make("th", { scope: "row", role: "rowheader", ...at(i, -1), title: text }, span(text)),
  );
  const cells = rows.map((_, i) => columns.map((_, j) => make("td", { role: "gridcell", ...at(i, j) })));
  const table = make(
    "table",
    { role: "grid", class: tall ? "tall" : "", "aria-label": label },
    caption ? make("caption", { text: caption }) : null,
    make(
      "thead",
      {},
      make(
        "tr",
        { role: "row" },
        make("th", { class: "corner", role: "columnheader" }, ...corner.map((text) => make("span", { text }))),
        ...heads,
      ),
    ),
    make("tbody", {}, ...cells.map((row, i) => make("tr", { role: "row" }, labels[i], ...row))),
  );
  table.style.setProperty("--columns", columns.length);
  table.style.setProperty(
    "--cell",
    side ||
      (columns.length <= 8 ? "2.9rem" : columns.length <= 12 ? "2.4rem" : columns.length <= 24 ? "1.75rem" : "1.3rem"),
  );
  const node = make("div", { class: `tt-matrix${Math.max(rows.length, columns.length) > 16 ? " large" : ""}` }, table);

  const cellAt = (row, column) =>
    row < 0 && column < 0 ? null : row < 0 ? heads[column] : column < 0 ? labels[row] : cells[row][column];
  const bounds = () => ({
    firstRow: -1,
    lastRow: rows.length - 1,
    firstColumn: -1,
    lastColumn: columns.length - 1,
  });
  rovingGrid(node, cellAt, bounds).makeStop(cells[0][0]);
  const place = (event) => {
    const cell = event.target.closest("[data-row]");
    return cell && [Number(cell.dataset.row), Number(cell.dataset.column)];
  };
  for (const kind of ["focusin", "click"])
    node.addEventListener(kind, (event) => place(event) && onSelect(...place(event), event));
  if (onPreview) preview(node, (event) => (event ? place(event) && onPreview(...place(event)) : onPreview()));
  node.addEventListener("keydown", (event) => {
    if (!["Enter", " "].includes(event.key) || !place(event)) return;
    event.preventDefault();
    onSelect(...place(event), event);
  });

  const fill = (cell) =>
    cells.forEach((line, i) =>
      line.forEach((td, j) => {
        const { text = "", level = 0, colour = "weights", hatch = false, label: words, value } = cell(i, j);
        td.style.setProperty("--w", level.toFixed(4));
        // Without digits on it a cell may have the stronger of the two tones.
        td.style.setProperty("--c", `var(--tt-${colour}${text ? "" : "-line"})`);
        td.textContent = text;
        td.classList.add("tt-ease");
        td.classList.toggle("tt-hatch", hatch);
        if (value !== undefined) td.dataset.value = value.toFixed(9);
        if (words) td.setAttribute("aria-label", words);
      }),
    );
  const mark = (row, column) => {
    cells.forEach((line, i) =>
      line.forEach((td, j) => {
        td.classList.toggle("on", i === row && j === column);
        td.classList.toggle("near", (row >= 0 ? i === row : j === column) && !(i === row && j === column));
      }),
    );
    labels.forEach((th, i) => th.classList.toggle("row-on", i === row));
    heads.forEach((th, j) => th.classList.toggle("column-on", j === column));
  };
  return { node, fill, mark, cellAt };
}

/**
 * Tell what the mouse points at in here, and with nothing when it leaves: pointing shows what a click keeps. A
 * page that scrolls under a mouse at rest tells nothing.
 */
export function preview(node, tell) {
  let under = null;
  node.addEventListener("pointermove", (event) => {
    const { pointerType, target, movementX, movementY } = event;
    if (pointerType === "mouse" && target !== under && (movementX || movementY)) tell(event, (under = target));
  });
  node.addEventListener("pointerleave", () => under && tell((under = undefined)));
}

/**
 * Rows of a name, a bar and a number: `show([{ label, share, text, colour, on }, ...])`, share from 0
 * to 1. A row keeps its bar from one call to the next, so that the bar grows or shrinks.
 */
export function bars() {
  const node = make("ul", { class: "tt-bars" });
  const row = () => {
    const [name, bar, number] = [
      make("span", { class: "token" }),
      make("div", { class: "tt-bar tt-ease" }),
      make("span", { class: "number" }),
    ];
    const item = make("li", {}, name, make("div", {}, bar), number);
    return { item, name, bar, number };
  };
  let rows = [];
  return {
    node,
    show: (shown) => {
      rows = shown.map((_, i) => rows[i] || row());
      shown.forEach(({ label, share, text, colour = "weights", on }, i) => {
        const { item, name, bar, number } = rows[i];
        name.textContent = name.title = label;
        number.textContent = text;
        item.classList.toggle("on", !!on);
        bar.style.width = `${100 * share}%`;
        bar.style.setProperty("--c", `var(--tt-${colour})`);
        bar.style.setProperty("--l", `var(--tt-${colour}-line)`);
      });
      const items = rows.map(({ item }) => item);
      if (items.length !== node.children.length) node.replaceChildren(...items);
      return node;
    },
  };
}

/**
 * A drawing of fixed height that fills its width, in pixels, and glides from one state to the next.
 *
 * `show(state)` takes numbers, or lists and objects of numbers; `draw(state, width, height)` is asked
 * for the picture of every state on the way, and gives its parts in order of depth: `[key, tag,
 * properties]`, or nothing for a part that is left out. A part that keeps its key keeps its element.
 * Beside attributes, a part may have `text` (class `maths` for indices), `press()`, which makes it a
 * button for pointer and keys, and, on a circle, `pull(x, y, byKey)`, which follows the pointer that holds
 * it and the arrow keys, `stride` pixels at a time: one number, or one across and one down; Home and End pull it
 * as far as it goes. All buttons
 * of a picture are one tab stop; the arrow keys go to the next one that way. What is no number changes
 * at once; `show(state, 0)` does not glide. `height` may be a function of the width.
 */
export function stage({ label, height, draw, role = "group" }) {
  const picture = svg("svg", { role, "aria-label": label });
  const node = make("div", { class: "tt-picture" }, picture);
  const parts = new Map();
  let [from, shown, target, frame, start, stop] = [null, null, null, 0, 0, null];

  const paint = () => {
    const width = node.clientWidth;
    if (!shown || !width) return;
    const tall = typeof height === "function" ? height(width) : height;
    picture.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    picture.setAttribute("height", tall);
    const present = withGrips(draw(shown, width, tall).filter(Boolean));
    const kept = new Set(present.map(([key]) => key));
    for (const [key, part] of parts) if (!kept.has(key)) (part.remove(), parts.delete(key));
    present.forEach(([key, tag, properties], i) => {
      if (!parts.has(key)) parts.set(key, svg(tag, { "data-key": key }));
      const part = parts.get(key);
      redress(part, properties);
      if (picture.children[i] !== part) picture.insertBefore(part, picture.children[i]);
    });
    const buttons = [...picture.querySelectorAll('[role="button"]')];
    if (!buttons.includes(stop)) stop = buttons[0];
    for (const one of buttons) one.setAttribute("tabindex", one === stop ? 0 : -1);
  };
  // Not on the svg itself: browsers give the focus to an svg that listens for it.
  node.addEventListener("focusin", ({ target }) => {
    if (target.getAttribute("role") !== "button") return;
    stop?.setAttribute("tabindex", -1);
    (stop = target).setAttribute("tabindex", 0);
  });
  picture.addEventListener("keydown", (event) => {
    if (!STRIDES[event.key] || event.target.getAttribute("role") !== "button") return;
    event.preventDefault();
    nextButton(picture, event.target, STRIDES[event.key])?.focus();
  });
  const step = (now) => {
    const share = Math.min((now - start) / GLIDE, 1);
    shown = between(from, target, share * share * (3 - 2 * share));
    paint();
    frame = share < 1 ? requestAnimationFrame(step) : 0;
  };
  const show = (state, milliseconds = GLIDE) => {
    cancelAnimationFrame(frame);
    [from, target] = [shown, state];
    if (from && milliseconds && !reducedMotion() && node.isConnected) {
      start = performance.now();
      frame = requestAnimationFrame(step);
      shown = between(from, target, 0);
    } else shown = target;
    paint();
  };
  const watcher = new ResizeObserver(paint);
  watcher.observe(node);
  return {
    node,
    show,
    close: () => {
      cancelAnimationFrame(frame);
      watcher.disconnect();
    },
  };
}

const GLIDE = 300;
const STRIDES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** What lies between two states: numbers in between, everything else as in the second. */
function between(from, to, share) {
  if (typeof to === "number") return Number.isFinite(from) && Number.isFinite(to) ? from + share * (to - from) : to;
  if (Array.isArray(to)) return to.map((part, i) => between(Array.isArray(from) ? from[i] : null, part, share));
  if (to && typeof to === "object")
    return Object.fromEntries(Object.entries(to).map(([name, part]) => [name, between(from?.[name], part, share)]));
  return to;
}

const GRIP = 22;

/** What is pulled gets a circle that a finger can hold, below it and not seen. */
function withGrips(parts) {
  const first = parts.findIndex(([, , { pull }]) => pull);
  const grips = parts
    .filter(([, , { pull }]) => pull)
    .map(([key, , { cx, cy, pull }]) => [`${key}-grip`, "circle", { class: "grip", cx, cy, r: GRIP, hold: pull }]);
  return first < 0 ? parts : [...parts.slice(0, first), ...grips, ...parts.slice(first)];
}

/** The button that is nearest in a direction; what lies aside counts double. */
function nextButton(picture, from, [across, down]) {
  const middle = (node) => {
    const { x, y, width, height } = node.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  };
  const [x, y] = middle(from);
  const far = (node) => {
    const [ahead, aside] = middle(node).map((place, axis) => place - [x, y][axis]);
    const [along, away] = across ? [ahead * across, aside] : [aside * down, ahead];
    return along > 1 ? along + 2 * Math.abs(away) : Infinity;
  };
  const ranked = [...picture.querySelectorAll('[role="button"]')].map((node) => [far(node), node]);
  const [distance, node] = ranked.reduce((best, one) => (one[0] < best[0] ? one : best), [Infinity, null]);
  return distance < Infinity ? node : null;
}

/** Change what has changed of a part of a drawing. */
function redress(part, { text, press, pull, hold = pull, stride = 10, ...attributes }) {
  if (pull) Object.assign(attributes, { role: "slider", tabindex: 0 });
  if (press) Object.assign(attributes, { role: "button", tabindex: part.getAttribute("tabindex") ?? -1 });
  for (const name of part.getAttributeNames())
    if (name !== "data-key" && !(name in attributes)) part.removeAttribute(name);
  for (const [name, value] of Object.entries(attributes)) {
    const written = typeof value === "number" ? String(Math.round(value * 100) / 100) : value;
    if (written === undefined || written === null || written === false) part.removeAttribute(name);
    else if (part.getAttribute(name) !== written) part.setAttribute(name, written);
  }
  if (text !== undefined) writeText(part, String(text));
  part.onclick = press || null;
  part.onkeydown = (event) => {
    const [wide, tall] = Array.isArray(stride) ? stride : [stride, stride];
    const far = { Home: -999, End: 999 }[event.key];
    const [across, down] = far ? (wide ? [far, 0] : [0, far]) : STRIDES[event.key] || [0, 0];
    if (pull && (across || down))
      pull(Number(attributes.cx) + wide * across, Number(attributes.cy) + tall * down, true);
    else if (press && ["Enter", " "].includes(event.key)) press(event);
    else return;
    event.preventDefault();
  };
  if (!hold) return;
  // Browsers differ in what `touch-action` does inside an svg; without this the page would take the finger to scroll.
  if (!part.held) part.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  part.held ||= [0, 0]; // where in the part the pointer holds it
  const follow = (event) => {
    const box = part.ownerSVGElement.getBoundingClientRect();
    hold(event.clientX - box.left - part.held[0], event.clientY - box.top - part.held[1]);
  };
  part.onpointerdown = (event) => {
    const box = part.getBoundingClientRect();
    part.held = [event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2];
    part.setPointerCapture(event.pointerId);
  };
  part.onpointermove = (event) => {
    if (part.hasPointerCapture(event.pointerId)) follow(event);
  };
}

/** The attributes of a line with a head, from one point to another: for a part of tag `path`. */
export function arrow(x1, y1, x2, y2, head = 9) {
  const [length, angle] = [Math.hypot(x2 - x1, y2 - y1), Math.atan2(y2 - y1, x2 - x1)];
  const size = Math.min(head, length);
  const wing = (turn) =>
    `L${(x2 - size * Math.cos(angle + turn)).toFixed(1)} ${(y2 - size * Math.sin(angle + turn)).toFixed(1)}`;
  const tip = `${x2.toFixed(1)} ${y2.toFixed(1)}`;
  return `M${x1.toFixed(1)} ${y1.toFixed(1)}L${tip}${wing(0.45)}M${tip}${wing(-0.45)}`;
}

/** Round numbers that divide a range into about `count` parts. */
export function ticks([low, high], count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough - 1e-12);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) found.push(i * step);
  return found;
}
