"""Published models as oracles: small, of odd shapes, with random weights, and nothing is downloaded."""

from types import ModuleType

import pytest


@pytest.fixture(scope="session", autouse=True)
def _transformers_is_there_and_quiet(transformers: ModuleType) -> None:
    """Skip all of this without it."""
