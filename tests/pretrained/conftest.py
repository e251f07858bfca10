"""The published models where they are, and a tiny one of their kind where they need not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.require import missing
from ttutor.pretrained import PUBLISHED, Pretrained, load


@pytest.fixture(scope="session")
def smollm2() -> Pretrained:
    """The real one, loaded once."""
    return _real("smollm2")


@pytest.fixture(scope="session")
def minilm() -> Pretrained:
    """The real one."""
    return _real("minilm")


def _real(name: str) -> Pretrained:
    if set(PUBLISHED[name].faults().values()) == {"missing"}:
        missing("pretrained", f"{name} is not on this machine: get it by `ttutor fetch {name}`")
    return load(name)


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file of a small random Llama with a tokenizer and a chat template."""
    pytest.importorskip("transformers", reason="transformers makes the random model")
    from tests.interop import gguf_writing
    from tests.interop.test_gguf import make

    return gguf_writing.write(tmp_path_factory.mktemp("tiny") / "tiny.gguf", make())


@pytest.fixture(scope="session")
def tiny(tiny_file: Path) -> Pretrained:
    """That file, opened."""
    return load(tiny_file)
