"""Sentences into the corpus's writing and answers back."""

from dataclasses import replace

import pytest

from ttutor.corpora.text_style import TextStyle

GRAMMAR = TextStyle(lower_case=True, final_mark=False)


def test_the_style_is_found_in_the_text():
    assert TextStyle.of(["the dog sleeps", "I see my house"]) == replace(GRAMMAR, form="NFC")
    assert TextStyle.of(["A dog runs."]) == TextStyle(lower_case=False, final_mark=True, form="NFC")
    assert TextStyle.of(["A dog runs"]) == TextStyle(lower_case=False, final_mark=False, form="NFC")


@pytest.mark.parametrize(
    ("given", "prepared", "answer", "restored"),
    [
        ("the red cars do not sleep", "the red cars do not sleep", "les voitures", "les voitures"),
        ("The red cars do not sleep.", "the red cars do not sleep", "les voitures", "Les voitures."),
        ("  The  dog sleeps!  ", "the dog sleeps", "le chien dort", "Le chien dort!"),
        ("I sleep", "I sleep", "je dors", "je dors"),
        ("i sleep.", "I sleep", "je dors", "je dors."),
        ("", "", "", ""),
        ("...", "", "", ""),
    ],
)
def test_the_grammar_s_style(given, prepared, answer, restored):
    assert GRAMMAR.prepare(given) == prepared
    assert GRAMMAR.restore(answer, given) == restored


def test_ordinary_text_is_left_as_it_is():
    style = TextStyle()
    assert style.prepare("A Dog runs.") == "A Dog runs."
    assert style.restore("Ein Hund rennt.", "a dog runs") == "Ein Hund rennt."
