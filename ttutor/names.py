"""What PyTorch and transformers call otherwise, and where each name of ours stands.

Nothing here is an alias. A name of theirs raises the error that it would raise anyway, and the message says what it is
here; the table is `OURS`, which the book prints on its page "Coming from PyTorch".
"""

import dis
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial, wraps
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ttutor.other_names import CALLS, GENERATION, LAYERS, MODELS, PARTS, ROOMS, SIZES, TRAINING

__all__ = [
    "OURS",
    "Answering",
    "AnsweringConfig",
    "AnsweringLayer",
    "AnsweringModel",
    "AnsweringTokenizer",
    "answer",
    "answer_other_names",
    "answers_other_names",
    "front_door",
    "hand_out",
    "refuse_module",
]

SHOWN = 12
"""As many names of a room as a message lists."""

Function = TypeVar("Function", bound=Callable[..., Any])

OURS: Mapping[str, str] = {
    **ROOMS,
    **LAYERS,
    **SIZES,
    **CALLS,
    **GENERATION,
    **TRAINING,
    **MODELS,
    **PARTS,
}
"""A name of theirs, and what it is here."""


def answer(place: str, name: str) -> str:
    """One sentence on a name of theirs.

    >>> answer("MultiHeadAttention", "num_heads")
    'MultiHeadAttention has no `num_heads`: here it is `n_heads`'
    """
    return f"{place} has no `{name}`: here it is {OURS[_theirs(name) or name]}"


def _unknown(function: Callable[..., Any], keywords: Mapping[str, Any], place: str) -> str:
    """What to say of keywords that a function does not have and the table knows; nothing if there are none."""
    foreign = [name for name in keywords if name in OURS]
    known = inspect.signature(function).parameters if foreign else {}
    sentences = [answer(place, name) for name in foreign if name not in known]
    return "; ".join([*sentences[:1], *(sentence.removeprefix(f"{place} has ") for sentence in sentences[1:])])


def _taken(function: Callable[..., Any], keywords: Mapping[str, Any], place: str) -> str:
    """What to say of a keyword that neither we nor the table have: what the function takes."""
    known = inspect.signature(function).parameters
    strange = [name for name in keywords if name not in known]
    if not strange or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
        return ""
    takes = ", ".join(name for name in known if name != "self")
    return f"{place}() got an unexpected keyword argument {strange[0]!r}; it takes {takes}"


def answers_other_names(function: Function) -> Function:
    """Let a function answer keywords of theirs; it acts only when the call has failed.

    >>> @answers_other_names
    ... def fit(model, *, learning_rate=1e-3): ...
    >>> fit(None, lr=0.1)
    Traceback (most recent call last):
    ...
    TypeError: fit has no `lr`: here it is `learning_rate`
    """

    @wraps(function)
    def answering(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError:
            name = function.__name__
            if message := _unknown(function, keywords, name) or _taken(function, keywords, name):
                raise TypeError(message) from None
            raise

    return answering  # type: ignore[return-value]


class _Theirs:
    """An attribute of theirs: to ask for it raises the AttributeError that says what it is here."""

    def __init__(self, here: str = "") -> None:
        self.here = here

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        other = f"{owner.__name__} has no `{self.name}`: here it is {self.here}"
        raise AttributeError(other if self.here else answer(owner.__name__, self.name))


def _made(cls: type[Any], *args: Any, **keywords: Any) -> Any:
    """An object, before its constructor runs, unless that would fail at a keyword of theirs."""
    name = cls.__name__
    if keywords and (message := _unknown(cls.__init__, keywords, name) or _taken(cls.__init__, keywords, name)):
        raise TypeError(message)
    return object.__new__(cls)


def _made_of_config(cls: type[Any], *args: Any, **keywords: Any) -> Any:
    """The same for a model whose sizes stand in a config."""
    known = inspect.signature(cls.__init__).parameters
    if "config" in known and (sizes := [name for name in keywords if name not in known]):
        config = getattr(known["config"].annotation, "__name__", known["config"].annotation)
        theirs = "".join(f"; its `{name}` is here {OURS[name]}" for name in sizes if name in OURS)
        raise TypeError(f"{cls.__name__} takes its sizes in a config: {cls.__name__}({config}(...)){theirs}")
    return _made(cls, *args, **keywords)


def _unshown(constructor: Callable) -> partial:
    """A constructor whose signature no documentation shows: that of the class itself stands there.

    Signatures of partial functions in a class are not looked at by Python, and Sphinx passes over the one of this name.
    """
    made: Any = partial(constructor)
    made.__module__, made.__qualname__ = "typing", "Generic.__new__"
    return made


class Answering:
    """A class that answers keywords of theirs, in its constructor and, where it can be called, in a call.

    Type checkers see an empty class, and signatures are those of the class itself.
    """

    if not TYPE_CHECKING:
        __new__ = _unshown(_made)

        def __dir__(self):  # what only raises is offered by no completion
            theirs = {name for one in type(self).__mro__ for name in vars(one) if isinstance(vars(one)[name], _Theirs)}
            return [name for name in super().__dir__() if name not in theirs]


class AnsweringConfig(Answering):
    """The same for a config, whose fields are asked for, too."""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(answer(type(self).__name__, name) if name in SIZES else message)


class AnsweringLayer(Answering):
    """The same for a module of torch, whose parts are asked for, too."""

    if not TYPE_CHECKING:
        from_pretrained = _Theirs()
        _answered = frozenset({*PARTS, *LAYERS, *SIZES})

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)  # first: a subclass may have a part of this name
            except AttributeError:
                if name in self._answered:
                    raise AttributeError(answer(type(self).__name__, name)) from None
                raise

        def __call__(self, *args, **keywords):
            try:
                return super().__call__(*args, **keywords)
            except TypeError:
                name = type(self).__name__
                if message := _unknown(self.forward, keywords, name) or _taken(self.forward, keywords, name):
                    raise TypeError(message) from None
                raise


class AnsweringModel(AnsweringLayer):
    """The same for a whole model, whose methods are asked for, too, and whose sizes stand in a config."""

    if not TYPE_CHECKING:
        __new__ = _unshown(_made_of_config)
        _answered = AnsweringLayer._answered | frozenset({*MODELS, "generate", "configure_optimizers"})


class AnsweringTokenizer(Answering):
    """The same for a tokenizer, whose methods are asked for, too."""

    if not TYPE_CHECKING:
        from_file, train_from_iterator, batch_decode, batch_encode_plus = _Theirs(), _Theirs(), _Theirs(), _Theirs()
        from_pretrained = _Theirs(
            "`SubwordTokenizer.load(file)` for one of ours, and `ttutor.pretrained.load` for a model with its tokenizer"
        )

        def __getattr__(self, name):
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            message = answer(type(self).__name__, name) if name in OURS else message
            raise AttributeError(message, name=name, obj=self)  # with which Python says what is spelt alike

        def __call__(self, *args, **keywords):
            raise TypeError(f"{type(self).__name__} cannot be called: here it is {OURS['__call__']}")


def answer_other_names(room: str) -> None:
    """Let a room that is one module, or imports all its names, answer those that it does not have."""
    vars(sys.modules[room])["__getattr__"] = lambda name: hand_out(room, name, {})


def hand_out(room: str, name: str, homes: Mapping[str, str]) -> Any:
    """Load a name of a room when it is first asked for, from the module of the room that `homes` gives.

    Raises:
        ImportError: a name of theirs, or of another room of ours; or `from room import name` asks, which would show
            nothing of an AttributeError.
        AttributeError: there is no such name.
    """
    if name in homes:
        return getattr(import_module(f"{room}.{homes[name]}"), name)
    if name.startswith("_"):
        raise AttributeError(f"module {room!r} has no attribute {name!r}")
    if _is_module(room, name):
        raise AttributeError(f"{room}.{name} is not loaded yet: import {room}.{name}")
    _refuse(room, name)
    names = list(homes) or getattr(sys.modules[room], "__all__", [])
    near = get_close_matches(name, names, n=SHOWN, cutoff=0.0)
    has = f"; it has {'' if len(names) <= SHOWN else 'among others '}{', '.join(sorted(near))}" if near else ""
    if _is_import():
        raise ImportError(f"cannot import name {name!r} from {room!r}{has}", name=room)
    raise AttributeError(f"module {room!r} has no attribute {name!r}{has}")


def front_door(
    room: str, homes: Mapping[str, str], *loaded: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a room whose names are loaded when they are first asked for.

    Args:
        room: its ``__name__``.
        homes: each name, and the module of the room in which it stands.
        *loaded: names that the room has from the beginning.
    """
    names = sorted([*loaded, *homes])
    return partial(hand_out, room, homes=homes), names.copy, names


def _is_import() -> bool:
    """Whether `from room import name` asks for a name, not `hasattr` or a dot."""
    frame = sys._getframe()
    while frame.f_back and (frame.f_code.co_filename == __file__ or frame.f_code.co_name == "__getattr__"):
        frame = frame.f_back
    is_package = frame.f_code.co_name == "_handle_fromlist"  # of Python's importlib
    return is_package or frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def _is_module(room: str, name: str) -> bool:
    """Whether a room has a module of this name, which Python loads when it hears that there is no such attribute."""
    path = vars(sys.modules[room]).get("__path__")
    return path is not None and PathFinder.find_spec(f"{room}.{name}", path) is not None


def _theirs(name: str) -> str | None:
    """The name in the table, whatever its capitals and underscores: `self_attention` is `SelfAttention`."""
    return name if name in OURS else {_plain(one): one for one in OURS}.get(_plain(name))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _refuse(room: str, name: str) -> None:
    rooms = _rooms()
    if name in rooms:
        raise ImportError(f"{name} stands in another room: from ttutor.{rooms[name]} import {name}", name=room)
    if _theirs(name):
        raise ImportError(answer(room, name), name=room)
    here = [one for one, place in rooms.items() if f"ttutor.{place}" == room]
    if close := get_close_matches(name, here, n=1, cutoff=0.65) or get_close_matches(name, rooms, n=1, cutoff=0.75):
        near = close[0]
        message = f"{room} has no `{name}`; did you mean `{near}`? from ttutor.{rooms[near]} import {near}"
        raise ImportError(message, name=room) if _is_import() else AttributeError(message)


def refuse_module(module: str) -> None:
    """Say of a module that is not there, such as ``ttutor.utils``, where its content stands; nothing if nobody knows.

    Raises:
        ModuleNotFoundError: a module of theirs, or nearly a name of ours.
    """
    name = module.removeprefix("ttutor.")
    if _theirs(name):
        raise ModuleNotFoundError(answer("ttutor", name), name=module)
    rooms = _rooms()
    if name in rooms.values():
        return  # it is there, and whoever asks looks in the wrong folder, as pytest does before the right one
    if close := get_close_matches(name, set(rooms.values()), n=1, cutoff=0.8):
        raise ModuleNotFoundError(f"there is no {module}; did you mean ttutor.{close[0]}?", name=module)
    if ours := {_plain(one): one for one in rooms}.get(_plain(name)):
        raise ModuleNotFoundError(
            f"{ours} stands in another room: from ttutor.{rooms[ours]} import {ours}", name=module
        )


def _rooms() -> dict[str, str]:
    """Every name that a room hands out, and the room."""
    here = Path(__file__).parent
    found: dict[str, str] = {}
    for path in sorted(here.glob("*/__init__.py")) + sorted(here.glob("*.py")):
        place = path.parent.name if path.stem == "__init__" else path.stem
        if place == "other_names":
            continue
        text = path.read_text(encoding="utf-8")
        listed = re.findall(r"^__all__ = \[(.*)\]", text, re.M)
        names = re.findall(r'^    "(\w+)"', text, re.M) + [
            one for line in listed for one in re.findall(r'"(\w+)"', line)
        ]
        for one in names:
            found.setdefault(one, place)
    return found
