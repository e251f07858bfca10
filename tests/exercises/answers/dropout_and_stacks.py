"""Answers to the exercises on dropout and stacks: right ones in other styles, and mistakes that stand in no list."""

import torch
from torch import nn


class DropoutByBernoulli(nn.Module):
    """Draws what stays, and picks."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, features):
        if self.training:
            stays = torch.bernoulli(torch.full_like(features, 1 - self.p))
            return torch.where(stays == 1, features / (1 - self.p), 0.0)
        return features


class DropoutByMaskedFill(nn.Module):
    """Scales first, and fills with zeros where a uniform number is small."""

    def __init__(self, p):
        super().__init__()
        self.p, self.scale = p, 1 / (1 - p)

    def forward(self, features):
        if not self.training:
            return features
        return (features * self.scale).masked_fill(torch.rand(features.shape) < self.p, 0)


class DropsHalf(DropoutByBernoulli):
    """Loses half of the features, whatever p is."""

    def __init__(self, p):
        super().__init__(0.5)


class DropsTheLastFeature(DropoutByBernoulli):
    """Loses the last feature in evaluation."""

    def forward(self, features):
        features = super().forward(features)
        return features if self.training else features * (torch.arange(features.shape[-1]) < features.shape[-1] - 1)


class ScaledByTwo(DropoutByBernoulli):
    """Scales by 2, as if p were a half."""

    def forward(self, features):
        features = super().forward(features)
        return features * (2 * (1 - self.p)) if self.training else features


class FlattensFeatures(DropoutByBernoulli):
    """Returns the features of a sentence in one line."""

    def forward(self, features):
        return super().forward(features).flatten(1)


class HalfTheGradient(DropoutByBernoulli):
    """Right values, half of the gradient."""

    def forward(self, features):
        features = super().forward(features)
        return features / 2 + features.detach() / 2


class StackByNames(nn.Module):
    """Layers under names of their own."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.n_layers = n_layers
        for number in range(n_layers):
            setattr(self, f"layer_{number}", make_layer())

    def forward(self, hidden):
        for number in range(self.n_layers):
            hidden = getattr(self, f"layer_{number}")(hidden)
        return hidden


class StackWithModules(nn.Module):
    """Registers each module in a list that torch knows."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(n_layers):
            self.blocks.append(make_layer())

    def forward(self, hidden):
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


class StackInSequence(nn.Module):
    """The container of torch that runs its modules itself."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.blocks = nn.Sequential(*[make_layer() for _ in range(n_layers)])

    def forward(self, hidden):
        return self.blocks(hidden)


class StackWithALayerToSpare(StackWithModules):
    """Makes one layer more and never uses it."""

    def __init__(self, make_layer, n_layers):
        super().__init__(make_layer, n_layers)
        self.spare = make_layer()

    def forward(self, hidden):
        return super().forward(hidden) / 2


class StackThatRepeats(StackWithModules):
    """Only the first layer works, as often as there are layers."""

    def forward(self, hidden):
        for _ in self.blocks:
            hidden = self.blocks[0](hidden)
        return hidden


class StackOfItsOwn(nn.Module):
    """Makes layers without asking the function."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(n_layers))

    def forward(self, hidden):
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


RIGHT = {
    "encoder.dropout": (DropoutByBernoulli, DropoutByMaskedFill),
    "encoder.layer_stack": (StackByNames, StackWithModules, StackInSequence),
}

STRAY = {
    "encoder.dropout": (
        (DropsHalf, "share_is_p"),
        (DropsTheLastFeature, "idle_in_evaluation"),
        (ScaledByTwo, "keeps_the_mean"),
        (FlattensFeatures, "keeps_the_shape"),
        (HalfTheGradient, "gradient_follows"),
    ),
    "encoder.layer_stack": (
        (StackWithALayerToSpare, "optimiser_sees_all"),
        (StackThatRepeats, "gradient_reaches_all"),
        (StackOfItsOwn, "makes_each"),
    ),
}
