"""Building the book: its MathJax, and what our Sphinx extension makes of docstrings."""

from __future__ import annotations

import pytest

from book._tools import build
from book._tools.ttutor_sphinx import math_to_rst, plain_signature
from ttutor.attention import attention_weights


def test_mathjax_is_one_file_of_an_installed_package() -> None:
    assert build.find_mathjax().stat().st_size > 2_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the width $d$ and $n$", "the width :math:`d` and :math:`n`"),
        ("a $x\n  + y$ b", "a :math:`x + y` b"),
        ("    $$a\n    = b$$", "    .. math::\n\n       a = b\n"),
        ("costs ``$5`` or ``$6``", "costs ``$5`` or ``$6``"),
        ("no formula", "no formula"),
    ],
)
def test_formulas_become_what_docstrings_understand(text: str, expected: str) -> None:
    assert math_to_rst(text) == expected


def test_a_signature_stands_as_in_the_source() -> None:
    arguments, result = plain_signature(attention_weights)
    assert arguments.startswith(
        "(query: Float['... queries d_head'], key: Float['... keys d_head'], mask: MaskLike=None, *"
    )
    assert result == "Float['... queries keys']"


def test_another_script_of_the_figures_makes_built_pages_stale(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "GENERATED", tmp_path / "generated")
    monkeypatch.setattr(build, "HTML", tmp_path / "html")
    for folder in (tmp_path / "generated" / "static", tmp_path / "html" / "_static"):
        folder.mkdir(parents=True)
        (folder / "explorers.js").write_text("old", encoding="utf-8")
    (tmp_path / "generated" / "static" / "new.js").write_text("nothing is built of it yet", encoding="utf-8")
    assert not build.is_stale()
    (tmp_path / "generated" / "static" / "explorers.js").write_text("new", encoding="utf-8")
    assert build.is_stale()
