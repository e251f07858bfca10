"""The page of claims, generated from what the chapters' cells have stored: nothing on it is typed.

``claims-ledger`` becomes a table of verdicts, then every claim of ``claims.toml`` with its verdict, the measured
numbers that its callout stored, and a link to the cell. A short script (``_static/ledger.js``) adds the choice of
chapter and verdict; without scripts the page shows all.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from book._tools.myst_to_markdown import authors_and_year
from book._tools.notebook_io import pages_of
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from ttutor.claims import MIME, VERDICTS, Claim, chapters, verdict_class

TITLES = {"multihead": "Multi-head attention", "efficient": "Efficiency", "vit": "Vision"}
COUNTED = [verdict for verdict in VERDICTS if verdict != "out of scope"]
SCRIPT = "ledger.js"
SOURCE = re.compile(r"Source:</strong> (\w+) \(see the bibliography\)")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a callout has stored of one claim: its verdict then, labels and values measured, and the work it cites."""

    claim: str
    verdict: str
    measured: list[list[str]] | None
    source: str | None


def title(stem: str) -> str:
    """Return a chapter's number and name on the page.

    >>> title("vit"), title("encoder")
    ('10. Vision', '5. Encoder')
    """
    return f"{1 + list(chapters()).index(stem)}. {TITLES.get(stem, stem.capitalize())}"


def chapter_pages(root: Path, stem: str) -> list[Path]:
    """Return the pages of a chapter by its stem, such as ``attention``: its road first."""
    return [page for road in (root / "book").glob(f"[0-9][0-9]-{stem}.ipynb") for page in pages_of(road)]


def records(page: Path) -> Iterator[Record]:
    """Yield what the callouts in a notebook have stored, in the order of the cells."""
    for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if MIME in output.get("data", {}):
                yield Record(**output["data"][MIME])


class ClaimsLedger(SphinxDirective):
    """``claims-ledger``: every claim with its verdict and what was measured, linked to the cell."""

    def run(self) -> list[nodes.Node]:
        pages = [page for stem in chapters() for page in chapter_pages(Path(self.env.srcdir), stem)]
        for page in pages:
            self.env.note_dependency(str(page))
        found = {record.claim: (page, record) for page in pages for record in records(page)}
        return [
            nodes.paragraph(text=coverage(set(found))),
            _counts(),
            _controls(),
            *(self._chapter(stem, found) for stem in chapters()),
        ]

    def _chapter(self, stem: str, found: dict[str, tuple[Path, Record]]) -> nodes.section:
        """The claims of one chapter under its name."""
        section = nodes.section(ids=[f"claims-{stem}"], classes=["ledger-chapter", f"chapter-{stem}"])
        section += nodes.title(text=title(stem))
        section += [self._claim(claim, *found.get(claim.id, (None, None))) for claim in chapters()[stem]]
        return section

    def _claim(self, claim: Claim, page: Path | None, record: Record | None) -> nodes.container:
        """One claim: id and verdict, what is said, what is true, what was measured, who found it."""
        entry = nodes.container(ids=[claim.id.lower()], classes=["ledger-claim", verdict_class(claim.verdict)])
        head = nodes.paragraph(classes=["ledger-head"])
        if page is None:
            head += nodes.strong(text=claim.id)
        else:
            head += nodes.reference("", claim.id, refuri=f"{page.stem}.html#claim-{claim.id}", internal=True)
        head += [
            nodes.Text(" "),
            nodes.inline(text=claim.verdict, classes=["ledger-verdict", verdict_class(claim.verdict)]),
        ]
        entry += head
        entry += nodes.paragraph("", "", nodes.strong(text=claim.statement))
        entry += nodes.paragraph(text=claim.correct)
        if record is not None and record.measured is not None:
            entry += nodes.paragraph(text="Measured:", classes=["ledger-label"])
            entry += _measured(record.measured)
        keys = [*dict.fromkeys([*claim.sources, *([record.source] if record and record.source else [])])]
        if keys:
            cited, messages = self.parse_inline(f"Sources: {{cite:t}}`{','.join(keys)}`", lineno=self.lineno)
            entry += nodes.paragraph("", "", *cited, *messages, classes=["ledger-sources"])
        return entry


def coverage(found: set[str]) -> str:
    """Say in one sentence how many claims the chapters have come to.

    >>> "the chapters measure or cite 1;" in coverage({"ATT-01"})
    True
    """
    asked = [claim for listed in chapters().values() for claim in listed if claim.verdict in COUNTED]
    covered = sum(claim.id in found for claim in asked)
    aside = sum(map(len, chapters().values())) - len(asked)
    return (
        f"Of {len(asked)} claims that can be settled, the chapters measure or cite {covered}; "
        f"{aside} more are listed as out of scope, with the reason."
    )


def _measured(lines: list[list[str]]) -> nodes.bullet_list:
    """What was measured, one line for each number or group of numbers, as the callout shows it."""
    items = nodes.bullet_list()
    for label, value in lines:
        paragraph = nodes.paragraph(text=f"{label}: " if label else "")
        paragraph += nodes.strong(text=value)
        items += nodes.list_item("", paragraph)
    return items


def _counts() -> nodes.table:
    """How many claims of each chapter got which verdict."""
    verdicts = list(VERDICTS)
    group = nodes.tgroup(cols=len(verdicts) + 2)
    group += [nodes.colspec(colwidth=1) for _ in range(len(verdicts) + 2)]
    head, body = nodes.thead(), nodes.tbody()
    head += _row("Chapter", *verdicts, "all")
    whole: Counter[str] = Counter()
    for stem, listed in chapters().items():
        counts = Counter(claim.verdict for claim in listed)
        whole += counts
        link = nodes.reference("", title(stem), refuri=f"#claims-{stem}", internal=True)
        body += _row(link, *(str(counts[verdict]) for verdict in verdicts), str(len(listed)))
    body += _row("All", *(str(whole[verdict]) for verdict in verdicts), str(whole.total()))
    group += [head, body]
    return nodes.table("", group, classes=["ledger-counts"])


def _row(*cells: str | nodes.Node) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        inner = cell if isinstance(cell, nodes.Node) else nodes.Text(cell)
        row += nodes.entry("", nodes.paragraph("", "", inner))
    return row


def _controls() -> nodes.raw:
    """The choice of chapter and verdict; hidden until the script that makes it work has run."""
    by_chapter = "".join(f'<option value="chapter-{stem}">{escape(title(stem))}</option>' for stem in chapters())
    by_verdict = "".join(f'<option value="{verdict_class(verdict)}">{verdict}</option>' for verdict in VERDICTS)
    markup = (
        '<form class="ledger-controls" hidden>'
        f'<label>Chapter <select name="chapter"><option value="">all</option>{by_chapter}</select></label> '
        f'<label>Verdict <select name="verdict"><option value="">all</option>{by_verdict}</select></label> '
        '<output aria-live="polite"></output></form>'
    )
    return nodes.raw("", markup, format="html")


def cite(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """In the callouts of a chapter, let the key of a work be a link to it (Sphinx event ``doctree-resolved``)."""
    domain = app.env.get_domain("cite")
    works = {citation.key: citation for citation in domain.citations}

    def reference(match: re.Match[str]) -> str:
        work = works.get(match[1])
        if work is None:
            return match[0]
        address = app.builder.get_relative_uri(docname, work.bibliography_key.docname)
        shown = escape(", ".join(authors_and_year(match[1])))
        return f'Source:</strong> <a href="{address}#{work.citation_id}">{shown}</a>'

    for node in doctree.findall(nodes.raw):
        if "ttutor-claim" in node.rawsource or "ttutor-claim" in node.astext():
            text = SOURCE.sub(reference, node.astext())
            node.children = [nodes.Text(text)]


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Load the ledger's script on the page that has a ledger, and on no other."""
    if doctree is not None and any("ledger-claim" in node["classes"] for node in doctree.findall(nodes.container)):
        app.add_js_file(SCRIPT, loading_method="defer")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive and its script."""
    app.add_directive("claims-ledger", ClaimsLedger)
    app.connect("html-page-context", add_script)
    app.connect("doctree-resolved", cite)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
