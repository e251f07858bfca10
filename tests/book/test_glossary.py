"""The glossary: every bold term and every hyper-parameter has an entry, every entry is short, linked and needed."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from pathlib import Path

import pytest

from book._tools.build import ROOT
from book._tools.glossary_links import DEFINES, key
from book._tools.notebook_io import notebooks, read
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
    "you will",
    "time",
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
        return [target for _, target in LINK.findall(self.text) if DEFINES.search(target)]

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


@pytest.mark.parametrize(
    "path", [path for path in notebooks() if DEFINES.search(path.stem)], ids=lambda path: path.stem
)
def test_every_bold_term_of_a_chapter_has_an_entry(path: Path) -> None:
    missing = [f"{name}: {words}" for name, words in bold_terms(path) if key(words) not in known()]
    assert missing == [], "write an entry in book/glossary.md, or make it no longer bold"


def test_every_hyper_parameter_has_an_entry() -> None:
    assert sorted((FIELDS | WRITING) - {term for entry in entries() for term in entry.terms}) == []


def test_the_entries_stand_in_the_order_of_the_alphabet() -> None:
    names = [re.sub(r"[\W_]", "", entry.terms[0].lower()) for entry in entries()]
    assert names == sorted(names)


def test_every_entry_is_short() -> None:
    assert [entry.terms[0] for entry in entries() if not 0 < entry.n_words <= LONGEST] == []


def test_every_entry_names_a_chapter_that_exists() -> None:
    there = {path.stem for path in (ROOT / "book").iterdir()}
    assert [entry.terms[0] for entry in entries() if not entry.pages or set(entry.pages) - there] == []
