"""What an instructor asks for: ``assignment.toml``, read strictly.

Every key is known, every value has its type, every exercise exists; whatever does not fit is named together with what
was expected, before any submission is opened.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, Strict, StringConstraints, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ttutor.errors import FileError, SettingError
from ttutor.schemas import parse_toml

NO_MORE = ConfigDict(extra="forbid", allow_inf_nan=False)
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Number = Annotated[float, Strict()]
Points = Annotated[Number, Field(gt=0, le=10_000)]
Seconds = Annotated[Number, Field(gt=0, le=3600)]
Percent = Annotated[Number, Field(ge=0, le=100)]
Minutes = Annotated[Number, Field(ge=0, le=100_000)]
Mebibytes = Annotated[int, Strict(), Field(ge=512, le=1_000_000)]
Secret = Annotated[Text, Field(min_length=8)]
Patterns = Annotated[tuple[Text, ...], Field(min_length=1)]
Moment = Annotated[AwareDatetime, Strict()]
SeenBy = Literal["visible", "after_due_date", "after_published", "hidden"]


@dataclass(frozen=True, config=NO_MORE)
class Worth:
    """One exercise of an assignment, and the points it is worth there.

    Args:
        exercise_id: such as ``attention.softmax``.
        points: for the whole of it.
        hide: names of cases to hide from students, beside those that the exercise itself hides.
        show: names of cases to show, though the exercise hides them.
    """

    exercise_id: str
    points: Points
    hide: tuple[Text, ...] = ()
    show: tuple[Text, ...] = ()

    def case_hidden(self, name: str, hidden: bool) -> bool:
        """Return whether a case is hidden from students here, given what the exercise itself says."""
        return name in self.hide or (hidden and name not in self.show)


Exercises = Annotated[tuple[Worth, ...], Field(min_length=1)]


@dataclass(frozen=True, config=NO_MORE)
class ByHand:
    """A piece that only people can mark.

    Args:
        exercise_id: what it is called.
        points: for the whole of it.
        asks: what is asked, in Markdown.
        kind: what a homework notebook leaves room for.
    """

    exercise_id: str
    points: Points
    asks: str = ""
    kind: Literal["text", "plot"] = "text"

    @property
    def title(self) -> str:
        """What a student reads above it: its name as words."""
        words = self.exercise_id.replace("_", " ").strip()
        return words[:1].upper() + words[1:]


@dataclass(frozen=True, config=NO_MORE)
class Lateness:
    """How late one submission came, and what that costs.

    Args:
        hours: after the deadline; 0 where it is in time, grace included.
        percent: of the total to take off.
    """

    hours: float
    percent: float


@dataclass(frozen=True, kw_only=True, config=NO_MORE)
class Late:
    """What happens after the deadline: lateness is reported, and only on request something taken off.

    Args:
        percent_per_day: taken off the total for each day begun; 0 reports lateness and takes nothing.
        at_most: the most that is ever taken off, in percent.
        grace_minutes: what still counts as in time.
    """

    percent_per_day: Percent = 0.0
    at_most: Percent = 100.0
    grace_minutes: Minutes = 0.0

    def after(self, seconds: float) -> Lateness:
        """Return what so many seconds after the deadline come to."""
        if seconds <= 60 * self.grace_minutes:
            return Lateness(0.0, 0.0)
        days = -(-seconds // 86400)
        return Lateness(round(seconds / 3600, 2), min(days * self.percent_per_day, self.at_most))


@dataclass(frozen=True, kw_only=True, config=NO_MORE)
class Limits:
    """What a submission may use.

    Args:
        seconds_per_call: for one call of a student's code.
        seconds: for all of it; None for a minute and three calls' time for each exercise.
        memory: in MiB.
    """

    seconds_per_call: Seconds = 10.0
    seconds: Seconds | None = None
    memory: Mebibytes = 2048


@dataclass(frozen=True, kw_only=True, config=NO_MORE)
class Visibility:
    """Who sees what on Gradescope, in its own words.

    Args:
        results: who sees the results.
        hidden_cases: who sees how the hidden cases went; their names and inputs are never shown.
    """

    results: SeenBy = "visible"
    hidden_cases: SeenBy = "after_published"


@dataclass(frozen=True, kw_only=True, config=NO_MORE)
class Assignment:
    """One assignment.

    Args:
        title: its name, as gradebook and feedback show it.
        seed: the secret that chooses the inputs; whoever knows it can prepare for them.
        exercises: what is asked and what it is worth, in the order of the file.
        by_hand: pieces that only people can mark.
        files: patterns of the file names that count, such as ``hw1*.ipynb``.
        limits: what a submission may use.
        visibility: who sees what on Gradescope.
        deadline: with its offset from UTC, or None.
        extensions: other deadlines of single students, by their ids in the gradebook.
        late: what happens after it.
        strict: an answer in which something stands that is to be looked at waits for the instructor.
    """

    title: Text = "Homework"
    seed: Secret
    exercises: Exercises
    by_hand: tuple[ByHand, ...] = ()
    files: Patterns = ("*.py", "*.ipynb")
    limits: Limits = Limits()
    visibility: Visibility = Visibility()
    deadline: Moment | None = None
    extensions: Mapping[str, Moment] = Field(default_factory=dict)
    late: Late = Late()
    strict: bool = False

    @property
    def columns(self) -> tuple[Worth | ByHand, ...]:
        """All that has points: exercises, then what is marked by hand."""
        return (*self.exercises, *self.by_hand)

    @property
    def longest(self) -> float:
        """How many seconds all of a submission may take."""
        return self.limits.seconds or 60 + 3 * self.limits.seconds_per_call * len(self.exercises)

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
        FileError: the file cannot be read, or is no TOML.
        SettingError: it asks for what there is not.
    """
    try:
        return assignment_of(parse_toml(path.read_bytes(), path, "mend it"))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}; check the path") from error
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from error.__cause__


def assignment_of(table: Mapping[str, Any]) -> Assignment:
    """Make an assignment of a table as TOML gives it.

    Raises:
        SettingError: a key is unknown or missing, or a value is not what it has to be.
    """
    rows = {"exercises": _flat(_named(table, "exercises")), "by_hand": list(_named(table, "by_hand").items())}
    changed = {
        name: [{"exercise_id": one, **(value if isinstance(value, dict) else {"points": value})} for one, value in rows]
        for name, rows in rows.items()
    }
    try:
        asked = TypeAdapter(Assignment).validate_python({**table, **changed})
    except ValidationError as error:
        places = [one["loc"] for one in error.errors()]
        first = [  # of a list whose every row is wrong, pydantic says besides that it is empty
            one
            for one in error.errors()
            if not any(place[: len(one["loc"])] == one["loc"] != place for place in places)
        ]
        raise SettingError("; ".join(_said(one, changed) for one in first)) from error
    _check_exercises(asked)
    return asked


def _named(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise SettingError(f"{name} must be a table [{name}], but came as {value!r}")
    return value


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


def _said(error: Mapping[str, Any], rows: Mapping[str, list[dict[str, Any]]]) -> str:
    """One complaint of pydantic's: where, what was expected, and what came."""
    where = list(error["loc"])
    if len(where) > 1 and where[0] in rows:
        where[1] = rows[where[0]][where[1]]["exercise_id"]
    place, given = ": ".join(map(str, where)), error["input"]
    if error["type"] == "unexpected_keyword_argument":
        known = [one.name for one in fields(TABLES.get(where[0], Assignment)) if one.name != "exercise_id"]
        near = difflib.get_close_matches(str(where[-1]), known, n=1)
        return f"{place}: there is no such key{f' (did you mean {near[0]}?)' if near else ''}"
    if error["type"] in ("timezone_aware", "datetime_type"):
        moment = given if isinstance(given, datetime) else datetime(2026, 11, 20, 23, 59)
        return f"{place}: expected a time with its offset from UTC, such as {moment}+01:00, but {given} came"
    came = "" if error["type"] == "missing" else f", but {given!r} came"
    return f"{place}: {error['msg'].lower()}{came}"


TABLES: dict[str, Any] = {
    "exercises": Worth,
    "by_hand": ByHand,
    "limits": Limits,
    "visibility": Visibility,
    "late": Late,
}
"""What stands below a key of an assignment; all other keys are the assignment's own."""


def _check_exercises(asked: Assignment) -> None:
    """Hold what is asked against the exercises that there are."""
    from ttutor.exercises.registry import find

    ids = [one.exercise_id for one in asked.columns]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise SettingError(f"each exercise must be given once, but twice came {', '.join(twice)}")
    for worth in asked.exercises:
        try:
            names = [case.name for case in find(worth.exercise_id).cases]
        except SettingError as error:
            raise SettingError(f"[exercises]: {error}") from error
        if unknown := [case for case in (*worth.hide, *worth.show) if case not in names]:
            raise SettingError(f"{worth.exercise_id} has no case {unknown[0]!r}; expected of {'; '.join(names)}")
