"""Both sequence-to-sequence models against torch's modules, padding of either side, and greedy writing."""

import pytest
import torch
from torch import nn

from tests.recurrence.torch_twins import copy_weights, torch_twin
from ttutor.errors import ShapeError
from ttutor.recurrence import Seq2Seq, Seq2SeqConfig

PAD, BOS, EOS = 0, 2, 3


def build(**changes) -> Seq2Seq:
    model = Seq2Seq(Seq2SeqConfig(**{"vocab_size": 13, "d_model": 6, **changes})).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    return model


@pytest.fixture(params=["rnn", "lstm", "gru"])
def cell(request):
    return request.param


@pytest.fixture(params=["fixed vector", "attention", "attention, from both ends"])
def model(request, cell):
    return build(cell=cell, attention="attention" in request.param, bidirectional="both ends" in request.param)


@pytest.fixture
def source_ids():
    return torch.tensor([[5, 6, 7, 8, 9, 3, 4], [4, 5, 6, 3, 0, 0, 0]])


@pytest.fixture
def target_ids():
    return torch.tensor([[2, 10, 11, 12, 8], [2, 9, 11, 0, 0]])


def test_the_fixed_vector_model_equals_two_of_torchs_modules(cell):
    model = build(cell=cell)
    source_ids, target_ids = torch.randint(1, 13, (2, 7)), torch.randint(1, 13, (2, 5))
    _, last = torch_twin(model.encoder.cell)(model.source_embedding(source_ids))
    hidden, _ = torch_twin(model.decoder_cell)(model.target_embedding(target_ids), last)
    torch.testing.assert_close(model(source_ids, target_ids), model.to_logits(hidden), rtol=0, atol=1e-12)


def test_the_model_with_attention_equals_the_papers_equations_step_by_step():
    """Bahdanau et al. (2015), section 3.1: context from the state before, then torch's cell on token and context."""
    model = build(attention=True)
    source_ids, target_ids = torch.randint(1, 13, (2, 7)), torch.randint(1, 13, (2, 5))
    memory, last = torch_twin(model.encoder.cell)(model.source_embedding(source_ids))
    cell, state = nn.GRUCell(12, 6).double(), last[0]
    copy_weights(model.decoder_cell, cell)
    attention, logits, all_weights = model.attention, [], []
    for t in range(5):
        inner = (state @ attention.to_query.weight.T)[:, None] + memory @ attention.to_key.weight.T
        weights = (inner.tanh() @ attention.direction).softmax(dim=-1)
        context = (weights[:, :, None] * memory).sum(dim=1)
        state = cell(torch.cat([model.target_embedding.weight[target_ids[:, t]], context], dim=-1), state)
        logits.append(model.to_logits(state))
        all_weights.append(weights)
    torch.testing.assert_close(model(source_ids, target_ids), torch.stack(logits, 1), rtol=0, atol=1e-12)
    mine = model.attention_weights(source_ids, target_ids)
    torch.testing.assert_close(mine, torch.stack(all_weights, 1), rtol=0, atol=1e-12)


def test_padding_never_matters_neither_its_amount_nor_its_side(model, source_ids, target_ids):
    alone = model(source_ids[1:, :4], target_ids[1:, :3])
    torch.testing.assert_close(model(source_ids, target_ids)[1:, :3], alone)
    left_source, left_target = torch.roll(source_ids, 3, dims=1), torch.roll(target_ids, 2, dims=1)
    torch.testing.assert_close(model(left_source[1:], left_target[1:])[:, 2:], alone)


def test_no_leak_from_the_future(model, source_ids, target_ids):
    before = model(source_ids, target_ids)
    for t in range(1, 5):
        changed = target_ids.clone()
        changed[:, t] = 1
        assert torch.equal(before[:, :t], model(source_ids, changed)[:, :t])


def greedy_by_teacher_forcing(model, source_ids, max_new_tokens) -> list[int]:
    """One row: append the most probable token to the target and run the whole model again."""
    target = [BOS]
    while len(target) <= max_new_tokens and target[-1] != EOS:
        logits = model(source_ids, torch.tensor([target]))[0, -1]
        target.append(max((token for token in range(13) if token != PAD), key=lambda token: logits[token].item()))
    return target[1:]


def test_greedy_equals_running_the_whole_model_for_each_token_and_row(model):
    source_ids = torch.randint(1, 13, (6, 7))
    source_ids[2:5, 4:] = PAD
    model.to_logits.bias.data[EOS] += 1.0
    written = model.greedy(source_ids, bos_id=BOS, eos_id=EOS, max_new_tokens=9)
    expected = [greedy_by_teacher_forcing(model, row[None], 9) for row in source_ids]
    width = max(len(row) for row in expected)
    assert written.tolist() == [row + [PAD] * (width - len(row)) for row in expected]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 0, "attention": 1}, r"vocab_size must be .*; attention must be True or False \(attention=1\)"),
        ({"bidirectional": True, "d_model": 7}, r"d_model must be even to be read into from both ends \(d_model=7\)"),
        ({"pad_id": 13}, r"pad_id must be a token id \(pad_id=13, vocab_size=13\)"),
    ],
)
@pytest.mark.usefixtures("as_readers_run_it")
def test_impossible_configs_name_their_values(changes, message):
    with pytest.raises(ValueError, match=message):
        build(**changes)


@pytest.mark.usefixtures("as_readers_run_it")
def test_wrong_inputs_are_named(source_ids, target_ids):
    model = build()
    with pytest.raises(ShapeError, match="axis 'batch' is 2 in source_ids but 1 in target_ids"):
        model(source_ids, target_ids[:1])
    with pytest.raises(ValueError, match="bos_id=2 and eos_id=13 must lie below the vocab_size of 13"):
        model.greedy(source_ids, bos_id=BOS, eos_id=13, max_new_tokens=3)
    with pytest.raises(ValueError, match="eos_id=0 must not be the padding"):
        model.greedy(source_ids, bos_id=BOS, eos_id=PAD, max_new_tokens=3)
    with pytest.raises(ValueError, match="max_new_tokens=0 must be at least 1"):
        model.greedy(source_ids, bos_id=BOS, eos_id=EOS, max_new_tokens=0)
