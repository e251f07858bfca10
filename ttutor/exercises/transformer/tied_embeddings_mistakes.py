"""What goes wrong when one table shall embed tokens and project to logits."""

import torch
from torch import nn
from torch.nn import functional


class Tied(nn.Module):
    """One table for both, as it should be."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocab_size, d_model))

    def embed(self, token_ids):
        return self.table[token_ids]

    def to_logits(self, hidden):
        return hidden @ self.table.T


class TwoTables(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.projection = nn.Linear(d_model, vocab_size, bias=False)

    def embed(self, token_ids):
        return self.embedding(token_ids)

    def to_logits(self, hidden):
        return self.projection(hidden)


class Copied(TwoTables):
    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.projection.weight.data = self.embedding.weight.data.clone()


class CopiedParameter(TwoTables):
    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.projection.weight = nn.Parameter(self.embedding.weight.detach().clone())


class SharedStorage(TwoTables):
    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.projection.weight.data = self.embedding.weight.data


class WithBias(TwoTables):
    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.projection = nn.Linear(d_model, vocab_size)
        self.projection.weight = self.embedding.weight


class LogitsDetached(Tied):
    def to_logits(self, hidden):
        return hidden @ self.table.detach().T


class EmbeddingDetached(Tied):
    def embed(self, token_ids):
        return self.table.detach()[token_ids]


class HiddenDetached(Tied):
    def to_logits(self, hidden):
        return hidden.detach() @ self.table.T


class NotTrained(Tied):
    def __init__(self, vocab_size, d_model):
        nn.Module.__init__(self)
        self.register_buffer("table", torch.randn(vocab_size, d_model))


class Frozen(Tied):
    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.table.requires_grad_(False)


class ScaledLogits(Tied):
    def to_logits(self, hidden):
        return super().to_logits(hidden) / hidden.shape[-1] ** 0.5


class ScaledEmbedding(Tied):
    def embed(self, token_ids):
        return super().embed(token_ids) * self.table.shape[1] ** 0.5


class Probabilities(Tied):
    def to_logits(self, hidden):
        return super().to_logits(hidden).softmax(dim=-1)


class Cosines(Tied):
    def to_logits(self, hidden):
        return functional.normalize(hidden, dim=-1) @ functional.normalize(self.table, dim=-1).T


class AllZeros(Tied):
    def __init__(self, vocab_size, d_model):
        nn.Module.__init__(self)
        self.table = nn.Parameter(torch.zeros(vocab_size, d_model))


class FirstTokenIsPadding(Tied):
    def embed(self, token_ids):
        return super().embed(token_ids) * (token_ids != 0)[..., None]


class WritesIntoTheTable(Tied):
    def embed(self, token_ids):
        with torch.no_grad():
            self.table.div_(self.table.norm(dim=1, keepdim=True))
        return super().embed(token_ids)
