"""The benchmark of training: peers of one size that learn, ratios within a round, and what is missing is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("tokenizers", reason="needs the translation extra")

from benchmarks import _in_turn, _training_peers, training

ROOT = Path(__file__).resolve().parent.parent
PAIRS = [([5, 6, 7], [8, 9]), ([6, 5], [9, 8, 10]), ([7], [10])]


def test_ratios_are_taken_within_a_round() -> None:
    found = _in_turn.ratio([2.0, 20.0, 200.0], [1.0, 10.0, 100.0])
    assert found == {"ratio": 2.0, "low": 2.0, "high": 2.0}  # however much slower the machine became


def test_an_interval_spans_rounds_that_disagree() -> None:
    found = _in_turn.ratio([1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5)
    assert found["low"] < found["ratio"] == 3.0 < found["high"]


def test_every_round_has_every_name_once_in_an_order_of_its_own() -> None:
    rounds = _in_turn.shuffled(["a", "b", "c", "d"], 5)
    assert all(sorted(order) == ["a", "b", "c", "d"] for order in rounds)
    assert len({tuple(order) for order in rounds}) > 1


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


def test_a_peer_that_is_not_installed_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:

    def make(runner: tuple[str, str], tokens_per_batch: int) -> None:
        if runner.name == "Marian":
            raise ModuleNotFoundError("No module named 'transformers'", name="transformers")

    monkeypatch.setattr(training, "make", make)
    monkeypatch.setattr(training, "resolve_precision", lambda wanted: "bf16")
    runners, missing = training.present()
    assert runners[0] == ("ttutor", "bf16")
    assert {("ttutor", "fp32"), ("nn.Transformer", "fp32"), ("nn.Transformer", "bf16")} <= set(runners)
    assert {precision for name, precision in runners if name == "JoeyNMT"} == {"fp32"}  # it has no other
    assert "Marian" not in {name for name, _ in runners}
    assert missing == {"Marian": "transformers is not installed; benchmarks/requirements*.txt say how"}


def test_without_native_bfloat16_all_run_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "make", lambda runner, tokens_per_batch: None)
    monkeypatch.setattr(training, "resolve_precision", lambda wanted: "fp32")
    runners, _ = training.present()
    assert {precision for _, precision in runners} == {"fp32"}
    assert len(runners) == len(set(runners))


def test_each_runs_at_the_batch_size_at_which_it_is_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def make(runner: tuple[str, str], size: int, batches: int):
        def step() -> tuple[int, float]:
            now[0] += abs(size - 2048) + 1.0
            return 1000, 0.0

        return step

    monkeypatch.setattr(training, "make", make)
    runner = training.Runner("ttutor", "fp32")
    assert training.best_sizes([runner], lambda: now[0], quick=False) == {runner: 2048}
