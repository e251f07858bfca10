"""Takes from the finished pages what a reader pays for and does not see.

Highlighted code gives most of its words the colour that the block has anyway, each in an element of its own: a third of
a chapter's bytes and elements. And the theme loads what a search needs on pages that have no search.
"""

from __future__ import annotations

import re

TOKEN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
CODE = re.compile(r'<div class="highlight"><pre>.*?</pre>', re.DOTALL)
RULE = re.compile(r'(html\[data-theme="\w+"\]) \.highlight (?:\.(\w+) )?\{([^}]*)\}')
COLOUR = re.compile(r"(?<![-\w])color: *([^;}\s]+)")
SEARCH_SCRIPTS = re.compile(r'\s*<script src="[^"]*(?:_static/searchtools|_static/language_data|searchindex)\.js"></script>')


def plain_tokens(css: str) -> set[str]:
    """Return the classes of words of code that have the block's own colour, and nothing else, in every mode.

    Args:
        css: the style sheet of highlighted code, as Sphinx writes it for this theme.

    >>> block = 'html[data-theme="dark"] .highlight { background: #000; color: #eee }'
    >>> words = 'html[data-theme="dark"] .highlight .n { color: #eee } html[data-theme="dark"] .highlight .k { color: red }'
    >>> plain_tokens(block + words)
    {'n'}
    """
    rules = RULE.findall(css)
    blocks = {mode: COLOUR.findall(body) for mode, token, body in rules if not token}
    tokens = {token for _, token, _ in rules if token}
    marked = {
        token for mode, token, body in rules if token and (body.count(":") > 1 or COLOUR.findall(body) != blocks[mode])
    }
    return tokens - marked


def lighten(text: str, plain: set[str], *, searches: bool = False) -> str:
    """Return a page without elements that change nothing, and without a search's index where nothing searches.

    Args:
        text: the page as the theme wrote it.
        plain: the classes of words of code that look like the block, as `plain_tokens` finds them.
        searches: whether it is the page that searches, which keeps its index.

    >>> lighten('<div class="highlight"><pre><span class="n">x</span></pre>', {"n"})
    '<div class="highlight"><pre>x</pre>'
    """

    def bare(token: re.Match) -> str:
        return token[2] if token[1] in plain else token[0]

    text = CODE.sub(lambda block: TOKEN.sub(bare, block[0]), text)
    return text if searches else SEARCH_SCRIPTS.sub("", text)
