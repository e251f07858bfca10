"""What is done to every page when Sphinx has written it: mended for all readers, and made lighter."""

from __future__ import annotations

from pathlib import Path

from accessible import mend
from lighter import lighten, plain_tokens
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

SCRIPT = "reachable.js"


def finish(app: Sphinx, error: Exception | None) -> None:
    """Rewrite the pages in place (Sphinx event ``build-finished``); a second time changes nothing."""
    if error is not None or app.builder.format != "html":
        return
    html = Path(app.outdir)
    plain = plain_tokens((html / "_static" / "pygments.css").read_text(encoding="utf-8"))
    for path in html.rglob("*.html"):
        if "_static" in path.relative_to(html).parts:
            continue
        text = path.read_text(encoding="utf-8")
        done = lighten(mend(text), plain, searches=path.name == "search.html")
        if done != text:
            path.write_text(done, encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register it, and the script that lets the keyboard into boxes that scroll."""
    app.add_js_file(SCRIPT, loading_method="defer")
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
