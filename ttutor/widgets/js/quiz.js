// Questions whose every choice is explained: choose, read why, choose another and read that.
import { css, make, onTraits, openFrame, refill, setTraits, uniqueId } from "./core.js";
import { button, toggle } from "./controls.js";

const CSS = css`
  .questions {
    list-style: none;
    margin: 0;
    padding: 0;
  }
  .questions > li {
    margin: 0 0 1.1rem;
  }
  fieldset {
    border: 0;
    margin: 0;
    padding: 0;
    min-width: 0;
  }
  legend {
    font-weight: 600;
    padding: 0;
    margin-bottom: 0.25rem;
  }
  .choice {
    margin: 0.2rem 0;
    border-radius: 0.35rem;
    border: 1px solid transparent;
  }
  .choice.chosen {
    border-color: var(--line);
  }
  .choice label {
    display: flex;
    gap: 0.55rem;
    align-items: baseline;
    padding: 0.25rem 0.5rem;
    min-height: 2rem;
    cursor: pointer;
  }
  .choice label:hover {
    background: color-mix(in srgb, currentColor 8%, transparent);
    border-radius: 0.35rem;
  }
  .choice input {
    accent-color: var(--tt-ink);
    flex: none;
    transform: translateY(0.1em);
  }
  .why {
    margin: 0 0.5rem 0.4rem 1.75rem;
    padding: 0.1rem 0 0.1rem 0.7rem;
    border-inline-start: 3px solid var(--tt-loss);
  }
  .why.right {
    border-color: currentColor;
  }
  .why b {
    margin-inline-end: 0.3em;
  }
  code {
    font-family: ui-monospace, monospace;
    font-size: 0.92em;
    padding: 0 0.2em;
    border-radius: 0.2em;
    background: color-mix(in srgb, currentColor 10%, transparent);
  }
  math {
    font-size: 1.05em;
  }
  @media print {
    .why {
      display: block !important;
    }
  }
`;

const MATHML = "http://www.w3.org/1998/Math/MathML";
const PLAIN_TAGS = ["code", "em", "strong"];
const MATH_TAGS = [
  "math",
  "mrow",
  "mi",
  "mo",
  "mn",
  "mtext",
  "mspace",
  "msub",
  "msup",
  "msubsup",
  "mfrac",
  "msqrt",
  "mroot",
  "mover",
  "munder",
  "munderover",
  "mtable",
  "mtr",
  "mtd",
  "mstyle",
  "mpadded",
];

/**
 * The nodes of `ttutor/widgets/rich_text.py` as elements; a tag that is not listed here becomes a
 * plain span.
 */
export function rich(nodes) {
  return nodes.map((node) => {
    if (typeof node === "string") return document.createTextNode(node);
    const [tag, ...children] = node;
    const element = MATH_TAGS.includes(tag)
      ? document.createElementNS(MATHML, tag)
      : document.createElement(PLAIN_TAGS.includes(tag) ? tag : "span");
    element.append(...rich(children));
    return element;
  });
}

/**
 * One question; `show(opened, all)` shows which choices were made, and with `all` every
 * explanation.
 */
function question({ prompt, choices }, number, onChoose) {
  const name = uniqueId("tt-quiz");
  const rows = choices.map(({ text, why, right }, i) => {
    const id = `${name}-${i}`;
    const said = make("span", {}, ...rich(text));
    const input = make("input", {
      type: "radio",
      name,
      "aria-describedby": id,
      onchange: () => onChoose(i),
      // Browsers leave formulas out of a label's name.
      "aria-label": said.querySelector("math") && said.textContent,
    });
    const reason = make(
      "div",
      { id, class: right ? "why right" : "why" },
      make("b", { text: right ? "✓ Right." : "✗ No." }),
      ...rich(why),
    );
    return {
      input,
      reason,
      node: make("div", { class: "choice" }, make("label", {}, input, said), reason),
    };
  });
  const node = make(
    "li",
    {},
    make("fieldset", {}, make("legend", {}, `${number + 1}. `, ...rich(prompt)), ...rows.map((row) => row.node)),
  );
  const show = (opened, all) => {
    const kept = opened.some((i) => rows[i].input.checked);
    rows.forEach(({ input, reason, node: row }, i) => {
      if (!kept) input.checked = opened.at(-1) === i;
      reason.hidden = !all && !opened.includes(i);
      row.classList.toggle("chosen", opened.includes(i));
    });
  };
  return { node, show, words: (i) => rows[i].reason.textContent };
}

function render({ model, el }) {
  const { root, say, close } = openFrame(el, "Questions", CSS);
  const list = make("ol", { class: "questions" });
  const score = make("p", { class: "score" });
  let all = false;
  let parts = [];
  let built = null;

  const choose = (number, choice) => {
    const opened = model.get("opened").map((list_, i) => (i === number ? [...new Set([...list_, choice])] : list_));
    setTraits(model, { opened });
    say(parts[number].words(choice));
  };
  const explain = toggle({
    label: "show all explanations",
    onChange: (value) => {
      all = value;
      draw();
    },
  });
  const reset = button({
    label: "Start again",
    onClick: () => {
      setTraits(model, { opened: model.get("questions").map(() => []) });
      say("All answers are cleared.");
    },
  });
  root.append(list, score, make("div", { class: "tt-controls" }, explain.node, reset));

  const draw = () => {
    const [questions, opened] = [model.get("questions"), model.get("opened")];
    if (built !== JSON.stringify(questions)) {
      built = JSON.stringify(questions);
      parts = questions.map((one, number) => question(one, number, (choice) => choose(number, choice)));
      refill(list, ...parts.map((part) => part.node));
    }
    parts.forEach((part, number) => part.show(opened[number] || [], all));
    const answered = questions.filter((_, i) => opened[i].length).length;
    const right = questions.filter(({ choices }, i) => opened[i].length && choices[opened[i][0]].right).length;
    score.textContent = answered
      ? `${answered} of ${questions.length} answered, ${right} right at the first choice.`
      : "Choose an answer, and read why it is right or wrong. Then open the others.";
  };
  const stop = onTraits(model, ["questions", "opened"], draw);
  draw();
  return () => {
    stop();
    close();
  };
}

export default { render };
