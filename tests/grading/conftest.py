"""What the grader's tests share: the sandbox, where it works here. Starting a worker means importing PyTorch."""

from __future__ import annotations

import pytest

from tests.require import missing
from ttutor.grading.sandbox.choose import BUBBLEWRAP, Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """Bubblewrap; the test is skipped, with the reason, where it does not work."""
    found = Sandbox(BUBBLEWRAP)
    if (why := found.problem()) is not None:
        missing("sandbox", f"bubblewrap does not work here: {why}")
    return found
