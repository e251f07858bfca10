"""The page of symptoms: what it says fails does fail, what it says works does, and every link leads somewhere."""

from __future__ import annotations

import doctest
import json
import re
import warnings
from functools import cache
from pathlib import Path

import pytest
import torch

from ttutor.errors import SYMPTOMS_PAGE

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
PAGE = (BOOK / "symptoms.md").read_text(encoding="utf-8")
BEGINNING, *SECTIONS = re.split(r"^### ", PAGE, flags=re.M)
SYMPTOMS = {section.partition("\n")[0]: re.split(r"^## ", section, flags=re.M)[0] for section in SECTIONS}
CODE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
LINE = re.compile(r"^(?:>>>|\.\.\.) ", re.M)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ELSEWHERE = {
    "embed_dim": "ours answers in its own words",
    "'generate'": "ours answers in its own words",
    "CUDA enabled": "needs a PyTorch for CPUs",
    "deserialize": "has other words where there is a card",
    "same device": "needs a second device",
}
"""Parts of headings whose message the lines below cannot raise on every machine, and why."""


def blocks(heading: str) -> list[str]:
    return CODE.findall(SYMPTOMS[heading])


def test_errors_name_the_file_and_the_title_of_this_page() -> None:
    (file,) = re.findall(r"\(([\w/.]+)\)", SYMPTOMS_PAGE)
    (title,) = re.findall(r'"(.+)"', SYMPTOMS_PAGE)
    assert f"# {title}\n" in (ROOT / file).read_text(encoding="utf-8")


def test_there_are_forty_and_more() -> None:
    assert len(SYMPTOMS) == len(SECTIONS) >= 40


@pytest.mark.parametrize("heading", SYMPTOMS)
@pytest.mark.usefixtures("as_readers_run_it")
def test_the_lines_fail_and_work_as_the_page_shows(heading: str) -> None:
    torch.manual_seed(0)
    lines = "\n".join([CODE.findall(BEGINNING)[0], *blocks(heading)])
    test = doctest.DocTestParser().get_doctest(lines, {}, heading, "symptoms", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert result.attempted > 4
    assert result.failed == 0


@pytest.mark.parametrize("heading", SYMPTOMS)
def test_a_symptom_has_all_its_parts_and_few_lines(heading: str) -> None:
    text = SYMPTOMS[heading]
    parts = ["\nFails:\n", "\nWorks:\n", "\n**Check:** ", " **Read:** "]
    assert [text.count(part) for part in parts] == [1, 1, 1, 1]
    fails, works = blocks(heading)
    assert len(LINE.findall(fails)) <= 7
    assert len(LINE.findall(works)) <= 6


def test_an_error_in_a_heading_is_the_one_that_its_lines_raise() -> None:
    named = [heading for heading in SYMPTOMS if re.search(r"`\w+Error", heading)]
    assert len(named) >= 20
    for heading in named:
        if not any(part in heading for part in ELSEWHERE):
            shown = " ".join(blocks(heading)[0].split())
            kind, message = re.search(r"(\w+Error): (.*?)(?:`+(?: .*)?)?$", heading).groups()
            pattern = re.escape(message[:60]).replace("c10::", r"\.\.\.")
            assert re.search(rf"{kind}: (?:\w+ )?{pattern}", shown), (heading, shown)


@cache
def anchors(page: str) -> set[str]:
    """The anchors of a page, as Markdown names them: its headings in small letters, without marks."""
    path = BOOK / page
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    headings = re.findall(r"^#{1,4} +(.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-") for heading in headings}


def test_every_link_leads_to_a_section_that_exists() -> None:
    links = re.findall(r"\]\(([\w.-]*)#([^)]+)\)", PAGE)
    assert len(links) >= 60
    assert [(page, anchor) for page, anchor in links if anchor not in anchors(page or "symptoms.md")] == []
