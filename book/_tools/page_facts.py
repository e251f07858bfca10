"""What stands under every page: the commit it was built from, and where to report an error.

Facts only: where there is no git, no commit is named; without the address of a repository, no link leads nowhere.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from book._tools.address import address, revision
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

import ttutor

ROOT = Path(__file__).resolve().parents[2]

FORM = "bug.yml"


def git(root: Path, *words: str) -> str | None:
    """Return what a git command prints in a folder, or None where there is no git or no repository."""
    try:
        done = subprocess.run(("git", *words), cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def commit(root: Path) -> tuple[str, bool] | None:
    """Return the commit of a working tree and whether files that git knows were changed since.

    None where the folder is not the root of a repository: an archive unpacked inside another project names none.
    """
    top = git(root, "rev-parse", "--show-toplevel")
    head = git(root, "rev-parse", "HEAD")
    if not head or top is None or Path(top).resolve() != root.resolve():
        return None
    return head, bool(git(root, "status", "--porcelain", "--untracked-files=no"))


def report_link(repository: str, title: str, docname: str, built: tuple[str, bool] | None) -> str:
    """Return the address of the form for errors, filled in with the page and the commit.

    >>> report_link("https://github.com/a/b", "Masks", "book/masks", None)
    'https://github.com/a/b/issues/new?template=bug.yml&title=Masks%3A+&where=book%2Fmasks+%28Masks%29'
    """
    where = f"{docname} ({title})" + (f", commit {built[0]}" if built else "")
    fields = {"template": FORM, "title": f"{title}: ", "where": where}
    return f"{repository}/issues/new?{urlencode(fields)}"


def facts(app: Sphinx, docname: str, title: str) -> dict[str, Any]:
    """Return what the template ``page-facts.html`` shows under one page."""
    root = Path(app.srcdir)
    built = commit(root)
    repository = address()
    source = Path(app.env.doc2path(docname))
    shown = {"version": ttutor.__version__, "commit": built and built[0][:9], "changed": built and built[1]}
    if repository is not None:
        path = source.relative_to(root).as_posix()
        shown["report"] = report_link(repository, title, docname, built)
        shown["commit_link"] = built and not built[1] and f"{repository}/commit/{built[0]}"
        shown["source"] = f"{repository}/blob/{revision()}/{path}"
    return shown


def add_facts(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Hand the facts to the template of one page of the book (Sphinx event ``html-page-context``)."""
    if name in app.env.all_docs:
        title = app.env.titles[name].astext()
        context["page_facts"] = facts(app, name, title)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the facts with Sphinx."""
    app.connect("html-page-context", add_facts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
