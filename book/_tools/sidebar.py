"""The table of contents in the sidebar, made once for all pages that do not stand in it.

The theme makes it anew for every page, to mark that page. The listings of source code, most of the pages by number,
are marked nowhere: there it differs only by how many folders lie between the page and the root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata


def make_once(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Let listings at one depth share their table of contents (event ``html-page-context``, before the theme)."""
    if page not in app.env.found_docs:
        context["toctree"] = remembered(app.ttutor_sidebars, page.count("/"), context["toctree"])


def remembered(made: dict[tuple, str], depth: int, make: Callable[..., str]) -> Callable[..., str]:
    """The same function, asked only for what was not made at this depth before."""

    def toctree(**settings: Any) -> str:
        kind = (depth, *sorted(settings.items()))
        if kind not in made:
            made[kind] = make(**settings)
        return made[kind]

    return toctree


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register with Sphinx."""
    app.ttutor_sidebars = {}
    app.connect("html-page-context", make_once, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
