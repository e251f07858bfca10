"""What the pages of the book show of one another.

Beside each stand all others, with their titles. A chapter's number heads its road alone. After a road come the next
chapter, its deeper page and its exercises, in this order. Exercises begin with the way to the page of symptoms.
"""

from __future__ import annotations

from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from book._tools.build import read_toc, table_of_contents
from book._tools.notebook_io import BESIDE, pages_of
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

SYMPTOMS = "book/symptoms"


def road_of(docname: str) -> str:
    """Return the road of the chapter that a page belongs to.

    >>> road_of("book/02-attention-deeper"), road_of("book/02-attention")
    ('book/02-attention', 'book/02-attention')
    """
    for ending in BESIDE:
        docname = docname.removesuffix(ending)
    return docname


def beside(app: Sphinx, road: str) -> list[str]:
    """Return the pages beside a road; an empty list for a page that is no road, or a chapter of one page."""
    path = Path(app.env.doc2path(road))
    if road_of(road) != road or path.suffix != ".ipynb":
        return []
    return [f"{road.rpartition('/')[0]}/{page.stem}" for page in pages_of(path)[1:]]


def neighbours(pages: list[str], docname: str) -> tuple[str | None, str | None]:
    """Return what comes before and after a page: a road's neighbours are roads, a page beside it has its own.

    >>> pages = ["intro", "book/02-a", "book/02-a-deeper", "book/02-a-exercises", "book/03-b"]
    >>> neighbours(pages, "book/02-a"), neighbours(pages, "book/02-a-exercises")
    (('intro', 'book/03-b'), ('book/02-a-deeper', 'book/03-b'))
    """
    at = pages.index(docname)
    before, after = pages[:at], pages[at + 1 :]
    if road_of(docname) == docname:
        before, after = ([page for page in side if road_of(page) == page] for side in (before, after))
    return (before[-1] if before else None), (after[0] if after else None)


def show(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Say what the book holds, and what comes before and after a page (Sphinx event ``html-page-context``)."""
    context["book_parts"], context["title_of"] = table_of_contents()["parts"], partial(numbered_title, app.env)
    pages = read_toc()
    if name not in pages:
        return

    def link(page: str | None) -> dict[str, str] | None:
        title = escape(numbered_title(app.env, page)) if page else ""
        return {"link": app.builder.get_relative_uri(name, page), "title": title} if page else None

    before, after = neighbours(pages, name)
    context["prev"], context["next"] = link(before), link(after)
    if others := beside(app, name):
        context["after_the_road"] = [link(page) for page in (after, *others) if page]


def numbered_title(env: BuildEnvironment, page: str) -> str:
    """Return a page's title, behind the number of its chapter if it is a road."""
    number = env.toc_secnumbers.get(page, {}).get("", ()) if road_of(page) == page else ()
    return "".join([*(f"{part}. " for part in number), env.titles[page].astext()])


def number_roads_only(app: Sphinx, env: BuildEnvironment) -> None:
    """Take the numbers off the pages beside roads, which would be 2.15 (Sphinx event ``env-check-consistency``)."""
    for docname in env.all_docs:
        if road_of(docname) != docname and docname in env.tocs:
            env.toc_secnumbers.pop(docname, None)
            for numbered in (env.titles[docname], *env.tocs[docname].findall(nodes.reference)):
                numbered.attributes.pop("secnumber", None)


def point_to_symptoms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Say above a chapter's exercises where errors are looked up (Sphinx event ``doctree-resolved``).

    It stands below the first paragraph, which says how the exercises are done.
    """
    if not docname.endswith("-exercises"):
        return
    first = next(one for one in doctree.findall(nodes.paragraph) if isinstance(one.parent, nodes.section))
    page = app.env.titles[SYMPTOMS].astext()
    address = app.builder.get_relative_uri(docname, SYMPTOMS)
    said = nodes.paragraph("", "An error, or a strange result? ", classes=["look-up"])
    said += [nodes.reference("", page, refuri=address, internal=True), nodes.Text(" has what others have met.")]
    first.parent.insert(first.parent.index(first) + 1, said)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register with Sphinx."""
    app.connect("env-check-consistency", number_roads_only)
    app.connect("doctree-resolved", point_to_symptoms)
    app.connect("html-page-context", show, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
