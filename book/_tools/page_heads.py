"""What stands in the head of every page: its icons, what it is about in a sentence, and the card of a link to it.

sphinxext-opengraph writes most of it. Here each page gets a description that is a whole thought (of a chapter: what you
will be able to do; or what the page's own front matter says) and, where the book's address is known, a card; an address
that leads nowhere is left out.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # Sphinx looks beside this file only
    sys.path.insert(0, str(ROOT))

from book._tools import cards  # noqa: E402

from ttutor.widgets.style import PAGE, PAGE_DARK  # noqa: E402

LONGEST, SHORTEST = 200, 40
"""Of a description, in characters; what is shorter than the second says too little to describe a page."""

PROMISE = "You will be able to"
CITATION = re.compile(r"\s*[\[(][^\[\]()]*\d{4}[a-z]?[\])]")
NUMBER = re.compile(r"^(\d+)\.\s+")
FOLDER = Path("_images", "cards")


def describe(doctree: nodes.document) -> str:
    """What a page is about: the chapter's promise, else the first paragraph that is long enough; empty if none is."""
    paragraphs = [plain(paragraph) for paragraph in doctree.findall(nodes.paragraph) if not _within_table(paragraph)]
    promises = [text for text in paragraphs if text.startswith(PROMISE)]
    return shorten(next((text for text in [*promises, *paragraphs] if len(text) >= SHORTEST), ""))


def plain(paragraph: nodes.paragraph) -> str:
    """A paragraph's words without citations and with single spaces."""
    return CITATION.sub("", " ".join(paragraph.astext().split()))


def _within_table(node: nodes.Node) -> bool:
    while node is not None and not isinstance(node, nodes.entry):
        node = node.parent
    return node is not None


def shorten(text: str) -> str:
    """A text of at most `LONGEST` characters: whole sentences if they fill it, else whole words and an ellipsis.

    >>> shorten("word " * 50)[-6:]
    'word …'
    """
    if len(text) <= LONGEST:
        return text
    start = text[: LONGEST - 1]
    sentences = start.rfind(". ") + 1
    return start[:sentences] if sentences >= SHORTEST * 2 else f"{start.rsplit(' ', 1)[0].rstrip(',;:')} …"


def card(app: Sphinx, pagename: str, title: str, words: str) -> dict[str, str]:
    """Draw a page's card and return its fields for sphinxext-opengraph."""
    number = NUMBER.match(title)
    name = FOLDER / f"{pagename.replace('/', '-')}.png"
    kicker = f"Chapter {number[1]}" if number else ""
    cards.write(Path(app.outdir) / name, kicker, NUMBER.sub("", title), words)
    return {
        "og:image": f"{app.config.ogp_site_url}{name.as_posix()}",
        "og:image:alt": f"{app.config.ogp_site_name}: {title}",
        "og:image:width": str(cards.WIDTH),
        "og:image:height": str(cards.HEIGHT),
    }


def add_to_head(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Add icons, description and card (Sphinx event ``html-page-context``, before sphinxext-opengraph)."""
    path = context["pathto"]
    tags = [
        f'<link rel="icon" href="{path("favicon.ico", 1)}" sizes="48x48" />',
        f'<link rel="apple-touch-icon" href="{path("_static/apple-touch-icon.png", 1)}" />',
        f'<meta name="theme-color" content="{PAGE["page"]}" media="(prefers-color-scheme: light)" />',
        f'<meta name="theme-color" content="{PAGE_DARK["page"]}" media="(prefers-color-scheme: dark)" />',
    ]
    fields = context.get("meta") or {}
    words = fields.get("description") or (describe(doctree) if doctree is not None else "")
    if words:
        context["meta"] = {**fields, "og:description": escape(words)}
        tags.append(f'<meta name="description" content="{escape(words)}" />')
        if app.config.ogp_site_url:
            title = re.sub(r"<[^>]+>", "", context["title"])
            context["meta"] |= card(app, pagename, title, words)
            tags.append('<meta name="twitter:card" content="summary_large_image" />')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags) + "\n"  # a listing of source has none yet


def leave_out(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Where the book's address is not known, drop the page's own: it would lead nowhere (after sphinxext-opengraph)."""
    if not app.config.ogp_site_url:
        context["metatags"] = re.sub(r'<meta property="og:url"[^>]*>\n?', "", context["metatags"])


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register what comes before and after sphinxext-opengraph."""
    app.connect("html-page-context", add_to_head, priority=400)
    app.connect("html-page-context", leave_out, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
