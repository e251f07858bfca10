// What the reader works with: sliders, switches, choices, a player, and arrow keys over a grid.
// Every `set` shows a value without an event; every callback is the reader's doing.
import { css, formatNumber, make, SHARED_CSS, uniqueId } from "./core.js";

SHARED_CSS.push(css`
  .tt-controls {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 0.4rem 1.1rem;
    margin: 0 0 0.6rem;
  }
  .tt-card > .tt-controls {
    margin: 0.75rem 0 0;
    padding-block: 0.25rem;
    background: var(--tt-page);
  }
  .tt-slider {
    display: flex;
    flex: 1 1 12rem;
    max-width: 30rem;
    align-items: center;
    gap: 0.6rem;
    min-height: 2.25rem;
  }
  .tt-slider input {
    flex: 1;
    min-width: 5rem;
    margin: 0;
    height: 1.75rem;
    appearance: none;
    background: transparent;
    cursor: pointer;
  }
  .tt-slider input::-webkit-slider-runnable-track {
    height: 4px;
    border-radius: 2px;
    background: color-mix(in srgb, currentColor 50%, transparent);
  }
  .tt-slider input::-moz-range-track {
    height: 4px;
    border-radius: 2px;
    background: color-mix(in srgb, currentColor 50%, transparent);
  }
  .tt-slider input::-webkit-slider-thumb {
    appearance: none;
    width: 20px;
    height: 20px;
    margin-top: -8px;
    border-radius: 50%;
    background: var(--tt-ink);
  }
  .tt-slider input::-moz-range-thumb {
    width: 20px;
    height: 20px;
    border: 0;
    border-radius: 50%;
    background: var(--tt-ink);
  }
  .tt-slider output {
    min-width: 2.6em;
    text-align: end;
    font-variant-numeric: tabular-nums;
  }
  /* What is to be used first says so, for four seconds: a knob of the picture, or else the first slider. */
  @media (prefers-reduced-motion: no-preference) {
    [data-seen]:not([data-acted], :has(.grip)) .tt-slider:first-child input::-webkit-slider-thumb {
      animation: tt-call 1.5s 3;
    }
    [data-seen]:not([data-acted], :has(.grip)) .tt-slider:first-child input::-moz-range-thumb {
      animation: tt-call 1.5s 3;
    }
    [data-seen]:not([data-acted]) .tt-call {
      animation: tt-ring 1.5s 3;
    }
  }
  /* No mixed colour in a keyframe: Chromium may crash on one. */
  @keyframes tt-call {
    from {
      box-shadow: 0 0 0 0 #8889;
    }
    to {
      box-shadow: 0 0 0 0.9rem #8880;
    }
  }
  @keyframes tt-ring {
    from {
      outline: 2px solid #888f;
      outline-offset: -2px;
    }
    to {
      outline: 2px solid #8880;
      outline-offset: 4px;
    }
  }
  .tt-slider:has(:disabled) {
    opacity: 0.4;
  }
  .tt-toggle {
    display: inline-flex;
    align-items: center;
    gap: 0.45rem;
    min-height: 2.25rem;
    cursor: pointer;
  }
  .tt-toggle input {
    width: 1.1rem;
    height: 1.1rem;
    margin: 0;
    accent-color: var(--tt-ink);
  }
  .tt-button {
    font: inherit;
    color: inherit;
    background: transparent;
    cursor: pointer;
    min-height: 2.25rem;
    padding: 0.15rem 0.8rem;
    border: 1px solid color-mix(in srgb, currentColor 50%, transparent);
    border-radius: 0.5rem;
  }
  .tt-button:hover {
    background: color-mix(in srgb, currentColor 8%, transparent);
  }
  .tt-button[aria-disabled="true"] {
    opacity: 0.45;
    cursor: default;
  }
  .tt-choice {
    display: inline-flex;
    flex-wrap: wrap;
    align-items: center;
    border: 0;
    margin: 0;
    padding: 0;
    min-width: 0;
    max-width: 100%;
  }
  .tt-choice > :is(legend, label[for]) {
    float: left;
    padding: 0;
    margin-inline-end: 0.6rem;
  }
  .tt-option {
    position: relative;
    display: inline-flex;
    align-items: center;
    min-height: 2.25rem;
    max-width: 100%;
    padding: 0.15rem 0.8rem;
    margin-inline-end: -1px;
    border: 1px solid color-mix(in srgb, currentColor 50%, transparent);
    cursor: pointer;
  }
  .tt-option:first-of-type {
    border-start-start-radius: 0.5rem;
    border-end-start-radius: 0.5rem;
  }
  .tt-option:last-of-type {
    border-start-end-radius: 0.5rem;
    border-end-end-radius: 0.5rem;
  }
  .tt-option input {
    position: absolute;
    inset: 0;
    width: 100%;
    height: 100%;
    margin: 0;
    opacity: 0;
    cursor: pointer;
  }
  .tt-option:has(:checked) {
    color: var(--tt-page);
    background: var(--tt-ink);
  }
  .tt-option:has(:focus-visible) {
    outline: 2px solid var(--tt-ink);
    outline-offset: 2px;
    z-index: 1;
  }
  .tt-choice select {
    font: inherit;
    color: inherit;
    background: var(--tt-page);
    min-height: 2.25rem;
    max-width: 100%;
    border: 1px solid var(--line);
    border-radius: 0.5rem;
  }
  .tt-player {
    display: inline-flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 0.4rem;
  }
  .tt-player output {
    min-width: 5.5em;
    font-variant-numeric: tabular-nums;
  }
  @container (max-width: 27rem) {
    .tt-card > .tt-controls {
      position: sticky;
      bottom: 0;
      z-index: 3;
    }
    .tt-slider {
      flex-basis: 100%;
    }
    .tt-slider label {
      max-width: 45%;
    }
    .tt-slider input {
      height: 2.75rem;
    }
    .tt-button,
    .tt-toggle,
    .tt-option,
    .tt-choice select {
      min-height: 2.75rem;
    }
    .tt-button {
      padding-inline: 0.65rem;
    }
    .tt-choice:has(select) {
      flex-wrap: nowrap;
    }
    .tt-choice select {
      min-width: 0;
    }
    .tt-option {
      padding-inline: 0.5rem;
      font-size: 0.875rem;
    }
  }
  @media print {
    .tt-controls {
      display: none;
    }
  }
`);

/**
 * A labelled slider. `format(value)` writes the value; sliders over powers keep the exponent and
 * format the power. A slider that `plays`, a step in so many seconds, has a button for it.
 */
export function slider({
  label,
  min,
  max,
  step,
  decimals = 1,
  format = (value) => formatNumber(value, decimals),
  plays,
  onInput,
}) {
  const id = uniqueId("tt-slider");
  const input = make("input", { id, type: "range", min, max, step });
  const output = make("output", { for: id });
  const playing = plays && player({ count: () => +input.max + 1, seconds: plays, bare: true, onStep: onInput });
  const set = (value) => {
    input.value = value;
    playing?.set(value);
    output.textContent = format(value);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    set(Number(input.value));
    onInput(Number(input.value));
  });
  return {
    node: make("div", { class: "tt-slider" }, make("label", { for: id, text: label }), input, output, playing?.node),
    set,
    input,
  };
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

export function button({ label, onClick, name }) {
  return make("button", {
    class: "tt-button",
    type: "button",
    text: label,
    "aria-label": name,
    onclick: onClick,
  });
}

/**
 * One of a few, side by side: radio buttons, with a `label` that is seen or a `name` that is only read out.
 * `options` are `[value, text]` pairs.
 */
export function choice({ label, name: spoken, options, onChange }) {
  const name = uniqueId("tt-choice");
  const inputs = options.map(([value]) =>
    make("input", { type: "radio", name, value, onchange: () => onChange(value) }),
  );
  const labels = options.map(([, text], i) => make("label", { class: "tt-option" }, inputs[i], make("span", { text })));
  return {
    node: make(
      "fieldset",
      { class: "tt-choice", "aria-label": spoken },
      label ? make("legend", { text: label }) : null,
      ...labels,
    ),
    set: (value) =>
      options.forEach(([option], i) => {
        inputs[i].checked = option === value;
      }),
  };
}

/** One of many: a list to open. `options` are `[value, text]` pairs. */
export function select({ label, options, onChange }) {
  const id = uniqueId("tt-select");
  const list = make(
    "select",
    { id, onchange: () => onChange(options[list.selectedIndex][0]) },
    ...options.map(([, text]) => make("option", { text })),
  );
  return {
    node: make("div", { class: "tt-choice" }, make("label", { for: id, text: label }), list),
    set: (value) => {
      list.selectedIndex = options.findIndex(([option]) => option === value);
    },
  };
}

/**
 * Buttons to go back, play and go on over the steps 0 to `count() - 1`. The explorer keeps the step
 * (a trait): `onStep(step)` asks for another, `set(step)` shows the one that stands. `describe(step)`
 * names a step; `bare` leaves only the button to play, for use beside a slider. A step that somebody else has set ends the
 * playing, and so does `pause()`; call `close()` when the view goes.
 */
export function player({ count, onStep, describe = (step) => `step ${step + 1} of ${count()}`, seconds = 1, bare }) {
  let step = 0;
  let timer = 0;
  let asked = 0;
  const go = (to) => onStep((asked = Math.min(Math.max(to, 0), count() - 1)));
  const pause = () => {
    clearInterval(timer);
    timer = 0;
    show();
  };
  const tick = () => {
    if (!playing.isConnected || step >= count() - 1) pause();
    else go(step + 1);
  };
  const play = () => {
    if (step >= count() - 1) go(0);
    asked = step;
    timer = setInterval(tick, 1000 * seconds);
    show();
  };
  const jump = (label, act) =>
    button({
      label,
      onClick: () => {
        pause();
        act();
      },
    });
  const [back, next] = [jump("Back", () => go(step - 1)), jump("Next", () => go(step + 1))];
  const playing = button({ label: "Play", onClick: () => (timer ? pause() : play()) });
  const output = make("output", {});
  const show = () => {
    playing.textContent = timer ? "Pause" : "Play";
    back.setAttribute("aria-disabled", step <= 0);
    next.setAttribute("aria-disabled", step >= count() - 1);
    output.textContent = describe(step);
  };
  return {
    node: make(
      "div",
      { class: "tt-player", role: "group", "aria-label": "steps" },
      ...(bare ? [playing] : [back, playing, next, output]),
    ),
    set: (value) => {
      step = value;
      if (timer && (step !== asked || step >= count() - 1)) pause();
      else show();
    },
    pause,
    close: () => clearInterval(timer),
  };
}

/**
 * Arrow keys over a grid with one tab stop (the roving-tabindex pattern). `cellAt(row, column)`
 * gives an element or nothing; positions are read from each element's data-row and data-column.
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
