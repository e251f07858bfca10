"""Live cells: controls that drive a function on the reader's own input, beside a rendering that needs no kernel."""

import base64
import html
import io
import sys
from collections.abc import Callable
from typing import Any

import ipywidgets

from ttutor.widgets.base import Explorer

_NOTE = "In Jupyter or Colab this cell has controls: change the input and the result follows."


class LiveCell:
    """A function with a control for each of its inputs; its result is shown below them and follows them.

    With a kernel the reader sees ipywidgets controls. The same output also carries the function's result for the
    initial values as ``text/html``, which is what the built book, GitHub and print show.

    Args:
        function: called with one keyword argument a control. It may return text (shown as it is, never as markup),
            anything with ``_repr_html_``, a Matplotlib figure, or anything with a ``repr``.
        alt: what a sighted reader would see; required when the function returns a figure.
        **controls: the initial input, one entry a parameter: text, a bool, a number, ``(low, high)`` or
            ``(low, high, step)`` for a slider, a list to choose from, or an ipywidgets widget.

    >>> cell = LiveCell(lambda text, times: text * times, text="ha", times=ipywidgets.IntSlider(2, 1, 5))
    >>> cell
    LiveCell(text='ha', times=2)
    >>> cell.controls["times"].value = 3
    >>> "hahaha" in cell.output.value
    True
    """

    def __init__(self, function: Callable[..., Any], *, alt: str = "", **controls: Any) -> None:
        if not controls:
            raise TypeError("a live cell needs at least one control, such as live(function, text='I love ML !')")
        _enable_in_colab()
        self.function = function
        self.alt = alt
        self.controls = {name: _control(name, given) for name, given in controls.items()}
        self.initial = dict(self.values)
        self.static_html = self._call()
        self.output = ipywidgets.HTML(self.static_html)
        self.widget = ipywidgets.VBox([*self.controls.values(), self.output])
        for control in self.controls.values():
            control.observe(self._refresh, names="value")

    @property
    def values(self) -> dict[str, Any]:
        """What the controls hold now."""
        return {name: control.value for name, control in self.controls.items()}

    def to_html(self) -> str:
        """The input and the result that the cell started with, for readers without a kernel."""
        given = ", ".join(f"{html.escape(name)} = {html.escape(_show(value))}" for name, value in self.initial.items())
        return (
            f'<div class="ttutor-live"><p><strong>Input:</strong> {given}</p>{self.static_html}'
            f"<p><small>{_NOTE}</small></p></div>"
        )

    def _call(self) -> str:
        return result_html(self.function(**self.values), self.alt)

    def _refresh(self, change: Any) -> None:
        """Show the new result. What the reader typed may not suit the function: then show why, where the result was."""
        try:
            self.output.value = self._call()
        except Exception as error:
            message = html.escape(f"{type(error).__name__}: {error}")
            self.output.value = f'<pre role="alert">{message}</pre>'

    def __repr__(self) -> str:
        return f"LiveCell({', '.join(f'{name}={_show(value)}' for name, value in self.initial.items())})"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict, dict]:
        bundle = self.widget._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/plain": repr(self), "text/html": self.to_html()}, metadata


def live(function: Callable[..., Any], *, alt: str = "", **controls: Any) -> LiveCell:
    """Make a live cell; as the last line of a cell it shows itself. See `LiveCell`.

    >>> live(lambda text: f"{len(text.split())} words", text="I love ML !")
    LiveCell(text='I love ML !')
    """
    return LiveCell(function, alt=alt, **controls)


def result_html(result: Any, alt: str = "") -> str:
    """The HTML of whatever a function gave back; plain text is escaped.

    >>> result_html("1 < 2")
    '<pre>1 &lt; 2</pre>'
    """
    if hasattr(result, "savefig"):
        return _figure_html(result, alt)
    if isinstance(result, Explorer):
        return result.to_html()
    rich = getattr(result, "_repr_html_", None)
    markup = rich() if callable(rich) else None
    if isinstance(markup, str):
        return markup
    return f"<pre>{html.escape(result if isinstance(result, str) else repr(result))}</pre>"


def _figure_html(figure: Any, alt: str) -> str:
    """A Matplotlib figure as a picture in the page; closed, so that the notebook does not show it a second time."""
    import matplotlib.pyplot as plt

    if not alt:
        raise ValueError("the function returned a figure, which needs alt='what a sighted reader would see'")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    plt.close(figure)
    picture = base64.b64encode(buffer.getvalue()).decode()
    return f'<img src="data:image/png;base64,{picture}" alt="{html.escape(alt)}" style="max-width:100%">'


def _control(name: str, given: Any) -> ipywidgets.Widget:
    """A widget for what was given, labelled with the parameter's name in words."""
    made = ipywidgets.interactive.widget_from_abbrev(given)
    if made is None:
        raise TypeError(
            f"cannot make a control from {name}={given!r}; give text, a bool, a number, (low, high), "
            f"(low, high, step), a list, or a widget"
        )
    if not isinstance(given, ipywidgets.Widget):
        made.description = name.replace("_", " ")
        made.style.description_width = "initial"
        if isinstance(made, ipywidgets.Text):
            made.layout.width = "min(36rem, 100%)"
        if made.has_trait("continuous_update"):
            made.continuous_update = False  # a call when the reader lets go
    return made


def _show(value: Any) -> str:
    """A control's value in words; a slider's middle is 2.5, not 2.5000000000000004."""
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _enable_in_colab() -> None:
    """Colab shows third-party widgets only after its manager for them was switched on."""
    if "google.colab" in sys.modules:
        sys.modules["google.colab"].output.enable_custom_widget_manager()
