"""The explorers' modules as text: one source for Jupyter and for the page without a kernel."""

import gzip
import re

import pytest

from ttutor.widgets import AttentionExplorer, static

GZIP_BUDGET, RAW_BUDGET = 75_000, 235_000  # with the Transformer that translates


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
        assert static.main([str(tmp_path / name)]) == 0
    first, second = (tmp_path / "one/a.js").read_bytes(), (tmp_path / "two/b.js").read_bytes()
    assert first == second == static.static_script().encode()
    assert f"{len(first):,} bytes, {len(gzip.compress(first, mtime=0)):,} gzipped" in capsys.readouterr().out


def test_the_page_weight_stays_within_its_budget() -> None:
    script = static.static_script().encode()
    assert len(script) < RAW_BUDGET
    assert len(gzip.compress(script)) < GZIP_BUDGET


def test_the_script_may_stand_inside_a_page() -> None:
    assert "</" not in static.static_script()
