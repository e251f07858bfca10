"""Where the book's pages lead outside: to its repository, and to Binder and Colab, which run a chapter elsewhere.

All of it comes from `book._tools.address`: the theme's buttons, and two links in the line by which every chapter begins
(where it runs, and how long it takes). Where no repository is known, the book has none of them. They are links and
nothing more: a page asks no other host for anything until somebody follows one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.typing import ExtensionMetadata

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # Sphinx looks beside this file only
    sys.path.insert(0, str(ROOT))

from book._tools.address import address, pages, revision  # noqa: E402

BINDER = "https://mybinder.org"
COLAB = "https://colab.research.google.com"
OPENING = "Runs on:"


def set_address(app: Sphinx, config: Config) -> None:
    """Give the theme the repository and where a chapter can be run (Sphinx event ``config-inited``)."""
    repository = address()
    if repository is None:
        return
    config.ogp_site_url = pages(repository)
    config.html_theme_options |= {
        "repository_url": repository,
        "repository_branch": revision(),
        "path_to_docs": "",
        "use_repository_button": True,
        "use_issues_button": True,
        "launch_buttons": {"notebook_interface": "jupyterlab", "binderhub_url": BINDER, "colab_url": COLAB},
    }


def launch_links(repository: str, revision: str, page: str) -> dict[str, str]:
    """Where a notebook of the book runs without an installation: names and addresses.

    >>> links = launch_links("https://github.com/someone/course", "v0.1.0", "book/02-attention")
    >>> links["Binder"]
    'https://mybinder.org/v2/gh/someone/course/v0.1.0?urlpath=lab/tree/book/02-attention.ipynb'
    >>> links["Colab"]
    'https://colab.research.google.com/github/someone/course/blob/v0.1.0/book/02-attention.ipynb'
    """
    name = repository.removeprefix("https://github.com/")
    return {
        "Binder": f"{BINDER}/v2/gh/{name}/{revision}?urlpath=lab/tree/{page}.ipynb",
        "Colab": f"{COLAB}/github/{name}/blob/{revision}/{page}.ipynb",
    }


def add_links(app: Sphinx, doctree: nodes.document) -> None:
    """End a chapter's opening line with where it can be run at once (Sphinx event ``doctree-read``)."""
    repository = address()
    opening = next((line for line in doctree.findall(nodes.paragraph) if line.astext().startswith(OPENING)), None)
    if repository is None or opening is None:
        return
    opening += [nodes.Text(" "), nodes.strong("", "Run it now:")]
    for name, link in launch_links(repository, revision(), app.env.docname).items():
        opening += [nodes.Text(" in " if name == "Binder" else " or "), nodes.reference("", name, refuri=link)]
    opening += nodes.Text(", which take some minutes to start.")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register everything with Sphinx."""
    app.connect("config-inited", set_address, priority=10)
    app.connect("doctree-read", add_links)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
