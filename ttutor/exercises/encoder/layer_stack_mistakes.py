"""What goes wrong when layers are stacked."""

import copy

import torch
from torch import nn


class PythonList(nn.Module):
    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.layers = [make_layer() for _ in range(n_layers)]

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


class Listed(nn.Module):
    """A stack whose layers are registered as they should be."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


class OneLayer(Listed):
    def __init__(self, make_layer, n_layers):
        nn.Module.__init__(self)
        self.layers = nn.ModuleList([make_layer()] * n_layers)


class OneLayerInAList(PythonList):
    def __init__(self, make_layer, n_layers):
        nn.Module.__init__(self)
        self.layers = [make_layer()] * n_layers


class OneLayerAgainAndAgain(nn.Module):
    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.layer, self.n_layers = make_layer(), n_layers

    def forward(self, hidden):
        for _ in range(self.n_layers):
            hidden = self.layer(hidden)
        return hidden


class Copies(Listed):
    def __init__(self, make_layer, n_layers):
        nn.Module.__init__(self)
        layer = make_layer()
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(n_layers))


class CopiesOfTheWeights(Listed):
    def __init__(self, make_layer, n_layers):
        super().__init__(make_layer, n_layers)
        for layer in self.layers[1:]:
            layer.load_state_dict(self.layers[0].state_dict())


class SideBySide(Listed):
    def forward(self, hidden):
        for layer in self.layers:
            result = layer(hidden)
        return result


class SideBySideSummed(Listed):
    def forward(self, hidden):
        return torch.stack([layer(hidden) for layer in self.layers]).sum(dim=0)


class Reversed(Listed):
    def forward(self, hidden):
        for layer in reversed(self.layers):
            hidden = layer(hidden)
        return hidden


class OneTooFew(Listed):
    def __init__(self, make_layer, n_layers):
        super().__init__(make_layer, n_layers - 1)


class FirstOnly(Listed):
    def forward(self, hidden):
        for layer in self.layers:
            return layer(hidden)
        return hidden


class Six(Listed):
    def __init__(self, make_layer, n_layers):
        super().__init__(make_layer, 6)


class MadeInForward(nn.Module):
    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.make_layer, self.n_layers = make_layer, n_layers

    def forward(self, hidden):
        for _ in range(self.n_layers):
            hidden = self.make_layer()(hidden)
        return hidden


class Detached(Listed):
    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden.detach())
        return hidden


class Residual(Listed):
    def forward(self, hidden):
        for layer in self.layers:
            hidden = hidden + layer(hidden)
        return hidden


class AllOutputs(Listed):
    def forward(self, hidden):
        outputs = []
        for layer in self.layers:
            hidden = layer(hidden)
            outputs.append(hidden)
        return torch.stack(outputs)


class Activated(Listed):
    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden).relu()
        return hidden


class Frozen(Listed):
    def __init__(self, make_layer, n_layers):
        super().__init__(make_layer, n_layers)
        self.requires_grad_(False)
