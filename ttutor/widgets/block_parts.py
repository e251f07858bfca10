"""The parts of a Transformer's picture: where in a model each is found, and when it works.

Places only; the words are in `ttutor.widgets.block_words`. `ttutor.widgets.block_measure` looks the places up in a real
model: it compares the axes that stand here with the shapes that came, and counts the parameters.
"""

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["ATTENTIONS", "LEVELS", "PARTS", "STEPS", "Part", "Step"]


class Part(NamedTuple):
    """One part of the picture.

    Attributes:
        kind: a key of `ttutor.widgets.block_words.kinds`.
        axes: the names of its output's axes.
        site: the intermediate of `ttutor.inside.capture` that it is measured at; a pair where post-norm and pre-norm
            differ.
        owner: the module whose parameters are its own; empty when it has none.
    """

    kind: str
    axes: str
    site: str | tuple[str, str]
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
    "encoder.self_attention": (
        "inside the encoder's self-attention",
        "Look where the shape gets a fourth axis, heads, and where it loses it again.",
    ),
    "decoder.self_attention": (
        "inside the decoder's masked self-attention",
        "Look at the weights: what is crossed out would be a look ahead.",
    ),
    "decoder.cross_attention": (
        "inside the decoder's cross-attention",
        "Look at the weights, where the two lengths meet: a row for each target token, a column for each source token.",
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
    below, ids, stream = f"{side}_embeddings", f"batch {side}", f"batch {side} d_model"
    yield f"{side}_ids", Part(f"{side}_ids", ids, f"{below}.input")
    yield f"{side}_embedding", Part(f"{side}_embedding", stream, f"{below}.token", f"{below}.token")
    yield f"{side}_positions", Part("positions", stream, f"{below}.position", f"{below}.position")
    yield f"{side}_add", Part("embedded", stream, below)


def _stack(side: str, sequence: str) -> Iterator[tuple[str, Part]]:
    """A stack, and the parts of its first layer in the order of computing."""
    layer, stream = f"{side}.layers.0", f"batch {sequence} d_model"
    yield side, Part(side, stream, side, side)
    yield f"{side}.input", Part("stream", stream, f"{layer}.input")
    for i, (name, around, kind) in enumerate(_SUBLAYERS[side], 1):
        wrap, own = f"{layer}.{around}", f"{layer}.{name}"
        yield f"{side}.{name}", Part(kind, stream, own, own)
        if name == "feed_forward":
            wide = f"batch {sequence} d_ff"
            yield f"{side}.widen", Part("widen", wide, f"{own}.widen", f"{own}.widen")
            yield f"{side}.activation", Part("activation", wide, f"{own}.narrow.input")
            yield f"{side}.narrow", Part("narrow", stream, f"{own}.narrow", f"{own}.narrow")
        yield f"{side}.skip_{i}", Part("skip", stream, f"{wrap}.input")
        yield f"{side}.add_{i}", Part("add", stream, (f"{wrap}.norm.input", wrap))
        yield f"{side}.norm_{i}", Part("norm", stream, f"{wrap}.norm", f"{wrap}.norm")
    yield f"{side}.output", Part("output", stream, layer)
    yield f"{side}.final_norm", Part("final_norm", stream, f"{side}.final_norm", f"{side}.final_norm")


def _all_parts() -> Iterator[tuple[str, Part]]:
    yield from _ends("source")
    yield from _stack("encoder", "source")
    yield "memory", Part("memory", "batch source d_model", "encoder")
    yield "arrow", Part("arrow", "batch source d_model", "decoder.layers.0.cross_attention.to_key.input")
    yield from _ends("target")
    yield from _stack("decoder", "target")
    yield "logits", Part("logits", "batch target vocab_size", "to_logits", "to_logits")
    yield "softmax", Part("softmax", "batch target vocab_size", "softmax")
    for attention, (queries, keys) in ATTENTIONS.items():
        yield from _inside(attention, queries, keys)


def _inside(attention: str, queries: str, keys: str) -> Iterator[tuple[str, Part]]:
    """The parts of one attention."""
    side, module = attention.split(".")
    site = f"{side}.layers.0.{module}"
    is_cross = queries != keys
    yield (
        f"{attention}.q_input",
        Part("queries_from" if is_cross else "all_from", f"batch {queries} d_model", f"{site}.input"),
    )
    if is_cross:
        yield f"{attention}.k_input", Part("memory", f"batch {keys} d_model", f"{site}.to_key.input")
    for tokens, name, letter in ((keys, "value", "v"), (keys, "key", "k"), (queries, "query", "q")):
        projection = f"{site}.to_{name}"
        yield f"{attention}.to_{name}", Part(f"to_{name}", f"batch {tokens} d_model", projection, projection)
        yield f"{attention}.{letter}", Part(letter, f"batch heads {tokens} d_head", f"{site}.{letter}")
    weights = "masked_weights" if module == "self_attention" and side == "decoder" else "weights"
    yield f"{attention}.weights", Part(weights, f"batch heads {queries} {keys}", f"{site}.weights")
    yield f"{attention}.context", Part("context", f"batch heads {queries} d_head", f"{site}.context")
    yield f"{attention}.merged", Part("merged", f"batch {queries} d_model", f"{site}.to_output.input")
    yield (
        f"{attention}.to_output",
        Part("to_output", f"batch {queries} d_model", f"{site}.to_output", f"{site}.to_output"),
    )


PARTS: dict[str, Part] = dict(_all_parts())
"""All parts, in the order of computing."""

_ENCODER = ("encoder", "encoder.self_attention", "encoder.feed_forward", "memory")
STEPS = (
    Step("Text becomes ids", ("source_ids", "target_ids"), (("source", "source_ids"), ("target", "target_ids"))),
    Step(
        "Ids become vectors: embedding × √d_model + positions",
        tuple(f"{side}_{what}" for side in ("source", "target") for what in ("embedding", "positions", "add")),
        (("source", "source_add"), ("target", "target_add")),
    ),
    Step("The encoder stack makes the memory, once", _ENCODER, (("memory", "memory"),)),
    Step(
        "Masked self-attention looks back",
        ("decoder.self_attention",),
        (("weights", "decoder.self_attention.weights"), ("stream", "decoder.self_attention")),
    ),
    Step(
        "Cross-attention looks at the memory",
        ("memory", "arrow", "decoder.cross_attention"),
        (("weights", "decoder.cross_attention.weights"), ("stream", "decoder.cross_attention")),
    ),
    Step("Feed-forward, each token by itself", ("decoder.feed_forward",), (("stream", "decoder.feed_forward"),)),
    Step("The output projection makes logits", ("logits",), (("logits", "logits"),)),
    Step("Softmax makes probabilities of the next token", ("softmax",), (("probabilities", "softmax"),)),
)
"""The eight steps of a forward pass. A shape is that of a part."""
