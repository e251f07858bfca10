"""What an exercise is: one definition that gives the stub, the hints, the check, the solution and the test.

An exercise is one file: a solution, of which the stub is made, a reference, the cases, the `Exercise` itself, and below
it the known mistakes and what must hold of any answer, each with the sentence that a student then reads.
`ttutor.exercises.check` judges an answer by it, the book takes stub, hints and solution from it, and the test suite
holds every definition to the same promises: the reference passes, the untouched stub earns nothing, and every listed
mistake is told from every other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from ttutor.exercises.mutation import emptied, mutated, read_mutations

__all__ = ["CHAPTERS", "Case", "Exercise", "Finding", "Mistake", "Property", "Trial", "call"]

CHAPTERS = (
    "recurrence",
    "attention",
    "multihead",
    "positions",
    "encoder",
    "decoder",
    "transformer",
    "training",
    "variants",
    "vit",
    "efficient",
    "inside",
    "assistant",
)
"""The chapters in the order of the book; an exercise's id starts with one of them."""

Answer = Callable[..., Any]
"""What a student hands in: a function or a class."""
Given = TypeVar("Given", bound=Answer)


def call(answer: Answer, *inputs: Any) -> Any:
    """Run an answer that is a function: the default of `Exercise.observe`."""
    return answer(*inputs)


def _made_of_the_solution() -> None:
    """Where an exercise names no stub."""


def _no_gradients(*inputs: Any) -> None:
    """Where a property is tried on something that has none."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One set of inputs on which an answer is tried.

    Args:
        name: a few words that complete the sentence "with ...": "one query and six keys", "scores in the hundreds".
        inputs: makes the positional arguments from a seeded generator; called anew for every run, so that no answer
            sees what another has changed. Sizes pairwise different, values scaled so that a mistake shows.
        points: what the case is worth.
        hidden: kept for grading; `check` in a notebook says that it exists and does not run it.
        rtol: as that of the exercise, for this case alone, such as one in half precision.
    """

    name: str
    inputs: Callable[[torch.Generator], tuple[Any, ...]]
    points: int = 1
    hidden: bool = False
    rtol: float | None = None


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A known mistake: the sentence that a good tutor would say, and code that makes it.

    Args:
        id: the hint's name, such as ``no_scale``; unique in its exercise.
        says: symptom, cause and next step in one to three short sentences, never the repair itself.
        answers: wrong answers that all deserve this sentence. Two whose outputs cannot be told apart belong here
            together, and the sentence then names both causes.
    """

    id: str
    says: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Finding:
    """What a property saw: a clause with the numbers, and perhaps a map of which output depends on which input.

    Args:
        text: one sentence with the observation, such as "Row (0, 1) sums to 1.37."
        depends: bool tensor ``outputs inputs``, True where the output moves with the input; drawn as a picture.
        expected: the map that a right answer has, drawn beside it.
    """

    text: str
    depends: torch.Tensor | None = None
    expected: torch.Tensor | None = None


@dataclass(frozen=True)
class Trial:
    """An answer, the inputs of one case and the value that came of them: what a property may look at.

    Args:
        run: runs the answer as the judge does (through `Exercise.observe`, seeded) on other inputs.
        inputs: the case's inputs, fresh.
        value: what the answer gave for them.
        gradients: runs it so too, and returns what `ttutor.exercises.running.gradients_of` does.
    """

    run: Callable[..., Any]
    inputs: tuple[Any, ...]
    value: Any
    gradients: Callable[..., list[torch.Tensor | None] | None] = field(default=_no_gradients)


@dataclass(frozen=True, kw_only=True, eq=False)
class Property:
    """Something true of every right answer, that says what is wrong with a mistake that stands in no list.

    Args:
        id: the hint's name, such as ``rows_sum_to_one``; differs from the ids of the exercise's mistakes.
        says: what should be true and what to look at, in one or two sentences.
        broken: returns None where the property holds, else what was observed. May run the answer again.
        always: try it even where every value is right, and fail the case where it breaks: for what values cannot
            show, such as gradients. Costs a run of every mistake too, so keep it for where it is needed.
    """

    id: str
    says: str
    broken: Callable[[Trial], str | Finding | None]
    always: bool = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Exercise:
    """One exercise, whole.

    Args:
        id: chapter and name, such as ``attention.softmax``.
        title: a few words in sentence case.
        statement: what to write and how it is meant, in Markdown; shapes stand in the stub's signature.
        stub: the function or class as the student finds it, with its docstring; its body is ``...``. Where the
            exercise is to mend code, the code to be mended. Its name is unique among all exercises. Left out, it is
            the solution without its body.
        reference: what a right answer gives: the package's own function with the exercise's argument order, or a few
            lines that a test compares with the package or with torch.
        solution: the code that the book shows as the solution; the reference itself when left out.
        cases: the inputs it is tried on.
        hints: three tiers: what to think about, how to go about it, nearly the code. Three strings, or one text of
            three paragraphs.
        properties: what tells a wrong answer that stands in no list what is wrong; `must_hold` adds to them.
        observe: runs an answer on a case's inputs and gives the value to compare: a tensor, number, string, bool,
            None, or a tuple, list or dict of these. For a class it builds, seeds, copies weights in, runs, and
            returns what there is to see.
        view: takes what `observe` gave and the inputs, and returns what is compared, such as facts in words. At grading
            `observe` runs beside the student's code, and `view` does not: so `observe` gives what depends on the
            inputs, and `view` judges it.
        forbids: names of functions that are the exercise itself, such as ``softmax``; an answer that calls one fails.
        difficulty: 1 (warm-up), 2, 3 (hard).
        minutes: how long a student may take.
        section: where to read on, as a path in the book: ``02-attention``.
        explanation: what stands beside the solution in the book, in Markdown: why it is so.
        rtol: largest difference that passes, relative to the largest number in the reference's value.
        mistakes: the known wrong answers, in the order in which `mistake` and `mutations` have added them.

    Example:
        >>> from ttutor.exercises import find
        >>> exercise = find("attention.softmax")
        >>> exercise.mistakes[0].id
        'unstable'
    """

    id: str
    title: str
    statement: str
    reference: Answer
    cases: tuple[Case, ...]
    hints: Sequence[str]
    difficulty: int
    minutes: int
    section: str
    stub: Answer = field(default=_made_of_the_solution)
    solution: Answer | None = None
    explanation: str = ""
    properties: list[Property] = field(default_factory=list)
    observe: Callable[..., Any] = field(default=call)
    view: Callable[..., Any] | None = None
    forbids: tuple[str, ...] = ()
    rtol: float = 1e-5
    mistakes: list[Mistake] = field(default_factory=list)

    def __post_init__(self) -> None:
        chapter, dot, name = self.id.partition(".")
        if not (dot and name and chapter in CHAPTERS):
            raise ValueError(
                f"id must be 'chapter.name' with a chapter of {', '.join(CHAPTERS)}, but came as {self.id!r}"
            )
        if isinstance(self.hints, str):
            tiers = tuple(" ".join(part.split()) for part in self.hints.strip().split("\n\n"))
            object.__setattr__(self, "hints", tiers)
        if self.stub is _made_of_the_solution:
            object.__setattr__(self, "stub", emptied(self.solution or self.reference))
        if len(self.hints) != 3:
            raise ValueError(
                f"{self.id}: three hints, from a nudge to nearly the code, are expected; {len(self.hints)} came"
            )
        if self.difficulty not in (1, 2, 3):
            raise ValueError(f"{self.id}: difficulty must be 1, 2 or 3, but came as {self.difficulty}")
        for what, names in (("case", [case.name for case in self.cases]), ("hint id", self.hint_ids)):
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{self.id}: each {what} must be given once, but twice came {', '.join(twice)}")

    def mistake(self, says: str, *, id: str | None = None) -> Callable[[Given], Given]:
        """Add a known mistake: stands as a decorator over the wrong code.

        Args:
            says: what a good tutor would say; see `Mistake`.
            id: the hint's name; that of the function when left out.

        Raises:
            ValueError: the exercise has a hint of that name.
        """

        def add(answer: Given) -> Given:
            self._add(Mistake(id=id or answer.__name__, says=says, answers=(answer,)))
            return answer

        return add

    def like(self, hint_id: str) -> Callable[[Given], Given]:
        """Add another wrong answer that deserves the sentence of a mistake above it; a decorator too."""

        def add(answer: Given) -> Given:
            place = self.mistakes.index(self.known_mistake(hint_id))
            one = self.mistakes[place]
            self.mistakes[place] = replace(one, answers=(*one.answers, answer))
            return answer

        return add

    def mutations(self, text: str) -> None:
        """Add known mistakes that are the solution with a few characters changed.

        Args:
            text: each starts with its id and a colon; then comes what is replaced in the solution's source by what,
                ``"old" -> "new"``, where each old text stands exactly once; then, indented, what a good tutor would
                say. Several replacements have commas between them, and go on in lines indented by two spaces. A line
                that starts with ``or:`` is another wrong answer that deserves the same sentence.

        Raises:
            ValueError: the exercise has a hint of that name, or a text does not stand in the solution exactly once.
        """
        for id, says, changes in read_mutations(text):
            names = [f"mutated_{id}" if place == 1 else f"mutated_{id}_{place}" for place in range(1, len(changes) + 1)]
            answers = [mutated(self.solution or self.reference, *pair) for pair in zip(names, changes, strict=True)]
            self._add(Mistake(id=id, says=says, answers=tuple(answers)))

    def must_hold(
        self, says: str, *, id: str | None = None, always: bool = False
    ) -> Callable[[Callable[[Trial], str | Finding | None]], Callable[[Trial], str | Finding | None]]:
        """Add something that is true of every right answer: stands as a decorator over what looks whether it is broken.

        Args:
            says: what should be true and what to look at; see `Property`.
            id: the hint's name; that of the function when left out.
            always: see `Property`.

        Raises:
            ValueError: the exercise has a hint of that name.
        """

        def add(broken: Callable[[Trial], str | Finding | None]) -> Callable[[Trial], str | Finding | None]:
            hint_id = id or broken.__name__
            self._must_be_new(hint_id)
            self.properties.append(Property(id=hint_id, says=says, broken=broken, always=always))
            return broken

        return add

    def _add(self, mistake: Mistake) -> None:
        self._must_be_new(mistake.id)
        self.mistakes.append(mistake)

    def _must_be_new(self, hint_id: str) -> None:
        if hint_id in self.hint_ids:
            raise ValueError(f"{self.id}: each hint id must be given once, but twice came {hint_id}")

    def __repr__(self) -> str:
        return f"<exercise {self.id}>"

    @property
    def hint_ids(self) -> list[str]:
        """The names of all hints that an answer can get."""
        return [*(one.id for one in self.mistakes), *(one.id for one in self.properties)]

    @property
    def chapter(self) -> str:
        """The chapter it belongs to."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """The name of the function or class that a student writes."""
        return self.stub.__name__

    @property
    def points(self) -> int:
        """What the whole exercise is worth."""
        return sum(case.points for case in self.cases)

    @property
    def calls_directly(self) -> bool:
        """Whether an answer is a function that gets a case's inputs as its arguments."""
        return self.observe is call

    def known_mistake(self, hint_id: str) -> Mistake:
        """Return the known mistake with this hint."""
        (found,) = (mistake for mistake in self.mistakes if mistake.id == hint_id)
        return found

    def tolerance(self, case: Case) -> float:
        """Return the largest relative difference that passes on a case."""
        return self.rtol if case.rtol is None else case.rtol
