"""The parts of the Transformer's one picture: axes, the modules whose parameters they have, what is said of them.

The tests compare a part's axes with a model that runs. A model on the device ``meta`` has no numbers, so the base model
takes no memory.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import torch

from ttutor.transformer import Transformer, TransformerConfig


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
        "Press Play and follow the words, or tap a part.",
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
"""The levels of the picture: each one's name, and what to do there."""
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
