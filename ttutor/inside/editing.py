r"""Write one fact into a linear layer: the smallest change that makes it answer a key with a new value.

$$\hat W = W + \Lambda\,(C^{-1} k_*)^\top, \qquad \Lambda = \frac{v_* - W k_*}{(C^{-1} k_*)^\top k_*}, \qquad
  C = \mathbb{E}[\,k k^\top]$$

Meng et al. (2022), "Locating and Editing Factual Associations in GPT" (ROME), equation 2. Among all $\hat W$ with
$\hat W k_* = v_*$ it changes the answers to other keys least: it minimises $\mathbb{E}\,\|(\hat W - W) k\|^2$. That an
edit succeeds in a layer does not show that the fact was stored there (Hase et al. 2023).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.inside.capture import capture
from ttutor.inside.patching import patch
from ttutor.shapes import check_shapes


def key_covariance(keys: Float[Tensor, "... d_in"], *, ridge: float = 0.0) -> Float[Tensor, "d_in d_in"]:
    """The second moment of a layer's inputs (not centred), plus a ridge in units of its mean diagonal.

    Args:
        keys: captured inputs of the layer, such as ``"....feed_forward.narrow.input"`` over much text.
        ridge: needed where features are always zero or inputs are fewer than features.
    """
    check_shapes(keys=(keys, "... samples d_in"))
    samples = rearrange(keys, "... d_in -> (...) d_in")
    moment = einsum(samples, samples, "samples left, samples right -> left right") / len(samples)
    return moment + ridge * moment.diagonal().mean() * torch.eye(len(moment), dtype=keys.dtype, device=keys.device)


def rank_one_edit(
    weight: Float[Tensor, "d_out d_in"],
    key: Float[Tensor, " d_in"],
    value: Float[Tensor, " d_out"],
    covariance: Float[Tensor, "d_in d_in"],
) -> Float[Tensor, "d_out d_in"]:
    """The weight that maps the key to the value, and otherwise changes as little as it can.

    Args:
        weight: the matrix of a linear layer, as it is stored.
        key: the layer's input that gets a new answer.
        value: the answer, without the layer's bias.
        covariance: how other inputs are distributed, from `key_covariance`.

    Example:
        >>> weight, key, value = torch.zeros(2, 3), torch.tensor([0.0, 2.0, 0.0]), torch.tensor([4.0, 6.0])
        >>> rank_one_edit(weight, key, value, torch.eye(3))
        tensor([[0., 2., 0.],
                [0., 3., 0.]])
    """
    check_shapes(
        weight=(weight, "d_out d_in"), key=(key, "d_in"), value=(value, "d_out"), covariance=(covariance, "d_in d_in")
    )
    factor, fault = torch.linalg.cholesky_ex(covariance)
    if fault.item():
        raise ValueError("the covariance is not positive definite: gather more keys, or give key_covariance a ridge")
    direction = torch.cholesky_solve(rearrange(key, "d_in -> d_in 1"), factor)[:, 0]
    reach = direction @ key
    if reach == 0:
        raise ValueError("the key is zero: a layer without bias answers it with zero, whatever its weight")
    change = (value - weight @ key) / reach
    return weight + einsum(change, direction, "d_out, d_in -> d_out d_in")


@contextmanager
def edited(
    layer: nn.Linear,
    key: Float[Tensor, " d_in"],
    value: Float[Tensor, " d_out"],
    covariance: Float[Tensor, "d_in d_in"],
) -> Iterator[None]:
    """Let a linear layer answer the key with the value while the context is open: to see what else changes.

    Args:
        layer: such as the ``narrow`` of a feed-forward network.
        key, covariance: as for `rank_one_edit`.
        value: the layer's output for the key, its bias included.

    Example:
        >>> layer, key = nn.Linear(3, 2), torch.tensor([1.0, 2.0, 3.0])
        >>> with edited(layer, key, torch.tensor([4.0, 5.0]), torch.eye(3)):
        ...     torch.allclose(layer(key), torch.tensor([4.0, 5.0]))
        True
    """
    original = layer.weight.detach().clone()
    wanted = value if layer.bias is None else value - layer.bias.detach()
    new = rank_one_edit(original, key, wanted, covariance)
    try:
        with torch.no_grad():
            layer.weight.copy_(new)
        yield
    finally:
        with torch.no_grad():
            layer.weight.copy_(original)


def find_value(
    model: nn.Module,
    name: str,
    token: int,
    loss: Callable[[], Tensor],
    *,
    steps: int = 100,
    learning_rate: float = 0.1,
) -> Float[Tensor, " d_model"]:
    """Find the output of a part, at one token, with which the model says what is wanted.

    Meng et al. (2022), equation 4: gradient descent on the vector, the weights staying as they are.

    Args:
        model: the model that ``loss`` runs.
        name: the intermediate, such as ``"decoder.layers.1.feed_forward"``.
        token: where it is replaced, in every row of the batch.
        loss: runs the model and gives a number that is small when it says the new fact.
        steps: steps of Adam.
        learning_rate: its step size.

    Differs from the paper: without its second term, which keeps the model's idea of the subject; add one to the loss.
    """
    with torch.no_grad(), capture(model, name) as seen:
        loss()
    if list(seen) != [name]:
        raise ValueError(f"one intermediate that occurs is needed, but {name!r} gave {list(seen)}")
    vector = reduce(seen[name][..., token, :], "... d_model -> d_model", "mean").requires_grad_()
    optimizer = torch.optim.Adam([vector], lr=learning_rate)

    def put(value: Tensor) -> Tensor:
        """The intermediate with the sought vector in its place."""
        value = value.clone()
        value[..., token, :] = vector
        return value

    for step in range(steps):
        with torch.enable_grad(), patch(model, {name: put}):
            (vector.grad,) = torch.autograd.grad(loss(), [vector], materialize_grads=True)
        if step == 0 and not vector.grad.any():
            raise ValueError(f"the loss does not depend on {name!r} at token {token}")
        optimizer.step()
    return vector.detach()
