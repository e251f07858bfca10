"""Exercise: one table that embeds the tokens and projects to the vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.facts import fact, numbers_in, trainable_numbers_in

USES = ("embeddings", "logits")


def observe(answer, vocab_size, hidden):
    """Build the module, use it at both ends, and let it learn from each."""
    module = answer(vocab_size, hidden.shape[-1])
    tokens = torch.arange(vocab_size)[None]
    before = module.to_logits(hidden).detach().clone()
    vectors = module.embed(tokens).detach()[0].clone()
    logits = module.to_logits(hidden).detach().clone()
    leaf = hidden.detach().clone().requires_grad_()
    through = module.to_logits(leaf * 1)
    uses = [lambda: module.embed(tokens), lambda: module.to_logits(hidden)]
    return {
        "five embeddings": module.embed(tokens[:, :5]).detach().clone(),
        "vectors": vectors,
        "logits before": before,
        "logits": logits,
        "numbers that an optimiser is handed": numbers_in(module),
        "numbers that it may change": trainable_numbers_in(module),
        "gradient": torch.autograd.grad(through.sum(), leaf, allow_unused=True)[0] if through.requires_grad else None,
        "steps": [_step(module, use, uses) for use in uses],
    }


def view(runs, vocab_size, hidden):
    """Say what can be seen."""
    vectors, logits = runs["vectors"], runs["logits"]
    seen = {
        "the shape of the embeddings": str(tuple(runs["five embeddings"].shape)),
        "the shape of the logits": str(tuple(logits.shape)),
        "numbers that an optimiser is handed": runs["numbers that an optimiser is handed"],
        "numbers that it may change": runs["numbers that it may change"],
        "different vectors": len({tuple(vector.tolist()) for vector in vectors}),
        "token 0 has a vector": bool(vectors[0].any()),
        "logits against products with the embeddings": _compare(logits, hidden @ vectors.T),
        "calling embed leaves the logits as they were": torch.equal(runs["logits before"], logits),
        "hidden vectors get a gradient": runs["gradient"] is not None,
    }
    for name, (before, after) in zip(USES, runs["steps"], strict=True):
        moved = [use for use, one, other in zip(USES, before, after, strict=True) if not torch.equal(one, other)]
        seen[f"a step on the {name} moves"] = " and ".join(moved) or "nothing"
    return seen


def _compare(logits: Tensor, products: Tensor) -> str:
    if logits.shape != products.shape:
        return "of another shape"
    if torch.allclose(logits, products, rtol=1e-4, atol=1e-5):
        return "equal"
    ratio = logits / products
    if torch.allclose(ratio, ratio.flatten()[0].expand_as(ratio), rtol=1e-3):
        return f"times {ratio.flatten()[0].item():.2g}"
    sums = logits.sum(dim=-1)
    if torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return "of sum 1"
    return "all between -1 and 1" if logits.abs().max() <= 1.0001 else "other numbers"


def _step(module, use, uses):
    """Take one step of gradient descent on the squares of one use; return what all uses give before and after."""
    before = [each().detach().clone() for each in uses]
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    loss = (use() + 0.1).square().sum()
    if trained and loss.requires_grad:
        gradients = torch.autograd.grad(loss, trained, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(trained, gradients, strict=True):
                if gradient is not None:
                    parameter -= 0.01 * gradient
    return before, [each().detach().clone() for each in uses]


PROPERTIES = [
    fact(
        "logits against products with the embeddings",
        "equal",
        "A logit should be the dot product of a hidden vector with what `embed` gives for the token.",
        id="logits_are_products",
    ),
    fact(
        "a step on the logits moves",
        "embeddings and logits",
        "A training step on the logits should move what `embed` gives: is there one parameter or two?",
        id="tied_from_logits",
    ),
    fact(
        "a step on the embeddings moves",
        "embeddings and logits",
        "A training step on the embeddings should move the logits: is there one parameter or two?",
        id="tied_from_embeddings",
    ),
    fact(
        "numbers that an optimiser is handed",
        lambda vocab_size, hidden: vocab_size * hidden.shape[-1],
        "There are as many numbers to learn as the table has, tokens times width, and no others.",
        id="one_table",
    ),
    fact(
        "hidden vectors get a gradient",
        True,
        "The layers before the projection learn through it: the gradient should reach the hidden vectors.",
        id="gradient_passes",
    ),
]


class TiedEmbedding(nn.Module):
    """A table with one learned vector for each token, used at both ends of a model."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        ...

    def embed(self, token_ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """Give each token its vector."""
        ...

    def to_logits(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens vocab_size"]:
        """Give the dot product of each hidden vector with every token's vector."""
        ...


class Solution(nn.Module):
    """A table with one learned vector for each token, used at both ends of a model."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)

    def embed(self, token_ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """Give each token its vector."""
        return self.table(token_ids)

    def to_logits(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens vocab_size"]:
        """Give the dot product of each hidden vector with every token's vector."""
        return hidden @ self.table.weight.T


class Reference(nn.Module):
    """Two modules of torch that hold one and the same parameter."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.to_logits = nn.Linear(d_model, vocab_size, bias=False)
        self.to_logits.weight = self.embed.weight


def _sizes_and_hidden(generator):
    vocab_size, d_model = drawn(generator, 7, 9), drawn(generator, 4, 5)
    return vocab_size, torch.randn(2, drawn(generator, 3, 6), d_model, generator=generator)


exercise = Exercise(
    id="transformer.tied_embeddings",
    title="One table at both ends",
    statement="""
The Transformer paper embeds its tokens and projects to the vocabulary with the same matrix (section 3.4). Write the
module: `embed` looks up each token's vector, `to_logits` gives the dot product of each hidden vector with the vector of
every token. There is **one** learned table: a training step that changes what `to_logits` gives changes what `embed`
gives, and the gradients of both uses add up. No bias, no scale.
""".strip(),
    stub=TiedEmbedding,
    reference=Reference,
    solution=Solution,
    cases=(Case(name="a small vocabulary", inputs=_sizes_and_hidden, points=3),),
    hints="""
How many numbers should `parameters()` hold, for 7 tokens of width 4? And after a training step, what keeps two tables
equal?

Equal numbers are not enough: an optimiser changes parameters, and two parameters get two different gradients. Keep a
single one, and use it twice.

Make an `nn.Embedding`. In `to_logits` multiply by the transpose of its weight; no second module is needed. If you
prefer an `nn.Linear`, its weight must *be* the embedding's parameter.
""",
    properties=PROPERTIES,
    observe=observe,
    view=view,
    forbids=("TokenEmbedding", "Transformer"),
    difficulty=2,
    minutes=15,
    section="07-transformer",
)

exercise.mutations(r"""
two_tables: "d_model)\n\n" -> "d_model)\n        self.other = nn.Parameter(torch.randn(vocab_size, d_model))\n\n",
  "self.table.weight.T" -> "self.other.T"
    There are two tables, with nothing in common: the logits are no products with what `embed` gives. Use one parameter
    twice.
copied: "d_model)\n\n" -> "d_model)\n        self.other = nn.Parameter(self.table.weight.detach().clone())\n\n",
  "self.table.weight.T" -> "self.other.T"
    The tables are equal now, but not tied: one is a copy, and the first training step moves them apart. Use one
    parameter twice.
shared_storage: "d_model)\n\n" -> "d_model)\n        self.other = nn.Parameter(self.table.weight.data)\n\n",
  "self.table.weight.T" -> "self.other.T"
    Two parameters share their memory. They move together, but an optimiser is handed twice as many numbers, and each
    parameter sees the gradient of one use only. Share the parameter, not its data.
with_bias: "d_model)\n\n" -> "d_model)\n        self.bias = nn.Parameter(torch.randn(vocab_size))\n\n",
  "self.table.weight.T" -> "self.table.weight.T + self.bias"
    The table is tied, but your projection has a bias besides: some more numbers to learn, which the exercise does not
    ask for.
logits_detached: "weight.T" -> "weight.detach().T"
    The table does not learn from the logits: in `to_logits` it has left the graph. Both uses should send their
    gradient.
embedding_detached: "self.table(token_ids)" -> "self.table(token_ids).detach()"
    The table does not learn from the embeddings: in `embed` it has left the graph. Both uses should send their
    gradient.
hidden_detached: "hidden @" -> "hidden.detach() @"
    No gradient passes from the logits to the hidden vectors: all layers before them would learn nothing.
scaled: "weight.T" -> "weight.T / hidden.shape[-1] ** 0.5"
    Your logits are the products with what `embed` gives, times a number: you scale one of the two by the root of the
    width. Some models do; here both use the table as it is.
probabilities: "hidden @ self.table.weight.T" -> "(hidden @ self.table.weight.T).softmax(dim=-1)"
    Your rows sum to 1: these are probabilities. Logits are what goes into the softmax.
writes_into_the_table: "return self.table(token_ids)" ->
  "self.table.weight.data /= self.table.weight.data.norm(dim=1, keepdim=True)\n        return self.table(token_ids)"
    Calling `embed` changes the table: after it, the logits of the same hidden vectors are others.
""")
