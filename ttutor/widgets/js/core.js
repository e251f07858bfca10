// What every explorer shares: colours, numbers, controls, keyboard, words for screen readers.
// Modules import from here; ttutor/widgets/static.py writes both into one ES module, for Jupyter and for the book alike.
// Text from outside reaches the page through textContent and attributes only, never as markup.

export const COLOURS = /*COLOURS*/ { light: {}, dark: {} };

const BASE_CSS = `
:host { display: block; color: inherit; container-type: inline-size; }
.tt { font: 0.95rem/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; color: inherit; max-width: 100%; }
.tt *, .tt *::before { box-sizing: border-box; }
.tt [hidden] { display: none; }
.tt-line { --line: color-mix(in srgb, currentColor 50%, transparent); }
.tt-controls { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem 1.1rem; margin: 0 0 0.6rem; }
.tt-slider { display: flex; flex: 1 1 12rem; max-width: 26rem; align-items: center; gap: 0.6rem; min-height: 2rem; }
.tt-slider input { flex: 1; min-width: 5rem; margin: 0; height: 1.75rem; accent-color: var(--tt-weights-line); }
.tt-slider output { min-width: 2.6em; text-align: end; font-variant-numeric: tabular-nums; }
.tt-toggle { display: inline-flex; align-items: center; gap: 0.45rem; min-height: 2rem; cursor: pointer; }
.tt-toggle input { width: 1.1rem; height: 1.1rem; margin: 0; accent-color: var(--tt-weights-line); }
.tt-button { font: inherit; color: inherit; background: transparent; cursor: pointer; min-height: 2rem;
  padding: 0.15rem 0.8rem; border: 1px solid color-mix(in srgb, currentColor 50%, transparent); border-radius: 0.35rem; }
.tt-button:hover { background: color-mix(in srgb, currentColor 8%, transparent); }
.tt :focus-visible { outline: 2px solid currentColor; outline-offset: 1px; }
.tt-note { font-size: 0.85em; opacity: 0.85; margin: 0.5rem 0 0; }
.tt-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (prefers-reduced-motion: no-preference) { .tt-ease { transition: background-color 120ms, width 120ms; } }
@media print { .tt-controls { display: none; } }
`;

/** Build an element: properties first, then children; a string child becomes text, never markup. */
export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...present(children));
  return node;
}

/** Leave out what is not there, so that optional parts can stand in a list of children. */
function present(children) {
  return children.filter((child) => child !== null && child !== undefined);
}

/** Give an element these children instead of those it has. */
export function refill(node, ...children) {
  node.replaceChildren(...present(children));
}

let instances = 0;
/** An id that no other explorer on the page has. */
export function uniqueId(prefix = "tt") {
  instances += 1;
  return `${prefix}-${instances}`;
}

/** Write a number as the book does: `decimals` places, a real minus sign, no minus zero. */
export function formatNumber(value, decimals = 3) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "not a number" : value > 0 ? "∞" : "−∞";
  const text = value.toFixed(decimals);
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

/** Whether the reader asked for less movement. */
export function reducedMotion() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Whether the text around the element is light, which means that its page is dark, whoever made it so. */
function onDarkPage(element) {
  const [red, green, blue] = (getComputedStyle(element).color.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 127;
}

/** The first background that is not see-through, from the element outwards: for parts that scroll over others. */
function pageColour(element) {
  for (let node = element; node; node = node.parentNode || node.host) {
    const colour = node instanceof Element ? getComputedStyle(node).backgroundColor : "transparent";
    if (colour !== "transparent" && !/,\s*0\)$/.test(colour)) return colour;
  }
  return "Canvas";
}

/**
 * Open a shadow root on `el`, with the colours as CSS custom properties that follow the page's light or dark mode.
 * Gives the element to draw in, `say(text)` for screen readers, and `close()` to be called when the view goes.
 */
export function openFrame(el, label, css) {
  const root = make("section", { class: "tt tt-line", "aria-label": label });
  const announcer = make("div", { class: "tt-hidden", "aria-live": "polite", role: "status" });
  const shadow = el.attachShadow({ mode: "open" });
  shadow.append(make("style", { text: BASE_CSS + css }), root, announcer);

  const paint = () => {
    const mode = onDarkPage(el) ? "dark" : "light";
    root.dataset.mode = mode;
    root.style.colorScheme = mode;
    root.style.setProperty("--tt-page", pageColour(el));
    for (const [name, colour] of Object.entries(COLOURS[mode])) root.style.setProperty(`--tt-${name}`, colour);
  };
  // A page may fade from one mode to the other, so look again when the fading is over.
  let later = 0;
  const repaint = () => {
    paint();
    clearTimeout(later);
    later = setTimeout(paint, 400);
  };
  const observer = new MutationObserver(repaint);
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributes: true });
  const preference = window.matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", repaint);
  repaint();

  return {
    root,
    say: (text) => {
      announcer.textContent = text;
    },
    close: () => {
      observer.disconnect();
      preference.removeEventListener("change", repaint);
      clearTimeout(later);
    },
  };
}

/** A labelled slider; `set(value)` moves it without an event. */
export function slider({ label, min, max, step, decimals = 1, onInput }) {
  const id = uniqueId("tt-slider");
  const input = make("input", { id, type: "range", min, max, step });
  const output = make("output", { for: id });
  const set = (value) => {
    input.value = value;
    output.textContent = formatNumber(value, decimals);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    set(Number(input.value));
    onInput(Number(input.value));
  });
  return { node: make("div", { class: "tt-slider" }, make("label", { for: id, text: label }), input, output), set };
}

/** A labelled checkbox; `set(value)` changes it without an event. */
export function toggle({ label, onChange }) {
  const input = make("input", { type: "checkbox", onchange: () => onChange(input.checked) });
  return {
    node: make("label", { class: "tt-toggle" }, input, make("span", { text: label })),
    set: (value) => {
      input.checked = value;
    },
  };
}

export function button({ label, onClick }) {
  return make("button", { class: "tt-button", type: "button", text: label, onclick: onClick });
}

/** Set one or more traits and send them to the kernel, if there is one. */
export function setTraits(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  model.save_changes();
}

/** Call `draw` whenever one of the traits changes; gives a function that ends it. */
export function onTraits(model, names, draw) {
  for (const name of names) model.on(`change:${name}`, draw);
  return () => {
    for (const name of names) model.off(`change:${name}`, draw);
  };
}

/**
 * Arrow keys over a grid with one tab stop (the roving-tabindex pattern). `cellAt(row, column)` gives an element or
 * nothing; positions are read from each element's data-row and data-column.
 */
export function rovingGrid(container, cellAt, bounds) {
  let stop = null;
  const makeStop = (cell) => {
    if (stop && stop !== cell) stop.tabIndex = -1;
    stop = cell;
    stop.tabIndex = 0;
  };
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  container.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[data-row]");
    if (!cell || event.altKey || event.metaKey) return;
    const { firstRow, lastRow, firstColumn, lastColumn } = bounds();
    let row = Number(cell.dataset.row);
    let column = Number(cell.dataset.column);
    if (event.key === "ArrowUp") row -= 1;
    else if (event.key === "ArrowDown") row += 1;
    else if (event.key === "ArrowLeft") column -= 1;
    else if (event.key === "ArrowRight") column += 1;
    else if (event.key === "Home") [row, column] = [event.ctrlKey ? firstRow : row, firstColumn];
    else if (event.key === "End") [row, column] = [event.ctrlKey ? lastRow : row, lastColumn];
    else return;
    event.preventDefault();
    event.stopPropagation(); // Jupyter would move to another notebook cell
    const target = cellAt(clamp(row, firstRow, lastRow), clamp(column, firstColumn, lastColumn));
    if (!target) return;
    makeStop(target);
    target.focus();
  });
  container.addEventListener("focusin", (event) => {
    const cell = event.target.closest("[data-row]");
    if (cell) makeStop(cell);
  });
  return { makeStop };
}
