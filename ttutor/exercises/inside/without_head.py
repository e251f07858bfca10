"""Exercise: take a head away, leaving what it always says."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def without_head(
    context: Float[Tensor, "batch heads tokens d_head"],
    typical: Float[Tensor, "texts heads places d_head"],
    head: int,
    w_output: Float[Tensor, "d_model heads_times_d_head"],
) -> Float[Tensor, "batch tokens d_model"]:
    """The output of an attention layer without one head's information: its mean over typical texts instead."""
    changed = context.clone()
    changed[:, head] = typical[:, head].mean(dim=(0, 1))
    joined = torch.cat(list(changed.unbind(dim=1)), dim=-1)
    return joined @ w_output.T


def _output(context, w_output):
    parts = w_output.reshape(len(w_output), context.shape[1], context.shape[3])
    return torch.einsum("bhtd,mhd->btm", context, parts)


def _with(context, head, instead, w_output):
    changed = context.clone()
    changed[:, head] = instead
    return _output(changed, w_output)


def reference(context, typical, head, w_output):
    return _with(context, head, typical[:, head].mean(dim=(0, 1)), w_output)


def _layer(random):
    def normal(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    n_heads, d_head, d_model = drawn(random, 4, 5), drawn(random, 3, 6), drawn(random, 8, 10)
    n_tokens, n_places = drawn(random, 5, 7), drawn(random, 7, 9)
    offsets = 2 * normal(1, n_heads, 1, d_head)
    typical = normal(drawn(random, 6, 7), n_heads, n_places, d_head) + offsets + normal(1, 1, n_places, 1)
    context = normal(drawn(random, 2, 3), n_heads, n_tokens, d_head) + offsets + 0.5
    return context, typical, drawn(random, 1, n_heads - 1), normal(d_model, n_heads * d_head)


exercise = Exercise(
    id="inside.without_head",
    title="Take away what a head tells, not what it always says",
    statement="""
`context` is what the heads of an attention layer found on the texts at hand (weights times values), before the output
projection. Put in place of one head its mean over `typical` texts, over their rows and places alike: one vector of
`d_head` numbers, the same everywhere. Then join the heads in their order and project: `w_output` is stored as
`nn.Linear` stores it, without a bias. The `context` that comes in must stay as it is.
""".strip(),
    reference=reference,
    solution=without_head,
    explanation="""
A head that always writes the same vector tells nothing; but later layers were trained with that vector in the stream,
and miss it when it becomes zero. Zero ablation charges a head for this, mean ablation does not. The mean comes from
other texts, since the mean of the texts at hand still tells something about them: much if they are few, as here, and
little if they are dozens or hundreds, as where the chapter takes `by="mean"`.
""".strip(),
    cases=(Case(name="several heads and typical texts", inputs=_layer),),
    hints="""
Which axes have to go from the typical context, and which must stay?

Change a copy: one head of it, for all rows and tokens. The columns of the output projection come in blocks of one head
each.

The mean of the head over rows and places has shape d_head and broadcasts; then the heads side by side, times the
transposed weight.
""",
    forbids=("ablate",),
    difficulty=1,
    minutes=15,
    section="12-inside",
)

exercise.mutations(r"""
zero: "typical[:, head].mean(dim=(0, 1))" -> "0.0"
    You put zeros there, and so take away what the head says always, too.
own_mean: "typical[:" -> "context[:"
    You take the mean over the texts at hand all together. It still tells what they have in common.
mean_of_each_text: "typical[:, head].mean(dim=(0, 1))" -> "context[:, head].mean(dim=1, keepdim=True)"
    Each text gets its own mean, which still tells a good deal about it.
mean_by_place: "mean(dim=(0, 1))" -> "mean(dim=0)[: context.shape[2]]"
    You keep a mean for each place. The exercise asks for one vector for all places.
mean_over_heads: "typical[:, head].mean(dim=(0, 1))" -> "typical.mean(dim=(0, 1, 2))"
    Your mean runs over all heads. Each has a space of its own; others' numbers mean nothing there.
mean_over_features: "mean(dim=(0, 1))" -> "mean()"
    Your mean is a single number. Keep the features of the head apart.
all_heads: "changed[:, head] = typical[:, head].mean(dim=(0, 1))" ->
  "changed[:] = typical.mean(dim=(0, 2))[None, :, None]"
    You took all heads away.
all_others: "context.clone()" -> "typical.mean(dim=(0, 2))[None, :, None].expand_as(context).clone()",
  "typical[:, head].mean(dim=(0, 1))" -> "context[:, head]"
    The head that should go stays, and all others are gone.
next_head: "changed = " -> "head = (head + 1) % context.shape[1]\n    changed = "
    A neighbouring head is gone. Heads count from 0.
mean_subtracted: "] = typical" -> "] -= typical"
    You subtract the mean and keep what differs from it: the very part that was to go.
interleaved: "torch.cat(list(changed.unbind(dim=1)), dim=-1)" ->
  "torch.stack(list(changed.unbind(dim=1)), dim=-1).flatten(-2)"
    The ablation is right. But columns of the output projection hold one head after the other, and you read them feature
    by feature.
untouched: "= typical[:, head].mean(dim=(0, 1))" -> "+= 0"
    Nothing was taken away.
""")


@exercise.must_hold("What the head found on these texts must not matter any more.")
def head_is_gone(trial: Trial) -> str | None:
    context, typical, head, w_output = trial.inputs
    other = context.clone()
    other[:, head] = other[:, head].flip(-1) + 1
    off = (trial.run(other, typical, head, w_output) - trial.value).abs().max().item()
    return None if off < 1e-9 else f"Another content of this head moves your output by up to {off:.3g}."


@exercise.must_hold("The other heads must still be heard.")
def others_stay(trial: Trial) -> str | None:
    context, typical, head, w_output = trial.inputs
    for one in range(context.shape[1]):
        other = context.clone()
        other[:, one] = other[:, one].flip(-1) + 1
        if one != head and torch.equal(trial.run(other, typical, head, w_output), trial.value):
            return f"Another content of head {one} moves nothing, though head {head} was to be taken away."
    return None


@exercise.must_hold("On the typical texts, the average output should be what it was.")
def average_stays(trial: Trial) -> str | None:
    _, typical, head, w_output = trial.inputs
    mean = trial.run(typical, typical, head, w_output).mean(dim=(0, 1))
    off = (mean - _output(typical, w_output).mean(dim=(0, 1))).abs().max().item()
    return None if off < 1e-9 else f"On the typical texts themselves the mean output shifts by up to {off:.3g}."
