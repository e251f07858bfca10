"""Attacks on the grader: submissions that want points, or harm, without an answer to `attention.softmax`.

What a worker cannot do at all (processes, files, the network, other users) is tried deed by deed in `test_sandbox`.
"""

from __future__ import annotations

from tests.grading.attacks import exhausting, files, forging, frames, leaving, looking
from tests.grading.attacks.attack import Attack

__all__ = ["ATTACKS", "Attack"]

ATTACKS: tuple[Attack, ...] = (
    *leaving.ATTACKS,
    *frames.ATTACKS,
    *forging.ATTACKS,
    *exhausting.ATTACKS,
    *looking.ATTACKS,
    *files.ATTACKS,
)
