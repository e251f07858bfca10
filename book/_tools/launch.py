"""Where the book's pages lead outside: to its repository, and to Binder and Colab, which run a chapter elsewhere.

The theme shows the buttons, and sphinxext-opengraph what a link to a page shows elsewhere. Both need the address of
`book._tools.address`; where no repository is known, the book has neither.
"""

from __future__ import annotations

from book._tools.address import address, pages, revision
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.typing import ExtensionMetadata


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


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register with Sphinx."""
    if address() is not None:
        app.setup_extension("sphinxext.opengraph")
    app.connect("config-inited", set_address, priority=10)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
