"""Where the book's pages lead outside: to its repository, to Binder and Colab, which run a chapter, and to its file.

The theme shows the buttons, and sphinxext-opengraph what a link to a page shows elsewhere. Both need the address of
`book._tools.address`; where no repository is known, the book has neither.

Whatever way a reader takes, the chapter is the one that ``make lab`` opens. The file to download is written here.
Binder makes the folder (``postBuild``). Colab opens files of a repository only, so the workflow that publishes the
pages writes the chapters to a branch of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from book._tools.address import address, pages, revision
from book._tools.editions import edition
from book._tools.notebook_io import notebooks, read, to_text
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.typing import ExtensionMetadata

MOVED = (
    ("?urlpath=lab/tree/book/", "?urlpath=lab/tree/my-course/"),
    ("/blob/{}/book/", "/blob/notebooks/"),
)
"""What the theme links to in Binder and in Colab, with the place of a branch, and what is there instead."""


def set_address(app: Sphinx, config: Config) -> None:
    """Give the theme the repository and where a chapter can be run (Sphinx event ``config-inited``)."""
    repository = address()
    if repository is None:
        return
    config.ogp_site_url, config.ogp_site_name = pages(repository), "ttutor"
    config.html_theme_options |= {
        "repository_url": repository,
        "repository_branch": revision(),
        "path_to_docs": "",
        "use_repository_button": True,
        "use_issues_button": True,
        "launch_buttons": {
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
        },
    }


def lead_to_editions(
    app: Sphinx, name: str, template: str, context: dict[str, Any], tree: nodes.document | None
) -> None:
    """Let the buttons of a page open what readers work in, not its source (Sphinx event ``html-page-context``)."""
    for group in context.get("header_buttons", ()):
        for button in (one for one in group.get("buttons", ()) if "url" in one):
            for sources, editions in MOVED:
                button["url"] = button["url"].replace(sources.format(revision()), editions)


def offer_editions(app: Sphinx, error: Exception | None) -> None:
    """Put the edition to work in where a page's file is downloaded from (Sphinx event ``build-finished``)."""
    if error is not None or app.builder.format != "html":
        return
    pages = frozenset(path.name for path in notebooks())
    for path in notebooks():
        offered, source = Path(app.outdir) / "_sources" / "book" / path.name, path.read_text(encoding="utf-8")
        if offered.exists() and offered.read_text(encoding="utf-8") == source:
            offered.write_text(to_text(edition(read(source), "student", path.name, pages)), encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register with Sphinx."""
    if address() is not None:
        app.setup_extension("sphinxext.opengraph")
    app.connect("config-inited", set_address, priority=10)
    app.connect("html-page-context", lead_to_editions, priority=900)
    app.connect("build-finished", offer_editions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
