"""Forbidden functions are made useless while an answer runs: below Python, whatever name they are called by.

Every operator of PyTorch goes through its dispatcher, whoever calls it: a method, a table, a subclass, TorchScript,
`vmap`, another operator. There the kernels of a forbidden function and of its relatives are overridden by one that
raises, those that compose it from other operators too. Functions and classes that are written in Python lose their
code, so that every name they have leads to the same error.
"""

from __future__ import annotations

import re
import sys
import types
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

__all__ = ["Shortcut", "disable", "kernels_of", "relatives_of", "without"]

LIBRARIES = ("torch", "ttutor", "numpy", "scipy", "sklearn", "transformers", "jax")
"""Only their functions are forbidden: a student may give a helper any name."""
OWN = "ttutor.exercises"
EVERYWHERE = ("CPU", "FuncTorchBatched", "FuncTorchVmapMode")
"""Where kernels are overridden whether or not there are some: `vmap` takes some operators apart by itself."""
ELSEWHERE = (
    *("MkldnnCPU", "SparseCPU", "SparseCsrCPU", "QuantizedCPU", "NestedTensorCPU"),
    *("CompositeImplicitAutograd", "FuncTorchDynamicLayerFrontMode"),
)
WRITTEN_OUT = ("torch._decomp", "torch._refs", "torch.optim")
"""Where PyTorch has its operators and its optimisers in Python: whatever has a family's name there belongs to it."""
ATTENTION = "multi_head_attention_forward MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer"
READY_MADE = "flex_attention scaled_dot_product_attention"
BACKWARD = (
    "grad backward _engine_run_backward vjp jvp vhp hvp hvp_fwdrev jacobian jacrev jacfwd hessian grad_and_value "
    "make_dual linearize"
)
FAMILIES: dict[str, tuple[str, str]] = {
    "softmax": (
        "softmax|scaled_dot_product|_attention|transformer_encoder",
        f"softmax log_softmax softmin gumbel_softmax Softmax LogSoftmax Softmin Softmax2d {ATTENTION} {READY_MADE}",
    ),
    "layernorm": (
        "(layer|group|batch|instance|rms)_?norm|::_normalize$",
        "LayerNorm GroupNorm RMSNorm layer_norm rms_norm",
    ),
    "scaleddotproduct": ("scaled_dot_product|_attention|transformer_encoder", f"{ATTENTION} {READY_MADE}"),
    "multiheadattention": ("multi_head_attention|transformer_encoder", ATTENTION),
    "dropout": (
        "dropout",
        "Dropout dropout dropout_ alpha_dropout feature_alpha_dropout Dropout1d Dropout2d Dropout3d",
    ),
    "rnn": ("rnn", "RNN RNNCell RNNBase"),
    "lstm": ("lstm", "LSTM LSTMCell"),
    "crossentropy": ("nll_loss|cross_entropy", "cross_entropy nll_loss CrossEntropyLoss NLLLoss gaussian_nll_loss"),
    "adam": (
        "_(fused|single_tensor|multi_tensor)_(n|r)?adam",
        "Adam AdamW Adamax NAdam RAdam adam adamw adamax nadam radam Optimizer",
    ),
    "sgd": ("_(fused|single_tensor|multi_tensor)_sgd", "SGD sgd"),
    "silu": ("silu", "silu SiLU"),
    "glu": ("::_?glu", "glu GLU"),
    "gelu": ("gelu", "gelu GELU"),
    "pixelunshuffle": ("pixel_unshuffle", "pixel_unshuffle PixelUnshuffle"),
    "backward": ("dual|_fw_primal", BACKWARD),
}
"""Of a forbidden function: which kernels compute it or nearly so, and which functions and classes in Python do.

The key is a part of its name without underscores, in small letters."""


class Shortcut(RuntimeError):
    """A forbidden function was called; the message is its name."""


def kernels_of(forbids: Sequence[str]) -> dict[str, str]:
    """Return the operators that forbidden functions rest on, each with the name under which it is forbidden.

    >>> kernels_of(["gelu"])["aten::gelu_backward"]
    'gelu'
    """
    return dict(_kernels_of(tuple(forbids)))


@cache
def _kernels_of(forbids: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in reversed(forbids):
        found |= dict.fromkeys(filter(_pattern(name).search, torch._C._dispatch_get_all_op_names()), name)
    return found


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """What the names of operators have in common on which a forbidden function rests."""
    patterns = [pattern for pattern, _ in _families(name)]
    return re.compile("|".join(patterns) if patterns else rf"::_?{re.escape(name)}_?(\.|$)")


def relatives_of(forbids: Sequence[str]) -> dict[str, str]:
    """Return the names of functions and classes that are forbidden, each with the name that stands for it."""
    found: dict[str, str] = {}
    for name in reversed(forbids):
        found |= dict.fromkeys((word for _, words in _families(name) for word in words.split()), name)
    return found | {name: name for name in forbids}


def _families(name: str) -> list[tuple[str, str]]:
    plain = name.lower().replace("_", "")
    return [family for part, family in FAMILIES.items() if part in plain or (part == "backward" and plain == "grad")]


@contextmanager
def without(forbids: Sequence[str]) -> Iterator[None]:
    """Take forbidden functions out of use for a while: to call one raises `Shortcut`.

    >>> with without(["softmax"]):
    ...     getattr(torch, "soft" + "max")(torch.zeros(3), 0)
    Traceback (most recent call last):
    ...
    ttutor.exercises.forbidden.Shortcut: softmax
    """
    kept: list[tuple[types.FunctionType, types.CodeType]] = []
    overrides: list[Any] = []
    try:
        if forbids:
            _empty_functions(forbids, kept)
            overrides += _override_kernels(forbids)
        yield
    finally:
        overrides.clear()  # a library that nobody holds gives its kernels back
        for function, code in kept:
            function.__code__ = code


def disable(forbids: Sequence[str]) -> None:
    """Take forbidden functions out of use for good, as in a process that runs one student's answer.

    What holds the overrides is then held by nothing that Python can find, and their code is kept nowhere. One way stays
    open: a tensor's `grad_fn` can be called by itself, and most kernels that it then runs (products, sums, powers) are
    those of every forward pass; the word is listed by `ttutor.grading.vocabulary`.
    """
    import ctypes
    import gc

    if forbids:
        _empty_functions(forbids, [])
        for override in _override_kernels(forbids):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(override))
    if "_engine_run_backward" in relatives_of(forbids):  # a method in C, below which there is no dispatcher
        engine: Any = type(torch.autograd.Variable._execution_engine)
        kind = next(one for one in engine.__mro__ if "run_backward" in vars(one))
        (methods,) = gc.get_referents(vars(kind))
        methods["run_backward"] = _raiser("backward")
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
        for place, name in ((torch._C.CompilationUnit, "__init__"), (torch._C, "_jit_script_compile")):
            setattr(place, name, _raiser("backward"))  # TorchScript has a way back of its own


def _override_kernels(forbids: Sequence[str]) -> list[Any]:
    libraries: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that kernels are overridden is what is wanted
        for operator, name in kernels_of(forbids).items():
            space, _, rest = operator.partition("::")
            if space not in libraries:
                libraries[space] = torch._C._dispatch_library("IMPL", space, "", "forbidden.py", 0)
            refuse = _raiser(name)
            there = [key for key in ELSEWHERE if torch._C._dispatch_has_kernel_for_dispatch_key(operator, key)]
            for key in (*EVERYWHERE, *there):
                libraries[space].impl(rest, key, refuse)
    return list(libraries.values())


def _raiser(name: str) -> Any:
    def refuse(*args: Any, **keywords: Any) -> None:
        raise Shortcut(name)

    return refuse


def _empty_functions(forbids: Sequence[str], kept: list[tuple[types.FunctionType, types.CodeType]]) -> None:
    """Take the code out of functions in Python, and out of the methods of classes; keep it where it is wanted back."""
    for function, refusing in _python_functions(tuple(forbids), len(sys.modules)):
        if Shortcut not in function.__code__.co_consts:
            kept.append((function, function.__code__))
            function.__code__ = refusing


@cache
def _python_functions(forbids: tuple[str, ...], n_modules: int) -> list[tuple[types.FunctionType, types.CodeType]]:
    """The functions in Python that are forbidden, each with code that raises; looked for when modules are added."""
    wanted, found = relatives_of(forbids), []
    for name, module in [(name, module) for name, module in sys.modules.items() if _counts(name)]:
        here = _written_out(forbids, vars(module)) | wanted if name.startswith(WRITTEN_OUT) else wanted
        for word in here.keys() & vars(module).keys():
            for function in _functions(vars(module)[word]):
                if _counts(function.__module__ or ""):
                    found.append((function, _refusing(function.__code__, here[word])))
    return found


def _written_out(forbids: tuple[str, ...], names: Iterable[str]) -> dict[str, str]:
    """Those of a module's names that belong to a forbidden function, as an operator's name would."""
    wanted = [(forbidden, _pattern(forbidden)) for forbidden in reversed(forbids)]
    return {name: forbidden for forbidden, pattern in wanted for name in names if pattern.search(f"::{name}")}


def _counts(module: str) -> bool:
    return module.partition(".")[0] in LIBRARIES and not module.startswith(OWN)


def _functions(value: Any) -> list[types.FunctionType]:
    """A function with what it wraps, or the methods of a class."""
    if isinstance(value, type):
        return [one for one in vars(value).values() if isinstance(one, types.FunctionType)]
    found = []
    while isinstance(value, types.FunctionType) and value not in found:
        found.append(value)
        value = getattr(value, "__wrapped__", None)
    return found


def _refusing(code: types.CodeType, name: str) -> types.CodeType:
    """Return code with the free variables of another, that takes anything and raises `Shortcut`."""
    free = code.co_freevars
    holders = "".join(f"    {one} = None\n" for one in free)
    source = f"def outer():\n{holders}    def refuse(*args, **keywords):\n        {', '.join(free) or 'None'}\n"
    made: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SyntaxWarning: a text is not called, but what takes its place is
        exec(compile(f"{source}        raise 'Shortcut'({name!r})\n    return refuse\n", "<forbidden>", "exec"), made)
    found: types.CodeType = made["outer"]().__code__
    constants = tuple(Shortcut if one == "Shortcut" else one for one in found.co_consts)
    return found.replace(co_consts=constants, co_name=code.co_name)
