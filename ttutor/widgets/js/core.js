// What every explorer shares: colours, numbers, controls, keyboard, words for screen readers.
// ttutor/widgets/static.py writes core, controls, drawing and one explorer into one ES module, for
// Jupyter and the book. Text from outside reaches the page through textContent and attributes only,
// never as markup.

export const COLOURS = /*COLOURS*/ { light: {}, dark: {} };

/** A style sheet as text; the tag tells formatters and editors what it is. */
export function css([text]) {
  return text;
}

/** Style sheets of everything shared: each part adds its own. */
export const SHARED_CSS = [
  css`
    :host {
      display: block;
      color: inherit;
      container-type: inline-size;
    }
    .tt {
      font: 0.95rem/1.45 var(--tt-font, system-ui, -apple-system, "Segoe UI", sans-serif);
      color: inherit;
      max-width: 100%;
    }
    .tt *,
    .tt *::before {
      box-sizing: border-box;
    }
    .tt [hidden] {
      display: none;
    }
    .tt-line {
      --line: color-mix(in srgb, currentColor 50%, transparent);
    }
    .tt :focus-visible {
      outline: 2px solid currentColor;
      outline-offset: 1px;
    }
    .tt-note {
      font-size: 0.85em;
      opacity: 0.85;
      margin: 0.5rem 0 0;
    }
    .tt-hidden {
      position: absolute;
      width: 1px;
      height: 1px;
      overflow: hidden;
      clip-path: inset(50%);
      white-space: nowrap;
    }
    @media (prefers-reduced-motion: no-preference) {
      .tt-ease {
        transition:
          background-color 120ms,
          width 120ms;
      }
    }
  `,
];

/** Build an element: properties first, then children; a string child becomes text, never markup. */
export function make(tag, properties = {}, ...children) {
  return dress(document.createElement(tag), properties, children);
}

/** The same for a part of a drawing. */
export function svg(tag, properties = {}, ...children) {
  return dress(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function dress(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
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

/** Write a count with spaces between thousands that do not break: 12 288. */
export function formatCount(value) {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/**
 * A quantity of any size with three digits and a unit's prefix: 1.23 M, 456 k, 7. Binary prefixes
 * for bytes.
 */
export function formatSize(value, unit = "", binary = false) {
  const base = binary ? 1024 : 1000;
  const prefixes = binary ? ["", "Ki", "Mi", "Gi", "Ti", "Pi"] : ["", "k", "M", "G", "T", "P", "E"];
  let power = 0;
  while (Math.abs(value) / base ** power >= 999.5 && power < prefixes.length - 1) power += 1;
  const short = value / base ** power;
  const digits =
    power === 0 && Number.isInteger(value)
      ? 0
      : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(short) || 1)));
  return `${formatNumber(short, Math.min(digits, 3))}\u00a0${prefixes[power]}${unit}`.trimEnd();
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

/**
 * Whether the text around the element is light, which means that its page is dark, whoever made it
 * so.
 */
function onDarkPage(element) {
  const [red, green, blue] = (getComputedStyle(element).color.match(/[\d.]+/g) || [0, 0, 0]).map(
    Number,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 127;
}

/**
 * The first background that is not see-through, from the element outwards: for parts that scroll
 * over others.
 */
function pageColour(element) {
  for (let node = element; node; node = node.parentNode || node.host) {
    const colour = node instanceof Element ? getComputedStyle(node).backgroundColor : "transparent";
    if (colour !== "transparent" && !/,\s*0\)$/.test(colour)) return colour;
  }
  return "Canvas";
}

/**
 * The label with a number behind it where earlier explorers of the page have the same, so that
 * lists of regions differ.
 */
function ownLabel(el, label) {
  const all = [...document.querySelectorAll("[data-label]")];
  el.dataset.label = label;
  const before = all.filter((other) => other !== el && other.dataset.label === label).length;
  return before ? `${label} (${before + 1})` : label;
}

/**
 * Open a shadow root on `el`, with the colours as CSS custom properties that follow the page's
 * light or dark mode. Gives the element to draw in, `say(text)` for screen readers, and `close()`
 * to be called when the view goes.
 */
export function openFrame(el, label, css) {
  const root = make("section", { class: "tt tt-line", "aria-label": ownLabel(el, label) });
  const announcer = make("div", { class: "tt-hidden", "aria-live": "polite", role: "status" });
  const shadow = el.attachShadow({ mode: "open" });
  shadow.append(make("style", { text: [...SHARED_CSS, css].join("") }), root, announcer);

  // Jupyter has shortcuts on bare letters and arrows: what is pressed in here is not meant for the
  // notebook.
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && event.key !== "Escape")
      event.stopPropagation();
  });

  const paint = () => {
    const mode = onDarkPage(el) ? "dark" : "light";
    root.dataset.mode = mode;
    root.style.colorScheme = mode;
    root.style.setProperty("--tt-page", pageColour(el));
    for (const [name, colour] of Object.entries(COLOURS[mode]))
      root.style.setProperty(`--tt-${name}`, colour);
  };
  // A page may fade from one mode to the other, so look again when the fading is over.
  let later = 0;
  const repaint = () => {
    paint();
    clearTimeout(later);
    later = setTimeout(paint, 400);
  };
  const observer = new MutationObserver(repaint);
  for (const node of [document.documentElement, document.body])
    observer.observe(node, { attributes: true });
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

/**
 * Set one or more traits at once, so that nobody draws one without the other, and tell the kernel,
 * if there is one.
 */
export function setTraits(model, values) {
  model.set(values);
  model.save_changes();
}

/** Call `draw` whenever one of the traits changes; gives a function that ends it. */
export function onTraits(model, names, draw) {
  for (const name of names) model.on(`change:${name}`, draw);
  return () => {
    for (const name of names) model.off(`change:${name}`, draw);
  };
}
