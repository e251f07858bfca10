"""`ttutor.texts`: which texts are the same to people."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttutor.texts import normal_form


@given(st.text())
def test_it_is_a_normal_form(text):
    once = normal_form(text)
    assert normal_form(once) == once
    assert all(normal_form(unicodedata.normalize(form, text)) == once for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ﬁn", "FIN"),
        ("ｶﾞ", "ガ"),
        ("Jean–Luc", "jean-luc"),
        ("a\u200b\u00adb", "ab"),
        ("\u3000Ａ\t\u00a0b", "a b"),
    ],
)
def test_what_people_take_for_the_same(one, other):
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(("one", "other"), [("Zoë", "Zoe"), ("Ł", "L"), ("か", "が"), ("ab", "a b"), ("и", "й")])
def test_what_people_tell_apart(one, other):
    assert normal_form(one) != normal_form(other)
