"""A page of plain parts, written as Markdown and as HTML: whatever a text holds, it comes out as text.

Of Markdown only code between single backticks is kept, since our own sentences use it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

__all__ = ["Heading", "Items", "Page", "Part", "Table", "Text", "as_html", "as_markdown", "markdown_of"]

CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
SIGNS = re.compile(r"([\\`*_\[\]#|~!{}])")
STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:48em;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #8a8f98;padding:.25rem .6rem;text-align:left}"
    "code{overflow-wrap:anywhere}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Heading:
    """A heading below the page's title."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table with a header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Part = Heading | Text | Items | Table


@dataclass(frozen=True)
class Page:
    """A title and what stands below it."""

    title: str
    parts: tuple[Part, ...]


def as_markdown(page: Page) -> str:
    """Write a page as Markdown."""
    return f"# {_marked(page.title)}\n\n{markdown_of(page.parts)}\n"


def markdown_of(parts: Iterable[Part]) -> str:
    """Write parts of a page as Markdown."""
    blocks = []
    for part in parts:
        match part:
            case Heading(text):
                blocks.append(f"## {_marked(text)}")
            case Text(text):
                blocks.append(_marked(text))
            case Items(texts):
                blocks.append("\n".join(f"- {_marked(text)}" for text in texts))
            case Table(header, rows):
                lines = [header, ("---",) * len(header)]
                cells = [[_marked(cell) for cell in row] for row in rows]
                blocks.append("\n".join(f"| {' | '.join(row)} |" for row in [*lines, *cells]))
    return "\n\n".join(blocks)


def as_html(page: Page) -> str:
    """Write a page as HTML that loads and runs nothing."""
    blocks = [f"<h1>{_tagged(page.title)}</h1>"]
    for part in page.parts:
        match part:
            case Heading(text):
                blocks.append(f"<h2>{_tagged(text)}</h2>")
            case Text(text):
                blocks.append(f"<p>{_tagged(text)}</p>")
            case Items(texts):
                blocks.append(f"<ul>{''.join(f'<li>{_tagged(text)}</li>' for text in texts)}</ul>")
            case Table(header, rows):
                lines = [_row("th", header), *(_row("td", row) for row in rows)]
                blocks.append(f"<table>{''.join(lines)}</table>")
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{html.escape(_line(page.title))}</title>'
        f"<style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(blocks) + "\n</body></html>\n"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_tagged(cell)}</{tag}>' for cell in cells)}</tr>"


def _line(text: str) -> str:
    """One line of printable characters; line breaks become spaces."""
    return "".join(one if one.isprintable() else "\ufffd" for one in " ".join(text.split()))


def _marked(text: str) -> str:
    """Escape for Markdown all but code between backticks.

    >>> _marked("# <b> in `x_1`")
    '\\\\# &lt;b&gt; in `x_1`'
    """
    return _each(text, lambda code: f"`{code}`", _plain)


def _plain(text: str) -> str:
    return SIGNS.sub(r"\\\1", html.escape(text, quote=False))


def _tagged(text: str) -> str:
    """Escape for HTML all but code between backticks.

    >>> _tagged("<b> in `a < b`")
    '&lt;b&gt; in <code>a &lt; b</code>'
    """
    return _each(text, lambda code: f"<code>{html.escape(code)}</code>", html.escape)


def _each(text: str, of_code: Callable[[str], str], of_text: Callable[[str], str]) -> str:
    parts = CODE.split(_line(text))  # text and code in turn
    return "".join(of_code(part) if index % 2 else of_text(part) for index, part in enumerate(parts))
