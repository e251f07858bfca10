"""What the exercises on modules take as right meets the package."""

import torch
from torch import nn

from ttutor.cache import DecoderCache
from ttutor.embeddings import TokenEmbedding
from ttutor.encoder import Encoder
from ttutor.exercises import find
from ttutor.generation import greedy_search
from ttutor.positions import SinusoidalPositions, sinusoidal_encoding
from ttutor.variants.gpt import GPT, GPTConfig


def test_fixed_positions_are_the_packages_sinusoids():
    table, hidden = sinusoidal_encoding(9, 6), torch.randn(2, 5, 6)
    expected = hidden + SinusoidalPositions(6, 9)(torch.arange(5).expand(2, -1))
    torch.testing.assert_close(find("positions.position_table").reference(table)(hidden), expected)


def test_a_stack_of_the_packages_layers_is_its_encoder():
    encoder, hidden = Encoder(8, 2, 16, 3, norm="post").eval(), torch.randn(2, 5, 8)
    layers = iter(encoder.layers)
    stack = find("encoder.layer_stack").reference(lambda: next(layers), 3)
    torch.testing.assert_close(stack(hidden), encoder(hidden))


def test_tied_embeddings_learn_as_one_table_of_the_package():
    ours, theirs = find("transformer.tied_embeddings").reference(7, 4), TokenEmbedding(7, 4, factor=1.0)
    theirs.table.weight.data.copy_(ours.embed.weight.data)
    token_ids = torch.tensor([[3, 0, 6]])
    ours.to_logits(ours.embed(token_ids)).square().sum().backward()
    (theirs(token_ids) @ theirs.table.weight.T).square().sum().backward()
    (parameter,) = ours.parameters()
    torch.testing.assert_close(parameter.grad, theirs.table.weight.grad)


def test_the_stacks_of_the_exercise_hold_what_it_says():
    exercise = find("encoder.layer_stack")
    seen = exercise.observe(exercise.reference, *exercise.cases[0].inputs(torch.Generator().manual_seed(5)))
    layer = nn.Linear(4, 4)
    assert seen["numbers that an optimiser is handed"] == 3 * sum(part.numel() for part in layer.parameters())


def test_greedy_decoding_writes_what_the_package_writes():
    torch.manual_seed(3)
    model = GPT(GPTConfig(vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=24, max_len=16)).eval()
    nn.init.normal_(model.embeddings.token.table.weight, std=2.0)  # so that it does not say one token for ever

    def step(token_ids, cache):
        cache = DecoderCache(2) if cache is None else cache
        return model(token_ids, cache=cache), cache

    reference = find("decoder.greedy_decode").reference
    whole = reference(step, 1, 99, 8)
    never_ends = greedy_search(model, torch.tensor([[1]]), max_new_tokens=8)
    assert tuple(whole) == never_ends[0].token_ids
    (ends,) = greedy_search(model, torch.tensor([[1]]), max_new_tokens=8, eos_id=whole[3])
    assert reference(step, 1, whole[3], 8) == list(ends.token_ids) == whole[: whole.index(whole[3])]
