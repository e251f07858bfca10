"""Every glossary term that a chapter sets in bold leads to its entry, and the entry back to the places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata

CHAPTER = re.compile(r"(?:^|/)(\d\d)-[^/]+$")
DEFINES = re.compile(r"(?:^|/)(?:\d\d-[^/]+|pretrained)$")
"""The pages whose bold words have entries."""


def key(text: str) -> str:
    """Return the form in which bold words and terms are compared: small letters, singular, no bracket at the end.

    >>> key("Grouped  queries"), key("Feed-forward networks"), key("slice (of a loss)")
    ('grouped query', 'feed-forward network', 'slice')
    """
    plain = re.sub(r"\s*\([^()]*\)$", "", " ".join(text.lower().split()))
    return f"{plain[:-3]}y" if plain.endswith("ies") else plain.removesuffix("s")


def anchor(term: str) -> str:
    """Return the id of the first place of a chapter where a term is bold."""
    return f"bold-{nodes.make_id(term)}"


def bold(doctree: nodes.document) -> Iterator[tuple[str, nodes.strong]]:
    """Yield what is bold in the running text, with its form for comparing; not what is in a heading or a link."""
    for node in list(doctree.findall(nodes.strong)):
        ancestor = node.parent
        while ancestor and not isinstance(ancestor, nodes.reference | nodes.title | addnodes.glossary):
            ancestor = ancestor.parent
        if ancestor is None:
            yield key(node.astext()), node


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the links into one page (Sphinx event ``doctree-resolved``)."""
    if DEFINES.search(docname):
        link_bold(app, doctree, docname)
    entries = [
        entry for part in doctree.findall(addnodes.glossary) for entry in part.findall(nodes.definition_list_item)
    ]
    if entries:
        chapters = sorted(filter(CHAPTER.search, app.env.found_docs))
        places = {page: {term for term, _ in bold(app.env.get_doctree(page))} for page in chapters}
        for entry in entries:
            link_back(app, entry, docname, places)


def link_bold(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make each bold term of a chapter a link to its entry; the first of each can be linked to."""
    objects = app.env.get_domain("std").objects
    entries = {key(name): target for (kind, name), target in objects.items() if kind == "term"}
    for term, node in bold(doctree):
        if term not in entries:
            continue
        page, target = entries[term]
        reference = make_refnode(app.builder, docname, page, target, [], None)
        node.replace_self(reference)
        reference += node
        if anchor(term) not in doctree.ids:
            node["ids"].append(anchor(term))
            doctree.ids[anchor(term)] = node


def link_back(app: Sphinx, entry: nodes.Element, docname: str, places: dict[str, set[str]]) -> None:
    """Say at the end of one entry in which chapters its term is bold."""
    terms = [key(term.astext()) for term in entry.findall(nodes.term)]
    found = {page: term for page, bold in places.items() for term in reversed(terms) if term in bold}
    if not found:
        return
    line = nodes.paragraph(classes=["ttutor-where"])
    line += nodes.Text("In bold in chapter " if len(found) == 1 else "In bold in chapters ")
    for at, (page, term) in enumerate(found.items()):
        if at:
            line += nodes.Text(" and " if at == len(found) - 1 else ", ")
        number = nodes.Text(str(int(CHAPTER.search(page)[1])))
        line += make_refnode(app.builder, docname, page, anchor(term), number, None)
    line += nodes.Text(".")
    next(entry.findall(nodes.definition)).append(line)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the links with Sphinx."""
    app.connect("doctree-resolved", link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
