"""Exercise: write one answer into a linear layer that has a bias, and disturb a given text least."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def written_fact(
    weight: Float[Tensor, "d_out d_in"],
    bias: Float[Tensor, " d_out"],
    key: Float[Tensor, " d_in"],
    output: Float[Tensor, " d_out"],
    other_keys: Float[Tensor, "samples d_in"],
) -> Float[Tensor, "d_out d_in"]:
    """The new weight: the layer answers the key with the output, and moves its answers to other keys least."""
    second_moment = other_keys.T @ other_keys / len(other_keys)
    direction = torch.linalg.solve(second_moment, key)
    missing = output - bias - weight @ key
    return weight + torch.outer(missing, direction) / (direction @ key)


def _edit(weight, missing, direction, reach):
    return weight + torch.outer(missing, direction) / reach


def reference(weight, bias, key, output, other_keys):
    _, triangle = torch.linalg.qr(other_keys)  # the second moment is R^T R / samples
    half = torch.linalg.solve_triangular(triangle.T, key[:, None], upper=False)
    direction = torch.linalg.solve_triangular(triangle, half, upper=True)[:, 0]
    return _edit(weight, output - bias - weight @ key, direction, direction @ key)


def others_ignored(weight, bias, key, output, other_keys):
    return _edit(weight, output - bias - weight @ key, key, key @ key)


def _layer(random):
    def normal(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    # Keys that are not centred, of unequal size by feature, and related.
    d_in, d_out = drawn(random, 6, 7), drawn(random, 3, 4)
    mixing = normal(d_in, d_in) + 2 * torch.eye(d_in, dtype=torch.float64)
    sizes = torch.tensor([0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 1.2], dtype=torch.float64)[:d_in]
    other_keys = (normal(drawn(random, 40, 50), d_in) + 1.5) * sizes @ mixing
    return normal(d_out, d_in), 1 + normal(d_out).abs(), normal(d_in), 2 * normal(d_out), other_keys


exercise = Exercise(
    id="inside.written_fact",
    title="Write a fact, and disturb the neighbours least",
    statement=r"""
A linear layer $y = Wk + b$ answers `key` with something. Give the weight $\hat W$ with which it answers this key with
`output`, the bias staying as it is, and of all such weights the one that moves the answers to `other_keys` (one a row)
least: $\tfrac1n \sum_j \|(\hat W - W)\, k_j\|^2$ is to be as small as it can be. The key need not be among them; their
second moment has an inverse.
""".strip(),
    reference=reference,
    solution=written_fact,
    explanation=r"""
With $D = \hat W - W$ we minimise $\mathrm{tr}(D C D^\top)$ under $D k = m$, where $C$ is the second moment of the other
keys and $m$ what is missing. Setting the derivative of the Lagrangian to zero gives $D C = \lambda k^\top$, so $D =
\lambda (C^{-1}k)^\top$, and the condition fixes $\lambda = m / (k^\top C^{-1} k)$. The second moment is not centred:
what counts is how far answers move, and a shift common to all keys moves them too.
""".strip(),
    cases=(Case(name="many other keys", inputs=_layer),),
    hints="""
Two questions: by how much is the present answer wrong? And in which input direction may the weight change without
others noticing?

The change is one column times one row. The column is what is missing; the row is a direction that the other keys have
little of, scaled so that it gives 1 on the key.

Row: the inverse second moment of the other keys times the key, divided by its product with it. Column: output minus
bias minus what the weight makes of the key.
""",
    forbids=("rank_one_edit", "edited"),
    difficulty=2,
    minutes=25,
    section="12-inside",
)

exercise.mutations(r"""
bias_forgotten: " - bias" -> ""
    The layer now answers too much by exactly its bias. What must the weight give alone?
bias_added: "- bias" -> "+ bias"
    The bias has the wrong sign: the answer is off by twice the bias.
not_inverted: "torch.linalg.solve(second_moment, key)" -> "second_moment @ key"
    The key is answered rightly, and you change the weight where the others are strongest. It should be where they are
    weakest.
centred: "second_moment = " -> "other_keys = other_keys - other_keys.mean(dim=0)\n    second_moment = "
    The key is answered rightly. But you took the covariance about the mean; answers also move by what all keys have in
    common.
old_answer_kept: " - weight @ key" -> ""
    You add the whole new answer to the old one. Only what is missing is to be added.
not_divided: " / (direction @ key)" -> ""
    Direction right, size wrong: put the key in, and see by which factor you miss.
divided_by_the_key: "(direction @ key)" -> "(key @ key)"
    You divide by the square of the key. The row has to give 1 on the key; yours is another.
divided_by_the_direction: "(direction @ key)" -> "(direction @ direction)"
    You divide by the square of the direction. It meets the key, not itself.
change_alone: "weight + torch" -> "torch"
    This is the change of the weight. The exercise asks for the new weight.
wrong_sign: "weight + torch" -> "weight - torch"
    You move away from the wanted answer, by as much as you should move towards it.
spread_over_features: "torch.linalg.solve(second_moment, key)" -> "key / other_keys.square().mean(dim=0)"
    The key is answered rightly. You weigh each feature by its own spread and ignore that features of the other keys go
    together.
""")


exercise.mistake(
    "The key is answered rightly, by the smallest change of the weight. The exercise asks for the smallest "
    "change of the other answers.",
    id="others_ignored",
)(others_ignored)


@exercise.must_hold("The key comes first: it must be answered exactly.")
def answers_the_key(trial: Trial) -> str | None:
    _, bias, key, output, _ = trial.inputs
    off = (trial.value @ key + bias - output).abs().max().item()
    return None if off < 1e-6 else f"With its bias the layer answers the key {off:.3g} away from the output."


@exercise.must_hold("The other answers should move less than under the smallest change of the weight.")
def moves_others_less(trial: Trial) -> str | None:
    weight, bias, key, output, other_keys = trial.inputs
    simple = others_ignored(weight, bias, key, output, other_keys)
    mine, other = ((other_keys @ (new - weight).T).square().mean().item() for new in (trial.value, simple))
    return (
        None if mine < other else f"The mean square change of other answers is {mine:.3g}; one can do with {other:.3g}."
    )
