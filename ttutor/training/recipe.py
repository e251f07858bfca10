"""A training recipe: every number that decides how a training goes, in one frozen, readable object."""

import dataclasses
import json
import math
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from inspect import cleandoc
from pathlib import Path
from typing import get_args

from ttutor.errors import FileError, SettingError
from ttutor.names import OURS, answer
from ttutor.schemas import parse_toml
from ttutor.tokenization.subword import LARGEST_VOCABULARY, SMALLEST_VOCABULARY
from ttutor.training.schedule import SCHEDULES

PRECISIONS = ("auto", "fp32", "bf16")
OPTIMIZERS = ("adamw", "muon")
LENGTHS = ("steps", "epochs", "minutes")
LONGEST = 10**9
"""No training is longer, whatever it counts in."""
DEEPEST = 1000
"""As many layers as the deepest Transformers that were trained: making them takes minutes before the first step."""


def _explained(text: str, **default):
    return field(metadata={"explanation": text}, **default)


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe:
    """All settings of a training; exactly one of steps, epochs and minutes says how long it is.

    A recipe that counts steps or epochs gives the same weights, bit for bit, each time it runs on the same machine with
    the same number of threads; one that counts minutes ends where the clock says.

    >>> TrainingRecipe.preset("multi30k-tiny").d_model
    128
    >>> TrainingRecipe.preset("embedded").replace(dropout=1.5)
    Traceback (most recent call last):
    ...
    ttutor.errors.SettingError: dropout must be at least 0 and below 1, got 1.5
    """

    name: str = _explained("what to call it")
    corpus: str = _explained('the text: "embedded", a data set\'s name, or "files"', default="files")
    languages: str | None = _explained("of a data set: from and to, like en-de", default=None)

    d_model: int = _explained("width of the model", default=128)
    n_heads: int = _explained("attention heads", default=4)
    n_layers: int = _explained("layers of the encoder, and as many of the decoder", default=4)
    d_ff: int = _explained("inner width of the feed-forward networks", default=256)
    dropout: float = _explained("share of activations set to zero while training", default=0.1)
    norm: str = _explained('LayerNorm before ("pre") or after ("post") each sublayer', default="pre")

    vocab_size: int = _explained("subword tokens, shared by both languages (at most)", default=10_000)
    max_tokens: int = _explained("training pairs with more tokens on a side are left out", default=128)

    tokens_per_batch: int = _explained("computed tokens a batch, padding counted, on either side", default=2048)
    batches_per_step: int = _explained("batches whose gradients make one step; computed at the same time", default=2)
    optimizer: str = _explained('"adamw", or "muon" for Muon on the matrices of the layers', default="adamw")
    learning_rate: float = _explained("its peak, at the end of the warm-up", default=5e-3)
    warmup: int | None = _explained(
        "steps until the peak; if not given, a tenth of the training, at most 1,000", default=None
    )
    schedule: str = _explained(
        'after it "inverse-sqrt", a decline as 1 / sqrt(step), or "trapezoid", a plateau', default="inverse-sqrt"
    )
    decay_from: float = _explained("share of the training after which the rate goes linearly to zero", default=0.5)
    weight_decay: float = _explained("pull of the weights towards zero", default=0.0)
    clip_norm: float = _explained("largest norm of the gradient; longer ones are shortened", default=1.0)
    label_smoothing: float = _explained("probability spread over all tokens", default=0.1)
    averaging: float = _explained("decay of the moving average of the weights (0: none)", default=0.997)

    steps: int | None = _explained("length of the training in steps", default=None)
    epochs: float | None = _explained("or in passes over the text", default=None)
    minutes: float | None = _explained("or in minutes", default=None)

    patience: int = _explained(
        "validations without a better one that end the training, with the best weights (0: never)", default=0
    )
    validate_every: int = _explained("steps from one validation loss to the next", default=200)
    checkpoint_every: int = _explained("steps from one checkpoint to the next", default=200)
    seed: int = _explained("of the initial weights, dropout and the order of the data", default=0)
    precision: str = _explained(
        'of matrix products: "fp32", "bf16", or "auto" (bf16 where the CPU has it)', default="auto"
    )

    def __post_init__(self) -> None:
        self._require("name", isinstance(self.name, str), "text")
        self._require("corpus", isinstance(self.corpus, str) and self.corpus != "", 'a name, or "files"')
        self._require("languages", self.languages is None or _is_pair(self.languages), 'two languages, like "en-de"')
        for one in fields(self):
            if float in (one.type, *get_args(one.type)) and getattr(self, one.name) is not None:
                self._require(one.name, self._is_finite(one.name), "a finite number")
        sizes = ("d_model", "n_heads", "n_layers", "d_ff", "tokens_per_batch", "max_tokens")
        counts = (
            "batches_per_step",
            "validate_every",
            "checkpoint_every",
            *(["warmup"] if self.warmup is not None else []),
        )
        for name in sizes + counts:
            self._require(name, self._is_int(name) and getattr(self, name) >= 1, "a whole number, at least 1")
        self._require("n_layers", self.n_layers <= DEEPEST, f"at most {DEEPEST:,}")
        self._require("patience", self._is_int("patience") and self.patience >= 0, "a whole number, at least 0")
        for name in ("dropout", "label_smoothing", "averaging"):
            self._require(name, 0 <= getattr(self, name) < 1, "at least 0 and below 1")
        for name in ("learning_rate", "clip_norm"):
            self._require(name, getattr(self, name) > 0, "above 0")
        self._require("decay_from", 0 <= self.decay_from <= 1, "between 0 and 1")
        self._require("weight_decay", self.weight_decay >= 0, "at least 0")
        self._require("seed", self._is_int("seed") and 0 <= self.seed < 2**63, "a whole number from 0 to 2**63 - 1")
        self._require("norm", self.norm in ("pre", "post"), 'either "pre" or "post"')
        self._require("schedule", self.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}")
        self._require("optimizer", self.optimizer in OPTIMIZERS, f"one of {', '.join(OPTIMIZERS)}")
        self._require("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}")
        room = f"a whole number, at least {SMALLEST_VOCABULARY} (4 special tokens and 256 bytes)"
        self._require("vocab_size", self._is_int("vocab_size") and self.vocab_size >= SMALLEST_VOCABULARY, room)
        self._require("vocab_size", self.vocab_size <= LARGEST_VOCABULARY, f"at most {LARGEST_VOCABULARY:,}")
        if self.d_model % self.n_heads:
            raise SettingError(
                f"d_model must be a multiple of n_heads, got d_model={self.d_model}, n_heads={self.n_heads}"
            )
        if self.d_model % 2:
            raise SettingError(f"d_model must be even (sines and cosines come in pairs), got {self.d_model}")
        if self.tokens_per_batch < self.max_tokens + 1:
            raise SettingError(
                f"a batch of tokens_per_batch={self.tokens_per_batch} cannot hold one sentence of "
                f"max_tokens={self.max_tokens} and its end mark"
            )
        self._check_length()

    def _is_int(self, name: str) -> bool:
        return isinstance(getattr(self, name), int) and not isinstance(getattr(self, name), bool)

    def _is_finite(self, name: str) -> bool:
        value = getattr(self, name)
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)

    def _require(self, name: str, condition: bool, expected: str) -> None:
        if not condition:
            raise SettingError(f"{name} must be {expected}, got {getattr(self, name)!r}")

    def _check_length(self) -> None:
        given = {name: getattr(self, name) for name in LENGTHS if getattr(self, name) is not None}
        if len(given) != 1:
            found = ", ".join(f"{name}={value}" for name, value in given.items()) or "none"
            raise SettingError(f"exactly one of {', '.join(LENGTHS)} must say how long to train, got {found}")
        ((name, value),) = given.items()
        self._require(name, value > 0 and (name != "steps" or self._is_int("steps")), "a positive number")
        self._require(name, value <= LONGEST, f"at most {LONGEST:,}")

    def replace(self, **changes) -> "TrainingRecipe":
        """The same recipe with some values changed; giving one of steps, epochs and minutes clears the others."""
        unknown = sorted(set(changes) - {one.name for one in fields(self)})
        if unknown and set(unknown) <= set(OURS):
            raise SettingError("; ".join(answer("a recipe", name) for name in unknown))
        if unknown:
            known = ", ".join(one.name for one in fields(self))
            meant = ", ".join(near for name in unknown for near in get_close_matches(name, known.split(", "), 1))
            asked = f"did you mean {meant}? " if meant else ""
            raise SettingError(f"a recipe has no setting {', '.join(unknown)}; {asked}it has {known}")
        if any(name in changes for name in LENGTHS):
            changes = dict.fromkeys(LENGTHS) | changes
        return dataclasses.replace(self, **changes)

    @classmethod
    def preset(cls, name: str) -> "TrainingRecipe":
        """A recipe by its name.

        Each is a file to read, with the reasons for its numbers, in the folder `recipes` beside this module:
        `embedded` learns the embedded English-French grammar in less than a minute on two CPU cores, `multi30k-tiny`
        is the Transformer-Tiny of Wu et al. (2021) on Multi30k.
        """
        if name not in PRESETS:
            near = " or ".join(get_close_matches(str(name), PRESETS))
            asked = f"did you mean {near}? " if near else ""
            raise SettingError(f"there is no preset {name!r}; {asked}there are {', '.join(PRESETS)}")
        return cls.load(PRESETS[name])

    def to_toml(self) -> str:
        """The recipe as a file that a person can read: one setting a line, with what it means."""
        given = [one for one in fields(self) if getattr(self, one.name) is not None]
        lines = [f"{one.name} = {json.dumps(getattr(self, one.name), ensure_ascii=False)}" for one in given]
        width = max(map(len, lines))
        meanings = [one.metadata["explanation"] for one in given]
        return "".join(f"{line:<{width}}  # {meaning}\n" for line, meaning in zip(lines, meanings, strict=True))

    @classmethod
    def load(cls, path: str | Path) -> "TrainingRecipe":
        """Read a recipe from a TOML file; what is left out keeps its default."""
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SettingError(f"the recipe {path} cannot be read: {error.strerror or error}") from None
        try:
            values = parse_toml(data, f"the recipe {path}", "mend it, or begin with a preset")
        except FileError as error:
            raise SettingError(str(error)) from None
        unknown = sorted(set(values) - {one.name for one in fields(cls)})
        if unknown:
            raise SettingError(f"the recipe {path} has unknown settings: {', '.join(unknown)}")
        return cls(**{"name": path.stem, **values})


_ARGS = "".join(f"    {one.name}: {one.metadata['explanation']}.\n" for one in fields(TrainingRecipe))
TrainingRecipe.__doc__ = f"{cleandoc(str(TrainingRecipe.__doc__))}\n\nArgs:\n{_ARGS}"


def _is_pair(languages: object) -> bool:
    """Whether it is text like "en-de": two different names, and nothing that could lead to another folder."""
    names = languages.split("-") if isinstance(languages, str) else []
    return len(set(names)) == 2 == len(names) and all(name.isascii() and name.isalpha() for name in names)


PRESETS: dict[str, Path] = {path.stem: path for path in sorted(Path(__file__).with_name("recipes").glob("*.toml"))}
