"""The page of claims is made from the chapters' stored outputs, and every claim has its cell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from book._tools.claims_ledger import COUNTED, Record, chapter_pages, coverage, records
from ttutor.claims import all_claims, chapters, claim

ROOT = Path(__file__).resolve().parents[2]
PAGES = {stem: chapter_pages(ROOT, stem) for stem in chapters()}
STORED = {stem: [record for page in pages for record in records(page)] for stem, pages in PAGES.items()}


def made(tmp_path: Path, data: dict) -> Path:
    """A chapter whose one cell has stored this output."""
    output = {"output_type": "execute_result", "data": data}
    page = tmp_path / "02-attention.ipynb"
    cells = [{"cell_type": "code", "outputs": [output]}, {"cell_type": "markdown"}]
    page.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return page


# ---------------------------------------------------------------- reading the callouts


def test_a_callout_is_read_back_as_it_was_shown(tmp_path: Path) -> None:
    measured = {"rows": [0.25, 0.75], "note": 'a "<b>" & b'}
    shown = claim("ATT-10", measured=measured, agrees=True, source="vaswani2017")._repr_mimebundle_()
    lines = [["rows", "[0.25, 0.75]"], ["note", 'a "<b>" & b']]
    assert list(records(made(tmp_path, shown | {"text/plain": "a callout"}))) == [
        Record(claim="ATT-10", verdict="wrong", measured=lines, source="vaswani2017")
    ]


def test_the_coverage_counts_what_can_be_settled() -> None:
    asked = [entry for entry in all_claims().values() if entry.verdict in COUNTED]
    outside = next(entry.id for entry in all_claims().values() if entry.verdict not in COUNTED)
    assert f"Of {len(asked)} claims" in coverage(set())
    assert "measure or cite 1;" in coverage({asked[0].id, outside})


# ---------------------------------------------------------------- the book's own


@pytest.mark.parametrize("stem", chapters())
def test_every_claim_of_a_chapter_has_one_cell_and_every_cell_a_claim(stem: str) -> None:
    assert PAGES[stem] != []
    expected = {entry.id for entry in chapters()[stem] if entry.verdict in COUNTED}
    outside = {entry.id for entry in chapters()[stem]} - expected
    counts = Counter(record.claim for record in STORED[stem])
    assert {id_ for id_, n in counts.items() if n > 1} == set()
    assert expected - set(counts) == set(), "claims without a cell"
    assert set(counts) - expected - outside == set(), "cells of claims that are not this chapter's"


@pytest.mark.parametrize("stem", chapters())
def test_what_a_cell_has_stored_is_the_verdict_of_today(stem: str) -> None:
    verdicts = {record.claim: record.verdict for record in STORED[stem]}
    assert verdicts == {id_: all_claims()[id_].verdict for id_ in verdicts}


# ---------------------------------------------------------------- the page


@pytest.fixture(scope="module")
def page(browser: Browser, html: Path) -> Iterator[Page]:
    tab = browser.new_page()
    tab.goto((html / "book" / "claims.html").as_uri())
    yield tab
    tab.close()


def shown(page: Page) -> list[str]:
    """The ids of the claims that a reader sees."""
    return page.eval_on_selector_all(".ledger-claim", "all => all.filter(c => c.offsetParent).map(c => c.id)")


@pytest.mark.browser
@pytest.mark.parametrize(("stem", "verdict"), [("", ""), ("attention", ""), ("", "wrong"), ("encoder", "contested")])
def test_readers_choose_a_chapter_and_a_verdict(page: Page, stem: str, verdict: str) -> None:
    page.select_option(".ledger-controls [name=chapter]", f"chapter-{stem}" if stem else "")
    page.select_option(".ledger-controls [name=verdict]", f"verdict-{verdict}" if verdict else "")
    expected = [
        entry.id.lower()
        for entry in all_claims().values()
        if stem in ("", entry.chapter) and verdict in ("", entry.verdict)
    ]
    assert shown(page) == expected
    assert page.inner_text(".ledger-controls output") == f"{len(expected)} of {len(all_claims())} claims shown"


@pytest.mark.browser
def test_a_link_to_a_hidden_claim_shows_it(page: Page) -> None:
    page.select_option(".ledger-controls [name=verdict]", "verdict-contested")
    hidden = next(entry.id.lower() for entry in all_claims().values() if entry.verdict == "wrong")
    assert hidden not in shown(page)
    page.evaluate(f"location.hash = '#{hidden}'")
    expect(page.locator(f"[id='{hidden}']")).to_be_visible()
    assert page.input_value(".ledger-controls [name=verdict]") == ""


@pytest.mark.browser
def test_every_measured_number_stands_on_the_page_and_links_to_its_cell(page: Page) -> None:
    links = set(
        page.eval_on_selector_all(".ledger-claim .ledger-head a", "all => all.map(a => a.getAttribute('href'))")
    )
    for stem, stored in STORED.items():
        for record in stored:
            assert any(f"{chapter.stem}.html#claim-{record.claim}" in links for chapter in PAGES[stem])
    measured = page.eval_on_selector_all(
        ".ledger-claim", "all => all.filter(c => c.querySelector('.ledger-label')).length"
    )
    assert measured == sum(record.measured is not None for stored in STORED.values() for record in stored)
