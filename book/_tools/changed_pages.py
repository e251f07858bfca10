"""Lets Sphinx build only what changed, and no less: the result is that of a build from nothing.

Sphinx itself sees that a page's source has changed. It does not see that a page shows what the package computes, nor
that a page shows something of another page: its title in the sidebar, the number of its exercise, the place of a name
in the reference. So pages that use the package are read again when the package has changed, and all pages are written
again when anything that pages show of one another has changed.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains import Domain
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

PACKAGE = "ttutor"
SAFE_TO_READ_IN_PARALLEL = ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering")
"""Extensions that do not say it: the first acts in other builders alone, the second when all is read."""


def digest(files: Iterable[Path]) -> str:
    """Return what stands for the names and the contents of files, and changes with them."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return total.hexdigest()


def package_digest(package: Path) -> str:
    """Return the digest of a package's sources and data."""
    return digest(p for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def read_again(app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """Name the pages to be read again (event ``env-get-outdated``): all text pages after a change of the package.

    Notebooks show what they have stored, and nothing of the package as it is now.
    """
    now = package_digest(Path(app.srcdir) / PACKAGE)
    if getattr(env, "ttutor_package", None) == now:
        return []
    env.ttutor_package = now
    return [page for page in env.found_docs if not env.doc2path(page).endswith(".ipynb")]


def allow_parallel_reading(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Speak for those who do not say whether pages may be read side by side (event ``env-before-read-docs``).

    Domains that keep nothing beyond a version have nothing to merge; Sphinx asks for a method all the same.
    """
    for name in SAFE_TO_READ_IN_PARALLEL:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True
    for domain in env.domains.values():
        kind = type(domain)
        if kind.merge_domaindata is Domain.merge_domaindata and set(domain.data) <= {"version"}:
            kind.merge_domaindata = merge_nothing


def merge_nothing(domain: Domain, pages: set[str], other: dict[str, object]) -> None:
    """Take nothing over from what another process has read."""


def plain(value: object) -> object:
    """Return a value as something that has the same words in every run; of a part of a page, its kind and titles."""
    if isinstance(value, nodes.Node):
        return (type(value).__name__, [title.astext() for title in value.findall(nodes.title)], value.get("ids"))
    if isinstance(value, dict):
        return sorted((str(key), plain(entry)) for key, entry in value.items())
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return str(value)


def shared(env: BuildEnvironment) -> dict[str, object]:
    """Return all that pages show of one another, or link to in one another."""
    cite, std, python = env.get_domain("cite"), env.get_domain("std"), env.get_domain("py")
    cited: dict[str, set[str]] = {}
    for reference in cite.citation_refs:
        cited.setdefault(reference.docname, set()).update(target.key for target in reference.targets)
    return {
        "titles": {page: title.astext() for page, title in env.titles.items()},
        "numbers": [env.toc_secnumbers, env.toc_fignumbers],
        "anchors": {page: data.get("myst_slugs") for page, data in env.metadata.items()},
        "names": [std.labels, std.anonlabels, std.objects, env.get_domain("math").equations],
        "reference": [python.objects, python.modules],
        "works": [[(work.citation_id, work.key) for work in cite.citations], cited],
        "exercises": [getattr(env, "sphinx_exercise_registry", {}), getattr(env, "proof_list", {})],
        "bold": getattr(env, "ttutor_bold", {}),
    }


def write_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Name the pages to be written again (event ``env-get-updated``): all, after a change of what they share.

    The listings of source code go, too, since their links back follow the reference and Sphinx looks at files' times.
    """
    now = hashlib.sha256(repr(plain(shared(env))).encode()).hexdigest()
    if getattr(env, "ttutor_shared", None) == now:
        return []
    env.ttutor_shared = now
    shutil.rmtree(Path(app.outdir) / "_modules", ignore_errors=True)
    return list(env.found_docs)


def drop_old_pictures(app: Sphinx, failure: Exception | None) -> None:
    """Remove pictures that no page shows any more (Sphinx event ``build-finished``)."""
    folder = Path(app.outdir) / app.builder.imagedir
    if failure is None and folder.is_dir():
        shown = {name for _, name in app.env.images.values()}
        for path in folder.iterdir():
            if path.name not in shown:
                path.unlink()


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register everything with Sphinx."""
    app.connect("env-get-outdated", read_again)
    app.connect("env-before-read-docs", allow_parallel_reading)
    app.connect("env-get-updated", write_again, priority=900)  # the sections' numbers are given out before
    app.connect("build-finished", drop_old_pictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
