"""Exercise: find the bug in the labels of an assistant that asks itself questions and never stops."""

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def lost_labels(conversations: list[tuple[list[int], list[int]]], pad_id: int) -> Int[Tensor, "batch tokens"]:
    """A colleague's labels for pairs of question and answer: what is to be learned, and -100 where nothing is."""
    rows = [torch.tensor(question + answer) for question, answer in conversations]
    token_ids = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    labels = token_ids.clone()
    for row, (question, _) in zip(labels, conversations, strict=True):
        row[: len(question)] = -100
    labels = token_ids.masked_fill(token_ids == pad_id, -100)
    return labels


def solution(conversations: list[tuple[list[int], list[int]]], pad_id: int) -> Int[Tensor, "batch tokens"]:
    """Labels for pairs of question and answer: the answer with its end, and -100 where nothing is to be learned."""
    rows = [torch.tensor([-100] * len(question) + answer) for question, answer in conversations]
    return pad_sequence(rows, batch_first=True, padding_value=-100)


def reference(conversations, pad_id):
    longest = max(len(question) + len(answer) for question, answer in conversations)
    return torch.tensor(
        [
            [-100] * len(question) + answer + [-100] * (longest - len(question) - len(answer))
            for question, answer in conversations
        ]
    )


def _conversations(random):
    """Questions and answers of unequal lengths; each answer ends with the mark that also fills up the batch."""
    end = drawn(random, 2, 5)

    def words(n_words):
        return [6 + drawn(random, 0, 20) for _ in range(n_words)]

    lengths = [(2, drawn(random, 3, 4)), (drawn(random, 4, 5), 1), *[(1, drawn(random, 6, 7))] * drawn(random, 1, 2)]
    return [(words(question), [*words(answer), end]) for question, answer in lengths], end


exercise = Exercise(
    id="assistant.lost_labels",
    title="It asks itself, and never stops",
    statement="A colleague fine-tunes an assistant with these labels. It answers well, then invents the next question "
    "and answers that, until something cuts it off. His batches are padded with the token that ends an answer, as is "
    "often done where a model has no token for padding. Labels stand under their own tokens (the loss shifts them); "
    "-100 is not learned. Find what goes wrong, and mend it: each answer is learned, with its end, and nothing else.",
    stub=lost_labels,
    reference=reference,
    solution=solution,
    explanation="One line does two kinds of harm. It starts again from `token_ids`, so that the mask of the questions "
    "is lost and the model learns to ask; and it finds padding by its id, so that with the padding every end of an "
    "answer goes, and the model never learns to stop. Neither changes a shape or raises the loss: questions are "
    "often easier than answers. Padding is known by where it stands, not by what it is: pad the labels with -100.",
    cases=(Case(name="questions and answers of unequal lengths", inputs=_conversations),),
    hints="""
Print the labels of two short conversations below their tokens. Where should -100 stand, and where does it?

There are two faults, of one line. What does it do to the questions? And which token looks like padding and is none?

Make each row of labels before it is padded: as many -100 as the question has tokens, then the answer. Then pad with
-100.
""",
    difficulty=1,
    minutes=10,
    section="13-assistant",
)

exercise.mutations(r"""
mask_still_lost: "[-100] * len(question)" -> "question"
    The ends are there. But the questions are still learned: the model will ask.
padding_learned: "padding_value=-100" -> "padding_value=pad_id"
    You pad the labels with the padding's own id: the model learns to write end marks after the end.
one_too_late: "[-100] * len(question) + answer" -> "[-100] * (len(question) + 1) + answer[1:]"
    The first token of each answer is not learned. Labels stand under their own tokens; the loss shifts them.
one_too_early: "[-100] * len(question) + answer" -> "[-100] * (len(question) - 1) + answer + [-100]"
    Your labels are shifted already, and the loss will shift them again. They stand under their own tokens.
questions_alone: "[-100] * len(question) + answer" -> "question + [-100] * len(answer)"
    It is the other way round: the questions are learned, the answers not.
answers_alone: "[-100] * len(question) + answer" -> "answer"
    The questions' places are gone, so that a label no longer stands under its token.
padded_on_the_left: "padding_value=-100" -> "padding_value=-100, padding_side='left'"
    Your rows are padded on the left. The colleague's tokens begin at the left.
zeros: "padding_value=-100)" -> "padding_value=-100).clamp(min=0)"
    Where nothing is to be learned stands 0, which is a token. Losses leave out -100.
""")


@exercise.mistake(
    "The questions are hidden. But an end mark has the padding's id and is taken for padding: the model will never "
    "stop."
)
def ends_still_lost(conversations, pad_id):
    labels = solution(conversations, pad_id)
    return labels.masked_fill(labels == pad_id, -100)


@exercise.must_hold("Each row keeps one end mark, the answer's: who never learns it never stops.")
def ends_are_learned(trial: Trial) -> str | None:
    _, end_id = trial.inputs
    counts = (trial.value == end_id).sum(dim=1).tolist()
    return None if set(counts) == {1} else f"In yours the rows have {counts} end marks to learn."


@exercise.must_hold("Other questions of the same lengths must not change the labels.")
def questions_do_not_matter(trial: Trial) -> str | None:
    conversations, pad_id = trial.inputs
    others = [([token + 30 for token in question], answer) for question, answer in conversations]
    moved = int((trial.run(others, pad_id) != trial.value).sum())
    return None if not moved else f"With other words in the questions {moved} labels change."
