"""What is switched off is off, what is not stays, and the beginning is the reader's."""

from __future__ import annotations

import pytest
import torch

from tests.widgets.test_decoding import SENTENCE, limits, source_ids, translator
from ttutor.generation import greedy_search
from ttutor.inside import capture
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.packed import PARTS, head_means
from ttutor.translation.what_if import switch_names, switched_off, what_if


def test_with_nothing_changed_it_is_the_greedy_search_and_its_attention() -> None:
    (found,) = greedy_search(translator().model, source_ids(), **limits(8))
    one = what_if(translator(), SENTENCE, longest=8)
    assert [step.token_id for step in one.steps] == list(found.token_ids)
    assert float(sum(torch.tensor(step.probability).log() for step in one.steps)) == pytest.approx(
        found.log_probability, abs=1e-3
    )
    for part, weights in one.weights.items():
        assert torch.allclose(weights.sum(dim=-1), torch.ones(()), atol=1e-5), part
    assert all(step.runners_up[0][0] == step.token_id for step in one.steps)


def test_every_switch_changes_something_and_leaves_no_trace() -> None:
    usual = what_if(translator(), SENTENCE, longest=4)
    assert len(usual.steps) > 1, "at the first token there is nothing to mask yet"
    for name in switch_names(translator().model):
        changed = what_if(translator(), SENTENCE, off=[name], longest=4)
        assert not torch.equal(usual.logits, changed.logits), name
    assert torch.equal(what_if(translator(), SENTENCE, longest=4).logits, usual.logits)


def test_a_head_that_is_off_hands_on_nothing_or_its_mean() -> None:
    model = translator().model
    means = head_means(translator(), [(SENTENCE, SENTENCE)])
    for part, where in PARTS.items():
        site = where.format(1) + ".context"
        for given, expected in ((None, torch.zeros(())), (means, means[part][1][0])):
            with torch.no_grad(), switched_off(model, [f"{part}.1.0"], given), capture(model, site) as seen:
                model(source_ids(), torch.tensor([[2, 9, 9]]))
            assert torch.equal(seen[site][0, 0], expected.expand_as(seen[site][0, 0]))


def test_without_the_scale_scores_are_products() -> None:
    model, site = translator().model, "encoder.layers.0.self_attention"
    with torch.no_grad(), switched_off(model, ["scale"]), capture(model, f"{site}.weights", f"{site}.k") as seen:
        model.encode(source_ids())
    with torch.no_grad(), capture(model, f"{site}.q") as plain:
        model.encode(source_ids())
    expected = (plain[f"{site}.q"] @ seen[f"{site}.k"].mT).softmax(dim=-1)
    assert torch.allclose(seen[f"{site}.weights"], expected, atol=1e-5)


def test_without_the_mask_a_token_sees_what_comes_after_it() -> None:
    model, site = translator().model, "decoder.layers.0.self_attention.weights"
    with torch.no_grad(), switched_off(model, ["causal"]), capture(model, site) as seen:
        model(source_ids(), torch.tensor([[2, 9, 8]]))
    assert (seen[site] > 0).all()


def test_the_beginning_is_written_and_the_rest_follows_from_it() -> None:
    one = what_if(translator(), SENTENCE, beginning=[60, 70], longest=6)
    assert [step.token_id for step in one.steps][:2] == [60, 70]
    again = what_if(translator(), SENTENCE, beginning=[step.token_id for step in one.steps[:4]], longest=6)
    assert [step.token_id for step in again.steps] == [step.token_id for step in one.steps]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"nothing called 'cross.2.0' to switch off; there are encoder.0.0"):
        what_if(translator(), SENTENCE, off=["cross.2.0"])
    post = Transformer(TransformerConfig(vocab_size=9, d_model=4, n_heads=1, n_layers=1, d_ff=8, norm="post"))
    with pytest.raises(ValueError, match='norm="pre" alone'), switched_off(post, ["encoder.0"]):
        pass
