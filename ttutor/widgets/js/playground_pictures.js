// The playground's two pictures: a sequence, what is said of it and how that looks back; and the training, step by step.
import { formatNumber } from "./core.js";
import { arrow } from "./drawing.js";
import { eventWords, percent, phasesOf } from "./playground_words.js";

const GUTTER = 70; // for the names of the lines
const MARGIN = 130; // for the names of what is marked in the plot
const SEEDS = 12; // for the circles of the recorded runs

/** Attention as it is shown: of one head (from 1), or, with 0, the mean of all. */
export function headOf(weights, head) {
  return (weights || []).map((heads) => {
    if (head) return heads[head - 1];
    return heads[0].map((row, i) => row.map((_, j) => heads.reduce((sum, one) => sum + one[i][j], 0) / heads.length));
  });
}

/**
 * How much of each line belongs to one letter: from an answer (`length` and more) down through the layers to what it
 * looks at, from a letter that is read up to who looks at it. Gives the share that arrives at each letter, and each tier's.
 */
export function follow(tiers, place) {
  const n = tiers[0]?.length;
  const isAnswer = place >= n;
  let share = Array.from({ length: n }, (_, i) => +(i === place % n));
  const shares = [];
  for (const rows of isAnswer ? [...tiers].reverse() : tiers) {
    const from = share;
    shares.push(from);
    share = from.map((_, i) => from.reduce((sum, one, j) => sum + one * (isAnswer ? rows[j][i] : rows[i][j]), 0));
  }
  return { arrives: share, shares: isAnswer ? shares.reverse() : shares, isAnswer };
}

/**
 * A sequence below, what the model says of it above, and the answers on top; between them each layer's attention. With
 * a second model the sequence stands in the middle, and the second model looks up to it from below.
 */
export function drawLooks({ now, second, task, ids, targets, head, followed, selected, turnable, act }, width, height) {
  const { vocabulary } = task;
  const gap = (width - GUTTER - 6) / ids.length;
  const x = (place) => GUTTER + (place + 0.5) * gap;
  const thickest = Math.min(10, gap / 5);
  const near = height < 200 ? 3 : 0; // on a phone, where two models share little room
  const top = 48 - near;
  const reads = second ? (top + height - 24 + near) / 2 + 5 : height - 6;
  const floor = reads - 19 + near;
  const halves = [{ name: "", now, floor, end: top, said: 38 }];
  if (second)
    halves.push({ name: "second", now: second, floor: reads + 9 - near, end: height - 25 + near, said: height - 6 });
  const label = (key, down, text) => [key, "text", { class: "faint", x: 0, y: down, text }];
  const middle = (top + floor) / 2 + 4;
  const heads = !head ? "all heads" : `head ${head}`;

  const drawHalf = ({ name, now: { weights, says }, floor, end, said }) => {
    const tiers = headOf(weights, head);
    const { shares, isAnswer } = followed < 0 || !tiers.length ? {} : follow(tiers, followed);
    const y = (tier) => floor + (tier * (end - floor)) / tiers.length;
    const lines = tiers.flatMap((rows, tier) =>
      rows.flatMap((row, i) =>
        row.map((weight, j) => {
          if (weight < 0.02 || (tier === tiers.length - 1 && targets[i] < 0)) return null; // where nothing is asked
          const share = shares ? Math.min(shares[tier][isAnswer ? i : j], 1) : 1;
          return [
            `look${name}${tier}-${i}-${j}`,
            "path",
            {
              class: "look",
              d: `M${x(j).toFixed(1)} ${y(tier).toFixed(1)}L${x(i).toFixed(1)} ${y(tier + 1).toFixed(1)}`,
              "stroke-width": thickest * weight,
              "stroke-opacity": (0.25 + 0.75 * weight) * (shares ? 0.1 + 0.9 * share : 1),
            },
          ];
        }),
      ),
    );
    const nodes = tiers
      .slice(1)
      .flatMap((_, tier) =>
        ids.map((__, i) => [`node${name}${tier}-${i}`, "circle", { class: "node", cx: x(i), cy: y(tier + 1), r: 3 }]),
      );
    const words = ids.map((_, i) => {
      if (targets[i] < 0) return null;
      const token = says?.[i];
      const kind = token === undefined ? "" : token === targets[i] ? "right" : "wrong";
      return [
        `said${name}${i}`,
        "text",
        { class: `token ${kind}`, x: x(i), y: said, text: token === undefined ? "" : vocabulary[token] },
      ];
    });
    return [...lines, ...nodes, ...words];
  };
  // A finger wants all that one row has room for.
  const [more, tall] = near && !second ? [14, 44] : [0, 30];
  const hit = (place, down, text, which = "") => [
    `hit${place}${which}`,
    "rect",
    {
      class: followed === place ? "hit on" : "hit",
      x: x(place % ids.length) - gap / 2 + 1,
      y: down,
      width: gap - 2,
      height: tall,
      rx: 6,
      "aria-label": text,
      "aria-pressed": String(selected === place),
      press: () => act.follow(place),
    },
  ];
  return [
    ...halves.flatMap(drawHalf),
    label("nameanswer", 13, "answer"),
    label("namesays", 38, "it says"),
    second ? label("namefirst", middle - 8, "your parts") : turnable ? null : label("namelooks", middle, "looks at"),
    label("namereads", reads, "it reads"),
    second && label("namesecond", (reads + height - 16) / 2 + 4, "all parts"),
    second && label("namesays2", height - 6, "it says"),
    turnable && [
      "turn",
      "rect",
      {
        class: "hit",
        x: -4,
        y: middle - (second ? 8 : 22),
        width: GUTTER - 4,
        height: second ? 30 : 44,
        rx: 6,
        "aria-label": `It shows ${heads}: show others`,
        press: act.turn,
      },
    ],
    turnable && ["turnname", "text", { class: "turn", x: 0, y: middle + (second ? 10 - near : 0), text: heads }],
    ...ids.map((id, i) => [`read${i}`, "text", { class: "token", x: x(i), y: reads, text: vocabulary[id] }]),
    ...ids.flatMap((id, i) => [
      targets[i] >= 0 && [`asked${i}`, "text", { class: "asked faint", x: x(i), y: 13, text: vocabulary[targets[i]] }],
      hit(i, reads - 20 - more, `it reads ${vocabulary[id]} at place ${i + 1}`),
      targets[i] >= 0 && hit(ids.length + i, 18 - more, `what it says at place ${i + 1}`),
      second && targets[i] >= 0 && hit(ids.length + i, height - 25, `what all parts say at place ${i + 1}`, "second"),
    ]),
  ].filter(Boolean);
}

/** Names beside what they name, each of one line or more, none over the next. */
function apart(names, lowest) {
  const sorted = names.sort((one, other) => one.y - other.y);
  const room = ({ words }) => 14 * words.length;
  sorted.forEach((one, i) => {
    if (i) one.y = Math.max(one.y, sorted[i - 1].y + room(sorted[i - 1]));
  });
  sorted.reverse().forEach((one, i) => {
    one.y = Math.min(one.y, (i ? sorted[i - 1].y : lowest + 14) - room(one));
  });
  return sorted.flatMap(({ y, words }) => words.map((text, i) => ({ y: y + 14 * i, text })));
}

/** Over the steps: the shares right in training and on unseen sequences, what simple answers get; below, the loss. */
export function drawPlot({ run, beside, before, most, goal, marks, recorded, fallen, probe, classes }, width, height) {
  const { steps, loss, seen, right } = run;
  const isLow = height < 200; // on a phone
  const strip = isLow ? 22 : 42;
  const [left, end, top, floor] = [4, width - MARGIN - SEEDS, isLow ? 24 : 44, height - 24 - strip - (isLow ? 4 : 10)];
  const [lossTop, lossFloor] = [height - 18 - strip, height - 18];
  const x = (step) => left + (step / most) * (end - left);
  const y = (share) => floor - share * (floor - top);
  const path = (values, to, at = steps) => {
    const known = values.map((value, i) => [at[i], value]).filter(([step, value]) => value !== null && step <= most);
    return known.length > 1
      ? `M${known.map(([step, value]) => `${x(step).toFixed(1)} ${to(value).toFixed(1)}`).join("L")}`
      : "";
  };
  const highest = Math.max(1.25 * Math.log(classes), ...loss);
  const at = Math.max(
    steps.findLastIndex((step) => x(step) <= probe + 1),
    0,
  ); // where the pointer is, or at the end
  // Of a model that was changed since, what it had before is no longer true.
  const isProbed = probe < Infinity && steps.length > 1;
  const known = fallen === null || isProbed;
  const value = (values, write) => (known && (values[at] ?? null) !== null ? ` ${write(values[at])}` : "");
  const what = isLow ? "" : "right, ";
  const lines = [
    before && ["before", path(before.right, y, before.steps), isLow ? "before" : "the run before"],
    beside && ["usual", path(beside.right, y, beside.steps), "all parts"],
    ["seen", path(seen, y), `${what}in training${value(seen, percent)}`],
    ["new", path(right, y), `${what}unseen${value(right, percent)}`],
  ].filter(Boolean);
  const places = isLow ? { new: [0, 12], seen: [0.36, 12] } : { new: [0, 12], seen: [0.5, 12] };
  const events = phasesOf(run).slice(1);
  const told = recorded.slice(0, 1).map((share) => ({ share, text: "five recorded starts" }));
  const names = apart(
    // Where the recorded starts end at the top, their name is enough: one label more would lie off its line.
    [...(recorded[0] > 0.9 ? [] : [{ share: 1, text: "100\u00a0%" }]), ...told, ...marks].map(({ share, text }) => {
      const words = text.split("|").slice(isLow ? -1 : 0);
      return { y: y(share) - 7 * (words.length - 1), words };
    }),
    floor,
  );
  const text = (key, x, y, text, kind = "faint", anchor = "start") => [
    key,
    "text",
    { class: kind, x, y, "text-anchor": anchor, text },
  ];
  const stroke = (key, kind, d) => [key, "path", { class: kind, d }];
  const across = (height) => `M${left} ${height}H${end}`;
  const upright = (step) => `M${x(step).toFixed(1)} ${y(1)}V${lossFloor}`;
  return [
    stroke("floor", "axis", across(floor) + across(y(1)) + across(lossFloor)),
    text("start", left, height - 3, "step 0"),
    text("most", end, height - 3, most, "faint", "end"),
    ...marks.map(({ share }, i) => stroke(`mark${i}`, "mark", across(y(share)))),
    ...names.map(({ y: down, text: words }) => text(`name${words}`, end + SEEDS + 4, down + 4, words)),
    stroke(
      "lineloss",
      "line loss",
      path(loss, (one) => lossFloor - (one / highest) * (lossFloor - lossTop)),
    ),
    text("losshow", end + 8, lossFloor - 14, "how wrong"),
    text("lossname", end + 8, lossFloor, `(loss)${value(loss, (one) => formatNumber(one, 2))}`),
    ...lines.flatMap(([name, d, words]) => {
      const [share, down] = places[name] || (isLow ? [0.78, 12] : [0, 30]);
      const from = left + share * (width - left);
      return [
        stroke(`line${name}`, `line ${name}`, d),
        stroke(`key${name}`, `line ${name}`, `M${from} ${down - 4}h16`),
        text(name === "new" ? "share" : `words${name}`, from + 21, down, words, ""),
      ];
    }),
    ...events.flatMap(([step], i) => {
      const isRight = x(step) > (left + end) / 2;
      const words = eventWords(phasesOf(run), i + 1);
      return [
        stroke(`event${i}`, "event", upright(step)),
        text(
          `eventname${i}`,
          x(step) + (isRight ? -4 : 4),
          y(0.5) + 15 * (i % 3),
          words,
          "halo",
          isRight ? "end" : "start",
        ),
      ];
    }),
    isProbed && stroke("probe", "event", upright(steps[at])),
    isProbed && text("probename", (left + end) / 2, height - 3, `at ${steps[at]}`, "halo", "middle"),
    ...recorded.map((share, i) => [
      `recorded${i}`,
      "circle",
      { class: "recorded", cx: x(goal) + 9, cy: y(share), r: 3.5, "data-value": share.toFixed(9) },
    ]),
    fallen !== null && [
      "fall",
      "path",
      { class: "fall", d: arrow(end, y(right.at(-1)), end, y(fallen)) },
    ],
    fallen !== null && text("fallname", end - 9, y(fallen) + 4, percent(fallen), "halo wrong", "end"),
    right.length && [
      "at",
      "circle",
      { class: "at", fill: "currentColor", cx: x(Math.min(steps[at], most)), cy: y(right[at]), r: 4.5 },
    ],
  ].filter(Boolean);
}
