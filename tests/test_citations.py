"""Every work that a docstring or a page names by author and year stands in the bibliography."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from pybtex.database import parse_file

ROOT = Path(__file__).resolve().parent.parent

SURNAME = r"(?:(?:van|von|den|der|de|le|la) )*(?:[A-Z]['’])?[A-ZÀ-Ž]\w+(?:-[A-Z]\w+)*|nostalgebraist"
YEAR = r"(?:19|20)\d\d[a-h]?\b"
NAMES = rf"(?P<names>(?:{SURNAME})(?:(?:, (?:{SURNAME}))*,? and (?:{SURNAME}))?)(?P<more> et al\.)?(?:['’]s?)?"
# "Vaswani et al. (2017, section 3)": whatever stands within the brackets, the years in it belong to these authors.
IN_THE_SENTENCE = re.compile(rf"{NAMES} \((?P<years>{YEAR}[^()]*)\)")
# "(Shazeer 2019)", "Polyak and Juditsky 1992": one surname alone counts after "(" or ";", or "In 2017" would be a work.
IN_BRACKETS = re.compile(rf"(?P<open>[(;:]\s?|^)?{NAMES},? (?P<years>{YEAR}(?:, {YEAR})*)")


class Citation(NamedTuple):
    """A work as the text names it."""

    names: tuple[str, ...]
    is_shortened: bool  # "et al."
    year: str
    letter: str  # the "b" of 2023b


class Entry(NamedTuple):
    """A work as the bibliography names it."""

    names: tuple[str, ...]
    is_shortened: bool  # "and others"
    year: str


def citations(text: str) -> set[Citation]:
    """Every work that a text names by author and year."""
    text = " ".join(text.split())
    found = list(IN_THE_SENTENCE.finditer(text))
    for match in IN_BRACKETS.finditer(text):
        if match["open"] or match["more"] or " and " in match["names"]:
            found.append(match)
    return {
        Citation(tuple(re.split(r",? and |, ", match["names"])), bool(match["more"]), year[:4], year[4:])
        for match in found
        for year in re.findall(YEAR, match["years"])
    }


def docstrings(path: Path) -> Iterator[str]:
    """What a module says about itself and about all that it defines, constants included: strings that stand alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def prose(path: Path) -> Iterator[str]:
    """The sentences of a module, a page or a notebook; code and its outputs cite nothing."""
    if path.suffix == ".py":
        yield from docstrings(path)
    elif path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield from ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    else:
        yield path.read_text(encoding="utf-8")


@cache
def cited() -> dict[str, set[Citation]]:
    """The works that each file names."""
    return {
        path.relative_to(ROOT).as_posix(): set().union(*map(citations, prose(path)))
        for place, ending in (("ttutor", "**/*.py"), ("book", "*.md"), ("book", "*.ipynb"))
        for path in sorted((ROOT / place).glob(ending))
    }


@cache
def bibliography() -> list[Entry]:
    entries = []
    for entry in parse_file(ROOT / "book" / "references.bib").entries.values():
        names = [
            " ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names]))
            for person in entry.persons["author"]
        ]
        is_shortened = names[-1] == "others"
        entries.append(
            Entry(tuple(names[: len(names) - is_shortened]), is_shortened, entry.fields["year"].rstrip("abc"))
        )
    return entries


def is_named_by(entry: Entry, citation: Citation) -> bool:
    """Whether year and names agree: "et al." stands for two authors or more, and without it all are named."""
    if entry.year != citation.year:
        return False
    if citation.is_shortened:
        has_more = entry.is_shortened or len(entry.names) > 2
        return has_more and entry.names[: len(citation.names)] == citation.names
    return not entry.is_shortened and entry.names == citation.names


def is_listed(citation: Citation) -> bool:
    """Whether there is such an entry; for a "b", whether there are two."""
    n_wanted = 1 + "abcdefgh".index(citation.letter or "a")
    return sum(is_named_by(entry, citation) for entry in bibliography()) >= n_wanted


def test_every_cited_work_stands_in_the_bibliography() -> None:
    missing = {place: sorted(one for one in works if not is_listed(one)) for place, works in cited().items()}
    assert {place: works for place, works in missing.items() if works} == {}, (
        "add them to book/references.bib, or correct names and year"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Vaswani et al. (2017), equation 1", {"Vaswani 2017"}),
        ("multi-query attention (Shazeer 2019).", {"Shazeer 2019"}),
        ("(Bahdanau et al. 2015, section 3.1; Cho et\n    al. 2014)", {"Bahdanau 2015", "Cho 2014"}),
        ("Ackley, Hinton and Sejnowski (1985)", {"Ackley 1985"}),
        ("In 2017, and since 2019 (2020): Zhang and Sennrich (2019)", {"Zhang 2019"}),
        ("Radford et al. (2018, 2019); Brown et al. (2020).", {"Radford 2018", "Radford 2019", "Brown 2020"}),
        ("Touvron et al. (2023a, LLaMA; 2023b, Llama 2)", {"Touvron 2023a", "Touvron 2023b"}),
        (
            "Devlin et al.'s (2019) code; Elman's (1990); van den Oord et al. (2016)",
            {"Devlin 2019", "Elman 1990", "van den Oord 2016"},
        ),
        ("LeCun et al. (1989); dilated: F-score (Popović 2015)", {"LeCun 1989", "Popović 2015"}),
        ("the Transformer of 2017, as released (2020), `post` (2017), FlashAttention-2 (Dao 2023)", {"Dao 2023"}),
    ],
)
def test_a_citation_is_known_by_its_form(text: str, expected: set[str]) -> None:
    assert {f"{citation.names[0]} {citation.year}{citation.letter}" for citation in citations(text)} == expected


@pytest.mark.parametrize(
    "text", ["Vaswani (2017)", "Vaswani et al. (2016)", "Zhang et al. (2019)", "Zhang and Ba (2019)", "Nobody (1999)"]
)
def test_a_wrong_name_or_year_is_found(text: str) -> None:
    (citation,) = citations(text)
    assert not is_listed(citation)


def test_the_bibliography_is_in_order() -> None:
    keys = list(parse_file(ROOT / "book" / "references.bib").entries)
    assert keys == sorted(keys)


def test_every_work_of_the_bibliography_is_cited() -> None:
    by_name = set().union(*cited().values())
    pages = [*(ROOT / "book").glob("*.md"), *(ROOT / "book").glob("*.ipynb")]
    lists = [ROOT / "ttutor" / "claims.toml", ROOT / "ttutor" / "corpora" / "datasets.py"]
    text = " ".join(page.read_text(encoding="utf-8") for page in [*pages, *lists])
    by_key = set(re.findall(r"[a-z]+\d{4}[a-z]?", text))
    entries = parse_file(ROOT / "book" / "references.bib").entries
    works = dict(zip(entries, bibliography(), strict=True))
    unused = [key for key in works if key not in by_key and not any(is_named_by(works[key], name) for name in by_name)]
    assert unused == [], "cite them or take them out of book/references.bib"
