"""MyST as plain Markdown: what Jupyter, Colab and GitHub show of a chapter when no book is built from it.

The chapters are written for Jupyter Book, whose directives and roles (an exercise, a folded hint, a citation) a plain
notebook would show as they are typed. `Plain` rewrites one notebook's text: folded parts become HTML's own ``details``,
exercises and equations get the numbers that they have in the book, citations become names and years. What it does not
know it refuses, so that nothing reaches a reader half converted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from book._tools.notebook_io import notebooks, read
from pybtex.database import Entry, parse_file

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<fence>`{3,}|:{3,})(?:\{(?P<name>[\w-]+)\}[ \t]*(?P<argument>.*)|[\w+-]*[ \t]*)$")
OPTION = re.compile(r"^:(?P<name>[\w-]+):[ \t]*(?P<value>.*)$")
ROLE = re.compile(r"\{(?P<name>[a-z:]+)\}`(?P<content>[^`]+)`")
TITLED = re.compile(r"^(?P<title>.*?)\s*<(?P<target>[^>]+)>$", re.DOTALL)
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ +(?P<title>.+?) *$", re.MULTILINE)
T = TypeVar("T")
BOXES = ("admonition", "important", "note", "tip", "warning")


@cache
def bibliography() -> dict[str, Entry]:
    """Return the works of the book's bibliography by their keys."""
    return dict(parse_file(str(ROOT / "book" / "references.bib")).entries)


def authors_and_year(key: str) -> tuple[str, str]:
    """Return how a work is cited in running text."""
    if key not in bibliography():
        raise ValueError(f"the bibliography has no work {key!r}; its keys stand in book/references.bib")
    entry = bibliography()[key]
    names = [" ".join([*person.prelast_names, *person.last_names]) for person in entry.persons["author"]]
    shown = names[0] if len(names) == 1 else f"{names[0]} and {names[1]}" if len(names) == 2 else f"{names[0]} et al."
    return re.sub(r"[{}]", "", shown), entry.fields["year"]


def slug(title: str) -> str:
    """Return the anchor that MyST gives a heading.

    >>> slug("Masks: who may look at whom")
    'masks-who-may-look-at-whom'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def equation_elsewhere(label: str) -> str:
    """Return the number of an equation of another notebook, with that notebook's name."""
    for path in notebooks():
        texts = [cell.source for cell in read(path.read_text(encoding="utf-8")).cells if cell.cell_type == "markdown"]
        equations = Plain(texts, 0).equations
        if label in equations:
            return f"({equations[label]} in {path.stem})"
    raise ValueError(f"the book has no equation {label!r}")


@dataclass
class Plain:
    """The plain form of one notebook's Markdown.

    Args:
        texts: the sources of all its Markdown cells, for the numbers of exercises and equations.
        chapter: the number of the chapter, which stands before that of an exercise.
        pages: the notebooks that will lie beside it; links to other pages become plain words.
    """

    texts: Iterable[str]
    chapter: int
    pages: frozenset[str] = frozenset()
    exercises: dict[str, str] = field(init=False, default_factory=dict)
    equations: dict[str, int] = field(init=False, default_factory=dict)
    headings: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for text in self.texts:
            self.headings |= {slug(title): title for title in HEADING.findall(text)}
            for directive in directives(text):
                if directive.name == "exercise":
                    self.exercises[directive.label] = f"{self.chapter}.{len(self.exercises) + 1}"
                elif directive.name == "math" and directive.label:
                    self.equations[directive.label] = len(self.equations) + 1

    def __call__(self, text: str) -> str:
        """Return one cell's text in plain Markdown."""
        parts = []
        for part in split(text):
            if isinstance(part, Directive):
                parts.append(self._directive(part))
            else:
                parts.append(part if FENCE.match(part.split("\n", 1)[0]) else self._inline(part))
        return "\n".join(parts)

    def _directive(self, directive: Directive) -> str:
        if directive.name == "math":
            number = f"\n\\tag{{{self.equations[directive.label]}}}" if directive.label else ""
            return f"$$\n{directive.body.strip()}{number}\n$$"
        title, body = self._inline(directive.argument), self(directive.body).strip()
        if directive.name == "exercise":
            return f"### Exercise {self._exercise(directive.label)}: {title}\n\n{body}"
        if directive.name == "solution":
            return folded(f"Solution of exercise {self._exercise(directive.argument)}", body)
        if directive.name == "dropdown":
            return folded(title, body)
        if directive.name in BOXES:
            lines = [f"**{title or directive.name.capitalize()}**", "", *body.split("\n")]
            return "\n".join(f"> {line}".rstrip() for line in lines)
        raise ValueError(f"no plain form is known for the directive {{{directive.name}}}; give it one in {__name__}")

    def _inline(self, text: str) -> str:
        return LINK.sub(self._link, ROLE.sub(self._role, text))

    def _role(self, match: re.Match[str]) -> str:
        name, content = match["name"], match["content"]
        titled = TITLED.match(content)
        title, target = (titled["title"], titled["target"]) if titled else ("", content)
        if name == "cite:t":
            return ", ".join("{} ({})".format(*authors_and_year(key.strip())) for key in target.split(","))
        if name == "cite:p":
            return "({})".format("; ".join(", ".join(authors_and_year(key.strip())) for key in target.split(",")))
        if name == "eq":
            return f"({self.equations[target]})" if target in self.equations else equation_elsewhere(target)
        if name == "py:mod":
            return f"`{target}`"
        if name == "doc":
            return f"[{title or target}]({target}.ipynb)" if f"{target}.ipynb" in self.pages else title or target
        if name == "download":  # the package lies beside a reader who runs the notebook
            return title or f"`{target}`"
        if name in ("ref", "numref"):
            return title or f"exercise {self._exercise(target)}"
        raise ValueError(f"no plain form is known for the role {{{name}}}; give it one in {__name__}")

    def _link(self, match: re.Match[str]) -> str:
        text, target = match["text"], match["target"]
        if target.startswith("#"):
            title = self._known(target[1:], self.headings, "heading")
            return f"[{text or title}](#{title.replace(' ', '-')})"
        return match[0] if ":" in target or target in self.pages else text

    def _exercise(self, label: str) -> str:
        return self._known(label, self.exercises, "exercise")

    @staticmethod
    def _known(label: str, table: dict[str, T], what: str) -> T:
        if label not in table:
            raise ValueError(f"this notebook has no {what} {label!r}; it has {', '.join(table) or 'none'}")
        return table[label]


@dataclass(frozen=True)
class Directive:
    """A fenced block of MyST with a name."""

    name: str
    argument: str
    options: dict[str, str]
    body: str

    @property
    def label(self) -> str:
        """The name by which the block is referred to, or nothing."""
        return self.options.get("label", "")


def folded(title: str, body: str) -> str:
    """A part that opens when its title is pressed. The blank lines let Markdown inside it be seen as such."""
    return f"<details>\n<summary><b>{title}</b></summary>\n\n{body}\n\n</details>"


def split(text: str) -> Iterator[str | Directive]:
    """Yield the directives of a text, and what stands between them: prose, or a fenced block of code as it is."""
    lines, prose = text.split("\n"), []
    while lines:
        opening = FENCE.match(lines[0])
        if not opening:
            prose.append(lines.pop(0))
            continue
        if prose:
            yield "\n".join(prose)
            prose = []
        n_lines = closing_line(lines, opening["fence"])
        block, lines = lines[: n_lines + 1], lines[n_lines + 1 :]
        yield directive_of(block, opening) if opening["name"] else "\n".join(block)
    if prose:
        yield "\n".join(prose)


def closing_line(lines: list[str], fence: str) -> int:
    """Return which of the lines closes the fence that the first one opens."""
    for index, line in enumerate(lines[1:], start=1):
        if line.startswith(fence) and set(line.strip()) == {fence[0]}:
            return index
    raise ValueError(f"the fence {lines[0]!r} is not closed; end it with a line {fence}")


def directive_of(block: list[str], opening: re.Match[str]) -> Directive:
    """Return the directive that the lines of a whole block write."""
    body = block[1:-1]
    options = {}
    while body and (option := OPTION.match(body[0])):
        options[option["name"]] = option["value"]
        del body[0]
    return Directive(opening["name"], opening["argument"].strip(), options, "\n".join(body).strip("\n"))


def directives(text: str) -> Iterator[Directive]:
    """Yield the directives of a text, outer before inner."""
    for part in split(text):
        if isinstance(part, Directive):
            yield part
            if part.name != "math":
                yield from directives(part.body)
