"""What `check` returns: the verdict, and how it looks in a notebook and in a terminal."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ttutor.errors import SYMPTOMS_PAGE
from ttutor.exercises.exercise import Exercise, Finding
from ttutor.exercises.picture import as_svg, as_text

__all__ = ["Result", "Tried"]

MARKS = {True: "✓", False: "✗", None: "·"}
COLOURS = {"right": "#00704F", "so far so good": "#5F6670", "not started": "#5F6670", "not yet": "#B34700"}
CARD = (
    "border:1px solid #8a8f98;border-radius:.25rem;padding:.25rem 1rem;margin:.75rem 0;max-width:46em;overflow-x:auto"
)
BADGE = "color:#fff;border-radius:.25rem;padding:.1rem .45rem;font-weight:600"
TIGHT = ' style="margin:.25rem 0"'
LOOKED_UP = ("raises", "shape", "dtype", "non_finite")
SYMPTOMS = f"A message or a result like this: {SYMPTOMS_PAGE}."


@dataclass(frozen=True)
class Tried:
    """One case that was looked at: its name, whether the answer was right (None: not run), and its points."""

    name: str
    right: bool | None
    points: int


@dataclass(frozen=True)
class Result:
    """The verdict on one answer.

    Args:
        exercise_id: the exercise.
        title: its title.
        passed: whether every case that was run is right; see ``n_hidden`` for those that were not.
        points: earned so far.
        points_possible: what the exercise is worth, hidden cases included.
        hint_id: which hint the message is, None where the answer passed.
        message: what to tell the student.
        tried: every case that was run, or would have been.
        n_hidden: how many cases are kept for grading and were not run.
        finding: what a property saw, perhaps with a picture.
        hints: the exercise's own hints, as far as they were asked for.
        section: where to read on.
    """

    exercise_id: str
    title: str
    passed: bool
    points: int
    points_possible: int
    hint_id: str | None
    message: str
    tried: tuple[Tried, ...] = ()
    n_hidden: int = 0
    finding: Finding | None = None
    hints: tuple[str, ...] = ()
    section: str = ""

    @property
    def started(self) -> bool:
        """Whether there is anything to judge."""
        return self.hint_id != "not_started"

    @classmethod
    def of(cls, exercise: Exercise, tried: tuple[Tried, ...]) -> Result:
        """Return a verdict without its sentence, which `passing` or `failing` adds."""
        return cls(
            exercise_id=exercise.id,
            title=exercise.title,
            passed=False,
            points=sum(one.points for one in tried if one.right),
            points_possible=exercise.points,
            hint_id=None,
            message="",
            tried=tried,
            n_hidden=len(exercise.cases) - len(tried),
            section=exercise.section,
        )

    def passing(self, message: str) -> Result:
        """Return the verdict that nothing is wrong."""
        return replace(self, passed=True, message=message)

    def failing(self, hint_id: str, message: str, finding: Finding | None = None) -> Result:
        """Return the verdict that something is."""
        return replace(self, hint_id=hint_id, message=message.strip(), finding=finding)

    def with_hints(self, hints: Sequence[str]) -> Result:
        """Return the same verdict with hints below it."""
        return replace(self, hints=tuple(hints))

    @property
    def _state(self) -> str:
        if not self.started:
            return "not started"
        if not self.passed:
            return "not yet"
        return "so far so good" if self.n_hidden else "right"

    @property
    def _look_up(self) -> list[str]:
        """Where else a reader may look: at what many others have met."""
        return [SYMPTOMS] if self.hint_id in LOOKED_UP else []

    def __str__(self) -> str:
        mark = MARKS[self.passed if self.started else None]
        lines = [f"{mark} {self.title} ({self.exercise_id}): {self.points} of {self.points_possible} points"]
        lines += [f"  {_plain(self.message)}"]
        if any(one.right is not None for one in self.tried):
            lines += [f"  {MARKS[one.right]} with {_plain(one.name)}" for one in self.tried]
        if self.finding is not None and self.finding.depends is not None:
            lines += [f"  {line}" for line in as_text(self.finding)]
        lines += [f"  {line}" for line in self._look_up]
        lines += [f"  Hint {tier}: {_plain(hint)}" for tier, hint in enumerate(self.hints, start=1)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The verdict as a card, for notebooks: it reads the same without its colours."""
        colour = COLOURS[self._state]
        points = f"{self.points} of {self.points_possible} points"
        badge = f'<span style="{BADGE};background:{colour}">{self._state}</span>'
        parts = [
            f"<p{TIGHT}><strong>{html.escape(self.title)}</strong> {badge} {points}</p>",
            f"<p{TIGHT}>{_marked_up(self.message)}</p>",
        ]
        if any(one.right is not None for one in self.tried):
            rows = "".join(f"<li>{MARKS[one.right]} with {_marked_up(one.name)}</li>" for one in self.tried)
            parts.append(f'<ul style="list-style:none;margin:.25rem 0;padding-left:0">{rows}</ul>')
        if self.finding is not None and self.finding.depends is not None:
            parts.append(as_svg(self.finding))
        parts += [f"<p{TIGHT}>{_marked_up(line)}</p>" for line in self._look_up]
        parts += [
            f"<details><summary>Hint {tier}</summary>{_marked_up(hint)}</details>"
            for tier, hint in enumerate(self.hints, start=1)
        ]
        return f'<div class="ttutor-check" style="{CARD};border-left:.35rem solid {colour}">{"".join(parts)}</div>'


def _plain(text: str) -> str:
    """Markdown for a terminal: code and formulas without their signs.

    >>> _plain("Take `x.amax()` of $x$.")
    'Take x.amax() of x.'
    """
    return re.sub(r"`([^`]*)`|\$([^$]*)\$", lambda found: found[1] or found[2] or "", text)


def _marked_up(text: str) -> str:
    """Markdown for a notebook: everything escaped, code set as code; formulas are left to the notebook.

    >>> _marked_up("`a < b`, or else")
    '<code>a &lt; b</code>, or else'
    """
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=False))
