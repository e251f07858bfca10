"""Models, losses, caches, search and the translator on a device that is not the CPU: they run, and say the same."""

from __future__ import annotations

import copy
import sys
from functools import partial

import pytest
import torch
from torch import Tensor

from tests.generation import tiny
from tests.inside.test_every_model import MODELS
from tests.second_device import Elsewhere, moved, second_device
from tests.torch_twins import randomised
from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.cache import DecoderCache
from ttutor.efficient import efficient_attention, linear_attention, sparse_attention
from ttutor.generation import beam_search, greedy_search
from ttutor.masks import Mask
from ttutor.training.loss import batch_loss, smoothed_cross_entropy
from ttutor.training.trainer import Trainer
from ttutor.translation.translator import Translator

TOKEN_IDS = torch.tensor([[5, 6, 7, 8, 9], [4, 3, 5, 0, 0]])


def assert_same(found: Tensor, expected: Tensor) -> None:
    assert isinstance(found, Elsewhere)
    torch.testing.assert_close(found.held, expected, rtol=0, atol=1e-10)


def test_the_second_device_notices_a_tensor_of_the_first():
    with second_device() as device:
        numbers = torch.ones(3, device=device)
        assert (numbers + 1).device == device
        assert numbers.cpu().tolist() == numbers.tolist() == [1, 1, 1]
        assert torch.tensor([2, 0], device=device).tolist() == [2, 0]
        with pytest.raises(
            RuntimeError, match=r"add got tensors of two devices; on the CPU are those of shape \[\(3,\)"
        ):
            numbers + torch.ones(3)


@pytest.mark.parametrize("name", MODELS)
def test_models_and_their_gradients(name):
    build, inputs, _, _ = MODELS[name]
    model = randomised(build())
    twin = moved(model)
    expected = model(*inputs)
    expected.square().sum().backward()
    with second_device() as device:
        found = twin(*(tensor.to(device) for tensor in inputs))
        assert_same(found.detach(), expected.detach())
        found.square().sum().backward()
        for one, other in zip(twin.parameters(), model.parameters(), strict=True):
            if other.grad is not None:
                torch.testing.assert_close(one.grad.held, other.grad, rtol=1e-9, atol=1e-9)
        twin.train()(*(tensor.to(device) for tensor in inputs))  # with dropout


@pytest.mark.parametrize("name", [name for name in MODELS if "gpt" in name or name == "llama"])
def test_caches(name):
    build, (token_ids,), _, _ = MODELS[name]
    model = randomised(build())
    with second_device() as device:
        cache, twin = DecoderCache(n_layers=model.config.n_layers), moved(model)
        found = [twin(part.to(device), cache=cache) for part in token_ids.split(2, dim=1)]
        assert_same(torch.cat(found, dim=1).detach(), model(token_ids).detach())


@pytest.mark.parametrize("make", [tiny.gpt, tiny.translator])
@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_searches(make, search):
    model = make()
    options = {"eos_id": tiny.EOS, "max_new_tokens": 8} | ({} if make is tiny.gpt else {"bos_id": 2})
    options |= {"beam_size": 3} if search is beam_search else {}
    expected = search(model, TOKEN_IDS, **options)
    with second_device() as device:
        found = search(moved(model), TOKEN_IDS.to(device), **options)
    for one, other in zip(found, expected, strict=True):
        ranked = zip(one, other, strict=True) if search is beam_search else [(one, other)]
        for mine, theirs in ranked:
            assert mine.token_ids == theirs.token_ids
            assert mine.score == pytest.approx(theirs.score, abs=1e-10)


@pytest.mark.parametrize("name", ["reference", "eager", "sdpa", "tiled", "window"])
def test_backends(name):
    mask = Mask(causal=True, window=20, key_lengths=torch.tensor([70, 31]))
    tensors = [torch.randn(2, n_heads, 70, 8, dtype=torch.float64) for n_heads in (4, 2, 2)]
    expected = efficient_attention(*tensors, mask, backend=name)
    with second_device() as device:
        there = Mask(causal=True, window=20, key_lengths=mask.key_lengths.to(device))
        assert_same(efficient_attention(*(tensor.to(device) for tensor in tensors), there, backend=name), expected)


@pytest.mark.parametrize("attend", [linear_attention, partial(sparse_attention, window=3)])
def test_other_kinds_of_attention(attend):
    tensors = [torch.randn(2, 3, 7, 8, dtype=torch.float64) for _ in range(3)]
    expected = attend(*tensors, causal=True)
    with second_device() as device:
        assert_same(attend(*(tensor.to(device) for tensor in tensors), causal=True), expected)


@pytest.fixture(scope="module")
def trainer() -> Trainer:
    return Trainer(tiny_corpus(), tiny_recipe(dropout=0.0), precision="fp32")


def test_the_loss(trainer):
    model, batch = copy.deepcopy(trainer.model).double(), trainer.batches.batch(0, 0)
    with second_device() as device:
        found = batch_loss(moved(model), batch.to(device), 0.1)
        assert_same(found.detach(), batch_loss(model, batch, 0.1).detach())
        logits, targets = torch.randn(4, 6), torch.tensor([1, 2, 0, 5])
        found = smoothed_cross_entropy(logits.to(device), targets.to(device))
        assert_same(found, smoothed_cross_entropy(logits, targets))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_translator(trainer, beam_size, monkeypatch):
    monkeypatch.setattr(sys.modules[Translator.__module__], "SPARE_TOKENS", 0)
    translator = Translator.of(trainer)
    sentences = ["A dog.", "The cat sleeps."]
    expected = translator.translate(sentences, beam_size=beam_size, attention=True)
    with second_device() as device:
        translator.model = moved(translator.model)
        assert translator.device == device
        found = translator.translate(sentences, beam_size=beam_size, attention=True)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.text == theirs.text
        assert mine.score == pytest.approx(theirs.score, abs=1e-4)
        torch.testing.assert_close(mine.attention.weights, theirs.attention.weights, rtol=0, atol=1e-4)
