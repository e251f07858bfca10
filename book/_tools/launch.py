"""Where the book's pages lead outside: to its repository, and to Binder and Colab, which run a chapter elsewhere.

All of it comes from `book._tools.address`. Where that knows no repository, the book has none of these links.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.typing import ExtensionMetadata

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # Sphinx looks beside this file only
    sys.path.insert(0, str(ROOT))

from book._tools.address import address, pages, revision  # noqa: E402


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
        "launch_buttons": {
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
        },
    }


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register everything with Sphinx."""
    app.connect("config-inited", set_address, priority=10)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
