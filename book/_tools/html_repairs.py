"""What is done to every page when Sphinx has written it: mended for readers without a mouse or a screen.

Each repair is of a defect in a template of the theme or in a directive that no setting of theirs mends. The tests look
at every page with the rules of axe-core, so that a repair which no longer finds its place is noticed.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from book._tools.content_policy import with_policy
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

SCRIPT = "reachable.js"
REPAIRS = (
    # The name of a control holds the words on it: who says what they see gets what they mean.
    (re.compile(r'(<button class="btn search-button-field[^>]*?)\s+title="Search"\s+aria-label="Search"'), r"\1"),
    (re.compile(r'(<i class="theme-switch [^>]*?)\s+title="[^"]*"'), r"\1"),
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    # Everything on a page lies in a region that can be jumped to.
    (
        re.compile(r'<div id="pst-primary-sidebar" class="([^"]*)">'),
        r'<div id="pst-primary-sidebar" class="\1" role="region" aria-label="The book">',
    ),
    # A corner of a table that heads nothing is no heading.
    (re.compile(r'<th class="((?:head|stub| )+)"><p></p></th>'), r'<td class="\1"></td>'),
    # Every exercise and every solution of a page has a content: as an id, the word would name all of them.
    (re.compile(r' id="((?:exercise|solution|proof)-content)"'), r' class="\1"'),
    # The parameters of a long signature, one to a line, are descriptions of no term.
    (re.compile(r'<dl>\n((?:<dd><em class="sig-param">.*\n)+)</dl>'), r'<div class="parameters">\n\1</div>'),
    (re.compile(r'<dd>(<em class="sig-param">.*)</dd>'), r"<div>\1</div>"),
    # Of this role the specification says that a list's entry is enough.
    (re.compile(r'(<div class="citation"[^>]*?) role="doc-biblioentry"'), r'\1 role="listitem"'),
    # A picture to click on, which the keyboard cannot: the list of modules is short enough to stand open.
    (re.compile(r'<img src="[^"]*minus\.png" class="toggler"[^>]*>'), ""),
    # A line begins with no comma, and ends with no bracket that opens: browsers would break beside every formula.
    (
        re.compile(
            r'(?<!class="held">)(?<!class="held">\()(\(?<span class="math [^"]*">[^<]*</span>[-–,.;:?!)\]’”]+'
            r'|\(<span class="math [^"]*">[^<]*</span>)'
        ),
        r'<span class="held">\1</span>',
    ),
    # Nor after the hyphen in the name of a claim.
    (re.compile(r"(<a [^>]*>)([A-Z]{2,4}-\d\d)</a>"), r'\1<span class="held">\2</span></a>'),
    # The index of Sphinx's own search, which the book does without.
    (re.compile(r'\s*<script src="[^"]*(?:_static/searchtools|_static/language_data|searchindex)\.js"></script>'), ""),
)
SIGNATURE = re.compile(r'<dt class="sig [^"]*".*?</dt>', re.DOTALL)
PICTURE = re.compile(r'<img (?=alt=)([^>]*?src="([^"]*_images/[^"]+\.png)")')
READABLE_ON_A_PHONE = 565  # pixels: the letters of a figure of this width can be read when it shrinks to a phone's
NAME = re.compile(r'(?<=<span class="pre">)[^<]*_[^<]*(?=</span>)')


def mend(text: str) -> str:
    """Return a page with its defects mended.

    >>> mend('<summary aria-label="Toggle hidden content"><p>Show code</p></summary>')
    '<summary><p>Show code</p></summary>'
    """
    for wrong, right in REPAIRS:
        text = wrong.sub(right, text)
    return SIGNATURE.sub(lambda block: NAME.sub(_breakable, block[0]), text)


def _breakable(name: re.Match) -> str:
    """A name that may go on in the next line, where it is long, after a part of it and not after any letter."""
    return re.sub(r"_(?=[^_<])", "_<wbr>", name[0])


def sized(text: str, folder: Path) -> str:
    """Return a page whose pictures have their size, so that the text does not jump when they arrive."""

    def with_size(tag: re.Match) -> str:
        width, height = struct.unpack(">II", (folder / tag[2]).read_bytes()[16:24])  # a PNG's header
        kind = ' class="fits"' if width <= READABLE_ON_A_PHONE else ""
        return f'<img width="{width}" height="{height}"{kind} {tag[1]}'

    return PICTURE.sub(with_size, text)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Mend the pages in place (Sphinx event ``build-finished``), each with its policy; twice is the same as once."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if (mended := with_policy(sized(mend(text), path.parent))) != text:
            path.write_text(mended, encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register it, and the script that lets the keyboard into boxes that scroll."""
    app.add_js_file(SCRIPT, loading_method="defer")
    app.connect("build-finished", finish, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
