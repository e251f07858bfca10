"""The pages of a chapter: what is offered after its road, and where its number stands."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from book._tools.notebook_io import pages_of, roads

REBUILT = [road for road in roads() if pages_of(road)[1:]]
EACH = pytest.mark.parametrize("road", REBUILT, ids=lambda road: road.stem)


@cache
def built(html: Path, page: str) -> str:
    return (html / "book" / page).read_text(encoding="utf-8")


@pytest.mark.browser
@EACH
def test_after_a_road_come_the_next_chapter_then_its_own_pages(road: Path, html: Path) -> None:
    (offered,) = re.findall(r'<nav class="after-the-road".*?</nav>', built(html, f"{road.stem}.html"), re.DOTALL)
    following = [page.stem for page in roads()[roads().index(road) + 1 :]] or ["pretrained"]  # after the last part
    expected = [following[0], *(page.stem for page in pages_of(road)[1:])]
    assert re.findall(r'href="([\w-]+)\.html"', offered) == expected


@pytest.mark.browser
@EACH
def test_only_the_road_has_the_chapters_number(road: Path, html: Path) -> None:
    texts = [built(html, f"{page.stem}.html") for page in pages_of(road)]
    heads = [re.search(r'<h1>(.*?)<a class="headerlink"', text)[1] for text in texts]
    assert ["section-number" in head for head in heads] == [True] + [False] * (len(heads) - 1)


@pytest.mark.browser
@EACH
def test_exercises_lead_to_the_page_of_symptoms(road: Path, html: Path) -> None:
    page = built(html, f"{road.stem}-exercises.html")
    link = '<a class="reference internal" href="symptoms.html">What went wrong?</a>'
    assert page.count(f"An error, or a strange result? {link}") == 1
