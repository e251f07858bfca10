"""What goes wrong with a fixed table of positions in a module."""

import torch
from torch import nn


class Buffered(nn.Module):
    """A table that is kept as it should be."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)

    def rows(self, hidden):
        return self.table[: hidden.shape[1]]

    def forward(self, hidden):
        return hidden + self.rows(hidden)


class AsParameter(Buffered):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.table = nn.Parameter(table)


class AsTrainedEmbedding(AsParameter):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.positions = nn.Embedding.from_pretrained(table, freeze=False)

    def rows(self, hidden):
        return self.positions(torch.arange(hidden.shape[1], device=hidden.device))


class AsFrozenParameter(Buffered):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.table = nn.Parameter(table, requires_grad=False)


class AsFrozenEmbedding(AsTrainedEmbedding):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.positions = nn.Embedding.from_pretrained(table)


class AsPlainTensor(Buffered):
    def __init__(self, table):
        nn.Module.__init__(self)
        self.table = table


class WholeTable(Buffered):
    def rows(self, hidden):
        return self.table


class FromOne(Buffered):
    def rows(self, hidden):
        return self.table[1 : hidden.shape[1] + 1]


class LastRows(Buffered):
    def rows(self, hidden):
        return self.table[-hidden.shape[1] :]


class AlongTheBatch(Buffered):
    def rows(self, hidden):
        return self.table[: hidden.shape[0], None]


class FirstRowForAll(Buffered):
    def rows(self, hidden):
        return self.table[0]


class Multiplied(Buffered):
    def forward(self, hidden):
        return hidden * self.rows(hidden)


class OnlyPositions(Buffered):
    def forward(self, hidden):
        return self.rows(hidden).expand_as(hidden)


class TableIgnored(Buffered):
    def __init__(self, table):
        super().__init__(torch.rand_like(table))


class ScaledHidden(Buffered):
    def forward(self, hidden):
        return hidden * hidden.shape[-1] ** 0.5 + self.rows(hidden)


class ConvertsHidden(Buffered):
    def forward(self, hidden):
        return (hidden + self.rows(hidden)).float()


class Detached(Buffered):
    def forward(self, hidden):
        return hidden.detach() + self.rows(hidden)


class InPlace(Buffered):
    def forward(self, hidden):
        hidden += self.rows(hidden)
        return hidden
