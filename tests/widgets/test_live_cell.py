"""Live cells: controls with a kernel, a real result without one, and nothing that nbval or nbclient trips over."""

import sys
from types import ModuleType, SimpleNamespace

import ipywidgets
import matplotlib
import pytest

from ttutor.widgets import live

matplotlib.use("agg")
from matplotlib import pyplot as plt


def repeat(text: str, times: int) -> str:
    return text * times


def test_the_stored_output_shows_the_result_for_the_first_input() -> None:
    cell = live(repeat, text="ab", times=(1, 3))
    data, _ = cell._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"] == "LiveCell(text='ab', times=2)"
    assert "<pre>abab</pre>" in data["text/html"]
    assert "text = &#x27;ab&#x27;, times = 2" in data["text/html"]


def test_the_result_follows_the_controls_and_the_stored_form_does_not() -> None:
    cell = live(repeat, text="ab", times=(1, 3))
    before = cell.to_html()
    cell.controls["times"].value = 3
    cell.controls["text"].value = "x"
    assert cell.output.value == "<pre>xxx</pre>"
    assert cell.values == {"text": "x", "times": 3}
    assert cell.to_html() == before


def test_what_the_reader_types_is_shown_and_never_markup() -> None:
    cell = live(lambda text: text, text="<img src=x onerror=alert(1)>")
    assert "<img" not in cell.to_html()
    assert "<img" not in cell.output.value


def test_an_input_that_the_function_refuses_shows_the_reason_and_recovers() -> None:
    def invert(number: int) -> str:
        if number == 0:
            raise ValueError("0 <has> no inverse")
        return f"{1 / number:.2f}"

    cell = live(invert, number=(0, 4))
    cell.controls["number"].value = 0
    assert cell.output.value == '<pre role="alert">ValueError: 0 &lt;has&gt; no inverse</pre>'
    cell.controls["number"].value = 4
    assert cell.output.value == "<pre>0.25</pre>"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("text", ipywidgets.Text), (True, ipywidgets.Checkbox), ((0.0, 1.0), ipywidgets.FloatSlider),
        ((0, 9, 3), ipywidgets.IntSlider), (["a", "b"], ipywidgets.Dropdown),
    ],
)  # fmt: skip
def test_every_kind_of_input_gets_its_control(given: object, kind: type) -> None:
    control = live(lambda some_input: "", some_input=given).controls["some_input"]
    assert isinstance(control, kind)
    assert control.description == "some input"


def test_without_controls_or_with_an_unfit_one_it_says_what_to_give() -> None:
    with pytest.raises(TypeError, match="at least one control"):
        live(repeat)
    with pytest.raises(TypeError, match="cannot make a control from times=<object .*give text, a bool"):
        live(repeat, text="a", times=object())


def test_a_figure_becomes_a_described_picture_and_is_closed() -> None:
    def draw(times: int) -> object:
        figure, ax = plt.subplots()
        ax.plot(range(times))
        return figure

    open_before = plt.get_fignums()
    one, two = (live(draw, alt='a "line"', times=(2, 4)).to_html() for _ in range(2))
    assert one == two
    assert '<img src="data:image/png;base64,' in one
    assert 'alt="a &quot;line&quot;"' in one
    assert plt.get_fignums() == open_before
    with pytest.raises(ValueError, match="needs alt="):
        live(draw, times=(2, 4))
    plt.close("all")


def test_colab_is_asked_to_show_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    colab = ModuleType("google.colab")
    colab.output = SimpleNamespace(enable_custom_widget_manager=lambda: calls.append("enabled"))
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    live(repeat, text="a", times=1)
    assert calls == ["enabled"]
