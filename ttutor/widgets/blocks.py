"""The Transformer's one picture: the whole, an encoder layer, a decoder layer, and the inside of an attention."""

import html
from typing import Any

import traitlets as t

from ttutor.transformer import Transformer, TransformerConfig
from ttutor.widgets.base import Explorer
from ttutor.widgets.block_measure import axis_sizes, build, count_parameters, measure_shapes
from ttutor.widgets.block_parts import LEVELS, PARTS, STEPS
from ttutor.widgets.block_words import kinds

NORMS = ("post", "pre")
MAX_BATCH = 1024
MAX_LENGTH = 64
"""Tokens of a sentence: the picture draws a cell for each query and key."""
_LIVE_AXES = {"batch": "batch", "source": "source_length", "target": "target_length"}


class BlocksExplorer(Explorer):
    """The architecture of 2017 as one picture to walk through: point at a part for its role, shape and parameters.

    The picture has four levels: the full architecture, an encoder layer, a decoder layer, and the inside of any of the
    three attentions. A switch moves the norms (post-norm, pre-norm), and a player follows a forward pass in eight
    steps. All shapes are measured on a model by hooks, and all parameters counted on it. In Jupyter the traits follow
    what the reader does, and setting one from Python redraws the figure.

    Args:
        config: the model's sizes; the base model of Vaswani et al. (2017) when left out. The model is built on the
            device ``meta``, which takes no memory. For a model that is there, see `of`.
        batch: how many sentences.
        source_length: tokens of the sentence that is read.
        target_length: tokens of the sentence that is written.
        level: ``"full"``, ``"encoder"``, ``"decoder"``, or an attention to look into: ``"encoder.self_attention"``,
            ``"decoder.self_attention"`` or ``"decoder.cross_attention"``.
        numbers: whether the picture shows shapes as numbers or as names of axes.
        norm: ``"post"`` or ``"pre"``; the config's when left out.

    Raises:
        TypeError: the config is none of a `Transformer`.
        ValueError: a size is not positive or longer than the model's ``max_len``.

    >>> explorer = BlocksExplorer(batch=2, source_length=7, target_length=6)
    >>> explorer.shape("decoder.cross_attention.weights")  # batch heads target source
    (2, 8, 6, 7)
    >>> explorer.parameters("encoder.self_attention"), explorer.parameters("model")
    (1050624, 63082496)
    """

    _module = "blocks"
    _title = "The Transformer, part by part"
    _state_keys = (
        "facts", "batch", "source_length", "target_length", "level", "norm", "numbers", "selected", "step",
    )  # fmt: skip

    facts = t.Dict().tag(sync=True)
    batch = t.Int(2).tag(sync=True)
    source_length = t.Int(7).tag(sync=True)
    target_length = t.Int(6).tag(sync=True)
    level = t.Enum(tuple(LEVELS), "full").tag(sync=True)
    norm = t.Enum(NORMS, "post").tag(sync=True)
    numbers = t.Bool(True).tag(sync=True)
    selected = t.Unicode("").tag(sync=True)
    step = t.Int(0).tag(sync=True)

    def __init__(
        self,
        config: Any = None,
        *,
        batch: Any = 2,
        source_length: Any = 7,
        target_length: Any = 6,
        level: str = "full",
        numbers: bool = True,
        norm: str | None = None,
        _model: Transformer | None = None,
    ) -> None:
        config = TransformerConfig.base() if config is None else config
        if not isinstance(config, TransformerConfig):
            raise TypeError(
                f"config has to be a ttutor.transformer.TransformerConfig, not {type(config).__name__}; "
                "of a model that is there, write BlocksExplorer.of(model)"
            )
        lengths = {"batch": batch, "source_length": source_length, "target_length": target_length}
        for name, value in lengths.items():
            _check_size(name, value, MAX_BATCH if name == "batch" else min(MAX_LENGTH, config.max_len))
        models = {place: build(config.replace(norm=place)) for place in NORMS}
        if _model is not None:
            models[config.norm] = _model
        for model in models.values():
            measure_shapes(model, batch, source_length, target_length)  # complains where a shape is not as we say
        super().__init__(
            facts=_facts(config, models),
            level=level,
            norm=config.norm if norm is None else norm,
            numbers=numbers,
            **lengths,
        )

    @classmethod
    def of(cls, model: Any, **options: Any) -> "BlocksExplorer":
        """The picture of a model that is there: its shapes are measured, and its parameters counted, on itself.

        Args:
            model: a `ttutor.transformer.Transformer`; it is run once and left as it was.
            **options: as for the constructor.

        Raises:
            TypeError: it is another model.
        """
        if not isinstance(model, Transformer):
            raise TypeError(
                f"BlocksExplorer.of shows a ttutor.transformer.Transformer (encoder and decoder), not "
                f"{type(model).__name__}"
            )
        return cls(model.config, _model=model, **options)

    @property
    def parts(self) -> dict[str, list]:
        """Each part's kind, axes, and numbers of parameters with post-norm and with pre-norm; ``"model"`` is last."""
        return {name: rest for name, *rest in self.facts["parts"]}

    def shape(self, part: str) -> tuple[int, ...]:
        """The shape of a part's output at the chosen batch and lengths.

        Args:
            part: a key of ``parts``, such as ``"encoder.self_attention.weights"``.

        Raises:
            KeyError: there is no such part.
        """
        sizes = self.facts["sizes"] | {axis: getattr(self, trait) for axis, trait in _LIVE_AXES.items()}
        return tuple(sizes[axis] for axis in self._part(part)[1].split())

    def parameters(self, part: str) -> int:
        """How many parameters a part has, by the norm that is chosen; ``"model"`` is the whole.

        Raises:
            KeyError: there is no such part.
        """
        return self._part(part)[2 + NORMS.index(self.norm)]

    def _part(self, part: str) -> list:
        if part not in self.parts:
            raise KeyError(f"there is no part {part!r}; there are {', '.join(self.parts)}")
        return self.parts[part]

    def describe(self) -> str:
        """The sizes and what is shown."""
        size = f"{self.facts['n_layers']} + {self.facts['n_layers']} layers, d_model {self.facts['sizes']['d_model']}"
        return f"{size}, {self.parameters('model'):,} parameters, {self.norm}-norm, {self.level}"

    def fallback_html(self) -> str:
        """The eight steps with their shapes, and every part as a row of a table."""
        steps = "".join(
            f"<li>{step.title}: {', '.join(self._in_words(*shape) for shape in step.shapes)}</li>" for step in STEPS
        )
        rows = "".join(self._row(name) for name in PARTS if self._is_listed(name))
        n_layers = self.facts["n_layers"]
        caption = (
            f"{n_layers} encoder and {n_layers} decoder layers, {self.parameters('model'):,} parameters "
            f"({self.norm}-norm); a batch of {self.batch}, {self.source_length} source and "
            f"{self.target_length} target tokens. Queries of the cross-attention come from the decoder, keys and "
            "values from the encoder's output."
        )
        head = "".join(f'<th scope="col">{name}</th>' for name in ("Part", "Role", "Shape", "Parameters"))
        table = f"<table><caption>{caption}</caption><tr>{head}</tr>{rows}</table>"
        return f"<p>A forward pass in eight steps:</p><ol>{steps}</ol>{table}"

    def _in_words(self, word: str, part: str) -> str:
        sizes = self.shape(part)
        return f"{word} {' × '.join(map(str, sizes))}"

    def _is_listed(self, name: str) -> bool:
        """Repetitions are left out: one norm, one sum and one skip connection a stack say what the others do."""
        repeated = name.endswith(("_2", "_3", ".input", ".output", "_input", "arrow")) or (
            name.count(".") == 2 and not name.startswith("decoder.cross")
        )
        return not repeated and (self.norm == "pre" or not name.endswith("final_norm"))

    def _row(self, name: str) -> str:
        title, role = self.facts["kinds"][PARTS[name].kind][:2]
        place = name.rpartition(".")[0].replace(".", " ").replace("_", "-")
        place = f"{place}: " if place else ""
        shape = " × ".join(map(str, self.shape(name)))
        cells = (role, shape, f"{self.parameters(name):,}")
        body = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        return f'<tr><th scope="row">{html.escape(place + title)}</th>{body}</tr>'

    @t.validate("batch", "source_length", "target_length")
    def _check_lengths(self, proposal: dict) -> int:
        name = proposal["trait"].name
        return _check_size(
            name, proposal["value"], MAX_BATCH if name == "batch" else min(MAX_LENGTH, self.facts["sizes"]["max_len"])
        )

    @t.validate("selected")
    def _check_selected(self, proposal: dict) -> str:
        if proposal["value"] and proposal["value"] not in PARTS:
            raise ValueError(f"selected has to be a part or empty, not {proposal['value']!r}: {', '.join(PARTS)}")
        return proposal["value"]

    @t.validate("step")
    def _check_step(self, proposal: dict) -> int:
        if not 0 <= proposal["value"] <= len(STEPS):
            raise ValueError(f"step has to be between 0 (none) and {len(STEPS)}, not {proposal['value']}")
        return proposal["value"]


def _facts(config: TransformerConfig, models: dict[str, Transformer]) -> dict[str, Any]:
    """All that the picture knows: what was measured and counted, and the words."""
    counts = {place: count_parameters(model) for place, model in models.items()}
    sizes = axis_sizes(config)
    # Lists, since a page's state does not keep the order of a dict.
    parts = [[name, part.kind, part.axes, *(counts[place][name] for place in NORMS)] for name, part in PARTS.items()]
    return {
        "parts": [*parts, ["model", "", "", *(counts[place]["model"] for place in NORMS)]],
        "kinds": {name: kind.written(sizes) for name, kind in kinds(config).items()},
        "steps": [[step.title, list(step.lit), [list(shape) for shape in step.shapes]] for step in STEPS],
        "levels": [[level, *words] for level, words in LEVELS.items()],
        "sizes": sizes,
        "n_layers": config.n_layers,
    }


def _check_size(name: str, value: Any, most: int) -> int:
    """A whole number from 1 to as many as the model takes."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{name} has to be a whole number from 1 to {most}, not {value!r}")
    return value
