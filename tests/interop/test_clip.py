"""CLIP against Hugging Face's, with the same random weights, in float64."""

from __future__ import annotations

import pytest
import torch
import transformers

from tests.interop.oracles import randomised
from ttutor.errors import SettingError
from ttutor.interop import from_huggingface, save_huggingface, to_huggingface
from ttutor.variants.clip import CLIP, CLIPConfig, contrastive_loss
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.vit import ViTConfig

CLOSE = {"rtol": 0, "atol": 1e-10}
TEXT = {
    "vocab_size": 53,
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 9,
    "eos_token_id": 52,
    "bos_token_id": 51,
    "pad_token_id": 0,
}
VISION = {
    "hidden_size": 10,
    "intermediate_size": 14,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 15,
    "patch_size": 5,
    "num_channels": 2,
}


def build(**changes):
    torch.manual_seed(0)
    config = transformers.CLIPConfig(text_config={**TEXT, **changes}, vision_config=VISION, projection_dim=6)
    config._attn_implementation = "sdpa"
    return randomised(transformers.CLIPModel(config).double())


@pytest.fixture(scope="module")
def theirs():
    return build()


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def images():
    return torch.randn(3, 2, 15, 15, dtype=torch.float64)


@pytest.fixture
def token_ids():
    """Texts of different lengths, what stands after the end mark being padding."""
    ids = torch.randint(1, 50, (3, 7))
    ids[0, 6] = ids[1, 3] = ids[2, 2] = 52
    return ids


def test_scores_vectors_and_loss(ours, theirs, images, token_ids):
    expected = theirs(input_ids=token_ids, pixel_values=images, return_loss=True)
    scores = ours(images, token_ids)
    torch.testing.assert_close(scores, expected.logits_per_image, **CLOSE)
    torch.testing.assert_close(ours.encode_images(images), expected.image_embeds, **CLOSE)
    torch.testing.assert_close(ours.encode_texts(token_ids), expected.text_embeds, **CLOSE)
    torch.testing.assert_close(contrastive_loss(scores), expected.loss, **CLOSE)


@pytest.mark.parametrize("n_added", [0, 1, 3])
@pytest.mark.parametrize("padding", [0, 1, 52])
def test_the_first_configs_gave_a_wrong_end_mark(images, n_added, padding):
    """The largest id of a text ends it, with words added to the vocabulary, too, where the text has none of them."""
    theirs = build(eos_token_id=2, vocab_size=53 + n_added)
    token_ids = torch.tensor([[51, 5, 6, 52, padding], [51, 7, 52, padding, padding], [51, 9, 8, 7, 52]])
    expected = theirs(input_ids=token_ids, pixel_values=images).logits_per_image
    ours = from_huggingface(theirs)
    torch.testing.assert_close(ours(images, token_ids), expected, **CLOSE)
    assert to_huggingface(ours)[0]["text_config"]["eos_token_id"] == 2
    if n_added:
        with pytest.raises(ValueError, match="a word that was added to the vocabulary"):
            ours.encode_texts(torch.tensor([[51, 53, 6, 52, padding]]))


def test_an_end_mark_that_means_another_rule_there_is_not_written():
    vision, text = {"image_size": 8, "patch_size": 4, "norms_embeddings": True}, {"vocab_size": 9}
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20}
    model = CLIP(CLIPConfig(vision=ViTConfig(**vision, **sizes), text=GPTConfig(**text, **sizes), end_id=2))
    with pytest.raises(SettingError, match="end_id of 2"):
        to_huggingface(model)


def test_folders_go_both_ways(ours, theirs, images, token_ids, tmp_path):
    expected = ours(images, token_ids)
    theirs.save_pretrained(tmp_path / "theirs")
    assert torch.equal(from_huggingface(tmp_path / "theirs")(images, token_ids), expected)
    loaded = transformers.CLIPModel.from_pretrained(save_huggingface(ours, tmp_path / "ours"), dtype="auto")
    torch.testing.assert_close(loaded(input_ids=token_ids, pixel_values=images).logits_per_image, expected, **CLOSE)


def test_the_published_size():
    with torch.device("meta"):
        model = CLIP(CLIPConfig.base_32())
    assert sum(parameter.numel() for parameter in model.parameters()) == 151_277_313


def test_what_does_not_fit_is_refused(ours, images):
    with pytest.raises(ValueError, match="every text must hold the token that ends it, end_id=52"):
        ours.encode_texts(torch.tensor([[1, 2, 3]]))
    with pytest.raises(ValueError, match="end_id must be one of 53 tokens"):
        ours.config.replace(end_id=53)
    with pytest.raises(SettingError, match="norms_embeddings=False"):
        to_huggingface(CLIP(ours.config.replace(vision=ours.config.vision.replace(norms_embeddings=False))))
