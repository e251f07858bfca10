"""What all tests share: seeds, the command, one browser, the real data where it exists, and honest skips."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import settings
from jaxtyping import config as jaxtyping_config

from tests.require import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported
settings.register_profile("no deadline", deadline=None)  # a busy machine is no failure
settings.load_profile("no deadline")
gc.disable()  # while tests are collected, when nearly nothing is thrown away


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Start every test from the same random state, whichever ran before it."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  (libraries under test may use the old generator)
    torch.manual_seed(0)


@pytest.fixture
def as_readers_run_it() -> Iterator[None]:
    """Switch the annotation checks off, so that the package's own error messages are met, as they are by readers."""
    before = jaxtyping_config.jaxtyping_disable
    jaxtyping_config.update("jaxtyping_disable", True)
    yield
    jaxtyping_config.update("jaxtyping_disable", before)


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For this test PyTorch has two threads, and nobody has asked for another number."""
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def ttutor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_readers_run_it: None) -> Callable:
    """Run `ttutor` with these arguments in an empty folder; returns its result, which never is a traceback."""
    from typer.testing import CliRunner

    from ttutor import cli

    monkeypatch.chdir(tmp_path)
    app = cli.build_app()

    def run(*arguments: object, code: int = 0, **options: object):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return run


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run of the tests have in common: what one makes there need not be made twice.

    Which of them asks first is not known, so take a `FileLock` beside it.
    """
    is_alone = "PYTEST_XDIST_WORKER" not in os.environ
    return tmp_path_factory.mktemp("shared") if is_alone else tmp_path_factory.getbasetemp().parent


@pytest.fixture(scope="session")
def transformers() -> ModuleType:
    """Hugging Face's library, its remarks on random models out of the way; what asks for it is skipped without."""
    try:
        import transformers
    except ModuleNotFoundError:
        missing("transformers", "transformers is not installed: pip install 'ttutor[test]'")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests that look at pages."""
    from tests.book.browser import find_browser, open_browser

    if find_browser() is None:
        missing("browser", "no Chromium on this machine: install one or set TTUTOR_CHROMIUM")
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def multi30k() -> Path:
    """The folder of the Multi30k files, ``$TTUTOR_DATA/multi30k``; tests that ask for it are skipped without it."""
    root = os.environ.get("TTUTOR_DATA", "")
    folder = Path(root) / "multi30k"
    if not root:
        missing("data", "TTUTOR_DATA is not set: it names the folder that holds multi30k")
    if not folder.is_dir():
        missing("data", f"there is no folder multi30k in TTUTOR_DATA ({root})")
    return folder


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests marked ``gpu`` where there is none."""
    if item.get_closest_marker("gpu") is not None and not torch.cuda.is_available():
        missing("gpu", "needs a CUDA device, and PyTorch finds none")


def pytest_collection_finish() -> None:
    """Collect garbage from now on, and pass over what stays to the end: thousands of tests, and all modules."""
    gc.freeze()
    gc.enable()
