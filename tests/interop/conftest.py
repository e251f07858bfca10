"""Published models as oracles: small, of odd shapes, with random weights, and nothing is downloaded."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported

import pytest

from tests.require import missing


@pytest.fixture(scope="session", autouse=True)
def _transformers_is_there_and_quiet() -> None:
    """Skip without `transformers`; keep its remarks on random models out of the way."""
    try:
        import transformers
    except ModuleNotFoundError:
        missing("transformers", "transformers is not installed: pip install 'ttutor[test]'")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
