"""Exercise: a fixed table that belongs to a module and is not trained."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

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
    """Build a module, run it, move it, and say what can be seen of it.

    A tensor that does not move with its module would need a second device to be found out, or a narrower dtype: where
    one of two tensors is still in float32, so is their sum.
    """
    module = answer(table)
    result = module(hidden)
    leaf = hidden.detach().clone().requires_grad_()
    through = module(leaf * 1)  # not the leaf itself, into which nobody may write
    return {
        "the result": result,
        "numbers that an optimiser is handed": numbers_in(module),
        "numbers that it may change": trainable_numbers_in(module),
        "the gradient passes to the hidden vectors": through.requires_grad and _passes(through, leaf),
        "float64 in, float64 out": module.double()(hidden.double()).dtype == torch.float64,
        "the table moved along when the model was moved": module.half()(hidden.half()).dtype == torch.float16,
    }


def _passes(through, leaf):
    return torch.autograd.grad(through.sum(), leaf, allow_unused=True)[0] is not None


def _fewer_tokens_than_rows(generator):
    return torch.randn(9, 4, generator=generator), torch.randn(2, 5, 4, generator=generator)


exercise = Exercise(
    id="positions.position_table",
    title="A table that travels but is not trained",
    statement="""
Sinusoidal positions are computed once and never trained. Write the module that keeps such a table and adds its rows:
row i to token i of every sentence. The table has more rows than most sentences have tokens.

No optimiser may find the table in `parameters()`, and it must travel with the model: after `model.to("cuda")` or
`model.double()` the module still works.
""".strip(),
    stub=FixedPositions,
    reference=Reference,
    solution=Solution,
    cases=(Case(name="nine rows and five tokens", inputs=_fewer_tokens_than_rows, points=3),),
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
    forbids=("SinusoidalPositions", "LearnedPositions"),
    difficulty=1,
    minutes=10,
    section="04-positions",
)


class Buffered(nn.Module):
    """A table that is kept as it should be."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)

    def rows(self, hidden):
        return self.table[: hidden.shape[1]]

    def forward(self, hidden):
        return hidden + self.rows(hidden)


@exercise.mistake(
    "The values are right, but the table is a parameter, so it would be trained, and soon be no table of sines any "
    "more. What else can a module keep?",
    id="parameter",
)
class AsParameter(Buffered):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.table = nn.Parameter(table)


@exercise.like("parameter")
class AsTrainedEmbedding(AsParameter):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.positions = nn.Embedding.from_pretrained(table, freeze=False)

    def rows(self, hidden):
        return self.positions(torch.arange(hidden.shape[1], device=hidden.device))


@exercise.mistake(
    "The table is frozen but still listed among the parameters: it is counted as learnt, and whoever unfreezes the "
    "model trains it. A buffer is made for this.",
    id="frozen_parameter",
)
class AsFrozenParameter(Buffered):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.table = nn.Parameter(table, requires_grad=False)


@exercise.like("frozen_parameter")
class AsFrozenEmbedding(AsTrainedEmbedding):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.positions = nn.Embedding.from_pretrained(table)


@exercise.mistake(
    "Your table stays behind when the model moves to another device: a plain attribute is not the module's. Register "
    "it.",
    id="plain_tensor",
)
class AsPlainTensor(Buffered):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.table = table


@exercise.mistake(
    "You add the whole table, but there are fewer tokens than rows. Take as many rows as you need.",
    id="whole_table",
)
class WholeTable(Buffered):
    def rows(self, hidden):
        return self.table


@exercise.mistake(
    "Positions start at 0: your first token gets row 1.",
    id="from_one",
)
class FromOne(Buffered):
    def rows(self, hidden):
        return self.table[1 : hidden.shape[1] + 1]


@exercise.mistake(
    "You take the last rows of the table. The first token has the first row.",
    id="last_rows",
)
class LastRows(Buffered):
    def rows(self, hidden):
        return self.table[-hidden.shape[1] :]


@exercise.mistake(
    "All tokens of a sentence get the same row: your rows run along the batch. Which axis holds the tokens?",
    id="along_the_batch",
)
class AlongTheBatch(Buffered):
    def rows(self, hidden):
        return self.table[: hidden.shape[0], None]


@exercise.mistake(
    "Every token gets row 0, so the model still cannot tell their order.",
    id="first_row_for_all",
)
class FirstRowForAll(Buffered):
    def rows(self, hidden):
        return self.table[0]


@exercise.mistake(
    "You multiply by the positions. They are added.",
    id="multiplied",
)
class Multiplied(Buffered):
    def forward(self, hidden):
        return hidden * self.rows(hidden)


@exercise.mistake(
    "You return the positions alone: what the tokens mean is lost.",
    id="only_positions",
)
class OnlyPositions(Buffered):
    def forward(self, hidden):
        return self.rows(hidden).expand_as(hidden)


@exercise.mistake(
    "The table that was handed over has no effect: your module adds one of its own.",
    id="table_ignored",
)
class TableIgnored(Buffered):
    def __init__(self, table):
        super().__init__(torch.rand_like(table))


@exercise.mistake(
    "You scale the hidden vectors by the root of their width. That belongs to the embedding; here positions are added "
    "and nothing else.",
    id="scaled_hidden",
)
class ScaledHidden(Buffered):
    def forward(self, hidden):
        return hidden * hidden.shape[-1] ** 0.5 + self.rows(hidden)


@exercise.mistake(
    "The result is float32 whatever comes in. Take the dtype from the input, and name none.",
    id="converts_hidden",
)
class ConvertsHidden(Buffered):
    def forward(self, hidden):
        return (hidden + self.rows(hidden)).float()


@exercise.mistake(
    "The values are right, but no gradient comes back to the hidden vectors, so that the embeddings before them would "
    "learn nothing.",
    id="detached",
)
class Detached(Buffered):
    def forward(self, hidden):
        return hidden.detach() + self.rows(hidden)


@exercise.mistake(
    "Your result is right, but the hidden vectors you were given have changed. `+=` edits the caller's tensor.",
    id="inplace",
)
class InPlace(Buffered):
    def forward(self, hidden):
        hidden += self.rows(hidden)
        return hidden
