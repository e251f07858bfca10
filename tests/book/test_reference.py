"""The reference: every page opens with recipes that run as they stand."""

from __future__ import annotations

import ast
import doctest
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from book._tools.build import read_toc
from tests.require import missing
from ttutor.exercises import registry
from ttutor.grading.sandbox import BUBBLEWRAP, Sandbox
from ttutor.pretrained import PUBLISHED
from ttutor.training.recipe import TrainingRecipe

BOOK = Path(__file__).resolve().parents[2] / "book"
PAGES = [page.removeprefix("book/") for page in read_toc() if page.startswith("book/api-")]
BLOCK = re.compile(r"^```(?:\{code-block\} )?\w+\n(?::caption: (?P<file>\S+)\n)?(?P<code>.*?)^```$", re.M | re.S)
LONGEST = 12
DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def blocks(page: str) -> list[tuple[str, str]]:
    """The code of a page: the name of the file that it shows, or nothing, and what is in it."""
    return BLOCK.findall((BOOK / f"{page}.md").read_text(encoding="utf-8"))


def recipes(page: str) -> list[str]:
    """What a page shows as a reader types it, with the results."""
    return [code for _, code in blocks(page) if code.startswith(">>>")]


@pytest.fixture
def what_it_needs(page: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """What not every machine has; and what a recipe leaves in this process is taken away afterwards."""
    if page == "api-interop":
        request.getfixturevalue("transformers")
    if page == "api-pretrained" and set(PUBLISHED["minilm"].faults().values()) == {"missing"}:
        missing("pretrained", "minilm is not on this machine: get it by `ttutor fetch minilm`")
    if page == "api-grading" and (why := Sandbox(BUBBLEWRAP).problem()):
        missing("sandbox", f"bubblewrap does not work here: {why}")
    yield
    registry._own.clear()
    sys.modules.pop(f"{registry.OWN}.twice", None)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_with_a_recipe_of_at_most_a_dozen_lines(page: str) -> None:
    text = (BOOK / f"{page}.md").read_text(encoding="utf-8")
    assert text.index(">>>") < text.index("automodule")
    for recipe in recipes(page):
        typed = re.findall(r"^(?:>>>|\.\.\.) (?!import |from )", recipe, re.M)
        assert 0 < len(typed) <= LONGEST


RECIPES = [(page, number) for page in PAGES for number in range(len(recipes(page)))]


@pytest.mark.parametrize(("page", "number"), RECIPES, ids=[f"{page}-{number + 1}" for page, number in RECIPES])
@pytest.mark.usefixtures("what_it_needs", "as_readers_run_it")
def test_a_recipe_runs_as_it_stands_and_alone(
    page: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    for name, code in blocks(page):
        if name:
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_text(code, encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(recipes(page)[number], {}, page, page, 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.attempted
    assert result.failed == 0


def test_no_docstring_shows_code_as_prose() -> None:
    found = []
    for path in sorted((BOOK.parent / "ttutor").rglob("*.py")):
        described = (
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, DESCRIBED)
        )
        texts = [ast.get_docstring(node) or "" for node in described]
        found += [f"{path.name}: {line}" for text in texts for line in re.findall(r"^\w+ = \w[\w.]*\(.*", text, re.M)]
    assert found == []


@pytest.mark.browser
def test_every_setting_of_a_recipe_is_explained(html: Path) -> None:
    text = (html / "book" / "api-training.html").read_text(encoding="utf-8")
    start = text.index('id="ttutor.training.recipe.TrainingRecipe"')
    explained = re.findall(
        r"<li><p><strong>(\w+)</strong> – ",
        text[start : text.index('id="ttutor.training.recipe.TrainingRecipe.', start + 50)],
    )
    assert set(explained) == {one.name for one in fields(TrainingRecipe)}
