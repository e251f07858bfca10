"""Exercise: what a decoder reads and what it must predict, from one translation."""

import torch
from jaxtyping import Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial

PAD_ID, BOS_ID, EOS_ID = 0, 2, 3


def teacher_forcing(
    token_ids: Int[Tensor, "batch target"],
) -> tuple[Int[Tensor, "batch steps"], Int[Tensor, "batch steps"]]:
    """Return what the decoder reads and, for each place, the token that it must predict there."""
    return token_ids[:, :-1], token_ids[:, 1:]


def reference(token_ids):
    return token_ids[:, :-1], token_ids[:, 1:]


def observe(answer, token_ids):
    """Return what is read and the targets; what is read where the target is padding counts as padding."""
    pair = answer(token_ids)
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and all(type(part) is Tensor for part in pair)):
        return pair
    decoder_input, targets = pair
    if decoder_input.shape == targets.shape and decoder_input.dtype == targets.dtype:
        decoder_input = decoder_input.masked_fill(targets == PAD_ID, PAD_ID)
    return decoder_input, targets


def _unequal_lengths(generator):
    lengths = (drawn(generator, 6, 9), 2, 4, 5)[: drawn(generator, 3, 4)]
    words = [torch.randint(4, 50, (length,), generator=generator).tolist() for length in lengths]
    sentences = [[BOS_ID, *sentence, EOS_ID] for sentence in words]
    longest = max(map(len, sentences))
    return (torch.tensor([sentence + [PAD_ID] * (longest - len(sentence)) for sentence in sentences]),)


exercise = Exercise(
    id="training.teacher_forcing",
    title="What to read, and what to say",
    statement="""
Each row of `token_ids` is a translation: the start mark `<bos>` (2), words, the end mark `<eos>` (3), and padding (0)
where the row is shorter than the longest. Return two tensors of equal shape, both one place shorter than the rows: what
the decoder **reads**, and its **targets**, so that at every place the target is the token that follows what has been
read so far.

The first prediction is made from `<bos>` alone, and the last one of every row is its `<eos>`. Where the target is
padding the loss leaves the place out, so there it does not matter what is read.
""".strip(),
    reference=reference,
    solution=teacher_forcing,
    cases=(Case(name="sentences of unequal lengths", inputs=_unequal_lengths, points=2),),
    hints="""
Write one sentence of three words on paper, with its marks. What does the decoder know when it is to say the first word?
And when it is to say `<eos>`?

Under every token that is read stands the token that comes next. Which token has nothing after it, and which one is
never predicted?

Both are slices of the same rows, one token shorter than they: one leaves out the last column, the other the first.
""",
    observe=observe,
    difficulty=1,
    minutes=5,
    section="08-training",
)

exercise.mutations("""
unshifted: "1:]" -> ":-1]"
or: "[:, :-1], token_ids[:, 1:]" -> ", token_ids"
    Input and target are the same, so the model only has to copy what it reads: the loss goes to 0, and what it writes
    is nonsense. What should it predict when it has read token i?
swapped: ":-1], token_ids[:, 1:" -> "1:], token_ids[:, :-1"
    Input and target are exchanged: your decoder reads a token and predicts the one before it.
shift_two: "1], token_ids[:, 1" -> "2], token_ids[:, 2"
    Your rows are shorter by two tokens, and each target is the next but one. One position too many is dropped.
drops_bos: ":-1], token_ids[:, 1" -> "1:-1], token_ids[:, 2"
    The shift is right, but the decoder begins with the first word and never predicts it. Its first input should be
    `<bos>`, from which it predicts that word.
drops_eos: "1], token_ids[:, 1:" -> "2], token_ids[:, 1:-1"
    The shift is right, but the longest sentence never gets to predict its `<eos>`: a model trained so does not learn to
    stop. Drop one column of each, not two.
unequal_shapes: "[:, 1:]" -> ""
or: "[:, :-1]" -> ""
    Input and target have different lengths, though every place that is read needs one target. Shorten both by one
    token, at opposite ends.
along_the_batch: ":, :-1], token_ids[:, " -> ":-1], token_ids["
    You shift along the batch: the targets of each sentence are the tokens of the next sentence. Which axis counts the
    tokens?
flattened: "1], token_ids[:, 1:]" -> "1].flatten(), token_ids[:, 1:].flatten()"
    All sentences have become one long row, and attention would run across them. Keep the batch axis.
""")


@exercise.mistake(
    "You cut all sentences to the length of the shortest. Padding may stay: it is masked in attention and left out of "
    "the loss."
)
def shortest_sentence(token_ids):
    length = int((token_ids != 0).sum(dim=1).min())
    return token_ids[:, : length - 1], token_ids[:, 1:length]


@exercise.mistake(
    "Your result is right, but the batch you were given has changed: the next step would train on shifted sentences. "
    "Assigning to a slice edits the caller's tensor.",
    id="inplace",
)
def pads_in_place(token_ids):
    decoder_input = token_ids[:, :-1].clone()
    targets = token_ids
    targets[:, :-1] = token_ids[:, 1:].clone()
    return decoder_input, targets[:, :-1]


@exercise.must_hold("The first prediction is made from the start mark alone, so that is what is read first.")
def begins_with_bos(trial: Trial) -> str | None:
    (first, *_) = trial.value[0][:, 0].tolist()
    return None if first == BOS_ID else f"Your decoder reads {first} first, and the start mark is {BOS_ID}."


@exercise.must_hold("What is the target at one place should be read at the place after it.")
def target_comes_next(trial: Trial) -> str | None:
    decoder_input, targets = trial.value
    late = (decoder_input[:, 1:] != targets[:, :-1]) & (targets[:, 1:] != PAD_ID)
    if not late.any():
        return None
    row, place = late.nonzero()[0].tolist()
    return (
        f"In sentence {row} the target at place {place} is {targets[row, place].item()}, and what is read at place "
        f"{place + 1} is {decoder_input[row, place + 1].item()}."
    )
