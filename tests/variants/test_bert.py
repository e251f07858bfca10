"""BERT and what stands on encoders: counts, symmetries, pooling, heads; parity with published code is in interop."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.torch_twins import randomised
from ttutor.errors import ShapeError
from ttutor.inside import capture
from ttutor.variants.bert import BERT, BERTConfig, BERTForPreTraining
from ttutor.variants.heads import (
    MaskedTokenHead,
    TransformerForSequenceClassification,
    first_token,
    mean_over_tokens,
)

CONFIG = BERTConfig(vocab_size=19, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=11, n_segments=3)
IS_REAL = torch.arange(7) < torch.tensor([[7], [4], [1]])


@pytest.fixture
def bert():
    return randomised(BERT(CONFIG))


@pytest.fixture
def token_ids():
    return torch.randint(19, (3, 7))


@pytest.fixture
def segment_ids():
    return torch.randint(3, (3, 7))


def test_what_enters_the_layers_is_the_normalised_sum_of_three_tables(bert, token_ids, segment_ids):
    with capture(bert, "encoder.layers.0.input") as seen:
        bert(token_ids, IS_REAL, segment_ids)
    words, places, segments = bert.embeddings.token.table, bert.embeddings.position.table, bert.segments
    for row, column in IS_REAL.nonzero().tolist():
        total = words.weight[token_ids[row, column]] + places.weight[column] + segments.weight[segment_ids[row, column]]
        expected = bert.norm.gain * (total - total.mean()) / total.std(correction=0) + bert.norm.bias
        torch.testing.assert_close(seen["encoder.layers.0.input"][row, column], expected)


def test_a_text_does_not_depend_on_its_batch_nor_on_its_padding(bert, token_ids, segment_ids):
    together = bert(token_ids, IS_REAL, segment_ids)
    for row, n_real in enumerate(IS_REAL.sum(dim=-1)):
        alone = bert(token_ids[row : row + 1, :n_real], segment_ids=segment_ids[row : row + 1, :n_real])
        torch.testing.assert_close(together[row, :n_real], alone[0])


def test_first_token_and_mean_take_real_tokens_alone():
    hidden = torch.randn(4, 7, 5, dtype=torch.float64)
    is_real = torch.tensor([[1] * 7, [0, 0, 1, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0, 0], [0] * 7]).bool()
    spoilt = hidden.masked_fill(~is_real[..., None], 1e6)
    torch.testing.assert_close(first_token(spoilt, is_real)[:3], hidden[[0, 1, 2], [0, 2, 0]], rtol=0, atol=0)
    for row in range(3):
        torch.testing.assert_close(mean_over_tokens(spoilt, is_real)[row], hidden[row][is_real[row]].mean(dim=0))
    assert torch.equal(mean_over_tokens(spoilt, is_real)[3], torch.zeros(5, dtype=torch.float64))
    torch.testing.assert_close(mean_over_tokens(hidden), hidden.mean(dim=1))
    assert torch.equal(first_token(hidden), hidden[:, 0])


def test_pooler_and_heads_by_their_formulas(bert):
    hidden = torch.randn(3, 7, 12, dtype=torch.float64)
    pooler = bert.pooler.map
    torch.testing.assert_close(bert.pool(hidden), torch.tanh(hidden[:, 0] @ pooler.weight.T + pooler.bias))
    head = MaskedTokenHead(bert.embeddings.token.table).double()
    for parameter in (head.transform.bias, head.norm.gain, head.norm.bias, head.to_logits.bias):
        nn.init.normal_(parameter)
    mapped = nn.functional.gelu(hidden @ head.transform.weight.T + head.transform.bias)
    centred = mapped - mapped.mean(dim=-1, keepdim=True)
    normal = head.norm.gain * centred / centred.square().mean(dim=-1, keepdim=True).sqrt() + head.norm.bias
    expected = normal @ bert.embeddings.token.table.weight.T + head.to_logits.bias
    torch.testing.assert_close(head(hidden), expected)


def test_both_tasks_share_one_encoder_and_one_table(bert, token_ids, segment_ids):
    model = BERTForPreTraining(bert).double().eval()
    answer = model(token_ids, IS_REAL, segment_ids)
    hidden = bert(token_ids, IS_REAL, segment_ids)
    assert torch.equal(answer.tokens, model.head(hidden))
    assert torch.equal(answer.next_sentence, model.next_sentence(bert.pool(hidden, IS_REAL)))
    assert model.head.to_logits.weight is bert.embeddings.token.table.weight
    n_new = sum(p.numel() for p in model.parameters()) - sum(p.numel() for p in bert.parameters())
    assert n_new == (12 * 12 + 12) + 2 * 12 + 19 + (2 * 12 + 2)  # map, norm, a bias for each token; two classes


def test_a_classifier_by_the_class_token_asks_for_berts_pooler_and_one_by_the_mean_does_not(bert, token_ids):
    by_class = TransformerForSequenceClassification(bert, 12, 4).double().eval()
    by_mean = TransformerForSequenceClassification(bert, 12, 4, pooling="mean").double().eval()
    before = by_class(token_ids), by_mean(token_ids)
    nn.init.zeros_(bert.pooler.map.weight)
    assert not torch.equal(before[0], by_class(token_ids))
    assert torch.equal(before[1], by_mean(token_ids))


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_refused(bert, token_ids):
    with pytest.raises(ValueError, match="12 tokens are more than the 11 positions"):
        bert(torch.zeros(1, 12, dtype=torch.long))
    with pytest.raises(ShapeError, match="axis 'tokens' is 7 in token_ids but 6 in segment_ids"):
        bert(token_ids, segment_ids=token_ids[:, :6])
    with pytest.raises(ShapeError, match="axis 'batch' is 3 in token_ids but 2 in is_real"):
        bert(token_ids, IS_REAL[:2])
    with pytest.raises(ValueError, match=r"pooling must be one of \['cls', 'mean'\], but is 'max'"):
        TransformerForSequenceClassification(bert, 12, 3, pooling="max")
