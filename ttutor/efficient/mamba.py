"""A block around a selective state space: convolution, gate and projections, with a state for decoding."""

import math
from typing import NamedTuple

import torch
from einops import einsum, repeat
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.efficient.state_space import Selection, selective_scan
from ttutor.shapes import check_shapes

SHORTEST_STEP, LONGEST_STEP = 1e-3, 1e-1
N_TAPS = 4  # how many tokens the convolution sees


class StateSpaceState(NamedTuple):
    """What a block remembers of all tokens so far: the last inputs of its convolution, and the state proper."""

    recent: Float[Tensor, "batch reach d_inner"]
    memory: Float[Tensor, "batch d_inner d_state"]


class SelectiveStateSpace(nn.Module):
    r"""Mamba's block: what a token writes, what it reads and how long it acts all depend on the token itself.

    $$x, z = u W_\mathrm{in}, \qquad x' = \mathrm{SiLU}(\mathrm{conv}(x)), \qquad
      \Delta, B, C = \text{linear in } x', \qquad
      y = \big(\mathrm{SSM}_{\Delta, A, B, C}(x') + D \odot x'\big) \odot \mathrm{SiLU}(z)\; W_\mathrm{out}$$

    Gu and Dao (2023), section 3.4 and figure 3. The convolution is causal and depthwise: each feature by itself, over
    the last few tokens. $\Delta$ passes a narrow waist and a softplus. There are no positions; order is in the state.

    Args:
        d_model: width of what comes in and goes out.
        d_state: numbers in the state of each feature.

    Example:
        >>> block = SelectiveStateSpace(d_model=8)
        >>> block(torch.randn(2, 5, 8)).shape
        torch.Size([2, 5, 8])
    """

    def __init__(self, d_model: int, *, d_state: int = 16) -> None:
        super().__init__()
        if min(d_model, d_state) < 1:
            raise ValueError(f"all widths must be at least 1, but {d_model=}, {d_state=}")
        d_inner, d_step = 2 * d_model, math.ceil(d_model / 16)
        self.d_model, self.d_inner, self.d_state = d_model, d_inner, d_state
        self.to_inner = nn.Linear(d_model, d_inner, bias=False)
        self.to_gate = nn.Linear(d_model, d_inner, bias=False)
        self.taps = nn.Parameter(torch.empty(N_TAPS, d_inner).uniform_(-1, 1) / math.sqrt(N_TAPS))
        self.tap_bias = nn.Parameter(torch.zeros(d_inner))
        self.to_waist = nn.Linear(d_inner, d_step, bias=False)
        self.to_step = nn.Linear(d_step, d_inner)
        self.to_write = nn.Linear(d_inner, d_state, bias=False)
        self.to_read = nn.Linear(d_inner, d_state, bias=False)
        # Each feature fades at the rates 1, 2, ..., d_state to begin with (section 3.6); exp keeps them positive.
        rates = torch.arange(1, d_state + 1, dtype=torch.get_default_dtype())
        self.log_rate = nn.Parameter(repeat(rates.log(), "d_state -> d_inner d_state", d_inner=d_inner).clone())
        self.skip = nn.Parameter(torch.ones(d_inner))
        self.to_output = nn.Linear(d_inner, d_model, bias=False)
        with torch.no_grad():  # steps of many lengths to begin with: the softplus of the bias lies within the range
            span = math.log(LONGEST_STEP / SHORTEST_STEP)
            first_steps = SHORTEST_STEP * (torch.rand(d_inner) * span).exp()
            self.to_step.bias.copy_(first_steps + (-(-first_steps).expm1()).log())

    def forward(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Mix each token with all that came before it."""
        return self.read(hidden)[0]

    def read(
        self, hidden: Float[Tensor, "batch tokens d_model"], state: StateSpaceState | None = None
    ) -> tuple[Float[Tensor, "batch tokens d_model"], StateSpaceState]:
        """Read some more tokens, one or many; give what `forward` gives for them, and the state after them.

        Args:
            hidden: the new tokens.
            state: after the tokens before them; nothing came before when left out.
        """
        check_shapes({"d_model": self.d_model}, hidden=(hidden, "batch tokens d_model"))
        state = self.initial_state(hidden) if state is None else state
        sizes = {"batch": hidden.shape[0], "d_inner": self.d_inner, "d_state": self.d_state, "reach": N_TAPS - 1}
        recent, memory = state
        check_shapes(sizes, recent=(recent, "batch reach d_inner"), memory=(memory, "batch d_inner d_state"))
        inner, recent = self._convolve(self.to_inner(hidden), recent)
        recalled, memory = selective_scan(inner, self.selection(inner), memory)
        gated = (recalled + self.skip * inner) * nn.functional.silu(self.to_gate(hidden))
        return self.to_output(gated), StateSpaceState(recent, memory)

    def initial_state(self, hidden: Float[Tensor, "batch tokens d_model"]) -> StateSpaceState:
        """Before the first token: zeros, for a batch such as this."""
        batch = hidden.shape[0]
        return StateSpaceState(
            recent=hidden.new_zeros(batch, N_TAPS - 1, self.d_inner),
            memory=hidden.new_zeros(batch, self.d_inner, self.d_state),
        )

    def selection(self, inner: Float[Tensor, "batch tokens d_inner"]) -> Selection:
        """What each token does with the state, as the token itself has it (section 3.2, algorithm 2)."""
        return Selection(
            step=nn.functional.softplus(self.to_step(self.to_waist(inner))),
            rate=-self.log_rate.exp(),
            write=self.to_write(inner),
            read=self.to_read(inner),
        )

    def _convolve(self, inner: Tensor, recent: Tensor) -> tuple[Tensor, Tensor]:
        """Blend each feature with its own last values; give the values that the next tokens will need."""
        known = torch.cat([recent, inner], dim=1)
        n_tokens = inner.shape[1]
        shifted = torch.stack([known[:, j : j + n_tokens] for j in range(N_TAPS)])
        blended = einsum(shifted, self.taps, "taps batch tokens d_inner, taps d_inner -> batch tokens d_inner")
        return nn.functional.silu(blended + self.tap_bias), known[:, n_tokens:]
