"""Exercise: a decoder's input and its targets, one place apart."""

import torch
from jaxtyping import Int
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Trial


def decoder_pair(
    token_ids: Int[Tensor, "batch tokens"], bos_id: int, eos_id: int, pad_id: int
) -> tuple[Int[Tensor, "batch longer"], Int[Tensor, "batch longer"]]:
    """The decoder's input and its targets, each one longer than the sentences."""
    start = torch.full_like(token_ids[:, :1], bos_id)
    room = torch.full_like(token_ids[:, :1], pad_id)
    targets = torch.cat([token_ids, room], dim=1)
    n_real = (token_ids != pad_id).sum(dim=1)
    targets[torch.arange(len(targets)), n_real] = eos_id
    return torch.cat([start, token_ids], dim=1), targets


def reference(token_ids, bos_id, eos_id, pad_id):
    """Sentence by sentence."""
    read, said = [], []
    for row in token_ids.tolist():
        sentence = [token for token in row if token != pad_id]
        padding = [pad_id] * (len(row) - len(sentence))
        read.append([bos_id, *sentence, *padding])
        said.append([*sentence, eos_id, *padding])
    return torch.tensor(read), torch.tensor(said)


def _sentences(random):
    """Three sentences of two, five and four tokens."""
    token_ids = torch.randint(4, 30, (3, 5), generator=random)
    return token_ids * (torch.arange(5) < torch.tensor([[2], [5], [4]])), 2, 3, 0


exercise = Exercise(
    id="decoder.decoder_pair",
    title="Input and target",
    statement="""
Make a decoder's training pair. `token_ids` holds sentences without marks, padded on the right with `pad_id`. Return
two tensors, both one place longer: the *input*, which begins with `bos_id`, and the *target* of each place, which
ends with `eos_id`. The end mark is predicted and never read (unlike in the chapter's `loss_of`, which reads it where
nothing is asked any more). What comes after the end of a sentence is padding in both.
""".strip(),
    reference=reference,
    solution=decoder_pair,
    explanation="""
Place $t$, counted from 0, reads $y_t$ and must predict $y_{t+1}$: the two rows are one sentence, one place apart. The
end mark belongs after the last *real* token, which stands elsewhere in each row; it is predicted and never read, as the
start mark is read and never predicted. Padding in the targets is what a loss has to leave out (`ignore_index`).
""".strip(),
    cases=(Case(name="sentences of two, five and four tokens", inputs=_sentences),),
    hints="""
Write both rows for a sentence of two tokens on paper, one below the other. How long is each?

The reading row needs one column in front. In the other row the end mark stands at the place that is the number of real
tokens of that row.

Append a column of padding to `token_ids`; count the real tokens of each row; write `eos_id` at that place, with one
index for the rows and one for the places.
""",
    difficulty=1,
    minutes=10,
    section="06-decoder",
)


@exercise.mistake(
    "Both rows are the same: every place is asked for the token that it reads. The loss will fall to zero and nothing "
    "is learned. Who should be ahead of whom?"
)
def not_shifted(token_ids, bos_id, eos_id, pad_id):
    _, said = reference(token_ids, bos_id, eos_id, pad_id)
    return said, said.clone()


@exercise.like("not_shifted")
def not_shifted_from_the_start(token_ids, bos_id, eos_id, pad_id):
    read, _ = reference(token_ids, bos_id, eos_id, pad_id)
    return read, read.clone()


@exercise.mistake("The rows are exchanged: yours reads the next token and is asked for the one before.")
def wrong_way_round(token_ids, bos_id, eos_id, pad_id):
    read, said = reference(token_ids, bos_id, eos_id, pad_id)
    return said, read


@exercise.mistake(
    "The end mark stands in the last column of every row, behind the padding of short sentences. Where is a short "
    "sentence over?"
)
def end_at_the_edge(token_ids, bos_id, eos_id, pad_id):
    read, _ = reference(token_ids, bos_id, eos_id, pad_id)
    return read, torch.cat([token_ids, torch.full_like(token_ids[:, :1], eos_id)], dim=1)


@exercise.mistake("Nothing is ever asked to end. A model trained on this does not know when to stop.")
def no_end(token_ids, bos_id, eos_id, pad_id):
    read, _ = reference(token_ids, bos_id, eos_id, pad_id)
    return read, torch.cat([token_ids, torch.full_like(token_ids[:, :1], pad_id)], dim=1)


@exercise.mistake("The end mark overwrites the last token of the sentence. It needs a place of its own.")
def end_instead_of_the_last(token_ids, bos_id, eos_id, pad_id):
    read, said = reference(token_ids, bos_id, eos_id, pad_id)
    n_real = (token_ids != pad_id).sum(dim=1)
    rows = torch.arange(len(said))
    said[rows, n_real - 1], said[rows, n_real] = eos_id, pad_id
    return read, said


@exercise.mistake(
    "All padding became an end mark: the model would be trained to end again and again, and most on the shortest "
    "sentences."
)
def all_padding_ends(token_ids, bos_id, eos_id, pad_id):
    read, said = reference(token_ids, bos_id, eos_id, pad_id)
    return read, torch.where(said == pad_id, eos_id, said)


@exercise.mistake("Each place is asked for the token after the next one.")
def two_ahead(token_ids, bos_id, eos_id, pad_id):
    read, said = reference(token_ids, bos_id, eos_id, pad_id)
    return read, torch.cat([said[:, 1:], torch.full_like(said[:, :1], pad_id)], dim=1)


@exercise.mistake(
    "The end mark is read as well, and so the rows are one place too long: after it nothing is left to be said."
)
def end_is_read(token_ids, bos_id, eos_id, pad_id):
    read, said = reference(token_ids, bos_id, eos_id, pad_id)
    room = torch.full_like(read[:, :1], pad_id)
    whole = torch.cat([read, room], dim=1)
    whole[torch.arange(len(read)), (token_ids != pad_id).sum(dim=1) + 1] = eos_id
    return whole, torch.cat([said, room], dim=1)


@exercise.mistake("Start and end mark are exchanged: look at the order of the arguments.")
def marks_exchanged(token_ids, bos_id, eos_id, pad_id):
    return reference(token_ids, eos_id, bos_id, pad_id)


@exercise.must_hold("What a place must predict, the next place reads, and both rows have room for one mark more.")
def one_place_apart(trial: Trial) -> str | None:
    token_ids, _, eos_id, pad_id = trial.inputs
    read, said = trial.value
    if read.shape != said.shape or read.shape[1] != token_ids.shape[1] + 1:
        return f"They have the shapes {tuple(read.shape)} and {tuple(said.shape)}."
    inner = (said[:, :-1] != pad_id) & (said[:, :-1] != eos_id)
    off = (inner & (read[:, 1:] != said[:, :-1])).nonzero()
    if not len(off):
        return None
    row, place = off[0].tolist()
    return (
        f"In row {row}, place {place} must say {said[row, place]}, but place {place + 1} reads {read[row, place + 1]}."
    )


@exercise.must_hold("Each sentence has one end mark among its targets.")
def one_end_each(trial: Trial) -> str | None:
    counts = (trial.value[1] == trial.inputs[2]).sum(dim=1).tolist()
    return None if set(counts) == {1} else f"The targets of the rows hold {counts} end marks."
