"""What the book asks of Sphinx beyond its extensions: readable signatures and formulas."""

from __future__ import annotations

import ast
import gc
import inspect
import re
import textwrap
from functools import cache

import pybtex.plugin
from sphinx.application import Sphinx
from sphinx.domains import Domain
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

SAFE_TO_READ_IN_PARALLEL = ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering")
"""Extensions that do not say it: the first acts in other builders alone, the second when all is read."""

DISPLAY_MATH = re.compile(r"^([ \t]*)\$\$(.+?)\$\$[ \t]*$", re.MULTILINE | re.DOTALL)
INLINE_MATH = re.compile(r"(?<![\\$`])\$(?!\$)([^$\n]+(?:\n[^$\n]+)?)\$(?!\$)")
SHAPED = re.compile(r"""\b(?:Float|Bool|Int|Num|Shaped|UInt|Inexact|Complex)\d*\[(?:torch\.)?Tensor, (['"])(.*?)\1\]""")


def math_to_rst(text: str) -> str:
    r"""Return a docstring with its ``$...$`` and ``$$...$$`` as reStructuredText, which knows no dollars.

    >>> math_to_rst("the width $d$ counts")
    'the width :math:`d` counts'
    """
    display = DISPLAY_MATH.sub(lambda m: f"{m[1]}.. math::\n\n{m[1]}   {' '.join(m[2].split())}\n", text)
    return INLINE_MATH.sub(lambda m: f":math:`{' '.join(m[1].split())}`", display)


def convert_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Rewrite formulas and headings of one docstring in place (Sphinx event ``autodoc-process-docstring``)."""
    lines[:] = math_to_rst("\n".join(lines)).split("\n")


def shorten_annotation(text: str) -> str:
    """Return a signature in which each tensor is its element type and its axes.

    >>> shorten_annotation("(query: Float[Tensor, '... queries d_head'], causal: bool = False)")
    "(query: Float['... queries d_head'], causal: bool = False)"
    """
    return SHAPED.sub(lambda m: f"{m[0].split('[')[0]}['{m[2]}']", text)


def plain_signature(obj: object) -> tuple[str, str | None] | None:
    """Return arguments and result as they stand in the source, or None where no source holds them.

    >>> from ttutor.masks import causal_mask
    >>> plain_signature(causal_mask)[1]
    "Bool['queries keys']"
    """
    function = inspect.unwrap(obj.__init__ if inspect.isclass(obj) else obj)
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (TypeError, OSError):  # written in C, or made by a decorator such as dataclass
        return None
    if not isinstance(definition, ast.FunctionDef):
        return None
    arguments = definition.args
    arguments.args = [a for a in arguments.args if a.arg not in ("self", "cls")]
    result = None if inspect.isclass(obj) or definition.returns is None else ast.unparse(definition.returns)
    return f"({shorten_annotation(ast.unparse(arguments))})", result and shorten_annotation(result)


def convert_signature(app: Sphinx, what: str, name: str, obj: object, *rest: object) -> tuple[str, str | None] | None:
    """Replace one signature (Sphinx event ``autodoc-process-signature``)."""
    return plain_signature(obj) if what in ("function", "method", "class") else None


def allow_parallel_reading(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Speak for those who do not say whether pages may be read side by side (Sphinx event ``env-before-read-docs``).

    Domains that keep nothing beyond a version have nothing to merge; Sphinx asks for a method all the same.
    """
    for name in SAFE_TO_READ_IN_PARALLEL:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True
    for domain in env.domains.values():
        kind = type(domain)
        if kind.merge_domaindata is Domain.merge_domaindata and set(domain.data) <= {"version"}:
            kind.merge_domaindata = lambda self, pages, other: None


def hurry() -> None:
    """Spare two searches that took a third of a build, and find the same each time."""
    gc.set_threshold(100_000, 50, 100)  # a page is a large tree that stays: there is hardly any garbage
    pybtex.plugin._load_entry_point = cache(pybtex.plugin._load_entry_point)  # else each citation reads all packages


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register everything with Sphinx."""
    hurry()
    app.setup_extension("book._tools.html_repairs")
    app.setup_extension("book._tools.glossary_links")
    app.connect("env-before-read-docs", allow_parallel_reading)
    app.connect("autodoc-process-docstring", convert_docstring, priority=10)
    app.connect("autodoc-process-signature", convert_signature)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
