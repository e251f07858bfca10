"""Every glossary term that a chapter sets in bold leads to its entry, and the entry back to the places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata

CHAPTER = re.compile(r"(?:^|/)(\d\d)-[^/]+$")


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


def note_bold(app: Sphinx, doctree: nodes.document) -> None:
    """Remember what a chapter sets in bold (Sphinx event ``doctree-read``)."""
    if CHAPTER.search(app.env.docname):
        places(app.env)[app.env.docname] = frozenset(term for term, _ in bold(doctree))


def places(env: BuildEnvironment) -> dict[str, frozenset[str]]:
    """Return what each chapter sets in bold."""
    if not hasattr(env, "ttutor_bold"):
        env.ttutor_bold = {}
    return env.ttutor_bold


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget a page that is read anew (Sphinx event ``env-purge-doc``)."""
    places(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: Iterable[str], other: BuildEnvironment) -> None:
    """Take over what another process has read (Sphinx event ``env-merge-info``)."""
    places(env).update({name: found for name, found in places(other).items() if name in docnames})


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the links into one page (Sphinx event ``doctree-resolved``)."""
    if CHAPTER.search(docname):
        link_bold(app, doctree, docname)
    for glossary in doctree.findall(addnodes.glossary):
        for entry in glossary.findall(nodes.definition_list_item):
            link_back(app, entry, docname)


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


def link_back(app: Sphinx, entry: nodes.definition_list_item, docname: str) -> None:
    """Say at the end of one entry in which chapters its term is bold."""
    terms = [key(term.astext()) for term in entry.findall(nodes.term)]
    found = {page: term for page, bold in sorted(places(app.env).items()) for term in reversed(terms) if term in bold}
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
    app.connect("doctree-read", note_bold)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("doctree-resolved", link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
