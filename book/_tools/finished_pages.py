"""What is done to every page when Sphinx has written it: mended for all readers, and made lighter.

Mended is what leaves a reader out who does not use a mouse and a screen, where it is a defect of a template or of a
directive that no setting of theirs mends. The tests look at every page with the rules of axe-core, so that a repair
which no longer finds its place is noticed.

Lighter are pages by what a reader pays for and does not see. Highlighted code gives most of its words the colour that
the block has anyway, each in an element of its own: a third of a chapter's bytes and elements. And the theme loads what
a search needs on pages that have no search.
"""

from __future__ import annotations

import re
from pathlib import Path

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
    # A version that is known only where an earlier build has left the file: the same build twice gives the same page.
    (re.compile(r'(href="[^"]*_static/(?:mystnb\.\w+|exercise|proof)\.css)\?v=\w+"'), r'\1"'),
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
)
TOKEN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
CODE = re.compile(r'<div class="highlight"><pre>.*?</pre>', re.DOTALL)
RULE = re.compile(r'(html\[data-theme="\w+"\]) \.highlight (?:\.(\w+) )?\{([^}]*)\}')
SIGNATURE = re.compile(r'<dt class="sig [^"]*".*?</dt>', re.DOTALL)
NAME = re.compile(r'(?<=<span class="pre">)[^<]*_[^<]*(?=</span>)')
COLOUR = re.compile(r"(?<![-\w])color: *([^;}\s]+)")
SEARCH_SCRIPTS = re.compile(
    r'\s*<script src="[^"]*(?:_static/searchtools|_static/language_data|searchindex)\.js"></script>'
)


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


def plain_tokens(css: str) -> set[str]:
    """Return the classes of words of code that have the block's own colour, and nothing else, in every mode.

    Args:
        css: the style sheet of highlighted code, as Sphinx writes it for this theme.

    >>> dark = 'html[data-theme="dark"] .highlight'
    >>> plain_tokens(f"{dark} {{ color: #eee }} {dark} .n {{ color: #eee }} {dark} .k {{ color: red }}")
    {'n'}
    """
    rules = RULE.findall(css)
    blocks = {mode: COLOUR.findall(body) for mode, token, body in rules if not token}
    tokens = {token for _, token, _ in rules if token}
    marked = {
        token for mode, token, body in rules if token and (body.count(":") > 1 or COLOUR.findall(body) != blocks[mode])
    }
    return tokens - marked


def lighten(text: str, plain: set[str], *, searches: bool = False) -> str:
    """Return a page without elements that change nothing, and without a search's index where nothing searches.

    Args:
        text: the page as the theme wrote it.
        plain: the classes of words of code that look like the block, as `plain_tokens` finds them.
        searches: whether it is the page that searches, which keeps its index.

    >>> lighten('<div class="highlight"><pre><span class="n">x</span></pre>', {"n"})
    '<div class="highlight"><pre>x</pre>'

    >>> lighten('<div class="highlight"><pre><span class="n">a<span class="n">b</span></span></pre>', {"n"})
    '<div class="highlight"><pre>ab</pre>'
    """

    def bare(token: re.Match) -> str:
        return token[2] if token[1] in plain else token[0]

    def light(block: re.Match) -> str:
        before, after = "", block[0]
        while after != before:  # from the innermost elements outwards
            before, after = after, TOKEN.sub(bare, after)
        return after

    text = CODE.sub(light, text)
    return text if searches else SEARCH_SCRIPTS.sub("", text)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Rewrite the pages in place (Sphinx event ``build-finished``); a second time changes nothing."""
    if error is not None or app.builder.format != "html":
        return
    html = Path(app.outdir)
    plain = plain_tokens((html / "_static" / "pygments.css").read_text(encoding="utf-8"))
    for path in html.rglob("*.html"):
        if "_static" in path.relative_to(html).parts:
            continue
        text = path.read_text(encoding="utf-8")
        done = lighten(mend(text), plain, searches=path.name == "search.html")
        if done != text:
            path.write_text(done, encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register it, and the script that lets the keyboard into boxes that scroll."""
    app.add_js_file(SCRIPT, loading_method="defer")
    app.connect("build-finished", finish, priority=900)  # the theme writes the colours of code there, too
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
