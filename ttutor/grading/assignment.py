"""What an instructor asks for: ``assignment.toml``, read strictly.

Every key is known, every value has its type, every exercise exists; whatever does not fit is named together with what
was expected, before any submission is opened.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ttutor.grading.fields import BadAssignment, is_number, known_keys, number_in, table_in, text_in, wrong
from ttutor.grading.late import Late, Lateness, late_of

__all__ = ["VISIBILITIES", "Assignment", "BadAssignment", "ByHand", "Late", "Lateness", "Worth", "read_assignment"]

VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")
"""Who may see a result and when, in the words of Gradescope."""

EXAMPLE = '`[exercises]` with lines such as `"attention.softmax" = 4`'
KEYS = ("title", "seed", "deadline", "extensions", "files", "exercises", "by_hand", "visibility", "limits", "late")
MOST_SECONDS, LEAST_MEMORY, MOST_MEMORY, MOST_POINTS = 3600, 512, 1_000_000, 10_000


@dataclass(frozen=True)
class Worth:
    """One exercise of an assignment, and the points it is worth there.

    Args:
        exercise_id: such as ``attention.softmax``.
        points: for the whole of it.
        hide: names of cases to hide from students, beside those that the exercise itself hides.
        show: names of cases to show, though the exercise hides them.
    """

    exercise_id: str
    points: float
    hide: tuple[str, ...] = ()
    show: tuple[str, ...] = ()

    def case_hidden(self, name: str, hidden: bool) -> bool:
        """Return whether a case is hidden from students here, given what the exercise itself says."""
        return name in self.hide or (hidden and name not in self.show)


@dataclass(frozen=True)
class ByHand(Worth):
    """A piece that only people can mark.

    Args:
        asks: what is asked, in Markdown.
        kind: ``text`` or ``plot``: what a homework notebook leaves room for.
    """

    asks: str = ""
    kind: str = "text"


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """One assignment.

    Args:
        title: its name, as gradebook and feedback show it.
        seed: the secret that chooses the inputs; whoever knows it can prepare for them.
        exercises: what is asked and what it is worth, in the order of the file.
        seconds: how long one call of a student's code may take.
        submission_seconds: how long all of a submission may take; None for a minute and three calls' time for each
            exercise.
        memory: how much a student's code may use, in MiB.
        files: patterns of the file names that count, such as ``hw1*.ipynb``.
        results: who sees the results on Gradescope, one of `VISIBILITIES`.
        hidden_cases: who sees there how the hidden cases went; their names and inputs are never shown.
        deadline: with its offset from UTC, or None.
        late: what happens after it.
        extensions: other deadlines of single students, by their ids in the gradebook.
        by_hand: pieces that only people can mark, with what they are worth.
    """

    title: str
    seed: str
    exercises: tuple[Worth, ...]
    seconds: float = 10.0
    submission_seconds: float | None = None
    memory: int = 2048
    files: tuple[str, ...] = ("*.py", "*.ipynb")
    results: str = "visible"
    hidden_cases: str = "after_published"
    deadline: datetime | None = None
    late: Late = Late()
    extensions: Mapping[str, datetime] = field(default_factory=dict)
    by_hand: tuple[ByHand, ...] = ()

    @property
    def columns(self) -> tuple[Worth, ...]:
        """All that has points: exercises, then what is marked by hand."""
        return (*self.exercises, *self.by_hand)

    @property
    def longest(self) -> float:
        """How many seconds all of a submission may take."""
        return self.submission_seconds or 60 + 3 * self.seconds * len(self.exercises)

    @property
    def possible(self) -> float:
        """What all is worth."""
        return sum(one.points for one in self.columns)

    @property
    def inputs_seed(self) -> int:
        """The seed of all inputs that belongs to the secret."""
        return int.from_bytes(hashlib.sha256(f"ttutor grading/{self.seed}".encode()).digest()[:16], "big")

    def lateness(self, student: str, submitted: str | None) -> Lateness | None:
        """Say how late a submission came, or None where there is no deadline or no time to hold against it.

        Args:
            student: the id.
            submitted: an ISO time with its offset from UTC, or None where it is not known.
        """
        deadline = self.extensions.get(student, self.deadline)
        if deadline is None or submitted is None:
            return None
        return self.late.after((datetime.fromisoformat(submitted) - deadline).total_seconds())


def read_assignment(path: Path) -> Assignment:
    """Read an assignment and hold it against the exercises that there are.

    Raises:
        BadAssignment: the file cannot be read, is no TOML, or asks for what there is not.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadAssignment(f"cannot read {path}: {error.strerror}; check the path") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadAssignment(f"{path} is not TOML in UTF-8: {error}") from error
    try:
        return assignment_of(table)
    except BadAssignment as error:
        raise BadAssignment(f"{path}: {error}") from error.__cause__


def assignment_of(table: Mapping[str, Any]) -> Assignment:
    """Make an assignment of a table as TOML gives it.

    Raises:
        BadAssignment: a key is unknown or missing, or a value is not what it has to be.
    """
    known_keys("the assignment", table, KEYS)
    limits = table_in(table, "limits", ("seconds_per_call", "seconds", "memory"))
    visibility = table_in(table, "visibility", ("results", "hidden_cases"))
    if "exercises" not in table:
        raise BadAssignment(f"expected {EXAMPLE}, but there are none: name at least one exercise")
    return Assignment(
        title=text_in(table, "title", "Homework"),
        seed=_seed(table),
        exercises=_exercises(table["exercises"]),
        seconds=number_in(limits, "seconds_per_call", 10.0, above=0, most=MOST_SECONDS),
        submission_seconds=number_in(limits, "seconds", 0, above=0, most=MOST_SECONDS) if "seconds" in limits else None,
        memory=int(number_in(limits, "memory", 2048, above=LEAST_MEMORY - 1, most=MOST_MEMORY)),
        files=_patterns(table),
        results=_visibility(visibility, "results", "visible"),
        hidden_cases=_visibility(visibility, "hidden_cases", "after_published"),
        deadline=_moment(table, "deadline"),
        extensions={name: _moment(table["extensions"], name) for name in _plain_table(table, "extensions")},
        by_hand=tuple(_piece(name, value) for name, value in _plain_table(table, "by_hand").items()),
        late=late_of(table_in(table, "late", ("rule", "percent_per_day", "at_most", "grace_minutes"))),
    )


def _seed(table: Mapping[str, Any]) -> str:
    if "seed" not in table:
        raise BadAssignment('expected `seed = "..."`, a secret of your own: it chooses the inputs that nobody has seen')
    seed = text_in(table, "seed", "")
    if len(seed) < 8:
        raise BadAssignment(f"seed must have at least 8 characters so that nobody guesses it, but has {len(seed)}")
    return seed


def _patterns(table: Mapping[str, Any]) -> tuple[str, ...]:
    value = table.get("files", ["*.py", "*.ipynb"])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
        raise wrong("files", 'a list of patterns such as ["hw1*.ipynb"]', value)
    return tuple(value)


def _visibility(table: Mapping[str, Any], name: str, default: str) -> str:
    value = table.get(name, default)
    if value not in VISIBILITIES:
        raise wrong(f"visibility.{name}", f"one of {', '.join(VISIBILITIES)}", value)
    return value


def _plain_table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise wrong(name, f"a table [{name}]", value)
    return value


def _piece(name: str, value: Any) -> ByHand:
    """Read a piece to be marked by hand: its points, or a table with what is asked."""
    table = value if isinstance(value, dict) else {"points": value}
    known_keys(f"by_hand.{name}", table, ("points", "asks", "kind"))
    kind = text_in(table, "kind", "text")
    if kind not in ("text", "plot"):
        raise wrong(f"by_hand.{name}.kind", "text or plot", kind)
    asks = text_in(table, "asks", "") if "asks" in table else ""
    return ByHand(name, number_in(table, "points", 0, above=0, most=MOST_POINTS), asks=asks, kind=kind)


def _moment(table: Mapping[str, Any], name: str) -> datetime | None:
    value = table.get(name)
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise wrong(name, "a time with its offset from UTC, such as 2026-11-20T23:59:00+01:00", str(value))
    return value.astimezone(UTC)


def _exercises(table: Any) -> tuple[Worth, ...]:
    if not isinstance(table, dict) or not table:
        raise wrong("exercises", EXAMPLE, table)
    worth = tuple(_worth(name, value) for name, value in _flat(table))
    ids = [one.exercise_id for one in worth]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise BadAssignment(f"[exercises]: each exercise must be given once, but twice came {', '.join(twice)}")
    return worth


def _flat(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Exercises by id, whether the dot stands inside quotes or, as TOML reads it, between two keys."""
    from ttutor.exercises.exercise import CHAPTERS

    pairs = []
    for name, value in table.items():
        if name in CHAPTERS and isinstance(value, dict):
            pairs += [(f"{name}.{key}", one) for key, one in value.items()]
        else:
            pairs.append((name, value))
    return pairs


def _worth(name: str, value: Any) -> Worth:
    from ttutor.exercises.registry import UnknownExercise, find

    value = value if isinstance(value, dict) else {"points": value}
    known_keys(f"[exercises] {name}", value, ("points", "hide", "show"))
    points = value.get("points")
    if not is_number(points) or not 0 < points <= MOST_POINTS:
        raise wrong(f"the points of {name}", f"a number above 0 and at most {MOST_POINTS}", points)
    try:
        exercise = find(name)
    except UnknownExercise as error:
        raise BadAssignment(f"[exercises]: {error}") from error
    names = tuple(case.name for case in exercise.cases)
    return Worth(name, float(points), *(_cases(name, value, key, names) for key in ("hide", "show")))


def _cases(name: str, value: Mapping[str, Any], key: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The cases that an instructor hides or shows, each of which must be a case of the exercise."""
    cases = value.get(key, [])
    if not isinstance(cases, list) or any(case not in names for case in cases):
        raise wrong(f"{key} of {name}", f"a list of its cases ({'; '.join(names)})", cases)
    return tuple(cases)
