"""Exercise: a fixed table that belongs to a module and is not trained."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.facts import fact, numbers_in, trainable_numbers_in


class FixedPositions(nn.Module):
    """Add to each token its row of a table that is never trained."""

    def __init__(self, table: Float[Tensor, "max_len d_model"]) -> None:
        super().__init__()
        ...

    def forward(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Add row i of the table to token i of every sentence."""
        ...


class Solution(nn.Module):
    """Add to each token its row of a table that is never trained."""

    def __init__(self, table: Float[Tensor, "max_len d_model"]) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Add row i of the table to token i of every sentence."""
        return hidden + self.table[: hidden.shape[1]]


class Reference(nn.Module):
    """The same, sentence by sentence and token by token."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("rows", table.clone())

    def forward(self, hidden):
        return torch.stack([torch.stack([self.rows[i] + token for i, token in enumerate(tokens)]) for tokens in hidden])


def observe(answer, table, hidden):
    """Build a module, run it, train it, move it, and give what it makes of the hidden vectors each time.

    A tensor that does not move with its module would need a second device to be found out, or a narrower dtype: where
    one of two tensors is still in float32, so is their sum.
    """
    module = answer(table)
    result = module(hidden)
    leaf = hidden.detach().clone().requires_grad_()
    through = module(leaf * 1)  # not the leaf itself, into which nobody may write
    numbers = {
        "numbers that an optimiser is handed": numbers_in(module),
        "numbers that it may change": trainable_numbers_in(module),
    }
    return numbers | {
        "the result": result,
        "the gradient": torch.autograd.grad(through.sum(), leaf)[0] if through.requires_grad else torch.zeros(1),
        "after a step of training": _trained(module, hidden.detach()),
        "in float64": module.double()(hidden.detach().double()),
        "in float16": module.half()(hidden.detach().half()),
    }


def _trained(module, hidden):
    """What the module gives after an optimiser has changed all that it found."""
    found = list(module.requires_grad_(True).parameters())
    if found:
        module(hidden).square().sum().backward()
        torch.optim.SGD(found, lr=1.0).step()
    return module(hidden).detach()


def view(value, table, hidden):
    """Say what the results show."""
    result = value["the result"].detach()
    passes = torch.equal(value["the gradient"], torch.ones_like(hidden))
    wide, narrow = value["in float64"], value["in float16"]
    moved = narrow.dtype == torch.float16 and torch.allclose(narrow.float(), result, rtol=1e-2, atol=1e-2)
    is_wide = wide.dtype == torch.float64 and torch.allclose(wide, result.double(), rtol=1e-5, atol=1e-5)
    facts = {name: value[name] for name in ("the result", *NUMBERS)}
    return facts | {
        "the gradient passes to the hidden vectors": passes,
        "a step of training leaves the table as it was": torch.equal(value["after a step of training"], result),
        "float64 in, float64 out": is_wide,
        "the table moved along when the model was moved": moved,
    }


NUMBERS = ("numbers that an optimiser is handed", "numbers that it may change")


def _fewer_tokens_than_rows(generator):
    d_model = drawn(generator, 3, 4)
    table = torch.randn(drawn(generator, 8, 12), d_model, generator=generator)
    return table, torch.randn(drawn(generator, 2, 3), drawn(generator, 5, 6), d_model, generator=generator)


exercise = Exercise(
    id="positions.position_table",
    title="A table that travels but is not trained",
    statement="""
Sinusoidal positions are computed once and never trained. Write the module that keeps such a table and adds its rows:
row i to token i of every sentence. The table has more rows than most sentences have tokens.

No optimiser may find the table in `parameters()`, and it must travel with the model: after `model.to("cuda")` or
`model.double()` the module still works. Gradients pass through it to `hidden`.
""".strip(),
    stub=FixedPositions,
    reference=Reference,
    solution=Solution,
    cases=(Case(name="more rows than tokens", inputs=_fewer_tokens_than_rows, points=3),),
    hints="""
A module keeps two kinds of tensors: those that are trained, and those that belong to it all the same. What is the
second kind called?

A plain attribute is neither: `model.to(...)` passes it by. Look up `register_buffer`.

Register the table as a buffer in `__init__`. In `forward`, take as many of its first rows as there are tokens and add
them; they broadcast over the batch.
""",
    properties=[
        fact(
            "numbers that an optimiser is handed",
            0,
            "The module has nothing to learn, so `parameters()` should be empty.",
            id="nothing_to_train",
        ),
        fact(
            "the table moved along when the model was moved",
            True,
            "The table should move when the model does: how does the module know that it is its own?",
            id="travels",
        ),
        fact(
            "the gradient passes to the hidden vectors",
            True,
            "What comes before this module is trained too: the gradient should pass through the sum.",
            id="gradient_passes",
        ),
    ],
    observe=observe,
    view=view,
    forbids=("SinusoidalPositions", "LearnedPositions"),
    difficulty=1,
    minutes=10,
    section="04-positions",
)

exercise.mutations("""
parameter: 'self.register_buffer("table", table)' -> "self.table = nn.Parameter(table)"
or: 'self.register_buffer("table", table)' -> "self.positions = nn.Embedding.from_pretrained(table, freeze=False)",
  "self.table[: hidden.shape[1]]" -> "self.positions(torch.arange(hidden.shape[1]))"
    The values are right, but the table is a parameter, so it would be trained, and soon be no table of sines any more.
    What else can a module keep?
frozen_parameter: 'self.register_buffer("table", table)' -> "self.table = nn.Parameter(table, requires_grad=False)"
or: 'self.register_buffer("table", table)' -> "self.positions = nn.Embedding.from_pretrained(table)",
  "self.table[: hidden.shape[1]]" -> "self.positions(torch.arange(hidden.shape[1]))"
    The table is frozen but still listed among the parameters: it is counted as learnt, and whoever unfreezes the model
    trains it. A buffer is made for this.
plain_tensor: 'self.register_buffer("table", table)' -> "self.table = table"
    Your table stays behind when the model moves to another device: a plain attribute is not the module's. Register it.
whole_table: "self.table[: hidden.shape[1]]" -> "self.table"
    You add the whole table, but there are fewer tokens than rows. Take as many rows as you need.
from_one: "[: hidden.shape[1]]" -> "[1 : hidden.shape[1] + 1]"
    Positions start at 0: your first token gets row 1.
last_rows: "[: hidden.shape[1]]" -> "[-hidden.shape[1] :]"
    You take the last rows of the table. The first token has the first row.
along_the_batch: "[: hidden.shape[1]]" -> "[: hidden.shape[0], None]"
    All tokens of a sentence get the same row: your rows run along the batch. Which axis holds the tokens?
first_row_for_all: "[: hidden.shape[1]]" -> "[0]"
    Every token gets row 0, so the model still cannot tell their order.
multiplied: "hidden + " -> "hidden * "
    You multiply by the positions. They are added.
only_positions: "hidden + self.table[: hidden.shape[1]]" -> "self.table[: hidden.shape[1]].expand_as(hidden)"
    You return the positions alone: what the tokens mean is lost.
table_ignored: '"table", table' -> '"table", torch.rand_like(table)'
    The table that was handed over has no effect: your module adds one of its own.
scaled_hidden: "hidden + " -> "hidden * hidden.shape[-1] ** 0.5 + "
    You scale the hidden vectors by the root of their width. That belongs to the embedding; here positions are added and
    nothing else.
converts_hidden: "hidden + self.table[: hidden.shape[1]]" -> "(hidden + self.table[: hidden.shape[1]]).float()"
    The result is float32 whatever comes in. Take the dtype from the input, and name none.
detached: "hidden + " -> "hidden.detach() + "
    The values are right, but no gradient comes back to the hidden vectors, so that the embeddings before them would
    learn nothing.
inplace: "hidden + self.table[: hidden.shape[1]]" -> "hidden.add_(self.table[: hidden.shape[1]])"
    Your result is right, but the hidden vectors you were given have changed. `+=` edits the caller's tensor.
""")
