"""Answers to the exercises on tables in modules: right ones in other styles, and mistakes that stand in no list."""

import torch
from torch import nn
from torch.nn import functional


class PositionsNotSaved(nn.Module):
    """A buffer that stays out of checkpoints."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("rows", table.clone(), persistent=False)

    def forward(self, hidden):
        return self.rows[: hidden.size(1)].unsqueeze(0) + hidden


class PositionsThatFollow(nn.Module):
    """A plain tensor that is brought to where the input is."""

    def __init__(self, table):
        super().__init__()
        self.rows = table

    def forward(self, hidden):
        length = hidden.shape[1]
        return hidden + self.rows.to(hidden)[torch.arange(length)]


class PositionsWithAGain(nn.Module):
    """Scales the table by a number that is learnt."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("rows", table.clone())
        self.gain = nn.Parameter(torch.tensor(0.5))

    def forward(self, hidden):
        return hidden + self.gain * self.rows[: hidden.shape[1]]


class PositionsLeftBehind(nn.Module):
    """A plain tensor, and half of it."""

    def __init__(self, table):
        super().__init__()
        self.rows = table / 2

    def forward(self, hidden):
        return hidden + self.rows[: hidden.shape[1]]


class PositionsWithoutGradient(nn.Module):
    """Half of the table, and nothing comes back."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("rows", table / 2)

    def forward(self, hidden):
        return hidden.detach() + self.rows[: hidden.shape[1]]


class TiedByLinear(nn.Module):
    """Two modules, one parameter."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.project = nn.Linear(d_model, vocab_size, bias=False)
        self.table = nn.Embedding(vocab_size, d_model)
        self.table.weight = self.project.weight

    def embed(self, token_ids):
        return self.table(token_ids)

    def to_logits(self, hidden):
        return self.project(hidden)


class TiedByHand(nn.Module):
    """One parameter, one-hot vectors and einsum."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(d_model, vocab_size) / d_model**0.5)

    def embed(self, token_ids):
        one_hot = functional.one_hot(token_ids, self.vectors.shape[1]).to(self.vectors)
        return torch.einsum("btv,dv->btd", one_hot, self.vectors)

    def to_logits(self, hidden):
        return torch.einsum("btd,dv->btv", hidden, self.vectors)


class TiedWithAMap(TiedByLinear):
    """A further map before the projection."""

    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.map = nn.Linear(d_model, d_model)

    def to_logits(self, hidden):
        return super().to_logits(self.map(hidden))


class TiedWithASpare(TiedByLinear):
    """Numbers that nobody uses."""

    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.spare = nn.Parameter(torch.zeros(3))


class CopiedWithABias(nn.Module):
    """A copy, and a bias of zeros."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.to_logits = nn.Linear(d_model, vocab_size)
        self.to_logits.weight = nn.Parameter(self.embed.weight.detach().clone())
        nn.init.zeros_(self.to_logits.bias)


class EmbedsWithoutLearningTwice(TiedByLinear):
    """The embedding is detached, and one parameter is left over."""

    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.spare = nn.Parameter(torch.zeros(3))

    def embed(self, token_ids):
        return super().embed(token_ids).detach()


RIGHT = {
    "positions.position_table": (PositionsNotSaved, PositionsThatFollow),
    "transformer.tied_embeddings": (TiedByLinear, TiedByHand),
}

STRAY = {
    "positions.position_table": (
        (PositionsWithAGain, "nothing_to_train"),
        (PositionsLeftBehind, "travels"),
        (PositionsWithoutGradient, "gradient_passes"),
    ),
    "transformer.tied_embeddings": (
        (TiedWithAMap, "logits_are_products"),
        (TiedWithASpare, "one_table"),
        (CopiedWithABias, "tied_from_logits"),
        (EmbedsWithoutLearningTwice, "tied_from_embeddings"),
    ),
}
