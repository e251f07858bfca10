"""What can be seen of a table that is used twice."""

import torch
from torch import Tensor

from ttutor.exercises.facts import fact, numbers_in, trainable_numbers_in

USES = ("embeddings", "logits")


def observe(answer, vocab_size, hidden):
    """Build the module, use it at both ends, and let it learn from each."""
    module = answer(vocab_size, hidden.shape[-1])
    tokens = torch.arange(vocab_size)[None]
    before = module.to_logits(hidden).detach().clone()
    vectors = module.embed(tokens).detach()[0].clone()
    logits = module.to_logits(hidden).detach().clone()
    leaf = hidden.detach().clone().requires_grad_()
    through = module.to_logits(leaf * 1)
    uses = [lambda: module.embed(tokens), lambda: module.to_logits(hidden)]
    return {
        "five embeddings": module.embed(tokens[:, :5]).detach().clone(),
        "vectors": vectors,
        "logits before": before,
        "logits": logits,
        "numbers that an optimiser is handed": numbers_in(module),
        "numbers that it may change": trainable_numbers_in(module),
        "gradient": torch.autograd.grad(through.sum(), leaf, allow_unused=True)[0] if through.requires_grad else None,
        "steps": [_step(module, use, uses) for use in uses],
    }


def view(runs, vocab_size, hidden):
    """Say what can be seen."""
    vectors, logits = runs["vectors"], runs["logits"]
    seen = {
        "the shape of the embeddings": str(tuple(runs["five embeddings"].shape)),
        "the shape of the logits": str(tuple(logits.shape)),
        "numbers that an optimiser is handed": runs["numbers that an optimiser is handed"],
        "numbers that it may change": runs["numbers that it may change"],
        "different vectors": len({tuple(vector.tolist()) for vector in vectors}),
        "token 0 has a vector": bool(vectors[0].any()),
        "logits against products with the embeddings": _compare(logits, hidden @ vectors.T),
        "calling embed leaves the logits as they were": torch.equal(runs["logits before"], logits),
        "hidden vectors get a gradient": runs["gradient"] is not None,
    }
    for name, (before, after) in zip(USES, runs["steps"], strict=True):
        moved = [use for use, one, other in zip(USES, before, after, strict=True) if not torch.equal(one, other)]
        seen[f"a step on the {name} moves"] = " and ".join(moved) or "nothing"
    return seen


def _compare(logits: Tensor, products: Tensor) -> str:
    if logits.shape != products.shape:
        return "of another shape"
    if torch.allclose(logits, products, rtol=1e-4, atol=1e-5):
        return "equal"
    ratio = logits / products
    if torch.allclose(ratio, ratio.flatten()[0].expand_as(ratio), rtol=1e-3):
        return f"times {ratio.flatten()[0].item():.2g}"
    sums = logits.sum(dim=-1)
    if torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return "of sum 1"
    return "all between -1 and 1" if logits.abs().max() <= 1.0001 else "other numbers"


def _step(module, use, uses):
    """Take one step of gradient descent on the squares of one use; return what all uses give before and after."""
    before = [each().detach().clone() for each in uses]
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    loss = (use() + 0.1).square().sum()
    if trained and loss.requires_grad:
        gradients = torch.autograd.grad(loss, trained, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(trained, gradients, strict=True):
                if gradient is not None:
                    parameter -= 0.01 * gradient
    return before, [each().detach().clone() for each in uses]


PROPERTIES = (
    fact(
        "logits against products with the embeddings",
        "equal",
        "A logit should be the dot product of a hidden vector with what `embed` gives for the token.",
        id="logits_are_products",
    ),
    fact(
        "a step on the logits moves",
        "embeddings and logits",
        "A training step on the logits should move what `embed` gives: is there one parameter or two?",
        id="tied_from_logits",
    ),
    fact(
        "a step on the embeddings moves",
        "embeddings and logits",
        "A training step on the embeddings should move the logits: is there one parameter or two?",
        id="tied_from_embeddings",
    ),
    fact(
        "numbers that an optimiser is handed",
        28,
        "For 7 tokens of width 4 there are 28 numbers to learn, and no others.",
        id="one_table",
    ),
    fact(
        "hidden vectors get a gradient",
        True,
        "The layers before the projection learn through it: the gradient should reach the hidden vectors.",
        id="gradient_passes",
    ),
)
