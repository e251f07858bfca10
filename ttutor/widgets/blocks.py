"""The Transformer's one picture: the whole, an encoder layer and a decoder layer.

A part says its axes, which the tests compare with a model that runs, and the module whose parameters are counted. A
model on the device ``meta`` has no numbers, so the base model takes no memory.
"""

import html
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
import traitlets as t

from ttutor.transformer import Transformer, TransformerConfig
from ttutor.widgets.base import Explorer, table_html, within


class Part(NamedTuple):
    """One part of the picture.

    Attributes:
        kind: a key of `kinds`.
        axes: the names of its output's axes.
        owner: the module whose parameters are its own; empty when it has none.
    """

    kind: str
    axes: str
    owner: str = ""


class Step(NamedTuple):
    """One step of a forward pass: its title, the parts that work, and what comes out: a word and the part it is of."""

    title: str
    lit: tuple[str, ...]
    shapes: tuple[tuple[str, str], ...]


ATTENTIONS = {
    "encoder.self_attention": ("source", "source"),
    "decoder.self_attention": ("target", "target"),
    "decoder.cross_attention": ("target", "source"),
}
"""Each attention, with the sequence that its queries stand for and the one that its keys do."""
LEVELS = {
    "full": (
        "full architecture",
        "Follow the thick line: the encoder's output goes into the middle of every decoder layer. Point at any part.",
    ),
    "encoder": (
        "encoder block",
        "Follow the lines on the left: the stream passes each sublayer, which only adds to it. Point at any part.",
    ),
    "decoder": (
        "decoder block",
        "In the middle sublayer, look where the queries (Q) come from, and where the keys and values (K, V) do.",
    ),
}
"""The levels of the picture: each one's name, and what to look at."""
_SUBLAYERS = {
    "encoder": (("self_attention", "around_attention", "attend"), ("feed_forward", "around_feed_forward", "feed")),
    "decoder": (
        ("self_attention", "around_self_attention", "masked"),
        ("cross_attention", "around_cross_attention", "cross"),
        ("feed_forward", "around_feed_forward", "feed"),
    ),
}


def _ends(side: str) -> Iterator[tuple[str, Part]]:
    """What stands below a stack: ids, embedding, positions and their sum."""
    below, stream = f"{side}_embeddings", f"batch {side} d_model"
    yield f"{side}_ids", Part(f"{side}_ids", f"batch {side}")
    yield f"{side}_embedding", Part(f"{side}_embedding", stream, f"{below}.token")
    yield f"{side}_positions", Part("positions", stream, f"{below}.position")
    yield f"{side}_add", Part("embedded", stream)


def _stack(side: str, sequence: str) -> Iterator[tuple[str, Part]]:
    """A stack, and the parts of its first layer in the order of computing."""
    layer, stream = f"{side}.layers.0", f"batch {sequence} d_model"
    yield side, Part(side, stream, side)
    yield f"{side}.input", Part("stream", stream)
    for i, (name, around, kind) in enumerate(_SUBLAYERS[side], 1):
        own = f"{layer}.{name}"
        yield f"{side}.{name}", Part(kind, stream, own)
        if name == "feed_forward":
            wide = f"batch {sequence} d_ff"
            yield f"{side}.widen", Part("widen", wide, f"{own}.widen")
            yield f"{side}.activation", Part("activation", wide)
            yield f"{side}.narrow", Part("narrow", stream, f"{own}.narrow")
        yield f"{side}.skip_{i}", Part("skip", stream)
        yield f"{side}.add_{i}", Part("add", stream)
        yield f"{side}.norm_{i}", Part("norm", stream, f"{layer}.{around}.norm")
    yield f"{side}.output", Part("output", stream)
    yield f"{side}.final_norm", Part("final_norm", stream, f"{side}.final_norm")


def _all_parts() -> Iterator[tuple[str, Part]]:
    yield from _ends("source")
    yield from _stack("encoder", "source")
    yield "memory", Part("memory", "batch source d_model")
    yield "arrow", Part("arrow", "batch source d_model")
    yield from _ends("target")
    yield from _stack("decoder", "target")
    yield "logits", Part("logits", "batch target vocab_size", "to_logits")
    yield "softmax", Part("softmax", "batch target vocab_size")
    for attention, (queries, keys) in ATTENTIONS.items():
        yield from _inside(attention, queries, keys)


def _inside(attention: str, queries: str, keys: str) -> Iterator[tuple[str, Part]]:
    """The parts of one attention."""
    side, module = attention.split(".")
    site = f"{side}.layers.0.{module}"
    is_cross = queries != keys
    yield f"{attention}.q_input", Part("queries_from" if is_cross else "all_from", f"batch {queries} d_model")
    if is_cross:
        yield f"{attention}.k_input", Part("memory", f"batch {keys} d_model")
    for tokens, name, letter in ((keys, "value", "v"), (keys, "key", "k"), (queries, "query", "q")):
        yield f"{attention}.to_{name}", Part(f"to_{name}", f"batch {tokens} d_model", f"{site}.to_{name}")
        yield f"{attention}.{letter}", Part(letter, f"batch heads {tokens} d_head")
    weights = "masked_weights" if attention == "decoder.self_attention" else "weights"
    yield f"{attention}.weights", Part(weights, f"batch heads {queries} {keys}")
    yield f"{attention}.context", Part("context", f"batch heads {queries} d_head")
    yield f"{attention}.merged", Part("merged", f"batch {queries} d_model")
    yield f"{attention}.to_output", Part("to_output", f"batch {queries} d_model", f"{site}.to_output")


PARTS: dict[str, Part] = dict(_all_parts())
"""All parts, in the order of computing."""
STEPS = (
    Step("Text becomes ids", ("source_ids", "target_ids"), (("source", "source_ids"), ("target", "target_ids"))),
    Step(
        "Ids become vectors: embedding × √d_model + positions",
        tuple(f"{side}_{what}" for side in ("source", "target") for what in ("embedding", "positions", "add")),
        (("source", "source_add"), ("target", "target_add")),
    ),
    Step(
        "In the encoder each word looks at all words",
        ("encoder", "encoder.self_attention"),
        (("weights", "encoder.self_attention.weights"), ("stream", "encoder.self_attention")),
    ),
    Step(
        "The encoder's output is the memory, made once",
        ("encoder", "encoder.feed_forward", "memory"),
        (("memory", "memory"),),
    ),
    Step(
        "Masked self-attention looks back",
        ("decoder.self_attention",),
        (("weights", "decoder.self_attention.weights"), ("stream", "decoder.self_attention")),
    ),
    Step(
        "Cross-attention: here the two sentences meet",
        ("memory", "arrow", "decoder.cross_attention"),
        (("weights", "decoder.cross_attention.weights"), ("stream", "decoder.cross_attention")),
    ),
    Step("Feed-forward, each token by itself", ("decoder.feed_forward",), (("stream", "decoder.feed_forward"),)),
    Step("The output projection makes logits", ("logits",), (("logits", "logits"),)),
    Step("Softmax makes probabilities of the next token", ("softmax",), (("probabilities", "softmax"),)),
)
"""The nine steps of a forward pass. A shape is that of a part."""
_SIZE = re.compile(r"\b(d_model|d_head|d_ff|heads|vocab_size|max_len)\b")


class Kind(NamedTuple):
    """What all parts of one kind have in common: name, role, formula, and the formula of their parameters."""

    name: str
    role: str
    formula: str = ""
    parameters: str = ""

    def written(self, sizes: dict[str, int]) -> list[str]:
        """The four as they are read: numbers put in, beside a formula, and instead of the count's."""
        formula, count = (
            _SIZE.sub(lambda found: str(sizes[found[0]]), text) for text in (self.formula, self.parameters)
        )
        both = self.formula if formula == self.formula else f"{self.formula} = {formula}"
        return [self.name, self.role, both and f"Formula: {both}", count and f"{count} = "]


_ACTIVATIONS = {"relu": ("ReLU", "max(0, x)"), "gelu": ("GELU", "x Φ(x)"), "silu": ("SiLU", "x σ(x)")}
_MAP = "d_model · d_model + d_model"


def kinds(config: TransformerConfig) -> dict[str, Kind]:
    """What the parts of a model with this config are, in words."""
    activation, curve = _ACTIVATIONS[config.activation.removesuffix("_tanh")]
    learned, tied = config.positions == "learned", config.tie_embeddings
    n_layers, dropout = config.n_layers, f" (dropout {config.dropout} while training)" if config.dropout else ""
    blend, heads = "softmax(Q Kᵀ / √d_head) V", f"in each of {config.n_heads} heads"
    projection = "" if tied else "vocab_size · d_model"
    bias = "vocab_size" if config.logits_bias else ""
    return {
        "source_ids": Kind(
            "source ids", "The text to read, cut into tokens; each token is the number of a row in the embedding table."
        ),
        "target_ids": Kind("target ids", "The text written so far, as ids: the start token first, then what follows."),
        "source_embedding": Kind(
            "embedding × √d_model",
            "Looks up one learned vector for each id and multiplies it by √d_model.",
            "E[id] · √d_model",
            "vocab_size · d_model",
        ),
        "target_embedding": Kind(
            "embedding × √d_model",
            "The same table as the source's, used again, so it adds no parameters.",
            "E[id] · √d_model",
        ),
        "positions": Kind(
            "positions",
            "One learned vector for each position." if learned else "A fixed pattern of waves for each position.",
            "P[p]" if learned else "sin, cos(p / 10000^(2i / d_model))",
            "max_len · d_model" if learned else "",
        ),
        "embedded": Kind("sum", f"Token plus position: what enters the first layer{dropout}.", "token + position"),
        "encoder": Kind("encoder", f"{n_layers} layers of one build, each with parameters of its own."),
        "decoder": Kind(
            "decoder", f"{n_layers} layers of one build, each with parameters of its own; each reads the memory."
        ),
        "stream": Kind("stream", "One vector for each token, from the layer below; for the first layer, from the sum."),
        "attend": Kind(
            "self-attention", f"Each source token looks at all of them and takes a blend of their values, {heads}.",
            blend, f"4 · ({_MAP})",
        ),
        "masked": Kind(
            "masked self-attention", f"Each target token looks at itself and at earlier tokens, never ahead, {heads}.",
            blend, f"4 · ({_MAP})",
        ),
        "cross": Kind(
            "cross-attention", "Its query comes from the decoder, keys and values from the encoder's output.",
            blend, f"4 · ({_MAP})",
        ),
        "skip": Kind("skip connection", "Carries the stream past the sublayer, unchanged.", "x"),
        "add": Kind("residual sum", f"Adds what the sublayer wrote to the stream{dropout}.", "x + f(x)"),
        "norm": Kind(
            "layer norm", "Each token's vector gets mean 0 and variance 1, then a learned scale γ and shift β.",
            "γ (x − mean) / √(variance + ε) + β", "2 · d_model",
        ),
        "final_norm": Kind(
            "final norm", "Pre-norm needs it: nothing else has normalised the stream itself.",
            "γ (x − mean) / √(variance + ε) + β", "2 · d_model",
        ),
        "feed": Kind(
            "feed-forward", "Transforms each token by itself, with the same weights at every position.",
            f"{activation}(x W₁ + b₁) W₂ + b₂", "2 · d_model · d_ff + d_ff + d_model",
        ),
        "widen": Kind("widen", "Maps each token's vector to d_ff features.", "x W₁ + b₁", "d_model · d_ff + d_ff"),
        "activation": Kind(activation, "The bend between the two maps, feature by feature.", curve),
        "narrow": Kind("narrow", "Maps back to the width of the stream.", "x W₂ + b₂", "d_ff · d_model + d_model"),
        "output": Kind("layer output", "The stream for the next layer, in the shape that came in."),
        "memory": Kind("memory", "The encoder's output, computed once and read by every decoder layer."),
        "arrow": Kind(
            "cross-attention arrow",
            f"Brings the encoder's output to each of the {n_layers} decoder layers: keys and values are made from it, "
            "queries from the decoder's stream.",
            "Q = stream · W_Q, K = memory · W_K, V = memory · W_V",
        ),
        "logits": Kind(
            "output projection",
            "One number for each token of the vocabulary" + (": the embedding table, used once more." if tied else "."),
            ("x Eᵀ" if tied else "x W") + (" + b" if bias else ""),
            " + ".join(filter(None, (projection, bias))),
        ),
        "softmax": Kind("softmax", "Probabilities of the next token, at every target position.", "softmax(logits)"),
        "queries_from": Kind("stream", "The decoder's stream: the queries are made from it."),
        "all_from": Kind("stream", "Values, keys and queries are all made from the same stream."),
        "to_query": Kind("to_query", "Makes each token's query: what it looks for.", "x W_Q + b_Q", _MAP),
        "to_key": Kind("to_key", "Makes each token's key: what it is found by.", "x W_K + b_K", _MAP),
        "to_value": Kind("to_value", "Makes each token's value: what it hands over.", "x W_V + b_V", _MAP),
        "q": Kind("queries Q", "Cut into heads: each head gets d_head of the features.", "heads × d_head = d_model"),
        "k": Kind("keys K", "Cut into heads: each head gets d_head of the features.", "heads × d_head = d_model"),
        "v": Kind("values V", "Cut into heads: each head gets d_head of the features.", "heads × d_head = d_model"),
        "weights": Kind(
            "weights A", "How much each query looks at each key; every row adds up to 1.", "softmax(Q Kᵀ / √d_head)"
        ),
        "masked_weights": Kind(
            "weights A", "A later key's score becomes −∞ before the softmax, so its weight is 0. Rows add up to 1.",
            "softmax(Q Kᵀ / √d_head + mask)",
        ),
        "context": Kind("blend of values", "Each query's sum of the values, by its weights.", "A V"),
        "merged": Kind("heads side by side", "What the heads found, put together.", "heads × d_head = d_model"),
        "to_output": Kind("to_output", "Mixes what the heads found.", "x W_O + b_O", _MAP),
    }  # fmt: skip


@cache
def build(config: TransformerConfig) -> Transformer:
    """A model that has shapes and no numbers."""
    with torch.device("meta"):
        return Transformer(config)


def axis_sizes(config: TransformerConfig) -> dict[str, int]:
    """The sizes that a config fixes, by the names of axes."""
    return {
        "d_model": config.d_model,
        "heads": config.n_heads,
        "d_head": config.d_model // config.n_heads,
        "d_ff": config.d_ff,
        "vocab_size": config.vocab_size,
        "max_len": config.max_len,
    }


def count_parameters(model: Transformer) -> dict[str, int]:
    """Parameters of every part; a table that is used again counts with the part that uses it first."""
    counts: dict[str, int] = {"model": model.n_parameters()}
    embeddings = {id(parameter) for parameter in model.source_embeddings.parameters()}
    for name, part in PARTS.items():
        shared = set() if name.startswith("source") else embeddings
        parameters = model.get_submodule(part.owner).parameters() if part.owner else ()
        counts[name] = sum(parameter.numel() for parameter in parameters if id(parameter) not in shared)
    return counts


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
            facts=_with_sentences(_facts(config, models), words),
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
    def translating(cls, sentence: str = "A girl reads.", *, n_target: int = 4, **options: Any) -> "BlocksExplorer":
        """The picture at work: the translator that ships reads a sentence, and each step shows its numbers.

        Args:
            sentence: what is read; at most 7 tokens, which stand side by side.
            n_target: how many tokens of its own translation the decoder has before it, the start among them, at most 4.
            **options: as for the constructor.

        >>> explorer = BlocksExplorer.translating()
        >>> explorer.run["target"], explorer.run["next"]
        (['<bos>', 'Ein', 'Mädchen', 'liest'], ['Ein', 'Mädchen', 'liest', '.'])
        """
        from ttutor.translation.packed import load_packed
        from ttutor.widgets.stations import stations

        translator = load_packed().translator
        run = stations(translator, sentence, n_target)
        texts = (" ".join(run["tokens"]), " ".join([*run["next"], "…"]))
        lengths = {"source_length": len(run["tokens"]), "target_length": len(run["target"])}
        made = cls.of(translator.model, batch=1, sentences=texts, **lengths, **options)
        made.run = run
        # The noun and the word that writes it.
        made.source_word, made.target_word = min(1, len(run["tokens"]) - 1), min(1, len(run["target"]) - 1)
        return made

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


def _with_sentences(facts: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    """The facts, in which the three kinds of attention say first what they do to the words that are shown."""
    read, written = words["source_ids"], words["target_ids"]
    one, asks = read.split()[len(read.split()) // 2], written.split()[len(written.split()) // 2]
    before = " ".join(written.split()[: len(written.split()) // 2 + 1])
    said = {
        "attend": f"“{one}” looks at every word of “{read}”.",
        "masked": f"“{asks}” looks at “{before}”, not ahead.",
        "cross": f"“{asks}” asks every word of “{read}”.",
    }
    kinds = {
        name: [kind[0], f"{said.get(name, '')} {kind[1]}".strip(), *kind[2:]] for name, kind in facts["kinds"].items()
    }
    return facts | {"kinds": kinds, "sentences": words}


def _sentences(texts: Any, source_length: int, target_length: int) -> dict[str, str]:
    """The words that flow: of the source, of the target so far, and what is predicted, each one place further."""
    if not isinstance(texts, tuple | list) or [type(text) for text in texts] != [str, str]:
        raise TypeError(f"sentences has to be two texts, what is read and what is written, not {texts!r}")
    lengths = (source_length, target_length + 1)
    source, target = ((text.split() + ["…"] * n)[:n] for text, n in zip(texts, lengths, strict=True))
    ends = {"source_ids": source, "target_ids": ["<bos>", *target[:-2]], "softmax": target[:-1]}
    return {part: " ".join(words) for part, words in ends.items()}
