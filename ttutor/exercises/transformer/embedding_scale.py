"""Exercise: token embeddings, scaled as in the paper."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.embeddings import TokenEmbedding
from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.encoder.gradient import gradient_like
from ttutor.exercises.exercise import Case, Exercise, Property, Trial
from ttutor.exercises.values import place_of_largest


def embed_tokens(
    token_ids: Int[Tensor, "batch tokens"], table: Float[Tensor, "vocab_size d_model"]
) -> Float[Tensor, "batch tokens d_model"]:
    """Look up each token's row of the table and scale it for the layers to come."""
    return table[token_ids] * math.sqrt(table.shape[-1])


def reference(token_ids, table):
    """The package's own layer, with this table in it."""
    layer = TokenEmbedding(*table.shape).to(table.dtype)
    return torch.func.functional_call(layer, {"table.weight": table}, (token_ids,))


def _narrow(generator):
    """A width whose root is no whole number; the last token of the vocabulary is in the text, and token 0 twice."""
    vocab_size = drawn(generator, 11, 14)
    token_ids = torch.randint(vocab_size, (3, drawn(generator, 5, 6)), generator=generator)
    token_ids[0, 1] = token_ids[2, 4] = 0
    token_ids[1, 2] = vocab_size - 1
    return token_ids, torch.randn(vocab_size, one_of(generator, (7, 8, 10)), generator=generator)


def _wide(generator):
    """A width whose root is whole, in float64; the last tokens of the vocabulary are not in the text."""
    token_ids = torch.randint(10, (2, 6), generator=generator)
    return token_ids, torch.randn(13, one_of(generator, (4, 9)), generator=generator, dtype=torch.float64)


def _rows_of_other_tokens(trial: Trial) -> str | None:
    """Look at the direction of each vector: it should be that of the token's row."""
    token_ids, table = trial.inputs
    rows = table[token_ids]
    cosines = torch.nn.functional.cosine_similarity(trial.value, rows, dim=-1)
    place = place_of_largest(-cosines)
    if cosines[place] > 0.999:
        return None
    return f"The vector at {place} is no multiple of row {token_ids[place].item()} of the table."


def _factor_that_varies(trial: Trial) -> str | None:
    """Compare how much longer than its row each vector is."""
    token_ids, table = trial.inputs
    factors = trial.value.norm(dim=-1) / table[token_ids].norm(dim=-1)
    least, most = factors.min().item(), factors.max().item()
    wanted = table.shape[-1]
    if most - least > 1e-3 * most:
        return f"One row is multiplied by {least:.4g}, another by {most:.4g}."
    if abs(most - math.sqrt(wanted)) < 1e-4:
        return None
    return f"Every row is multiplied by {most:.4g}, which squared is {most**2:.4g}; d_model is {wanted}."


exercise = Exercise(
    id="transformer.embedding_scale",
    title="Embeddings on the scale of the positions",
    statement="""
Write the first step of the model: each token id picks its row of the embedding table, and the row is multiplied by
$\\sqrt{d_\\mathrm{model}}$ (Vaswani et al. 2017, section 3.4).

The table's entries start with standard deviation $1/\\sqrt{d_\\mathrm{model}}$, because the same table serves as output
projection; the factor lifts them to the size of the positions that are added next. The line stands inside `embed` in
the chapter: write it without looking back, as a function that a training loop may call. Gradients must flow back to the
table; your function must not change the table's entries.
""".strip(),
    reference=reference,
    solution=embed_tokens,
    cases=(
        Case(name="a width whose root is no whole number", inputs=_narrow),
        Case(name="a width whose root is whole, in float64", inputs=_wide),
    ),
    explanation="""
Multiplying what was looked up, and not the table, leaves the table as it is for its second use as output projection,
and gives autograd a way back to the rows that were used. The factor is one number for the whole model: a row that has
become long in training stays longer than others.
""".strip(),
    hints="""
A table can be indexed with a whole tensor of ids at once. What shape does `table[token_ids]` have?

The factor is the same for every row, and comes from the table's shape: which of its two sizes is d_model?

One line: index the table with the ids and multiply by `math.sqrt` of its last size. Multiply what you took out, not the
table.
""",
    properties=[
        Property(
            id="right_rows",
            says="Each vector should point where its token's row points: which row did you take?",
            broken=_rows_of_other_tokens,
        ),
        Property(
            id="one_factor",
            says="All rows are multiplied by one number, the root of the width: where does yours come from?",
            broken=_factor_that_varies,
        ),
        gradient_like(
            reference,
            ("token_ids", "table"),
            "The vectors are right, but the table would not be trained as it should: does something on the "
            "way leave autograd?",
        ),
    ],
    forbids=("TokenEmbedding",),
    difficulty=1,
    minutes=5,
    section="07-transformer",
)

exercise.mutations("""
no_scale: " * math.sqrt(table.shape[-1])" -> ""
    You return the rows as they are. Next to the positions, whose entries lie between −1 and 1, such embeddings are
    √d_model too small. What does section 3.4 of the paper do?
div: "* math" -> "/ math"
    Your embeddings have become smaller: you divide by √d_model, as attention's scores are divided by √d_head. Rows that
    start small need the opposite.
mul_d: "math.sqrt(table.shape[-1])" -> "table.shape[-1]"
    You multiply by d_model, not by its root. The rows' entries start with a standard deviation of 1/√d_model: which
    factor brings that to 1?
scale_vocab: "-1]" -> "0]"
    Scale with the width, not with the vocabulary: you take the root of the number of rows. Which axis of the table has
    d_model entries?
whole_root: "sqrt" -> "isqrt"
or: "math.sqrt(table.shape[-1])" -> "int(table.shape[-1] ** 0.5)"
    Right where d_model is a square number; else your root is cut down to a whole number. √7 is 2.65, not 2.
normalised: "table[token_ids]" -> "functional.normalize(table[token_ids], dim=-1)"
    All your vectors have one length. The table's rows may differ in length, and that is learnt: multiply each by the
    same factor, and measure none.
summed: "token_ids]" -> "token_ids].sum(dim=-2)"
    You add up the tokens of a sequence, which is a bag of words. Each token keeps a vector of its own.
detached: "[token_ids" -> ".detach()[token_ids"
or: "[token_ids" -> ".data[token_ids"
or: "table[token_ids]" -> "nn.Embedding.from_pretrained(table)(token_ids)"
    The vectors are right, but no gradient reaches the table, so that it would never be trained: look for `.detach()`,
    `.data`, `no_grad` or `from_pretrained`, which freezes.
""")


@exercise.mistake(
    "Your result is right this time, but you have scaled the table itself: in the second call it would be scaled "
    "twice. Scale what you took from it.",
    id="table_changed",
)
def scaled_once_more(token_ids, table):
    table *= math.sqrt(table.shape[-1])
    return table[token_ids]


@exercise.mistake(
    "The numbers are right, but a table in float64 gives vectors in float32. Somewhere your code names a dtype, or "
    "takes the default one, instead of the table's.",
    id="fixed_dtype",
)
def new_buffer(token_ids, table):
    vectors = torch.empty(*token_ids.shape, table.shape[-1], dtype=torch.float32)
    for place in torch.cartesian_prod(*map(torch.arange, token_ids.shape)).tolist():
        vectors[tuple(place)] = table[token_ids[tuple(place)]]
    return vectors * math.sqrt(table.shape[-1])
