// Train it in the page: choose which parts a small Transformer has, guess, and watch it learn. What learns
// runs in a worker (playground_model.js, playground_tasks.js), or beside the drawing where workers are
// forbidden. Everything on screen follows from the traits: a view without a model trains it again, unseen,
// to the step at which it stood, which gives the same model to the last digit.
import { button, choice, select, toggle } from "./controls.js";
import { css, formatNumber, make, onTraits, openCard, refill, setTraits, uniqueId } from "./core.js";
import { arrow, stage } from "./drawing.js";
import { makeEngine } from "./playground_model.js";
import { makeTasks } from "./playground_tasks.js";

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
  .parts {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 0.1rem 1.1rem;
  }
  .parts > b {
    font-weight: 600;
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
  .mark {
    stroke: currentColor;
    stroke-opacity: 0.35;
  }
  .mark {
    stroke-dasharray: 2 4;
    stroke-opacity: 0.7;
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
    stroke: var(--tt-memory-line);
  }
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
  .will {
    display: inline-flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 0.4rem 0.6rem;
  }
  .will .tt-button {
    min-width: 4rem;
    color: var(--tt-page);
    background: var(--tt-ink);
    font-weight: 600;
  }
  .will .tt-button:hover {
    background: color-mix(in srgb, var(--tt-ink) 82%, var(--tt-page));
  }
  .such {
    margin: 0.5rem 0 0;
  }
  .tt-found b {
    font-weight: 700;
  }
  @container (max-width: 27rem) {
    .tt-head {
      margin: 0;
    }
    .task > *,
    .own,
    .task select {
      flex: 1 0 100%;
    }
    .task > .tt-choice > label {
      position: absolute;
      clip-path: inset(50%);
    }
    .own input {
      min-height: 2.75rem;
    }
    .pictures {
      gap: 0.25rem 0.75rem;
      margin: 0.5rem 0 0;
    }
    .pictures > * {
      flex-basis: 40%;
    }
    .pictures > :last-child {
      flex-basis: 100%;
    }
    .parts {
      justify-content: space-between;
      gap: 0 0.4rem;
    }
    .parts > b {
      display: none;
    }
    .tt-toggle {
      font-size: 0.8125rem;
      gap: 0.3rem;
    }
    .tt-card > .tt-controls {
      margin: 0;
      gap: 0.4rem 0.6rem;
    }
    .such {
      margin: 0.25rem 0 0;
      font-size: 0.8125rem;
    }
    .such > span {
      display: none;
    }
    .will .tt-button {
      min-width: 3.5rem;
    }
    .tt-finding {
      margin: 0.25rem 0 0;
    }
  }
`;

const engine = makeEngine();
const { tasks, understand } = makeTasks(engine);
const PARTS = ["positions", "causal", "heads", "skips", "norm", "layers"];
const SETTINGS = ["task", ...PARTS, "rate", "seed", "beside", "text"];
// What it learns, what the reader may write, what is counted, the simplest answer, and what joins the tokens.
const WORDS = {
  reverse: ["write eight letters backwards", "letters", "letters", "the commonest letter everywhere", ""],
  sort: ["sort eight digits", "digits", "digits", "the commonest digit everywhere", ""],
  who: ["say who did it, and to whom", "sentence", "answers", "always the first word", " "],
  sum: ["add two digits", "sum", "sums", "always 9", " "],
  next: ["guess the next letter of a word", "word", "letters", "from the letter before alone", ""],
};
const NOTES = [
  "Positions: each place has a vector of its own, which is learned. Causal: a place reads only itself and what stands left of it. Skips: what a layer finds is added to what came in. Norms: each vector is brought to one size before a layer reads it.",
  "In the picture the lines are attention, the mean of all heads, as wide as the weight; with two layers they meet half-way. In the plot chance is a guess among all tokens; the circles at the end are the recorded seeds.",
];
const RECORDED = "Seeds 101 to 105, recorded with the same parts";
const LEARNED = 0.9;
const EVERY = 10; // steps from point to point
const MOST_POINTS = 200;
const MOST_RUNS = 12;
const SECONDS = 4; // that a run takes at least: long enough to watch

/** A share in percent; what is not whole is never called 100, and what is not nothing never 0. */
const percent = (share) =>
  `${share === 0 || share === 1 ? 100 * share : Math.min(Math.max(Math.round(100 * share), 1), 99)}\u00a0%`;
const round = (value) => Math.round(1000 * value) / 1000;

// ------------------------------------------------------------------ what learns

/** Trains as it is told, a little at a time, and tells how it stands. It stands in the worker, too: all it needs is given. */
function makeTrainer({ Training }, { every, seconds, slice }, tell) {
  let [training, parts, rate, until, ids, timer, steps, heard] = [null, null, 0, 0, null, 0, 0, 0];
  let [sums, points, started, from] = [{ loss: 0, seen: 0, n: 0 }, [], 0, 0];

  const point = () => {
    const { loss, seen, n } = sums;
    points.push([training.done, n ? loss / n : null, n ? seen / n : null, training.right(parts)]);
    sums = { loss: 0, seen: 0, n: 0 };
  };
  const one = () => {
    const { loss, seen } = training.step(parts, rate);
    sums = { loss: sums.loss + loss, seen: sums.seen + seen, n: sums.n + 1 };
  };
  const report = () => {
    const right = points.length ? points.at(-1)[3] : training.right(parts);
    tell({ heard, done: training.done, points, right, ...training.ask(ids, parts), running: training.done < until });
    points = [];
  };
  const work = () => {
    const end = performance.now() + slice;
    const paced = () => training.done - from < ((performance.now() - started) / 1000) * (steps / seconds);
    while (training.done < until && performance.now() < end && paced()) {
      one();
      if (training.done % every === 0) point();
    }
    report();
    timer = training.done < until ? setTimeout(work, 8) : 0;
  };
  const go = (to) => {
    [until, started, from] = [to, performance.now(), training.done];
    clearTimeout(timer);
    work();
  };
  return (message) => {
    heard = message.number;
    if (message.kind === "make") {
      training = new Training(message.task, message.seed);
      [{ steps, ids }, points] = [message, []];
      for (const [step, changed, speed] of message.changes) {
        while (training.done < Math.min(step, message.done)) one();
        [parts, rate] = [changed, speed];
      }
      while (training.done < message.done) one();
      sums = { loss: 0, seen: 0, n: 0 };
      if (!message.done) point();
    } else if (message.kind === "parts") {
      [parts, rate] = [message.parts, message.rate];
    } else if (message.kind === "ids") {
      ids = message.ids;
    } else if (message.kind === "go") {
      go(message.until);
      return;
    } else if (message.kind === "pause") {
      clearTimeout(timer);
      until = training.done;
    }
    if (training.done >= until) {
      points = message.kind === "make" ? points : [];
      report();
    }
  };
}

/** A trainer in a worker, or here where none can be had; `send(message)` and `close()`. */
function hireTrainer(tell) {
  const options = { every: EVERY, seconds: SECONDS, slice: 24 };
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

// ------------------------------------------------------------------ pictures

/** A sequence below, what the model says of it above, and what is right on top; between them each layer's attention. */
function drawLooks({ now, ids, task, name, waits }, width, height) {
  const { vocabulary, right } = tasks[task];
  const targets = right(ids);
  const gutter = width < 260 ? 0 : 72; // for the names of the lines, where there is room
  const lift = name ? 20 : 0;
  const said = 12 + lift + (gutter && 24); // below what is right
  const [top, floor] = [said + 10, height - 26];
  const tiers = now.weights || [];
  const gap = (width - gutter - 6) / ids.length;
  const x = (place) => gutter + (place + 0.5) * gap;
  const y = (tier) => floor - (tier * (floor - top)) / Math.max(tiers.length, 1);
  const thickest = Math.min(10, gap / 5);
  const names = [
    ["right", 12 + lift],
    ["it says", said],
    ["looks at", (top + floor) / 2 + 4],
    ["it reads", floor + 20],
  ];
  return [
    name && ["name", "text", { class: "faint", x: 0, y: 12, text: name }],
    ...names.map(([text, down], i) => gutter && [`names${i}`, "text", { class: "faint", x: 0, y: down, text }]),
    waits && [
      "waits",
      "text",
      {
        class: "faint",
        x: x((ids.length - 1) / 2),
        y: (top + floor) / 2 + 4,
        "text-anchor": "middle",
        text: gutter ? "It has learned nothing yet." : "nothing yet",
      },
    ],
    ...tiers.flatMap((rows, tier) =>
      rows.flatMap((row, i) =>
        row.map((weight, j) =>
          weight < 0.02 || (tier === tiers.length - 1 && targets[i] < 0) // where nothing is asked
            ? null
            : [
                `look${tier}-${i}-${j}`,
                "path",
                {
                  class: "look",
                  d: `M${x(j).toFixed(1)} ${y(tier)}L${x(i).toFixed(1)} ${y(tier + 1)}`,
                  "stroke-width": thickest * weight,
                  "stroke-opacity": 0.15 + 0.85 * weight,
                },
              ],
        ),
      ),
    ),
    ...tiers
      .slice(1)
      .flatMap((_, tier) =>
        ids.map((__, i) => [`node${tier}-${i}`, "circle", { class: "node", cx: x(i), cy: y(tier + 1), r: 3 }]),
      ),
    ...ids.map((id, i) => [`read${i}`, "text", { class: "token", x: x(i), y: floor + 20, text: vocabulary[id] }]),
    ...ids.flatMap((_, i) => {
      if (targets[i] < 0) return [];
      const token = now.says?.[i];
      const kind = token === undefined ? "" : token === targets[i] ? "right" : "wrong";
      const text = token === undefined ? "?" : vocabulary[token];
      return [
        gutter && ["asked" + i, "text", { class: "asked faint", x: x(i), y: 12 + lift, text: vocabulary[targets[i]] }],
        [`said${i}`, "text", { class: `token ${kind}`, x: x(i), y: said, text }],
      ];
    }),
  ];
}

/** Over the steps: the loss, the share right in training and on new sequences; what simple answers get. */
function drawPlot({ run, beside, before, most, marks, recorded, fallen, running }, width, height) {
  const { steps, loss, seen, right, done } = run;
  const [left, end, top, floor] = [4, width - 44, 42, height - 22];
  const x = (step) => left + (step / most) * (end - left);
  const y = (share) => floor - share * (floor - top);
  const path = (shares, at = steps) => {
    const known = shares.map((share, i) => [at[i], share]).filter(([, share]) => share !== null);
    return known.length > 1
      ? `M${known.map(([step, share]) => `${x(step).toFixed(1)} ${y(Math.min(share, 1)).toFixed(1)}`).join("L")}`
      : "";
  };
  const first = Math.max(...loss.filter((one) => one !== null), 0.001);
  const lines = [
    before && ["before", path(before.right, before.steps), "the run before"],
    beside && ["usual", path(beside.right, beside.steps), "all parts"],
    [
      "loss",
      path(loss.map((one) => one && one / first)),
      `loss${loss.length > 1 ? ` ${formatNumber(loss.at(-1), 2)}` : ""}`,
    ],
    ["seen", path(seen), "in training"],
    ["new", path(right), "right on new"],
  ].filter(Boolean);
  const columns = [0, width < 400 ? 0.38 : 0.3, width < 400 ? 0.7 : 0.6, 0];
  const order = { new: 0, seen: 1, loss: 2, usual: 3, before: 3 };
  return [
    ["floor", "path", { class: "axis", d: `M${left} ${floor}H${end}M${left} ${y(1)}H${end}` }],
    ["hundred", "text", { class: "faint", x: end, y: y(1) - 4, "text-anchor": "end", text: "100\u00a0%" }],
    ["start", "text", { class: "faint", x: left, y: floor + 17, text: "step 0" }],
    ["most", "text", { class: "faint", x: end - 14, y: floor + 17, "text-anchor": "end", text: most }],
    ...marks.map(({ share }, i) => [`mark${i}`, "path", { class: "mark", d: `M${left} ${y(share)}H${end}` }]),
    ...lines.map(([name, d]) => [`line${name}`, "path", { class: `line ${name}`, d }]),
    ...lines.flatMap(([name, , words]) => {
      const at = order[name];
      const across = left + columns[at] * (width - left);
      const down = at > 2 ? 28 : 12;
      return [
        [`key${name}`, "path", { class: `line ${name}`, d: `M${across} ${down - 4}h16` }],
        [`words${name}`, "text", { x: across + 21, y: down, text: words }],
      ];
    }),
    // Words over the lines, each with a rim of the page's colour.
    ...marks.map(({ share, text }, i) => [
      `simple${i}`,
      "text",
      { class: "halo", x: end - 8, y: y(share) + (share > 0.8 ? 13 : -4), "text-anchor": "end", text },
    ]),
    ...recorded.map((share, i) => [
      `recorded${i}`,
      "circle",
      { class: "recorded", cx: end + 15 + 6 * i, cy: y(share), r: 4, "data-value": share.toFixed(9) },
    ]),
    recorded.length && [
      "recordedname",
      "text",
      { class: "faint", x: width, y: floor + 17, "text-anchor": "end", text: "5\u00a0seeds" },
    ],
    fallen !== null && [
      "fall",
      "path",
      { class: "fall", d: arrow(end, y(right.at(-1)), end, y(fallen)), "data-value": fallen.toFixed(9) },
    ],
    done &&
      right.length && [
        "at",
        "circle",
        {
          class: "at",
          fill: "currentColor",
          cx: x(Math.min(running ? steps.at(-1) : done, most)),
          cy: y(right.at(-1)),
          r: 4.5,
        },
      ],
    running &&
      right.length && [
        "share",
        "text",
        {
          class: "halo right",
          x: Math.max(x(Math.min(done, most)) - 8, left + 34),
          y: y(right.at(-1)) + (right.at(-1) > 0.5 ? 16 : -10),
          "text-anchor": "end",
          text: percent(right.at(-1)),
        },
      ],
  ];
}

// ------------------------------------------------------------------ the figure

function render({ model, el }) {
  const get = (name) => model.get(name);
  const names = [...SETTINGS, "run", "now", "history"];
  const initial = Object.fromEntries(names.map((name) => [name, get(name)]));
  const partsOf = () => Object.fromEntries(PARTS.map((name) => [name, get(name)]));
  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  const stepsOf = () => get("steps") || tasks[get("task")].steps;
  const idsOf = () => {
    const task = get("task");
    return understand(task, get("text")).ids || understand(task, tasks[task].text).ids;
  };
  let live = null; // `{ run, now, trainers }` while this view has a model

  // ---- training

  const isBusy = () => !!live && live.trainers.some(({ busy }) => busy);
  const commit = () => {
    if (!live || isBusy()) return;
    const [run, now] = [structuredClone(live.run), structuredClone(live.now)];
    const history = [...get("history").filter(({ id }) => id !== run.id), run].slice(-MOST_RUNS);
    setTraits(model, { run, now, history });
  };
  const hear = (mine, place) => (told) => {
    if (live !== mine) return;
    const trainer = mine.trainers[place];
    const series = place ? mine.run.beside : mine.run;
    series.done = told.done;
    for (const [step, ...shares] of told.points) {
      series.steps.push(step);
      ["loss", "seen", "right"].forEach((name, i) => series[name].push(shares[i] === null ? null : round(shares[i])));
    }
    if (series.steps.length > MOST_POINTS)
      for (const name of ["steps", "loss", "seen", "right"])
        series[name] = series[name].filter((_, i, { length }) => i % 2 === 0 || i === length - 1);
    const now = { right: round(told.right), says: told.says, weights: told.weights };
    if (place) mine.now.beside = now;
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
  /** Make the models of a run, trained as far as they were. */
  const hire = (run, now) => {
    leave();
    const mine = { run: structuredClone(run), now: { ...now }, trainers: [] };
    live = mine;
    [run, run.beside].filter(Boolean).forEach((series, place) => {
      const trainer = { sent: 0, busy: true, parts: series.changes.at(-1).slice(1), ids: idsOf() };
      mine.trainers.push(trainer);
      Object.assign(trainer, hireTrainer(hear(mine, place)));
      const { changes, done } = series;
      send(trainer, {
        kind: "make",
        task: run.task,
        seed: run.seed,
        changes,
        done,
        steps: tasks[run.task].steps,
        ids: trainer.ids,
      });
    });
  };
  /** The models of the run that is shown; with none of its own, a view trains them again. */
  const ensure = () => {
    if (!live && get("run").steps) hire(get("run"), get("now"));
    return live;
  };
  const go = (until) => {
    for (const trainer of ensure().trainers) send(trainer, { kind: "go", until });
    draw(); // at once: what is pressed next, and who listens, finds it busy
  };
  const series = (parts, rate) => ({ changes: [[0, parts, rate]], done: 0, steps: [], loss: [], seen: [], right: [] });
  const start = (guess, seed = get("seed")) => {
    const [task, parts, rate] = [get("task"), partsOf(), get("rate")];
    const all = { ...parts, positions: true, causal: task === "next", skips: true, norm: true };
    const run = { id: 1 + Math.max(0, ...get("history").map(({ id }) => id)), task, seed, guess, ...parts, rate };
    Object.assign(run, series(parts, rate), { beside: get("beside") ? series(all, rate) : null });
    setTraits(model, { seed, run: {}, now: {} });
    hire(run, {});
    go(stepsOf());
    pausing.focus();
  };
  /** Hand the running model what the traits say, where they have changed. */
  const follow = () => {
    if (!live) return;
    const [own] = live.trainers;
    const [parts, rate, ids] = [partsOf(), get("rate"), idsOf()];
    if (!same(own.parts, [parts, rate])) {
      own.parts = [parts, rate];
      const { changes, done } = live.run;
      live.run.changes = [...changes.filter(([step], i) => !i || step < done), [done, parts, rate]];
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

  // ---- what the reader works with

  const card = openCard(el, {
    label: "Train it in the page",
    question: titleOf(get),
    invite: "Take a part out, if you like. Your guess starts the training.",
    onReset: () => {
      leave();
      setTraits(model, initial);
    },
    css: CSS,
  });
  const task = select({
    label: "It learns to",
    options: Object.keys(tasks).map((name) => [name, WORDS[name][0]]),
    onChange: (name) => {
      leave();
      setTraits(model, { task: name, causal: name === "next", text: tasks[name].text, run: {}, now: {} });
    },
  });
  const id = uniqueId("tt-own");
  const own = make("input", {
    id,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    maxlength: 40,
    oninput: () => change({ text: own.value }),
  });
  const ownLabel = make("label", { for: id });
  const such = make("p", { class: "such" });
  const heightOf = () => (card.root.clientWidth < 480 ? 176 : 250);
  const looks = stage({
    label: "The sequence below, the answers above, and attention as lines between them",
    height: heightOf,
    role: "img",
    draw: (state, width, height) => drawLooks(state, width, height),
  });
  const others = stage({
    label: "The same for the model with all parts",
    height: heightOf,
    role: "img",
    draw: (state, width, height) => (state.now ? drawLooks(state, width, height) : []),
  });
  const plot = stage({
    label: "Loss and share right, step by step",
    height: () => (card.root.clientWidth < 480 ? 156 : 250),
    role: "img",
    draw: (state, width, height) => drawPlot(state, width, height),
  });
  const switches = [
    ["positions", "positions"],
    ["causal", "causal"],
    ["skips", "skips"],
    ["norm", "norms"],
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
  const beside = toggle({
    label: "beside it, one with all parts",
    onChange: (value) => {
      leave();
      setTraits(model, { beside: value, run: {}, now: {} });
    },
  });
  const asked = make("span", {});
  const will = make(
    "div",
    { class: "will", role: "group" },
    asked,
    button({ label: "Yes", onClick: () => start("yes") }),
    button({ label: "No", onClick: () => start("no") }),
  );
  const pausing = button({
    label: "Pause",
    onClick: () => {
      if (!isBusy()) go(get("run").done + stepsOf());
      else for (const trainer of live.trainers) send(trainer, { kind: "pause" });
    },
  });
  const step = button({ label: "One step", onClick: () => go(get("run").done + 1) });
  const again = button({ label: "Another seed", onClick: () => start(get("run").guess, get("seed") + 1) });
  card.stage.append(
    make("div", { class: "task" }, task.node, make("div", { class: "own" }, ownLabel, own)),
    such,
    make("div", { class: "pictures" }, looks.node, others.node, plot.node),
    make(
      "div",
      { class: "parts" },
      make("b", { text: "It has" }),
      ...switches.map(([, { node }]) => node),
      beside.node,
    ),
  );
  card.controls.append(will, pausing, step, again);
  card.more(
    "More parts, and what the words mean",
    make("div", { class: "parts" }, ...few.map(([, { node }]) => node)),
    ...NOTES.map((text) => make("p", { class: "tt-note", text })),
    make("p", { class: "tt-note", text: get("note") }),
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
  let told = "";
  const shown = () => live || { run: get("run"), now: get("now") };
  let drawn = { busy: false, points: -1 };
  const draw = () => {
    const name = get("task");
    const { run, now } = shown();
    const busy = isBusy();
    card.root.toggleAttribute("aria-busy", busy);
    if (busy) card.root.setAttribute("aria-busy", "true");
    task.set(name);
    card.root.querySelector(".tt-question").textContent = titleOf(get);
    ownLabel.textContent = understand(name, get("text")).problem || `Your own ${WORDS[name][1]}`;
    if (own.value !== get("text")) own.value = get("text");
    for (const [part, control] of [...switches, ...few]) control.set(get(part));
    beside.set(get("beside"));
    const hasRun = !!run.steps;
    const changed = hasRun ? changedOf(run, now) : "";
    const [one, other] = examplesOf(name);
    refill(such, `Examples: ${one}`, make("span", { text: `, ${other}` }));
    looks.node.firstChild.setAttribute("aria-label", spokenLooks(name, idsOf(), now));
    asked.textContent = name === "next" ? "Will it beat the upper line?" : "Will nine in ten be right?";
    // The same run again would come out the same: another guess is asked for when something else is tried.
    will.hidden = busy || (hasRun && !changed);
    pausing.hidden = !hasRun && !busy;
    pausing.textContent = busy ? "Pause" : "Go on";
    step.hidden = again.hidden = busy || !hasRun || !!changed;
    others.node.hidden = !get("beside");
    beside.node.hidden = !get("beside") && !isLess(get);
    drawn.busy = false; // so that the plot is drawn, too
    drawPictures();
    const [verdict, words] = hasRun ? findingOf({ run, now, busy, changed }) : ["", ""];
    if (verdict + words !== told) {
      told = verdict + words;
      card.find(verdict && make("b", { text: `${verdict} ` }), words);
    }
  };

  /** What changes while it learns; a plot only when it has another point. */
  const drawPictures = () => {
    const [name, busy, ids, steps] = [get("task"), isBusy(), idsOf(), stepsOf()];
    const { run, now } = shown();
    const hasRun = !!run.steps;
    looks.show({ now, ids, task: name, name: get("beside") ? "with your parts" : "", waits: !now.says && !busy }, 0);
    others.show(get("beside") ? { now: now.beside || {}, ids, task: name, name: "with all parts" } : {}, 0);
    const points = (run.steps?.length || 0) + (run.beside?.steps.length || 0);
    const isDrawn = busy && drawn.busy && drawn.points === points;
    drawn = { busy, points };
    if (isDrawn) return; // a slow phone has enough to do
    const recorded = hasRun && !busy && run.done >= steps ? recordedOf(run) : [];
    const [simplest, chance] = [get("simplest")[name], 1 / tasks[name].vocabulary.length];
    const isChance = simplest < 2 * chance; // then one line stands for both
    const marks = [
      { share: simplest, text: `${WORDS[name][3]}${isChance ? ", or chance" : ""}` },
      ...(isChance ? [] : [{ share: chance, text: "chance" }]),
      ...(name === "next" ? [] : [{ share: LEARNED, text: "nine in ten" }]),
    ];
    const fallen = !busy && hasRun && changedOf(run, now) && run.right.length ? now.right : null;
    const before =
      hasRun && !run.beside ? get("history").findLast((one) => one.id < run.id && one.task === name) : null;
    const most = Math.max(steps, run.done || 0);
    plot.show(
      { run: hasRun ? run : series(null, 0), beside: run.beside, before, most, marks, recorded, fallen, running: busy },
      0,
    );
  };

  /** What five recorded trainings with a run's parts got right. */
  const recordedOf = ({ task: name, changes, done }) => {
    const isPlain = changes.every(([at, parts, rate]) => at >= done || same([parts, rate], changes[0].slice(1)));
    const [, { positions, causal, heads, skips, norm, layers }, rate] = changes[0];
    const key = `${name} ${+positions}${+causal}${heads}${+skips}${+norm} ${layers} ${rate}`;
    return (isPlain && !get("steps") && get("recorded").find(([setting]) => setting === key)?.[1]) || [];
  };
  /** How the model that stands here differs from the one that was trained, in words. */
  const changedOf = (run, now) => {
    const [, parts] = run.changes.findLast(([at]) => at < run.done || !at);
    return changedWords(parts, ...(now.parts || [parts]));
  };
  /** The outcome in a few words, and what there is to say of it. */
  const findingOf = ({ run, now, busy, changed }) => {
    if (busy) return ["", "It is learning. Take a part out now, and the running model loses it."];
    const share = percent(run.right.at(-1));
    if (changed)
      return [
        `The trained model, ${changed}:`,
        `now ${percent(now.right)} right, before ${share}. Would it learn so from the start? Guess again.`,
      ];
    const [steps, name] = [stepsOf(), run.task];
    if (run.done < steps) return ["", `It stands at step ${run.done}, with ${share} right.`];
    const right = run.right[run.steps.indexOf(steps)] ?? run.right.at(-1);
    const isLearned = right > (name === "next" ? get("simplest").next : LEARNED);
    const guess = (run.guess === "yes") === isLearned ? "as you guessed" : "and you guessed otherwise";
    const later = run.done > steps ? ` (after ${run.done}: ${share})` : "";
    const verdict =
      name === "next"
        ? ["It stays below the line", "It rises above the line"][+isLearned]
        : ["It fails", "It learns"][+isLearned];
    const counted = `After ${steps} steps seed ${run.seed} has ${percent(right)} of the new ${WORDS[name][2]} right${later}.`;
    const words = [counted, recordedWords(run), whyOf(run, right, isLearned)].filter(Boolean);
    return [`${verdict}, ${guess}.`, words.join(" ")];
  };
  /** What stands in the numbers or follows from the parts, and what one might try next. */
  const whyOf = ({ task: name, positions, causal, skips, norm, layers, seen }, right, isLearned) => {
    const known = seen.at(-1);
    if (name === "next" && !causal && right > LEARNED)
      return "But it reads the answer: the next letter stands in its input.";
    if (known - right > 0.3) return `Of those in training it has ${percent(known)} right: it knows them by heart.`;
    if (!positions && !isLearned && !causal && (name === "reverse" || name === "sort"))
      return `Without positions it sees which ${name === "sort" ? "digits" : "letters"} there are, and not where.`;
    if (!positions && !isLearned && name === "who" && (!causal || layers === 1))
      return "Without positions “dog bites man” and “man bites dog” are the same to it.";
    if (causal && positions && name === "reverse")
      return "Reading left only, the first four places never see the letter that they need.";
    if (causal && positions && name === "sort")
      return "Reading left only, it must place a digit before it has seen them all.";
    if (!isLearned && layers === 2 && !skips && !norm && positions && !causal) return "Now put one of the two back.";
    if (isLearned && positions && !causal && skips && norm && name !== "sum") return "Now take the positions out.";
    return "";
  };
  const recordedWords = (run) => {
    if (!recordedOf(run).length)
      return run.changes.length > 1
        ? "No recorded run changed its parts on the way."
        : "No runs like this are recorded: try another seed.";
    const [least, most] = [Math.min, Math.max].map((end) => percent(end(...recordedOf(run))));
    return `${RECORDED}: ${least === most ? `${least} each` : `${least.replace("\u00a0%", "")} to ${most}`}.`;
  };

  const onChange = () => {
    follow();
    draw();
  };
  const stops = [onTraits(model, names, onChange), looks.close, others.close, plot.close, leave, card.close];
  stops.push(() => cancelAnimationFrame(frame));
  card.caption.remove(); // the pictures name their lines themselves
  draw();
  return () => stops.forEach((end) => end());
}

/** The question that the switches ask. */
function titleOf(get) {
  const missing = [
    ["positions", "positions"],
    ["skips", "skips"],
    ["norm", "norms"],
  ].filter(([name]) => !get(name));
  const usual = get("task") === "next";
  const reads = get("causal") === usual ? "" : usual ? ", reading all at once" : ", reading only what stands left";
  return `Will it learn this${missing.length ? ` without ${missing.map(([, word]) => word).join(" and ")}` : ""}${reads}?`;
}

/** Whether it lacks a part, or reads otherwise than its task needs. */
function isLess(get) {
  return !get("positions") || !get("skips") || !get("norm") || get("causal") !== (get("task") === "next");
}

/** Two sequences that are trained on, each with what is right. */
function examplesOf(name) {
  const { draw, isKept, right, vocabulary } = tasks[name];
  const random = new engine.Random(3);
  const found = [];
  while (found.length < 2) {
    const ids = draw(random);
    if (isKept(ids)) continue;
    const write = (all) => all.map((id) => vocabulary[id]).join(WORDS[name][4]);
    found.push(`${write(ids)}\u00a0→\u00a0${write(right(ids).filter((one) => one >= 0))}`);
  }
  return found;
}

/** The picture of a sequence for a screen reader. */
function spokenLooks(task, ids, { says }) {
  const { vocabulary, right } = tasks[task];
  const targets = right(ids);
  const words = (all) => all.map((id) => vocabulary[id]).join(" ");
  const said = says?.filter((_, i) => targets[i] >= 0);
  return `It reads ${words(ids)}, and says ${said ? words(said) : "nothing yet"}; right is ${words(targets.filter((one) => one >= 0))}`;
}

/** How a model differs from the one that was trained, in words. */
function changedWords(parts, nowParts) {
  const words = { positions: "positions", skips: "skips", norm: "norms" };
  const found = Object.keys(words)
    .filter((name) => parts[name] !== nowParts[name])
    .map((name) => `${nowParts[name] ? "with" : "without"} ${words[name]}`);
  if (parts.causal !== nowParts.causal) found.push(nowParts.causal ? "reading left only" : "reading all");
  for (const name of ["heads", "layers"])
    if (parts[name] !== nowParts[name])
      found.push(`with ${nowParts[name]} ${nowParts[name] === 1 ? name.slice(0, -1) : name}`);
  return found.join(", ");
}

export default { render };
