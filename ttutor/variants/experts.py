r"""Mixture of experts: many feed-forward networks, of which each token visits a few.

$$y = \sum_{e \,\in\, \mathrm{chosen}(x)} g_e(x)\,\mathrm{FFN}_e(x) + \mathrm{FFN}_\mathrm{shared}(x)$$

Shazeer et al. (2017), equation 1; shared experts: DeepSeek-AI et al. (2024b), section 2.1.2. The parameters grow with
the number of experts, the work for a token with the number that it visits. A router scores the experts for each token.

Left to itself a router sends ever more to those who learned first. Two ways to keep the balance stand here: a loss
added to the objective (`balance_loss`), and a bias that moves the choice but not the shares (`BiasedRouter`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.shapes import check_shapes, has_free_sizes, is_transformed

__all__ = [
    "BiasedRouter",
    "MixtureOfExperts",
    "Router",
    "Routing",
    "balance_loss",
    "n_active_parameters",
    "record_routing",
]


class Routing(NamedTuple):
    """Where each token goes.

    Attributes:
        experts: the numbers of the chosen experts.
        shares: by how much the result of each of them is multiplied.
        probabilities: the router's opinion of all experts, each row summing to one.
    """

    experts: Int[Tensor, "tokens chosen"]
    shares: Float[Tensor, "tokens chosen"]
    probabilities: Float[Tensor, "tokens experts"]

    def n_visits(self) -> Int[Tensor, " experts"]:
        """How many tokens chose each expert."""
        return self.experts.flatten().bincount(minlength=self.probabilities.shape[-1])


class Router(nn.Module):
    r"""Chooses the most probable experts for each token: $g = \mathrm{softmax}(x W)$ over those chosen.

    Jiang et al. (2024), section 2.2. It is the same to take the softmax over all and divide by the sum of the chosen.

    Args:
        d_model: width of a token.
        n_experts: how many there are.
        n_chosen: how many each token visits.
        renormalise: whether the shares of a token sum to one; otherwise they stay the probabilities among all experts,
            as in Switch (Fedus et al. 2022), where a token visits a single expert and a share of one would teach the
            router nothing.
        bias: whether scores have a constant added (gpt-oss).

    Example:
        >>> Router(d_model=8, n_experts=6, n_chosen=2)(torch.randn(5, 8)).experts.shape
        torch.Size([5, 2])
    """

    def __init__(
        self, d_model: int, n_experts: int, n_chosen: int, *, renormalise: bool = True, bias: bool = False
    ) -> None:
        super().__init__()
        if not 1 <= n_chosen <= n_experts:
            raise ValueError(f"a token visits 1 to n_experts={n_experts} experts, but n_chosen={n_chosen}")
        self.n_experts, self.n_chosen, self.renormalise = n_experts, n_chosen, renormalise
        self.to_scores = nn.Linear(d_model, n_experts, bias=bias)

    def forward(self, hidden: Float[Tensor, "tokens d_model"]) -> Routing:
        """Where these tokens go."""
        probabilities = self.to_scores(hidden).softmax(dim=-1)
        shares, experts = probabilities.topk(self.n_chosen, dim=-1)
        if self.renormalise:
            shares = shares / reduce(shares, "tokens chosen -> tokens 1", "sum")
        return Routing(experts, shares, probabilities)


class BiasedRouter(Router):
    r"""Chooses by affinity plus a bias, which is no parameter but follows the load: DeepSeek-V3's router.

    $$s = \sigma(x W), \qquad \mathrm{chosen} = \mathrm{top}_k(s + b), \qquad
      g_e = c\,s_e / \textstyle\sum_\mathrm{chosen} s$$

    DeepSeek-AI et al. (2024b), section 2.1.2, equations 12 to 16. The bias decides who is chosen and nothing else, so
    that no gradient pulls against the objective.

    Args:
        d_model, n_experts, n_chosen: as for `Router`.
        factor: $c$, what the shares of a token sum to.
        n_groups: into how many groups, each on machines of its own, the experts are parted.
        n_groups_chosen: from how many of them a token may choose, those with the highest sum of their best two.

    Example:
        >>> router = BiasedRouter(d_model=8, n_experts=4, n_chosen=1)
        >>> router.rebalance(torch.tensor([9, 1, 1, 1]), step=0.5)
        >>> router.bias
        tensor([-0.5000,  0.5000,  0.5000,  0.5000])
    """

    bias: Tensor

    def __init__(
        self,
        d_model: int,
        n_experts: int,
        n_chosen: int,
        *,
        factor: float = 1.0,
        n_groups: int = 1,
        n_groups_chosen: int = 1,
    ) -> None:
        super().__init__(d_model, n_experts, n_chosen)
        if n_groups < 1 or n_experts % n_groups or not 1 <= n_groups_chosen <= n_groups:
            raise ValueError(
                f"{n_experts} experts must make n_groups={n_groups} equal groups, of which n_groups_chosen="
                f"{n_groups_chosen} are chosen"
            )
        if n_chosen > n_experts // n_groups * n_groups_chosen or (n_groups > 1 and n_experts < 2 * n_groups):
            raise ValueError(
                f"the chosen groups have too few experts for n_chosen={n_chosen}: {n_groups_chosen} groups of "
                f"{n_experts // n_groups}, and a group is ranked by its best two"
            )
        self.factor, self.n_groups, self.n_groups_chosen = factor, n_groups, n_groups_chosen
        self.register_buffer("bias", torch.zeros(n_experts))

    def forward(self, hidden: Float[Tensor, "tokens d_model"]) -> Routing:
        """Where these tokens go."""
        affinities = self.to_scores(hidden).sigmoid()
        ranks = affinities + self.bias
        if self.n_groups > 1:
            ranks = ranks.masked_fill(~self._in_chosen_groups(ranks), float("-inf"))
        experts = ranks.topk(self.n_chosen, dim=-1).indices
        chosen = affinities.gather(1, experts)
        shares = self.factor * chosen / reduce(chosen, "tokens chosen -> tokens 1", "sum")
        return Routing(experts, shares, affinities / reduce(affinities, "tokens experts -> tokens 1", "sum"))

    def _in_chosen_groups(self, ranks: Float[Tensor, "tokens experts"]) -> Bool[Tensor, "tokens experts"]:
        """Which experts stand in the groups that each token may choose from."""
        by_group = rearrange(ranks, "tokens (groups members) -> tokens groups members", groups=self.n_groups)
        of_group = reduce(by_group.topk(2, dim=-1).values, "tokens groups best -> tokens groups", "sum")
        groups = of_group.topk(self.n_groups_chosen, dim=-1).indices
        is_chosen = torch.zeros_like(of_group).scatter(1, groups, 1.0) > 0
        return is_chosen.repeat_interleave(self.n_experts // self.n_groups, dim=1)

    @torch.no_grad()
    def rebalance(self, n_visits: Int[Tensor, " experts"], step: float = 0.001) -> None:
        """After a training step, raise the bias of experts with less than the mean load and lower that of the others.

        Wang et al. (2024), algorithm 1.

        Args:
            n_visits: how many tokens chose each expert, `Routing.n_visits`.
            step: by how much.
        """
        load = n_visits.to(self.bias.dtype)
        self.bias += step * (load.mean() - load).sign()


class MixtureOfExperts(nn.Module):
    """A feed-forward network made of many: put it where a `ttutor.layers.GatedFeedForward` stands.

    Tokens are gathered by expert, transformed, and added up where they came from. The loop runs over experts; there is
    none over tokens.

    Args:
        router: chooses experts for each token.
        make_expert: makes one expert, a feed-forward network.
        shared: a network that every token visits besides; none when left out.

    Example:
        >>> from functools import partial
        >>> from ttutor.layers import GatedFeedForward
        >>> router = Router(d_model=8, n_experts=6, n_chosen=2)
        >>> mixture = MixtureOfExperts(router, partial(GatedFeedForward, 8, 16))
        >>> mixture(torch.randn(2, 5, 8)).shape
        torch.Size([2, 5, 8])
        >>> n_active_parameters(mixture) / sum(parameter.numel() for parameter in mixture.parameters())
        0.346...
    """

    def __init__(
        self, router: Router, make_expert: Callable[[], nn.Module], *, shared: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.router = router
        self.experts = nn.ModuleList(make_expert() for _ in range(router.n_experts))
        self.shared = shared

    def forward(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Send each token through its experts, and add up what they make of it."""
        check_shapes({"d_model": self.router.to_scores.in_features}, hidden=(hidden, "batch tokens d_model"))
        tokens = rearrange(hidden, "batch tokens d_model -> (batch tokens) d_model")
        routing = self.router(tokens)
        mix = self._all_by_all if has_free_sizes() or is_transformed(tokens) else self._gathered
        mixed = rearrange(mix(tokens, routing), "(batch tokens) d_model -> batch tokens d_model", batch=hidden.shape[0])
        return mixed if self.shared is None else mixed + self.shared(hidden)

    def _gathered(self, tokens: Float[Tensor, "tokens d_model"], routing: Routing) -> Float[Tensor, "tokens d_model"]:
        """Each expert transforms the tokens that chose it."""
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            visitors, place = (routing.experts == number).nonzero(as_tuple=True)
            if len(visitors):
                shares = rearrange(routing.shares[visitors, place], "visitors -> visitors 1")
                mixed = mixed.index_add(0, visitors, (shares * expert(tokens[visitors])).to(mixed.dtype))
        return mixed

    def _all_by_all(self, tokens: Float[Tensor, "tokens d_model"], routing: Routing) -> Float[Tensor, "tokens d_model"]:
        """Each expert transforms every token: where nobody can know yet, or for all at once, how many choose it."""
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            is_chosen = routing.experts == number
            mixed = mixed + reduce(routing.shares * is_chosen, "tokens chosen -> tokens 1", "sum") * expert(tokens)
        return mixed


def balance_loss(routing: Routing) -> Float[Tensor, ""]:
    r"""Least where all experts are visited alike: $N \sum_e f_e\,P_e$, times the number that a token visits.

    $f_e$ is how often a token chose expert $e$, and $P_e$ the mean probability that the router gave it. Choices have no
    gradient, but probabilities do. Fedus et al. (2022), equations 4 to 6. Evenly spread it is the number of experts
    that a token visits; add about a hundredth of it to the objective.

    Example:
        >>> even, all_in_one = torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> balance_loss(Routing(torch.tensor([[0], [1]]), torch.ones(2, 1), even))
        tensor(1.)
        >>> balance_loss(Routing(torch.tensor([[0], [0]]), torch.ones(2, 1), all_in_one))
        tensor(2.)
    """
    n_tokens, n_experts = routing.probabilities.shape
    often = routing.n_visits() / n_tokens
    return n_experts * (often * reduce(routing.probabilities, "tokens experts -> experts", "mean")).sum()


@contextmanager
def record_routing(model: nn.Module) -> Iterator[list[Routing]]:
    """Keep what every router of a model decides while the context is open, in the order of the calls.

    Example:
        >>> from functools import partial
        >>> from ttutor.layers import GatedFeedForward
        >>> mixture = MixtureOfExperts(Router(8, n_experts=6, n_chosen=2), partial(GatedFeedForward, 8, 16))
        >>> with record_routing(mixture) as routings:
        ...     hidden = mixture(torch.randn(2, 5, 8))
        >>> loss = hidden.square().mean() + 0.01 * sum(map(balance_loss, routings))
        >>> loss.backward()
    """
    routings: list[Routing] = []
    routers = [module for module in model.modules() if isinstance(module, Router)]
    handles = [router.register_forward_hook(lambda _, __, routing: routings.append(routing)) for router in routers]
    try:
        yield routings
    finally:
        for handle in handles:
            handle.remove()


def n_active_parameters(model: nn.Module) -> int:
    """How many parameters work for one token: all but those of the experts that it does not visit."""
    resting = 0
    for module in model.modules():
        if isinstance(module, MixtureOfExperts):
            of_one = sum(parameter.numel() for parameter in module.experts[0].parameters())
            resting += of_one * (module.router.n_experts - module.router.n_chosen)
    return sum(parameter.numel() for parameter in model.parameters()) - resting
