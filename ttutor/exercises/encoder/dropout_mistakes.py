"""What goes wrong with dropout."""

import torch
from torch import nn


class WithProbability(nn.Module):
    """What all of them share."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def stays(self, features):
        return torch.rand_like(features) >= self.p


class ActiveInEval(WithProbability):
    def forward(self, features):
        return features * self.stays(features) / (1 - self.p)


class NeverDrops(WithProbability):
    def forward(self, features):
        return features


class OnlyScales(WithProbability):
    def forward(self, features):
        return features / (1 - self.p) if self.training else features


class DropsInEval(WithProbability):
    def forward(self, features):
        return features if self.training else features * self.stays(features) / (1 - self.p)


class NoScale(WithProbability):
    def forward(self, features):
        return features * self.stays(features) if self.training else features


class ScalesInEval(WithProbability):
    def forward(self, features):
        return features * self.stays(features) if self.training else features * (1 - self.p)


class ScalesTwice(WithProbability):
    def forward(self, features):
        return features * self.stays(features) / (1 - self.p) if self.training else features * (1 - self.p)


class ScalesDown(WithProbability):
    def forward(self, features):
        return features * self.stays(features) * (1 - self.p) if self.training else features


class KeepsP(WithProbability):
    def forward(self, features):
        return features * ~self.stays(features) / self.p if self.training else features


class KeepsPScaledRight(WithProbability):
    def forward(self, features):
        return features * ~self.stays(features) / (1 - self.p) if self.training else features


class ScaledByP(WithProbability):
    def forward(self, features):
        return features * self.stays(features) / self.p if self.training else features


class DrawnOnce(WithProbability):
    def forward(self, features):
        if not self.training:
            return features
        if not hasattr(self, "kept"):
            self.kept = self.stays(features)
        return features * self.kept / (1 - self.p)


class SeededAnew(WithProbability):
    def forward(self, features):
        if not self.training:
            return features
        torch.manual_seed(0)
        return features * self.stays(features) / (1 - self.p)


class WholeTokens(WithProbability):
    def forward(self, features):
        return features * self.stays(features[..., :1]) / (1 - self.p) if self.training else features


class SameForTheBatch(WithProbability):
    def forward(self, features):
        return features * self.stays(features[0]) / (1 - self.p) if self.training else features


class SameForEveryToken(WithProbability):
    def forward(self, features):
        return features * self.stays(features[0, 0]) / (1 - self.p) if self.training else features


class Noise(WithProbability):
    def forward(self, features):
        spread = (self.p / (1 - self.p)) ** 0.5
        return features * (1 + spread * torch.randn_like(features)) if self.training else features


class Exactly(WithProbability):
    def forward(self, features):
        if not self.training:
            return features
        order = torch.rand_like(features).argsort(dim=-1)
        return features * (order >= round(self.p * features.shape[-1])) / (1 - self.p)


class MeanRestored(WithProbability):
    def forward(self, features):
        if not self.training:
            return features
        kept = self.stays(features)
        return features * kept / kept.float().mean(dim=-1, keepdim=True).clamp(min=1e-6)


class Detached(WithProbability):
    def forward(self, features):
        return features.detach() * self.stays(features) / (1 - self.p) if self.training else features


class ThroughEverything(WithProbability):
    def forward(self, features):
        if not self.training:
            return features
        return features + (features * (self.stays(features) / (1 - self.p) - 1)).detach()


class InPlace(WithProbability):
    def forward(self, features):
        return features.mul_(self.stays(features) / (1 - self.p)) if self.training else features
