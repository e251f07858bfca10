"""Markdown in which whatever a text holds comes out as text, and the same as a page of HTML.

Of Markdown only code between single backticks is kept, since our own sentences use it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from markdown_it import MarkdownIt

CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
SIGNS = re.compile(r"([\\`*_\[\]#|~!{}])")
HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
    'content="default-src \'none\'; style-src \'unsafe-inline\'"><meta name="viewport" content="width=device-width">'
    "<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:48em;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #8a8f98;padding:.25rem .6rem;text-align:left}"
    "code{overflow-wrap:anywhere}</style>"
)


def plain(text: str) -> str:
    """Return a text on one line, all of it escaped but code between backticks.

    >>> plain("# <b> in `x_1`")
    '\\\\# &lt;b&gt; in `x_1`'
    """
    line = "".join(one if one.isprintable() else "\ufffd" for one in " ".join(text.split()))
    parts = CODE.split(line)  # text and code in turn
    return "".join(
        f"`{part}`" if index % 2 else SIGNS.sub(r"\\\1", html.escape(part, quote=False))
        for index, part in enumerate(parts)
    )


def items(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return "\n".join(f"- {plain(text)}" for text in texts)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    cells = [[re.sub(r"(?<!\\)\|", r"\\|", plain(cell)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *cells))


def page(title: str, blocks: Iterable[str]) -> str:
    """Return a page: a title, and blocks of Markdown below it."""
    return "\n\n".join([f"# {plain(title)}", *blocks]) + "\n"


def as_html(title: str, markdown: str) -> str:
    """Return a page as HTML that loads and runs nothing."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return f"{HEAD}<title>{html.escape(title)}</title></head><body>\n{body}</body></html>\n"
