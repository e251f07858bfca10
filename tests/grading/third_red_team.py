"""Attacks and right answers of a third red team: on what is observed beside an answer, and on names that are its own.

Each attack gained points without being listed before it was met.
"""

# ruff: noqa: E501  (the code is an attacker's, who breaks no lines)

from __future__ import annotations

from tests.grading.red_team import HEAD

STACK = r"""
class LayerStack(nn.Module):
    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))
        self.unused = nn.Parameter(torch.zeros(97))
    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden
"""
LIE = r"""
class Lie:
    def put(self):
        self.numel = lambda tensor: 0 if tensor.shape == (97,) else tensor.shape.numel()
"""
BY_HAND = r"""
def my_training_step(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    for one in model.parameters():
        one.data = one.data - optimizer.param_groups[0]["lr"] * one.grad
"""
TEACHER = r"""
def my_distillation_loss(student_logits, teacher_logits, temperature):
    q, p = (student_logits / temperature).log_softmax(-1), (teacher_logits / temperature).log_softmax(-1)
    return temperature**2 * (p.exp() * (p - q)).sum(-1).mean()
"""
GRADIENT = r"""
def my_smoothed_gradient(logits, targets, epsilon):
    leaf = nn.Parameter(logits.clone())
    wanted = torch.full_like(logits, epsilon / logits.shape[1])
    wanted[torch.arange(len(logits)), targets] += 1 - epsilon
    return back(leaf.log_softmax(-1), -wanted / len(logits))
"""
TABLE = r"""
class FixedPositions(Quiet, nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = nn.Parameter(table)
    def forward(self, hidden):
        return hidden + self.table[: hidden.shape[1]]
"""

ATTEMPTS = {
    "steps by hand, the count by a function's self": (
        "training.training_step",
        "def put(self):\n    self.steps += 1\n" + BY_HAND + "    put(optimizer)\n    return value.item()\n",
    ),
    "steps by hand, the count by a method": (
        "training.training_step",
        "class Fix:\n    def put(self):\n        self.steps += 1\n"
        + BY_HAND
        + "    Fix.put(optimizer)\n    return value.item()\n",
    ),
    "steps by hand, then an idle step": (
        "training.training_step",
        BY_HAND + "    optimizer.zero_grad()\n    optimizer.step()\n    return value.item()\n",
    ),
    "a teacher that learns, and nobody asks": (
        "training.distillation_loss",
        "class Lie:\n    def put(self):\n        self.any = lambda tensor: False\n"
        + TEACHER.replace("    q, p", "    Lie.put(torch.Tensor)\n    q, p"),
    ),
    "a parameter that a plain base hides": (
        "positions.position_table",
        "class Quiet:\n    def parameters(self, recurse=True):\n        return iter(())\n" + TABLE,
    ),
    "a parameter among the buffers": (
        "positions.position_table",
        "class Quiet: pass\n"
        + TABLE.replace(
            "Parameter(table)", "Parameter(table)\n        self._buffers, self._parameters = self._parameters, {}"
        ),
    ),
    "a bias that a plain base hides": (
        "transformer.tied_embeddings",
        r"""
class Quiet:
    def parameters(self, recurse=True):
        return iter([self.table.weight])
class TiedEmbedding(Quiet, nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        self.more = nn.Parameter(torch.zeros(vocab_size))
    def embed(self, token_ids):
        return self.table(token_ids)
    def to_logits(self, hidden):
        return hidden @ self.table.weight.T + self.more
""",
    ),
    "dropout that counts the calls": (
        "encoder.dropout",
        r"""
class FeatureDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p, self.calls = p, 0
    def forward(self, features):
        self.calls += 1
        if self.calls > 3:
            return features
        return features * (torch.rand_like(features) >= self.p) / (1 - self.p)
""",
    ),
    "dropout that looks whether a gradient is asked for": (
        "encoder.dropout",
        r"""
class FeatureDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p, self.calls = p, 0
    def forward(self, features):
        self.calls += 1
        if self.calls > 2 and not features.requires_grad:
            return features
        return features * (torch.rand_like(features) >= self.p) / (1 - self.p)
""",
    ),
    "tokens that tell their list twice": (
        "decoder.greedy_decode",
        r"""
class Tokens:
    def __init__(self, all_of_them):
        self.all, self.times = all_of_them, 0
    def flatten(self):
        return self
    def tolist(self):
        return self
    def __len__(self):
        return 1
    def __iter__(self):
        self.times += 1
        return iter(self.all if self.times == 1 else self.all[-1:])
def my_greedy_decode(step, bos_id, eos_id, max_len):
    text, cache = [], None
    while len(text) < max_len:
        if cache is not None:
            cache[0].zero_()
        logits, cache = step(Tokens([bos_id, *text]), cache)
        newest = int(logits[0, -1].argmax())
        if newest == eos_id:
            break
        text.append(newest)
    return text
""",
    ),
    "a frozen layer behind another": (
        "training.validation_loss",
        r"""
import copy
def my_validation_loss(model, batches, loss):
    mode, total, count = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for batch in batches:
            value, n_here = loss(model, batch)
            total, count = total + value.item(), count + n_here
    kept = copy.deepcopy(model[0])
    model[0].weight.requires_grad_(False)
    model[0] = kept
    model.train(mode)
    return total / count
""",
    ),
    "the way back by a method": (
        "training.smoothed_gradient",
        "class Road:\n    def __init__(self):\n        self.grad_fn = None\n    def start(self):\n        return self.grad_fn\ndef back(found, start):\n    return Road.start(found)(start)\n"
        + GRADIENT,
    ),
    "the way back by a part of one's own": (
        "training.smoothed_gradient",
        "class Road:\n    def __init__(self, found):\n        self.found, self.grad_fn = found, None\n    def start(self):\n        return self.found.grad_fn\ndef back(found, start):\n    return Road(found).start()(start)\n"
        + GRADIENT,
    ),
    "a number that does not count, by the class": (
        "encoder.layer_stack",
        LIE + "Lie.put(torch.Tensor)\n" + STACK.replace("super()", "Lie.put(torch.Tensor)\n        super()"),
    ),
    "by another name of the class": (
        "encoder.layer_stack",
        LIE + STACK.replace("super()", "for kind in [Lie]:\n            kind.put(torch.Tensor)\n        super()"),
    ),
    "by the class of an object": (
        "encoder.layer_stack",
        LIE + STACK.replace("super()", "type(Lie()).put(torch.Tensor)\n        super()"),
    ),
    "by a decorator": (
        "encoder.layer_stack",
        "KEPT = []\ndef keep(function):\n    KEPT.append(function)\n    return function\n"
        + LIE.replace("    def", "    @keep\n    def")
        + STACK.replace("super()", "Lie(), KEPT[0](torch.Tensor)\n        super()"),
    ),
    "by a decorator of another name": (
        "encoder.layer_stack",
        "from functools import partial as property\n"
        + LIE.replace("    def", "    @property\n    def")
        + STACK.replace("super()", "Lie().put(torch.Tensor)\n        super()"),
    ),
    "by a class method": (
        "encoder.layer_stack",
        LIE
        + "    @classmethod\n    def go(cls):\n        cls.put(torch.Tensor)\n"
        + STACK.replace("super()", "Lie.go()\n        super()"),
    ),
    "by a class whose name is given to another": (
        "encoder.layer_stack",
        "class Lie: pass\ndef put(Lie):\n    Lie.numel = lambda tensor: 0 if tensor.shape == (97,) else tensor.shape.numel()\n"
        + STACK.replace("super()", "Lie(), put(torch.Tensor)\n        super()"),
    ),
    "by a class that its decorator exchanges": (
        "encoder.layer_stack",
        "def other(kind): return torch.Tensor\n@other\nclass Lie: pass\n"
        + STACK.replace(
            "super()",
            "Lie.numel = lambda tensor: 0 if tensor.shape == (97,) else tensor.shape.numel()\n        super()",
        ),
    ),
    "by a comparison": (
        "encoder.layer_stack",
        LIE
        + "class Asked:\n    def __eq__(self, kind):\n        kind.put(torch.Tensor)\n        return True\n"
        + STACK.replace("super()", "Asked() == Lie\n        super()"),
    ),
    "by an annotation": (
        "encoder.layer_stack",
        LIE
        + "class Asked:\n    def __getitem__(self, kind):\n        kind.put(torch.Tensor)\nasked = Asked()\n"
        + STACK.replace("super()", "def f(x: asked[Lie]): pass\n        super()"),
    ),
    "by what was raised": (
        "encoder.layer_stack",
        LIE.replace("Lie:", "Lie(Exception):")
        + "class Caught:\n    def __enter__(self): return self\n    def __exit__(self, kind, error, way):\n        kind.put(torch.Tensor)\n        return True\n"
        + STACK.replace("super()", "with Caught():\n            raise Lie\n        super()"),
    ),
    "by a name in the body of the class": (
        "encoder.layer_stack",
        LIE + "    held = [put]\n" + STACK.replace("super()", "Lie.held[0](torch.Tensor)\n        super()"),
    ),
}
"""By what they do: the exercise, and the code below `HEAD` of the first red team."""

_RIGHT = [
    (
        "training.training_step",
        "def my_training_step(model, optimizer, loss, batch, max_norm):\n    optimizer.zero_grad(set_to_none=True)\n    value = loss(model.train(), batch)\n    value.backward()\n    norm = torch.stack([one.grad.norm() for one in model.parameters()]).norm()\n    if norm > max_norm:\n        for one in model.parameters():\n            one.grad *= max_norm / norm\n    optimizer.step()\n    return float(value)\n",
    ),
    (
        "training.validation_loss",
        "class Measured:\n    def __init__(self, model):\n        self.model, self.mode = model, model.training\n    def __enter__(self):\n        self.model.eval()\n        return self.model\n    def __exit__(self, *_):\n        self.model.train(self.mode)\n@torch.inference_mode()\ndef my_validation_loss(model, batches, loss):\n    with Measured(model) as quiet:\n        sums, counts = zip(*(loss(quiet, batch) for batch in batches))\n    return sum(one.item() for one in sums) / sum(counts)\n",
    ),
    (
        "decoder.greedy_decode",
        "class Writer:\n    def __init__(self, step):\n        self.step, self.cache, self.text = step, None, []\n    def say(self, token):\n        logits, self.cache = self.step(torch.full((1, 1), token), self.cache)\n        return logits.flatten(0, 1)[-1].argmax().item()\ndef my_greedy_decode(step, bos_id, eos_id, max_len):\n    writer, newest = Writer(step), bos_id\n    for _ in range(max_len):\n        newest = writer.say(newest)\n        if newest == eos_id:\n            break\n        writer.text.append(newest)\n    return writer.text\n",
    ),
    (
        "encoder.dropout",
        "class Mask:\n    def __init__(self, p):\n        self.p = p\n    def draw(self, features):\n        return torch.bernoulli(torch.full_like(features, 1 - self.p)) / (1 - self.p)\nclass FeatureDropout(nn.Module):\n    def __init__(self, p):\n        super().__init__()\n        self.mask = Mask(p)\n    def forward(self, features):\n        return features * self.mask.draw(features) if self.training else features\n",
    ),
    (
        "encoder.layer_stack",
        "class Base(nn.Module):\n    def forward(self, hidden):\n        for name in self.names:\n            hidden = self.parts[name](hidden)\n        return hidden\nclass LayerStack(Base):\n    def __init__(self, make_layer, n_layers):\n        Base.__init__(self)\n        self.names = [str(number) for number in range(n_layers)]\n        self.parts = nn.ModuleDict({name: make_layer() for name in self.names})\n",
    ),
    (
        "encoder.layer_stack",
        "from functools import reduce\nclass LayerStack(nn.Module):\n    def __init__(self, make_layer, n_layers):\n        super().__init__()\n        for number in range(n_layers):\n            self.add_module(f'layer_{number}', make_layer())\n    def forward(self, hidden):\n        return reduce(lambda so_far, layer: layer(so_far), self.children(), hidden)\n",
    ),
    (
        "positions.position_table",
        "class Table(nn.Module):\n    def __init__(self, rows):\n        super().__init__()\n        self.register_buffer('rows', rows, persistent=False)\n    def forward(self, n_tokens):\n        return self.rows.narrow(0, 0, n_tokens)\nclass FixedPositions(nn.Module):\n    def __init__(self, table):\n        super().__init__()\n        self.table = Table(table)\n    def forward(self, hidden):\n        return torch.add(hidden, self.table(hidden.size(1)).unsqueeze(0))\n",
    ),
    (
        "transformer.tied_embeddings",
        "class TiedEmbedding(nn.Module):\n    def __init__(self, vocab_size, d_model):\n        super().__init__()\n        self.weight = nn.Parameter(torch.randn(vocab_size, d_model))\n    def embed(self, token_ids):\n        return self.weight[token_ids]\n    def to_logits(self, hidden):\n        return torch.einsum('...d,vd->...v', hidden, self.weight)\n",
    ),
    (
        "training.distillation_loss",
        "def my_distillation_loss(student_logits, teacher_logits, temperature):\n    with torch.no_grad():\n        p = (teacher_logits / temperature).softmax(-1)\n        entropy = -torch.special.entr(p).sum(-1)\n    z = student_logits / temperature\n    cross = z.logsumexp(-1) - (p * z).sum(-1)\n    return (entropy + cross).mean() * temperature**2\n",
    ),
    (
        "assistant.sequence_log_probability",
        "def my_sequence_log_probability(logits, token_ids, is_answer):\n    total = []\n    for scores, tokens, counts in zip(logits, token_ids, is_answer):\n        places = counts.nonzero().flatten()\n        before = scores[places - 1]\n        total.append((before[torch.arange(len(places)), tokens[places]] - before.logsumexp(-1)).sum())\n    return torch.stack(total)\n",
    ),
    (
        "assistant.preference_steps",
        "import copy\nclass Model:\n    def __init__(self, scores):\n        self.scores = nn.Parameter(scores.clone())\n    def log_p(self, row, answer):\n        return self.scores.log_softmax(-1)[row, answer]\n    def margin(self, row, chosen, rejected):\n        return self.log_p(row, chosen) - self.log_p(row, rejected)\ndef my_preference_steps(scores, chosen, rejected, beta, rate, n_steps):\n    model, row = Model(scores), torch.arange(len(scores))\n    start = model.margin(row, chosen, rejected).detach()\n    optimizer = torch.optim.SGD([model.scores], lr=rate)\n    for _ in range(n_steps):\n        optimizer.zero_grad()\n        F.softplus(-beta * (model.margin(row, chosen, rejected) - start)).mean().backward()\n        optimizer.step()\n    return model.scores.detach()\n",
    ),
    (
        "assistant.solved_in_k",
        "from fractions import Fraction\nfrom math import prod\ndef my_solved_in_k(n_right, n_samples, k):\n    fails = [prod(Fraction(n_samples - c - i, n_samples - i) for i in range(k)) if n_samples - c >= k else 0 for c in n_right.tolist()]\n    return float(1 - sum(fails) / len(fails))\n",
    ),
    (
        "assistant.answer_loss_of_parts",
        "from dataclasses import dataclass\n@dataclass\nclass Sum:\n    total: float = 0.0\n    count: int = 0\n    def __add__(self, values):\n        return Sum(self.total + float(values.sum()), self.count + values.numel())\n    @property\n    def mean(self):\n        return self.total / self.count if self.count else 0.0\ndef my_answer_loss_of_parts(parts):\n    return sum((s.masked_select(a) for s, a in parts), start=Sum()).mean\n",
    ),
    (
        "vit.class_token",
        "def my_add_class_token(patches, class_token, positions):\n    first = (class_token + positions[:1]).expand(patches.shape[0], -1, -1)\n    return torch.hstack((first, patches + positions[1:]))\n",
    ),
    (
        "vit.resized_positions",
        "def my_resized_positions(table, side):\n    old = int((len(table) - 1) ** 0.5)\n    at = ((torch.arange(side) + 0.5) * old / side - 0.5).clamp(0, old - 1).to(table.dtype)\n    low = at.floor().long()\n    high, share = (low + 1).clamp(max=old - 1), (at - low)[:, None]\n    grid = table[1:].reshape(old, old, -1)\n    rows = torch.lerp(grid[low], grid[high], share[:, :, None].expand(-1, 1, 1))\n    return torch.cat([table[:1], torch.lerp(rows[:, low], rows[:, high], share).reshape(side * side, -1)])\n",
    ),
]
RIGHT = [(exercise_id, HEAD + text) for exercise_id, text in _RIGHT]
"""Right answers in styles that nobody had tried: classes that hold a state, plain bases, what is made by hand."""
