r"""Short text with `code`, *emphasis* and $formulas$, as data that a script turns into elements without reading markup.

A **node** is a string (plain text) or a list: a tag and its children, as in ``["code", "q @ k"]``. Formulas become
MathML, which browsers typeset by themselves, without a kernel and without the network.
"""

import html
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Node = Any
"""A string, or a list of a tag and the nodes in it."""

_INLINE = {"em": "em", "strong": "strong"}
_UPRIGHT = {"mathvariant": "normal"}


def rich_text(source: Any) -> list[Node]:
    r"""Text with Markdown's backticks and stars, and formulas between dollar signs, as nodes.

    >>> rich_text("the axis `keys` of $e^x$")
    ['the axis ', ['code', 'keys'], ' of ', ['math', ['mrow', ['msup', ['mi', 'e'], ['mi', 'x']]]]]
    >>> rich_text("1 < 2")
    ['1 < 2']
    """
    if not isinstance(source, str):
        raise TypeError(f"expected text, got {type(source).__name__}")
    if not source.strip():
        raise ValueError("expected text, got an empty string")
    nodes: list[Node] = []
    open_ = [nodes]
    for token in _tokens(source):
        name = token.type.removesuffix("_open").removesuffix("_close")
        if name in _INLINE and token.nesting == 1:
            open_[-1].append([_INLINE[name]])
            open_.append(open_[-1][-1])
        elif name in _INLINE and token.nesting == -1:
            open_.pop()
        else:
            open_[-1].append(_leaf(token))
    return nodes


def rich_html(nodes: list[Node]) -> str:
    """The nodes as HTML, every text escaped.

    >>> rich_html(rich_text("*not* <b>"))
    '<em>not</em> &lt;b&gt;'
    """
    return "".join(
        html.escape(node, quote=False) if isinstance(node, str) else f"<{node[0]}>{rich_html(node[1:])}</{node[0]}>"
        for node in nodes
    )


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    return (
        MarkdownIt("zero")
        .enable(["backticks", "emphasis", "escape"])
        .use(dollarmath_plugin, double_inline=True, allow_space=False)
    )


def _tokens(source: str) -> Iterator["Token"]:
    """The pieces of one paragraph; a line end counts as a space."""
    for block in _markdown().parse(" ".join(source.split())):
        yield from block.children or ()


def _leaf(token: "Token") -> Node:
    if token.type == "code_inline":
        return ["code", token.content]
    if token.type.startswith("math_inline"):
        return _formula(token.content)
    return token.content


def _formula(latex: str) -> Node:
    from latex2mathml.converter import convert

    tree = ElementTree.fromstring(convert(latex))
    unknown = [part.text for part in tree.iter() if part.text and "\\" in part.text]
    if unknown:
        raise ValueError(
            f"the formula ${latex}$ uses {', '.join(unknown)}, which is not known here; write it otherwise"
        )
    return _element(tree)


def _element(tree: ElementTree.Element) -> Node:
    """One element and what is in it; letters that stand upright are put together to a word."""
    tag = tree.tag.rpartition("}")[2]
    if tag == "mrow" and len(tree) > 1 and all(part.attrib == _UPRIGHT for part in tree):
        return ["mtext", "".join(part.text or "" for part in tree)]
    return [tag, *([tree.text] if tree.text else []), *map(_element, tree)]
