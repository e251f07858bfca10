// A small Transformer that learns, in plain JavaScript: read it beside ttutor/encoder.py,
// ttutor/multihead.py and ttutor/layers, whose names it keeps. Each layer has a `forward` and, below it,
// its own backward pass; tests/widgets/test_playground.py holds both equal to PyTorch's. A tensor is a
// Float64Array, row after row; a row is one place of one sequence. Arrays are made once and used in
// every step, so that a training that runs for long needs no more memory.
//
// All of it stands in one function, because a worker is made from its text: pages that are opened from
// disk can load no other file.

export function makeEngine() {
  const EPS = 1e-5;

  /** Random numbers that are the same in every browser: the generator mulberry32. */
  class Random {
    constructor(seed) {
      this.state = Math.imul(seed + 1, 0x9e3779b9);
    }

    /** Evenly from 0 to 1. */
    uniform() {
      this.state = (this.state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    }

    below(n) {
      return Math.floor(n * this.uniform());
    }

    /** Nearly normal, with mean 0 and variance 1: a sum of twelve, which no browser rounds otherwise. */
    normal() {
      let sum = -6;
      for (let i = 0; i < 12; i += 1) sum += this.uniform();
      return sum;
    }
  }

  // ---------------------------------------------------------------- layers

  /**
   * c += A B, with `rows`, `inner` and `columns` as sizes. A is read with steps from row to row and along
   * a row, so that it may stand transposed. Two rows and four numbers of each at a time: what is fetched of
   * B is used twice, and c is fetched a quarter as often, which makes it twice as fast.
   */
  function multiply(a, rowStep, innerStep, b, c, rows, inner, columns) {
    const [even, fours] = [rows - (rows % 2), inner - (inner % 4)];
    for (let i = 0; i < even; i += 2) {
      const out = i * columns;
      const next = out + columns;
      for (let k = 0; k < fours; k += 4) {
        const at = i * rowStep + k * innerStep;
        const under = at + rowStep;
        const a0 = a[at];
        const a1 = a[at + innerStep];
        const a2 = a[at + 2 * innerStep];
        const a3 = a[at + 3 * innerStep];
        const u0 = a[under];
        const u1 = a[under + innerStep];
        const u2 = a[under + 2 * innerStep];
        const u3 = a[under + 3 * innerStep];
        const from = k * columns;
        for (let j = 0; j < columns; j += 1) {
          const b0 = b[from + j];
          const b1 = b[from + columns + j];
          const b2 = b[from + 2 * columns + j];
          const b3 = b[from + 3 * columns + j];
          c[out + j] += a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3;
          c[next + j] += u0 * b0 + u1 * b1 + u2 * b2 + u3 * b3;
        }
      }
    }
    for (let i = 0; i < rows; i += 1)
      // what is left over
      for (let k = i < even ? fours : 0; k < inner; k += 1) {
        const factor = a[i * rowStep + k * innerStep];
        for (let j = 0; j < columns; j += 1) c[i * columns + j] += factor * b[k * columns + j];
      }
  }

  /** All parameters in one array, their gradients in a second, the two memories of Adam in two more. */
  class Store {
    constructor(capacity) {
      this.used = 0;
      [this.values, this.gradients, this.means, this.squares] = [0, 0, 0, 0].map(() => new Float64Array(capacity));
      this.named = {};
      this.steps = 0;
    }

    /** A parameter of this many numbers, with its place in the gradients. */
    make(name, count, draw) {
      const [from, to] = [this.used, this.used + count];
      const made = { value: this.values.subarray(from, to), gradient: this.gradients.subarray(from, to) };
      if (to > this.values.length) throw new RangeError(`no room for ${name}`);
      for (let i = 0; i < count; i += 1) made.value[i] = draw();
      this.used = to;
      this.named[name] = made;
      return made;
    }

    /** One step of Adam (Kingma and Ba, 2015, algorithm 1). */
    step(rate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8) {
      this.steps += 1;
      const [first, second] = [1 - beta1 ** this.steps, 1 - beta2 ** this.steps];
      for (let i = 0; i < this.used; i += 1) {
        const gradient = this.gradients[i];
        this.means[i] = beta1 * this.means[i] + (1 - beta1) * gradient;
        this.squares[i] = beta2 * this.squares[i] + (1 - beta2) * gradient * gradient;
        this.values[i] -= (rate * this.means[i]) / first / (Math.sqrt(this.squares[i] / second) + epsilon);
      }
    }
  }

  /** y = x W + b. */
  class Linear {
    constructor(store, name, from, to, rows, random) {
      const bound = 1 / Math.sqrt(from);
      const draw = () => bound * (2 * random.uniform() - 1);
      this.weight = store.make(`${name}.weight`, from * to, draw);
      this.bias = store.make(`${name}.bias`, to, () => 0);
      Object.assign(this, { from, to, turned: new Float64Array(from * to) });
      this.y = new Float64Array(rows * to);
      this.dx = new Float64Array(rows * from);
    }

    forward(x, rows) {
      const { from, to, y } = this;
      this.x = x;
      for (let i = 0; i < rows; i += 1) y.set(this.bias.value, i * to);
      multiply(x, from, 1, this.weight.value, y, rows, from, to);
      return y;
    }

    backward(dy, rows) {
      const { from, to, x, dx, turned, weight } = this;
      for (let i = 0; i < rows; i += 1) for (let j = 0; j < to; j += 1) this.bias.gradient[j] += dy[i * to + j];
      multiply(x, 1, from, dy, weight.gradient, from, rows, to);
      for (let i = 0; i < from; i += 1) for (let j = 0; j < to; j += 1) turned[j * from + i] = weight.value[i * to + j];
      dx.fill(0, 0, rows * from);
      multiply(dy, to, 1, turned, dx, rows, to, from);
      return dx;
    }
  }

  /** Layer normalisation: mean 0 and variance 1 in each row, then a gain and a bias. */
  class Norm {
    constructor(store, name, width, rows) {
      this.gain = store.make(`${name}.gain`, width, () => 1);
      this.bias = store.make(`${name}.bias`, width, () => 0);
      this.width = width;
      [this.y, this.normal, this.dx] = [0, 0, 0].map(() => new Float64Array(rows * width));
      this.scales = new Float64Array(rows);
    }

    forward(x, rows) {
      const { width, y, normal } = this;
      for (let row = 0; row < rows; row += 1) {
        const from = row * width;
        let [mean, variance] = [0, 0];
        for (let i = from; i < from + width; i += 1) mean += x[i] / width;
        for (let i = from; i < from + width; i += 1) variance += (x[i] - mean) ** 2 / width;
        const scale = 1 / Math.sqrt(variance + EPS);
        for (let i = 0; i < width; i += 1) {
          normal[from + i] = (x[from + i] - mean) * scale;
          y[from + i] = normal[from + i] * this.gain.value[i] + this.bias.value[i];
        }
        this.scales[row] = scale;
      }
      return y;
    }

    backward(dy, rows) {
      const { width, normal, dx } = this;
      for (let row = 0; row < rows; row += 1) {
        const from = row * width;
        let [mean, along] = [0, 0]; // of the gradient, and of its part along the normalised row
        for (let i = 0; i < width; i += 1) {
          const [gradient, n] = [dy[from + i], normal[from + i]];
          this.gain.gradient[i] += gradient * n;
          this.bias.gradient[i] += gradient;
          mean += (gradient * this.gain.value[i]) / width;
          along += (gradient * this.gain.value[i] * n) / width;
        }
        for (let i = 0; i < width; i += 1)
          dx[from + i] = (dy[from + i] * this.gain.value[i] - mean - normal[from + i] * along) * this.scales[row];
      }
      return dx;
    }
  }

  /** Multi-head self-attention: softmax(Q Kᵀ / √d) V in each head, then one more product. */
  class Attention {
    constructor(store, name, { width, length, rows }, random) {
      this.project = new Linear(store, `${name}.project`, width, 3 * width, rows, random); // queries, keys, values
      this.out = new Linear(store, `${name}.out`, width, width, rows, random);
      Object.assign(this, { width, length });
      this.mixed = new Float64Array(rows * width);
      this.dprojected = new Float64Array(3 * rows * width);
      this.weights = new Float64Array(4 * rows * length); // at most four heads
      this.dweights = new Float64Array(length);
    }

    forward(x, rows, { heads, causal }) {
      const { width, length, mixed, weights } = this;
      const projected = this.project.forward(x, rows);
      const size = width / heads;
      mixed.fill(0, 0, rows * width);
      for (let head = 0; head < heads; head += 1)
        for (let row = 0; row < rows; row += 1) {
          const first = row - (row % length); // of this sequence
          const last = causal ? row : first + length - 1;
          const query = 3 * width * row + head * size;
          const at = (head * rows + row) * length - first;
          let largest = -Infinity;
          for (let other = first; other <= last; other += 1) {
            const key = 3 * width * other + width + head * size;
            let score = 0;
            for (let i = 0; i < size; i += 1) score += projected[query + i] * projected[key + i];
            weights[at + other] = score / Math.sqrt(size);
            largest = Math.max(largest, weights[at + other]);
          }
          let sum = 0;
          for (let other = first; other <= last; other += 1) {
            weights[at + other] = Math.exp(weights[at + other] - largest);
            sum += weights[at + other];
          }
          for (let other = first; other < first + length; other += 1) {
            weights[at + other] = other > last ? 0 : weights[at + other] / sum;
            const value = 3 * width * other + 2 * width + head * size;
            const to = width * row + head * size;
            for (let i = 0; i < size; i += 1) mixed[to + i] += weights[at + other] * projected[value + i];
          }
        }
      return this.out.forward(mixed, rows);
    }

    backward(dy, rows, { heads, causal }) {
      const { width, length, weights, dweights, dprojected } = this;
      const dmixed = this.out.backward(dy, rows);
      const projected = this.project.y;
      const size = width / heads;
      dprojected.fill(0, 0, 3 * rows * width);
      for (let head = 0; head < heads; head += 1)
        for (let row = 0; row < rows; row += 1) {
          const first = row - (row % length);
          const last = causal ? row : first + length - 1;
          const query = 3 * width * row + head * size;
          const at = (head * rows + row) * length - first;
          const from = width * row + head * size;
          let mean = 0; // what the softmax takes off every score's gradient
          for (let other = first; other <= last; other += 1) {
            const value = 3 * width * other + 2 * width + head * size;
            const weight = weights[at + other];
            let gradient = 0;
            for (let i = 0; i < size; i += 1) {
              gradient += dmixed[from + i] * projected[value + i];
              dprojected[value + i] += weight * dmixed[from + i];
            }
            dweights[other - first] = gradient;
            mean += weight * gradient;
          }
          for (let other = first; other <= last; other += 1) {
            const key = 3 * width * other + width + head * size;
            const dscore = (weights[at + other] * (dweights[other - first] - mean)) / Math.sqrt(size);
            for (let i = 0; i < size; i += 1) {
              dprojected[query + i] += dscore * projected[key + i];
              dprojected[key + i] += dscore * projected[query + i];
            }
          }
        }
      return this.project.backward(dprojected, rows);
    }
  }

  /** Two products with max(0, ·) between them. */
  class FeedForward {
    constructor(store, name, { width, rows }, random) {
      this.widen = new Linear(store, `${name}.widen`, width, 2 * width, rows, random);
      this.narrow = new Linear(store, `${name}.narrow`, 2 * width, width, rows, random);
    }

    forward(x, rows) {
      const inner = this.widen.forward(x, rows);
      for (let i = 0; i < rows * this.widen.to; i += 1) inner[i] = Math.max(inner[i], 0);
      return this.narrow.forward(inner, rows);
    }

    backward(dy, rows) {
      const dinner = this.narrow.backward(dy, rows);
      for (let i = 0; i < rows * this.widen.to; i += 1) if (this.widen.y[i] === 0) dinner[i] = 0;
      return this.widen.backward(dinner, rows);
    }
  }

  /** x + sublayer(norm(x)): the place of the norm in models of today. */
  class Sublayer {
    constructor(store, name, inner, { width, rows }) {
      this.norm = new Norm(store, `${name}.norm`, width, rows);
      Object.assign(this, { inner, width });
      [this.y, this.dx] = [0, 0].map(() => new Float64Array(rows * width));
    }

    forward(x, rows, parts) {
      const written = this.inner.forward(parts.norm ? this.norm.forward(x, rows) : x, rows, parts);
      for (let i = 0; i < rows * this.width; i += 1) this.y[i] = written[i] + (parts.skips ? x[i] : 0);
      return this.y;
    }

    backward(dy, rows, parts) {
      const dread = this.inner.backward(dy, rows, parts);
      const dx = parts.norm ? this.norm.backward(dread, rows) : dread;
      for (let i = 0; i < rows * this.width; i += 1) this.dx[i] = dx[i] + (parts.skips ? dy[i] : 0);
      return this.dx;
    }
  }

  // ---------------------------------------------------------------- the model

  const WIDTH = 32;
  const DEEPEST = 2;

  /**
   * Reads sequences of `length` tokens and gives `classes` logits at each place. `parts` says which of
   * its parts it has: `{ positions, causal, heads, skips, norm, layers }`. All parts have weights, drawn
   * from the same seed whichever are used, so that a part can be taken out and put back while it learns.
   */
  class Model {
    constructor({ tokens, classes, length, batch, seed }) {
      const random = new Random(seed);
      const rows = batch * length;
      const sizes = { width: WIDTH, length, rows };
      const store = new Store((tokens + length + classes + 2) * WIDTH + classes + DEEPEST * 9000);
      Object.assign(this, { store, length, classes, batch });
      this.embedding = store.make("embedding", tokens * WIDTH, () => random.normal());
      this.places = store.make("places", length * WIDTH, () => random.normal());
      this.sublayers = [];
      for (let layer = 0; layer < DEEPEST; layer += 1) {
        const [attend, feed] = [`${layer}.attention`, `${layer}.feed_forward`];
        this.sublayers.push(
          new Sublayer(store, attend, new Attention(store, attend, sizes, random), sizes),
          new Sublayer(store, feed, new FeedForward(store, feed, sizes, random), sizes),
        );
      }
      this.norm = new Norm(store, "norm", WIDTH, rows);
      this.unembed = new Linear(store, "unembed", WIDTH, classes, rows, random);
      this.embedded = new Float64Array(rows * WIDTH);
      this.dlogits = new Float64Array(rows * classes);
    }

    /** Logits, `classes` for each token. */
    forward(tokens, parts) {
      const [rows, { embedded, length }] = [tokens.length, this];
      for (let row = 0; row < rows; row += 1)
        for (let i = 0; i < WIDTH; i += 1)
          embedded[row * WIDTH + i] =
            this.embedding.value[tokens[row] * WIDTH + i] +
            (parts.positions ? this.places.value[(row % length) * WIDTH + i] : 0);
      let x = embedded;
      for (const sublayer of this.sublayers.slice(0, 2 * parts.layers)) x = sublayer.forward(x, rows, parts);
      return this.unembed.forward(parts.norm ? this.norm.forward(x, rows) : x, rows);
    }

    /** The loss over the places that have a target, the mean cross-entropy; its gradients go to the store. */
    backward(tokens, targets, parts) {
      const [rows, { classes, dlogits, length }] = [tokens.length, this];
      const logits = this.forward(tokens, parts);
      let [asked, loss] = [0, 0];
      for (let row = 0; row < rows; row += 1) asked += targets[row] >= 0;
      for (let row = 0; row < rows; row += 1) {
        const from = row * classes;
        let [largest, sum] = [-Infinity, 0];
        for (let i = from; i < from + classes; i += 1) largest = Math.max(largest, logits[i]);
        for (let i = from; i < from + classes; i += 1) sum += Math.exp(logits[i] - largest);
        const target = targets[row] < 0 ? -1 : from + targets[row];
        if (target >= 0) loss += (largest + Math.log(sum) - logits[target]) / asked;
        for (let i = from; i < from + classes; i += 1)
          dlogits[i] = target < 0 ? 0 : (Math.exp(logits[i] - largest) / sum - (i === target)) / asked;
      }
      this.store.gradients.fill(0);
      let dx = this.unembed.backward(dlogits, rows);
      if (parts.norm) dx = this.norm.backward(dx, rows);
      for (const sublayer of this.sublayers.slice(0, 2 * parts.layers).reverse())
        dx = sublayer.backward(dx, rows, parts);
      for (let row = 0; row < rows; row += 1)
        for (let i = 0; i < WIDTH; i += 1) {
          this.embedding.gradient[tokens[row] * WIDTH + i] += dx[row * WIDTH + i];
          if (parts.positions) this.places.gradient[(row % length) * WIDTH + i] += dx[row * WIDTH + i];
        }
      return loss;
    }
  }
  return { Random, Store, Linear, Norm, Attention, FeedForward, Model };
}
