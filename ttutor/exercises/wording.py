"""The sentences of the judge that belong to no exercise."""

from __future__ import annotations

import builtins
import difflib
import linecache
import re
import traceback
from typing import Any

import torch
from torch import Tensor

IMPORTS = {
    "F": "import torch.nn.functional as F",
    "Tensor": "from torch import Tensor",
    "einsum": "from einops import einsum",
    "math": "import math",
    "nn": "from torch import nn",
    "np": "import numpy as np",
    "rearrange": "from einops import rearrange",
    "repeat": "from einops import repeat",
    "torch": "import torch",
}
"""Names that a file is used to, and the line that is missing where there is none."""

MEANINGS = (
    (
        "Boolean value of Tensor with more than one value",
        "`not`, `and`, `or` and `if` ask for one yes or no: for each entry of a tensor write `~`, `&`, `|`.",
    ),
    (
        "only one element tensors can be converted|only length-1 arrays",
        "`math` and `float` take one number: the tensor's own `exp()`, `sqrt()` and so on take all.",
    ),
    (
        r"(?s)got \([^)]*float.*tuple of ints|must be tuple of ints.*float|'float' object cannot be interpreted",
        "`/` gives a float even where nothing is left over: write `//` for a whole number.",
    ),
    (
        r"^sum\(\) got an unexpected keyword argument 'axis'",
        "A function of NumPy got a tensor: take the tensor's own methods, or those of `torch`.",
    ),
)
"""What errors of PyTorch mean in a beginner's code, by what they say."""


def not_started(name: str, *, is_puzzle: bool) -> str:
    """What to say to an untouched stub of this name: one without a body, or code that was to be mended."""
    if is_puzzle:
        return f"Not started: `{name}` is still as you found it. Find what is wrong, mend it, check again."
    return f"Not started: write the body of `{name}`, then check again."


def passed(n_checks: int, n_hidden: int) -> str:
    """What to say where nothing is wrong; all is well only where nothing remains hidden.

    >>> passed(3, 0)
    'Right: it passes all 3 checks.'
    >>> passed(3, 1)
    'So far so good: it passes the 3 checks that run here; 1 more runs at grading.'
    """
    checks = "its check" if n_checks == 1 else f"all {n_checks} checks"
    if not n_hidden:
        return f"Right: it passes {checks}."
    here = "check that runs" if n_checks == 1 else f"{n_checks} checks that run"
    return f"So far so good: it passes the {here} here; {n_hidden} more run{'s' * (n_hidden == 1)} at grading."


def shortcut(name: str) -> str:
    """What to say to an answer that calls what it should be."""
    return f"`{name}` is the exercise itself: build it from smaller steps, then compare with `{name}` if you like."


def error(raised: BaseException) -> str:
    """Name an exception and give the first line of what it says.

    >>> error(ValueError("too long\\nand more")), error(KeyError())
    ('ValueError: too long', 'KeyError')
    """
    said = str(raised).strip().splitlines()
    if type(raised).__name__ == "EinopsError":  # which names the pattern first and what is wrong with it last
        said = [" ".join((said[0].strip(), *(line.strip() for line in said[1:][-1:])))]
    return f"{type(raised).__name__}: {said[0]}" if said else type(raised).__name__


def line_of(answer: Any, raised: BaseException) -> str:
    """Say on which line of the student's own file an exception left it, where that can be told."""
    functions = vars(answer).values() if isinstance(answer, type) else [answer]
    files = {code.co_filename for one in functions if (code := getattr(one, "__code__", None)) is not None}
    frames = [frame for frame in traceback.extract_tb(raised.__traceback__) if frame.filename in files]
    if not frames:
        return ""
    line = linecache.getline(frames[-1].filename, frames[-1].lineno or 0).strip()
    return f" (line {frames[-1].lineno}: `{line}`)" if line else f" (line {frames[-1].lineno})"


def advice(raised: BaseException, line: str = "") -> str:
    """What a common exception means where its own words do not tell, or nothing.

    >>> advice(TypeError("unsupported operand type(s) for -: 'Tensor' and 'torch.return_types.max'"))
    ' `max` along an axis gives two things, values and their places: take `.values`, or use `amax`.'
    >>> advice(RuntimeError("The size of tensor a (7) must match ..."), line=" (line 3: `query @ key.T`)")
    ' `.T` turns all axes around; `.mT` exchanges the last two.'
    """
    said = str(raised)
    if pair := re.search(r"torch\.return_types\.(max|min)\b", said):
        name = pair[1]
        return f" `{name}` along an axis gives two things, values and their places: take `.values`, or use `a{name}`."
    if (
        isinstance(raised, RuntimeError)
        and re.search(r"\.T\b", line)
        and re.search("sizes? of tensor|shapes|mismatch|Expected size", said)
    ):
        return " `.T` turns all axes around; `.mT` exchanges the last two."
    if isinstance(raised, NameError) and (name := re.match(r"name '(\w+)' is not defined", said)):
        frames = [frame for frame, _ in traceback.walk_tb(raised.__traceback__)]  # none, where it was told by a worker
        return unknown_name(name[1], [one for frame in frames[-1:] for one in (*frame.f_locals, *frame.f_globals)])
    if isinstance(raised, TypeError) and not line and re.search(r"\(\) (takes|missing|got an unexpected) ", said):
        return " Keep the parameters of the stub, in their order."
    return next((f" {meaning}" for words, meaning in MEANINGS if re.search(words, said)), "")


def unknown_name(name: str, known: list[str]) -> str:
    """What to say of a name that nothing has: what is missing, or what was meant.

    >>> unknown_name("nn", []), unknown_name("w_q", ["w_query"]), unknown_name("exp", ["hidden"])
    (' Its import is missing: `from torch import nn`.', ' Did you mean `w_query`?', ' Did you mean `torch.exp`?')
    """
    if name in IMPORTS:
        return f" Its import is missing: `{IMPORTS[name]}`."
    if close := difflib.get_close_matches(name, known, n=1):
        return f" Did you mean `{close[0]}`?"
    if callable(vars(torch).get(name)):
        return f" Did you mean `torch.{name}`?"
    close = difflib.get_close_matches(name, dir(builtins), n=1, cutoff=0.8)
    return f" Did you mean `{close[0]}`?" if close else ""


def changed(names: tuple[str, ...], *, is_right: bool) -> str:
    """What to say where inputs are no longer as they were handed over."""
    tensors = " and ".join(f"`{name}`" for name in names)
    also = " Your result is right, but a second call with the same input would not be." if is_right else ""
    return (
        f"{tensors} changed while your code ran: a method that ends in an underscore (`sub_`), an operator such as "
        f"`-=`, or an assignment to part of a tensor edits the caller's data.{also}"
    )


def shapes(names: list[str], inputs: tuple[Any, ...]) -> str:
    """Say which shapes an answer was given.

    >>> import torch
    >>> shapes(["query", "n_heads"], (torch.zeros(2, 3), 4))
    'The input was query (2, 3), n_heads 4.'
    """
    said = [
        f"{name} {tuple(value.shape) if isinstance(value, Tensor) else value}"
        for name, value in zip(names, inputs, strict=True)
        if isinstance(value, (Tensor, bool, int, float, str))
    ]
    return f"The input was {', '.join(said)}." if said else ""


def what_is_right(cases: list[str]) -> str:
    """Say with which cases an answer is right, as a hint at where to look."""
    if not cases:
        return "No check passes yet."
    return f"It is right with {' and with '.join(cases)}: what is different here?"
