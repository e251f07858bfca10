// Train it in the page: choose which parts a small Transformer has, guess, and watch it learn. What learns
// runs in a worker (playground_model.js, playground_tasks.js), or beside the drawing where workers are
// forbidden. Everything on screen follows from the traits: a view without a model trains it again, unseen,
// to the step at which it stood, which gives the same model to the last digit.
import { button, choice, select, toggle } from "./controls.js";
import { css, distinct, make, onTraits, openCard, refill, setTraits, uniqueId } from "./core.js";
import { stage } from "./drawing.js";
import { makeEngine } from "./playground_model.js";
import { drawLooks, drawPlot, follow, headOf } from "./playground_pictures.js";
import { makeTasks } from "./playground_tasks.js";
import {
  changedWords,
  guessWords,
  LEARNED,
  openingWords,
  outcomeOf,
  partsWords,
  percent,
  phasesOf,
  same,
  saidOf,
  scoreWords,
  standingWords,
  titleWords,
  verdictOf,
  WORDS,
} from "./playground_words.js";

const CSS = css`
  .task {
    display: flex;
    flex-wrap: wrap;
    gap: 0.4rem 1.1rem;
    align-items: center;
  }
  .own {
    display: flex;
    flex: 1 1 12rem;
    gap: 0.6rem;
    align-items: center;
  }
  .own input {
    font: inherit;
    color: inherit;
    background: transparent;
    flex: 1;
    min-width: 0;
    max-width: 14rem;
    min-height: 2.25rem;
    padding: 0 0.6rem;
    border: 1px solid var(--line);
    border-radius: 0.5rem;
  }
  .pictures {
    display: flex;
    flex-wrap: wrap;
    gap: 0.75rem 1.5rem;
    margin: 0.6rem 0;
  }
  .pictures > * {
    flex: 1 1 17rem;
    min-width: 0;
  }
  .pictures > :last-child {
    flex-grow: 3;
  }
  .parts {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 0.1rem 1.1rem;
  }
  .look {
    fill: none;
    stroke: var(--tt-weights-line);
    stroke-linecap: round;
  }
  .tt-picture .token {
    font-size: 1.0625rem;
    text-anchor: middle;
  }
  .tt-picture .right {
    font-weight: 700;
  }
  .tt-picture .wrong {
    fill: var(--tt-loss);
  }
  .node {
    fill: currentColor;
  }
  .hit {
    fill: transparent;
  }
  .hit.on {
    fill: color-mix(in srgb, currentColor 10%, transparent);
  }
  .tt-picture .turn {
    text-decoration: underline;
    text-decoration-style: dotted;
    text-underline-offset: 0.2em;
  }
  .tt-picture text {
    pointer-events: none;
  }
  .tt-picture .asked {
    font-size: 0.9375rem;
    text-anchor: middle;
  }
  .faint {
    fill-opacity: 0.75;
  }
  .halo {
    stroke: var(--tt-page);
    stroke-width: 4px;
    paint-order: stroke;
  }
  .axis,
  .event,
  .mark {
    stroke: currentColor;
    stroke-opacity: 0.7;
  }
  .mark {
    stroke-dasharray: 2 4;
  }
  .line {
    fill: none;
    stroke: currentColor;
    stroke-width: 2.5;
  }
  .line.seen {
    stroke-width: 1.5;
    stroke-dasharray: 5 4;
  }
  .line.usual {
    stroke-opacity: 0.6;
  }
  .axis,
  .line.before {
    stroke-opacity: 0.35;
  }
  .line.loss {
    stroke: var(--tt-loss);
    stroke-width: 1.5;
  }
  .fall {
    fill: none;
    stroke: var(--tt-loss);
    stroke-width: 2.5;
  }
  .recorded {
    fill: var(--tt-page);
    stroke: currentColor;
    stroke-width: 1.5;
  }
  .tt-controls > span {
    flex-basis: 100%;
  }
  .acts {
    display: inline-flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 0.4rem 0.6rem;
  }
  .guess {
    min-width: 4rem;
    border-width: 2px;
    font-weight: 600;
  }
  .such {
    margin: 0.5rem 0 0;
    min-height: 1.45em;
  }
  .such.wrong {
    font-weight: 600;
  }
  .idle {
    visibility: hidden;
  }
  /* The browser's own boxes look disabled on a dark page. */
  .tt-toggle input {
    appearance: none;
    display: grid;
    flex: none;
    border: 1.5px solid color-mix(in srgb, currentColor 70%, transparent);
    border-radius: 0.25rem;
  }
  .tt-toggle input:checked {
    border-color: var(--tt-ink);
    background: var(--tt-ink);
  }
  .tt-toggle input:checked::before {
    content: "";
    margin: 0.15rem;
    background: var(--tt-page);
    clip-path: polygon(12% 44%, 0 60%, 42% 96%, 100% 18%, 84% 6%, 40% 66%);
  }
  .tt-finding {
    min-height: 5.8em;
  }
  .tt-invite > span {
    opacity: 1 !important;
  }
  /* The invitation goes when the outcome comes: two texts, one over the other, cannot be read. */
  .tt-finding > * {
    transition: none !important;
  }
  @container (max-width: 27rem) {
    .tt-head {
      margin: 0 0 0.65rem;
    }
    .tt-question {
      font-size: 1rem;
    }
    .tt-reset {
      padding-block: 0.8rem;
    }
    .task,
    .task > .tt-choice {
      gap: 0.25rem 0.5rem;
    }
    .task > *,
    .own {
      flex: 1 0 100%;
      font-size: 0.875rem;
    }
    .task select,
    .own input {
      flex: 1;
      max-width: none;
    }
    .own input {
      min-height: 2.75rem;
    }
    .task > .tt-choice > label {
      margin: 0;
    }
    .pictures {
      gap: 0.1rem;
      margin: 0.1rem 0 0;
    }
    .pictures > * {
      flex-basis: 100%;
    }
    .parts {
      gap: 0 0.9rem;
      font-size: 0.8125rem;
    }
    .tt-more .parts {
      gap: 0.5rem;
    }
    .tt-option {
      min-width: 2.75rem;
      justify-content: center;
    }
    .tt-toggle {
      font-size: 0.8125rem;
      gap: 0.3rem;
      min-width: 2.75rem;
    }
    .tt-card > .tt-controls {
      margin: 0;
      padding: 0;
      gap: 0.1rem 0.6rem;
      font-size: 0.875rem;
    }
    .such {
      margin: 0.25rem 0 0;
      font-size: 0.8125rem;
    }
    .such > span,
    .tt-invite > span {
      display: none;
    }
    .guess {
      min-width: 3.5rem;
    }
    .tt-finding {
      margin: 0.25rem 0 0;
      min-height: 2.9em;
      font-size: 0.8125rem;
    }
    .tt[data-acted] .tt-finding {
      min-height: 8.8em;
    }
    .tt:not([data-acted]) .tt-found {
      height: 0;
    }
    .tt-picture text {
      font-size: 0.75rem;
    }
  }
`;

const engine = makeEngine();
const { tasks, understand, Training } = makeTasks(engine);
const PARTS = ["positions", "causal", "heads", "skips", "norm", "layers"];
const SETTINGS = ["task", ...PARTS, "rate", "seed", "beside", "text", "head", "selected", "slow"];
const NOTES = [
  "Positions: a learned vector for each place. Skips: what a layer finds is added to what came in. Norms: each vector is brought to one size. Looking left only: a causal mask.",
  "The lines are attention, as wide as the weight; two layers meet half-way. Point at a letter, or tap it, to follow its lines. Press “all heads”, their mean, for one at a time.",
  "Unseen: never trained on. Chance is a guess among all tokens. The loss is minus the logarithm of the probability of the right answer. A random start: first weights, and examples.",
];
const EVERY = 10; // steps from point to point
const MOST_POINTS = 200;
const MOST_RUNS = 12;
const DOUBLE_CLICK = 400; // ms: its second click is not meant for Pause, which takes the place of Yes
const [SECONDS, SLOW_SECONDS] = [4, 20]; // that a run takes at least: long enough to watch

const round = (value) => Math.round(1000 * value) / 1000;

// ------------------------------------------------------------------ what learns

/** Trains as it is told, a little at a time, and tells how it stands. It stands in the worker, too: all it needs is given. */
function makeTrainer({ Training }, { every, slice }, tell) {
  let [training, parts, rate, until, ids, timer, steps, heard, seconds] = [null, null, 0, 0, null, 0, 0, 0, 1];
  let [sums, points, last, changes, started, from] = [{ loss: 0, seen: 0, n: 0 }, [], 0, [], 0, 0];

  const point = (had) => {
    const { loss, seen, n } = sums;
    last = training.done;
    points.push([last, n ? loss / n : null, n ? seen / n : null, training.right(had)]);
    sums = { loss: 0, seen: 0, n: 0 };
  };
  const one = () => {
    const [, ...had] = changes.at(-1) || [];
    if (JSON.stringify(had) !== JSON.stringify([parts, rate])) {
      // What it had before and what it has now both stand in the plot, at the step of the change.
      if (had.length && last < training.done) point(had[0]);
      changes.push([training.done, parts, rate]);
      if (had.length) point(parts);
    }
    const { loss, seen } = training.step(parts, rate);
    sums = { loss: sums.loss + loss, seen: sums.seen + seen, n: sums.n + 1 };
    if (training.done % every === 0 || training.done === until) point(parts);
  };
  const report = () => {
    const right = points.length ? points.at(-1)[3] : training.right(parts);
    const running = training.done < until;
    tell({ heard, done: training.done, points, changes, right, ...training.ask(ids, parts), running });
    points = [];
  };
  const pace = () => {
    [started, from] = [performance.now(), training.done];
  };
  const work = () => {
    const end = performance.now() + slice;
    const paced = () => training.done - from < ((performance.now() - started) / 1000) * (steps / seconds);
    while (training.done < until && performance.now() < end && paced()) one();
    report();
    timer = training.done < until ? setTimeout(work, 8) : 0;
  };
  return (message) => {
    heard = message.number;
    if (message.kind === "make") {
      training = new Training(message.task, message.seed);
      ({ steps, ids } = message);
      for (const [step, changed, speed] of message.changes) {
        while (training.done < Math.min(step, message.done)) training.step(parts, rate);
        [parts, rate] = [changed, speed];
      }
      while (training.done < message.done) training.step(parts, rate);
      [last, changes] = [message.done, message.done ? message.changes : []];
      if (!message.done) point(parts);
    } else if (message.kind === "parts") {
      ({ parts, rate } = message);
    } else if (message.kind === "ids") {
      ids = message.ids;
    } else if (message.kind === "pace") {
      seconds = message.seconds;
      pace();
    } else if (message.kind === "go") {
      [until, seconds] = [message.until, message.seconds];
      pace();
      clearTimeout(timer);
      work();
      return;
    } else if (message.kind === "pause") {
      clearTimeout(timer);
      until = training.done;
      if (last < until) point(parts);
    }
    if (training.done >= until) report();
  };
}

/** A trainer in a worker, or here where none can be had; `send(message)` and `close()`. */
function hireTrainer(tell) {
  const options = { every: EVERY, slice: 24 };
  const source = `const engine = (${makeEngine})();
    const receive = (${makeTrainer})((${makeTasks})(engine), ${JSON.stringify(options)}, (told) => postMessage(told));
    onmessage = ({ data }) => receive(data);`;
  const sent = []; // to be said again, should the worker not start
  let [worker, here, told] = [null, null, false];
  const stay = () => {
    worker?.terminate();
    worker = null;
    here = makeTrainer(makeTasks(engine), { ...options, slice: 12 }, tell);
    sent.splice(0).forEach(here);
  };
  try {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    worker = new Worker(address);
    URL.revokeObjectURL(address);
    worker.onmessage = ({ data }) => {
      told = true;
      tell(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (!told) stay();
      else throw new Error(event.message);
    };
  } catch {
    stay();
  }
  return {
    send: (message) => {
      if (here) here(message);
      else {
        if (!told) sent.push(message);
        worker.postMessage(message);
      }
    },
    close: () => {
      worker?.terminate();
      if (here) here({ kind: "pause" });
    },
  };
}

// ------------------------------------------------------------------ the figure

function render({ model, el }) {
  const get = (name) => model.get(name);
  const names = [...SETTINGS, "run", "now", "history"];
  const initial = Object.fromEntries(names.map((name) => [name, get(name)]));
  const partsOf = () => Object.fromEntries(PARTS.map((name) => [name, get(name)]));
  const wholeOf = (parts) => ({ ...parts, positions: true, causal: get("task") === "next", skips: true, norm: true });
  const stepsOf = () => get("steps") || tasks[get("task")].steps;
  const secondsOf = () => (get("slow") ? SLOW_SECONDS : SECONDS);
  const idsOf = () => {
    const task = get("task");
    return understand(task, get("text")).ids || understand(task, tasks[task].text).ids;
  };
  let live = null; // `{ run, now, trainers, until }` while this view has a model

  // ---- training

  const isBusy = () => !!live && live.trainers.some(({ busy }) => busy);
  const commit = () => {
    if (!live || isBusy()) return;
    const [run, now] = [structuredClone(live.run), structuredClone(live.now)];
    const history = [...get("history").filter(({ id }) => id !== run.id), run].slice(-MOST_RUNS);
    setTraits(model, { run, now, history });
  };
  const hear = (mine, trainer, series, isBeside) => (told) => {
    if (live !== mine || !mine.trainers.includes(trainer)) return;
    series.done = told.done;
    if (told.changes.length) series.changes = told.changes;
    for (const [step, ...shares] of told.points) {
      series.steps.push(step);
      ["loss", "seen", "right"].forEach((name, i) => series[name].push(shares[i] === null ? null : round(shares[i])));
    }
    if (series.steps.length > MOST_POINTS) {
      // Half of them, but for those that words are said of.
      const told = [stepsOf(), ...series.changes.map(([step]) => step)];
      const stays = series.steps.map((step, i, { length }) => i % 2 === 0 || i === length - 1 || told.includes(step));
      for (const name of ["steps", "loss", "seen", "right"]) series[name] = series[name].filter((_, i) => stays[i]);
    }
    const now = { right: round(told.right), says: told.says, weights: told.weights };
    if (isBeside) mine.now.beside = now;
    else mine.now = { ...now, parts: trainer.parts, beside: mine.now.beside };
    trainer.busy = told.running || told.heard < trainer.sent;
    if (!isBusy()) commit();
    redraw();
  };
  const send = (trainer, message) => {
    trainer.sent += 1;
    trainer.busy = true;
    trainer.send({ ...message, number: trainer.sent });
  };
  const leave = () => {
    const left = live;
    live = null;
    for (const { close } of left?.trainers || []) close();
  };
  /** A model for a series of steps, trained as far as it was. */
  const enlist = (mine, series, isBeside) => {
    const { changes, done } = series;
    const trainer = { sent: 0, busy: true, parts: changes.at(-1).slice(1), ids: idsOf() };
    mine.trainers.push(trainer);
    Object.assign(trainer, hireTrainer(hear(mine, trainer, series, isBeside)));
    const { task, seed } = mine.run;
    send(trainer, { kind: "make", task, seed, changes, done, steps: tasks[task].steps, ids: trainer.ids });
    return trainer;
  };
  /** Make the models of a run. */
  const hire = (run, now) => {
    leave();
    live = { run: structuredClone(run), now: { ...now }, trainers: [], until: run.done };
    enlist(live, live.run, false);
    if (live.run.beside) enlist(live, live.run.beside, true);
  };
  /** The models of the run that is shown; with none of its own, a view trains them again. */
  const ensure = () => {
    if (!live && get("run").steps) hire(get("run"), get("now"));
    return live;
  };
  const go = (until, isSingle = false) => {
    Object.assign(ensure(), { until, isSingle });
    for (const trainer of live.trainers) send(trainer, { kind: "go", until, seconds: secondsOf() });
    draw(); // at once: what is pressed next, and who listens, finds it busy
  };
  const series = (parts, rate) => ({ changes: [[0, parts, rate]], done: 0, steps: [], loss: [], seen: [], right: [] });
  const start = (guess, twin = null, until = stepsOf()) => {
    const [task, seed, parts, rate] = [get("task"), get("seed"), partsOf(), get("rate")];
    const run = { id: 1 + Math.max(0, ...get("history").map(({ id }) => id)), task, seed, guess, twin, ...parts, rate };
    Object.assign(run, series(parts, rate), { beside: get("beside") ? series(wholeOf(parts), rate) : null });
    setTraits(model, { run: {}, now: {} });
    hire(run, {});
    go(until, until === 1);
  };
  /** Hand the running model what the traits say, where they have changed. */
  const pass = () => {
    if (!live) return;
    const [own] = live.trainers;
    const [parts, rate, ids] = [partsOf(), get("rate"), idsOf()];
    if (!same(own.parts, [parts, rate])) {
      own.parts = [parts, rate];
      send(own, { kind: "parts", parts, rate });
    }
    for (const trainer of live.trainers)
      if (!same(trainer.ids, ids)) {
        trainer.ids = ids;
        send(trainer, { kind: "ids", ids });
      }
  };
  const change = (values) => {
    ensure();
    setTraits(model, values);
  };
  /** With a second model, which catches up with the first, or without it. */
  const accompany = (beside) => {
    const mine = ensure();
    setTraits(model, { beside });
    if (!mine) return;
    const { run, trainers } = mine;
    trainers.splice(1).forEach(({ close }) => close());
    delete mine.now.beside;
    run.beside = beside ? series(wholeOf(Object.fromEntries(PARTS.map((name) => [name, run[name]]))), run.rate) : null;
    if (beside) {
      if (!isBusy()) mine.until = run.done;
      send(enlist(mine, run.beside, true), { kind: "go", until: mine.until, seconds: secondsOf() });
    } else commit();
    draw();
  };

  // ---- what the reader works with

  const card = openCard(el, {
    label: "Train it in the page",
    question: titleWords(get("task"), partsOf(), false),
    onReset: () => {
      leave();
      setTraits(model, initial);
      delete card.root.dataset.acted; // the invitation stands again
    },
    css: CSS,
  });
  const task = select({
    label: "It learns to",
    options: Object.keys(tasks).map((name) => [name, WORDS[name][0]]),
    onChange: (name) => {
      leave();
      const { text } = tasks[name];
      setTraits(model, { task: name, causal: name === "next", text, selected: -1, run: {}, now: {} });
    },
  });
  const [id, suchId] = [uniqueId("tt-own"), uniqueId("tt-such")];
  const own = make("input", {
    id,
    "aria-describedby": suchId,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    maxlength: 40,
    oninput: () => change({ text: own.value, selected: -1 }),
  });
  const ownLabel = make("label", { for: id });
  const such = make("p", { id: suchId, class: "such" });
  let [hovered, probe] = [[-1, -1], Infinity]; // what the pointer or the keys are at, while they are
  const heightOf = () => (card.root.clientWidth < 480 ? 148 : 264);
  const looks = stage({
    label: "The sequence, what it says, and attention as lines between them",
    height: heightOf,
    draw: (state, width, height) => drawLooks(state, width, height),
  });
  const placeOf = ({ target }) => +(target.dataset?.key?.match(/^hit(\d+)/)?.[1] ?? -1);
  const hover = (which, place) => {
    if (place === hovered[which]) return;
    hovered[which] = place;
    drawPictures();
  };
  const onLooks = (kind, act) => looks.node.addEventListener(kind, act);
  onLooks("pointermove", (event) => event.pointerType === "mouse" && hover(0, placeOf(event)));
  for (const kind of ["pointerleave", "keydown"]) onLooks(kind, () => hover(0, -1)); // what is used last counts
  onLooks("focusin", (event) => hover(1, event.target.matches(":focus-visible") ? placeOf(event) : -1));
  onLooks("focusout", () => hover(1, -1));
  const plot = stage({
    label: "How wrong it is, and the share right, step by step",
    height: heightOf,
    role: "img",
    draw: (state, width, height) => drawPlot(state, width, height),
  });
  // Chromium would stop at a drawing that listens for focus.
  for (const { node } of [looks, plot]) node.firstChild.tabIndex = -1;
  const point = (event) => {
    const { left } = plot.node.getBoundingClientRect();
    probe = event ? event.clientX - left : Infinity;
    drawn.points = -1;
    drawPictures();
  };
  plot.node.addEventListener("pointermove", point);
  plot.node.addEventListener("pointerleave", () => point(null));
  const switches = [
    ["positions", "positions"],
    ["skips", "skips"],
    ["norm", "norms"],
    ["causal", "it looks left only"],
  ].map(([name, label]) => [name, toggle({ label, onChange: (value) => change({ [name]: value }) })]);
  const few = [
    ["heads", "Heads", [1, 2, 4].map((n) => [n, String(n)])],
    ["layers", "Layers", [1, 2].map((n) => [n, String(n)])],
    [
      "rate",
      "Learning rate",
      [
        [0.0003, "small"],
        [0.003, "usual"],
        [0.03, "large"],
      ],
    ],
  ].map(([name, label, options]) => [name, choice({ label, options, onChange: (value) => change({ [name]: value }) })]);
  const beside = toggle({ label: "beside it, all parts", onChange: accompany });
  const asked = make("span", {});
  let begun = 0;
  /** A guess starts a training, or lets one go on whose first steps were made one by one. */
  const begin = (said) => {
    const twin = twinOf();
    const guess = twin === null ? said : (said === "yes") === twin ? "yes" : "no"; // “no” may be “the same”
    begun = performance.now();
    if (isOpen()) {
      ensure().run.guess = guess;
      live.run.twin = twin;
      go(stepsOf());
    } else start(guess, twin);
    pausing.focus();
  };
  const will = [
    button({ label: "Yes", onClick: () => begin("yes") }),
    button({ label: "No", onClick: () => begin("no") }),
  ];
  for (const one of will) one.classList.add("guess");
  const pausing = button({
    label: "Pause",
    onClick: () => {
      const [{ done }, goal] = [get("run"), stepsOf()];
      if (!isBusy()) go(done < goal ? goal : done + goal);
      else if (performance.now() - begun > DOUBLE_CLICK)
        for (const trainer of live.trainers) send(trainer, { kind: "pause" });
    },
  });
  const step = button({
    label: "One step",
    onClick: () => (get("run").steps ? go(get("run").done + 1, true) : start(null, null, 1)),
  });
  const again = button({
    label: "New start",
    name: "New start, at random",
    onClick: () => {
      leave();
      setTraits(model, { seed: get("seed") + 1, run: {}, now: {} });
      will[0].focus();
    },
  });
  const slow = toggle({
    label: "slowly",
    onChange: (value) => {
      setTraits(model, { slow: value });
      for (const trainer of isBusy() ? live.trainers : []) send(trainer, { kind: "pace", seconds: secondsOf() });
    },
  });
  card.stage.append(
    make("div", { class: "task" }, task.node, make("div", { class: "own" }, ownLabel, own)),
    such,
    make("div", { class: "pictures" }, looks.node, plot.node),
    make(
      "div",
      { class: "parts" },
      make("b", { text: "It has" }),
      ...switches.map(([, { node }]) => node),
      beside.node,
    ),
  );
  card.controls.append(asked, make("div", { class: "acts" }, ...will, pausing, step, again, slow.node));
  card.more(
    "More parts, and what the words mean",
    make("div", { class: "parts" }, ...few.map(([, { node }]) => node)),
    ...[...NOTES, get("note")].map((text) => make("p", { class: "tt-note", text })),
  );

  // ---- drawing

  let frame = 0;
  const redraw = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (isBusy() && drawn.busy) drawPictures();
      else draw();
    });
  };
  /** What the model says before it has learned anything. */
  let fresh = { key: "" };
  const untrained = () => {
    const [name, seed, parts, ids] = [get("task"), get("seed"), partsOf(), idsOf()];
    const key = JSON.stringify([name, seed, parts, ids, get("beside")]);
    if (fresh.key !== key) {
      const training = new Training(name, seed);
      const stand = (parts) => ({ right: round(training.right(parts)), ...training.ask(ids, parts) });
      const beside = get("beside") ? stand(wholeOf(parts)) : null;
      fresh = { key, now: { ...stand(parts), beside } };
    }
    return fresh.now;
  };
  let told = null;
  const shown = () => {
    const { run, now } = live || { run: get("run"), now: get("now") };
    if (!run.steps) return { run: { ...series(partsOf(), get("rate")) }, now: {}, has: false };
    return { run, now, has: true };
  };
  let drawn = { busy: false, points: -1 };
  const trains = make("span", {});
  const draw = () => {
    const name = get("task");
    const { run, now, has } = shown();
    const busy = isBusy();
    card.root.toggleAttribute("aria-busy", busy);
    if (busy) card.root.setAttribute("aria-busy", "true");
    task.set(name);
    ownLabel.textContent = `Your own ${WORDS[name][1]}`;
    if (own.value !== get("text")) own.value = get("text");
    for (const [part, control] of [...switches, ...few]) control.set(get(part));
    beside.set(get("beside"));
    slow.set(get("slow"));
    const opening = openingWords(name, partsOf());
    refill(
      card.root.querySelector(".tt-invite"),
      ...opening.map((text, i) => (i === 1 ? make("span", { text }) : text)),
    );
    const changed = has ? changedOf(run, now) : "";
    // A training whose parts changed on the way is none of those that are guessed at.
    const isGone = has && phasesOf(run).length > 1;
    card.root.querySelector(".tt-question").textContent = titleWords(name, partsOf(), isGone && !changed);
    const runs = busy && !live.isSingle; // the buttons stay for a single step
    const isNew = !runs && (!has || !!changed || isGone);
    const waits = !runs && isOpen();
    const isDone = !busy && has && run.done >= stepsOf();
    const bet = { task: name, seed: get("seed"), simplest: get("simplest").next };
    const score = scoreWords(get("history").map((one) => [one.guess, endOf(one)]));
    const guess = guessWords({ ...bet, ...(run.guess ? run : { twin: twinOf() }) });
    if (!isNew && !waits && !run.guess) asked.textContent = "\u00a0";
    else if (isNew && has) asked.textContent = `Would a new one learn ${partsWords(partsOf(), name)}?`;
    else asked.textContent = isDone && run.guess && score ? `You said ${saidOf(run)}. ${score}` : guess;
    // The same run again would come out the same: another guess is asked for when something else is tried.
    for (const one of will) one.hidden = !isNew && !waits;
    pausing.hidden = (!has && !runs) || waits;
    pausing.textContent = runs ? "Pause" : "Go on";
    step.hidden = runs || (isNew && has);
    again.hidden = runs || !has || isNew || waits;
    // Where there is nothing to compare with, its place stays.
    const isIdle = !get("beside") && partsWords(partsOf(), name) === "with all parts";
    beside.node.classList.toggle("idle", isIdle);
    beside.node.firstChild.tabIndex = isIdle ? -1 : 0;
    drawn.busy = false; // so that the plot is drawn, too
    drawPictures();
    if (busy) {
      const words = live.trainers[0].busy
        ? ["It trains: ", " Untick a part now, and the running model loses it."]
        : ["The one with all parts catches up: ", ""];
      find(words[0], [words[0], trains, words[1]]);
      return;
    }
    if (!has) {
      find(opening.join(""), opening);
      return;
    }
    const [verdict, words] = verdictOf({
      run,
      now,
      goal: stepsOf(),
      simplest: get("simplest")[name],
      recorded: recordedOf(run),
      before: beforeOf(run),
      kept: tasks[name].kept,
    });
    find(verdict + words, [verdict && make("b", { text: `${verdict} ` }), words]);
  };
  const find = (key, words) => {
    if (key === told) return;
    told = key;
    card.find(...words);
  };

  /** What changes while it learns; a plot only when it has another point. */
  const drawPictures = () => {
    const [name, busy, ids, goal] = [get("task"), isBusy(), idsOf(), stepsOf()];
    const { run, now: heard, has } = shown();
    const now = heard.says ? heard : untrained();
    const targets = tasks[name].right(ids);
    const heads = now.weights[0].length;
    const head = get("head") <= heads ? get("head") : 0;
    const selected = get("selected") < 2 * ids.length ? get("selected") : -1;
    const followed = [...hovered, selected].find((place) => place >= 0) ?? -1;
    const second = get("beside") ? heard.beside || untrained().beside : null;
    const act = {
      follow: (place) => setTraits(model, { selected: place === get("selected") ? -1 : place }),
      turn: () => setTraits(model, { head: head < heads ? head + 1 : 0 }),
    };
    const { says } = now;
    looks.show({ now, second, task: tasks[name], ids, targets, head, followed, selected, turnable: heads > 1, act }, 0);
    looks.node.firstChild.setAttribute("aria-label", spokenLooks(name, ids, says));
    const [problem, tiers] = [understand(name, get("text")).problem, headOf(now.weights, head)];
    const line = problem
      ? `${problem.trim()} Still showing: ${tasks[name].text}.`
      : followed >= 0
        ? followWords(name, ids, says, tiers, followed)
        : "";
    such.classList.toggle("wrong", !!problem);
    if (line) such.textContent = line;
    else refill(such, ...exampleWords(name, ids));
    trains.textContent = busy ? `step ${(live.trainers[0].busy ? run : run.beside).done} of ${live.until}.` : "";
    const points = (run.steps?.length || 0) + (run.beside?.steps.length || 0);
    const isDrawn = busy && drawn.busy && drawn.points === points;
    drawn = { busy, points };
    if (isDrawn) return; // a slow phone has enough to do
    const changed = !busy && has && changedOf(run, now);
    const recorded = has && !busy && !changed && run.done >= goal ? recordedOf(run) : [];
    const [simplest, chance] = [get("simplest")[name], 1 / tasks[name].vocabulary.length];
    const marks = [
      { share: simplest, text: WORDS[name][3] },
      ...(simplest < 2 * chance ? [] : [{ share: chance, text: "chance" }]), // one line stands for both
      ...(name === "next" ? [] : [{ share: LEARNED, text: "nine in ten" }]),
    ];
    const before = run.beside ? null : get("history").findLast((one) => !(one.id >= run.id) && one.task === name);
    const most = Math.max(goal, run.done || 0, run.beside?.done || 0);
    const stood = { ...run, steps: [0], loss: [null], seen: [null], right: [now.right] };
    plot.show(
      {
        run: has && run.steps.length ? run : stood,
        beside: run.beside,
        before,
        most,
        goal,
        marks,
        recorded,
        fallen: changed && run.right.length ? now.right : null,
        probe,
        classes: tasks[name].vocabulary.length,
      },
      0,
    );
  };

  const keyOf = ({ task: name, changes: [[, { positions, causal, heads, skips, norm, layers }, rate]] }) =>
    `${name} ${+positions}${+causal}${heads}${+skips}${+norm} ${layers} ${rate}`;
  const isPlain = (run) => phasesOf(run).length === 1;
  /** What five recorded trainings with a run's parts got right. */
  const recordedOf = (run) =>
    (isPlain(run) && !get("steps") && get("recorded").find(([setting]) => setting === keyOf(run))?.[1]) || [];
  /** Whether it had learned, after the steps of a training. */
  const endOf = (run) => outcomeOf(run, get("steps") || tasks[run.task].steps, get("simplest")[run.task]);
  /** How the last training with the present parts and another random start ended, where that is asked; or null. */
  const twinOf = () => {
    if (shown().has && !isOpen()) return null;
    const key = keyOf({ task: get("task"), changes: [[0, partsOf(), get("rate")]] });
    const twin = get("history").findLast((one) => isPlain(one) && keyOf(one) === key && endOf(one) !== null);
    return twin && twin.seed !== get("seed") ? endOf(twin) : null;
  };
  /** Whether a training has begun, step by step, and waits for a guess. */
  const isOpen = () => {
    const { run, now, has } = shown();
    return has && !run.guess && run.done < stepsOf() && isPlain(run) && !changedOf(run, now);
  };
  /** The last training before it with the same parts. */
  const beforeOf = (run) =>
    get("history").findLast(
      (one) => one.id < run.id && one.done >= stepsOf() && isPlain(one) && keyOf(one) === keyOf(run),
    );
  /** How the model that stands here differs from the one that was trained, in words. */
  const changedOf = (run, now) => (now.parts ? changedWords(phasesOf(run).at(-1)[1], now.parts[0]) : "");

  const onChange = () => {
    pass();
    draw();
  };
  const stops = [onTraits(model, names, onChange), looks.close, plot.close, leave, card.close];
  stops.push(() => cancelAnimationFrame(frame));
  card.caption.remove(); // the pictures name their lines themselves
  draw();
  return () => stops.forEach((end) => end());
}

/** Whether what is shown is trained on, and two sequences that are, each with its answer; a phone has room for one. */
function exampleWords(name, ids) {
  const { draw, isKept, right, vocabulary, kept } = tasks[name];
  const write = (all) => all.map((id) => vocabulary[id]).join(WORDS[name][4]);
  const random = new engine.Random(3);
  const found = [];
  while (found.length < 2) {
    const ids = draw(random);
    if (isKept(ids)) continue;
    found.push(`${write(ids)}\u00a0→\u00a0${write(right(ids).filter((one) => one >= 0))}`);
  }
  const signs = name === "next" ? " (· begins, . ends)" : "";
  const standing = standingWords(name, write(ids).replace(/[·.]/g, ""), isKept(ids), kept);
  const examples = `Examples: ${found[0]}`;
  const more = `, ${found[1]}${signs}`;
  return [standing || examples, make("span", { text: standing ? ` ${examples}${more}` : more })];
}

/** The picture of a sequence for a screen reader. */
function spokenLooks(task, ids, says) {
  const { vocabulary, right } = tasks[task];
  const targets = right(ids);
  const words = (all) => all.map((id) => vocabulary[id]).join(" ");
  const asked = (all) => words(all.filter((_, i) => targets[i] >= 0));
  return `It reads ${words(ids)}, and says ${asked(says)}; the answer is ${asked(targets)}`;
}

/** What one letter looks at, or who looks at it. */
function followWords(name, ids, says, tiers, place) {
  const { vocabulary, right } = tasks[name];
  const targets = right(ids);
  const { arrives, isAnswer } = follow(tiers, place);
  const tokens = distinct(ids.map((id) => vocabulary[id]));
  const asked = ids.map((_, i) => i).filter((i) => targets[i] >= 0);
  const answer = (i) => (asked.length > 1 ? `answer ${asked.indexOf(i) + 1}` : "its answer");
  const most = arrives
    .map((share, i) => [Math.min(share, 1), i])
    .filter(([share, i]) => share >= 0.02 && (isAnswer || targets[i] >= 0))
    .sort(([one], [other]) => other - one)
    .slice(0, 3)
    .map(([share, i]) => `${isAnswer ? tokens[i] : answer(i)} (${percent(share)})`)
    .join(", ");
  const i = place % ids.length;
  const through = tiers.length > 1 ? " through both layers" : "";
  if (!isAnswer) return `“${tokens[i]}” is looked at${through} by ${most || "no answer"}`;
  const words = `${answer(i)}, “${vocabulary[says[i]]}”, looks${through} at ${most}`;
  return words[0].toUpperCase() + words.slice(1);
}

export default { render };
