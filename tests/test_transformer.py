"""The whole model against `nn.Transformer`, its properties, and its sizes."""

import pytest
import torch

from tests.torch_twins import model_twin, randomised
from ttutor.cache import DecoderCache
from ttutor.errors import ShapeError
from ttutor.masks import padding_mask
from ttutor.transformer import Transformer, TransformerConfig

PAD = 0


def small(**changes) -> TransformerConfig:
    sizes = {"vocab_size": 23, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "max_len": 16}
    return TransformerConfig(**{**sizes, **changes})


def build(**changes) -> Transformer:
    return randomised(Transformer(small(**changes)))


@pytest.fixture
def source_ids():
    return torch.tensor([[5, 6, 7, 8, 9, 3, 0], [4, 5, 6, 3, 0, 0, 0]])


@pytest.fixture
def target_ids():
    return torch.tensor([[2, 10, 11, 12, 13], [2, 14, 15, 0, 0]])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # torch remarks on its own fast path
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_nn_transformer_in_values_and_gradients(source_ids, target_ids, norm):
    ours = build(norm=norm)
    theirs = model_twin(ours)
    memory_padding, target_padding = source_ids == PAD, target_ids == PAD
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    hidden = theirs(
        ours.source_embeddings(source_ids),
        ours.target_embeddings(target_ids),
        tgt_mask=ahead,
        src_key_padding_mask=memory_padding,
        tgt_key_padding_mask=target_padding,
        memory_key_padding_mask=memory_padding,
    )
    real = ~target_padding
    mine, expected = ours(source_ids, target_ids)[real], ours.project(hidden)[real]
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-11)
    table = ours.source_embeddings.token.table.weight
    (gradient,) = torch.autograd.grad(mine.logsumexp(-1).sum(), table)
    (expected_gradient,) = torch.autograd.grad(expected.logsumexp(-1).sum(), table)
    torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_no_leak_from_the_future(source_ids, target_ids, norm, positions):
    model = build(norm=norm, positions=positions)
    before = model(source_ids, target_ids)
    for t in range(1, 5):
        changed = target_ids.clone()
        changed[:, t] = 20
        assert torch.equal(before[:, :t], model(source_ids, changed)[:, :t])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_never_matters_neither_its_amount_nor_its_side(source_ids, target_ids, norm):
    model = build(norm=norm)
    alone = model(source_ids[1:, :4], target_ids[1:, :3])
    torch.testing.assert_close(model(source_ids, target_ids)[1:, :3], alone)
    left_source, left_target = torch.roll(source_ids, 3, dims=1), torch.roll(target_ids, 2, dims=1)
    assert left_source[1].tolist() == [0, 0, 0, 4, 5, 6, 3]
    assert left_target[1].tolist() == [0, 0, 2, 14, 15]
    torch.testing.assert_close(model(left_source[1:], left_target[1:])[:, 2:], alone)


@pytest.mark.parametrize("chunks", [[1] * 5, [2, 3], [4, 1]])
@pytest.mark.parametrize("padding", ["right", "left", "both"])
def test_cached_equals_uncached_for_ragged_batches(source_ids, chunks, padding):
    model = build(norm="pre")
    rows = {"right": [2, 14, 15, 0, 0], "left": [0, 0, 2, 14, 15], "both": [0, 2, 14, 15, 0]}
    target_ids = torch.tensor([[2, 10, 11, 12, 13], rows[padding]])
    memory, memory_mask = model.encode(source_ids), padding_mask(source_ids, PAD)
    cache = DecoderCache(2)
    parts = [model.decode(part, memory, memory_mask, cache) for part in target_ids.split(chunks, dim=1)]
    expected = model.decode(target_ids, memory, memory_mask)
    real = target_ids != PAD
    torch.testing.assert_close(torch.cat(parts, dim=1)[real], expected[real], rtol=0, atol=1e-12)


def test_a_ragged_batch_goes_on_after_its_padding(source_ids):
    """A row that was padded on the right in the prefill gets its next token at its own next position."""
    model = build()
    memory, memory_mask = model.encode(source_ids), padding_mask(source_ids, PAD)
    cache = DecoderCache(2)
    model.decode(torch.tensor([[2, 10, 11, 12], [2, 14, 0, 0]]), memory, memory_mask, cache)
    step = model.decode(torch.tensor([[13], [15]]), memory, memory_mask, cache)
    short = model.decode(torch.tensor([[2, 14, 15]]), memory[1:], memory_mask[1:])
    torch.testing.assert_close(step[1], short[0, -1:])


def test_the_tiny_model_has_the_sizes_of_its_paper():
    config = TransformerConfig.tiny()
    sizes = (config.n_layers, config.d_model, config.d_ff, config.n_heads, config.vocab_size)
    assert sizes == (4, 128, 256, 4, 10_000)
    assert Transformer(config).n_parameters() == pytest.approx(2.6e6, rel=0.01)


@pytest.mark.usefixtures("as_readers_run_it")
def test_wrong_inputs_are_named(source_ids, target_ids):
    model = build()
    with pytest.raises(ShapeError, match="axis 'batch' is 2 in source_ids but 1 in target_ids"):
        model(source_ids, target_ids[:1])
    with pytest.raises(ValueError, match="17 tokens are more than the 16 positions"):
        model(torch.ones(1, 17, dtype=torch.long), torch.ones(1, 3, dtype=torch.long))
    cache = DecoderCache(2)
    memory = model.encode(source_ids)
    model.decode(torch.ones(2, 10, dtype=torch.long), memory, cache=cache)
    with pytest.raises(ValueError, match="17 tokens are more than the 16 positions"):
        model.decode(torch.ones(2, 7, dtype=torch.long), memory, cache=cache)
