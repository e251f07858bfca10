"""Exercise: which targets of a conversation the assistant learns from."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def answer_targets(token_ids: Int[Tensor, " tokens"], assistant_id: int, end_id: int) -> Bool[Tensor, " targets"]:
    """For each token but the first, whether it is a target that the assistant learns from."""
    learns, inside = [], False
    for token in token_ids.tolist():
        learns.append(inside)
        if token == assistant_id:
            inside = True
        elif token == end_id:
            inside = False
    return torch.tensor(learns[1:])


def reference(token_ids, assistant_id, end_id):
    before = torch.arange(len(token_ids))[:, None] > torch.arange(len(token_ids))
    begun = (before & (token_ids == assistant_id)).sum(1)
    ended = (before & (token_ids == end_id)).sum(1)
    return (begun > ended)[1:]


def _conversation(generator):
    """Three turns: a question, the assistant's mark, an answer, an end mark; a last question waits for its answer."""
    user, assistant, end = torch.randperm(11, generator=generator)[:3].tolist()
    words = [token for token in range(11) if token not in (user, assistant, end)]

    def some(least, most):
        return [words[drawn(generator, 0, 7)] for _ in range(drawn(generator, least, most))]

    turns = [[user, *some(2, 4), assistant, *some(1, 5), end] for _ in range(3)]
    return torch.tensor([token for turn in [*turns, [user, *some(2, 3)]] for token in turn]), assistant, end


exercise = Exercise(
    id="assistant.answer_targets",
    title="Which tokens teach the assistant?",
    statement="""
A conversation is one row of tokens: after each question comes the assistant's mark `assistant_id`, then the answer,
then `end_id`, which the assistant writes too, to say that it has finished. Models predict `token_ids[1:]` from
`token_ids[:-1]`. Return True at each of these targets that the assistant has to write itself, and False at all others:
questions and marks of turns come from outside. There may be several turns, and the last question may have no answer
yet.
""".strip(),
    reference=reference,
    solution=answer_targets,
    explanation="""
With the mask one place too early the model learns to write its own mark, and never to stop: it goes on until something
else cuts it off, often with a question of its own. The end is part of the answer.
""".strip(),
    cases=(Case(name="three turns and a question that waits", inputs=_conversation),),
    hints="""
Write a conversation of six tokens on paper, and below each the token that has to be predicted there. Which of these
would nobody type for the assistant?

Go through the tokens and remember whether an answer is going on. The mark itself is not yet part of the answer, the end
still is.

Note what you know *before* you look at whether the token begins or ends an answer; leave out the first token's note,
since the first token is no target.
""",
    difficulty=1,
    minutes=15,
    section="13-assistant",
)

exercise.mutations(r"""
one_too_early: "learns[1:]" -> "learns[1:][1:] + [False]"
    Your mask is one place too early: it trains the model to write the assistant's mark, and not to stop. Each entry
    belongs to a target, so it describes the token that is predicted.
one_too_late: "learns[1:]" -> "learns[:-1]"
    Your mask is one place too late: the first token of each answer is not learned, and what follows the end is. The
    first token of the row is no target; which note belongs to it?
without_the_end: "learns.append(inside)" -> "learns.append(inside and token != end_id)"
    The end mark is missing. Nobody writes it for the assistant; a model that has never learned it does not stop.
with_the_mark: "learns.append(inside)" -> "learns.append(inside or token == assistant_id)"
    The assistant's mark is learned, too. It stands in the prompt: the program writes it, to say whose turn it is.
everything: "learns.append(inside)" -> "learns.append(True)"
    Every target is learned, the questions too: no mask at all.
only_the_first_turn: "inside = True" -> "inside = not any(learns)"
    Only the first answer is learned. A conversation has several turns, and each answer teaches.
never_ends: "inside = False\n    return" -> "inside = True\n    return"
    From the first answer on, everything is learned, the later questions too. Where does an answer end?
turned_round: "learns.append(inside)" -> "learns.append(not inside)"
    It is the other way round: you learn from the questions and leave out the answers.
the_marks_alone: "learns.append(inside)" -> "learns.append(inside and token == end_id)"
    Only the end marks are learned: the model would learn when to stop, and not what to say.
""")


@exercise.must_hold("Each end mark of an answer is a target that the assistant writes.")
def ends_are_learned(trial: Trial) -> str | None:
    token_ids, _, end_id = trial.inputs
    ends = trial.value[(token_ids == end_id)[1:]]
    return None if ends.all() else f"{int((~ends).sum())} of {len(ends)} end marks are not learned."


@exercise.must_hold("No question teaches: what the words of the last question are must not be learned.")
def questions_are_not_learned(trial: Trial) -> str | None:
    token_ids, _, end_id = trial.inputs
    after = int((token_ids == end_id).nonzero()[-1])
    learned = int(trial.value[after:].sum())
    return f"{learned} tokens of the last question are learned." if learned else None
