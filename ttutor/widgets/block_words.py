"""What the parts of a Transformer are called, what each is for, and its formula, for the model that is shown."""

import re
from typing import NamedTuple

from ttutor.transformer import TransformerConfig

__all__ = ["Kind", "kinds"]

_SIZE = re.compile(r"\b(d_model|d_head|d_ff|heads|vocab_size|max_len)\b")


class Kind(NamedTuple):
    """What all parts of one kind have in common: name, role, formula, and the formula of their parameters."""

    name: str
    role: str
    formula: str = ""
    count: str = ""

    def written(self, sizes: dict[str, int]) -> list[str]:
        """The four as they are read: numbers put in, beside a formula, and instead of the count's."""
        formula, count = (_SIZE.sub(lambda found: str(sizes[found[0]]), text) for text in (self.formula, self.count))
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
            "cross-attention", "Queries come from the decoder, keys and values from the encoder's output.",
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
