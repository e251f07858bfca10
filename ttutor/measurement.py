"""Measured values as a reader meets them: rounded, plain, and the same on every machine.

Another processor computes other last digits, so what a notebook stores is rounded here, in one place.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ttutor.names import answer_other_names


def format_number(value: Any, digits: int = 3) -> str:
    """Write one number for a reader: floats to a few significant digits, integers whole, bools as words.

    >>> [format_number(v) for v in (0.123456, 27.712, 1234567.0, 3.6e-7, 1234567, True)]
    ['0.123', '27.7', '1.23e6', '3.6e-7', '1,234,567', 'yes']
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}" if abs(int(value)) >= 10_000 else str(int(value))
    number = _round_float(float(value), digits)
    if not math.isfinite(number):
        return "not a number" if math.isnan(number) else ("infinity" if number > 0 else "-infinity")
    if number == 0 or 1e-4 <= abs(number) < 1e6:
        return f"{number:,.{digits}g}" if abs(number) < 10**digits else f"{number:,.0f}"
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"


def magnitude(value: Any) -> float:
    """The absolute value of one number: how far an error is from zero, whichever way it points.

    >>> magnitude(np.array([-0.5]))
    0.5
    """
    array = np.asarray(value.detach().cpu().tolist() if hasattr(value, "detach") else value)
    if array.size != 1:
        raise ValueError(
            f"expected one number, got {array.size} of shape {array.shape}; reduce them first, "
            "for instance with .abs().max()"
        )
    return abs(float(array.item()))


def rounded(value: Any, digits: int = 3) -> Any:
    """Turn anything that was measured into plain JSON values, floats rounded to significant digits.

    >>> rounded({"gap": np.array([0.12345, 2.0]), "n": 7})
    {'gap': [0.123, 2.0], 'n': 7}
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu().tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(label): rounded(item, digits) for label, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):
        number = _round_float(value, digits)
        return number if math.isfinite(number) else format_number(number)
    if isinstance(value, (str, bool, int)):
        return value
    raise TypeError(f"cannot show a measured {type(value).__name__}; give numbers, text, or lists and mappings of them")


def lines(measured: Any, label: str = "") -> list[tuple[str, str]]:
    """Flatten a rounded measurement to one (label, text) pair a line.

    >>> lines({"loss": {"with": 0.5, "without": [1.5, 2]}})
    [('loss, with', '0.5'), ('loss, without', '[1.5, 2]')]
    """
    if isinstance(measured, dict):
        return [line for name, item in measured.items() for line in lines(item, f"{label}, {name}" if label else name)]
    return [(label, _text(measured))] if measured != [] else []


def count_values(measured: Any) -> int:
    """How many single values a measurement holds."""
    if isinstance(measured, (dict, list)):
        return sum(count_values(item) for item in (measured.values() if isinstance(measured, dict) else measured))
    return 1


def one_line(measured: Any) -> str:
    """A rounded measurement as one line of text.

    >>> one_line({"gap": 0.5, "n": 7})
    'gap: 0.5; n: 7'
    """
    return "; ".join(f"{label}: {value}" if label else value for label, value in lines(measured))


def _text(measured: Any) -> str:
    """One value in words: lists in brackets, so that a matrix reads as its rows."""
    if isinstance(measured, dict):
        return "{" + ", ".join(f"{label}: {_text(item)}" for label, item in measured.items()) + "}"
    if isinstance(measured, list):
        return "[" + ", ".join(_text(item) for item in measured) + "]"
    return measured if isinstance(measured, str) else format_number(measured, 15)


def _round_float(number: float, digits: int) -> float:
    """Round to significant digits; adding 0.0 turns minus zero into zero."""
    return float(f"{number:.{digits}g}") + 0.0 if math.isfinite(number) else number


answer_other_names(__name__)
