// What the playground's model may learn, and one training of it. A task draws sequences of token ids, says
// what is right at each place (-1 where nothing is asked), and which sequences are kept back: those are never
// trained on, and all shares of what is right are measured on them.

export function makeTasks({ Model, Random }) {
  const letters = [..."abcdefghijklmnopqrstuvwxyz"];
  const digits = [..."0123456789"];
  const nouns = ["dog", "man", "cat", "girl", "boy", "bird", "horse", "fox"];
  const verbs = ["bites", "sees", "hears", "likes"];
  const [WHO, START, END] = ["who?", "·", "."];
  const words = (
    "ace act age aim air ant ape arm art ash ask axe back bad bag bake ball band bank bar bark barn base bat bath beach " +
    "bead beak beam bean bear beat bed bee beef bell belt bend bent best bird bite blame blow blue boat boil bold bone " +
    "book boot bore born both bowl box boy brave bread bring broom brown brush bus cake call calm camp can cane cap car " +
    "card care cart case cash cast cat cave chair chalk cheek chin city clay clean clock cloth cloud coal coat code coin " +
    "cold comb cook cool cord corn cost cow crab crew crop crow cube cup curl dance dark dart date day deal dear deep " +
    "deer desk dig dine dish dive dog doll door dot down drag draw dream dress drink drive drop drum duck dust ear earn " +
    "east easy eat edge egg end even face fact fair fall fan far farm fast fat fear feed feel field fig fill find fine " +
    "fire fish five flag flame flat floor flow flute fly foam fog fold food foot fork form fort four fox free frog fruit " +
    "full game gate ghost gift girl give glad glass glove goat gold good grain grape grass great green grey grip " +
    "hair half hall hand hard hat head heap hear heart heat hen here hide high hill hold hole home honey hood hook hope " +
    "horn horse hot hour house ice ink iron jar jump keep key kind king kite knee knife lake lamb lamp land lane large " +
    "last late leaf lean left leg lemon light like line lion list long loud low mail make man map mare mark mask mat meal " +
    "meat melt mice milk mill mind mine moon more most mouse mouth mud name near neck nest net new night nine noise nose " +
    "note nut oak oil old open oven owl page pain paint pan park part path pear pen piano pie pig pin pine place plain " +
    "plan plant plate play plum pond pool poor port pot rain read red rest rice rich ride ring river road rock roof room " +
    "root rope rose round row run sad safe sail salt sand seat see seed sell ship shirt shoe shop short silk sing six " +
    "skin sky sleep slow small smell snow soap sock soft soil song soup spoon star stay steam steel step stone store " +
    "storm story sugar sun sweet swim table tail tall tea team ten tent thin three time tiny toad toast toe tone town " +
    "train tree true turn two vase walk wall warm wash wave way week well wheat wheel white wide wind wine wing wise " +
    "wolf wood wool word work year young"
  ).split(" ");

  const idsOf = (vocabulary) => Object.fromEntries(vocabulary.map((token, id) => [token, id]));
  const countOf = (tokens, token) => tokens.filter((other) => other === token).length;

  /** The commonest token, the first of those: what one would say who sees which there are, and not where. */
  const commonest = (tokens) =>
    tokens.reduce((best, token) => (countOf(tokens, token) > countOf(tokens, best) ? token : best));

  const eightOf = (vocabulary) => ({
    vocabulary,
    length: 8,
    draw: (random) => Array.from({ length: 8 }, () => random.below(vocabulary.length)),
    isKept: () => null, // there are so many that none is met twice
    read: (text) => [...text.toLowerCase()].filter((token) => token !== " "),
  });
  const reverse = {
    ...eightOf(letters),
    unit: "letter",
    steps: 300,
    text: "stressed",
    right: (tokens) => [...tokens].reverse(),
    simplest: (tokens, place) => commonest(tokens.filter((_, i) => i !== place)),
  };
  const sort = {
    ...eightOf(digits),
    unit: "digit",
    steps: 600,
    text: "31415926",
    right: (tokens) => [...tokens].sort((one, other) => one - other),
    simplest: commonest,
  };

  const roles = [...nouns, ...verbs, WHO, "whom?"];
  const roleIds = idsOf(roles);
  const who = {
    vocabulary: roles,
    length: 4,
    steps: 300,
    text: "dog bites man who?",
    draw: (random) => {
      const subject = random.below(nouns.length);
      const object = (subject + 1 + random.below(nouns.length - 1)) % nouns.length;
      return [subject, nouns.length + random.below(verbs.length), object, roleIds[WHO] + random.below(2)];
    },
    right: ([subject, , object, question]) => [-1, -1, -1, question === roleIds[WHO] ? subject : object],
    isKept: ([subject, , object]) => (subject === object ? null : (subject + 3 * object) % 4 === 0),
    read: (text) => text.toLowerCase().replace(/\s*\?/g, "?").split(/\s+/).filter(Boolean),
    isSound: (tokens) => [nouns, verbs, nouns, [WHO, "whom?"]].every((all, i) => all.includes(tokens[i])),
    asks: `Words: ${nouns.join(" ")}; ${verbs.join(" ")}; who? whom?`,
    simplest: ([subject]) => subject, // one of the two
  };

  const numbers = [...Array.from({ length: 19 }, (_, number) => String(number)), "+", "="];
  const numberIds = idsOf(numbers);
  const sum = {
    vocabulary: numbers,
    kept: 20, // of the hundred sums
    length: 4,
    steps: 600,
    text: "4+7=",
    draw: (random) => [random.below(10), numberIds["+"], random.below(10), numberIds["="]],
    right: ([one, , other]) => [-1, -1, -1, one + other],
    isKept: ([one, , other]) => {
      const [less, more] = [Math.min(one, other), Math.max(one, other)]; // 3 + 5 is kept back with 5 + 3
      return ((more * (more + 1)) / 2 + less) % 5 === 2;
    },
    read: (text) => {
      const [, one, other] = text.match(/^\s*(\d)\s*\+\s*(\d)\s*=?\s*$/) || [];
      return one ? [one, "+", other, "="] : [];
    },
    asks: "It adds two single digits, as in 9+9.",
    simplest: () => 9, // the commonest sum
  };

  const spelling = [...letters, START, END];
  const spellingIds = idsOf(spelling);
  const spelled = (word) => {
    const read = [START, ...word].map((letter) => spellingIds[letter]);
    return [...read, ...Array(6 - read.length).fill(spellingIds[END])];
  };
  const kept = Object.fromEntries(words.map((word, i) => [String(spelled(word)), i % 5 === 2]));
  const followers = spelling.map(() => spelling.map(() => 0)); // how often which letter follows which
  const next = {
    vocabulary: spelling,
    unit: "letter",
    length: 6,
    steps: 400,
    text: "horse",
    draw: (random) => spelled(words[random.below(words.length)]),
    right: (tokens) =>
      tokens.map((token, i) => (token === spellingIds[END] ? -1 : (tokens[i + 1] ?? spellingIds[END]))),
    isKept: (tokens) => kept[String(tokens)], // of another word it is unknown
    read: (text) => {
      const read = [...text.toLowerCase()];
      return [START, ...read, ...Array(Math.max(5 - read.length, 0)).fill(END)];
    },
    simplest: (tokens, place) => followers[tokens[place]].indexOf(Math.max(...followers[tokens[place]])),
  };
  for (const word of words.map(spelled).filter((tokens) => !next.isKept(tokens)))
    next.right(word).forEach((right, i) => right >= 0 && (followers[word[i]][right] += 1));
  const tasks = { reverse, sort, who, sum, next };

  const [BATCH, TESTED, SHARED_SEED] = [16, 64, 7];

  /** A sequence of the reader's as ids, or in words what is wrong with it. */
  function understand(task, text) {
    const { vocabulary, length, unit, read, isSound, asks } = tasks[task];
    const tokens = read(text);
    const strange = tokens.find((token) => !vocabulary.includes(token));
    if (strange !== undefined) return { problem: `It knows no “${strange}”. ${asks || ""}` };
    const [n, needs] = task === "next" ? [tokens.length - 1, "five at most"] : [tokens.length, length];
    if (tokens.length !== length || isSound?.(tokens) === false)
      return { problem: asks || `${n} ${unit}${n === 1 ? "" : "s"}: it needs ${needs}.` };
    return { ids: tokens.map((token) => vocabulary.indexOf(token)) };
  }

  /** Sequences one after the other, and what is right at each of their places. */
  function drawn(task, random, n, isKept) {
    const { draw, length, right, isKept: judge } = tasks[task];
    const [tokens, targets] = [new Int32Array(n * length), new Int32Array(n * length)];
    for (let i = 0; i < n;) {
      const ids = draw(random);
      if (judge(ids) === !isKept) continue;
      tokens.set(ids, i * length);
      targets.set(right(ids), i * length);
      i += 1;
    }
    return { tokens, targets };
  }

  /** The share that is right of all that is asked, if `said(place)` is said. */
  function share(targets, said) {
    let [asked, right] = [0, 0];
    targets.forEach((target, place) => {
      asked += target >= 0;
      right += target >= 0 && said(place) === target;
    });
    return right / asked;
  }

  /** What the simplest answer gets right of sequences that are kept back. */
  function simplestShare(task, n) {
    const { tokens, targets } = drawn(task, new Random(SHARED_SEED), n, true);
    const { length, simplest } = tasks[task];
    return share(targets, (place) => {
      const from = place - (place % length);
      return simplest([...tokens.slice(from, from + length)], place - from);
    });
  }

  /** One training: a model, and random numbers for its batches. `parts` and `rate` may differ from step to step. */
  class Training {
    constructor(task, seed) {
      const { vocabulary, length } = tasks[task];
      const classes = vocabulary.length;
      Object.assign(this, { task, length, classes, done: 0, random: new Random(seed + 1000) });
      this.model = new Model({ tokens: classes, classes, length, batch: TESTED, seed });
      this.tested = drawn(task, new Random(SHARED_SEED), TESTED, true);
    }

    /** What the model says at a place: the most probable token. */
    said(logits, place) {
      let best = place * this.classes;
      for (let i = best + 1; i < (place + 1) * this.classes; i += 1) if (logits[i] > logits[best]) best = i;
      return best - place * this.classes;
    }

    /** One step of training; gives the loss and the share right before it, on its batch. */
    step(parts, rate) {
      const { tokens, targets } = drawn(this.task, this.random, BATCH, false);
      const loss = this.model.backward(tokens, targets, parts);
      const { y } = this.model.unembed;
      const seen = share(targets, (place) => this.said(y, place));
      this.model.store.step(rate);
      this.done += 1;
      return { loss, seen };
    }

    /** The share right of sequences that are kept back, always the same. */
    right(parts) {
      const logits = this.model.forward(this.tested.tokens, parts);
      return share(this.tested.targets, (place) => this.said(logits, place));
    }

    /** What it says at each place of one sequence, and how each head of each layer looks. */
    ask(ids, parts) {
      const logits = this.model.forward(Int32Array.from(ids), parts);
      const n = this.length;
      const looks = this.model.sublayers.filter((_, i) => i % 2 === 0 && i < 2 * parts.layers);
      return {
        says: ids.map((_, place) => this.said(logits, place)),
        weights: looks.map(({ inner: { weights } }) =>
          Array.from({ length: parts.heads }, (_, head) =>
            ids.map((__, row) =>
              ids.map((___, column) => Math.round(100 * weights[(head * n + row) * n + column]) / 100),
            ),
          ),
        ),
      };
    }
  }

  return { tasks, understand, simplestShare, Training };
}
