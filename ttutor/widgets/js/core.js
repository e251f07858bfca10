// What every explorer shares: its card, colours, numbers, words for screen readers.
// ttutor/widgets/static.py writes core, controls, drawing and one explorer into one ES module, for
// Jupyter and the book. Text from outside reaches the page through textContent and attributes only,
// never as markup.
//
// How an explorer is made of it:
//
//   function render({ model, el }) {
//     const card = openCard(el, { label: "Waves", question: "…?", invite: "…", onReset, css: CSS });
//     const picture = stage({ label: "…", height: 360, draw: (numbers, width, height) => [parts] });
//     const place = slider({ label: "Position", min: 0, max: 63, step: 1, onInput: (position) => … });
//     card.stage.append(picture.node);          // the picture comes first,
//     card.controls.append(place.node);         // then at most two controls,
//     card.caption.textContent = "…";           // what is drawn, in a sentence
//     const draw = () => {                      // everything on screen follows from the traits:
//       picture.show({ angle: … });             //   the picture glides there in 300 ms
//       place.set(…);
//       card.find("Both hands …");              //   one line of finding, seen after the reader's act
//     };
//     const stop = onTraits(model, ["position"], draw);
//     draw();
//     return () => [stop, picture.close, card.close].forEach((end) => end());
//   }

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
      font: 0.9375rem/1.45 var(--tt-font, system-ui, -apple-system, "Segoe UI", sans-serif);
      color: inherit;
      max-width: 100%;
      padding: 1rem;
      border: 1px solid color-mix(in srgb, currentColor 18%, transparent);
      border-radius: 0.75rem;
    }
    .tt-head {
      display: flex;
      justify-content: space-between;
      align-items: start;
      gap: 0.75rem;
      margin: 0 0 0.75rem;
    }
    .tt-question {
      font-size: 1.125rem;
      font-weight: 600;
      line-height: 1.3;
      margin: 0;
    }
    .tt-reset {
      font: inherit;
      font-size: 0.8125rem;
      color: inherit;
      background: transparent;
      border: 0;
      text-decoration: underline;
      text-underline-offset: 0.2em;
      cursor: pointer;
      margin: -0.6rem -0.5rem;
      padding: 0.75rem 0.5rem;
    }
    .tt-finding {
      margin: 0.75rem 0 0;
      min-height: 2.9em;
      display: grid;
    }
    @media (prefers-reduced-motion: no-preference) {
      .tt-finding > * {
        transition: opacity 300ms;
      }
    }
    .tt-finding > * {
      grid-area: 1 / 1;
      margin: 0;
    }
    .tt-finding > .tt-invite {
      pointer-events: none;
    }
    .tt[data-acted] .tt-invite,
    .tt-card:not([data-acted]) .tt-finding :not(.tt-invite) {
      opacity: 0;
    }
    .tt-more > summary {
      cursor: pointer;
      font-size: 0.8125rem;
      margin-top: 0.5rem;
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
    .tt[data-pointer] svg :focus {
      outline: none;
    }
    .tt-note {
      font-size: 0.8125rem;
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
          background-color 300ms,
          width 300ms;
      }
    }
    @container (max-width: 27rem) {
      .tt {
        padding: 0.75rem;
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
    else if (name === "text") writeText(node, String(value));
    else node.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
  node.append(...present(children));
  return node;
}

/** Write a text; in an element of class `maths`, `_{head}` stands lower and `^{2}` higher. */
export function writeText(node, text) {
  if (!node.classList.contains("maths") || !/[_^]\{/.test(text)) {
    if (node.textContent !== text || node.children.length) node.textContent = text;
    return;
  }
  let height = 0; // in a drawing, of the line that is being written, in ems
  const drawn = node instanceof SVGElement;
  const pieces = text.split(/([_^]\{[^}]*\})/).filter(Boolean);
  node.replaceChildren(
    ...pieces.map((piece) => {
      const [, mark, inner] = piece.match(/^([_^])\{(.*)\}$/) || [];
      if (!drawn) return mark ? make(mark === "_" ? "sub" : "sup", { text: inner }) : piece;
      const to = mark === "_" ? 0.25 : mark ? -0.4 : 0;
      const size = mark ? 0.75 : 1;
      const part = svg("tspan", {
        dy: `${(to - height) / size}em`,
        "font-size": `${100 * size}%`,
        text: inner ?? piece,
      });
      height = to;
      return part;
    }),
  );
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

/** Tokens for a list in another order: one that occurs more than once carries its place, as the₅. */
export function distinct(tokens) {
  const lowered = (place) => [...String(place)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
  return tokens.map((token, i) =>
    tokens.indexOf(token) === tokens.lastIndexOf(token) ? token : `${token}${lowered(i + 1)}`,
  );
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
    power === 0 && Number.isInteger(value) ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(short) || 1)));
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
  const [red, green, blue] = (getComputedStyle(element).color.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
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
    delete root.dataset.pointer;
    if (!event.ctrlKey && !event.metaKey && !event.altKey && event.key !== "Escape") event.stopPropagation();
  });

  // A part of a drawing that was clicked needs no ring: it shows by itself that it is chosen.
  root.addEventListener("pointerdown", () => (root.dataset.pointer = "1"));

  const paint = () => {
    const mode = onDarkPage(el) ? "dark" : "light";
    root.dataset.mode = mode;
    root.style.colorScheme = mode;
    root.style.setProperty("--tt-page", pageColour(el));
    root.style.setProperty("--tt-ink", getComputedStyle(el).color);
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

/**
 * The card that every explorer is: the question as its title, then the stage, the controls, one line
 * of finding and a caption; see the top of this file. Until the reader has acted, `invite` stands in
 * the finding's place; where both change with the view, `ask(question, invite)` writes them. `onReset` puts the traits back. `find(...)` writes the finding, and tells it to screen readers. `more(title,
 * ...children)` adds what is folded: where the data are from, a table of everything.
 */
export function openCard(el, { label, question = "", invite = "", onReset, css: style = "" }) {
  const frame = openFrame(el, label, style);
  const [stage, controls] = ["tt-stage", "tt-controls"].map((name) => make("div", { class: name }));
  const [finding, caption] = ["tt-found", "tt-note"].map((name) => make("div", { class: name }));
  const asks = make("p", { class: "tt-question", text: question });
  const invites = make("div", { class: "tt-invite", text: invite });
  const { root } = frame;
  root.classList.add("tt-card");
  root.append(
    make(
      "div",
      { class: "tt-head" },
      asks,
      make("button", { class: "tt-reset", type: "button", text: "Reset", onclick: onReset }),
    ),
    stage,
    controls,
    make("div", { class: "tt-finding" }, invites, finding),
    caption,
  );
  // A press counts when it ends or moves on: if the finding grew while it lasts, the page might scroll from under it.
  const act = ({ key, type, buttons }) => {
    if (key === "Tab" || (type === "pointermove" && !buttons)) return;
    if (!root.dataset.acted && type === "pointerup") frame.say(finding.textContent);
    root.dataset.acted = "1";
  };
  for (const kind of ["pointerup", "pointermove", "keydown", "input", "click"])
    root.addEventListener(kind, act, { capture: true });
  const watcher = new IntersectionObserver(
    ([{ isIntersecting }]) => {
      if (isIntersecting) (watcher.disconnect(), (root.dataset.seen = "1"));
    },
    { threshold: 0.6 },
  );
  watcher.observe(root);
  return {
    ...frame,
    stage,
    controls,
    caption,
    ask: (question, invite) => {
      asks.textContent = question;
      invites.textContent = invite;
    },
    find: (...words) => {
      refill(finding, ...words);
      if (root.dataset.acted) frame.say(finding.textContent);
    },
    more: (title, ...children) =>
      root.append(make("details", { class: "tt-more" }, make("summary", { text: title }), ...children)),
  };
}

/**
 * Let the figure show once what moves in it, when most of it is seen: it goes to these traits and comes
 * back. Not after the reader has acted, and never where less movement is asked for.
 */
export function moveOnce({ root }, model, there) {
  const here = Object.fromEntries(Object.keys(there).map((name) => [name, model.get(name)]));
  let timer = 0;
  const watcher = new IntersectionObserver(
    ([entry]) => {
      if (!entry.isIntersecting) return;
      watcher.disconnect();
      timer = setTimeout(() => {
        setTraits(model, there);
        timer = setTimeout(() => setTraits(model, here), 1200);
      }, 600);
    },
    { threshold: 0.6 },
  );
  const stop = () => {
    watcher.disconnect();
    clearTimeout(timer);
  };
  if (!reducedMotion()) watcher.observe(root);
  for (const kind of ["pointerdown", "keydown"]) root.addEventListener(kind, stop, { once: true });
  return stop;
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

/**
 * A word that is picked here is picked in all figures of the page with the same tokens. `of` reads the
 * word's place from the trait, `as` gives the traits in which it is picked (or nothing, where it is not shown).
 * `words` are the tokens, or the trait that has them; with `late`, a trait that brings them, the word is told again
 * when that changes.
 */
export function shareWord(model, trait, of, as, words = "tokens", late = trait) {
  let heard = false;
  const mine = () => [(words.call ? words() : model.get(words)).join(" "), of(model.get(trait))];
  const tell = () => heard || document.dispatchEvent(new CustomEvent("tt-word", { detail: mine() }));
  const hear = ({ detail: [sentence, word] }) => {
    const [own, picked] = mine();
    const values = sentence === own && word !== picked && word >= 0 && as(word);
    if (!values) return;
    heard = true;
    setTraits(model, values);
    heard = false;
  };
  const stop = onTraits(model, [...new Set([trait, late])], tell);
  document.addEventListener("tt-word", hear);
  return () => (stop(), document.removeEventListener("tt-word", hear));
}
