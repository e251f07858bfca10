"""The pages of a chapter: what is offered after its road, and old links that lead to where a section stands now."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from book._tools.notebook_io import pages_of, roads

REBUILT = [road for road in roads() if pages_of(road)[1:]]
EACH = pytest.mark.parametrize("road", REBUILT, ids=lambda road: road.stem)


@cache
def built(html: Path, page: str) -> str:
    return (html / "book" / page).read_text(encoding="utf-8")


@cache
def ids(text: str) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', text))


@pytest.mark.browser
@EACH
def test_after_a_road_come_the_next_chapter_then_its_own_pages(road: Path, html: Path) -> None:
    (offered,) = re.findall(r'<nav class="after-the-road".*?</nav>', built(html, f"{road.stem}.html"), re.DOTALL)
    following = [page.stem for page in roads()[roads().index(road) + 1 :]] or ["outlook"]  # after the last part
    expected = [following[0], *(page.stem for page in pages_of(road)[1:])]
    assert re.findall(r'href="([\w-]+)\.html"', offered) == expected


@pytest.mark.browser
@EACH
def test_what_a_road_no_longer_has_is_where_it_says(road: Path, html: Path) -> None:
    text = built(html, f"{road.stem}.html")
    places = json.loads(re.search(r"^\}\)\((\{.*\})\);</script>", text, re.MULTILINE)[1])
    assert places
    wrong = [old for old, new in places.items() if new.partition("#")[2] not in ids(built(html, new.partition("#")[0]))]
    assert wrong == []


@pytest.mark.browser
def test_an_old_link_is_followed(browser: Browser, html: Path) -> None:
    page = browser.new_page()
    page.goto((html / "book" / "02-attention.html").as_uri() + "#claim-ATT-10")
    page.wait_for_url("**/02-attention-deeper.html#claim-ATT-10")
    page.goto((html / "book" / "02-attention.html").as_uri() + "#the-formula")
    page.wait_for_load_state()
    assert page.url.endswith("02-attention.html#the-formula")
    page.close()


@pytest.mark.browser
@EACH
def test_only_the_road_has_the_chapters_number(road: Path, html: Path) -> None:
    texts = [built(html, f"{page.stem}.html") for page in pages_of(road)]
    heads = [re.search(r'<h1>(.*?)<a class="headerlink"', text)[1] for text in texts]
    assert ["section-number" in head for head in heads] == [True, False, False]
