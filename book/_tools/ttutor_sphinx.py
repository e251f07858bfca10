"""What the book asks of Sphinx beyond its extensions: readable signatures and formulas, claims, its own address."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import textwrap
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from ttutor.claims import VERDICTS, Claim, chapters

CLAIM_OUTPUT = re.compile(r'data-claim="([^"]+)"')
DISPLAY_MATH = re.compile(r"^([ \t]*)\$\$(.+?)\$\$[ \t]*$", re.MULTILINE | re.DOTALL)
INLINE_MATH = re.compile(r"(?<![\\$`])\$(?!\$)([^$\n]+(?:\n[^$\n]+)?)\$(?!\$)")
TITLES = {"multihead": "Multi-head attention", "efficient": "Efficiency", "vit": "Vision"}
SHAPED = re.compile(r"""\b(?:Float|Bool|Int|Num|Shaped|UInt|Inexact|Complex)\d*\[(?:torch\.)?Tensor, (['"])(.*?)\1\]""")


def math_to_rst(text: str) -> str:
    r"""Return a docstring with its ``$...$`` and ``$$...$$`` as reStructuredText, which knows no dollars.

    >>> math_to_rst("the width $d$ counts")
    'the width :math:`d` counts'
    """
    display = DISPLAY_MATH.sub(lambda m: f"{m[1]}.. math::\n\n{m[1]}   {' '.join(m[2].split())}\n", text)
    return INLINE_MATH.sub(lambda m: f":math:`{' '.join(m[1].split())}`", display)


def convert_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Rewrite formulas and headings of one docstring in place (Sphinx event ``autodoc-process-docstring``)."""
    lines[:] = math_to_rst("\n".join(lines)).split("\n")


def shorten_annotation(text: str) -> str:
    """Return a signature in which each tensor is its element type and its axes.

    >>> shorten_annotation("(query: Float[Tensor, '... queries d_head'], causal: bool = False)")
    "(query: Float['... queries d_head'], causal: bool = False)"
    """
    return SHAPED.sub(lambda m: f"{m[0].split('[')[0]}['{m[2]}']", text)


def plain_signature(obj: object) -> tuple[str, str | None] | None:
    """Return arguments and result as they stand in the source, or None where no source holds them.

    >>> from ttutor.masks import causal_mask
    >>> plain_signature(causal_mask)[1]
    "Bool['queries keys']"
    """
    function = inspect.unwrap(obj.__init__ if inspect.isclass(obj) else obj)
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (TypeError, OSError):  # written in C, or made by a decorator such as dataclass
        return None
    if not isinstance(definition, ast.FunctionDef):
        return None
    arguments = definition.args
    arguments.args = [a for a in arguments.args if a.arg not in ("self", "cls")]
    result = None if inspect.isclass(obj) or definition.returns is None else ast.unparse(definition.returns)
    return f"({shorten_annotation(ast.unparse(arguments))})", result and shorten_annotation(result)


def convert_signature(app: Sphinx, what: str, name: str, obj: object, *rest: object) -> tuple[str, str | None] | None:
    """Replace one signature (Sphinx event ``autodoc-process-signature``)."""
    return plain_signature(obj) if what in ("function", "method", "class") else None


def chapter_page(root: Path, stem: str) -> Path | None:
    """Return the page of a chapter by its stem, such as ``attention``."""
    return next(iter(sorted((root / "book").glob(f"[0-9][0-9]-{stem}.*"))), None)


def covered_claims(page: Path | None) -> set[str]:
    """Return the claims that a chapter's stored outputs measure or cite."""
    if page is None or page.suffix != ".ipynb":
        return set()
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    outputs = (output.get("data", {}) for cell in cells for output in cell.get("outputs", []))
    return {found for data in outputs for found in CLAIM_OUTPUT.findall("".join(data.get("text/html", "")))}


class ClaimsLedger(SphinxDirective):
    """``claims-ledger``: every claim with its verdict, chapter by chapter, linked where it is covered."""

    def run(self) -> list[nodes.Node]:
        pages = {stem: chapter_page(Path(self.env.srcdir), stem) for stem in chapters()}
        for page in filter(None, pages.values()):
            self.env.note_dependency(str(page))
        covered = {stem: covered_claims(page) for stem, page in pages.items()}
        n_covered, n_claims = sum(map(len, covered.values())), sum(map(len, chapters().values()))
        sections = [_section(stem, pages[stem], covered[stem], claims) for stem, claims in chapters().items()]
        return [nodes.paragraph(text=f"So far {n_covered} of {n_claims} claims are covered."), *sections]


def _section(stem: str, page: Path | None, covered: set[str], claims: tuple[Claim, ...]) -> nodes.section:
    """The claims of one chapter as a table."""
    section = nodes.section(ids=[f"claims-{stem}"])
    section += nodes.title(text=f"{TITLES.get(stem, stem.capitalize())} ({len(covered)} of {len(claims)} covered)")
    group = nodes.tgroup(cols=2)
    group += [nodes.colspec(colwidth=width) for width in (20, 80)]
    titles = ("Claim and verdict", "Often said, and what is true")
    head, body = nodes.thead(), nodes.tbody()
    head += _row(*([nodes.paragraph(text=title)] for title in titles))
    body += [_row(*_cells(claim, page if claim.id in covered else None)) for claim in claims]
    group += [head, body]
    section += nodes.table("", group, classes=["ttutor-ledger"])
    return section


def _cells(claim: Claim, page: Path | None) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """The two cells of one claim: its id (a link where a chapter covers it) over its verdict; statement over truth."""
    name = nodes.paragraph()
    if page is None:
        name += nodes.Text(claim.id)
    else:
        name += nodes.reference("", claim.id, refuri=f"{page.stem}.html#claim-{claim.id}", internal=True)
    verdict = nodes.paragraph(text=VERDICTS[claim.verdict].split(":")[0])
    statement = nodes.paragraph("", "", nodes.strong(text=claim.statement))
    return [name, verdict], [statement, nodes.paragraph(text=claim.correct)]


def _row(*cells: list[nodes.Node]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", *cell)
    return row


def set_address(app: Sphinx, config: Config) -> None:
    """Give the book the address it is published at, where a GitHub workflow builds it; elsewhere it names none."""
    repository = os.environ.get("GITHUB_REPOSITORY", "")
    if "/" not in repository:
        return
    owner, name = repository.split("/", 1)
    config.ogp_site_url = f"https://{owner}.github.io/{name}/"
    config.html_theme_options |= {
        "repository_url": f"https://github.com/{repository}",
        "repository_branch": os.environ.get("GITHUB_REF_NAME", "main"),
        "path_to_docs": "",
        "use_repository_button": True,
        "use_issues_button": True,
        "launch_buttons": {
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
        },
    }


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register everything with Sphinx."""
    app.connect("config-inited", set_address, priority=10)
    app.connect("autodoc-process-docstring", convert_docstring, priority=10)
    app.connect("autodoc-process-signature", convert_signature)
    app.add_directive("claims-ledger", ClaimsLedger)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
