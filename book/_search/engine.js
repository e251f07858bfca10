// Finds sections, terms, symbols and names in the records of the book (records.js) with MiniSearch: no network, no server.
//
// A record is [kind, page, anchor, title, place, names, text, code]: what it is, the number of its page, where on the
// page, its heading, the headings above it, other words it is known by, its text, and the names in its code.
// `ttutorSearch.find(query)` returns the records that answer best. Stemmer is Sphinx's.
"use strict";

const ttutorSearch = (() => {
  const FIELDS = { title: 6, names: 5, place: 0.8, text: 1, code: 0.4 };
  const KINDS = {
    chapter: 1.5,
    page: 1.4,
    term: 1.35,
    symbol: 1.2,
    section: 1,
    function: 1.05,
    class: 1.05,
    method: 0.8,
    module: 1,
    attribute: 0.6,
    exercise: 0.85,
    claim: 0.7,
    work: 0.5,
    change: 0.3,
    absent: 1.6,
  };
  // What a question is made of, in English, German, French and Spanish, without accents. Words that mean something here
  // in one of these languages, such as "hat", "sans" or "como", are left out of the others' lists where they would clash.
  const STOP = new Set(
    (
      "a about an and any are as at be been but by can could did do does for from get gets has have how i if in into is it " +
      "its me my not of on one or our please should so such tell than that the their then there these they this to us want was " +
      "we what what's when where which who why will with work works would you your explain mean means meaning " +
      "aber als auch auf aus bei bin brauche brauch das dass dem den der des die ein eine einem einen einer es fur gibt ich " +
      "im ist kann kein man mein mit nach nicht oder sich sind uber und von vom warum wann welche wer werden wie wieso wird " +
      "wo wozu zu zum zur funktioniert bedeutet " +
      "au aux avec ce ces cette comment dans de des du elle en est et est-ce faire fait faut il je la le les leur ma mes mon ne " +
      "nous ou par pas pour pourquoi qu que quel quelle quelles quels qui quoi sert son sont sur un une vous fonctionne " +
      "al como con cual cuales cuando cuanto del donde el ella ellos es esta este funciona hace hacer hay la las lo los mi " +
      "mis no para por porque puedo que quien son sirve una uno unos y"
    ).split(" "),
  );
  const GREEK = {
    α: "alpha",
    β: "beta",
    γ: "gamma",
    δ: "delta",
    ε: "epsilon",
    ϵ: "epsilon",
    ζ: "zeta",
    η: "eta",
    θ: "theta",
    κ: "kappa",
    λ: "lambda",
    μ: "mu",
    π: "pi",
    ρ: "rho",
    σ: "sigma",
    τ: "tau",
    φ: "phi",
    ϕ: "phi",
    χ: "chi",
    ψ: "psi",
    ω: "omega",
  };
  const WORD = /[\p{L}\p{N}]+(?:[_.^'’-]+[\p{L}\p{N}]+)*/gu;
  const CHAPTER = /^book\/\d\d-/;
  const LOOKED_UP = new Set(["function", "class", "method", "attribute", "module", "symbol"]);
  const LOOK_UP = [1, 1, 0.6, 0.3]; // what a record of these kinds is worth by the number of words in a question
  const NAME = /\w_\w|\w\.\w|\p{Ll}\p{Lu}/u; // what only code is written like
  const NEAREST = ["book/symptoms", "book/glossary", "book/beyond"]; // where to look for what has no word here
  const LEAST_SHARE = 0.02; // of the best score: what is worth less is no answer
  const stemmer = new Stemmer();
  const known = new Map(); // how many fields of records hold a word
  const remembered = new Map();

  // Small letters without accents, and without a French article that leans on its word: "l'attention".
  function bare(word) {
    return word
      .toLowerCase()
      .normalize("NFKD")
      .replace(/\p{M}/gu, "")
      .replace(/^(?:l|d|qu|s|n|c|j)['’]/, "");
  }

  // Small letters, no accents, Greek letters by name, one spelling: what a reader types and what we print may differ.
  function fold(text) {
    const plain = bare(text).replace(/[α-ωϵϕ]/g, (letter) => GREEK[letter] || letter);
    const spelt = plain
      .replace(/([iy])s(e|ed|es|ing|er|ers|ation|ations)$/, "$1z$2")
      .replace(/(col|behavi|neighb|fav)our/, "$1or");
    return /^[a-z]{3,}$/.test(spelt) ? stemmer.stemWord(spelt) : spelt;
  }

  // The forms of a word. A compound such as d_head, pre-norm or MultiHeadAttention has its parts and itself in one word.
  function forms(word) {
    if (!remembered.has(word)) {
      const parts = word
        .replace(/['’]s$/, "")
        .replace(/^(?:l|d|qu|s|n|c|j)['’]/i, "")
        .replace(/(\p{Ll}{2})(?=\p{Lu})/gu, "$1-")
        .split(/[_.^'’-]+/)
        .filter(Boolean);
      remembered.set(word, parts.length < 2 ? parts.map(fold) : [fold(parts.join("")), ...parts.map(fold)]);
    }
    return remembered.get(word);
  }

  function telling(text) {
    const found = text.replaceAll("√", " sqrt ").match(WORD) || [];
    const kept = found.filter((word) => !STOP.has(bare(word)));
    return kept.length ? kept : found;
  }

  const words = (text) => telling(text).flatMap(forms);
  const spelt = (text) => telling(text).map(bare).join(" ");

  function remember(text) {
    const found = text.split("\n").flatMap(words);
    for (const word of new Set(found)) known.set(word, (known.get(word) || 0) + 1);
    return found;
  }

  let records, pages, index, calls;

  const pageOf = (number) => pages[number][0];

  function build(data) {
    ({ records, pages } = data);
    index = new MiniSearch({ fields: Object.keys(FIELDS), tokenize: remember, processTerm: (word) => word });
    index.addAll(
      records.map(([, , , title, place, names, text, code], id) => ({
        id,
        title,
        place,
        names: names.join("\n"),
        text,
        code,
      })),
    );
    calls = records.map(([, , , title, , names]) => [title, ...names].map((name) => [words(name), spelt(name)]));
  }

  // How far a record is called what was asked for: most for the very words, less for other endings of them (windows is not
  // a window), and for a name that holds them all.
  function calledSo(query, asked, id) {
    const shares = calls[id].map(([name, letters]) => {
      if (letters === query) return 1.6;
      if (name.length === asked.length && name.join(" ").startsWith(asked.join(" "))) return 1; // still being typed
      return name.length && asked.every((word) => name.includes(word))
        ? (0.8 * new Set(asked).size) / new Set(name).size
        : 0;
    });
    return Math.max(0, ...shares);
  }

  // How much a word tells: much if few records have it; little if none has it, for then it is a name or a slip.
  const weight = (word) => (known.has(word) ? Math.log(1 + records.length / known.get(word)) : 1);

  // The share of what was asked that a record has, by what its words tell.
  function covered(asked, found) {
    const total = asked.reduce((sum, word) => sum + weight(word), 0);
    return asked.reduce((sum, word) => sum + (found.includes(word) ? weight(word) : 0), 0) / total;
  }

  // The known word that comes nearest to one that is not: one that differs by a slip, or that makes its first half and more,
  // as in the German Aufmerksamkeitskopf. A word with a digit in it is a number or a name, and has none.
  function nearest(word) {
    if (word.length < 4 || /\d/.test(word)) return undefined;
    const suggested = (options) => index.autoSuggest(word, { tokenize: () => [word], ...options });
    if (suggested({ prefix: true, fuzzy: false }).length) return undefined; // still being typed
    const [slip] = suggested({ prefix: false, fuzzy: 0.25 });
    if (slip) return slip.terms[0];
    for (let length = word.length - 1; length > Math.max(4, word.length / 2); length--)
      if (known.has(word.slice(0, length))) return word.slice(0, length);
    return undefined;
  }

  // The best answers first; `guesses` are words of the index that stood in for a word that it does not have;
  // `isUnknown` says that it has none of them, and the results are where one might look instead.
  function find(query) {
    const typed = words(query);
    const asked = typed.flatMap((word) => (known.has(word) ? word : (nearest(word) ?? word)));
    const guesses = asked.filter((word) => !typed.includes(word));
    const letters = spelt(query);
    const found = index.search(query, {
      boost: FIELDS,
      tokenize: () => asked,
      prefix: (word) => word.length > 2,
      boostDocument: (id) => (KINDS[records[id][0]] || 1) * (records[id][4].startsWith("ttutor.widgets") ? 0.6 : 1),
    });
    const n_words = telling(query).length;
    const lookUp = NAME.test(query) && n_words < 3 ? 1 : LOOK_UP[Math.min(n_words, 3)];
    const scored = found.map(({ id, score, terms, queryTerms }) => ({
      record: records[id],
      terms,
      isExact: asked.some((word) => terms.includes(word)),
      score:
        score *
        (1 + 4 * calledSo(letters, asked, id) ** 2) *
        (n_words > 2 ? covered(asked, queryTerms) : 1) *
        (LOOKED_UP.has(records[id][0]) ? lookUp : 1),
    }));
    // A word that is merely similar, or only begins like the one asked for, never stands above the word itself.
    scored.sort((a, b) => b.isExact - a.isExact || b.score - a.score);
    const best = Math.max(...scored.map(({ score }) => score));
    // Where to read on comes second at the latest: the best section of a chapter that has all the words.
    const isToRead = ({ record, terms }) =>
      (record[0] === "chapter" || record[0] === "section") &&
      CHAPTER.test(pageOf(record[1])) &&
      asked.every((word) => terms.includes(word));
    const at = scored.findIndex(isToRead);
    if (at > 1) scored.splice(1, 0, ...scored.splice(at, 1));
    const results = scored.filter((one, place) => place < 2 || one.score >= LEAST_SHARE * best || isToRead(one));
    const isUnknown = query.trim() !== "" && results.length === 0;
    if (isUnknown) {
      const pages = records.filter(([kind, page]) => kind === "page" && NEAREST.includes(pageOf(page)));
      results.push(...pages.map((record) => ({ record, terms: [], isExact: false, score: 0 })));
    }
    return { results, guesses, isUnknown };
  }

  // The piece of a text around the first words that were asked for, as [text, isHit] pieces.
  function excerpt(text, query, length = 220) {
    const wanted = new Set(words(query));
    const hits = [...text.matchAll(WORD)].filter(([word]) => forms(word).some((form) => wanted.has(form)));
    const first = hits.length ? hits[0].index : 0;
    const start = first < length / 3 ? 0 : text.lastIndexOf(" ", first - length / 5) + 1;
    const end = start + length < text.length ? text.lastIndexOf(" ", start + length) : text.length;
    const pieces = start > 0 ? [["… ", false]] : [];
    let at = start;
    for (const { 0: word, index: place } of hits.filter(
      (hit) => hit.index >= start && hit.index + hit[0].length <= end,
    )) {
      pieces.push([text.slice(at, place), false], [word, true]);
      at = place + word.length;
    }
    pieces.push([text.slice(at, end) + (end < text.length ? " …" : ""), false]);
    return pieces;
  }

  return { build, find, excerpt };
})();
