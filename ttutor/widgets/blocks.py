"""The Transformer's one picture: the whole, an encoder layer and a decoder layer."""

import html
from typing import Any

import traitlets as t

from ttutor.transformer import Transformer, TransformerConfig
from ttutor.widgets.base import Explorer, table_html, within
from ttutor.widgets.block_parts import LEVELS, PARTS, STEPS, axis_sizes, build, count_parameters, kinds
from ttutor.widgets.translator import EXAMPLES

NORMS = ("post", "pre")
MAX_BATCH = 1024
MAX_LENGTH = 64
"""Tokens of a sentence: the picture draws a cell for each query and key."""
_LIVE_AXES = {"batch": "batch", "source": "source_length", "target": "target_length"}


_SENTENCES = ("the old cat sits on the mat <eos>", "die alte Katze sitzt auf der Matte <eos>")


class BlocksExplorer(Explorer):
    """The architecture of 2017 as one picture to walk through: point at a part for its role, shape and parameters.

    The picture has three levels: the full architecture, an encoder layer and a decoder layer, where norms, skips and
    sums are. A switch moves the norms (post-norm, pre-norm), and a player carries both sentences through a forward
    pass in nine steps; `translating` shows them with a translator's own numbers. All parameters are counted on a model.
    In Jupyter the traits follow what the reader does, and setting one from Python redraws the figure.

    Args:
        config: the model's sizes; the base model of Vaswani et al. (2017) when left out. The model is built on the
            device ``meta``, which takes no memory. For a model that is there, see `of`.
        batch: how many sentences.
        source_length: tokens of the sentence that is read.
        target_length: tokens of the sentence that is written.
        level: ``"full"``, ``"encoder"`` or ``"decoder"``.
        norm: ``"post"`` or ``"pre"``; the config's when left out.
        sentences: the text that is read and the one that is written, tokens between blanks, as the picture shows them;
            where one is shorter than its length, dots follow.

    >>> explorer = BlocksExplorer(batch=2, source_length=7, target_length=6)
    >>> explorer.shape("decoder.cross_attention.weights")  # batch heads target source
    (2, 8, 6, 7)
    >>> explorer.parameters("encoder.self_attention"), explorer.parameters("model")
    (1050624, 63082496)
    """

    _module = "blocks"
    _title = "The Transformer, part by part"

    facts = t.Dict().tag(sync=True)
    batch = t.Int(2, min=1, max=MAX_BATCH).tag(sync=True)
    source_length = t.Int(7).tag(sync=True)
    target_length = t.Int(6).tag(sync=True)
    level = t.Enum(tuple(LEVELS), "full").tag(sync=True)
    norm = t.Enum(NORMS, "post").tag(sync=True)
    selected = t.Unicode("").tag(sync=True)
    step = t.Int(0, min=0, max=len(STEPS)).tag(sync=True)
    run = t.Dict(help="what `ttutor.widgets.stations` noted").tag(sync=True)
    follows = t.Bool(False, help="whether a page's translator hands on what it reads").tag(sync=True)
    source_word = t.Int(0, help="the word whose numbers are shown, of those that are read").tag(sync=True)
    target_word = t.Int(0, help="the same, of those that are written").tag(sync=True)

    def __init__(
        self,
        config: Any = None,
        *,
        batch: int = 2,
        source_length: int = 7,
        target_length: int = 6,
        level: str = "full",
        norm: str | None = None,
        sentences: Any = _SENTENCES,
        _model: Transformer | None = None,
    ) -> None:
        config = TransformerConfig.base() if config is None else config
        if not isinstance(config, TransformerConfig):
            raise TypeError(
                f"config has to be a ttutor.transformer.TransformerConfig, not {type(config).__name__}; "
                "of a model that is there, write BlocksExplorer.of(model)"
            )
        words = _sentences(sentences, source_length, target_length)
        models = {place: build(config.replace(norm=place)) for place in NORMS}
        if _model is not None:
            models[config.norm] = _model
        super().__init__(
            facts=_facts(config, models) | {"sentences": words},
            level=level,
            norm=config.norm if norm is None else norm,
            batch=batch,
            source_length=source_length,
            target_length=target_length,
        )

    @classmethod
    def of(cls, model: Any, **options: Any) -> "BlocksExplorer":
        """The picture of a model that is there: its parameters are counted on itself.

        Args:
            model: a `ttutor.transformer.Transformer`.
            **options: as for the constructor.
        """
        if not isinstance(model, Transformer):
            raise TypeError(
                f"BlocksExplorer.of shows a ttutor.transformer.Transformer (encoder and decoder), not "
                f"{type(model).__name__}"
            )
        return cls(model.config, _model=model, **options)

    @classmethod
    def translating(cls, sentence: str = EXAMPLES[0], *, n_target: int = 4, **options: Any) -> "BlocksExplorer":
        """The picture at work: the translator that ships reads a sentence, and each step shows its numbers.

        In a page without a kernel the figure goes on with the sentence that is typed into a `TranslatorExplorer`.

        Args:
            sentence: what is read; at most 9 tokens, which stand side by side.
            n_target: how many tokens of its own translation the decoder has before it, the start among them, at most 4.
            **options: as for the constructor.

        >>> explorer = BlocksExplorer.translating()
        >>> explorer.run["target"], explorer.run["next"]
        (['<bos>', 'Ein', 'schwarzer', 'Hund'], ['Ein', 'schwarzer', 'Hund', 'jagt'])
        """
        from ttutor.translation.packed import load_packed
        from ttutor.widgets.stations import stations

        translator = load_packed().translator
        run = stations(translator, sentence, n_target)
        texts = (" ".join(run["tokens"]), " ".join([*run["next"], "…"]))
        lengths = {"source_length": len(run["tokens"]), "target_length": len(run["target"])}
        made = cls.of(translator.model, batch=1, sentences=texts, **lengths, **options)
        made.run, made.follows = run, True
        # A noun and the word that is about to write it, in the sentence that is given.
        made.source_word, made.target_word = min(2, len(run["tokens"]) - 1), min(2, len(run["target"]) - 1)
        return made

    def static_state(self) -> dict[str, Any]:
        state = super().static_state()
        return state if self.follows else {name: value for name, value in state.items() if name != "follows"}

    @property
    def parts(self) -> dict[str, list]:
        """Each part's kind, axes, and numbers of parameters with post-norm and with pre-norm; ``"model"`` is last."""
        return {name: rest for name, *rest in self.facts["parts"]}

    def shape(self, part: str) -> tuple[int, ...]:
        """The shape of a part's output at the chosen batch and lengths.

        Args:
            part: a key of ``parts``, such as ``"encoder.self_attention.weights"``.
        """
        sizes = self.facts["sizes"] | {axis: getattr(self, trait) for axis, trait in _LIVE_AXES.items()}
        return tuple(sizes[axis] for axis in self._part(part)[1].split())

    def parameters(self, part: str) -> int:
        """How many parameters a part has, by the norm that is chosen; ``"model"`` is the whole."""
        return self._part(part)[2 + NORMS.index(self.norm)]

    def _part(self, part: str) -> list:
        if part not in self.parts:
            raise KeyError(f"there is no part {part!r}; there are {', '.join(self.parts)}")
        return self.parts[part]

    def describe(self) -> str:
        size = f"{self.facts['n_layers']} + {self.facts['n_layers']} layers, d_model {self.facts['sizes']['d_model']}"
        return f"{size}, {self.parameters('model'):,} parameters, {self.norm}-norm, {self.level}"

    def fallback_html(self) -> str:
        """The nine steps with their shapes, and every part as a row of a table."""
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
        return f"<p>A forward pass in nine steps:</p><ol>{steps}</ol>{self._written()}{table}"

    def _written(self) -> str:
        """What a translator at work looked at, and what it would write, word by word."""
        if not self.run:
            return ""
        rows = []
        for i, word in enumerate(self.run["target"]):
            looks = self.run["weights"]["decoder.cross_attention"][i]
            token, _, chance = self.run["best"][i][0]
            rows.append([word, *(f"{weight:.3f}" for weight in looks), f"{token} {chance:.3f}"])
        caption = "Where each word of the translation looks (last layer, mean of its heads), and what comes next"
        return table_html(caption, ["after", *self.run["tokens"], "next"], rows)

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

    @t.validate("source_length", "target_length")
    def _check_lengths(self, proposal: dict) -> int:
        most = min(MAX_LENGTH, self.facts["sizes"]["max_len"])
        return within(proposal["trait"].name, proposal["value"], 1, most)

    @t.validate("source_word", "target_word")
    def _check_word(self, proposal: dict) -> int:
        name = proposal["trait"].name
        n_words = len(self.run.get({"source_word": "tokens", "target_word": "target"}[name], [""]))
        return within(name, proposal["value"], 0, n_words - 1, "it counts the words that are shown")

    @t.validate("selected")
    def _check_selected(self, proposal: dict) -> str:
        if proposal["value"] and proposal["value"] not in PARTS:
            raise ValueError(f"selected has to be a part or empty, not {proposal['value']!r}: {', '.join(PARTS)}")
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
        "steps": [[step.title, list(step.lit)] for step in STEPS],
        "levels": [[level, *words] for level, words in LEVELS.items()],
        "sizes": sizes,
        "n_layers": config.n_layers,
    }


def _sentences(texts: Any, source_length: int, target_length: int) -> dict[str, str]:
    """The words that flow: of the source, of the target so far, and what is predicted, each one place further."""
    if not isinstance(texts, tuple | list) or [type(text) for text in texts] != [str, str]:
        raise TypeError(f"sentences has to be two texts, what is read and what is written, not {texts!r}")
    lengths = (source_length, target_length + 1)
    source, target = ((text.split() + ["…"] * n)[:n] for text, n in zip(texts, lengths, strict=True))
    ends = {"source_ids": source, "target_ids": ["<bos>", *target[:-2]], "softmax": target[:-1]}
    return {part: " ".join(words) for part, words in ends.items()}
