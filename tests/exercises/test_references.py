"""What an exercise takes as right is what the package does, where no right answer of the bank says so already."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.exercises.bank import EXERCISES
from ttutor.cache import DecoderCache
from ttutor.efficient import linear_attention_recurrent, sparse_mask
from ttutor.efficient.linear_state import LinearState
from ttutor.encoder import Encoder
from ttutor.exercises.efficient.tell_exact import SUSPECTS
from ttutor.exercises.training import plan_batches, teacher_forcing
from ttutor.generation import greedy_search
from ttutor.inside import (
    ablate,
    attention_rollout,
    capture,
    fit_probe,
    head_writes,
    induction_score,
    key_covariance,
    patch,
    rank_one_edit,
)
from ttutor.layers import GatedFeedForward
from ttutor.multihead import AttentionHead, MultiHeadAttention
from ttutor.positions import SinusoidalPositions, sinusoidal_encoding
from ttutor.recurrence import LSTMCell
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID
from ttutor.training.batching import BucketedBatches, make_batch, pad
from ttutor.training.fit import fit
from ttutor.training.loss import smoothed_cross_entropy, smoothing_floor
from ttutor.training.low_rank import LowRank
from ttutor.transformer import account
from ttutor.transformer.costs import crossover_length
from ttutor.variants.experts import Router
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.objectives import restore_spans
from ttutor.variants.vit import VisionEncoder, ViTConfig

BY_ID = {exercise.id: exercise for exercise in EXERCISES}


def reference(exercise_id: str, *inputs):
    return BY_ID[exercise_id].reference(*inputs)


def inputs_of(exercise_id: str, case: int = 0) -> tuple:
    return BY_ID[exercise_id].cases[case].inputs(torch.Generator().manual_seed(5))


def doubles(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


# ---------------------------------------------------------------- recurrence and attention


def test_gates_are_those_of_the_lstm() -> None:
    cell = LSTMCell(3, 4).double()
    word, hidden, memory_cell = doubles(2, 3), doubles(2, 4), doubles(2, 4)
    came = reference("recurrence.lstm_gates", cell.from_input(word) + cell.from_hidden(hidden), memory_cell)
    torch.testing.assert_close(came, cell(word, (hidden, memory_cell)))


@pytest.fixture
def layer() -> MultiHeadAttention:
    """Three heads of width four."""
    return MultiHeadAttention(12, 3, bias=False).double().requires_grad_(False)


def test_heads_attend_split_and_write_as_in_the_package(layer: MultiHeadAttention) -> None:
    hidden = doubles(2, 5, 12)
    with capture(layer, "q") as queries, capture(layer, "context") as contexts:
        output = layer(hidden, mask=torch.ones(5, 5, dtype=torch.bool).tril())
    weights = [part.weight for part in (layer.to_query, layer.to_key, layer.to_value, layer.to_output)]
    torch.testing.assert_close(reference("multihead.multi_head_attention", hidden, *weights, 3), output)
    torch.testing.assert_close(reference("multihead.split_heads", layer.to_query(hidden), 3), queries["q"])
    written = reference("multihead.head_contributions", contexts["context"], weights[3])
    torch.testing.assert_close(written, head_writes(layer, contexts["context"]))
    torch.testing.assert_close(written.sum(dim=1), output)


def test_grouped_attention_is_torchs() -> None:
    query, key, value = doubles(2, 6, 4, 3), doubles(2, 2, 5, 3), doubles(2, 2, 5, 3)
    expected = nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    torch.testing.assert_close(reference("multihead.grouped_attention", query, key, value), expected)


def test_fixed_positions_are_the_packages_sinusoids() -> None:
    hidden = torch.randn(2, 5, 6)
    expected = hidden + SinusoidalPositions(6, 9)(torch.arange(5).expand(2, -1))
    came = reference("positions.position_table", sinusoidal_encoding(9, 6))(hidden)
    torch.testing.assert_close(came, expected)


# ---------------------------------------------------------------- encoder and decoder


def test_a_stack_of_the_packages_layers_is_its_encoder() -> None:
    encoder, hidden = Encoder(8, 2, 16, 3, norm="post").eval(), torch.randn(2, 5, 8)
    layers = iter(encoder.layers)
    torch.testing.assert_close(reference("encoder.layer_stack", lambda: next(layers), 3)(hidden), encoder(hidden))


def test_a_head_with_a_cache_is_the_packages_head_over_the_whole_text() -> None:
    hidden, table = doubles(2, 6, 8), doubles(9, 8)
    head = AttentionHead(d_model=8, d_head=5).double()
    maps = [projection.weight for projection in (head.to_query, head.to_key, head.to_value)]
    key = value = hidden.new_empty(2, 0, 5)
    contexts = []
    for portion in hidden.split([3, 1, 2], dim=1):
        context, key, value = reference("decoder.key_value_cache", portion, key, value, table, *maps)
        contexts.append(context)
    torch.testing.assert_close(torch.cat(contexts, dim=1), head(hidden + table[:6], causal=True))


def test_greedy_decoding_writes_what_the_package_writes() -> None:
    model = GPT(GPTConfig(vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=24, max_len=16)).eval()
    nn.init.normal_(model.embeddings.token.table.weight, std=2.0)  # so that it does not say one token for ever

    def step(token_ids, cache):
        cache = DecoderCache(2) if cache is None else cache
        return model(token_ids, cache=cache), cache

    whole = reference("decoder.greedy_decode", step, 1, 99, 8)
    (never_ends,) = greedy_search(model, torch.tensor([[1]]), max_new_tokens=8)
    (ends,) = greedy_search(model, torch.tensor([[1]]), max_new_tokens=8, eos_id=whole[3])
    assert tuple(whole) == never_ends.token_ids
    assert reference("decoder.greedy_decode", step, 1, whole[3], 8) == list(ends.token_ids)


# ---------------------------------------------------------------- training


def test_teacher_forcing_gives_the_packages_batches() -> None:
    assert (teacher_forcing.PAD_ID, teacher_forcing.BOS_ID, teacher_forcing.EOS_ID) == (PAD_ID, BOS_ID, EOS_ID)
    targets = [[7, 8, 9], [10], [11, 12]]
    batch = make_batch([([5], target) for target in targets])
    exercise = BY_ID["training.teacher_forcing"]
    came = exercise.observe(exercise.reference, pad([[BOS_ID, *target, EOS_ID] for target in targets]))
    torch.testing.assert_close(came, (batch.target_in, batch.target_out))


@pytest.mark.parametrize("case", range(2))  # in the third a logit is infinite: the package asks for finite ones
def test_masked_loss_is_the_packages_without_smoothing(case: int) -> None:
    logits, targets, pad_id = inputs_of("training.masked_loss", case)
    expected = smoothed_cross_entropy(logits.flatten(0, 1), targets.flatten(), smoothing=0.0, pad_id=pad_id)
    torch.testing.assert_close(reference("training.masked_loss", logits, targets, pad_id), expected)


def test_the_smoothing_for_a_floor_has_that_floor_in_the_package() -> None:
    assert smoothing_floor(11, reference("training.smoothing_for_floor", 11, 0.8)) == pytest.approx(0.8)


def test_training_steps_make_the_packages_loop() -> None:
    batch = doubles(6, 3), doubles(6, 2)

    def loss(model, batch):
        return (model(batch[0]) - batch[1]).square().mean()

    ours, theirs = nn.Linear(3, 2).double(), nn.Linear(3, 2).double()
    theirs.load_state_dict(ours.state_dict())
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.05)
    losses = [reference("training.training_step", ours, optimizer, loss, batch, 0.3) for _ in range(4)]
    expected = fit(theirs, [batch], loss, steps=4, learning_rate=0.05, clip_norm=0.3)
    torch.testing.assert_close(losses, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-5, atol=0)


def test_a_plan_wastes_no_more_than_the_packages() -> None:
    lengths, budget = plan_batches._sentences(torch.Generator().manual_seed(0))
    plan = reference("training.plan_batches", lengths, budget)
    cells = [len(batch) * max(lengths[index] for index in batch) for batch in plan]
    pairs = [([5] * (length - 1), [5] * (length - 1)) for length in lengths]  # the end mark is counted, too
    by_package = BucketedBatches(pairs, max_tokens=budget, seed=0)
    assert sum(lengths) / sum(cells) > by_package.real_share() - 0.02
    assert abs(len(cells) - by_package.per_epoch()) <= 0.1 * len(cells)


# ---------------------------------------------------------------- variants and images


def test_the_cache_weighs_what_the_account_says() -> None:
    costs = account(LlamaConfig.llama2_70b(), n_tokens=4096, batch=1, dtype=torch.bfloat16)
    assert reference("variants.cache_bytes", 80, 8, 128, 4096, 1, None) == costs.cache_bytes == 1_342_177_280


@pytest.mark.parametrize("case", range(len(BY_ID["variants.span_targets"].cases)))
def test_span_targets_can_be_put_back(case: int) -> None:
    token_ids, taken, sentinel_ids = inputs_of("variants.span_targets", case)
    inputs, targets = reference("variants.span_targets", token_ids, taken, sentinel_ids)
    assert restore_spans(inputs, targets, sentinel_ids=sentinel_ids) == token_ids


@pytest.mark.parametrize("case", range(len(BY_ID["variants.gated_network"].cases)))
def test_the_gated_network_is_the_packages(case: int) -> None:
    hidden, w_in, w_out, activation = inputs_of("variants.gated_network", case)
    d_ff = w_out.shape[1]
    layer = GatedFeedForward(hidden.shape[1], d_ff, activation=activation).double()
    for part, matrix in zip((layer.gate, layer.widen, layer.narrow), (w_in[:d_ff], w_in[d_ff:], w_out), strict=True):
        part.weight.data = matrix
    torch.testing.assert_close(reference("variants.gated_network", hidden, w_in, w_out, activation), layer(hidden))


def test_the_class_token_is_put_before_the_patches_as_in_the_package() -> None:
    encoder = VisionEncoder(ViTConfig.tiny(image_size=8, patch_size=4, n_layers=1)).eval()
    nn.init.normal_(encoder.class_token)
    images = torch.randn(3, 3, 8, 8)
    patches = encoder.embed_patches(reference("vit.patchify", images, 4))
    came = reference("vit.class_token", patches, encoder.class_token[None, None], encoder.position.table.weight)
    torch.testing.assert_close(came, encoder.embed(images))


def test_the_class_tokens_rollout_is_a_row_of_the_packages() -> None:
    weights = doubles(3, 1, 2, 5, 5).softmax(dim=-1)
    row = attention_rollout(weights)[0, 0, 1:]
    torch.testing.assert_close(reference("vit.class_rollout", weights[:, 0]), row / row.sum())


# ---------------------------------------------------------------- efficient


@pytest.mark.parametrize("sizes", [(30, 7, 3), (12, 20, 5), (44, 40, 10), (25, 1, 0)])
def test_entries_are_those_of_the_packages_mask(sizes: tuple[int, int, int]) -> None:
    n_tokens, window, n_global = sizes
    drawn = sparse_mask(n_tokens, window=window, n_global=n_global, causal=True)
    assert reference("efficient.window_entries", *sizes) == int(drawn.sum())


def test_a_linear_step_is_the_packages() -> None:
    summed, normaliser, *token = inputs_of("efficient.linear_step")
    state = LinearState(summed[None, None], normaliser[None, None], torch.zeros(1, 1, dtype=torch.float64))
    context, after = linear_attention_recurrent(*(part[None, None, None] for part in token), state)
    came = reference("efficient.linear_step", summed, normaliser, *token)
    torch.testing.assert_close(came, (context[0, 0, 0], after.summed[0, 0], after.normaliser[0, 0]))


def test_the_crossover_of_gpt3_and_of_a_gated_model() -> None:
    solution = BY_ID["efficient.crossover"].solution
    assert solution(12_288, 96, 96, 128, 4 * 12_288, False, False) == 73_728
    theirs = crossover_length(d_model=64, n_heads=4, n_kv_heads=2, d_head=16, d_ff=100, gated=True)
    assert solution(64, 4, 2, 16, 100, True, True) == pytest.approx(2 * theirs)


def test_the_suspects_are_told_apart() -> None:
    found = reference("efficient.tell_exact", [suspect for suspect, _ in SUSPECTS])
    assert found.tolist() == [is_right for _, is_right in SUSPECTS]


# ---------------------------------------------------------------- inside


def test_the_stricter_score_is_the_packages_where_every_token_has_one_twin() -> None:
    token_ids = torch.tensor([3, 1, 4, 2, 3, 1, 4, 2])
    weights = torch.randn(3, 8, 8).softmax(dim=-1)
    theirs = induction_score(weights[None], token_ids[None])
    torch.testing.assert_close(reference("inside.twin_score", weights, token_ids), theirs)


def test_the_written_fact_is_the_packages_edit() -> None:
    weight, bias, key, output, other_keys = inputs_of("inside.written_fact")
    theirs = rank_one_edit(weight, key, output - bias, key_covariance(other_keys))
    torch.testing.assert_close(reference("inside.written_fact", weight, bias, key, output, other_keys), theirs)


def test_the_layer_without_a_head_is_the_packages_ablation(layer: MultiHeadAttention) -> None:
    context, typical = doubles(2, 3, 5, 4), doubles(6, 3, 7, 4)
    by = typical[:, 2].mean(dim=(0, 1))
    with patch(layer, {"context": context}), ablate(layer, "context", heads=[2], by=by):
        theirs = layer(doubles(2, 5, 12))
    torch.testing.assert_close(reference("inside.without_head", context, typical, 2, layer.to_output.weight), theirs)


def test_the_honest_probe_is_the_packages_without_a_ridge() -> None:
    hidden, labels, is_train, n_labels = inputs_of("inside.honest_probe")
    theirs = fit_probe(hidden[is_train], labels[is_train], n_labels, ridge=1e-10)
    expected = theirs.accuracy(hidden[~is_train], labels[~is_train])
    assert reference("inside.honest_probe", hidden, labels, is_train, n_labels) == expected


# ---------------------------------------------------------------- experts and adapters


def test_shares_of_experts_are_the_routers() -> None:
    router, hidden = Router(6, 5, 2), torch.randn(7, 6)
    routing = router(hidden)
    table = torch.zeros(7, 5).scatter(1, routing.experts, routing.shares)
    torch.testing.assert_close(reference("variants.expert_shares", router.to_scores(hidden), 2), table)


def test_merging_an_adapter_is_the_packages() -> None:
    weight = torch.randn(6, 6)
    adapter = LowRank(weight, rank=2, alpha=8.0).requires_grad_(False)
    nn.init.normal_(adapter.widen)
    came = reference("variants.merged_low_rank", weight, adapter.narrow, adapter.widen, 8.0)
    torch.testing.assert_close(came, adapter(weight))
