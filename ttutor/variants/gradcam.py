"""Grad-CAM: which patches of an image speak for a class, by the gradient of that class's logit."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.evaluating import evaluating
from ttutor.variants.vit import ViT

__all__ = ["grad_cam"]


def grad_cam(
    model: ViT,
    images: Float[Tensor, "batch channels height width"],
    class_id: int | Int[Tensor, " batch"],
    *,
    layer: int = -1,
) -> Float[Tensor, "batch rows columns"]:
    r"""How strongly each patch speaks for a class: features, weighted by what they do for the class's logit $y^c$.

    $$\alpha_k = \frac{1}{n} \sum_p \frac{\partial y^c}{\partial A_{pk}}, \qquad
      L_p = \mathrm{ReLU}\Big(\sum_k \alpha_k A_{pk}\Big)$$

    with $A_{pk}$ the feature $k$ of the patch $p$ that a layer's attention reads, after the norm before it. Behind the
    last layer there would be no gradient: the class token alone is read there, and the patches are not. Selvaraju et
    al. (2017), equations 1 and 2. It is no rollout (`ttutor.inside.attention_rollout`): that one multiplies attention
    weights, knows no class and sees no value.

    Differs from the paper: $A$ are the feature maps of a convolution there, and here the tokens of the patches.

    Args:
        model: the classifier. It runs in evaluation mode, and afterwards is as it was; its gradients are not touched.
        images: what to explain.
        class_id: the class; one for all images, or one for each.
        layer: whose tokens to take; -1 is the last layer.

    Returns:
        A number of at least 0 for each patch, as the patches stand in the image. Their scale has no meaning.

    Example:
        >>> from ttutor.variants.vit import ViTConfig
        >>> model = ViT(ViTConfig.tiny(image_size=32, patch_size=8, n_layers=2))
        >>> grad_cam(model, torch.randn(2, 3, 32, 32), class_id=7).shape
        torch.Size([2, 4, 4])
    """
    classes = torch.as_tensor(class_id, device=images.device).expand(images.shape[0])
    with evaluating(model), torch.enable_grad(), _attention_input(model, layer) as seen:
        logits = model(images)
        chosen = logits[torch.arange(images.shape[0], device=images.device), classes]
        (gradient,) = torch.autograd.grad(chosen.sum(), seen)
    features, gradient = seen[0].detach()[:, 1:], gradient[:, 1:]  # the first token is the class token
    importance = reduce(gradient, "batch patches d_model -> batch d_model", "mean")
    evidence = einsum(importance, features, "batch d_model, batch patches d_model -> batch patches").relu()
    n_rows = model.config.image_size // model.config.patch_size
    return rearrange(evidence, "batch (rows columns) -> batch rows columns", rows=n_rows)


@contextmanager
def _attention_input(model: ViT, layer: int) -> Iterator[list[Tensor]]:
    """Collect what a layer's attention reads, as the start of a graph, so that frozen models have gradients too."""
    seen: list[Tensor] = []

    def start_here(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        seen.append(args[0].detach().requires_grad_())
        return (seen[-1], *args[1:])

    handle = model.vision.encoder.layers[layer].get_submodule("self_attention").register_forward_pre_hook(start_here)
    try:
        yield seen
    finally:
        handle.remove()
