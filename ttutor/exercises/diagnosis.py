"""What is wrong with an answer that no listed mistake is like on every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ttutor.exercises import wording
from ttutor.exercises.exercise import Case, Exercise, Finding, Property
from ttutor.exercises.known import Known, shown_on
from ttutor.exercises.running import Elsewhere, Outcome, agree, input_names, look, make_inputs, trial
from ttutor.exercises.values import Difference, differences

GENERIC = (
    "not_started",
    "cannot_load",
    "shortcut",
    "raises",
    "type",
    "shape",
    "dtype",
    "input_changed",
    "non_finite",
    "differs",
)
"""The ids of the hints that every exercise has."""

Diagnosis = tuple[str, str, Finding | None]
"""The hint's id, what to say, and what was seen."""


@dataclass(frozen=True, eq=False)
class Sitting:
    """An answer with all that came of it, at least one case of which is wrong."""

    exercise: Exercise
    answer: Callable[..., Any] | Elsewhere
    seed: int
    cases: tuple[Case, ...]
    expected: tuple[Any, ...]
    mistakes: tuple[Known, ...]
    came: tuple[Outcome, ...]

    def diagnosis(self) -> Diagnosis:
        """Return the first thing that is wrong: case by case from the plain to the special, as a tutor would go."""
        findings = (found for index in self.wrong for found in self._findings(index) if found is not None)
        return next(findings, None) or self._differs()

    @cached_property
    def wrong(self) -> list[int]:
        """The cases that are wrong."""
        return [index for index, one in enumerate(self.came) if not one.right]

    @cached_property
    def differences(self) -> dict[int, Difference]:
        """For each case that gave a wrong value, the worst that is wrong with it."""
        wrong = [index for index in self.wrong if self.came[index].error is None]
        found = {index: differences(self.expected[index], self.came[index].value, self._rtol(index)) for index in wrong}
        return {index: worst[0] for index, worst in found.items() if worst}

    def _findings(self, index: int) -> Iterator[Diagnosis | None]:
        """Yield what is to be said of one wrong case, the first thing first."""
        difference, error = self.differences.get(index), self.came[index].error
        kind = difference.kind if difference is not None else ""
        if error is not None:
            yield self._raised(index, error)
            return
        if kind != "non_finite":  # one NaN is like another: that is no evidence
            yield self._known(index)
        if difference is not None and kind in ("type", "shape", "dtype"):
            yield self._wrong_kind(index, difference)
        if self.came[index].changed:
            yield "input_changed", wording.changed(self.came[index].changed, is_right=difference is None), None
        if difference is not None and kind == "non_finite":
            yield self._wrong_kind(index, difference)
        for prop in self.exercise.properties:
            yield self._property(index, prop)

    def _raised(self, index: int, error: BaseException) -> Diagnosis:
        line = wording.line_of(self.answer, error)
        raised = f"{wording.error(error)}{line}.{wording.advice(error, line)}"
        return "raises", f"{self._with(index)} your code raises {raised} {self._shapes(index)}", None

    def _known(self, index: int) -> Diagnosis | None:
        """A known mistake that gives this very value; it is said where it cannot explain what else is wrong."""
        shown = shown_on(self.mistakes, index, self.came[index], self._rtol(index))
        if not shown:
            return None
        is_all = any(all(agree(one.on(at), self.came[at], self._rtol(at)) for at in self.wrong) for one in shown)
        more = "" if is_all else "this shows, and it is not all. "
        return shown[0].hint_id, f"{self._with(index)} {more}{self.exercise.known_mistake(shown[0].hint_id).says}", None

    def _wrong_kind(self, index: int, difference: Difference) -> Diagnosis:
        shapes = f" {self._shapes(index)}" if difference.kind == "shape" else ""
        return difference.kind, f"{self._with(index)} your result {difference.text}.{shapes}", None

    def _property(self, index: int, prop: Property) -> Diagnosis | None:
        outcome = self.came[index]
        one = trial(self.exercise, self.cases[index], self.answer, outcome.value, self.seed)
        seen = outcome.finding if outcome.broken is prop else look(prop, one)
        return None if seen is None else (prop.id, f"{self._with(index)} {seen.text} {prop.says}", seen)

    def _differs(self) -> Diagnosis:
        index, difference = next(iter(self.differences.items()))
        right = [case.name for case, one in zip(self.cases, self.came, strict=True) if one.right]
        text = f"{self._with(index)} your result {difference.text}."
        return "differs", f"{text} {wording.what_is_right(right)}", None

    def _rtol(self, index: int) -> float:
        return self.exercise.tolerance(self.cases[index])

    def _with(self, index: int) -> str:
        return f"With {self.cases[index].name}:"

    def _shapes(self, index: int) -> str:
        inputs = make_inputs(self.exercise, self.cases[index], self.seed)
        return wording.shapes(input_names(self.exercise, len(inputs)), inputs)
