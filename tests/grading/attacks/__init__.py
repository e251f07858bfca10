"""Attacks on the grader: submissions that want points, or harm, without an answer; nothing of them runs here."""

from __future__ import annotations

from tests.grading.attacks import exhausting, files, forging, frames, leaving, looking, meddling
from tests.grading.attacks.attack import Attack
from tests.grading.attacks.lasting import PAIRS

__all__ = ["ATTACKS", "PAIRS", "TARGET", "Attack"]

TARGET = "attention.softmax"
"""The exercise that all of them pretend to answer."""

ATTACKS: tuple[Attack, ...] = (
    *leaving.ATTACKS,
    *frames.ATTACKS,
    *forging.ATTACKS,
    *exhausting.ATTACKS,
    *looking.ATTACKS,
    *meddling.ATTACKS,
    *files.ATTACKS,
)
