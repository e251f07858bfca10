"""ViT against Hugging Face's, with and without its classifier, with the same random weights, in float64."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch import nn

from tests.interop.oracles import assert_same_gradients, assert_same_tensors, randomised
from ttutor.errors import SettingError
from ttutor.inside import capture
from ttutor.interop import from_huggingface, save_huggingface, to_huggingface
from ttutor.variants.vit import VisionEncoder, ViT, ViTConfig, with_image_size

CLOSE = {"rtol": 0, "atol": 1e-10}
SIZES = {
    "image_size": 15,
    "patch_size": 5,
    "num_channels": 2,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "num_labels": 7,
}


def random_model(architecture: str = "ViTForImageClassification", **changes: object) -> nn.Module:
    """One of their models whose parameters are all random, biases and gains too, so that none is forgotten unseen."""
    torch.manual_seed(0)
    # Not "eager", which computes the softmax in float32 whatever the weights are.
    config = transformers.ViTConfig(**{**SIZES, **changes}, attn_implementation="sdpa")
    return randomised(getattr(transformers, architecture)(config).double())


@pytest.fixture(scope="module", params=["ViTForImageClassification", "ViTModel"])
def theirs(request):
    return random_model(request.param)


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def images():
    return torch.randn(3, 2, 15, 15, dtype=torch.float64)


def output(answer: object) -> torch.Tensor:
    """The answer of a model of either side as a tensor: logits, or hidden vectors where there is no classifier."""
    if isinstance(answer, torch.Tensor):
        return answer
    return answer.logits if "logits" in answer else answer.last_hidden_state


def test_outputs(ours, theirs, images):
    assert type(ours) is (ViT if hasattr(theirs, "classifier") else VisionEncoder)
    torch.testing.assert_close(ours(images), output(theirs(images)), **CLOSE)


def test_every_hidden_state_and_the_pooled_vector(images):
    theirs = random_model("ViTModel")
    ours = from_huggingface(theirs)
    expected = theirs(images, output_hidden_states=True)
    with capture(ours, "dropout", "encoder.layers.*") as seen:
        hidden = ours(images)
    for mine, other in zip(seen.stack(), expected.hidden_states, strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)
    torch.testing.assert_close(hidden, expected.last_hidden_state, **CLOSE)
    torch.testing.assert_close(ours.pool(hidden), expected.pooler_output, **CLOSE)


def test_gradients_of_weights_and_pixels(ours, theirs, images):
    pixels = [images.clone().requires_grad_() for _ in range(2)]
    for model, pixel in zip((ours, theirs), pixels, strict=True):
        model.zero_grad()
        output(model(pixel)).log_softmax(dim=-1)[..., 1].sum().backward()
    torch.testing.assert_close(pixels[0].grad, pixels[1].grad, rtol=1e-9, atol=1e-9)
    assert_same_gradients(ours, theirs)


@pytest.mark.parametrize("image_size", [10, 25])
def test_images_of_another_size(image_size):
    theirs = random_model()
    images = torch.randn(2, 2, image_size, image_size, dtype=torch.float64)
    expected = theirs(images, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(with_image_size(from_huggingface(theirs), image_size)(images), expected, **CLOSE)


def test_there_and_back_with_the_names_of_files(ours, theirs, tmp_path):
    config, tensors = to_huggingface(ours)
    theirs.save_pretrained(tmp_path)
    assert_same_tensors(tensors, load_file(tmp_path / "model.safetensors"))
    described = json.loads((tmp_path / "config.json").read_text())
    assert config == {name: described[name] for name in config}


def test_a_folder_of_theirs(theirs, images, tmp_path):
    theirs.save_pretrained(tmp_path)
    torch.testing.assert_close(from_huggingface(tmp_path)(images), output(theirs(images)), **CLOSE)


def test_a_folder_of_ours(theirs, tmp_path):
    torch.manual_seed(1)
    config = ViTConfig(
        image_size=12, patch_size=3, n_channels=1, n_classes=5, d_model=12, n_heads=2, n_layers=3, d_ff=18
    )
    model = ViT(config) if hasattr(theirs, "classifier") else VisionEncoder(config, pooler=True)
    model = randomised(model.double())
    save_huggingface(model, tmp_path / "new")
    loaded, report = type(theirs).from_pretrained(
        tmp_path / "new", output_loading_info=True, attn_implementation="sdpa"
    )
    assert not any(report.values()), report
    images = torch.randn(2, 1, 12, 12, dtype=torch.float64)
    torch.testing.assert_close(model(images), output(loaded.eval()(images)), **CLOSE)
    assert torch.equal(from_huggingface(tmp_path / "new")(images), model(images))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qkv_bias": False}, "qkv_bias=False"),
        ({"hidden_act": "relu"}, "hidden_act='relu'"),
        ({"image_size": [15, 20]}, r"image_size=\[15, 20\] and patch_size=5"),
        ({"pooler_act": "relu"}, "pooler_act='relu'"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(changes, message):
    with pytest.raises(SettingError, match=message):
        from_huggingface(random_model(**changes))


def test_an_architecture_that_we_have_not_is_refused():
    changes = {"image_size": 32, "patch_size": 16}
    with pytest.raises(SettingError, match=r"architectures must hold one of .* is \['ViTForMaskedImageModeling'\]"):
        from_huggingface(random_model("ViTForMaskedImageModeling", **changes))


RELATIVES = {
    "DeiTForImageClassificationWithTeacher": (transformers.DeiTConfig, {}),
    "Dinov2Model": (transformers.Dinov2Config, {"mlp_ratio": 2}),
    "Dinov2WithRegistersModel": (transformers.Dinov2WithRegistersConfig, {"mlp_ratio": 2, "num_register_tokens": 4}),
}


@pytest.mark.parametrize("architecture", RELATIVES)
def test_relatives_with_more_tokens_and_scaled_branches(architecture, images, tmp_path):
    torch.manual_seed(0)
    kind, own = RELATIVES[architecture]
    sizes = {**SIZES, **own}
    if "mlp_ratio" in kind().to_dict():
        del sizes["intermediate_size"]
    config = kind(**sizes, attn_implementation="sdpa")
    theirs = randomised(getattr(transformers, architecture)(config).double())
    ours = from_huggingface(theirs)
    torch.testing.assert_close(ours(images), output(theirs(images)), **CLOSE)
    theirs.save_pretrained(tmp_path / "theirs")
    assert torch.equal(from_huggingface(tmp_path / "theirs")(images), ours(images))
    loaded = type(theirs).from_pretrained(save_huggingface(ours, tmp_path / "ours"), dtype="auto")
    torch.testing.assert_close(output(loaded(images)), ours(images), **CLOSE)
    if architecture.startswith("DeiT"):
        answer = theirs(images)
        for mine, other in zip(ours.both(images), (answer.cls_logits, answer.distillation_logits), strict=True):
            torch.testing.assert_close(mine, other, **CLOSE)


def test_parts_that_no_family_has_together_are_refused():
    model = VisionEncoder(ViTConfig.tiny(image_size=32, patch_size=8, n_layers=1, n_registers=2))
    with pytest.raises(SettingError, match="has just these parts"):
        to_huggingface(model)
