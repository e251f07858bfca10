"""Exercise: dropout, which must know whether it is being trained."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.facts import fact


def observe(answer, features, p):
    """Run a module that drops features, in both modes, which change so that no count of calls tells the mode."""
    module = answer(p)
    module.train()
    one = module(features)
    module.eval()
    evaluations = [module(features) for _ in range(1 + int(torch.randint(3, ())))]
    module.train()
    other = module(features)
    leaf = features.detach().clone().requires_grad_()
    through = module(leaf * 1)  # not the leaf itself, into which nobody may write
    gradient = torch.autograd.grad(through.sum(), leaf, allow_unused=True)[0] if through.requires_grad else None
    module.eval()
    runs = {"training": one, "again": other, "through": through.detach(), "gradient": gradient}
    return runs | {"evaluation": evaluations[0], "evaluation again": module(features)}


def view(runs, features, p):
    """Say what the module does."""
    one = runs["training"]
    if one.shape != features.shape:
        return _seen(f"of shape {tuple(one.shape)}")
    lost = one == 0
    return _seen(
        "as many features as came",
        share=_share(lost, p),
        factor=_factor(one, features, p),
        anew=not torch.equal(one, runs["again"]),
        together="together" if bool((lost.all(dim=-1) | ~lost.any(dim=-1)).all()) else "one by one",
        sentences=bool((lost == lost[:1]).all()),
        tokens=bool((lost == lost[:, :1]).all()),
        equally=bool((lost.sum(dim=-1) == lost[0, 0].sum()).all()),
        gradient=_gradient(runs["gradient"], runs["through"], features),
        evaluation=_evaluation(runs["evaluation"], runs["evaluation again"], features, p),
    )


def _seen(
    result,
    share="unknown",
    factor="unknown",
    anew=False,
    together="unknown",
    sentences=False,
    tokens=False,
    equally=False,
    gradient="unknown",
    evaluation="unknown",
):
    return {
        "the result": result,
        "the share that is set to zero in training": share,
        "what stays is multiplied in training by": factor,
        "a second call draws anew": anew,
        "the features of a token are lost": together,
        "the sentences of a batch lose the same": sentences,
        "the tokens of a sentence lose the same": tokens,
        "all tokens lose equally many": equally,
        "the gradient in training": gradient,
        "what evaluation does": evaluation,
    }


def _share(lost, p):
    share = lost.float().mean().item()
    for name, value in (("nothing", 0.0), ("p", p), ("1 - p", 1 - p), ("everything", 1.0)):
        if abs(share - value) < (0.05 if 0 < value < 1 else 1e-9):
            return name
    return "something else"


def _factor(came, features, p):
    kept = came != 0
    factors = (came / features)[kept]
    if not kept.any():
        return "nothing is left"
    for name, value in (("1/(1 - p)", 1 / (1 - p)), ("1", 1.0), ("1 - p", 1 - p), ("1/p", 1 / p)):
        if torch.allclose(factors, torch.full_like(factors, value), rtol=1e-4):
            return name
    return "different numbers" if factors.std() > 1e-3 * factors.abs().mean() else f"{factors.mean().item():.3g}"


def _gradient(gradient, through, features):
    if gradient is None:
        return "none"
    if torch.allclose(gradient, through / features, rtol=1e-3, atol=1e-5):
        return "goes through what stays"
    return "also goes through what is lost" if bool(gradient[through == 0].any()) else "is something else"


def _evaluation(one, other, features, p):
    if torch.equal(one, features) and torch.equal(other, features):
        return "nothing"
    if not torch.equal(one, other):
        return "it draws at random"
    return "it scales" if torch.allclose(one, (1 - p) * features) else "something else"


PROPERTIES = [
    fact(
        "the result",
        "as many features as came",
        "Dropping sets features to zero; it takes none away, so the shape stays as it was.",
        id="keeps_the_shape",
    ),
    fact(
        "what evaluation does",
        "nothing",
        "In evaluation mode dropout hands the features on as they came. A module knows its mode: `self.training`.",
        id="idle_in_evaluation",
    ),
    fact(
        "the share that is set to zero in training",
        "p",
        "In training each feature should be lost with probability p: how do you draw?",
        id="share_is_p",
    ),
    fact(
        "a second call draws anew",
        True,
        "Every call should lose other features, so that none can be relied on: where do you draw?",
        id="draws_anew",
    ),
    fact(
        "what stays is multiplied in training by",
        "1/(1 - p)",
        "The mean of each feature over many draws should be the feature itself: by what must the survivors grow?",
        id="keeps_the_mean",
    ),
    fact(
        "the features of a token are lost",
        "one by one",
        "Each feature has its own draw: has your random tensor the shape of the features?",
        id="one_by_one",
    ),
    fact(
        "the gradient in training",
        "goes through what stays",
        "The gradient should pass where features pass, with the same factor, and nowhere else.",
        id="gradient_follows",
    ),
]


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
    shape = drawn(generator, 3, 5), drawn(generator, 30, 35), drawn(generator, 50, 55)
    return 1 + torch.rand(*shape, generator=generator), one_of(generator, (0.15, 0.2, 0.3, 0.35))


exercise = Exercise(
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
    cases=(Case(name="a batch of positive features", inputs=_features, points=3),),
    explanation="""
`train()` and `eval()` set `self.training` in every module of a model, so the module needs no switch of its own. The
features are multiplied by a mask of zeros and ones: then the gradient is multiplied by the same mask, and passes
exactly where the features pass. The division by $1-p$ happens in training, so that evaluation has nothing to do.
""".strip(),
    hints="""
Who tells a module whether it is in training? Call `model.eval()` and look at what changes in the model.

Draw one uniform number for each feature and compare it with p. What is the mean of a feature that is lost with
probability p, and what brings it back?

Return the features at once unless `self.training`. Else multiply them by a tensor of their own shape, which is true
where `torch.rand_like` is at least p, and divide by 1 - p.
""",
    properties=PROPERTIES,
    observe=observe,
    view=view,
    forbids=("Dropout", "dropout", "dropout_", "alpha_dropout", "feature_dropout", "native_dropout"),
    difficulty=2,
    minutes=15,
    section="05-encoder",
)

exercise.mutations(r"""
active_in_eval: "not self.training" -> "False"
    In evaluation mode two runs of yours differ, as it drops there too. The mode stands in `self.training`; a function
    such as `F.dropout` does not know it unless told.
drops_in_eval: "not self.training" -> "self.training"
    The modes are exchanged: yours drops in evaluation and not in training. Look at your condition.
no_scale: " / (1 - self.p)" -> ""
    What stays is not scaled, so that sums are smaller in training by the factor 1 - p. By what must the survivors grow?
scales_in_eval: " / (1 - self.p)" -> "", "return features\n" -> "return features * (1 - self.p)\n"
    You scale in evaluation instead of in training. Dropout was first written so (2014); here evaluation does nothing,
    so the factor belongs into training.
keeps_p: "stays / (1 - self.p)" -> "~stays / self.p"
    A share of p stays, and it should be lost: with p = 0.3 you lose 70 % of the features. Look at your comparison.
drawn_once: "stays = torch.rand_like(features) >= self.p" ->
  "self.stays = stays = getattr(self, 'stays', torch.rand_like(features) >= self.p)"
    Every call loses the same features: you keep the draw, or you seed it anew. The network would learn to do without
    these and rely on the others.
whole_tokens: "rand_like(features)" -> "rand_like(features[..., :1])"
    Whole tokens vanish: there is one draw for each vector. Each feature needs a draw of its own.
same_for_batch: "rand_like(features)" -> "rand_like(features[0])"
    All sentences of the batch lose the same features: your draw has no batch axis.
same_for_tokens: "rand_like(features)" -> "rand_like(features[:, :1])"
    All tokens of a sentence lose the same features: your draw has no token axis.
one_for_all: "rand_like(features)" -> "rand_like(features[0, 0])"
    All tokens of all sentences lose the same features: you draw one vector. Each feature of each token needs a draw of
    its own.
detached: "features * stays" -> "features.detach() * stays"
    The values are right, but no gradient comes back through your module in training. What leaves the graph?
inplace: "features * stays / (1 - self.p)" -> "features.mul_(stays / (1 - self.p))"
    The features you were given have changed: whoever adds them again in a residual connection adds zeros. Multiply into
    a new tensor.
""")
