"""The explorers' modules as text: one source for Jupyter and for the page without a kernel."""

import gzip
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.widgets.figure import in_browser
from ttutor.widgets import (
    AlibiExplorer,
    AttentionExplorer,
    BlocksExplorer,
    PlaygroundExplorer,
    TranslatorExplorer,
    static,
)

GZIP_BUDGET, RAW_BUDGET = 64_000, 200_000
PLAYGROUND_BUDGET = 22_528  # gzipped; only pages with the playground load it
TOGETHER_BUDGET = 96_000  # gzipped; a page with every figure but the playground loads so much


def test_jupyter_and_the_static_page_run_the_same_module() -> None:
    assert str(AttentionExplorer._esm) == static.module_source("attention")
    # mount.js joins the two strings that static_script wrote into it.
    assert static.module_source("attention") == static._shared() + static._part("attention")


@pytest.mark.parametrize("name", static.module_names())
def test_a_module_stands_alone(name: str) -> None:
    source = static.module_source(name)
    assert not re.search(r"^\s*import\b", source, re.MULTILINE)
    assert source.count("export default") == 1
    assert "/*COLOURS*/" not in source


def test_no_module_writes_markup_from_strings() -> None:
    for name in [*static.module_names(), *static._SHARED, "mount"]:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", static._read(name)), (
            name
        )


def test_building_twice_gives_the_same_bytes_and_says_the_size(tmp_path, capsys) -> None:
    for name in ("one/a.js", "two/b.js"):
        static.write_script(tmp_path / name)
    first, second = (tmp_path / "one/a.js").read_bytes(), (tmp_path / "two/b.js").read_bytes()
    assert first == second == static.static_script(apart=static._APART).encode()
    for name in static._APART:
        assert (tmp_path / f"one/explorer-{name}.js").read_text(encoding="utf-8") == static.part_script(name)
    assert f"{len(first):,} bytes, {len(gzip.compress(first, mtime=0)):,} gzipped" in capsys.readouterr().out


def test_the_page_weight_stays_within_its_budget() -> None:
    script = static.static_script(apart=static._APART).encode()
    assert len(script) < RAW_BUDGET
    assert len(gzip.compress(script)) < GZIP_BUDGET
    apart = {name: len(gzip.compress(static.part_script(name).encode())) for name in static._APART}
    assert apart["playground"] < PLAYGROUND_BUDGET
    assert len(gzip.compress(script)) + sum(apart.values()) - apart["playground"] < TOGETHER_BUDGET


@in_browser
def test_a_large_explorer_comes_from_a_script_beside_the_page_only_where_it_stands(browser: Browser, tmp_path) -> None:
    static.write_script(tmp_path / "explorers.js")
    context = browser.new_context()
    page = context.new_page()
    loaded = []
    page.on("request", lambda request: loaded.append(Path(request.url).name))
    for made, apart in (
        (AlibiExplorer(), None),
        (PlaygroundExplorer(), "playground"),
        (TranslatorExplorer(), "translator"),
        (BlocksExplorer(), "blocks"),
    ):
        body = f'{made.to_html()}<script src="explorers.js"></script>'
        (tmp_path / "page.html").write_text(f"<!DOCTYPE html><meta charset=utf-8>{body}", encoding="utf-8")
        page.goto((tmp_path / "page.html").as_uri())
        expect(page.locator("[data-explorer][data-ready]")).to_have_count(1, timeout=30_000)
        assert [name for name in loaded if name.startswith("explorer-")] == [f"explorer-{apart}.js"] * bool(apart)
        loaded.clear()
    context.close()


def test_the_script_may_stand_inside_a_page() -> None:
    assert "</" not in static.static_script()


@pytest.mark.parametrize(
    "name", [*static._SHARED, *(part for parts in static._OWN.values() for part in parts), *static.module_names()]
)
def test_packing_changes_no_text_between_quotes(name: str) -> None:
    quoted = re.compile(r'"(?:[^"\\\n]|\\.)*"')
    written = static._read(name)
    found = quoted.findall(static._packed(written))
    assert found
    assert found == quoted.findall(written)
