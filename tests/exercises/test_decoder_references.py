"""What the decoder's exercises take as right, the package or a few lines of their own, meets torch and the package."""

import torch
from torch import nn

from ttutor.cache import KeyValueCache
from ttutor.decoder import DecoderLayer
from ttutor.encoder import EncoderLayer
from ttutor.exercises import find
from ttutor.multihead import AttentionHead, MultiHeadAttention


def doubled(inputs):
    """The same inputs in float64."""
    return tuple(
        part.double() if isinstance(part, torch.Tensor) and part.is_floating_point() else part for part in inputs
    )


def test_cross_attention_is_torchs():
    exercise = find("decoder.cross_attention")
    for case in exercise.cases[:2]:  # where everything is padding, torch's module gives NaN
        hidden, memory, *maps, n_heads, mask = doubled(case.inputs(torch.Generator().manual_seed(7)))
        theirs = nn.MultiheadAttention(hidden.shape[-1], n_heads, bias=False, batch_first=True).double()
        theirs.in_proj_weight.data, theirs.out_proj.weight.data = torch.cat(maps[:3]), maps[3]
        is_padding = None if mask is None else ~mask[:, 0, 0]  # torch's polarity
        expected, _ = theirs(hidden, memory, memory, key_padding_mask=is_padding)
        torch.testing.assert_close(exercise.reference(hidden, memory, *maps, n_heads, mask), expected)


def test_a_source_of_padding_alone_gives_zeros():
    exercise = find("decoder.cross_attention")
    inputs = exercise.cases[2].inputs(torch.Generator().manual_seed(7))
    assert torch.equal(exercise.reference(*inputs)[1], torch.zeros_like(inputs[0][1]))


def test_a_head_with_a_cache_is_the_packages_head_over_the_whole_text():
    generator = torch.Generator().manual_seed(7)
    hidden = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    table = torch.randn(9, 8, generator=generator, dtype=torch.float64)
    head = AttentionHead(d_model=8, d_head=5).double()
    maps = [projection.weight for projection in (head.to_query, head.to_key, head.to_value)]
    whole = head(hidden + table[:6], causal=True)

    step = find("decoder.key_value_cache").reference
    key = value = hidden.new_empty(2, 0, 5)
    contexts = []
    for portion in hidden.split([3, 1, 2], dim=1):
        context, key, value = step(portion, key, value, table, *maps)
        contexts.append(context)
    torch.testing.assert_close(torch.cat(contexts, dim=1), whole)


def test_a_head_with_a_cache_keeps_what_the_packages_cache_keeps():
    generator = torch.Generator().manual_seed(7)
    hidden = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    layer, cache = MultiHeadAttention(8, 1, d_head=5, bias=False).double(), KeyValueCache()
    maps = [projection.weight for projection in (layer.to_query, layer.to_key, layer.to_value)]
    no_positions = hidden.new_zeros(9, 8)

    step = find("decoder.key_value_cache").reference
    key = value = hidden.new_empty(2, 0, 5)
    for portion in hidden.split([3, 1, 2], dim=1):
        k, v = cache.append(*(projection(portion)[:, None] for projection in (layer.to_key, layer.to_value)))
        _, key, value = step(portion, key, value, no_positions, *maps)
        torch.testing.assert_close((key, value), (k[:, 0], v[:, 0]))


def test_top_p_keeps_what_adds_up():
    """The nucleus as its definition has it, by hand."""
    reference = find("decoder.top_p").reference
    logits = torch.tensor([0.1, 0.5, 0.15, 0.25], dtype=torch.float64).log() + 3
    expected = torch.tensor([0.0, 0.5, 0.0, 0.25], dtype=torch.float64)
    torch.testing.assert_close(reference(logits, 0.7, 1.0), expected / expected.sum())
    squares = torch.tensor([0.01, 0.25, 0.0225, 0.0625], dtype=torch.float64)  # at temperature 1/2
    kept = squares * torch.tensor([0, 1, 0, 1])
    torch.testing.assert_close(reference(logits, 0.75, 0.5), kept / kept.sum())


def test_the_detector_finds_what_the_packages_layers_let_through():
    """A decoder layer leaks nothing, and the same vectors in an encoder layer are seen by all."""
    leaks = find("decoder.future_leaks").reference
    hidden = torch.randn(5, 8, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    decoder = DecoderLayer(8, 2, 16, cross_attention=False).double()
    encoder = EncoderLayer(8, 2, 16).double()
    assert not leaks(lambda rows: decoder(rows[None])[0], hidden).any()
    everything_later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    assert torch.equal(leaks(lambda rows: encoder(rows[None])[0], hidden), everything_later)


def test_a_training_pair_is_one_place_apart():
    read, said = find("decoder.decoder_pair").reference(torch.tensor([[7, 8, 0], [5, 6, 9]]), 2, 3, 0)
    assert read.tolist() == [[2, 7, 8, 0], [2, 5, 6, 9]]
    assert said.tolist() == [[7, 8, 3, 0], [5, 6, 9, 3]]
