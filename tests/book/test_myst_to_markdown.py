"""MyST as plain Markdown: what becomes of each directive and role, and that nothing is half converted."""

from __future__ import annotations

import re

import pytest

from book._tools.myst_to_markdown import Plain
from book._tools.notebook_io import chapters, read

EXERCISE = "````{exercise} Two words ★ (5 minutes)\n:label: a-b\n\nWrite\n\n```python\nx = 1\n```\n````"
EQUATION = "```{math}\n:label: eq-one\na = b\n```"


def plain(text: str, *others: str, pages: frozenset[str] = frozenset()) -> str:
    return Plain([text, *others], 7, pages)(text)


def test_an_exercise_becomes_a_heading_with_the_number_of_the_book() -> None:
    second = EXERCISE.replace("a-b", "c-d").replace("Two", "More")
    assert plain(f"{EXERCISE}\n\n{second}") == (
        "### Exercise 7.1: Two words ★ (5 minutes)\n\nWrite\n\n```python\nx = 1\n```\n\n"
        "### Exercise 7.2: More words ★ (5 minutes)\n\nWrite\n\n```python\nx = 1\n```"
    )


def test_a_solution_and_a_hint_are_folded() -> None:
    solution = "```{solution} a-b\n:class: dropdown\n\nLook.\n```"
    hint = "```{dropdown} Hint 1: *how*\nTry $x$.\n```"
    assert plain(solution, EXERCISE) == (
        "<details>\n<summary><b>Solution of exercise 7.1</b></summary>\n\nLook.\n\n</details>"
    )
    assert plain(hint) == "<details>\n<summary><b>Hint 1: *how*</b></summary>\n\nTry $x$.\n\n</details>"


def test_a_box_becomes_a_quotation() -> None:
    assert plain("```{admonition} Read me\n:class: tip\n\nOne.\n\nTwo.\n```\nAfter") == (
        "> **Read me**\n>\n> One.\n>\n> Two.\nAfter"
    )
    assert plain(":::{note}\nOne.\n:::") == "> **Note**\n>\n> One."


def test_equations_are_numbered_where_they_have_a_label() -> None:
    assert plain(EQUATION) == "$$\na = b\n\\tag{1}\n$$"
    assert plain("```{math}\na = b\n```") == "$$\na = b\n$$"
    assert plain("by {eq}`eq-one`", EQUATION) == "by (1)"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("{cite:t}`vaswani2017` show", "Vaswani et al. (2017) show"),
        ("it is known {cite:p}`vaswani2017,hahn2020`", "it is known (Vaswani et al., 2017; Hahn, 2020)"),
        ("{doc}`chapter 3 <03-multihead>`", "chapter 3"),
        ("{doc}`chapter 4 <04-positions>`", "[chapter 4](04-positions.ipynb)"),
        ("[the notation page](notation.md)", "the notation page"),
        ("[chapter 4](04-positions.ipynb)", "[chapter 4](04-positions.ipynb)"),
        ("[out](https://example.org/a)", "[out](https://example.org/a)"),
        ("see {ref}`a-b`", "see exercise 7.1"),
        ("see {ref}`the first <a-b>`", "see the first"),
        ("see [](#where-it-ends)", "see [Where it ends](#Where-it-ends)"),
        ("![a picture](picture.png)", "![a picture](picture.png)"),
        ("`{not a role}` and $\\frac{a}{b}$", "`{not a role}` and $\\frac{a}{b}$"),
    ],
)
def test_what_stands_in_a_line(written: str, shown: str) -> None:
    assert plain(written, EXERCISE, "## Where it ends", pages=frozenset({"04-positions.ipynb"})) == shown


def test_code_is_left_alone() -> None:
    code = "```python\nprint('{cite:t}`nobody`')  # [x](y)\n```"
    assert plain(f"Before\n{code}\nafter") == f"Before\n{code}\nafter"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("```{figure} a.png\n```", "no plain form is known for the directive {figure}"),
        ("{abbr}`one`", "no plain form is known for the role {abbr}"),
        ("{cite:t}`nobody1999`", "the bibliography has no work 'nobody1999'"),
        ("{eq}`eq-two`", "the book has no equation 'eq-two'"),
        ("{ref}`x-y`", "no exercise 'x-y'"),
        ("[](#nowhere)", "no heading 'nowhere'"),
        ("```{math}\na", "is not closed"),
    ],
)
def test_what_has_no_plain_form_is_refused(written: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        plain(written)


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_nothing_of_myst_is_left_in_a_chapter(path) -> None:
    texts = [cell.source for cell in read(path.read_text(encoding="utf-8")).cells if cell.cell_type == "markdown"]
    convert = Plain(texts, int(path.stem[:2]))
    left = re.compile(r"^(`{3,}|:{3,})\{|\{[a-z:]+\}`|^:label:|\]\(#[a-z]", re.MULTILINE)
    assert [left.search(shown)[0] for shown in map(convert, texts) if left.search(shown)] == []
