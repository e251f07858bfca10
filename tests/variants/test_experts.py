"""Mixtures of experts: against the blocks of published models, and by what each part promises."""

from functools import partial

import pytest
import torch
from torch import nn
from transformers import DeepseekV3Config, MixtralConfig, Qwen3MoeConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock, load_balancing_loss_func
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

from ttutor.errors import ShapeError
from ttutor.layers import FeedForward, GatedFeedForward
from ttutor.variants.experts import (
    BiasedRouter,
    MixtureOfExperts,
    Router,
    Routing,
    balance_loss,
    n_active_parameters,
    record_routing,
)

D_MODEL, D_FF, N_EXPERTS = 12, 7, 8
SIZES = {"hidden_size": D_MODEL, "num_experts_per_tok": 3, "num_hidden_layers": 1}
make_expert = partial(GatedFeedForward, D_MODEL, D_FF)


def pair(name):
    """A block of theirs with random weights, and ours without them."""
    shared = None
    if name == "mixtral":
        theirs = MixtralSparseMoeBlock(MixtralConfig(**SIZES, intermediate_size=D_FF, num_local_experts=N_EXPERTS))
        router = Router(D_MODEL, N_EXPERTS, 3)
    elif name == "qwen 3":
        sizes = {**SIZES, "moe_intermediate_size": D_FF, "num_experts": N_EXPERTS}
        theirs = Qwen3MoeSparseMoeBlock(Qwen3MoeConfig(**sizes, norm_topk_prob=False))
        router = Router(D_MODEL, N_EXPERTS, 3, renormalise=False)
    else:
        sizes = {**SIZES, "moe_intermediate_size": D_FF, "n_routed_experts": N_EXPERTS, "n_shared_experts": 2}
        groups = {"n_group": 4, "topk_group": 2}
        theirs = DeepseekV3MoE(DeepseekV3Config(**sizes, **groups, routed_scaling_factor=2.5, norm_topk_prob=True))
        router = BiasedRouter(D_MODEL, N_EXPERTS, 3, factor=2.5, n_groups=4, n_groups_chosen=2)
        shared = GatedFeedForward(D_MODEL, 2 * D_FF)
    return theirs.double(), MixtureOfExperts(router, make_expert, shared=shared).double()


def copy_weights(theirs, ours):
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    with torch.no_grad():
        ours.router.to_scores.weight.copy_(theirs.gate.weight)
        for i, expert in enumerate(ours.experts):
            gate, widen = theirs.experts.gate_up_proj[i].chunk(2)
            for mine, other in (
                (expert.gate, gate),
                (expert.widen, widen),
                (expert.narrow, theirs.experts.down_proj[i]),
            ):
                mine.weight.copy_(other)
        if ours.shared is not None:
            ours.router.bias.copy_(nn.init.normal_(theirs.gate.e_score_correction_bias))
            names = {"gate": "gate_proj", "widen": "up_proj", "narrow": "down_proj"}
            for mine, other in names.items():
                getattr(ours.shared, mine).weight.copy_(getattr(theirs.shared_experts, other).weight)


# Theirs go through float32 in the router, whatever the weights.
@pytest.mark.parametrize("name", ["mixtral", "qwen 3", "deepseek v3"])
def test_equals_the_published_block_and_its_gradients(name):
    theirs, ours = pair(name)
    copy_weights(theirs, ours)
    hidden = torch.randn(2, 9, D_MODEL, dtype=torch.float64)
    mine, expected = ours(hidden), theirs(hidden)
    torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-5)
    for output in (mine, expected):
        output.square().mean().backward()
    torch.testing.assert_close(ours.router.to_scores.weight.grad, theirs.gate.weight.grad, rtol=1e-4, atol=1e-5)
    for expert, other in zip(ours.experts, theirs.experts.down_proj.grad, strict=True):
        gradient = expert.narrow.weight.grad  # none where no token came
        gradient = torch.zeros_like(other) if gradient is None else gradient
        torch.testing.assert_close(gradient, other, rtol=1e-4, atol=1e-5)


def test_no_token_meets_another():
    ours = MixtureOfExperts(Router(D_MODEL, N_EXPERTS, 2), make_expert).double()
    hidden = torch.randn(1, 5, D_MODEL, dtype=torch.float64)
    alone = torch.cat([ours(hidden[:, i : i + 1]) for i in range(5)], dim=1)
    torch.testing.assert_close(ours(hidden), alone, rtol=0, atol=1e-12)


def test_balance_loss_equals_theirs_and_spreads_the_tokens():
    router = Router(D_MODEL, N_EXPERTS, 2)
    mixture = MixtureOfExperts(router, partial(FeedForward, D_MODEL, D_FF))
    hidden = torch.randn(4, 32, D_MODEL) + 1  # a common part, so that the router has favourites
    with record_routing(mixture) as routings:
        mixture(hidden)
        mixture(hidden[:1])
    first, second = routings
    assert (first.shares.shape, second.shares.shape) == ((128, 2), (32, 2))
    logits = router.to_scores(hidden.flatten(0, 1))
    torch.testing.assert_close(balance_loss(first), load_balancing_loss_func((logits,), N_EXPERTS, 2))
    optimizer = torch.optim.SGD(router.parameters(), lr=0.3)
    for _ in range(60):
        with record_routing(mixture) as routings:
            mixture(hidden)
        optimizer.zero_grad()
        balance_loss(routings[0]).backward()
        optimizer.step()
    assert routings[0].n_visits().max() < first.n_visits().max()
    assert balance_loss(routings[0]) < balance_loss(first)
    with record_routing(mixture) as none:
        pass
    mixture(hidden)
    assert none == []


def test_the_bias_spreads_the_tokens_and_leaves_the_shares_alone():
    router = BiasedRouter(D_MODEL, N_EXPERTS, 2)
    hidden = torch.randn(256, D_MODEL) + 1
    before = router(hidden)
    for _ in range(300):
        router.rebalance(router(hidden).n_visits(), step=0.01)
    after = router(hidden)
    assert before.n_visits().max() > 100
    assert after.n_visits().max() < 80  # 64 each would be even
    affinities = router.to_scores(hidden).sigmoid().gather(1, after.experts)
    torch.testing.assert_close(after.shares, affinities / affinities.sum(dim=-1, keepdim=True))


def test_active_parameters():
    shared = FeedForward(D_MODEL, 5)
    model = nn.Sequential(
        nn.Linear(3, D_MODEL), MixtureOfExperts(Router(D_MODEL, N_EXPERTS, 2), make_expert, shared=shared)
    )
    of_expert, of_shared = 3 * D_MODEL * D_FF, 2 * 5 * D_MODEL + 5 + D_MODEL
    expected = 4 * D_MODEL + N_EXPERTS * D_MODEL + 2 * of_expert + of_shared
    assert n_active_parameters(model) == expected


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="a token visits 1 to n_experts=4 experts, but n_chosen=5"):
        Router(8, 4, 5)
    with pytest.raises(ValueError, match="9 experts must make n_groups=2 equal groups"):
        BiasedRouter(8, 9, 2, n_groups=2)
    with pytest.raises(ValueError, match="too few experts for n_chosen=5"):
        BiasedRouter(8, 8, 5, n_groups=2)
    with pytest.raises(ShapeError, match="axis 'd_model' is 5 in hidden but must be 8"):
        MixtureOfExperts(Router(8, 4, 2), make_expert)(torch.randn(1, 2, 5))
    assert Routing(torch.tensor([[1], [1]]), torch.ones(2, 1), torch.ones(2, 3)).n_visits().tolist() == [0, 2, 0]
