"""The search that a translator runs, its vocabulary in chunks, against a plain slow search; and what it is made of."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from tests.generation.test_writer import SOURCES, following, ranked_after, rectangle
from tests.generation.tiny import beam_by_hand
from ttutor.attention import scaled_dot_product_attention
from ttutor.generation import next_token
from ttutor.tokenization import BOS_ID, EOS_ID
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation import engine, fast_decoder
from ttutor.translation.engine import OwnEngine
from ttutor.translation.fast_decoder import FastTransformer, can_be_fast

VOCAB = 40
pytestmark = pytest.mark.usefixtures("as_readers_run_it")  # these search for long; other tests check the annotations
BEAM_SIZES = [size if size in (1, 2, 5, 8) else pytest.param(size, marks=pytest.mark.soak) for size in range(1, 9)]


def random_translator(seed: int, norm: str = "pre") -> Transformer:
    """In float32, with opinions, and a liking for the end mark that differs from seed to seed."""
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 24, "max_len": 24}
    model = Transformer(TransformerConfig(vocab_size=VOCAB, norm=norm, logits_bias=True, tie_embeddings=False, **sizes))
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.4)
    with torch.no_grad():
        model.to_logits.bias[EOS_ID] = seed
    return model.eval()


@pytest.mark.parametrize("beam_size", BEAM_SIZES)
def test_a_translators_search_finds_what_a_plain_slow_search_finds(monkeypatch, beam_size):
    monkeypatch.setattr(next_token, "LOGITS_PER_CHUNK", 3 * VOCAB * beam_size)
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


def test_a_fast_decoder_takes_the_steps_of_the_decoder():
    model = random_translator(seed=3)
    fast = FastTransformer(model)
    source_ids = torch.tensor([[5, 6, 7, EOS_ID], [8, EOS_ID, 0, 0], [9, 4, EOS_ID, 0]])
    with torch.inference_mode():
        (plain_state, _), (fast_state, _) = (one.start(source_ids, bos_id=1) for one in (model, fast))
        for step in range(20):  # past the fewest keys that are read
            rows = torch.arange(len(plain_state.history)).flip(0)
            expected, found = (
                following(model, plain_state, 4 + step + rows),
                following(fast, fast_state, 4 + step + rows),
            )
            torch.testing.assert_close(found, expected)
            for state in (plain_state, fast_state):
                state.select(rows[: 2 if step == 5 else None])


def test_in_half_precision_large_products_are_rounded_and_small_ones_are_not(monkeypatch):
    model = random_translator(seed=3)
    exact, rounded = FastTransformer(model), FastTransformer(model, torch.bfloat16)
    hidden = torch.randn(10, model.config.d_model)
    with torch.inference_mode():
        expected = exact.project(hidden)
        assert torch.equal(rounded.project(hidden), expected)  # far below the size from which rounding pays
        monkeypatch.setattr(fast_decoder, "WORTH_ROUNDING", expected.numel() * model.config.d_model)
        assert torch.equal(rounded.project(hidden[:9]), exact.project(hidden[:9]))
        found = rounded.project(hidden)
    assert found.dtype == torch.float32
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0.02)  # eight bits of each factor


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_branch_sees_its_own_way_however_they_part_end_and_leave(norm):
    model = random_translator(seed=1, norm=norm)
    fast = FastTransformer(model)
    sources, targets, n_branches = SOURCES, [[BOS_ID] for _ in SOURCES], 1
    with torch.no_grad():
        state, _ = fast.start(rectangle(sources), bos_id=BOS_ID)
        for n_kept, n_next in ((5, 4), (5, 4), (3, 4), (3, 2), (3, 2), (1, 3), (1, 3)):
            found = following(fast, state, torch.tensor([target[-1] for target in targets]))
            for row, target in enumerate(targets):
                source = torch.tensor([sources[row // n_branches]])
                expected = model(source, torch.tensor([target]))[0, -1].log_softmax(dim=-1)
                torch.testing.assert_close(found[row], expected)
            kept = sorted(torch.randperm(len(sources))[:n_kept].tolist())
            rows = [row * n_branches + int(torch.randint(n_branches, ())) for row in kept for _ in range(n_next)]
            state.select(torch.tensor(rows))
            targets = [[*targets[row], 4 + place % 7] for place, row in enumerate(rows)]
            sources, n_branches = [sources[place] for place in kept], n_next


@pytest.mark.parametrize("unusual", ["norm", "attend", "hook", "double"])
def test_a_model_that_takes_other_steps_is_not_replaced(unusual):
    model = random_translator(seed=0)
    assert can_be_fast(model)
    first = model.decoder.layers[0]
    if unusual == "norm":
        first.around_feed_forward.norm = torch.nn.LayerNorm(16)
    elif unusual == "attend":
        first.cross_attention.attend = lambda *args, **options: scaled_dot_product_attention(*args, **options)
    elif unusual == "hook":
        first.self_attention.register_forward_hook(lambda *_: None)
    else:
        model.double()
    assert not can_be_fast(model)
    assert OwnEngine(model).prepare() is model


def test_a_model_is_prepared_once_and_anew_when_its_weights_change(monkeypatch):
    model, made = random_translator(seed=0), []
    monkeypatch.setattr(engine, "FastTransformer", lambda *given: made.append(given) or FastTransformer(*given))
    translate = partial(OwnEngine(model).search, [[5, 6, EOS_ID]], beam_size=2, length_penalty=1.0, max_new_tokens=7)
    before = [translate() for _ in range(3)]
    assert before[0] == before[1] == before[2]
    assert len(made) == 1
    with torch.no_grad():
        model.to_logits.bias[EOS_ID] = 50.0
    ((best, _),) = translate()
    assert best.token_ids == ()
    assert len(made) == 2


def test_to_ask_whether_a_model_can_be_fast_draws_no_random_number():
    model = random_translator(seed=0)
    before = torch.get_rng_state()
    can_be_fast(model)
    assert torch.equal(torch.get_rng_state(), before)
