// Finds sections, terms, symbols and names in the records of the book (records.js), without a network or a server.
//
// A record is [kind, page, anchor, title, place, names, text, code]: what it is, the number of its page, where on the
// page, its heading, the headings above it, other words it is known by, its text, and the names in its code.
// `ttutorSearch.find(query)` returns the records that answer best. A field's words count by their rarity and by the field
// (BM25F); a heading that is the query counts most. Stemmer is Sphinx's.
"use strict";

const ttutorSearch = (() => {
  const WEIGHTS = [6, 5, 0.8, 1, 0.4];  // of a word in the title, in the names, in the place, in the text, in the code
  const KINDS = {
    chapter: 1.5, page: 1.4, term: 1.35, symbol: 1.2, section: 1, function: 1.05, class: 1.05, method: 0.8,
    module: 1, attribute: 0.6, exercise: 0.85, claim: 0.7, work: 0.5, change: 0.3,
  };
  const STOP = new Set(("a about an and are as at be but by can could did do does for from has have how i if in into is it its me my of " +
    "on one or should so such that the their then there these they this to us was we what when where which why will with would you your")
    .split(" "));
  const GREEK = { α: "alpha", β: "beta", γ: "gamma", δ: "delta", ε: "epsilon", ϵ: "epsilon", ζ: "zeta", η: "eta", θ: "theta",
    κ: "kappa", λ: "lambda", μ: "mu", π: "pi", ρ: "rho", σ: "sigma", τ: "tau", φ: "phi", ϕ: "phi", χ: "chi", ψ: "psi", ω: "omega" };
  const WORD = /[\p{L}\p{N}√]+(?:[_.^'’-]+[\p{L}\p{N}√]+)*/gu;
  const stemmer = new Stemmer();
  const known = new Map();
  const SATURATION = 1.2, LENGTHS = 0.6, ENOUGH = 0.02, RARE = 3;

  // Small letters, no accents, Greek letters by name, one spelling: what a reader types and what we print may differ.
  function fold(text) {
    return text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replace(/[α-ωϵϕ]/g, (letter) => GREEK[letter] || letter)
      .replace(/√/g, " sqrt ").replace(/is(e|ed|es|ing|er|ers|ation|ations)$/, "iz$1").replace(/ys(e|ed|es|ing)$/, "yz$1")
      .replace(/(col|behavi|neighb|fav)our/, "$1or").replace(/centre/, "center");
  }

  const stem = (word) => (/^[a-z]{3,}$/.test(word) ? stemmer.stemWord(word) : word);

  // A compound such as d_head, pre-norm or MultiHeadAttention is {whole, parts}; a plain word has no parts, nor has RoPE.
  function take(word) {
    const camel = word.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1-$2").replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1-$2");
    const text = camel.split("-").some((part) => part.length > 2) ? camel : word;
    return text.replace(/['’]s$/, "").split(/(?=√)|(?<=√)/u).flatMap((piece) => {
      const parts = piece.split(/[_.^'’-]+/).map((part) => fold(part).trim()).filter(Boolean);
      if (parts.length < 2) return parts.map((part) => ({ whole: stem(part), parts: [] }));
      return [{ whole: stem(parts.join("")), parts: parts.map(stem) }];
    });
  }

  // The words of a text, each taken apart once, however often it comes.
  function words(text) {
    return (text.match(WORD) || []).flatMap((word) => taken(word).words);
  }

  function taken(word) {
    if (!known.has(word)) {
      const found = take(word);
      known.set(word, { words: found, every: found.flatMap(({ whole, parts }) => [whole, ...parts]) });
    }
    return known.get(word);
  }

  // All forms of all words.
  function every(text) {
    const found = [];
    for (const word of text.match(WORD) || []) found.push(...taken(word).every);
    return found;
  }

  const plain = (text) => words(text).flatMap(({ whole, parts }) => (parts.length ? parts : [whole]));
  const meaning = (list) => {
    const kept = list.filter((word) => !STOP.has(word));
    return kept.length ? kept : list;
  };

  let postings, fields, means, records, same;

  // Which records hold each word, in which field and how often.
  function build(data) {
    records = data.records;
    same = data.same.map((group) => group.map((phrase) => plain(phrase)));
    postings = new Map();
    means = WEIGHTS.map(() => 0);
    fields = records.map(([, , , title, place, names, text, code], index) => {
      const found = [every(title), names.flatMap(every), every(place), every(text), every(code)];
      found.forEach((list, field) => {
        means[field] += list.length / records.length;
        for (const word of list) count(word, index, field);
      });
      return { lengths: found.map((list) => list.length), called: [title, ...names].map((name) => meaning(plain(name))) };
    });
  }

  function count(word, index, field) {
    if (!postings.has(word)) postings.set(word, new Map());
    const holders = postings.get(word);
    if (!holders.has(index)) holders.set(index, WEIGHTS.map(() => 0));
    holders.get(index)[field] += 1;
  }

  // The weight of one word of the index in each record.
  function weigh(word) {
    const holders = postings.get(word), scores = new Map();
    const rarity = Math.log(1 + (records.length - holders.size + 0.5) / (holders.size + 0.5));
    for (const [index, counts] of holders) {
      const sum = WEIGHTS.reduce((total, weight, field) => {
        const length = 1 - LENGTHS + (LENGTHS * fields[index].lengths[field]) / means[field];
        return total + (weight * counts[field]) / length;
      }, 0);
      scores.set(index, (rarity * sum) / (SATURATION + sum));
    }
    return scores;
  }

  // How many letters must be changed, added or left out, up to a limit.
  function distance(a, b, limit) {
    let row = Array.from({ length: b.length + 1 }, (_, j) => j);
    for (let i = 1; i <= a.length; i += 1) {
      const next = [i];
      for (let j = 1; j <= b.length; j += 1) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
      if (Math.min(...next) > limit) return limit + 1;
      row = next;
    }
    return row[b.length];
  }

  // Words of the index that a typed word may mean: itself, those that begin with it, and, if it is rare, those near it.
  function meant(word) {
    const found = postings.has(word) ? [[word, 1]] : [];
    if (word.length > 2) {
      for (const other of postings.keys()) {
        if (other !== word && other.startsWith(word)) found.push([other, 0.5 * (word.length / other.length)]);
      }
    }
    const commonest = Math.max(0, ...found.map(([other]) => postings.get(other).size));
    const guessed = commonest < RARE && word.length > 3 ? near(word, RARE * commonest + 1) : [];
    return { found: [...found, ...guessed.map((other) => [other, 0.7])], guessed };
  }

  // The words of the index that differ from this one in the fewest letters, if they are common enough.
  function near(word, common) {
    const limit = word.length > 7 ? 2 : 1;
    const candidates = [...postings.keys()].filter((other) => other !== word && /^[a-z]+$/.test(other)
      && Math.abs(other.length - word.length) <= limit && postings.get(other).size >= common);
    const steps = new Map(candidates.map((other) => [other, distance(word, other, limit)]));
    const fewest = Math.min(limit, ...steps.values());
    return candidates.filter((other) => steps.get(other) === fewest);
  }

  function score(word) {
    const best = new Map(), { found, guessed } = meant(word);
    for (const [other, share] of found) {
      for (const [index, value] of weigh(other)) best.set(index, Math.max(best.get(index) || 0, share * value));
    }
    return { best, guessed };
  }

  // A compound counts as a whole, or else by its parts together.
  function scoreCompound({ whole, parts }) {
    const { best, guessed } = score(whole);
    if (!parts.length) return { best, guessed };
    const sums = new Map();
    const each = parts.map((part) => score(part).best);
    for (const index of new Set(each.flatMap((scores) => [...scores.keys()]))) {
      const hits = each.filter((scores) => scores.has(index)).length;
      const mean = each.reduce((sum, scores) => sum + (scores.get(index) || 0), 0) / parts.length;
      sums.set(index, 0.8 * mean * (hits / parts.length) ** 2);
    }
    for (const [index, value] of sums) best.set(index, Math.max(best.get(index) || 0, value));
    return { best, guessed: best.size ? [] : guessed };
  }

  // What a record is called, against what was asked: 1 for the same words, less for a heading that holds them all.
  function callsItself(asked, called) {
    const wanted = new Set(asked);
    let best = 0;
    for (const name of called) {
      const there = new Set(name);
      const both = [...wanted].filter((word) => there.has(word)).length;
      if (both < wanted.size || !there.size) continue;
      best = Math.max(best, name.join(" ") === asked.join(" ") ? 1 : (0.8 * both) / there.size);
    }
    return best;
  }

  function ask(query) {
    const asked = words(query).filter(({ whole, parts }) => parts.length || !STOP.has(whole));
    const list = asked.length ? asked : words(query);
    const totals = new Map(), guesses = [];
    for (const word of list) {
      const { best, guessed } = scoreCompound(word);
      guesses.push(...guessed);
      for (const [index, value] of best) {
        const total = totals.get(index) || { sum: 0, hits: 0 };
        totals.set(index, { sum: total.sum + value, hits: total.hits + 1 });
      }
    }
    const flat = list.flatMap(({ whole, parts }) => (parts.length ? parts : [whole]));
    const scored = [...totals].map(([index, { sum, hits }]) => {
      const [kind, , anchor, title, place] = records[index];
      const name = callsItself(flat, fields[index].called);
      const isIt = title === query.trim() || anchor.endsWith(`.${query.trim()}`) ? 6 : 0;
      const share = (KINDS[kind] || 1) * (place.startsWith("ttutor.widgets") ? 0.6 : 1);
      return { index, score: share * (sum * (hits / list.length) ** 2 + 12 * name * name + isIt) };
    });
    return { scored, guesses };
  }

  // The query, and the query with a phrase in place of another that means the same.
  function variants(query) {
    const flat = plain(query);
    const found = [query];
    for (const group of same) {
      for (const phrase of group) {
        const at = flat.findIndex((_, start) => phrase.every((word, step) => flat[start + step] === word));
        if (at < 0) continue;
        for (const other of group) {
          if (other !== phrase) found.push([...flat.slice(0, at), ...other, ...flat.slice(at + phrase.length)].join(" "));
        }
        break;
      }
    }
    return found;
  }

  // The best answers first; `guesses` are words of the index that stood in for a word that it does not have.
  function find(query) {
    if (!plain(query).length) return { results: [], guesses: [] };
    const best = new Map();
    let guesses = [];
    variants(query).forEach((variant, at) => {
      const asked = ask(variant);
      if (at === 0) guesses = asked.guesses;
      for (const { index, score: value } of asked.scored) best.set(index, Math.max(best.get(index) || 0, at ? 0.95 * value : value));
    });
    const sorted = [...best].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const results = sorted.filter(([, value]) => value >= ENOUGH * sorted[0][1]).map(([index, value]) => ({ record: records[index], score: value }));
    return { results, guesses };
  }

  // The piece of a text around the words that were asked for, as [text, isHit] pieces.
  function excerpt(text, query, length = 220) {
    const wanted = new Set(variants(query).flatMap((variant) => meaning(every(variant))));
    const hits = [...text.matchAll(WORD)].filter(([word]) => every(word).some((part) => wanted.has(part)));
    const first = densest(hits.map((hit) => hit.index), length);
    const start = first < length / 3 ? 0 : text.lastIndexOf(" ", first - length / 5) + 1;
    const end = start + length < text.length ? text.lastIndexOf(" ", start + length) : text.length;
    const pieces = start > 0 ? [["… ", false]] : [];
    let at = start;
    for (const hit of hits.filter(({ index, 0: word }) => index >= start && index + word.length <= end)) {
      pieces.push([text.slice(at, hit.index), false], [hit[0], true]);
      at = hit.index + hit[0].length;
    }
    pieces.push([text.slice(at, end) + (end < text.length ? " …" : ""), false]);
    return pieces;
  }

  // Where most hits stand close together.
  function densest(places, length) {
    let best = 0, most = 0;
    places.forEach((place, at) => {
      const n = places.slice(at).filter((other) => other < place + length * 0.8).length;
      if (n > most) [best, most] = [place, n];
    });
    return best;
  }

  return { build, find, excerpt };
})();
