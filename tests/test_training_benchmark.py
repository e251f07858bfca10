"""The benchmark of training: peers of one size that learn, ratios within a round, and what is missing is named."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("tokenizers", reason="needs the translation extra")

from benchmarks import _in_turn, _training_peers

PAIRS = [([5, 6, 7], [8, 9]), ([6, 5], [9, 8, 10]), ([7], [10])]


def test_ratios_are_taken_within_a_round() -> None:
    found = _in_turn.ratio([2.0, 20.0, 200.0], [1.0, 10.0, 100.0])
    assert found == {"ratio": 2.0, "low": 2.0, "high": 2.0}  # however much slower the machine became


def test_the_tutorial_s_loop_learns_and_counts_real_target_tokens() -> None:
    torch.manual_seed(0)
    step = _training_peers.torch_transformer(PAIRS, vocab_size=12, tokens_per_batch=64)
    counts, losses = zip(*(step() for _ in range(40)), strict=True)
    assert set(counts) == {sum(len(target) + 1 for _, target in PAIRS)}
    assert losses[-1] < losses[0] - 0.3


def test_the_peer_of_pytorch_has_the_size_of_ours() -> None:
    from ttutor.transformer import Transformer, TransformerConfig

    ours = Transformer(
        TransformerConfig(vocab_size=50, dropout=0.1, norm="pre", max_len=16, pad_id=0, **_training_peers.SIZES)
    )
    theirs = _training_peers.TorchTransformer(50)
    assert sum(p.numel() for p in theirs.parameters()) == pytest.approx(ours.n_parameters(), rel=0.01)
