"""Hugging Face as an oracle, offline."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported

import pytest

from tests.require import missing


@pytest.fixture(scope="session")
def transformers():
    """The library, its remarks on random models out of the way; skip without it."""
    try:
        import transformers
    except ModuleNotFoundError:
        missing("transformers", "transformers is not installed: pip install 'ttutor[test]'")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers
