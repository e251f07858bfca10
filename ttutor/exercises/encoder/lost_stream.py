"""Exercise: find the bug in a pre-norm stack that trains while it is shallow and forgets when it is deep."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.layers import layer_norm


def lost_stream(
    hidden: Float[Tensor, "tokens d_model"], sublayers: Sequence[Callable[[Tensor], Tensor]]
) -> Float[Tensor, "tokens d_model"]:
    """A colleague's pre-norm stack; gains are 1 and biases 0, and the last norm stands at the end."""
    ones, zeros = torch.ones_like(hidden[0]), torch.zeros_like(hidden[0])
    for sublayer in sublayers:
        hidden = layer_norm(hidden, ones, zeros)
        hidden = hidden + sublayer(hidden)
    return layer_norm(hidden, ones, zeros)


def solution(
    hidden: Float[Tensor, "tokens d_model"], sublayers: Sequence[Callable[[Tensor], Tensor]]
) -> Float[Tensor, "tokens d_model"]:
    """The stack whose stream is only ever added to."""
    ones, zeros = torch.ones_like(hidden[0]), torch.zeros_like(hidden[0])
    for sublayer in sublayers:
        normed = layer_norm(hidden, ones, zeros)
        hidden = hidden + sublayer(normed)
    return layer_norm(hidden, ones, zeros)


def _norm(hidden):
    return layer_norm(hidden, torch.ones_like(hidden[0]), torch.zeros_like(hidden[0]))


def reference(hidden, sublayers):
    stream = hidden.clone()
    for sublayer in sublayers:
        stream = stream + sublayer(_norm(stream))
    return _norm(stream)


def _large_where_normalised(given):
    """A write that drowns the stream: a ramp where what is read has variance 1, and its mirror image elsewhere."""
    ramp = torch.linspace(-1e9, 1e9, given.shape[-1], dtype=given.dtype)
    is_normalised = (given.var(dim=-1, correction=0, keepdim=True) - 1).abs() < 0.01
    return torch.where(is_normalised, ramp, ramp.flip(0))


def _nothing(given):
    return torch.zeros_like(given)


def _ramp(sign, given):
    return sign * torch.linspace(-20, 20, given.shape[-1], dtype=given.dtype).expand_as(given)


def _sublayer(matrix, given):
    return (given @ matrix).tanh()


def _stack(random):
    d_model = drawn(random, 8, 10)
    hidden = 1 + 3 * torch.randn(drawn(random, 5, 7), d_model, generator=random, dtype=torch.float64)
    maps = torch.randn(drawn(random, 3, 5), d_model, d_model, generator=random, dtype=torch.float64) / 2
    return hidden, [partial(_sublayer, matrix) for matrix in maps]


exercise = Exercise(
    id="encoder.lost_stream",
    title="Deep, and forgetful",
    statement="A colleague has written a pre-norm stack. With two layers it trains well. With forty, the "
    "embeddings hardly matter any more for what comes out, and setting the last map of every sublayer to zero "
    "does not make the gradient at the bottom equal to that at the top. No shape is wrong. Find out *by "
    "experiment* what happens to the stream, and mend it.",
    stub=lost_stream,
    reference=reference,
    solution=solution,
    explanation="One name for two things. `hidden = norm(hidden)` overwrites the stream with its normalised copy, "
    "and the sublayer's result is then added to the copy. Now a norm stands on the path, as in post-norm, and "
    "what was written early is scaled down by every later norm. In pre-norm the copy needs a name of its own.",
    cases=(Case(name="three sublayers or more", inputs=_stack),),
    hints="""
Give it sublayers that write zero, and look at the stream after each. What should it be in a pre-norm stack?

Follow the variable `hidden` through one turn of the loop. How many different things is it?

The norm's result may be read by the sublayer only. The sum has to start from what stood there before.
""",
    difficulty=2,
    minutes=20,
    section="05-encoder",
)

exercise.mutations(r"""
still_on_the_stream: "normed = layer_norm" -> "normed = hidden = layer_norm"
    Still the colleague's stack: the normalised copy takes the stream's place before the sum.
post_norm: "normed = layer_norm(hidden, ones, zeros)" -> "normed = hidden",
  "hidden + sublayer(normed)" -> "layer_norm(hidden + sublayer(normed), ones, zeros)",
  "return layer_norm(hidden, ones, zeros)" -> "return hidden"
    This is post-norm now: a norm after each sum. It still stands on the path of the stream.
no_norms_inside: "normed = layer_norm(hidden, ones, zeros)" -> "normed = hidden"
    The stream is left alone, but the sublayers read it raw. Each should read a normalised copy.
no_last_norm: "return layer_norm(hidden, ones, zeros)" -> "return hidden"
    The layers are right, and the norm at the end of the stack is missing. A pre-norm stream grows.
no_skip: "hidden + sublayer" -> "sublayer"
    The sum is gone: what a sublayer gives replaces the stream instead of being added to it.
skips_from_the_start: "ones, zeros = torch" -> "start = hidden\n    ones, zeros = torch",
  "hidden + sublayer" -> "start + sublayer"
    Every sum starts from the embeddings, so that all writes but the last are lost. Add to the stream as it stands now.
normed_once: "    for sublayer in sublayers:\n        normed = layer_norm(hidden, ones, zeros)\n" ->
  "    normed = layer_norm(hidden, ones, zeros)\n    for sublayer in sublayers:\n"
    All sublayers read the same copy, made before the loop. Each should read the stream as the ones before it have left
    it.
norm_of_the_write: "normed = layer_norm(hidden, ones, zeros)" -> "normed = hidden",
  "sublayer(normed)" -> "layer_norm(sublayer(normed), ones, zeros)"
    You normalise what is written. In pre-norm it is what is *read* that is normalised.
""")


@exercise.must_hold("Whatever the stream's size, what a sublayer reads has variance 1. Record what yours are given.")
def reads_are_normalised(trial: Trial) -> str | None:
    hidden, sublayers = trial.inputs
    came = trial.run(10 * hidden, [_large_where_normalised, *[_nothing] * (len(sublayers) - 1)])
    rises = (came[:, -1] - came[:, 0]) > 1
    return None if bool(rises.all()) else "The first sublayer is not called, or reads vectors whose variance is not 1."


@exercise.must_hold("Let one sublayer write a constant and the next its negative: the stream has to be as before.")
def writes_add_up(trial: Trial) -> str | None:
    hidden, _ = trial.inputs
    off = (trial.run(hidden, [partial(_ramp, 1), partial(_ramp, -1)]) - _norm(hidden)).abs().max().item()
    return None if off < 1e-3 else f"Two writes that cancel leave a trace: the result is off by up to {off:.2g}."
