r"""A selective state space: a recurrence that is linear in its state, with steps that depend on the token read.

$$h_t = \bar A_t \odot h_{t-1} + \bar B_t\,x_t, \qquad y_t = C_t^\top h_t + D\,x_t$$

Gu and Dao (2023), "Mamba", section 3 and algorithm 2. Each of the ``d_inner`` features has a state of ``d_state``
numbers of its own. Since the steps are linear, one function has three programs, and all give the same numbers: a loop
(`selective_loop`), rounds of joined steps (`selective_scan`), and a lower triangular table of weights between tokens
(`selective_matrix`), which looks like attention without a softmax (Dao and Gu 2024). It is no approximation of
attention but another function, with work ``tokens x d_inner x d_state`` and a memory of fixed size.
"""

from typing import NamedTuple

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.recurrence import linear_scan
from ttutor.shapes import check_shapes


class Selection(NamedTuple):
    r"""What a selective state space does with each token: $\Delta$, $A$, $B$ and $C$.

    ``step`` is $\Delta > 0$: how long the token acts. After a long step the state has forgotten what was before and
    holds this token; a step near zero passes the token over. ``rate`` is $A < 0$, how fast each number of the state
    fades. ``write`` is $B$, where in the state the token goes, and ``read`` is $C$, what of the state comes out.
    """

    step: Float[Tensor, "batch tokens d_inner"]
    rate: Float[Tensor, "d_inner d_state"]
    write: Float[Tensor, "batch tokens d_state"]
    read: Float[Tensor, "batch tokens d_state"]


def discretise(
    step: Float[Tensor, "batch tokens d_inner"],
    rate: Float[Tensor, "d_inner d_state"],
    write: Float[Tensor, "batch tokens d_state"],
) -> tuple[Float[Tensor, "batch tokens d_inner d_state"], Float[Tensor, "batch tokens d_inner d_state"]]:
    r"""From a differential equation to steps: what remains of the state, and what one unit of input adds to it.

    $$\dot h = A h + B x \quad\Longrightarrow\quad \bar A = e^{\Delta A}, \qquad
      \bar B = \frac{e^{\Delta A} - 1}{A}\,B$$

    That is the exact solution while $x$ stays the same for a time $\Delta$ ("zero-order hold"); Gu and Dao (2023),
    equation 4. Their program takes $\Delta B$ for the second, which is the same up to first order in $\Delta$.

    Args:
        step: $\Delta$.
        rate: $A$, the diagonal of it; negative, so that the state fades.
        write: $B$.

    Example:
        >>> step, rate, write = torch.ones(1, 1, 1), -torch.ones(1, 1), torch.ones(1, 1, 1)
        >>> remains, added = discretise(step, rate, write)
        >>> remains.item(), added.item()  # 1/e remains, and a steady input of 1 leads to 1
        (0.3678..., 0.6321...)
    """
    check_shapes(
        step=(step, "batch tokens d_inner"), rate=(rate, "d_inner d_state"), write=(write, "batch tokens d_state")
    )
    exponent = einsum(step, rate, "batch tokens d_inner, d_inner d_state -> batch tokens d_inner d_state")
    added = exponent.expm1() / rate * rearrange(write, "batch tokens d_state -> batch tokens 1 d_state")
    return exponent.exp(), added


def selective_loop(
    inputs: Float[Tensor, "batch tokens d_inner"],
    selection: Selection,
    state: Float[Tensor, "batch d_inner d_state"] | None = None,
) -> tuple[Float[Tensor, "batch tokens d_inner"], Float[Tensor, "batch d_inner d_state"]]:
    """One token after the other, in the order of the formula.

    Args:
        inputs: $x$, one number for each feature of each token.
        selection: the steps; their rates are negative.
        state: after the tokens before these; zeros when left out.

    Returns:
        $C_t^T h_t$ for every token, and the state after the last.

    Example:
        >>> ones = torch.ones(1, 3, 1)
        >>> memory, _ = selective_loop(ones, Selection(ones, -ones[0, :1], ones, ones))
        >>> memory.flatten()  # nears 1
        tensor([0.6321, 0.8647, 0.9502])
    """
    remains, added = _steps(inputs, selection)
    state = torch.zeros_like(added[:, :1]).sum(dim=1) if state is None else state
    outputs = []
    for remains_t, added_t, read_t in zip(*(x.unbind(dim=1) for x in (remains, added, selection.read)), strict=True):
        state = remains_t * state + added_t
        outputs.append(einsum(state, read_t, "batch d_inner d_state, batch d_state -> batch d_inner"))
    return torch.stack(outputs, dim=1) if outputs else torch.zeros_like(inputs), state


def selective_scan(
    inputs: Float[Tensor, "batch tokens d_inner"],
    selection: Selection,
    state: Float[Tensor, "batch d_inner d_state"] | None = None,
) -> tuple[Float[Tensor, "batch tokens d_inner"], Float[Tensor, "batch d_inner d_state"]]:
    r"""All tokens at once, in $\lceil \log_2 T \rceil$ rounds of `ttutor.recurrence.linear_scan`.

    Arguments and results are those of `selective_loop`. Gu and Dao (2023), section 3.3.2.

    Differs from the paper: its program keeps the states in a GPU's fast memory; here each round writes all of them.
    """
    if inputs.shape[1] == 0:
        return selective_loop(inputs, selection, state)
    remains, added = _steps(inputs, selection)
    if state is not None:  # as if it had come in with the first token
        first = added[:, :1] + remains[:, :1] * rearrange(state, "batch d_inner d_state -> batch 1 d_inner d_state")
        added = torch.cat([first, added[:, 1:]], dim=1)
    together = "batch tokens d_inner d_state -> batch tokens (d_inner d_state)"
    states, _ = linear_scan(rearrange(remains, together), rearrange(added, together))
    states = rearrange(
        states, "batch tokens (d_inner d_state) -> batch tokens d_inner d_state", d_state=added.shape[-1]
    )
    outputs = einsum(
        states, selection.read, "batch tokens d_inner d_state, batch tokens d_state -> batch tokens d_inner"
    )
    return outputs, states[:, -1]


def selective_matrix(selection: Selection) -> Float[Tensor, "batch d_inner queries keys"]:
    r"""The weights with which each token's input counts in each later output, written down as a table.

    $$M_{ij} = C_i^\top \Big(\prod_{k=j+1}^{i} \bar A_k\Big) \bar B_j \quad (j \le i), \qquad y = M x$$

    Dao and Gu (2024), section 3: a state space is a multiplication by a lower triangular matrix. Unlike attention's,
    its rows need not sum to one, and its weights may be negative.

    Args:
        selection: the steps.

    Example:
        >>> ones = torch.ones(1, 3, 1)
        >>> selective_matrix(Selection(ones, -ones[0, :1], ones, ones))[0, 0]
        tensor([[0.6321, 0.0000, 0.0000],
                [0.2325, 0.6321, 0.0000],
                [0.0855, 0.2325, 0.6321]])
    """
    _, added = discretise(selection.step, selection.rate, selection.write)
    elapsed = selection.step.cumsum(dim=1)
    later = rearrange(elapsed, "batch queries d_inner -> batch d_inner queries 1")
    earlier = rearrange(elapsed, "batch keys d_inner -> batch d_inner 1 keys")
    n_tokens = elapsed.shape[1]
    is_later = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=elapsed.device).tril()
    between = (later - earlier).masked_fill(~is_later, 0.0)
    faded = einsum(
        between,
        selection.rate,
        "batch d_inner queries keys, d_inner d_state -> batch d_inner queries keys d_state",
    )
    table = einsum(
        selection.read,
        faded.exp(),
        added,
        "batch queries d_state, batch d_inner queries keys d_state, batch keys d_inner d_state "
        "-> batch d_inner queries keys",
    )
    return table.masked_fill(~is_later, 0.0)


def _steps(inputs: Tensor, selection: Selection) -> tuple[Tensor, Tensor]:
    r"""$\bar A_t$ and $\bar B_t x_t$ for every token."""
    check_shapes(
        inputs=(inputs, "batch tokens d_inner"),
        step=(selection.step, "batch tokens d_inner"),
        read=(selection.read, "batch tokens d_state"),
        rate=(selection.rate, "d_inner d_state"),
    )
    remains, added = discretise(selection.step, selection.rate, selection.write)
    return remains, added * rearrange(inputs, "batch tokens d_inner -> batch tokens d_inner 1")
