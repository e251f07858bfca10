"""What can be seen of dropout from outside."""

import torch

from ttutor.exercises.facts import fact


def observe(answer, features, p):
    """Run a module that drops features, in both modes."""
    module = answer(p)
    module.train()
    one, other = module(features), module(features)
    leaf = features.detach().clone().requires_grad_()
    through = module(leaf * 1)  # not the leaf itself, into which nobody may write
    gradient = torch.autograd.grad(through.sum(), leaf, allow_unused=True)[0] if through.requires_grad else None
    module.eval()
    runs = {"training": one, "again": other, "through": through.detach(), "gradient": gradient}
    return runs | {"evaluation": module(features), "evaluation again": module(features)}


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


PROPERTIES = (
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
)
