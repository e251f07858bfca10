"""The sidebar of listings: made once for each depth, and never shared with a page of the book."""

from __future__ import annotations

from types import SimpleNamespace

from book._tools.sidebar import make_once

APP = SimpleNamespace(env=SimpleNamespace(found_docs={"book/intro"}))


def sidebars_of(*pages: str) -> list[str]:
    """What each page gets, where the theme would name the page in it."""
    app, found = SimpleNamespace(env=APP.env, ttutor_sidebars={}), []
    for page in pages:
        context = {"toctree": lambda page=page, **settings: f"made for {page} {sorted(settings)}"}
        make_once(app, page, "page.html", context, None)
        found.append(context["toctree"](collapse=True, maxdepth=4))
    return found


def test_listings_at_one_depth_share_the_first_one_s() -> None:
    first, second = sidebars_of("_modules/ttutor/masks", "_modules/ttutor/cache")
    assert first == second == "made for _modules/ttutor/masks ['collapse', 'maxdepth']"


def test_a_listing_at_another_depth_has_its_own() -> None:
    assert sidebars_of("_modules/ttutor/masks", "_modules/ttutor/layers/norms", "genindex") == [
        "made for _modules/ttutor/masks ['collapse', 'maxdepth']",
        "made for _modules/ttutor/layers/norms ['collapse', 'maxdepth']",
        "made for genindex ['collapse', 'maxdepth']",
    ]


def test_a_page_of_the_book_is_marked_in_its_own() -> None:
    assert sidebars_of("book/mine", "book/intro")[1] == "made for book/intro ['collapse', 'maxdepth']"
