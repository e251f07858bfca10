"""Mends the finished pages where the theme and the extensions leave a reader out who does not use a mouse and a screen.

What stands here is a defect of a template or of a directive that no setting of theirs mends. The tests look at every
page with the rules of axe-core, so that a repair which no longer finds its place is noticed.
"""

from __future__ import annotations

import re

REPAIRS = (
    # The name of a control holds the words on it: who says what they see gets what they mean.
    (re.compile(r'(<button class="btn search-button-field[^>]*?)\s+title="Search"\s+aria-label="Search"'), r"\1"),
    (re.compile(r'(<i class="theme-switch [^>]*?)\s+title="[^"]*"'), r"\1"),
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    # Everything on a page lies in a region that can be jumped to.
    (
        re.compile(r'<div id="pst-primary-sidebar" class="([^"]*)">'),
        r'<div id="pst-primary-sidebar" class="\1" role="region" aria-label="The book">',
    ),
    # A corner of a table that heads nothing is no heading.
    (re.compile(r'<th class="((?:head|stub| )+)"><p></p></th>'), r'<td class="\1"></td>'),
    # Every exercise and every solution of a page has a content: as an id, the word would name all of them.
    (re.compile(r' id="((?:exercise|solution|proof)-content)"'), r' class="\1"'),
    # A picture to click on, which the keyboard cannot: the list of modules is short enough to stand open.
    (re.compile(r'<img src="[^"]*minus\.png" class="toggler"[^>]*>'), ""),
)


def mend(text: str) -> str:
    """Return a page with its defects mended.

    >>> mend('<summary aria-label="Toggle hidden content"><p>Show code</p></summary>')
    '<summary><p>Show code</p></summary>'
    """
    for wrong, right in REPAIRS:
        text = wrong.sub(right, text)
    return text
