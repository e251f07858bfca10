"""What a test needs from the machine, and what to do where it is not there."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str, reason: str) -> NoReturn:
    """Skip the test for lack of something, or fail it where ``TTUTOR_REQUIRE`` (a comma-separated list) names that.

    The project's own checks set ``TTUTOR_REQUIRE=browser,sandbox``, so that nothing is skipped there unseen.
    """
    required = {name.strip() for name in os.environ.get("TTUTOR_REQUIRE", "").split(",")}
    if what in required:
        pytest.fail(f"{reason} (TTUTOR_REQUIRE asks for {what})", pytrace=False)
    pytest.skip(reason)
