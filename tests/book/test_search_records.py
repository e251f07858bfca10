"""What becomes a record of the search, and with which text."""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes

from book._tools.search_page import ROOT, words
from book._tools.search_records import Collector, Record, readable


def section(anchor: str, title: str, *parts: nodes.Node) -> nodes.section:
    return nodes.section("", nodes.title(text=title), *parts, ids=[anchor])


def collect(docname: str, *sections: nodes.section) -> list[Record]:
    document = nodes.container("", *sections)
    return Collector(0, docname, "Chapter 3, Heads", {"split": (3, 1)}).collect(document)


def test_every_section_is_a_record_with_its_own_text_only() -> None:
    inner = section("inner", "Inner", nodes.paragraph(text="deep"))
    found = collect("book/03-heads", section("top", "Heads", nodes.paragraph(text="wide"), inner))
    assert [(record.kind, record.anchor, record.title, record.text) for record in found] == [
        ("chapter", "", "Heads", "wide"),
        ("section", "inner", "Inner", "deep"),
    ]


def test_the_place_names_the_sections_above() -> None:
    found = collect("book/03-heads", section("top", "Heads", section("a", "A", section("b", "B"))))
    assert [record.place for record in found] == ["Chapter 3, Heads", "Chapter 3, Heads", "Chapter 3, Heads › A"]


def test_code_counts_by_its_names_and_printed_outputs_do_not() -> None:
    shown = nodes.container("", nodes.literal_block("", "weights_of(x) + weights_of(y) + z"), classes=["cell_input"])
    printed = nodes.container("", nodes.literal_block("", "tensor_of_numbers"), classes=["cell_output"])
    (found,) = collect("book/03-heads", section("top", "Heads", nodes.container("", shown, printed, classes=["cell"])))
    assert (found.code, found.text) == ("weights_of", "")


def test_hints_and_solutions_stay_out() -> None:
    hint = nodes.container("", nodes.paragraph(text="the answer is seven"), design_component="dropdown")
    (found,) = collect("book/03-heads", section("top", "Exercises", hint, nodes.paragraph(text="Try.")))
    assert found.text == "Try."


def test_terms_are_records_with_all_their_names() -> None:
    entry = nodes.definition_list_item(
        "",
        nodes.term("", "slice (of a loss)", ids=["term-slice"]),
        nodes.term("", "cut", ids=["term-cut"]),
        nodes.definition("", nodes.paragraph(text="A part.")),
    )
    glossary = addnodes.glossary("", nodes.definition_list("", entry))
    _, term = collect("book/glossary", section("top", "Glossary", glossary))
    assert (term.kind, term.anchor, term.names, term.text) == ("term", "term-slice", ["slice", "cut"], "A part.")


def test_formulas_are_readable() -> None:
    line = nodes.paragraph("", "", nodes.Text("the scale "), nodes.math(text=r"\frac{1}{\sqrt{d_\text{head}}}"))
    assert readable(line) == "the scale 1/√(d_head)"


def test_the_words_of_readers_name_pages_of_the_book() -> None:
    pages = {address.partition("#")[0] for address in words(ROOT)}
    assert [page for page in pages if not list(ROOT.glob(f"{page}.*"))] == []
