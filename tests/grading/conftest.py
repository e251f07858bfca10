"""What the grader's tests share: the sandbox, where it works here. Starting a worker means importing PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.grading.forked import ForkedSandbox
from tests.require import missing
from ttutor.grading.sandbox import BUBBLEWRAP, Sandbox, bytecode
from ttutor.grading.worker.confine import filters_calls


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """Bubblewrap; the test is skipped, with the reason, where it does not work."""
    found = Sandbox(BUBBLEWRAP)
    if (why := found.problem()) is not None:
        missing("sandbox", f"bubblewrap does not work here: {why}")
    with bytecode() as compiled:
        yield replace(found, bytecode=compiled)


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """Workers for tests that need no bubblewrap, but many workers."""
    if not filters_calls():
        missing("sandbox", "workers are forked on Linux alone")
    with ForkedSandbox(tmp_path_factory.mktemp("forks")) as found:
        yield found
