"""The whole Transformer in one scroll: ten short classes, from attention to three models.

A number in brackets is the equation or section of Vaswani et al. (2017), "Attention Is
All You Need". Every line that changes a shape says the new one. There is no validation,
no cache and no choice but the sizes and the place of the norms: the package's modules
compute the same (the tests hold them equal) and add what users need.
"""

import math
from dataclasses import dataclass

import torch
from einops import einsum, rearrange
from torch import Tensor, nn

PADDING = 0
"""The id of the token that fills short sentences up; nobody looks at it."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a model is, and where its norms stand; the paper's base model (table 3)."""

    vocab_size: int
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    n_layers: int = 6
    dropout: float = 0.1
    pre_norm: bool = False


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Compare queries with keys, blend values; the mask is True where one may look (1)."""
    pairs = "batch heads query d_head, batch heads key d_head -> batch heads query key"
    scores = einsum(query, key, pairs) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)  # each row, one query's, sums to one
    blend = "batch heads query key, batch heads key d_head -> batch heads query d_head"
    return einsum(weights, value, blend)


class MultiHeadAttention(nn.Module):
    """Several lookups at once, each in a space of its own (3.2.2)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.n_heads = size.n_heads
        self.to_query = nn.Linear(size.d_model, size.d_model)
        self.to_key = nn.Linear(size.d_model, size.d_model)
        self.to_value = nn.Linear(size.d_model, size.d_model)
        self.to_output = nn.Linear(size.d_model, size.d_model)

    def forward(self, asking: Tensor, asked: Tensor, mask: Tensor) -> Tensor:
        split = "batch tokens (heads d_head) -> batch heads tokens d_head"
        merge = "batch heads tokens d_head -> batch tokens (heads d_head)"
        query = rearrange(self.to_query(asking), split, heads=self.n_heads)
        key = rearrange(self.to_key(asked), split, heads=self.n_heads)
        value = rearrange(self.to_value(asked), split, heads=self.n_heads)
        found = attention(query, key, value, mask)  # batch heads tokens d_head
        return self.to_output(rearrange(found, merge))  # batch tokens d_model


class FeedForward(nn.Module):
    """What each token does by itself with what it has gathered (3.3)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.widen = nn.Linear(size.d_model, size.d_ff)
        self.narrow = nn.Linear(size.d_ff, size.d_model)

    def forward(self, hidden: Tensor) -> Tensor:
        wide = self.widen(hidden).relu()  # batch tokens d_ff
        return self.narrow(wide)  # batch tokens d_model (2)


class LayerNorm(nn.Module):
    """Give each token mean 0 and variance 1, then a gain and a bias (Ba et al. 2016)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, hidden: Tensor) -> Tensor:
        centred = hidden - hidden.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)  # batch tokens 1
        return self.gain * centred / (variance + 1e-5).sqrt() + self.bias


class Residual(nn.Module):
    """Add what a sublayer writes to what came in: nothing is lost on the way (3.1)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm = LayerNorm(size.d_model)
        self.dropout = nn.Dropout(size.dropout)
        self.pre_norm = size.pre_norm

    def forward(self, hidden: Tensor, sublayer) -> Tensor:
        if self.pre_norm:
            return hidden + self.dropout(sublayer(self.norm(hidden)))
        return self.norm(hidden + self.dropout(sublayer(hidden)))


class Layer(nn.Module):
    """Gather from this sentence, in a decoder also from the encoder's; then think (3.1)."""

    def __init__(self, size: Size, has_memory: bool = False) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(size)
        self.around_self_attention = Residual(size)
        if has_memory:
            self.cross_attention = MultiHeadAttention(size)
            self.around_cross_attention = Residual(size)
        self.feed_forward = FeedForward(size)
        self.around_feed_forward = Residual(size)

    def forward(self, hidden: Tensor, mask: Tensor, memory=None, readable=None):
        def look_around(stream: Tensor) -> Tensor:
            return self.self_attention(stream, stream, mask)

        def look_over(stream: Tensor) -> Tensor:  # queries from here (3.2.3)
            return self.cross_attention(stream, memory, readable)

        hidden = self.around_self_attention(hidden, look_around)
        if memory is not None:
            hidden = self.around_cross_attention(hidden, look_over)
        return self.around_feed_forward(hidden, self.feed_forward)


class Stack(nn.Module):
    """Layer upon layer: an encoder, or with a memory to look at, a decoder."""

    def __init__(self, size: Size, has_memory: bool = False) -> None:
        super().__init__()
        layers = (Layer(size, has_memory) for _ in range(size.n_layers))
        self.layers = nn.ModuleList(layers)
        self.final_norm = LayerNorm(size.d_model) if size.pre_norm else nn.Identity()

    def forward(self, hidden: Tensor, mask: Tensor, memory=None, readable=None):
        for layer in self.layers:
            hidden = layer(hidden, mask, memory, readable)
        return self.final_norm(hidden)  # batch tokens d_model


class Embeddings(nn.Module):
    """A learned vector for each token, and a fixed one for each place (3.4, 3.5)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.table = nn.Embedding(size.vocab_size, size.d_model)
        nn.init.normal_(self.table.weight, std=size.d_model**-0.5)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, token_ids: Tensor) -> Tensor:
        d_model = self.table.embedding_dim
        tokens = self.table(token_ids) * math.sqrt(d_model)  # batch tokens d_model
        place = torch.arange(token_ids.shape[1], device=token_ids.device)
        feature = torch.arange(0, d_model, 2, device=token_ids.device)
        frequency = 10_000 ** (-feature / d_model)  # pairs
        angle = einsum(place, frequency, "tokens, pairs -> tokens pairs")
        waves = [angle.sin(), angle.cos()]
        waves = rearrange(waves, "kinds tokens pairs -> tokens (pairs kinds)")
        return self.dropout(tokens + waves)  # the same waves for every sentence

    def to_logits(self, hidden: Tensor) -> Tensor:
        """The table read backwards: how well does each token fit here? (3.4)"""
        fit = "batch tokens d_model, vocab d_model -> batch tokens vocab"
        return einsum(hidden, self.table.weight, fit)


def may_look_at(token_ids: Tensor) -> Tensor:
    """Every real token."""
    return rearrange(token_ids != PADDING, "batch keys -> batch 1 1 keys")


def may_look_back(token_ids: Tensor) -> Tensor:
    """Every real token up to one's own: the next one is to be predicted (3.2.3)."""
    n_tokens = token_ids.shape[1]
    past = torch.ones(n_tokens, n_tokens, device=token_ids.device).tril().bool()
    return past & may_look_at(token_ids)  # batch 1 queries keys


class Transformer(nn.Module):
    """Encoder and decoder: read one sentence, write another (figure 1)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embeddings = Embeddings(size)
        self.encoder = Stack(size)
        self.decoder = Stack(size, has_memory=True)

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        readable = may_look_at(source_ids)
        writable = may_look_back(target_ids)
        memory = self.encoder(self.embeddings(source_ids), readable)
        hidden = self.decoder(self.embeddings(target_ids), writable, memory, readable)
        return self.embeddings.to_logits(hidden)  # batch target vocab


class GPT(nn.Module):
    """A decoder alone: continue a text, token by token."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embeddings = Embeddings(size)
        self.decoder = Stack(size)

    def forward(self, token_ids: Tensor) -> Tensor:
        mask = may_look_back(token_ids)
        hidden = self.decoder(self.embeddings(token_ids), mask)  # batch tokens d_model
        return self.embeddings.to_logits(hidden)  # batch tokens vocab


class Classifier(nn.Module):
    """An encoder alone, read at its first token, [CLS] (Devlin et al. 2019)."""

    def __init__(self, size: Size, n_classes: int) -> None:
        super().__init__()
        self.embeddings = Embeddings(size)
        self.encoder = Stack(size)
        self.to_class = nn.Linear(size.d_model, n_classes)

    def forward(self, token_ids: Tensor) -> Tensor:
        mask = may_look_at(token_ids)
        hidden = self.encoder(self.embeddings(token_ids), mask)  # batch tokens d_model
        return self.to_class(hidden[:, 0])  # batch classes
