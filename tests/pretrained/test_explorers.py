"""The explorers on a model of thirty layers: live, and by what is stored of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ttutor import assets
from ttutor.inside import logit_lens
from ttutor.pretrained import Pretrained
from ttutor.widgets import AttentionExplorer, HeadsExplorer, LensExplorer
from ttutor.widgets.lens import Guesses

LAYERS = [0, 16, 17, 18]
SHOWN = [0, 10, 20, 25, 26, 27, 28, 29, 30]


@pytest.fixture(scope="module")
def recorded() -> dict:
    return assets.load("pretrained_recording")


@pytest.fixture(scope="module")
def weights() -> torch.Tensor:
    """Of the text with the repetition: layers heads queries keys."""
    return assets.weights("pretrained_recording")["repetition"].float()


def stored_lens(recorded: dict, **options: object) -> LensExplorer:
    lens = recorded["lens"]
    return LensExplorer(lens["tokens"], Guesses(lens["words"], lens["chances"]), layers=SHOWN, **options)


def test_stored_attention_can_be_explored(recorded: dict, weights: torch.Tensor) -> None:
    tokens = recorded["repetition"]["tokens"]
    assert weights.shape == (30, 9, len(tokens), len(tokens))
    layer, head = recorded["attacks"]["induction"]["best 4"][1]
    one = AttentionExplorer(tokens, weights[layer, head].log())
    np.testing.assert_allclose(one.weights, weights[layer, head], atol=2e-3)
    all_heads = HeadsExplorer(tokens, weights, layers=LAYERS, query=len(tokens) - 1)
    assert all_heads.layers == LAYERS
    assert len(all_heads.labels) == 4
    assert "mostly first token" in all_heads.labels[3]
    for explorer in (one, all_heads):
        assert len(explorer.to_html()) < 30_000


def test_the_stored_lens_can_be_explored(recorded: dict) -> None:
    made = stored_lens(recorded)
    assert made.guesses[-1][-1][0] == " Paris"
    assert repr(made) == "LensExplorer(' is', after 0 of 30 layers)"
    assert len(made.to_html()) < 30_000


@torch.inference_mode()
def test_a_live_model_of_thirty_layers_shows_what_is_stored(
    smollm2: Pretrained, recorded: dict, weights: torch.Tensor
) -> None:
    text = recorded["repetition"]["text"]
    live_layers = LAYERS[1:]  # a live figure holds what the heads write, too, and so fewer layers
    heads = HeadsExplorer.from_model(smollm2.model, text, smollm2.tokenizer, layers=live_layers)
    assert heads.layers == live_layers
    np.testing.assert_allclose(heads.weights, weights[live_layers], atol=3e-3)
    one = AttentionExplorer.from_model(smollm2.model, text, smollm2.tokenizer, layer=17, head=3)
    np.testing.assert_allclose(one.weights, weights[17, 3], atol=3e-3)
    prompt = recorded["lens"]["prompt"]
    live = LensExplorer.from_model(smollm2.model, prompt, smollm2.tokenizer, layers=SHOWN, depth=8)
    stored = stored_lens(recorded, depth=8)
    np.testing.assert_allclose(live.chances, stored.chances, atol=3e-3)
    assert live.guesses[-1][-1][0] == "▁Paris"
    best = logit_lens(smollm2.model, smollm2.ids(prompt))[25, 0, -1].argmax()
    assert live.guesses[-1][3][0].replace("▁", " ") == smollm2.tokenizer.decode([int(best)])
