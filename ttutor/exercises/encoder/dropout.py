"""Exercise: dropout, which must know whether it is being trained."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.exercises.encoder import dropout_mistakes as wrong
from ttutor.exercises.encoder.dropout_probes import PROPERTIES, observe, view
from ttutor.exercises.exercise import Case, Exercise, Mistake


class FeatureDropout(nn.Module):
    """While training, set each feature to zero with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__()
        ...

    def forward(self, features: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Drop features in training mode; hand them on as they are in evaluation mode."""
        ...


class Solution(nn.Module):
    """While training, set each feature to zero with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, features: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Drop features in training mode; hand them on as they are in evaluation mode."""
        if not self.training:
            return features
        stays = torch.rand_like(features) >= self.p
        return features * stays / (1 - self.p)


def _features(generator):
    return 1 + torch.rand(4, 30, 50, generator=generator), 0.3


EXERCISES = (
    Exercise(
        id="encoder.dropout",
        title="Dropout that knows when to stop",
        statement="""
Write dropout as a module. In training mode every feature is set to zero with probability `p`, each by a draw of its
own and anew in every call; those that stay are multiplied by $1/(1-p)$, so that the mean over many draws is the
feature itself. In evaluation mode nothing happens at all. The gradient passes where the features pass.
""".strip(),
        stub=FeatureDropout,
        reference=nn.Dropout,
        solution=Solution,
        cases=(Case(name="a batch of positive features and p = 0.3", inputs=_features, points=3),),
        explanation="""
`train()` and `eval()` set `self.training` in every module of a model, so the module needs no switch of its own. The
features are multiplied by a mask of zeros and ones: then the gradient is multiplied by the same mask, and passes
exactly where the features pass. The division by $1-p$ happens in training, so that evaluation has nothing to do.
""".strip(),
        hints=(
            "Who tells a module whether it is in training? Call `model.eval()` and look at what changes in the model.",
            (
                "Draw one uniform number for each feature and compare it with p. What is the mean of a feature that "
                "is lost with probability p, and what brings it back?"
            ),
            (
                "Return the features at once unless `self.training`. Else multiply them by a tensor of their own "
                "shape, which is true where `torch.rand_like` is at least p, and divide by 1 - p."
            ),
        ),
        mistakes=(
            Mistake(
                id="active_in_eval",
                says="In evaluation mode two runs of yours differ, as it drops there too. The mode stands in "
                "`self.training`; a function such as `F.dropout` does not know it unless told.",
                answers=(wrong.ActiveInEval,),
            ),
            Mistake(
                id="never_drops",
                says="In training mode no feature is lost: your module does nothing in either mode.",
                answers=(wrong.NeverDrops,),
            ),
            Mistake(
                id="only_scales",
                says="In training mode the features grow but none is lost. What is drawn, and where is it used?",
                answers=(wrong.OnlyScales,),
            ),
            Mistake(
                id="drops_in_eval",
                says="The modes are exchanged: yours drops in evaluation and not in training. Look at your condition.",
                answers=(wrong.DropsInEval,),
            ),
            Mistake(
                id="no_scale",
                says="What stays is not scaled, so that sums are smaller in training by the factor 1 - p. "
                "By what must the survivors grow?",
                answers=(wrong.NoScale,),
            ),
            Mistake(
                id="scales_in_eval",
                says="You scale in evaluation instead of in training. Dropout was first written so (2014); here "
                "evaluation shall do nothing, so the factor belongs into training.",
                answers=(wrong.ScalesInEval,),
            ),
            Mistake(
                id="scales_twice",
                says="You scale up in training and down in evaluation. Either would do; both together are one too "
                "many, and evaluation shall do nothing.",
                answers=(wrong.ScalesTwice,),
            ),
            Mistake(
                id="scales_down",
                says="What stays gets smaller, and it should grow: on average it must make up for what is lost.",
                answers=(wrong.ScalesDown,),
            ),
            Mistake(
                id="keeps_p",
                says="A share of p stays, and it should be lost: with p = 0.3 you lose 70 % of the features. "
                "Look at your comparison.",
                answers=(wrong.KeepsP, wrong.KeepsPScaledRight),
            ),
            Mistake(
                id="scaled_by_p",
                says="The right share is lost, but what stays is divided by p. Which share is left over?",
                answers=(wrong.ScaledByP,),
            ),
            Mistake(
                id="drawn_once",
                says="Every call loses the same features: you keep the draw, or you seed it anew. The network would "
                "learn to do without these and rely on the others.",
                answers=(wrong.DrawnOnce, wrong.SeededAnew),
            ),
            Mistake(
                id="whole_tokens",
                says="Whole tokens vanish: there is one draw for each vector. Each feature needs a draw of its own.",
                answers=(wrong.WholeTokens,),
            ),
            Mistake(
                id="same_for_batch",
                says="All sentences of the batch lose the same features: your draw has no batch axis.",
                answers=(wrong.SameForTheBatch,),
            ),
            Mistake(
                id="same_for_every_token",
                says="Every token loses the same features: your draw has the size of one vector only.",
                answers=(wrong.SameForEveryToken,),
            ),
            Mistake(
                id="noise",
                says="No feature is lost; each is multiplied by a random number. That is Gaussian dropout. Here the "
                "factor is either 0 or one fixed number.",
                answers=(wrong.Noise,),
            ),
            Mistake(
                id="exactly",
                says="Every token loses exactly the same number of features. The draws should be independent: then the "
                "number varies, and p is its mean share.",
                answers=(wrong.Exactly,),
            ),
            Mistake(
                id="mean_restored",
                says="You divide by the share that happened to stay in each token. The factor is the same for all, and "
                "known beforehand from p.",
                answers=(wrong.MeanRestored,),
            ),
            Mistake(
                id="detached",
                says="The values are right, but no gradient comes back through your module in training. What leaves "
                "the graph?",
                answers=(wrong.Detached,),
            ),
            Mistake(
                id="through_everything",
                says="The gradient also passes where features were lost. A feature that is set to zero has no "
                "influence on the loss, and so no gradient.",
                answers=(wrong.ThroughEverything,),
            ),
            Mistake(
                id="inplace",
                says="The features you were given have changed: whoever adds them again in a residual connection adds "
                "zeros. Multiply into a new tensor.",
                answers=(wrong.InPlace,),
            ),
        ),
        properties=PROPERTIES,
        observe=observe,
        view=view,
        forbids=("Dropout", "dropout", "dropout_", "alpha_dropout", "feature_dropout", "native_dropout"),
        difficulty=2,
        minutes=15,
        section="05-encoder",
    ),
)
