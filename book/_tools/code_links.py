"""A function or class of the package that a page names leads to its place in the reference: once in each section."""

from __future__ import annotations

import re
from collections import Counter

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata

KINDS = ("class", "exception", "function")
IMPORTED = re.compile(r"^from ttutor[\w.]* import (\([^)]*\)|.*)$", re.MULTILINE)
REFERENCE = "book/api"


def short_names(objects: dict[str, tuple[str, str, str]]) -> dict[str, str]:
    """Return the full name for every name that says alone which function or class is meant.

    Args:
        objects: what is described, by full name: page, anchor and kind.

    >>> one = ("page", "anchor", "class")
    >>> short_names({"a.fit": ("page", "anchor", "function"), "b.One": one, "c.One": one})
    {'fit': 'a.fit', 'a.fit': 'a.fit', 'b.One': 'b.One', 'c.One': 'c.One'}
    """
    full = [name for name, (_, _, kind) in objects.items() if kind in KINDS]
    counts = Counter(name.rpartition(".")[2] for name in full)
    alone = {name.rpartition(".")[2]: name for name in full if counts[name.rpartition(".")[2]] == 1}
    return alone | {name: name for name in full}


def imported(doctree: nodes.document) -> set[str]:
    """Return the names that a page's code imports from the package."""
    code = "\n".join(block.astext() for block in doctree.findall(nodes.literal_block))
    return {name for names in IMPORTED.findall(code) for name in re.findall(r"\w+", names)}


def section_of(node: nodes.Node) -> nodes.Node | None:
    """Return the section in whose running text a node stands; None in a heading, a link or a description."""
    while node is not None and not isinstance(node, nodes.section):
        if isinstance(node, nodes.reference | nodes.title | addnodes.desc):
            return None
        node = node.parent
    return node


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the links into one page (Sphinx event ``doctree-resolved``)."""
    if not docname.startswith("book/") or docname.startswith(REFERENCE):
        return
    objects = {
        name: (entry.docname, entry.node_id, entry.objtype)
        for name, entry in app.env.get_domain("py").objects.items()
        if not entry.aliased
    }
    names, seen, here = short_names(objects), set(), imported(doctree)
    for node in list(doctree.findall(nodes.literal)):
        name = node.astext().partition("(")[0]
        section = section_of(node)
        is_a_word = name.isalpha() and name.islower()  # could be anything: a page's own variable, or a plain word
        is_meant = name in names and (name in here or not is_a_word)
        if not is_meant or section is None or (id(section), name) in seen:
            continue
        seen.add((id(section), name))
        page, anchor, _ = objects[names[name]]
        reference = make_refnode(app.builder, docname, page, anchor, [], names[name])
        node.replace_self(reference)
        reference += node


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the links with Sphinx."""
    app.connect("doctree-resolved", link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
