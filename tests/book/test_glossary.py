"""The glossary: every bold term and every hyper-parameter has an entry, every entry is short, linked and needed."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
from sphinx.application import Sphinx

from book._tools.build import ROOT
from book._tools.glossary_links import CHAPTER, anchor, key
from book._tools.notebook_io import chapters, read, to_text
from tests.book.made import notebook, text
from ttutor.positions import RotaryScaling
from ttutor.training.recipe import TrainingRecipe
from ttutor.transformer import TransformerConfig
from ttutor.variants.bert import BERTConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.t5 import T5Config
from ttutor.variants.vit import ViTConfig

CONFIGS = (BERTConfig, GPTConfig, LlamaConfig, RotaryScaling, T5Config, TrainingRecipe, TransformerConfig, ViTConfig)
FIELDS = {field.name for config in CONFIGS for field in dataclasses.fields(config)}
WRITING = {"beam_size", "length_penalty", "max_new_tokens", "min_p", "temperature", "top_k", "top_p"}
LONGEST = 60

BOLD = re.compile(r"(?<!\*)\*\*(?!\s)(.+?)(?<!\s)\*\*(?!\*)", re.DOTALL)
CODE = re.compile(r"^(`{3,}) *(?!\{).*?^\1 *$|`[^`\n]*`", re.MULTILINE | re.DOTALL)  # not a directive: that has text
BLOCK = re.compile(r"^```\{glossary\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\{(?:doc|term)\}`([^`<]*?)(?: <([^>`]*)>)?`")

# Bold that defines nothing: what it introduces is a task for the reader, or one of several things that are compared.
LABELS = {
    "find",
    "look",
    "look at",
    "look first",
    "point at an input",
    "what do you expect",
    "you need",
    # the contestants of chapter 4's race, and what its end says of them
    "after the mark",
    "decay",
    "learned",
    "no positions",
    "none, waves",
    "rotary, all pairs slowed",
    "rotary, slow pairs slowed",
    "three back",
    "waves and tables",
    # ways of editing a fact in chapter 5, a control in chapter 3, a model without a part in chapter 6
    "anna's value replaced",
    "no cross-attention",
    "the control",
}
# Single words that are stressed, nearly all of them in the wording of an exercise.
STRESSED = {"mean", "new", "not", "one", "reads", "rounds", "say", "sum"}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry of the glossary: its terms as they are written, and its text."""

    terms: tuple[str, ...]
    text: str

    @property
    def keys(self) -> set[str]:
        return {key(term) for term in self.terms}

    @property
    def pages(self) -> list[str]:
        return [target for _, target in LINK.findall(self.text) if CHAPTER.search(target)]

    @property
    def n_words(self) -> int:
        return len(LINK.sub(r"\1", self.text).split())


@cache
def entries() -> list[Entry]:
    """All entries, in the order of the page."""
    page = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    parts = [part for block in BLOCK.findall(page) for part in block.strip("\n").split("\n\n")]
    found = []
    for part in parts:
        lines = part.split("\n")
        terms = tuple(line.strip("`") for line in lines if not line.startswith(" "))
        found.append(Entry(terms, " ".join(line.strip() for line in lines if line.startswith(" "))))
    return found


def known() -> set[str]:
    return {one for entry in entries() for one in entry.keys}


@cache
def cells(path: Path) -> list[tuple[str, str]]:
    """The Markdown cells of a chapter: the name of each, and its text with a letter for each piece of code."""
    stored = read(path.read_text(encoding="utf-8")).cells
    return [(cell.id, CODE.sub("x", cell.source)) for cell in stored if cell.cell_type == "markdown"]


def is_term(words: str) -> bool:
    """Whether bold words name something: few, without punctuation at the end, and no single letters (code, or BPE).

    >>> [is_term(words) for words in ("hidden state", "Runs on:", "The number of heads is a guess", "h at")]
    [True, False, False, False]
    """
    apart = words.split()
    return len(apart) <= 4 and words[-1] not in '.,:;?!"' and min(map(len, apart)) > 1


def bold_terms(path: Path) -> list[tuple[str, str]]:
    """What a chapter defines: the cell and the words. Its summary repeats, and is left out."""
    found = [
        (name, " ".join(words.split()))
        for name, source in cells(path)
        if "## What to take away" not in source
        for words in BOLD.findall(source)
    ]
    return [(name, words) for name, words in found if is_term(words) and words.lower() not in LABELS | STRESSED]


@cache
def whole_text() -> str:
    """All that the chapters say, code included, in small letters."""
    sources = (cell.source for path in chapters() for cell in read(path.read_text(encoding="utf-8")).cells)
    return " ".join(" ".join(sources).lower().split())


@cache
def bold_keys() -> set[str]:
    return {key(words) for path in chapters() for _, words in bold_terms(path)}


def is_used(entry: Entry) -> bool:
    """Whether a chapter has one of an entry's terms in bold, or else says it or its plural."""
    ways = (rf"(?<!\w){re.escape(one[:-1])}(?:{one[-1]}|ies)s?(?!\w)" for one in entry.keys)
    return bool(entry.keys & bold_keys()) or any(re.search(way, whole_text()) for way in ways)


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_bold_term_of_a_chapter_has_an_entry(path: Path) -> None:
    missing = [f"{name}: {words}" for name, words in bold_terms(path) if key(words) not in known()]
    assert missing == [], "write an entry in book/glossary.md, or make it no longer bold"


def test_every_hyper_parameter_has_an_entry() -> None:
    assert sorted((FIELDS | WRITING) - {term for entry in entries() for term in entry.terms}) == []


def test_the_list_of_hyper_parameters_at_the_top_is_whole() -> None:
    opening = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8").split("## The words")[0]
    assert sorted((FIELDS | WRITING) - {text for text, _ in LINK.findall(opening)}) == []


def test_no_term_has_two_entries() -> None:
    places = [place for entry in entries() for place in {anchor(one) for one in entry.keys}]
    assert sorted({place for place in places if places.count(place) > 1}) == []


def test_the_entries_stand_in_the_order_of_the_alphabet() -> None:
    names = [re.sub(r"[\W_]", "", entry.terms[0].lower()) for entry in entries()]
    assert names == sorted(names)


def test_every_entry_is_short() -> None:
    assert [entry.terms[0] for entry in entries() if not 0 < entry.n_words <= LONGEST] == []


def test_every_entry_names_a_chapter_that_exists() -> None:
    there = {path.stem for path in (ROOT / "book").iterdir()}
    assert [entry.terms[0] for entry in entries() if not entry.pages or set(entry.pages) - there] == []


def test_every_entry_is_needed_by_a_chapter() -> None:
    assert [entry.terms[0] for entry in entries() if not set(entry.terms) & FIELDS and not is_used(entry)] == []


def test_what_is_listed_as_no_term_is_bold_in_a_chapter() -> None:
    sources = [source for path in chapters() for _, source in cells(path)]
    said = {" ".join(words.lower().split()) for source in sources for words in BOLD.findall(source)}
    assert sorted((LABELS | STRESSED) - said) == []


GLOSSARY = """# Glossary

```{glossary}
hidden state
  The vector that is carried along. ({doc}`chapter 1 <01-made>`)

feed-forward network
MLP
  Two maps. ({doc}`chapter 1 <01-made>`)

slice (of a loss)
  The loss along a line.

`top_k`
  How many tokens are left.
```
"""
CHAPTER_TEXT = """# The **hidden state** of a chapter

A **Hidden state**, one of many **hidden states**, enters an **MLP**, and **what do you expect** of a **slice**?

Here is a [link with **hidden state**](https://example.org).
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of a glossary, a chapter and another page, built."""
    folder = tmp_path_factory.mktemp("glossary")
    source, built = folder / "source", folder / "html"
    source.mkdir()
    (source / "index.md").write_text("# Book\n\nA **hidden state**.\n\n```{toctree}\n01-made\nglossary\n```\n")
    (source / "glossary.md").write_text(GLOSSARY)
    (source / "01-made.ipynb").write_text(to_text(notebook(text(CHAPTER_TEXT, "one"))), encoding="utf-8")
    warnings = StringIO()
    settings = {"extensions": ["myst_nb", "book._tools.glossary_links"], "nb_execution_mode": "off"}
    Sphinx(source, None, built, folder / "doctrees", "html", settings, None, warnings).build()
    assert warnings.getvalue() == ""
    return built


def links(page: Path) -> list[tuple[str, str]]:
    """Where each internal link of a built page leads, and what it says, tags included."""
    found = re.findall(
        r'<a class="reference internal" href="([^"]*#[^"]*)">(.*?)</a>', page.read_text(encoding="utf-8")
    )
    return [(target, words) for target, words in found if "strong" in words or target.partition("#")[2][:5] == "bold-"]


def test_a_bold_term_of_a_chapter_links_to_its_entry_and_stays_bold(made: Path) -> None:
    assert links(made / "01-made.html") == [
        ("glossary.html#term-hidden-state", '<strong id="bold-hidden-state">Hidden state</strong>'),
        ("glossary.html#term-hidden-state", "<strong>hidden states</strong>"),
        ("glossary.html#term-MLP", '<strong id="bold-mlp">MLP</strong>'),
        ("glossary.html#term-slice-of-a-loss", '<strong id="bold-slice">slice</strong>'),
    ]


def test_an_entry_leads_back_to_where_its_term_is_bold(made: Path) -> None:
    back = [("01-made.html#bold-hidden-state", "1"), ("01-made.html#bold-mlp", "1"), ("01-made.html#bold-slice", "1")]
    assert links(made / "glossary.html") == back
    assert (made / "glossary.html").read_text(encoding="utf-8").count("In bold in chapter ") == len(back)


def test_only_chapters_are_linked(made: Path) -> None:
    assert links(made / "index.html") == []
