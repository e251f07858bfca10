"""``ttutor grade --self-test``: right answers, wrong ones and a few attacks, on the machine that is to grade."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ttutor.exercises import exercises, find
from ttutor.exercises.exercise import Answer, Exercise, Mistake
from ttutor.exercises.source import imports, solution_source
from ttutor.grading.assignment import Assignment, Limits, Worth
from ttutor.grading.bundle import cut_answers
from ttutor.grading.grader import Grader
from ttutor.grading.marks import SourceFile, Submission, SubmissionMark
from ttutor.grading.sandbox import BUBBLEWRAP, KINDS, Sandbox, bytecode
from ttutor.grading.session import check_sandbox

Tell = Callable[[str], None]
SHOWN = 20
SEED = "the seed of the self-test, which is no secret"
PRIZE = "powers = (scores - scores.amax(dim, keepdim=True)).exp(); return powers / powers.sum(dim, keepdim=True)"
"""A right answer, which an attack gives where its deed has succeeded."""
DEEDS = {
    "starts a process": "import os; done = os.fork() >= 0",
    "starts a program": "import subprocess; done = subprocess.run(['/bin/true']).returncode == 0",
    "opens a socket": "import socket; done = bool(socket.socket())",
    "writes a file": "done = bool(open('/tmp/ttutor-was-here', 'w'))",
    "reads this machine's files": "done = bool(open('/etc/passwd').read())",
    "imports the reference": "from ttutor.exercises import exercise; done = True",
    "takes memory that no limit counts": "import os; done = os.memfd_create('x') >= 0",
}
"""What an attack does, and the code; each is harmless where it succeeds."""
ATTACKS = {
    name: f"import torch\ndef my_softmax(scores, dim=-1):\n    {code}\n    if done:\n        {PRIZE}\n"
    for name, code in DEEDS.items()
} | {"ends its process": "import os\ndef my_softmax(scores, dim=-1):\n    os._exit(0)\n"}


def run_self_test(tell: Tell, *, sandbox: str = BUBBLEWRAP, chosen: Sequence[Exercise] | None = None) -> bool:
    """Try the grader on this machine; return whether all went as it should.

    Args:
        tell: is told each finding.
        sandbox: how submissions are shut in.
        chosen: of which exercises solutions and wrong answers are tried; all when left out.

    Raises:
        SandboxError: that cannot be had here.
    """
    chosen = exercises() if chosen is None else chosen
    with bytecode() as compiled:
        place = Sandbox(sandbox, bytecode=compiled)
        check_sandbox(place)
        grader = Grader(everything(chosen), place)
        tell(f"Sandbox: {sandbox}: {KINDS[sandbox]}.")
        well = [_try_solutions(grader, chosen, tell), _try_wrong(grader, chosen, tell), _try_attacks(place, tell)]
    tell("All is as it should be." if all(well) else "Something is not as it should be: see above.")
    return all(well)


def _try_solutions(grader: Grader, chosen: Sequence[Exercise], tell: Tell) -> bool:
    """Whether the course's own solutions earn all their points."""
    marks = grader.grade(solutions(chosen)).exercises
    short = [one for one in marks if one.earned < one.possible]
    tell(f"Solutions: {len(chosen) - len(short)} of {len(chosen)} earn all their points.")
    for one in short[:SHOWN]:
        tell(f"  {one.exercise_id}: {one.state.value}: {one.message}")
    return not short


def _try_wrong(grader: Grader, chosen: Sequence[Exercise], tell: Tell) -> bool:
    """Whether known wrong answers lose points; and, as information, get the hint that they deserve."""
    lists = [wrong_answers(exercise) for exercise in chosen]
    unseen, kept = sum(missing for _, missing in lists), []
    tried: Counter[str] = Counter()
    hinted: Counter[str] = Counter()
    for row in itertools.zip_longest(*(found for found, _ in lists)):
        wrong = [one for one in row if one is not None]
        marks = grader.grade(Submission(student="wrong", files=tuple(one.file for one in wrong)))
        tried.update(one.chapter for one in wrong)
        hinted.update(one.chapter for one in wrong if _mark_of(one, marks).hint_id == one.hint_id)
        kept += [one for one in wrong if _mark_of(one, marks).earned >= _mark_of(one, marks).possible]
    n, lost = tried.total(), tried.total() - len(kept)
    tell(f"Wrong answers: {lost} of {n} lose points; {hinted.total()} get the very hint they deserve.")
    tell("  by chapter: " + ", ".join(f"{chapter} {hinted[chapter]} of {tried[chapter]}" for chapter in tried))
    if unseen:
        tell(f"  {unseen} more need other code of the course, and are tried by its own tests only.")
    for one in kept[:SHOWN]:
        tell(f"  {one.exercise_id}: {one.hint_id} keeps all its points")
    return not kept


def _mark_of(wrong: Wrong, marks: SubmissionMark):
    return next(one for one in marks.exercises if one.exercise_id == wrong.exercise_id)


def _try_attacks(sandbox: Sandbox, tell: Tell) -> bool:
    """Whether no attack gets through; what nothing here promises to stop is told."""
    grader = Grader(everything([find("attention.softmax")]), sandbox)
    through = []
    for name, code in ATTACKS.items():
        mark = grader.grade(Submission(student="attack", files=(SourceFile("attack.py", code.encode()),)))
        through += [name] if mark.earned else []
    tell(f"Attacks: {len(ATTACKS) - len(through)} of {len(ATTACKS)} gain nothing.")
    for name in through:
        tell(f"  this got through: it {name}")
    return not through or sandbox.kind != BUBBLEWRAP


def everything(exercises: Iterable[Exercise], *, seed: str = SEED, limits: Limits | None = None) -> Assignment:
    """Return an assignment of these exercises, each for its own points."""
    worth = tuple(Worth(one.id, float(one.points)) for one in exercises)
    return Assignment(title="All exercises", seed=seed, exercises=worth, limits=limits or Limits())


def solutions(exercises: Iterable[Exercise]) -> Submission:
    """Return a submission that solves these exercises, one file for each.

    Each answer is called ``my_...``, so that none takes the place of a function that another one imports.
    """
    files = tuple(SourceFile(f"{one.id}.py", _code(one).encode()) for one in exercises)
    return Submission(student="reference", files=files)


def _code(exercise: Exercise) -> str:
    return "\n".join([*imports(exercise), "", "", solution_source(exercise, f"my_{exercise.name}")])


@dataclass(frozen=True)
class Wrong:
    """A wrong answer of the course's list, as a student would hand it in, and the hint that it deserves."""

    exercise_id: str
    hint_id: str
    file: SourceFile

    @property
    def chapter(self) -> str:
        """The chapter of the exercise."""
        return self.exercise_id.partition(".")[0]


def wrong_answers(exercise: Exercise) -> tuple[list[Wrong], int]:
    """Return one wrong answer for each mistake of an exercise, and how many mistakes have none that stands alone."""
    found = [
        next(filter(None, (_wrong(exercise, one, answer) for answer in one.answers)), None) for one in exercise.mistakes
    ]
    wrong = [one for one in found if one is not None]
    return wrong, len(found) - len(wrong)


def _wrong(exercise: Exercise, mistake: Mistake, answer: Answer) -> Wrong | None:
    """A wrong answer cut out of its module, or None where it needs others of the course."""
    sources = cut_answers([answer])
    if len(sources) != 1:
        return None
    tree = ast.parse(sources[answer.__module__])
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == answer.__name__:
            node.name = f"my_{exercise.name}"
        elif isinstance(node, ast.Name) and node.id == answer.__name__:
            node.id = f"my_{exercise.name}"
    file = SourceFile(f"{exercise.id}.{mistake.id}.py", ast.unparse(tree).encode())
    return Wrong(exercise.id, mistake.id, file)
