"""Texts of other people: one form for those that look the same, and a form that can be shown anywhere."""

import unicodedata

__all__ = ["normal_form", "printable"]

APOSTROPHES = str.maketrans("‘’ʼ`´＇", "''''''")


def normal_form(text: str) -> str:
    """Return a text in the form in which texts that look the same are equal; for comparing, not for showing.

    Letters composed or not (a Mac writes `ü` as u and two dots), in wide or narrow form, capital or small, blanks of
    any kind and number, invisible signs, dashes and apostrophes: none of these tells two texts apart. The core is
    Unicode's caseless matching of compatible texts (The Unicode Standard, section 3.13, D146).

    Example:
        >>> normal_form("Zoe\\u0308\\u00a0 O’Neill ") == normal_form("zoë o'neill")
        True
        >>> normal_form("Zoë") == normal_form("Zoe")
        False
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFD", text).casefold()).casefold()
    plain = "".join(_plain(letter) for letter in unicodedata.normalize("NFKC", folded.translate(APOSTROPHES)))
    return " ".join(plain.split())


def printable(text: str, kept: str = "") -> str:
    """Return a text without what a terminal would obey: all that cannot be printed, but what is `kept`, is replaced.

    >>> printable("a\\x1b[2J\\nb" + "\\udcff")
    'a\ufffd[2J\ufffdb\ufffd'
    """
    return "".join(one if one.isprintable() or one in kept else "\ufffd" for one in text)


def _plain(letter: str) -> str:
    match unicodedata.category(letter):
        case "Cf":  # joiners, soft hyphens, marks of direction
            return ""
        case "Pd":
            return "-"
        case _:
            return letter
