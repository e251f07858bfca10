// What the playground says of a training. All of it follows from the training's history: the parts that it had
// from step to step, what it had right there, and what stands now. Nothing here draws or remembers.

/** Of each task: what it learns, what the reader may write and what is counted, the simplest answer, what joins tokens. */
export const WORDS = {
  reverse: ["write eight letters backwards", "letters", "letters", "always the|commonest letter", ""],
  sort: ["sort eight digits", "digits", "digits", "always the|commonest digit", ""],
  who: ["say who did it, and to whom", "sentence", "answers", "always the|first word", " "],
  sum: ["add two digits", "sum", "sums", "always 9", ""],
  next: ["guess the next letter of a word", "word", "letters", "from the|letter before", ""],
};
export const LEARNED = 0.9;
const MISSING = { positions: "positions", skips: "skips", norm: "norms" };
const RATES = { 0.0003: "small", 0.003: "usual", 0.03: "large" };

/** A share in percent; what is not whole is never called 100, and what is not nothing never 0. */
export const percent = (share) =>
  `${share === 0 || share === 1 ? 100 * share : Math.min(Math.max(Math.round(100 * share), 1), 99)}\u00a0%`;
/** Whether a share counts as learned; the next letter has to beat what the letter before tells. */
const isGood = (task, share, simplest) =>
  task === "next" ? Math.round(100 * share) > Math.round(100 * simplest) : share > LEARNED;
export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const capital = (words) => words[0].toUpperCase() + words.slice(1);
const missingOf = (parts) => Object.keys(MISSING).filter((name) => !parts[name]);
const namesOf = (names) => names.map((name) => MISSING[name]).join(" and ");
const looks = (causal) => (causal ? "looking left only" : "looking both ways");

/** The parts that a training had, as `[from, parts, rate]`: only those with which a step was made. */
export function phasesOf({ changes, done }) {
  const made = changes.filter(([from], i) => from < Math.min(changes[i + 1]?.[0] ?? done, done));
  const kept = made.length ? made : changes.slice(-1);
  return kept.filter(([, ...now], i) => !i || !same(now, kept[i - 1].slice(1)));
}

/** A point of a training: at a step with the parts that led to it, or, without one there, the last before it. */
export function pointAt({ steps, right, seen, loss }, step) {
  const exact = steps.indexOf(step);
  const i = exact < 0 ? steps.findLastIndex((one) => one < step) : exact;
  return { step: steps[i], right: right[i], seen: seen[i], loss: loss[i] };
}

/** A model's parts in words: "with all parts", "without positions and skips, looking left only". */
export function partsWords(parts, task) {
  const missing = missingOf(parts);
  const words = missing.length ? [`without ${namesOf(missing)}`] : [];
  if (parts.causal !== (task === "next")) words.push(looks(parts.causal));
  return words.join(", ") || "with all parts";
}

/** How a model's parts differ from others, in words: "without positions". */
export function changedWords(parts, now) {
  const differ = Object.keys(MISSING).filter((name) => parts[name] !== now[name]);
  const words = [true, false]
    .map((has) => [has, differ.filter((name) => now[name] === has)])
    .filter(([, names]) => names.length)
    .map(([has, names]) => `${has ? "with" : "without"} ${namesOf(names)}`);
  if (parts.causal !== now.causal) words.push(looks(now.causal));
  for (const name of ["heads", "layers"])
    if (parts[name] !== now[name]) words.push(`with ${now[name]} ${now[name] === 1 ? name.slice(0, -1) : name}`);
  return words.join(", ");
}

/** What changed at the start of a phase: "without positions". */
export function eventWords(phases, i) {
  const [[, parts, rate], [, now, speed]] = [phases[i - 1], phases[i]];
  return [changedWords(parts, now), rate !== speed && `at a ${RATES[speed]} learning rate`].filter(Boolean).join(", ");
}

/** The question that the switches ask, of a training that is to come or of one that was changed on the way. */
export function titleWords(task, parts, isGone) {
  const missing = missingOf(parts);
  const words = [
    missing.length ? ` without ${namesOf(missing)}` : "",
    parts.causal === (task === "next") ? "" : `, ${looks(parts.causal)}`,
  ].join("");
  if (isGone) return `What now${words.startsWith(",") ? "" : ","}${words || " with all parts"}?`;
  return words ? `Will it learn${words}?` : "Will it learn this?";
}

/** What the reader said: of another random start, whether it ends the same. */
export const saidOf = ({ guess, twin = null }) =>
  twin === null ? guess : guess && ((guess === "yes") === twin ? "yes" : "no");

/** What the reader guesses, or has guessed: with `twin`, an earlier training's outcome, whether this one ends the same. */
export function guessWords({ task, seed, simplest, guess, twin = null }) {
  const said = guess ? ` You said ${saidOf({ guess, twin })}.` : "";
  if (twin !== null)
    return guess ? `Seed ${seed}: the same end?${said}` : `Another start (seed ${seed}). Will it end the same?`;
  if (task === "next")
    return `Will it beat ${guess ? "" : "a guess from "}the letter before alone (${percent(simplest)})?${said}`;
  return `${guess ? "Nine" : "Will it get nine"} ${task === "sum" ? "new sums" : WORDS[task][2]} in ten right?${said}`;
}

/** Whether a training had learned after `goal` steps, with the same parts up to there; null where that is not known. */
export function outcomeOf(run, goal, simplest) {
  const isWhole = run.done >= goal && phasesOf(run).every(([from], i) => !i || from >= goal);
  return isWhole ? isGood(run.task, pointAt(run, goal).right, simplest) : null;
}

/** How many guesses were right, from two on; `outcomes` are pairs of a guess and whether it was learned. */
export function scoreWords(outcomes) {
  const told = outcomes.filter(([guess, isLearned]) => guess && isLearned !== null);
  const right = told.filter(([guess, isLearned]) => (guess === "yes") === isLearned).length;
  return told.length > 1 ? `${right} of ${told.length} guesses right.` : "";
}

/** Whether a sequence that the reader wrote is trained on. */
export function standingWords(task, written, isKept, kept) {
  if (isKept === null) return "";
  if (isKept === undefined) return `${written} is none of its words.`;
  const away = task === "sum" ? `one of the ${kept} sums kept back` : "kept back from the training";
  return `${written} is ${isKept ? away : "in the training"}.`;
}

/** What the parts do, or what it means that some are missing, before anything is learned; a phone has no room for the second of three. */
export function openingWords(task, parts) {
  const words = {
    positions: "no place knows where it stands",
    skips: "what a layer finds takes the place of what came in",
    norm: "a layer reads its vectors however large they are",
  };
  const found = missingOf(parts).map((name) => `It has no ${MISSING[name]}: ${words[name]}.`);
  if (parts.causal !== (task === "next"))
    found.push(
      parts.causal
        ? "It looks left only: a place sees itself and what stands before it."
        : "It looks both ways: a place sees what comes after it, too.",
    );
  const last = "Your guess starts the training.";
  if (found.length) return [`${found.join(" ")} ${last}`];
  return [
    "It has learned nothing yet. ",
    "Positions tell a place where it stands, skips keep what came in, norms keep it to one size. ",
    `Take a part out, if you like. ${last}`,
  ];
}

/**
 * The outcome in a few words, and what there is to say of it. `run` is the training, `now` what its model has right as
 * it stands (`parts`: its parts and rate, `right`), `goal` the steps of a training, `simplest` the share that the
 * simplest answer gets right, `recorded` what other starts got right after `goal` steps with the same parts, `before`
 * an earlier training with the same parts, `kept` how many sequences are kept back.
 */
export function verdictOf({ run, now, goal, simplest, recorded = [], before = null, kept = 0 }) {
  const { task, done, beside } = run;
  const phases = phasesOf(run);
  const [[, parts], [, last, rate]] = [phases[0], phases.at(-1)];
  const end = pointAt(run, done);
  const isFine = (share) => isGood(task, share, simplest);
  const ofNew = (share) => {
    if (task !== "sum") return `${percent(share)} of the new ${WORDS[task][2]}`;
    return share === 0 ? `none of the ${kept} sums kept back` : `${percent(share)} of the sums kept back`;
  };
  const besides =
    beside?.right.length &&
    `Beside it, with all parts: ${percent(beside.right.at(-1))}${beside.done === done ? "" : ` at step ${beside.done}`}.`;
  const says = (verdict, ...words) => [verdict, words.filter(Boolean).join(" ")];
  const events = phases.slice(1).map((one, i) => `${eventWords(phases, i + 1)} from step ${one[0]}`);
  const unlike = "No recorded run changed its parts on the way.";

  const changed = now.parts ? changedWords(last, now.parts[0]) : "";
  if (changed) {
    const [is, was] = [percent(now.right), percent(end.right)];
    const added = missingOf(last).filter((name) => now.parts[0][name] && phases.every(([, had]) => !had[name]));
    const untrained = changed === `with ${namesOf(added)}` && now.right <= end.right;
    const moves = is === was ? "stays at" : now.right < end.right ? "falls to" : "rises to";
    return says(
      untrained
        ? `${capital(namesOf(added))} that it never trained with do not help it at once: ${was} before, ${is} now.`
        : `${capital(changed)} it ${moves} ${is}.`,
      `At step ${done}, ${partsWords(last, task)}, it had ${was} of the new ${WORDS[task][2]} right.`,
      "Guess, or let this model go on.",
    );
  }
  if (done < goal) {
    const loss = end.loss === null || end.loss === undefined ? "" : `, loss ${end.loss.toFixed(2)}`;
    const changes = events.length > 0 && `${capital(events.join(", "))}.`;
    const isOpen = !run.guess && !changes;
    return says(
      "",
      `${isOpen ? "At" : "Paused at"} step ${done} of ${goal}: ${ofNew(end.right)} right${loss}.`,
      changes,
      besides,
      isOpen ? "Your guess lets it go on." : "Go on to finish.",
    );
  }
  if (phases.length === 2 && phases[1][0] >= goal) {
    const [from] = phases[1];
    const was = pointAt(run, from);
    const other = eventWords(phases, 1);
    const key = 2 * isFine(was.right) + isFine(end.right);
    const has = ["it fails still", "it has learned", "it has lost it", "it still can"][key];
    return says(
      `${capital(partsWords(parts, task))} it had ${key > 1 ? "learned" : "failed"}; ${other} ${has}.`,
      `At step ${from}, ${partsWords(parts, task)}: ${percent(was.right)}.`,
      `At step ${done}, ${other} since ${from}: ${percent(end.right)}.`,
      besides,
      unlike,
    );
  }
  if (phases.length > 1) {
    return says(
      `In the end, ${partsWords(last, task)}, it ${isFine(end.right) ? "can" : "cannot"} do it.`,
      `It has ${ofNew(end.right)} right at step ${done}. ${capital(events.join(", "))}.`,
      besides,
      unlike,
    );
  }

  // One training with the same parts from the start.
  const at = pointAt(run, goal);
  const [isLearned, isNow] = [isFine(at.right), isFine(end.right)];
  const [isLater, hasTurned] = [done > goal, isLearned !== isNow];
  const guessed = run.guess
    ? (run.guess === "yes") === isLearned
      ? ", as you guessed"
      : ", and you guessed otherwise"
    : "";
  const verb = (task === "next" ? ["It does not beat it", "It beats it"] : ["It fails", "It learns"])[+isLearned];
  const against = task === "next" ? `: ${percent(at.right)} against ${percent(simplest)}` : "";
  const earlier = before && before.seed !== run.seed ? isFine(pointAt(before, goal).right) : null;
  const counted = `After ${goal} steps it has ${ofNew(at.right)} right${isLater ? `, at step ${done} ${percent(end.right)}` : ""}.`;
  const [least, most] = [Math.min, Math.max].map((one) => percent(one(...recorded)));
  const range = least === most ? `${least} each` : `${least.replace("\u00a0%", "")} to ${most}`;
  const others = recorded.length
    ? `Five other random starts, recorded${isLater ? ` after ${goal} steps` : ""}: ${range}.`
    : "No runs like this are recorded: try another random start.";
  const rest = [besides, others, whyOf({ task, parts, rate, point: end, isNow, isLater, beside })];
  if (hasTurned) {
    const words = isNow ? `failed${guessed}; it needed more steps` : `had learned${guessed}; it has lost it since`;
    return says(
      `At ${goal} steps it ${words}.`,
      `${percent(at.right)} at step ${goal}, ${percent(end.right)} at step ${done}.`,
      ...rest,
    );
  }
  if (earlier === null) return says(`${verb}${guessed}${against}.`, counted, ...rest);
  if (earlier === isLearned)
    return says(`${verb} again from another random start (seed ${run.seed})${guessed}${against}.`, counted, ...rest);
  return says(
    `From this random start (seed ${run.seed}) ${verb.replace("It", "it")}${guessed}; from the one before it ${isLearned ? "did not" : "did"}${against}.`,
    counted,
    ...rest,
  );
}

/** What stands in the numbers of one step or follows from the parts, and what one might try next. */
function whyOf({ task, parts, rate, point: { right, seen }, isNow, isLater, beside }) {
  const { positions, causal, skips, norm, layers } = parts;
  if (task === "next" && !causal && right > LEARNED)
    return "But it reads the answer: the next letter stands in its input.";
  if (seen !== null && seen - right > 0.3) {
    const rule = task === "sum" ? ", and no rule that carries over to the 20" : "";
    return `Of those in training it has ${percent(seen)} right: it has those by heart${rule}.`;
  }
  if (!isNow && rate < 0.001 && !isLater) return "A small learning rate makes small steps: let it go on.";
  const blind = {
    reverse: "A place does not know which place it is, nor where the other letters stand.",
    sort: "Which digits there are is enough to sort; but no place knows which place it is, so two that read the same digit must write the same.",
    who: "Without positions “dog bites man” and “man bites dog” are the same to it.",
  }[task];
  if (!positions && !isNow && blind && (!causal || (task === "who" && layers === 1)))
    return beside ? blind : `${blind} Now tick “beside it, all parts”.`;
  const early = {
    reverse: "the first four places never see the letter that they need",
    sort: "it must place a digit before it has seen them all",
  }[task];
  if (causal && positions && !isNow && early) return `Looking left only, ${early}.`;
  if (causal !== (task === "next") || !positions) return "";
  if (!isNow && layers === 2 && !skips && !norm) return "Now put one of the two back.";
  if (!isNow || task === "sum") return "";
  if (skips && norm) return "Now take the positions out.";
  if (task !== "reverse") return "";
  if (layers === 1) return "One layer can do without. Give it two, and take skips and norms both out.";
  return skips || norm ? "Here one of the two is enough. Now take both out." : "";
}
