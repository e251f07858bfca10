"""What can be seen of a table that is used twice."""

import torch
from torch import Tensor

from ttutor.exercises.facts import fact, numbers_in, trainable_numbers_in


def observe(answer, vocab_size, hidden):
    """Build the module, use it at both ends, let it learn from each, and say what can be seen."""
    module = answer(vocab_size, hidden.shape[-1])
    tokens = torch.arange(vocab_size)[None]
    before = module.to_logits(hidden)
    vectors, logits = module.embed(tokens).detach()[0], module.to_logits(hidden)
    products = hidden @ vectors.T
    leaf = hidden.detach().clone().requires_grad_()
    through = module.to_logits(leaf * 1)
    seen = {
        "the shape of the embeddings": str(tuple(module.embed(tokens[:, :5]).shape)),
        "the shape of the logits": str(tuple(logits.shape)),
        "numbers that an optimiser is handed": numbers_in(module),
        "numbers that it may change": trainable_numbers_in(module),
        "different vectors": len({tuple(vector.tolist()) for vector in vectors}),
        "token 0 has a vector": bool(vectors[0].any()),
        "logits against products with the embeddings": _compare(logits, products),
        "calling embed leaves the logits as they were": torch.equal(before, logits),
        "hidden vectors get a gradient": through.requires_grad and _arrives(through, leaf),
    }
    for name, use in (("embeddings", lambda: module.embed(tokens)), ("logits", lambda: module.to_logits(hidden))):
        seen[f"a step on the {name} moves"] = _moved(module, use, tokens, hidden)
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


def _arrives(through, leaf):
    (gradient,) = torch.autograd.grad(through.sum(), leaf, allow_unused=True)
    return gradient is not None


def _moved(module, use, tokens, hidden):
    """Take one step of gradient descent on the squares of one use, and say which uses it moved."""
    before = module.embed(tokens).detach().clone(), module.to_logits(hidden).detach().clone()
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    loss = (use() + 0.1).square().sum()
    if trained and loss.requires_grad:
        gradients = torch.autograd.grad(loss, trained, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(trained, gradients, strict=True):
                if gradient is not None:
                    parameter -= 0.01 * gradient
    after = module.embed(tokens).detach(), module.to_logits(hidden).detach()
    moved = [
        name
        for name, one, other in zip(("embeddings", "logits"), before, after, strict=True)
        if not torch.equal(one, other)
    ]
    return " and ".join(moved) or "nothing"


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
