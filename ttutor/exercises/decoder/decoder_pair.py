"""Exercise: a decoder's input and its targets, one place apart."""

import torch
from jaxtyping import Int
from torch import Tensor

from ttutor.exercises.draws import drawn, one_of
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
    """Sentences of different lengths, one of them as long as the table is wide; the marks have any ids."""
    n_sentences, longest, pad_id = drawn(random, 3, 4), drawn(random, 5, 7), one_of(random, (0, 1, 40))
    bos_id, eos_id = pad_id + 2 + torch.randperm(2, generator=random)
    token_ids = torch.randint(4, 30, (n_sentences, longest), generator=random) + 4 * (pad_id == 1)
    lengths = longest - torch.tensor([3, 0, 1, 2])[:n_sentences][torch.randperm(n_sentences, generator=random)]
    real = torch.arange(longest) < lengths[:, None]
    return token_ids.where(real, pad_id), int(bos_id), int(eos_id), pad_id


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
    cases=(Case(name="sentences of different lengths", inputs=_sentences),),
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

exercise.mutations("""
not_shifted: "torch.cat([start, token_ids], dim=1), targets" -> "targets, targets.clone()"
or: "dim=1), targets" -> "dim=1), torch.cat([start, token_ids], dim=1)"
    Both rows are the same: every place is asked for the token that it reads. The loss will fall to zero and nothing is
    learned. Who should be ahead of whom?
wrong_way_round: "torch.cat([start, token_ids], dim=1), targets" -> "targets, torch.cat([start, token_ids], dim=1)"
    The rows are exchanged: yours reads the next token and is asked for the one before.
end_at_the_edge: "targets[torch.arange(len(targets)), n_real]" -> "targets[:, -1]"
    The end mark stands in the last column of every row, behind the padding of short sentences. Where is a short
    sentence over?
no_end: "= eos_id" -> "= pad_id"
    Nothing is ever asked to end. A model trained on this does not know when to stop.
end_instead_of_the_last: "n_real]" -> "n_real - 1]"
    The end mark overwrites the last token of the sentence. It needs a place of its own.
all_padding_ends: "targets[torch.arange(len(targets)), n_real]" -> "targets[targets == pad_id]"
    All padding became an end mark: the model would be trained to end again and again, and most on the shortest
    sentences.
two_ahead: "dim=1), targets" -> "dim=1), torch.cat([targets[:, 1:], room], dim=1)"
    Each place is asked for the token after the next one.
end_is_read: "torch.cat([start, token_ids], dim=1), targets" ->
  "torch.cat([start, targets], dim=1), torch.cat([targets, room], dim=1)"
    The end mark is read as well, and so the rows are one place too long: after it nothing is left to be said.
short_rows_read_it: "torch.cat([start, token_ids], dim=1), targets" ->
  "torch.cat([start, targets], dim=1)[:, :-1], targets"
    Short sentences read their end mark. The last column, which you cut off, holds that of the longest sentence alone.
marks_exchanged: "bos_id)" -> "eos_id)", "= eos_id" -> "= bos_id"
    Start and end mark are exchanged: look at the order of the arguments.
""")


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
