"""Exercise: mend the three masks of a translator."""

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.masks import causal_mask, padding_mask


def three_masks(
    source_ids: Int[Tensor, "batch source"], target_ids: Int[Tensor, "batch target"], pad_id: int
) -> tuple[Bool[Tensor, "batch 1 1 source"], Bool[Tensor, "batch 1 target target"], Bool[Tensor, "batch 1 1 source"]]:
    """A colleague's masks (True = may attend): encoder, decoder, and the decoder's look at the memory."""
    real_source = rearrange(source_ids != pad_id, "batch source -> batch 1 1 source")
    real_target = rearrange(target_ids != pad_id, "batch target -> batch 1 1 target")
    past = causal_mask(target_ids.shape[1])
    return real_source, real_target | past, real_target


def solution(
    source_ids: Int[Tensor, "batch source"], target_ids: Int[Tensor, "batch target"], pad_id: int
) -> tuple[Bool[Tensor, "batch 1 1 source"], Bool[Tensor, "batch 1 target target"], Bool[Tensor, "batch 1 1 source"]]:
    """The three masks (True = may attend): encoder, decoder, and the decoder's look at the memory."""
    real_source = rearrange(source_ids != pad_id, "batch source -> batch 1 1 source")
    real_target = rearrange(target_ids != pad_id, "batch target -> batch 1 1 target")
    past = causal_mask(target_ids.shape[1])
    return real_source, real_target & past, real_source


def reference(source_ids, target_ids, pad_id):
    memory = padding_mask(source_ids, pad_id)
    return memory, padding_mask(target_ids, pad_id) & causal_mask(target_ids.shape[1]), memory


def _name(place):
    return ("encoder", "decoder", "cross-attention")[place]


def _inputs(generator):
    """Padding in the middle, too; token 0 is a word here; both sequences are of one length, so that all shapes fit."""
    shape, pad_id = (drawn(generator, 3, 4), drawn(generator, 6, 8)), drawn(generator, 9, 12)
    source_ids, target_ids = torch.randint(9, (2, *shape), generator=generator)
    source_ids[0, 4:] = source_ids[2, 5] = pad_id
    target_ids[1, drawn(generator, 3, 5) :] = target_ids[2, drawn(generator, 1, 4)] = pad_id
    source_ids[1, 0] = target_ids[0, 1] = 0
    order = torch.randperm(shape[0], generator=generator)
    return source_ids[order], target_ids[order], pad_id


exercise = Exercise(
    id="transformer.three_masks",
    title="The masks of a whole model",
    statement="""A colleague's translator reaches a loss near zero, and stops with an error at the second word
that it writes. Its attention has been tested, its layers too; what is left are the three masks, which this function
makes. Two faults are in it, and as source and target have the same length in all of the colleague's batches, no shape
complains in training.

Mend them. True means "may attend". A padding token may be looked at by nobody; what it looks at itself does not
matter, and is left as it is.""",
    stub=three_masks,
    reference=reference,
    solution=solution,
    explanation="""A target token may look at what is real *and* in the past; "or" let it look ahead at every real
token, and the loss fell because the answer could be read. And the cross-attention's keys are the memory, so its mask
says which *source* tokens are real. With lengths that differ, the second fault would have been an error in the first
batch, as it is when the colleague's model writes: test with sizes that are pairwise different.""",
    cases=(Case(name="source and target of one length", inputs=_inputs),),
    hints="""
For each of the three attentions ask: whose tokens are the keys?

The decoder's mask has two conditions on a key. Must one of them hold, or both?

A loss near zero says that the answer can be seen: look at what the decoder may attend to. Then at the last of the three
results, whose keys are the encoder's output.
""",
    forbids=("padding_mask",),
    difficulty=2,
    minutes=20,
    section="07-transformer",
)

exercise.mutations(r"""
as_it_was: "real_target & past, real_source" -> "past | real_target, real_target"
    The masks are those that you were given. Which keys may target 0 look at in each attention?
either: "real_target & past" -> "real_target | past"
    One fault is mended. In the decoder a key is still allowed when it is real or in the past; a real one in the future
    is the answer itself.
targets_padding: "past, real_source" -> "past, real_target"
    One fault is mended. The cross-attention still hides what is padding in the target; its keys are another sequence.
whole_target: "real_target & past" -> "real_target.expand(-1, 1, len(past), -1)"
    The decoder hides padding and nothing else: it can read the answer.
causal_alone: "real_target & past" -> "past.expand(len(target_ids), 1, -1, -1)"
    The decoder looks back only, as it should, but at padding as well, where that stands between real tokens.
future: "& past" -> "& past.mT"
    Your decoder looks ahead and not back: rows are queries, columns are keys.
strictly_before: "& past" -> "& past.tril(-1)"
    Your tokens may not look at themselves, so the first one can look at nothing.
opposite: "return real_source, real_target & past, real_source" ->
  "return ~real_source, ~(real_target & past), ~real_source"
    All three masks are turned round: in this course True means that a key may be looked at.
padding_is_zero: "real_source = " -> "pad_id = 0\n    real_source = "
    You take 0 for padding. Which token means padding was given, and 0 is a word here.
blind_queries: "& past" -> "& past & real_target.mT"
    You blind the padding's own queries, too. What they see does not matter; the task leaves it.
memory_unmasked: "past, real_source" -> "past, torch.ones_like(real_source)"
    The cross-attention may look at padding in the source.
causal_encoder: "return real_source" -> "return real_source & past"
    Your encoder looks back only. It reads the whole sentence at once: nothing in it is an answer.
""")


@exercise.must_hold("No target token may look at one that comes after it, or it reads what it should predict.")
def looks_ahead(trial: Trial) -> str | None:
    mask = trial.value[1]
    ahead = torch.ones_like(mask, dtype=torch.bool).triu(1) & mask
    if not ahead.any():
        return None
    _, _, query, key = ahead.nonzero()[0].tolist()
    return f"In the decoder, target {query} may look at target {key}, which is not written yet."


@exercise.must_hold("No attention may look at padding; in each, ask whose tokens the keys are.")
def looks_at_padding(trial: Trial) -> str | None:
    source_ids, target_ids, pad_id = trial.inputs
    for place, token_ids in enumerate((source_ids, target_ids, source_ids)):
        seen = trial.value[place] & (token_ids == pad_id)[:, None, None]
        if seen.any():
            return f"In the {_name(place)}, padding may be looked at."
    return None


@exercise.must_hold("What is real and not in the future should be seen.")
def hidden_for_nothing(trial: Trial) -> str | None:
    for place, (mask, wanted) in enumerate(zip(trial.value, reference(*trial.inputs), strict=True)):
        if (wanted & ~mask).any():
            return f"In the {_name(place)}, {int((wanted & ~mask).sum())} pairs are hidden that need not be."
    return None
