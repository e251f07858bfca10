// The causal mask in writing: it grows with every token and old rows stay, without a mask old rows
// change. And in training: all rows at once, each with what it has to say.
import { css, formatNumber, make, onTraits, openCard, refill, setTraits } from "./core.js";
import { button, choice, toggle } from "./controls.js";
import { matrix } from "./drawing.js";

const CSS = css`
  .views {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem;
  }
  .views table {
    --digits: 0.75rem;
    --cell: clamp(1.75rem, calc((50cqw - 8rem) / var(--columns)), 2.9rem) !important;
  }
  .views > :only-child {
    margin-inline: auto;
  }
  .views th[scope="row"] {
    min-width: 4.5rem; /* a sign will stand behind the name */
  }
  .views th:not(.corner) {
    font-size: 0.8rem;
  }
  .tt-matrix th.guess {
    background: color-mix(in srgb, currentColor 22%, var(--tt-page));
  }
  .tt-matrix th.changed {
    border-color: var(--tt-loss-line);
    border-style: dashed;
  }
  .tt-matrix th.kept {
    border-color: color-mix(in srgb, currentColor 55%, transparent);
  }
  @container (max-width: 27rem) {
    .views table {
      --cell: max(1.75rem, calc((100cqw - 8.2rem) / var(--columns))) !important;
    }
    .views td {
      height: 1.5rem;
    }
    .views :is(th, caption) {
      padding-block: 0;
    }
    .tt-finding {
      min-height: 5.8em;
    }
  }
  .later {
    visibility: hidden;
    position: relative;
  }
  .later::after {
    content: "";
    visibility: visible;
    position: absolute;
    inset: 0;
    border: 1px dashed color-mix(in srgb, currentColor 22%, transparent);
    border-radius: 4px;
  }
  .tt-matrix td.answer {
    background: color-mix(in srgb, var(--tt-loss) 45%, var(--tt-page));
  }
  /* The reader says first which old rows will change. */
  .tt-card:not([data-told]) :is(.verdict, .tt-found) {
    opacity: 0;
  }
  .tt-card:not([data-told]) .tt-invite {
    opacity: 1;
  }
  .tt-card:not([data-told]) .tt-matrix th {
    border-color: transparent;
  }
`;

/**
 * The weights among the first n tokens: a softmax over each row's keys, up to itself if the mask is
 * causal.
 */
export function weightsAmong(scores, length, causal) {
  return scores.slice(0, length).map((row, i) => {
    const powers = row.slice(0, length).map((score, j) => (causal && j > i ? -Infinity : score));
    const top = Math.max(...powers);
    const sum = powers.reduce((total, score) => total + Math.exp(score - top), 0);
    return powers.map((score) => Math.exp(score - top) / sum);
  });
}

/**
 * One of the two tables: “=” after a row that is what it was before the newest token, “≠” if it
 * changed.
 */
function drawTable(model, causal, length, ended, guesses, onGuess) {
  const [tokens, scores] = [model.get("tokens"), model.get("scores")];
  const [now, before] = [length, length - 1].map((count) => weightsAmong(scores, count, causal));
  const moved = now.map(
    (row, i) =>
      !ended && i < length - 1 && row.some((weight, j) => j < length - 1 && Math.abs(weight - before[i][j]) > 1e-9),
  );
  const old = (i) => ended || i < length - 1;
  const title = causal ? "With the causal mask" : "Without a mask";
  const grid = matrix({
    label: `${title}. Rows are queries, columns are keys.`,
    caption: title,
    corner: ["looks at →"],
    columns: tokens,
    rows: tokens,
    onSelect: (row, _, { type }) => type !== "focusin" && row >= 0 && row < length && onGuess(grid, causal, row),
  });
  const right = moved.filter((change, i) => i < length - 1 && change === guesses.has(`${causal}${i}`)).length;
  grid.fill((i, j) => {
    if (Math.max(i, j) >= length) return {};
    const hatch = causal && j > i;
    const weight = now[i][j];
    return {
      hatch,
      value: weight,
      level: weight,
      text: hatch ? "" : formatNumber(weight, 2),
      label: `${tokens[i]} to ${tokens[j]}: ${hatch ? "masked" : formatNumber(weight)}`,
    };
  });
  for (let i = 0; i < length; i += 1) {
    const name = grid.cellAt(i, -1);
    name.classList.add("tt-call");
    if (old(i)) {
      name.classList.add(moved[i] ? "changed" : "kept");
      name.firstChild.append(make("span", { class: "verdict", text: moved[i] ? " ≠" : " =" }));
    }
  }
  // Room for the words to come, so that nothing jumps: only its outline is seen.
  for (let i = -1; i < tokens.length; i += 1)
    for (let j = i < 0 ? 0 : -1; j < tokens.length; j += 1)
      if (Math.max(i, j) >= length) {
        grid.cellAt(i, j).classList.add("later");
        if (j < 0) grid.cellAt(i, j).parentNode.style.visibility = "hidden";
      }
  return { node: grid.node, right };
}

/** A training: rows are what has to be said, columns what is read; an answer that is read stands out. */
function drawTraining(model, onPick) {
  const [tokens, labels, shifted] = [model.get("tokens"), model.get("labels"), model.get("shifted")];
  const input = shifted ? tokens : labels;
  const grid = matrix({
    label: "Rows are what has to be said, columns what is read.",
    corner: ["says ↓", "reads →"],
    columns: input,
    rows: labels,
    onSelect: (row) => row >= 0 && onPick(row),
  });
  grid.fill((i, j) => ({
    hatch: j > i,
    text: j > i ? "" : "✓",
    level: 0.35,
    colour: "decoder",
    label: `${labels[i]} from ${input[j]}: ${j > i ? "masked" : "read"}`,
  }));
  if (!shifted) labels.forEach((_, i) => grid.cellAt(i, i).classList.add("answer"));
  grid.mark(model.get("position"), -1);
  return grid.node;
}

const ASKS = {
  writing: [
    "A new word: which old rows change?",
    "Tap the rows that will change, in both tables. Then press Generate.",
  ],
  training: ["Why is the decoder’s input shifted by one?", "Take the shift away: where does each answer stand then?"],
};

function render({ model, el }) {
  const initial = Object.fromEntries(["shown", "view", "shifted", "position"].map((name) => [name, model.get(name)]));
  const go = (values) => setTraits(model, values);
  const card = openCard(el, {
    label: "Causal mask",
    onReset: () => {
      ask();
      guesses.clear();
      go(initial);
      draw();
    },
    css: CSS,
  });
  const views = make("div", { class: "views" });
  const cut = () => model.get("total") > model.get("tokens").length;
  const most = () => model.get("tokens").length + (cut() ? 0 : 1); // the end mark counts
  const guesses = new Set(); // rows that the reader has marked
  const ask = () => {
    // Nothing is told until the word has come.
    delete card.root.dataset.told;
  };
  const onGuess = (grid, causal, row) => {
    const name = `${causal}${row}`;
    const marked = !guesses.delete(name) && !!guesses.add(name);
    grid.cellAt(row, -1).classList.toggle("guess", marked);
    grid.cellAt(row, -1).setAttribute("aria-selected", marked);
    ask();
    card.say(`${model.get("tokens")[row]}: ${marked ? "will change" : "will stay"}`);
  };
  const step = (by) => {
    const shown = model.get("shown") + by;
    card.root.dataset.told = 1;
    if (by < 0) ask();
    if (shown >= initial.shown && shown <= most()) go({ shown });
    guesses.clear();
  };
  const generate = button({ label: "Generate", onClick: () => step(1) });
  const back = button({ label: "Back", onClick: () => step(-1) });
  const view = choice({
    name: "The mask in",
    options: ["writing", "training"].map((name) => [name, name]),
    onChange: (view) => {
      guesses.clear();
      ask();
      go({ view });
    },
  });
  const shift = toggle({ label: "shift the input", onChange: (shifted) => go({ shifted }) });
  card.stage.append(views);
  card.controls.append(view.node, generate, back, shift.node);
  const drawLesson = () => {
    const [position, shifted] = [model.get("position"), model.get("shifted")];
    const focused = views.contains(card.root.getRootNode().activeElement);
    refill(
      views,
      drawTraining(model, (row) => row !== model.get("position") && go({ position: row })),
    );
    if (focused) views.querySelector(`[data-row="${position}"][data-column="-1"]`).focus();
    const labels = model.get("labels");
    const seen = (shifted ? model.get("tokens") : labels).slice(0, position + 1).join(" ");
    card.caption.textContent = "✓: read; hatched: masked. Tap another row.";
    card.root.dataset.told = 1;
    card.find(
      `It reads “${seen}” and has to say “${labels[position]}”` +
        (shifted ? `, the word after ${position ? "them" : "it"}.` : ": it learns to copy. When it writes alone, nothing is there to copy."),
    );
  };

  const draw = () => {
    const teaches = model.get("view") === "training";
    card.ask(...ASKS[model.get("view")]);
    view.set(model.get("view"));
    shift.set(model.get("shifted"));
    generate.hidden = back.hidden = teaches;
    shift.node.hidden = !teaches;
    if (teaches) return drawLesson();
    const [tokens, shown, total] = [model.get("tokens"), model.get("shown"), model.get("total")];
    const length = Math.min(shown, tokens.length);
    const ended = shown > length;
    back.setAttribute("aria-disabled", shown <= initial.shown);
    generate.setAttribute("aria-disabled", shown >= most());
    card.caption.textContent =
      "=: as before; ≠: changed." + (cut() ? ` The first ${tokens.length} of ${total} tokens.` : "");
    const tables = [true, false].map((causal) => drawTable(model, causal, length, ended, guesses, onGuess));
    refill(views, ...tables.map(({ node }) => node));
    const [right, all] = [tables[0].right + tables[1].right, 2 * (length - 1)];
    card.find(
      ended
        ? `The end mark ${model.get("end_mark")} has come. It is never read, so no row changes, and nothing comes after it.`
        : (guesses.size ? `Your marks are right for ${right} of ${all} old rows. ` : "") +
            "Under the mask no old row changes, because it may not look at the new word: it can be kept. Without a " +
            "mask each gives the new word a share: all are computed again.",
    );
  };
  const stop = onTraits(model, ["tokens", "scores", "shown", "end_mark", "total", "view", "shifted", "position"], draw);
  draw();
  return () => {
    stop();
    card.close();
  };
}

export default { render };
