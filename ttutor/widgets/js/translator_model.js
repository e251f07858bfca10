// The Transformer that translates, in plain JavaScript: read it beside ttutor/transformer/model.py,
// ttutor/encoder.py, ttutor/decoder.py, ttutor/multihead.py and ttutor/generation/beam.py, whose names
// it keeps. It reads the file that ttutor/translation/packed.py writes. A tensor is an object with
// `rows`, `columns` and `data`, row after row; `off` is a set of names of what is switched off, as in
// ttutor/translation/what_if.py. Sums run in 64 bits, everything is kept in 32.

export const [BOS, EOS] = [2, 3];
export const [DROPPED, KEPT, FINISHED, CUT] = [0, 1, 2, 3]; // what becomes of a candidate
const SPECIAL = 4; // <pad> <unk> <bos> <eos>
const SPARE_TOKENS = 50;
const EPS = 1e-5;

// ------------------------------------------------------------------ the file

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** The bytes of a base64 text, which is how a script can carry them. */
export function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Read a safetensors file: a header in JSON that says where each tensor lies, then the tensors. */
function readTensors(bytes) {
  const start = 8 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const { __metadata__: about, ...entries } = JSON.parse(utf8.decode(bytes.subarray(8, start)));
  const kinds = { F32: Float32Array, I8: Int8Array, I32: Int32Array };
  const tensors = {};
  for (const [
    name,
    {
      dtype,
      shape,
      data_offsets: [from, to],
    },
  ] of Object.entries(entries)) {
    const data = new kinds[dtype](bytes.slice(start + from, start + to).buffer);
    tensors[name] = { rows: shape.length > 1 ? shape[0] : 1, columns: shape.at(-1), shape, data };
  }
  return { about: JSON.parse(about.about), tensors };
}

/** Eight bits back to numbers: each row's codes times its scale. */
function restored({ rows, columns, data: codes }, scales) {
  const data = new Float32Array(codes.length);
  for (let i = 0; i < data.length; i += 1) data[i] = codes[i] * scales[Math.floor(i / columns)];
  return { rows, columns, data };
}

// ------------------------------------------------------------------ words and pieces

const BLANK = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // Python's
const BLANKS = new RegExp(`[${BLANK}]+`);
const OUTER_BLANKS = new RegExp(`^[${BLANK}]+|[${BLANK}]+$`, "g");
const BETWEEN_BLANKS = new RegExp(`[^${BLANK}]+`, "g");
// As in ttutor/corpora/text_style.py.
const ENDS = ".!?…‽⁇⁈⁉。｡．！？؟۔।॥։።፧፨។៕။၊།\u037e";
const OLDER_STYLE = {
  word_i: "I",
  plain_blanks: true,
  form: "",
  answers_lower_case: true,
  answers_final_mark: false,
};

/** Byte-pair encoding over bytes, each of which is written as one letter. */
export class Tokenizer {
  constructor({ model: { vocab, merges }, pre_tokenizer: { pretokenizers } }) {
    this.words = new RegExp(pretokenizers[0].pattern.Regex, "gu");
    const printable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte < 173) || (byte > 173 && byte < 256);
    const letters = [];
    let next = 256;
    for (let byte = 0; byte < 256; byte += 1) letters.push(String.fromCharCode(printable(byte) ? byte : next++));
    this.letters = letters;
    this.byteOf = Object.fromEntries(letters.map((letter, byte) => [letter, byte]));
    this.idOf = new Map(Object.entries(vocab));
    this.pieceOf = [];
    for (const [piece, id] of this.idOf) this.pieceOf[id] = piece;
    this.rankOf = new Map(merges.map((pair, rank) => [pair.join(" "), rank]));
  }

  encode(sentence) {
    return (` ${sentence}`.match(this.words) || []).flatMap((word) => this.encodeWord(word));
  }

  /** Join neighbours, those first that were the commonest in the training text. */
  encodeWord(word) {
    const parts = [...new TextEncoder().encode(word)].map((byte) => this.letters[byte]);
    for (;;) {
      let [best, at] = [Infinity, -1];
      for (let i = 0; i + 1 < parts.length; i += 1) {
        const rank = this.rankOf.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) return parts.map((part) => this.idOf.get(part));
      const [left, right] = [parts[at], parts[at + 1]];
      for (let i = at; i + 1 < parts.length; i += 1)
        if (parts[i] === left && parts[i + 1] === right) parts.splice(i, 2, left + right);
    }
  }

  decode(ids) {
    const letters = ids.filter((id) => id >= SPECIAL).flatMap((id) => [...this.pieceOf[id]]);
    return utf8.decode(Uint8Array.from(letters, (letter) => this.byteOf[letter])).replace(/^ /, "");
  }

  /** A token as text that can be shown, a leading blank as "▁". */
  token(id) {
    if (id < SPECIAL) return this.pieceOf[id];
    const bytes = Uint8Array.from([...this.pieceOf[id]], (letter) => this.byteOf[letter]);
    return utf8.decode(bytes).replaceAll(" ", "▁");
  }
}

/** The words between blanks, as Python's split sees them. */
export const splitWords = (text) => text.split(BLANKS).filter(Boolean);

const strip = (text) => text.replace(OUTER_BLANKS, "");

const endsWithMark = (text) => text !== "" && ENDS.includes(text.at(-1));

/** Whether its first letter is a capital. */
function beginsLarge(text) {
  const [first] = text.match(/\p{L}/u) || [""];
  return first !== first.toLowerCase();
}

/** A word as a number: the hash of Fowler, Noll and Vo, as `word_number` of packed.py. */
const wordNumber = (word) =>
  new TextEncoder()
    .encode(word.toLowerCase())
    .reduce((number, byte) => Math.imul(number ^ byte, 0x01000193), 0x811c9dc5 | 0);

// ------------------------------------------------------------------ layers

const zeros = (rows, columns) => ({ rows, columns, data: new Float32Array(rows * columns) });

const add = (a, b) => ({ ...a, data: a.data.map((value, i) => value + b.data[i]) });

const below = (a, b) => {
  if (!a) return b;
  const data = new Float32Array(a.data.length + b.data.length);
  data.set(a.data);
  data.set(b.data, a.data.length);
  return { rows: a.rows + b.rows, columns: a.columns, data };
};

/** x Wᵀ + b; four outputs at a time, so that each number of x is fetched once for four products. */
export function linear(x, weight, bias) {
  const [width, n] = [weight.columns, weight.rows];
  const y = zeros(x.rows, n);
  for (let row = 0; row < x.rows; row += 1) {
    const input = x.data.subarray(row * width, (row + 1) * width);
    let out = 0;
    for (; out + 3 < n; out += 4) {
      let [a, b, c, d] = [0, 0, 0, 0];
      let i = out * width;
      for (let j = 0; j < width; j += 1, i += 1) {
        const value = input[j];
        a += value * weight.data[i];
        b += value * weight.data[i + width];
        c += value * weight.data[i + 2 * width];
        d += value * weight.data[i + 3 * width];
      }
      y.data.set([a, b, c, d], row * n + out);
    }
    for (; out < n; out += 1)
      for (let j = 0; j < width; j += 1) y.data[row * n + out] += input[j] * weight.data[out * width + j];
  }
  if (bias) for (let i = 0; i < y.data.length; i += 1) y.data[i] += bias.data[i % n];
  return y;
}

/** Mean 0 and variance 1 for each row, then gain and bias. */
export function layerNorm(x, gain, bias) {
  const y = zeros(x.rows, x.columns);
  for (let row = 0; row < x.rows; row += 1) {
    const input = x.data.subarray(row * x.columns, (row + 1) * x.columns);
    const mean = input.reduce((sum, value) => sum + value, 0) / x.columns;
    const variance = input.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.columns;
    const factor = 1 / Math.sqrt(variance + EPS);
    for (let j = 0; j < x.columns; j += 1)
      y.data[row * x.columns + j] = (input[j] - mean) * factor * gain.data[j] + bias.data[j];
  }
  return y;
}

/**
 * The blend of values that each query gets, one head: softmax(s q kᵀ) v. `visible(query)` says how
 * many of the keys it may look at. The columns of a head begin at `from`. Writes into `context`,
 * gives the weights.
 */
function attendHead(query, key, value, from, width, scale, visible, context) {
  const weights = zeros(query.rows, key.rows);
  for (let i = 0; i < query.rows; i += 1) {
    const seen = visible(i);
    const row = weights.data.subarray(i * key.rows, i * key.rows + seen);
    for (let j = 0; j < seen; j += 1) {
      let score = 0;
      for (let k = from; k < from + width; k += 1)
        score += query.data[i * query.columns + k] * key.data[j * key.columns + k];
      row[j] = score * scale;
    }
    const largest = row.reduce((a, b) => Math.max(a, b), -Infinity);
    for (let j = 0; j < seen; j += 1) row[j] = Math.exp(row[j] - largest);
    const total = row.reduce((a, b) => a + b, 0);
    for (let j = 0; j < seen; j += 1) row[j] /= total;
    for (let k = from; k < from + width; k += 1) {
      let sum = 0;
      for (let j = 0; j < seen; j += 1) sum += row[j] * value.data[j * value.columns + k];
      context.data[i * context.columns + k] = sum;
    }
  }
  return weights;
}

/** The logarithm of the softmax. */
export function logSoftmax(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const total = Math.log(logits.reduce((sum, value) => sum + Math.exp(value - largest), 0));
  return Float64Array.from(logits, (value) => value - largest - total);
}

/** The places of the `n` largest values, the largest first. */
export function topPlaces(values, n) {
  const best = [];
  for (let i = 0; i < values.length; i += 1) {
    if (best.length === n && values[i] <= values[best[n - 1]]) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]] < values[i]) at -= 1;
    best.splice(at, 0, i);
    if (best.length > n) best.pop();
  }
  return best;
}

// ------------------------------------------------------------------ the model

export class TranslatorModel {
  constructor(bytes) {
    const { about, tensors } = readTensors(bytes);
    this.config = about.config;
    this.style = { ...OLDER_STYLE, ...about.style };
    this.tokenizer = new Tokenizer(about.tokenizer);
    this.weights = {};
    for (const [name, tensor] of Object.entries(tensors)) {
      const scales = tensors[`${name}.scales`];
      if (!name.endsWith(".scales")) this.weights[name] = scales ? restored(tensor, scales.data) : tensor;
    }
    this.known = tensors.known_words && new Set(tensors.known_words.data);
    this.table = this.weights["source_embeddings.token.table.weight"];
    this.layers = [...Array(this.config.n_layers).keys()];
    this.heads = [...Array(this.config.n_heads).keys()];
    this.width = this.config.d_model / this.config.n_heads;
  }

  linear(x, name) {
    return linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }

  norm(x, name) {
    return layerNorm(x, this.weights[`${name}.gain`], this.weights[`${name}.bias`]);
  }

  /** Rows of the table times √d, plus the wave of each position. */
  embed(ids, first, off) {
    const { d_model: width } = this.config;
    const x = zeros(ids.length, width);
    ids.forEach((id, row) => {
      for (let j = 0; j < width; j += 1) {
        const angle = (first + row) * 10000 ** (-(j - (j % 2)) / width);
        const wave = off.has("positions") ? 0 : j % 2 ? Math.cos(angle) : Math.sin(angle);
        x.data[row * width + j] = this.table.data[id * width + j] * Math.sqrt(width) + wave;
      }
    });
    return x;
  }

  /**
   * Several lookups at once. `key` and `value` are projected already; what is switched off hands on
   * nothing, or its mean.
   */
  attend(x, name, part, layer, { key, value }, causal, { off, by }, seen) {
    const query = this.linear(x, `${name}.to_query`);
    const context = zeros(query.rows, query.columns);
    const scale = off.has("scale") ? 1 : 1 / Math.sqrt(this.width);
    const visible = (row) => (causal ? key.rows - query.rows + row + 1 : key.rows);
    seen[part][layer] = this.heads.map((head) => {
      const from = head * this.width;
      const weights = attendHead(query, key, value, from, this.width, scale, visible, context);
      if (off.has(`${part}.${layer}.${head}`)) {
        const means = by === "mean" && this.weights[`head_means.${part}`].data;
        const start = (layer * this.config.n_heads + head) * this.width;
        for (let row = 0; row < context.rows; row += 1)
          for (let k = 0; k < this.width; k += 1)
            context.data[row * context.columns + from + k] = means ? means[start + k] : 0;
      }
      return weights;
    });
    return this.linear(context, `${name}.to_output`);
  }

  keysAndValues(x, name) {
    return { key: this.linear(x, `${name}.to_key`), value: this.linear(x, `${name}.to_value`) };
  }

  feedForward(x, layer) {
    const inner = this.linear(this.norm(x, `${layer}.around_feed_forward.norm`), `${layer}.feed_forward.widen`);
    inner.data.forEach((value, i) => {
      if (value < 0) inner.data[i] = 0;
    });
    return this.linear(inner, `${layer}.feed_forward.narrow`);
  }

  /** The memory: one vector for each source token; and, for each layer of the decoder, its keys and values. */
  encode(ids, switches) {
    const seen = { encoder: [] };
    let x = this.embed(ids, 0, switches.off);
    for (const i of this.layers) {
      const layer = `encoder.layers.${i}`;
      const normed = this.norm(x, `${layer}.around_attention.norm`);
      const own = this.keysAndValues(normed, `${layer}.self_attention`);
      const written = this.attend(normed, `${layer}.self_attention`, "encoder", i, own, false, switches, seen);
      if (switches.off.has(`encoder.${i}`)) continue;
      x = add(x, written);
      x = add(x, this.feedForward(x, layer));
    }
    const memory = this.norm(x, "encoder.final_norm");
    const cross = this.layers.map((i) => this.keysAndValues(memory, `decoder.layers.${i}.cross_attention`));
    return { memory, cross, weights: seen.encoder };
  }

  /**
   * Logits of the token after these, which follow those in the cache. Gives a new cache and leaves
   * the old one as it was, so that several hypotheses can go on from it.
   */
  decode(ids, { cross }, cache, switches) {
    const seen = { decoder: [], cross: [] };
    const { off } = switches;
    const own = [];
    let x = this.embed(ids, cache.length, off);
    for (const i of this.layers) {
      const layer = `decoder.layers.${i}`;
      const normed = this.norm(x, `${layer}.around_self_attention.norm`);
      const fresh = this.keysAndValues(normed, `${layer}.self_attention`);
      const before = cache.own[i];
      own[i] = { key: below(before?.key, fresh.key), value: below(before?.value, fresh.value) };
      const is = { causal: !off.has("causal"), off: off.has(`decoder.${i}`) };
      const looked = this.attend(normed, `${layer}.self_attention`, "decoder", i, own[i], is.causal, switches, seen);
      const middle = is.off ? x : add(x, looked);
      const asked = this.norm(middle, `${layer}.around_cross_attention.norm`);
      const found = this.attend(asked, `${layer}.cross_attention`, "cross", i, cross[i], false, switches, seen);
      if (is.off) continue;
      x = add(middle, found);
      x = add(x, this.feedForward(x, layer));
    }
    const last = this.norm(x, "decoder.final_norm");
    const hidden = { rows: 1, columns: x.columns, data: last.data.slice(-x.columns) };
    const logits = linear(hidden, this.weights["to_logits.weight"] || this.table).data;
    return { logits, weights: seen, cache: { length: cache.length + ids.length, own }, stream: x, last };
  }

  /**
   * What one sentence and the beginning of its translation are at every station, as `stations` in stations.py notes
   * it: vectors by their first numbers and their length, attention of the last layer as the mean of its heads.
   */
  stations(source, target) {
    const switches = { off: new Set(), by: "zero" };
    const read = this.encode(source, switches);
    const { weights, stream, last } = this.decode(target, read, EMPTY, switches);
    const round = (value, decimals) => Number(value.toFixed(decimals)) + 0;
    const rows = (matrix) =>
      [...Array(matrix.rows).keys()].map((i) => matrix.data.slice(i * matrix.columns, (i + 1) * matrix.columns));
    const shown = (ids) => ids.map((id) => this.tokenizer.token(id).replace(/^▁(?=.)/, ""));
    const mean = (heads) =>
      rows(heads[0]).map((row, i) =>
        [...row].map((_, j) => round(heads.reduce((sum, head) => sum + rows(head)[i][j], 0) / heads.length, 3)),
      );
    const parts = {
      source_add: this.embed(source, 0, switches.off),
      memory: read.memory,
      "decoder.feed_forward": stream,
    };
    const told = (change) => Object.fromEntries(Object.entries(parts).map(([part, one]) => [part, rows(one).map(change)]));
    const best = rows(linear(last, this.weights["to_logits.weight"] || this.table)).map((logits) => {
      const log = logSoftmax(logits);
      const ids = topPlaces(logits, 3);
      return shown(ids).map((token, i) => [token, round(logits[ids[i]], 2), round(Math.exp(log[ids[i]]), 3)]);
    });
    return {
      tokens: shown(source),
      target: shown(target),
      next: best.map(([[token]]) => token),
      ids: [source, target],
      vectors: told((row) => [...row.slice(0, 8)].map((value) => round(value, 2))),
      lengths: told((row) => round(Math.hypot(...row), 1)),
      weights: {
        "encoder.self_attention": mean(read.weights.at(-1)),
        "decoder.self_attention": mean(weights.decoder.at(-1)),
        "decoder.cross_attention": mean(weights.cross.at(-1)),
      },
      best,
    };
  }

  /** Go on by one token. Without the causal mask earlier tokens see the new one, so all are decoded anew. */
  next(written, memory, cache, switches) {
    const anew = switches.off.has("causal");
    return this.decode(anew ? written : written.slice(-1), memory, anew ? EMPTY : cache, switches);
  }

  // ---------------------------------------------------------------- sentences

  /** A sentence as the training text would write it. */
  prepare(sentence) {
    const { lower_case, word_i, form, plain_blanks, final_mark } = this.style;
    const lowered = (word) => (/^[Ii]$/.test(word) ? word_i || word : word.toLowerCase());
    let text = lower_case ? sentence.replace(BETWEEN_BLANKS, lowered) : sentence;
    if (form) text = text.normalize(form);
    text = plain_blanks ? splitWords(text).join(" ") : strip(text);
    while (!final_mark && endsWithMark(text)) text = strip(text.slice(0, -1));
    return text;
  }

  /** Token ids of a sentence with the end mark: what the encoder reads. */
  read(sentence) {
    const text = this.prepare(sentence);
    return text ? [...this.tokenizer.encode(text).slice(0, this.config.max_len - 1), EOS] : [EOS];
  }

  /** Token ids as a line of text, with the capital and the full stop that the reader's sentence had. */
  text(ids, original) {
    let line = strip(this.tokenizer.decode(ids).replace(/\s*[\n-\r\x1c-\x1e\x85\u2028\u2029]\s*/g, " "));
    const [given, read] = [strip(original), this.prepare(original)];
    if (this.style.answers_lower_case && beginsLarge(given) && !beginsLarge(read))
      line = line.replace(/\p{L}/u, (letter) => letter.toUpperCase().replace(/(?<=.)./gu, (l) => l.toLowerCase()));
    const lost = endsWithMark(given) && !endsWithMark(read);
    return lost && !this.style.answers_final_mark && line && !endsWithMark(line) ? line + given.at(-1) : line;
  }

  /** The words that it never read in training. */
  strangeWords(sentence) {
    const words = sentence.match(/\p{L}+/gu) || [];
    return this.known ? words.filter((word) => !this.known.has(wordNumber(word))) : [];
  }

  limit(source) {
    return Math.min(2 * source.length + SPARE_TOKENS, this.config.max_len);
  }

  /** Greedy search, token by token: `{ id, logits, weights }` of each, those of `beginning` first. */
  *greedy(source, { off = new Set(), by = "zero", beginning = [], longest = this.limit(source) } = {}) {
    const switches = { off, by };
    const memory = this.encode(source, switches);
    const written = [BOS];
    let cache = EMPTY;
    while (written.at(-1) !== EOS && written.length <= longest) {
      const step = this.next(written, memory, cache, switches);
      cache = step.cache;
      const id = beginning[written.length - 1] ?? topPlaces(step.logits, 1)[0];
      written.push(id);
      yield { id, logits: step.logits, weights: { ...step.weights, encoder: memory.weights } };
    }
  }

  /**
   * Beam search: after each step the ranked candidates, as `{ parent, id, total, fate }`, where the
   * parent is a place among the candidates that the step before kept. The search is over when
   * `done`; `found` are then the finished hypotheses, best first.
   */
  *beam(source, { off = new Set(), by = "zero", size = 4, alpha = 1, longest = this.limit(source) } = {}) {
    const switches = { off, by };
    const memory = this.encode(source, switches);
    const found = [];
    let open = [{ ids: [], total: 0, cache: EMPTY }];
    for (let length = 1; open.length; length += 1) {
      const candidates = open.flatMap((one, parent) => {
        const step = this.next([BOS, ...one.ids], memory, one.cache, switches);
        one.after = step.cache;
        const values = logSoftmax(step.logits);
        return topPlaces(values, 2 * size).map((id) => ({
          parent,
          id,
          total: one.total + values[id],
        }));
      });
      candidates.sort((a, b) => b.total - a.total).splice(2 * size);
      const store = (one, ids, finished) => {
        if (found.length < size)
          found.push({
            ids,
            total: one.total,
            finished,
            score: one.total / ((5 + length) / 6) ** alpha,
          });
        return found.at(-1).ids === ids;
      };
      candidates.forEach((one, rank) => {
        const ends = one.id === EOS && rank < size;
        one.fate = ends && store(one, open[one.parent].ids, true) ? FINISHED : DROPPED;
      });
      let kept = candidates.filter(({ id }) => id !== EOS).slice(0, size);
      const going = kept.map((one) => ({
        ids: [...open[one.parent].ids, one.id],
        total: one.total,
        cache: open[one.parent].after,
      }));
      if (length === longest) {
        kept.forEach((one, i) => (one.fate = store(one, going[i].ids, false) ? CUT : DROPPED));
        kept = [];
      } else if (found.length >= size) kept = [];
      for (const one of kept) one.fate = KEPT;
      open = kept.length ? going : [];
      found.sort((a, b) => b.finished - a.finished || b.score - a.score);
      yield { candidates, found, done: !open.length };
    }
  }
}

const EMPTY = { length: 0, own: [] };
