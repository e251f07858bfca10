"""What a model is made of, in numbers: enough to say what it costs, and nothing about how it computes.

Each family's config writes its own (`TransformerConfig.blueprint` and its sisters); `ttutor.transformer.account` reads
them. The three kinds of piece are stacks of layers, single projections beside them, and numbers that are added or
looked up but never multiplied with a matrix, such as embedding tables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ttutor.configs import Config
from ttutor.layers import ACTIVATIONS

PARTS = ("embeddings", "attention", "feed-forward", "norms", "output projection", "other")
"""The parts that a model's parameters are counted by. Biases count with the matrix they belong to."""

ACTS_ON = ("every token", "first token", "later tokens")


@dataclass(frozen=True, kw_only=True)
class Experts(Config):
    """The sizes of mixtures of experts, where feed-forward networks were (`ttutor.variants.experts`).

    Args:
        n_experts: how many there are in each layer.
        n_chosen: how many of them a token visits.
        d_ff: inner width of one expert.
        n_shared: how many experts every token visits besides; they are one network, so many times as wide.
        n_dense_layers: how many layers at the bottom have an ordinary feed-forward network.
        bias: whether the router and the maps of the chosen experts add a constant.
    """

    n_experts: int
    n_chosen: int
    d_ff: int
    n_shared: int = 0
    n_dense_layers: int = 0
    bias: bool = False

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("n_experts", "n_chosen", "d_ff")
        yield from self.require_bool("bias")
        for name in ("n_shared", "n_dense_layers"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 0:
                yield f"{name} must be an integer of at least 0 ({name}={getattr(self, name)!r})"
        if type(self.n_chosen) is type(self.n_experts) is int and self.n_chosen > self.n_experts:
            yield f"a token visits at most all experts (n_chosen={self.n_chosen}, n_experts={self.n_experts})"


@dataclass(frozen=True, kw_only=True)
class Latent(Config):
    """The widths of `ttutor.variants.latent.LatentAttention`.

    Args:
        d_head, d_rotary, d_value, d_latent, d_query_latent: as there.
    """

    d_head: int
    d_rotary: int
    d_value: int
    d_latent: int
    d_query_latent: int | None = None

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("d_head", "d_rotary", "d_value", "d_latent")
        if self.d_query_latent is not None:
            yield from self.require_positive_int("d_query_latent")


@dataclass(frozen=True, kw_only=True)
class Stack(Config):
    """Equal layers on top of one another: self-attention, perhaps cross-attention, and a feed-forward network.

    Args:
        name: ``"encoder"`` or ``"decoder"``.
        n_layers: how many layers a token passes.
        d_model: width of the stream.
        n_heads: query heads of each attention.
        n_kv_heads: key/value heads, a divisor of ``n_heads``; as many, unless queries share them in groups.
        d_head: width of a head; not ``d_model / n_heads`` in every model (T5).
        d_ff: inner width of the feed-forward network.
        gated: whether it has a third matrix, the gate.
        activation: one of `ttutor.layers.ACTIVATIONS`.
        attention_bias: whether the four projections of each attention add a constant.
        feed_forward_bias: whether the maps of the feed-forward network do.
        norm: where the norm of a residual connection stands, ``"post"`` or ``"pre"``.
        rms: whether the norms are `ttutor.layers.RMSNorm` (one parameter a feature) or `LayerNorm` (two).
        final_norm: whether a norm follows the last layer, as it does with pre-norm.
        is_causal: whether tokens look back only, so that keys and values can be cached.
        is_masked: whether attention is told which tokens are real, as in all our models of text; matters to the memory
            of a training step only.
        cross_attention: whether each layer also looks at a memory, of the same width.
        dropout: of what each sublayer writes, while training.
        drops_inside: whether it also falls on attention weights and on the feed-forward network's inner features.
        n_distinct_layers: how many layers have parameters of their own, where they are shared (1 in ALBERT); all when
            left out.
        windows: for each layer, how many tokens back a query sees, itself included, and None where it sees all; left
            out where no layer has a window. The plain implementation computes hidden scores too, so this is about what
            a cache has to keep.
        experts: the mixtures in the place of feed-forward networks; none when left out.
        latent: the widths of latent attention in the place of multi-head attention; none when left out.
    """

    name: str
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    gated: bool = False
    activation: str = "relu"
    attention_bias: bool = True
    feed_forward_bias: bool = True
    norm: str = "pre"
    rms: bool = False
    final_norm: bool = True
    is_causal: bool = False
    is_masked: bool = True
    cross_attention: bool = False
    dropout: float = 0.0
    drops_inside: bool = False
    n_distinct_layers: int | None = None
    windows: tuple[int | None, ...] | None = None
    experts: Experts | None = None
    latent: Latent | None = None

    @classmethod
    def of(cls, config: Any, name: str, **choices: Any) -> "Stack":
        """Layers of the sizes and the dropout that a model's config tells; the choices are the other arguments."""
        sizes = {size: getattr(config, size) for size in ("n_layers", "d_model", "n_heads", "d_ff")}
        n_kv_heads = getattr(config, "n_kv_heads", None) or config.n_heads
        d_head = getattr(config, "d_head", None) or config.d_model // config.n_heads
        dropout = getattr(config, "dropout", 0.0)
        return cls(name=name, **sizes, n_kv_heads=n_kv_heads, d_head=d_head, dropout=dropout, **choices)

    def __post_init__(self) -> None:
        if self.n_distinct_layers is None:
            object.__setattr__(self, "n_distinct_layers", self.n_layers)  # frozen for everybody else
        super().__post_init__()

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff")
        yield from self.require_positive_int("n_distinct_layers")
        yield from self.require_multiple("n_heads", "n_kv_heads")
        yield from self.require_multiple("n_layers", "n_distinct_layers")
        yield from self.require_one_of("activation", ACTIVATIONS)
        yield from self.require_one_of("norm", ("post", "pre"))
        yield from self.require_probability("dropout")
        if self.windows is not None and len(self.windows) != self.n_layers:
            yield f"windows must name one for each of {self.n_layers} layers, but has {len(self.windows)}"
        if self.experts is not None and self.experts.n_dense_layers > self.n_layers:
            yield f"only {self.n_layers} layers can be dense (n_dense_layers={self.experts.n_dense_layers})"


@dataclass(frozen=True, kw_only=True)
class Projection(Config):
    """One matrix beside the stacks: output projection, pooler, classifier, the patches' embedding.

    Args:
        part: which of `PARTS` it counts as.
        d_in, d_out: its two widths.
        bias: whether it adds a constant.
        is_tied: whether its matrix is another one (the embedding table) and so costs no parameters; its bias does.
        acts_on: ``"every token"``; ``"first token"`` (BERT's pooler, a classifier on the class token); or ``"later
            tokens"``, all but the first (a vision model's patches, which the class token is not). The tokens are those
            of the last stack.
        n_first: how many tokens stand before the later ones.
    """

    part: str
    d_in: int
    d_out: int
    bias: bool = True
    is_tied: bool = False
    acts_on: str = "every token"
    n_first: int = 1

    @classmethod
    def to_logits(cls, config: Any, *, bias: bool = False) -> "Projection":
        """The output projection of a model whose config says whether it is tied to the embeddings."""
        sizes = {"d_in": config.d_model, "d_out": config.vocab_size}
        return cls(part="output projection", **sizes, bias=bias, is_tied=config.tie_embeddings)

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_one_of("part", PARTS)
        yield from self.require_positive_int("d_in", "d_out")
        yield from self.require_one_of("acts_on", ACTS_ON)

    def n_rows(self, n_tokens: int) -> int:
        """How many of a sequence's tokens it acts on."""
        return {"every token": n_tokens, "first token": 1, "later tokens": n_tokens - self.n_first}[self.acts_on]


@dataclass(frozen=True, kw_only=True)
class Blueprint(Config):
    """A whole model: its stacks in the order in which they run, and what stands around them.

    Args:
        name: what tables call the model.
        n_tokens: the length that costs are told for when no other is asked for; the longest sequence it was made for.
        stacks: an encoder, a decoder, or both in this order.
        projections: the matrices beside them, the output projection last.
        further: parameters that no matrix product uses, by part: token, position and segment tables (``"embeddings"``),
            norms outside the stacks (``"norms"``), T5's table of distances (``"attention"``).
    """

    name: str
    n_tokens: int
    stacks: tuple[Stack, ...]
    projections: tuple[Projection, ...] = ()
    further: Mapping[str, int] = field(default_factory=dict)

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("n_tokens")
        with_memory = [stack.cross_attention for stack in self.stacks]
        if with_memory not in ([False], [False, True]):
            names = [stack.name for stack in self.stacks]
            yield f"stacks must be one without cross-attention, and perhaps a second one with it (stacks={names})"
        for part, count in self.further.items():
            if part not in PARTS or not isinstance(count, int) or count < 0:
                yield f"further must give a count for each of {list(PARTS)} ({part!r}: {count!r})"

    def lengths(self, n_tokens: int, n_memory: int) -> tuple[int, ...]:
        """How many tokens each stack works on: the last ``n_tokens``, an encoder before it ``n_memory``."""
        return (n_tokens,) if len(self.stacks) == 1 else (n_memory, n_tokens)
