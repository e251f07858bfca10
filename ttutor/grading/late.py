"""What becomes of work that comes in after the deadline: reported, and only on request something taken off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ttutor.grading.fields import BadAssignment, number_in, wrong

__all__ = ["Late", "Lateness", "late_of"]


@dataclass(frozen=True)
class Lateness:
    """How late one submission came, and what that costs.

    Args:
        hours: after the deadline, grace included; 0 where it is in time.
        percent: of the total to take off: 0 where lateness is reported and nothing more.
    """

    hours: float
    percent: float


@dataclass(frozen=True, kw_only=True)
class Late:
    """What happens after the deadline.

    Args:
        percent_per_day: taken off the total for each day begun; 0 reports lateness and takes nothing.
        at_most: the most that is ever taken off, in percent.
        grace_minutes: what still counts as in time.
    """

    percent_per_day: float = 0.0
    at_most: float = 100.0
    grace_minutes: float = 0.0

    def after(self, seconds: float) -> Lateness:
        """Return what so many seconds after the deadline come to."""
        if seconds <= 60 * self.grace_minutes:
            return Lateness(0.0, 0.0)
        days = -(-seconds // 86400)
        return Lateness(round(seconds / 3600, 2), min(days * self.percent_per_day, self.at_most))


def late_of(table: Mapping[str, Any]) -> Late:
    """Read the table ``[late]`` of an assignment."""
    rule = table.get("rule", "report")
    if rule not in ("report", "penalty"):
        raise wrong("late.rule", "report or penalty", rule)
    if rule == "report" and (extra := sorted({"percent_per_day", "at_most"} & set(table))):
        raise BadAssignment(f'[late] takes nothing off under rule = "report": drop {", ".join(extra)} or use "penalty"')
    if rule == "penalty" and "percent_per_day" not in table:
        raise BadAssignment('[late] with rule = "penalty" needs percent_per_day, such as 10')
    return Late(
        percent_per_day=number_in(table, "percent_per_day", 0.0, above=0, most=100) if rule == "penalty" else 0.0,
        at_most=number_in(table, "at_most", 100.0, above=0, most=100),
        grace_minutes=number_in(table, "grace_minutes", 0.0, above=-1, most=100_000),
    )
