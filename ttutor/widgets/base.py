"""The base of every explorer: a figure that is alive in Jupyter and in a page without a kernel, and a table elsewhere.

An explorer is an anywidget (its traits are synced with Python while a kernel runs) whose output also carries a
``text/html`` form: its state, and a readable fallback. The built book's script finds that form and mounts the same
ES module over it; where scripts are off, on GitHub and in print the fallback is what the reader sees.
"""

import html
import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anywidget
import numpy as np

from ttutor.widgets.static import module_source, static_script

Number = TypeVar("Number", int, float)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ background: Canvas; color: CanvasText; font-family: system-ui, sans-serif; margin: 1rem; }}
</style>
</head>
<body>
<main><h1>{title}</h1>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""


_FIT_FRAME = """
const fit = () => { window.frameElement.style.height = `${document.documentElement.offsetHeight + 32}px`; };
if (window.frameElement) new ResizeObserver(fit).observe(document.documentElement);
"""


class Explorer(anywidget.AnyWidget):
    """An interactive figure. A subclass names its ES module and the traits that make up its state.

    A subclass sets ``_module`` (the stem of a file in ``js/``) and ``_title``, and writes ``fallback_html`` and
    ``describe``; its synced traits are its state. Everything that a trait holds has to be rounded where it is set,
    because the state is stored in notebooks and compared there: see ``rounded_array``. Dictionaries come out sorted by
    their keys; where order counts, keep lists.
    """

    _module = ""
    _title = "Interactive figure"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_module" in cls.__dict__:
            cls._esm = module_source(cls._module)

    def static_state(self) -> dict[str, Any]:
        """The traits that a page without a kernel starts from."""
        own = set(self.trait_names(sync=True)) - set(Explorer.class_trait_names(sync=True))
        return {name: getattr(self, name) for name in sorted(own) if not name.startswith("_")}

    def fallback_html(self) -> str:
        """What readers without scripts see: the real content, as a table or a picture in words."""
        raise NotImplementedError(f"{type(self).__name__} has no fallback_html; every explorer needs one")

    def describe(self) -> str:
        """What the figure shows, in a few words that are the same on every run."""
        return ""

    def to_html(self) -> str:
        """The static form: a ``div`` with the state, on which the page's script mounts the explorer."""
        state = json.dumps(self.static_state(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return (
            f'<div class="explorer" data-explorer="{html.escape(self._module)}" data-state="{html.escape(state)}">'
            f"{self.fallback_html()}</div>"
        )

    def save(self, path: str | Path, title: str | None = None) -> Path:
        """Write the explorer, as it stands, to one HTML file that opens anywhere: no kernel, no network.

        Returns:
            The path that was written.
        """
        Path(path).write_text(self._page(title or self._title), encoding="utf-8")
        return Path(path)

    def _page(self, title: str, script_after: str = "") -> str:
        script = static_script([self._module]) + script_after
        return _PAGE.format(title=html.escape(title), body=self.to_html(), script=script)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    def _repr_html_(self) -> str:
        """The saved page in a frame of its own, for places that have no widgets but run scripts."""
        page, label = html.escape(self._page(self._title, _FIT_FRAME)), html.escape(self._title)
        return f'<iframe srcdoc="{page}" title="{label}" style="width:100%;height:30rem;border:0"></iframe>'

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict, dict] | None:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "text/plain": repr(self), "text/html": self.to_html()}, metadata


def table_html(caption: str, heads: Iterable[str], rows: Iterable[Sequence]) -> str:
    """A table for readers without scripts: each row is its name and its cells. All texts are escaped.

    >>> table_html("Weights", ["", "cat"], [["the", 0.25]])[:55]
    '<table><caption>Weights</caption><thead><tr><td></td><t'
    """

    def cell(content: object) -> str:
        return f"<td>{html.escape(str(content))}</td>"

    head = "".join(f'<th scope="col">{html.escape(text)}</th>' if text else "<td></td>" for text in heads)
    body = "".join(
        f'<tr><th scope="row">{html.escape(str(name))}</th>{"".join(map(cell, cells))}</tr>' for name, *cells in rows
    )
    top = f"<caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def token_list(name: str, tokens: Any) -> list[str]:
    """Tokens as plain text."""
    if isinstance(tokens, str):
        raise TypeError(f"{name} has to be a list of tokens, not one string; for words write {name}=text.split()")
    listed = list(tokens)
    if not listed:
        raise ValueError(f"{name} is empty; there has to be at least one token")
    if not all(isinstance(token, str) for token in listed):
        kinds = sorted({type(token).__name__ for token in listed if not isinstance(token, str)})
        raise TypeError(f"{name} has to hold text, but holds {', '.join(kinds)}; decode token ids to text first")
    return listed


def number_array(name: str, values: Any) -> np.ndarray:
    """Anything table-like (a tensor, an array, nested lists) as float64."""
    try:
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not a table of numbers with rows of equal length: {error}") from error


def rounded_array(name: str, values: Any, shape: Sequence[int | None], decimals: int, *, axes: str) -> list:
    """Numbers of the expected size, rounded, as nested lists that JSON can hold.

    Args:
        name: what the caller calls them, for messages.
        values: a tensor, an array or nested lists.
        shape: the size of each axis; None for any size above 0.
        decimals: digits after the point that are kept.
        axes: the axes' names in words, for messages.

    >>> rounded_array("widths", [1.23456, -0.0001], (2,), 2, axes="layers")
    [1.23, 0.0]
    """
    array = number_array(name, values)
    fits = array.ndim == len(shape) and all(
        size == wanted if wanted is not None else size > 0 for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join("any" if size is None else str(size) for size in shape) + ")"
        surplus = array.ndim - len(shape)
        hint = (
            f"; choose one sentence and one head, such as {name}[{', '.join(['0'] * surplus)}]" if surplus > 0 else ""
        )
        raise ValueError(f"{name} has shape {array.shape}, expected {wanted} ({axes}){hint}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        written = "".join(f"[{i}]" for i in place)
        raise ValueError(f"{name}{written} is {array[place]}; every entry has to be a finite number")
    return _rounded(array.tolist(), decimals)


def _rounded(values: Any, decimals: int) -> Any:
    """Nested lists with every number rounded, without minus zeros."""
    if isinstance(values, list):
        return [_rounded(value, decimals) for value in values]
    return round(values, decimals) + 0.0


def within(name: str, value: Number, low: float | int, high: float | int, remark: str = "") -> Number:
    """A number from ``low`` to ``high``, both included; the remark says what it counts."""
    if not low <= value <= high:
        raise ValueError(f"{name} has to be from {low:,} to {high:,}, not {value}{remark and f'; {remark}'}")
    return value


def one_of(name: str, value: Any, allowed: Collection[Any]) -> Any:
    """One of the values that there are."""
    if value not in allowed:
        raise ValueError(f"{name} has to be one of {', '.join(map(str, allowed))}, not {value!r}")
    return value
