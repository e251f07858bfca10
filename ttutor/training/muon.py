r"""Muon: steps for the matrices of a model that go about equally far in every direction.

Of the averaged gradient $G = U S V^\top$ Muon (Jordan et al. 2024) keeps the directions $U V^\top$ and drops the sizes
$S$. It finds them without a decomposition: for a matrix whose singular values are at most 1, the polynomial

$$X \leftarrow aX + b\,(XX^\top)X + c\,(XX^\top)^2X$$

changes only those values, each by $s \leftarrow as + bs^3 + cs^5$, and with Jordan's coefficients a few rounds lift
all but the smallest to between about 0.7 and 1.2.

`torch.optim.Muon` is the same, matrix by matrix and always in bfloat16. Here all matrices of one shape go through the
products together, in the number format that the device multiplies fast: on a processor without bfloat16 that decides
whether Muon can be used at all.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.device import half_precision

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""$a$, $b$ and $c$ of Jordan et al. (2024): steep at zero, so that small singular values grow quickly."""

N_ROUNDS = 5


def newton_schulz(
    matrices: Float[Tensor, "matrices rows columns"], dtype: torch.dtype | None = None
) -> Float[Tensor, "matrices rows columns"]:
    r"""$U V^\top$ of each matrix $U S V^\top$, nearly: its singular values become about 1.

    Args:
        matrices: of one shape; one of zeros stays so.
        dtype: what the products run in; the fastest of the device when left out.

    >>> matrix = torch.diag(torch.tensor([4.0, 1.0, 0.5]))[None]
    >>> sizes = torch.linalg.svdvals(newton_schulz(matrix, torch.float32))
    >>> 0.6 < sizes.min() and sizes.max() < 1.3
    tensor(True)
    """
    if matrices.shape[-2] > matrices.shape[-1]:  # the products with the shorter side twice are the cheaper ones
        turned = rearrange(matrices, "matrices rows columns -> matrices columns rows")
        return rearrange(newton_schulz(turned, dtype), "matrices columns rows -> matrices rows columns")
    a, b, c = COEFFICIENTS
    length = torch.linalg.matrix_norm(matrices, keepdim=True)  # no singular value is longer than the whole
    x = (matrices / length.clamp(min=1e-7)).to(dtype or half_precision(matrices.device) or matrices.dtype)
    for _ in range(N_ROUNDS):
        squares = torch.bmm(x, rearrange(x, "matrices rows columns -> matrices columns rows"))
        x = torch.baddbmm(x, torch.baddbmm(squares, squares, squares, beta=b, alpha=c), x, beta=a)
    return x.to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    r"""$m \leftarrow \mu m + (1 - \mu) g$, then a step along the equal directions of $(1 - \mu) g + \mu m$.

    The step is $0.2 \sqrt{\max(\text{rows}, \text{columns})}$ times the learning rate, as large as AdamW's usually is
    (Liu et al. 2025), so that one learning rate serves both.

    Args:
        matrices: what is trained, in place.
        lr: the learning rate.
        weight_decay: pull towards zero, times the learning rate.
        momentum: $\mu$.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        lr: float = 1e-3,
        *,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(
                        f"Muon is for matrices, but got a parameter of the shape {tuple(parameter.shape)}; "
                        "leave embeddings, biases and norms to AdamW"
                    )

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Change every matrix that has a gradient."""
        for group in self.param_groups:
            for matrices in self._by_shape(group["params"]).values():
                self._step_together(matrices, **{name: group[name] for name in ("lr", "weight_decay", "momentum")})

    @staticmethod
    def _by_shape(parameters: list[nn.Parameter]) -> dict[torch.Size, list[nn.Parameter]]:
        shapes = defaultdict(list)
        for parameter in parameters:
            if parameter.grad is not None:
                shapes[parameter.shape].append(parameter)
        return shapes

    def _step_together(self, matrices: list[nn.Parameter], lr: float, weight_decay: float, momentum: float) -> None:
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        averages = [self._average_of(matrix) for matrix in matrices]
        torch._foreach_lerp_(averages, gradients, 1 - momentum)
        steps = newton_schulz(torch.stack(torch._foreach_lerp(gradients, averages, momentum)))
        torch._foreach_mul_(matrices, 1 - lr * weight_decay)  # type: ignore[arg-type]
        far = -lr * 0.2 * max(matrices[0].shape) ** 0.5
        torch._foreach_add_(matrices, list(steps), alpha=far)  # type: ignore[arg-type]

    def _average_of(self, matrix: nn.Parameter) -> Tensor:
        state = self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        return state["momentum_buffer"]
