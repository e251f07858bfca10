"""The search that a translator runs, with packed weights and its vocabulary in parts, against a plain slow search."""

from __future__ import annotations

import pytest
import torch

from tests.generation.test_branches import ranked_after
from tests.generation.tiny import beam_by_hand
from ttutor.attention import scaled_dot_product_attention
from ttutor.decoder import Decoder
from ttutor.generation import TranslationState, packed_weights, state
from ttutor.generation.packed_weights import PackedLinear, with_packed_weights
from ttutor.generation.step_decoder import StepDecoder, made_for_search
from ttutor.tokenization import EOS_ID
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.engine import OwnEngine

VOCAB = 40
needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch has no oneDNN here")


def random_translator(seed: int) -> Transformer:
    """In float32, with opinions, and a liking for the end mark that differs from seed to seed."""
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 24, "max_len": 24}
    model = Transformer(
        TransformerConfig(vocab_size=VOCAB, norm="pre", logits_bias=True, tie_embeddings=False, **sizes)
    )
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.4)
    with torch.no_grad():
        model.to_logits.bias[EOS_ID] = seed
    return model.eval()


@pytest.mark.parametrize("beam_size", range(1, 9))
def test_a_translators_search_finds_what_a_plain_slow_search_finds(monkeypatch, beam_size):
    monkeypatch.setattr(packed_weights, "FEW", 0)
    monkeypatch.setattr(state, "PART", 3 * VOCAB * beam_size)
    lengths = set()
    for seed in range(4):
        model = random_translator(seed)
        sources = [torch.randint(4, VOCAB, (n,)).tolist() + [EOS_ID] for n in (1, 6, 2, 3, 9, 4, 2)]
        alpha = 1.0 if beam_size > 1 else 0.0  # a greedy search has no penalty
        found = OwnEngine(model).search(sources, beam_size=beam_size, length_penalty=alpha, max_new_tokens=7)
        for source, beam in zip(sources, found, strict=True):
            expected = beam_by_hand(ranked_after(model, source), 7, beam_size, alpha, [EOS_ID])
            assert [(one.token_ids, one.is_finished) for one in beam] == [one[:2] for one in expected]
            assert [one.score for one in beam] == pytest.approx([one[2] for one in expected], abs=1e-4)
            lengths |= {(len(one.token_ids), one.is_finished) for one in beam}
    assert len(lengths) >= 5  # sentences ended at different steps, and at the limit
    assert (7, False) in lengths


@needs_onednn
@pytest.mark.parametrize("n_rows", [1, 40])
def test_a_packed_map_is_the_map_and_leaves_it_alone(monkeypatch, n_rows):
    monkeypatch.setattr(packed_weights, "FEW", 10 * 16 * 24)
    model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU(), torch.nn.Linear(24, 16, bias=False))
    before, hidden = list(model), torch.randn(n_rows, 3, 16)
    packed = with_packed_weights(model)
    with torch.inference_mode():
        torch.testing.assert_close(packed(hidden), model(hidden))
    assert [type(part) for part in packed] == [PackedLinear, torch.nn.ReLU, PackedLinear]
    assert all(one is other for one, other in zip(model, before, strict=True))


def test_what_cannot_be_packed_stays():
    precise, watched = torch.nn.Linear(2, 2).double(), torch.nn.Linear(2, 2)
    watched.register_forward_hook(lambda *_: None)
    kept = with_packed_weights(torch.nn.ModuleList([precise, watched]))
    assert list(kept) == [precise, watched]


@needs_onednn
def test_a_decoder_for_a_search_takes_the_steps_of_the_decoder():
    model = random_translator(seed=3)
    prepared = made_for_search(model)
    source_ids = torch.tensor([[5, 6, 7, EOS_ID], [8, EOS_ID, 0, 0], [9, 4, EOS_ID, 0]])
    states = [TranslationState(one, source_ids) for one in (model, prepared)]
    assert type(prepared._modules["decoder"]) is StepDecoder
    with torch.inference_mode():
        for step in range(20):  # past the fewest keys that are read
            rows = torch.arange(len(states[0].memory)).flip(0)
            expected, found = (state.next_log_probabilities(4 + step + rows) for state in states)
            torch.testing.assert_close(found, expected)
            for state in states:
                state.select(rows[: 2 if step == 5 else None])


@pytest.mark.parametrize("unusual", ["norm", "attend", "hook"])
def test_a_decoder_that_takes_other_steps_stays(unusual):
    model = random_translator(seed=0)
    first = model.decoder.layers[0]
    if unusual == "norm":
        first.around_feed_forward.norm = torch.nn.LayerNorm(16)
    elif unusual == "attend":
        first.cross_attention.attend = lambda *args, **options: scaled_dot_product_attention(*args, **options)
    else:
        first.self_attention.register_forward_hook(lambda *_: None)
    assert type(made_for_search(model)._modules["decoder"]) is Decoder
