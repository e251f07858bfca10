"""``ttutor grade --self-test``: right answers, wrong ones and attacks, on the machine that is to grade.

It says what held and what did not. An attack that the sandbox of this machine cannot stop, as its level says, is told
as that; any other that gains a point, a solution that loses one and a wrong answer that keeps all are failures.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ttutor.exercises import exercises
from ttutor.exercises.exercise import Exercise
from ttutor.grading.attacks import ATTACKS, PAIRS, Attack
from ttutor.grading.attacks.attack import PORT
from ttutor.grading.judging import Grader
from ttutor.grading.marks import Submission, SubmissionMark
from ttutor.grading.published import Wrong, everything, solutions, wrong_answers
from ttutor.grading.sandbox import LEVELS
from ttutor.grading.siege import besieged, siege

__all__ = ["run_self_test"]

Tell = Callable[[str], None]
SHOWN, HONEST_EVERY = 20, 10


def run_self_test(
    tell: Tell,
    *,
    require_sandbox: bool = False,
    chosen: Sequence[Exercise] | None = None,
    attacks: Sequence[Attack] = ATTACKS,
    pairs: Sequence[tuple[Attack, Attack]] = PAIRS,
) -> bool:
    """Try the grader on this machine; return whether all went as it should.

    Args:
        tell: is told each finding.
        require_sandbox: refuse to try where submissions cannot be shut in.
        chosen: of which exercises solutions and wrong answers are tried; all when left out.
        attacks: what is handed in by those who want points without an answer.
        pairs: attacks in two parts.

    Raises:
        SandboxError: no sandbox, or none that is strong enough.
    """
    chosen = exercises() if chosen is None else chosen
    with Grader(everything(chosen), require_sandbox=require_sandbox) as grader:
        (level,) = (one for one in LEVELS if one.name == grader.level)
        tell(f"Sandbox: {level.name}: {level.says}.")
        well = [_try_solutions(grader, chosen, tell), _try_wrong(grader, chosen, tell)]
    with _listener(), besieged(level.name) as grader:
        well.append(_try_attacks(grader, [*attacks, *itertools.chain.from_iterable(pairs)], tell))
    tell("All is as it should be." if all(well) else "Something is not as it should be: see above.")
    return all(well)


def _try_solutions(grader: Grader, chosen: Sequence[Exercise], tell: Tell) -> bool:
    """Whether the course's own solutions earn all their points."""
    short = []
    for _, group in itertools.groupby(chosen, key=lambda one: one.chapter):
        group = tuple(group)
        marks = {one.exercise_id: one for one in grader.grade(solutions(group)).exercises}
        short += [marks[one.id] for one in group if marks[one.id].earned < marks[one.id].possible]
    tell(f"Solutions: {len(chosen) - len(short)} of {len(chosen)} earn all their points.")
    for one in short[:SHOWN]:
        tell(f"  {one.exercise_id}: {one.state.value}: {one.message}")
    return not short


def _try_wrong(grader: Grader, chosen: Sequence[Exercise], tell: Tell) -> bool:
    """Whether known wrong answers lose points; and, as information, get the hint that they deserve."""
    lists = [wrong_answers(exercise) for exercise in chosen]
    unseen, tried, kept, other = sum(missing for _, missing in lists), 0, [], 0
    for row in itertools.zip_longest(*(found for found, _ in lists)):
        wrong = [one for one in row if one is not None]
        files = tuple(one.file for one in wrong)
        marks = grader.grade(Submission(student="wrong", files=files))
        tried += len(wrong)
        kept += [one for one in wrong if _earned_all(one, marks)]
        other += sum(_hint(one, marks) != one.hint_id for one in wrong)
    tell(f"Wrong answers: {tried - len(kept)} of {tried} lose points; {tried - other} get the very hint they deserve.")
    if unseen:
        tell(f"  {unseen} more need other code of the course, and are tried by its own tests only.")
    for one in kept[:SHOWN]:
        tell(f"  {one.exercise_id}: {one.hint_id} keeps all its points")
    return not kept


def _earned_all(wrong: Wrong, marks: SubmissionMark) -> bool:
    (mark,) = (one for one in marks.exercises if one.exercise_id == wrong.exercise_id)
    return mark.earned >= mark.possible


def _hint(wrong: Wrong, marks: SubmissionMark) -> str | None:
    (mark,) = (one for one in marks.exercises if one.exercise_id == wrong.exercise_id)
    return mark.hint_id


def _try_attacks(grader: Grader, chosen: Sequence[Attack], tell: Tell) -> bool:
    """Whether every attack that this level can stop is repulsed; what it cannot stop is told, and not let loose."""
    came = list(siege(grader, chosen, honest_every=HONEST_EVERY))
    through = [one for one in came if one.problems]
    gaps = [one for one in came if one.not_tried]
    tell(f"Attacks: {len(came) - len(through) - len(gaps)} of {len(came)} gain nothing and leave nothing behind.")
    for one in through[:SHOWN]:
        tell(f"  {one.attack.name}: {one.attack.says}: {'; '.join(one.problems)}")
    if gaps:
        tell(f"  {len(gaps)} were not tried, since {grader.level} does not promise to stop them:")
    for one in gaps[:SHOWN]:
        tell(f"  {one.attack.name}: {one.attack.says}")
    return not through


@contextmanager
def _listener() -> Iterator[None]:
    """Somebody to talk to, for attacks that get through to the network; where the port is taken, there is one."""
    try:
        server = socket.create_server(("127.0.0.1", PORT))
    except OSError:
        yield
        return
    with server:
        yield
