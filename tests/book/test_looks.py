"""How the book looks: one set of colours, typefaces under names of their own, the mark and its icons, the cards."""

from __future__ import annotations

import io
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from docutils import nodes
from fontTools.ttLib import TTFont
from PIL import Image

from book._tools import cards, colours, fonts, logo, page_heads
from ttutor.claims import BADGES
from ttutor.widgets.style import OUTLINES, OUTLINES_DARK, PAGE, PAGE_DARK, PALETTE, PALETTE_DARK

ROOT = Path(__file__).resolve().parents[2]
SHEETS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "book" / "_static").glob("*.css"))}
SITE = "https://someone.github.io/course/"


def declared(sheet: str) -> dict[str, str]:
    """The custom properties of a part of a style sheet."""
    return dict(re.findall(r"(--tt-[\w-]+): ([^;]+);", sheet))


def test_the_style_sheet_has_the_colours_of_figures_and_explorers() -> None:
    light, dark = colours.style_sheet().split("@media screen")
    for sheet, page, fills, lines in (light, PAGE, PALETTE, OUTLINES), (dark, PAGE_DARK, PALETTE_DARK, OUTLINES_DARK):
        of_page = {f"--tt-{name}": colour for name, colour in {**page, **fills}.items()}
        of_lines = {f"--tt-{name}-line": colour for name, colour in lines.items()}
        of_verdicts = {f"--tt-{name.replace(' ', '-')}": colour for name, colour in BADGES.items()}
        assert declared(sheet) == {**of_page, **of_lines, **of_verdicts}


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_names_no_colour_of_its_own(name: str) -> None:
    rules = re.sub(r"/\*.*?\*/", "", SHEETS[name], flags=re.DOTALL)
    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*\})|\b(?:rgb|hsl)a?\(", rules)) <= {"#fff"}


@pytest.mark.parametrize("name", SHEETS)
def test_every_colour_that_a_style_sheet_uses_is_there(name: str) -> None:
    known = set(colours.LIGHT) | set(declared("\n".join(SHEETS.values())))
    assert set(re.findall(r"var\((--tt-[\w-]+)", SHEETS[name])) <= known


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_fetches_nothing(name: str) -> None:
    assert re.findall(r"url\(|@import", SHEETS[name]) == []


@pytest.fixture(scope="module")
def typefaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fonts")
    fonts.write(folder / "fonts.css", licence=folder / "licence.txt")
    return folder


def test_typefaces_stand_in_the_style_sheet_itself(typefaces: Path) -> None:
    sheet = (typefaces / "fonts.css").read_text(encoding="utf-8")
    assert sheet.count("@font-face") == len(fonts.FACES) == sheet.count("url(data:font/woff;base64,")
    assert len(re.findall(r"url\(", sheet)) == len(fonts.FACES)
    assert len(sheet) < 250_000


def test_cut_typefaces_give_up_the_reserved_name_and_keep_their_licence(typefaces: Path) -> None:
    assert "SIL OPEN FONT LICENSE Version 1.1" in (typefaces / "licence.txt").read_text(encoding="utf-8")
    for face in (fonts.FACES[0], fonts.FACES[-1]):
        font = TTFont(io.BytesIO(fonts.cut(face)))
        shown = {record.nameID: str(record) for record in font["name"].names}
        assert [text for key, text in shown.items() if key in (1, 3, 4, 6, 16, 18, 21) and "Source" in text] == []
        assert shown[1] == face.family
        assert "Adobe" in shown[0]
        assert {ord(letter) for letter in "aé½–’“√αθ→−×"} <= set(font.getBestCmap())


def test_typefaces_are_made_once(typefaces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (typefaces / "fonts.css").read_bytes()
    monkeypatch.setattr(fonts, "rule", lambda face: pytest.fail("made again"))
    fonts.write(typefaces / "fonts.css", licence=typefaces / "licence.txt")
    assert (typefaces / "fonts.css").read_bytes() == before


def test_a_typeface_that_is_not_installed_says_what_to_do() -> None:
    with pytest.raises(FileNotFoundError, match=r"no It\.ttf in no-such-font: pip install"):
        fonts.find("no-such-font", "It.ttf")


def test_the_mark_has_the_colours_of_query_key_and_value() -> None:
    parts = {PALETTE[part].upper() for part in ("query", "key", "value")}
    assert set(re.findall(r'stroke="(#\w+)"', logo.svg())) == parts
    pixels = np.asarray(logo.picture(64, ground=None)).reshape(-1, 4)
    assert parts <= {f"#{red:02X}{green:02X}{blue:02X}" for red, green, blue, opaque in pixels if opaque == 255}


def test_icons_are_there_for_old_and_new_browsers(tmp_path: Path) -> None:
    logo.write(tmp_path, tmp_path)
    with Image.open(tmp_path / "favicon.ico") as icon, Image.open(tmp_path / "apple-touch-icon.png") as touch:
        assert icon.info["sizes"] == set(logo.ICON_SIZES)
        assert touch.size == (180, 180)
    for name in ("logo.svg", "favicon.svg"):
        assert "<svg" in (tmp_path / name).read_text(encoding="utf-8")


def test_a_card_holds_a_long_title_and_long_words() -> None:
    card = cards.draw("Chapter 7", "every parameter accounted for " * 9, "and what it is about " * 30)
    assert card.size == (cards.WIDTH, cards.HEIGHT)
    lines = cards.wrap("every parameter accounted for " * 9, cards.font(*cards.TITLE), 1040, 3)
    assert len(lines) == 3
    assert lines[-1].endswith("…")
    assert max(cards.font(*cards.TITLE).getlength(line) for line in lines) <= 1040
    free = card.crop((0, cards.HEIGHT - cards.STRIP - 20, cards.WIDTH, cards.HEIGHT - cards.STRIP))
    assert free.getcolors() == [(cards.WIDTH * 20, (255, 255, 255))]


def page(*paragraphs: str) -> nodes.document:
    """A page of paragraphs under a title."""
    document = nodes.document(None, None)
    document += [nodes.title("", "Contents"), *(nodes.paragraph("", text) for text in paragraphs)]
    return document


def test_a_page_is_described_by_its_promise_or_its_first_real_paragraph() -> None:
    opening = "In 2017 eight people replaced recurrence by a lookup [Vaswani et al., 2017]. It went well."
    assert page_heads.describe(page("Contents", opening)) == opening.replace(" [Vaswani et al., 2017]", "")
    promise = "You will be able to derive attention from one question."
    assert page_heads.describe(page(opening, promise)) == promise
    assert page_heads.describe(page("Contents")) == ""


def test_a_long_description_ends_with_a_sentence_or_an_ellipsis() -> None:
    sentence = "One two three four five six seven eight nine. "
    assert page_heads.shorten(sentence * 9) == (sentence * 4).strip()
    assert re.fullmatch(r"(word )+…", page_heads.shorten("word " * 90))


def head(site: str, folder: Path, meta: dict | None = None) -> tuple[str, dict[str, str]]:
    """What the extension puts into the head of a page, and the fields that it hands on."""
    config = SimpleNamespace(ogp_site_url=site, ogp_site_name="ttutor")
    context = {"pathto": lambda name, _: name, "meta": meta, "title": "2. Attention", "metatags": ""}
    app = SimpleNamespace(config=config, outdir=str(folder))
    page_heads.add_to_head(
        app, "book/02-attention", "", context, page("Attention is a lookup that blends what it finds.")
    )
    context["metatags"] += '<meta property="og:url" content="book/02-attention.html" />\n'
    page_heads.leave_out(app, "book/02-attention", "", context, None)
    return context["metatags"], context["meta"]


def test_a_book_without_an_address_names_none(tmp_path: Path) -> None:
    tags, fields = head("", tmp_path)
    assert fields == {"og:description": "Attention is a lookup that blends what it finds."}
    assert "og:url" not in tags
    assert list(tmp_path.iterdir()) == []


def test_a_page_may_describe_itself(tmp_path: Path) -> None:
    tags, fields = head("", tmp_path, {"description": 'What "this" is.'})
    assert fields["og:description"] == "What &quot;this&quot; is."
    assert '<meta name="description" content="What &quot;this&quot; is." />' in tags


def test_a_book_with_an_address_has_a_card_for_the_page(tmp_path: Path) -> None:
    tags, fields = head(SITE, tmp_path)
    assert "og:url" in tags
    assert "summary_large_image" in tags
    assert fields["og:image"] == f"{SITE}_images/cards/book-02-attention.png"
    with Image.open(tmp_path / fields["og:image"].removeprefix(SITE)) as drawn:
        assert (str(drawn.width), str(drawn.height)) == (fields["og:image:width"], fields["og:image:height"])


def test_every_style_sheet_is_loaded_by_the_pages() -> None:
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert set(SHEETS) <= set(settings["sphinx"]["config"]["html_css_files"])
