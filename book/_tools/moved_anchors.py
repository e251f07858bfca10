"""Links into the reference from the time when it was one page lead on to the page where the name stands now.

The first page of the reference gets a script that knows for every module, and for every section, on which page it is.
In what a cell shows, where Sphinx resolves no links, ``api.html#ttutor.masks.causal_mask`` becomes the right page.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

FIRST = "book/api"
OLD_LINK = re.compile(r'(?<=href=")api\.html#(ttutor[\w.]+)')
SCRIPT = """<script>
(() => {
  const pages = %s;
  function lead() {
    let name = decodeURIComponent(location.hash.slice(1)).replace(/^module-/, "");
    while (name && !Object.hasOwn(pages, name)) name = name.slice(0, Math.max(0, name.lastIndexOf(".")));
    if (name) location.replace(pages[name] + location.hash);
  }
  addEventListener("hashchange", lead);
  lead();
})();
</script>"""


def pages_of(app: Sphinx) -> dict[str, str]:
    """Return for each module, and each section of the reference, the file that holds it."""
    pages = {
        name: f"{PurePosixPath(page).name}.html"
        for page, table in sorted(app.env.tocs.items())
        if page.startswith(f"{FIRST}-")
        for anchor in table.findall(nodes.reference)
        for name in (anchor["anchorname"].removeprefix("#"), nodes.make_id(anchor.astext()))
        if name
    }
    modules = app.env.get_domain("py").modules
    return pages | {name: f"{PurePosixPath(entry.docname).name}.html" for name, entry in sorted(modules.items())}


def page_of(name: str, pages: dict[str, str]) -> str:
    """Return the file in which a name is described: that of its module.

    >>> page_of("ttutor.masks.causal_mask", {"ttutor.masks": "api-attention.html"})
    'api-attention.html'
    """
    while name not in pages and "." in name:
        name = name.rpartition(".")[0]
    return pages.get(name, f"{PurePosixPath(FIRST).name}.html")


def lead_on(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the script on the first page, and mend what cells show (Sphinx event ``doctree-resolved``)."""
    pages = pages_of(app)
    for node in list(doctree.findall(nodes.raw)):
        text = node.astext()
        mended = OLD_LINK.sub(lambda link: f"{page_of(link[1], pages)}#{link[1]}", text)
        if mended != text:
            node.replace_self(nodes.raw("", mended, format=node["format"]))
    if docname == FIRST:
        doctree.append(nodes.raw("", SCRIPT % json.dumps(pages), format="html"))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register it with Sphinx."""
    app.connect("doctree-resolved", lead_on)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
