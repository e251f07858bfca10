"""The page that lays the paper beside the code: complete in both directions, and every name on it exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ttutor.claims import all_claims
from ttutor.transformer import TransformerConfig, account

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "paper-and-code.md").read_text(encoding="utf-8")
DIFFERS = re.compile(r"Differs\s+from\s+the\s+paper")
IN_BACKTICKS = re.compile(r"`~?(ttutor(?:\.\w+)+)`")


def deviations(path: Path) -> Iterator[str]:
    """Every object of a file whose docstring says that it differs from its paper, as a dotted name."""
    source = path.read_text(encoding="utf-8")
    if not DIFFERS.search(source):
        return
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")

    def walk(node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str) -> Iterator[str]:
        if DIFFERS.search(ast.get_docstring(node) or ""):
            yield name
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                yield from walk(child, f"{name}.{child.name}")

    yield from walk(ast.parse(source), module)


@cache
def resolve(name: str) -> object:
    """The object of a dotted name; the name itself of a module that nothing else can be found in.

    Raises:
        AttributeError, ModuleNotFoundError: there is no such thing.
    """
    parts = name.split(".")
    for n_module in range(len(parts), 0, -1):
        module = ".".join(parts[:n_module])
        try:
            is_there = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:  # its parent is no package, so it is an attribute
            is_there = False
        if is_there:
            if n_module == len(parts):
                return name  # not imported: some modules need what not every machine has
            found = importlib.import_module(module)
            for part in parts[n_module:]:
                found = getattr(found, part)
            return found
    raise ModuleNotFoundError(name)


def home(name: str) -> str:
    """Where a thing is defined, by whatever name it is called."""
    found = resolve(name)
    return found if isinstance(found, str) else f"{found.__module__}.{found.__qualname__}"


DEVIATIONS = sorted(name for path in (ROOT / "ttutor").rglob("*.py") for name in deviations(path))
NAMES = sorted(set(IN_BACKTICKS.findall(PAGE)))


def test_the_search_for_deviations_finds_some() -> None:
    assert {"ttutor.multihead.MultiHeadAttention", "ttutor.inside.circuits"} < set(DEVIATIONS)
    written = sum(len(DIFFERS.findall(path.read_text(encoding="utf-8"))) for path in (ROOT / "ttutor").rglob("*.py"))
    assert len(DEVIATIONS) == written, "a docstring says it twice, or the words stand where no docstring is"


def test_what_differs_from_its_paper_stands_on_the_page_and_every_name_there_exists() -> None:
    written = {home(name) for name in NAMES}
    assert [name for name in DEVIATIONS if home(name) not in written] == []


def test_claims_are_those_of_the_chapter_that_is_linked() -> None:
    links = re.findall(r'<a href="(\d\d-[\w-]+)\.html#claim-([A-Z]+-\d+)">([A-Z]+-\d+)</a>', PAGE)
    assert len(links) == PAGE.count("<a ")
    assert {said for _, _, said in links} <= set(all_claims())
    assert [link for link in links if link[1] != link[2] or link[1] not in covered_in(link[0])] == []


@cache
def covered_in(chapter: str) -> frozenset[str]:
    cells = json.loads((ROOT / "book" / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    return frozenset(re.findall(r'claim\(\s*"([A-Z]+-\d+)"', "\n".join("".join(cell["source"]) for cell in cells)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"logits_bias": True},
        {"tie_embeddings": False},
        {"positions": "learned"},
        {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "dropout": 0.3},
    ],
    ids=str,
)
def test_the_counts_of_parameters_are_right(changes: dict[str, object]) -> None:
    assert f"{account(TransformerConfig.base(**changes)).n_parameters:,}" in PAGE
