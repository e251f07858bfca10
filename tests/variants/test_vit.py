"""ViT: patches, counts, symmetries, other image sizes, Grad-CAM; parity with published code is in interop."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.torch_twins import randomised
from ttutor.errors import ShapeError
from ttutor.variants.gradcam import grad_cam
from ttutor.variants.patches import interpolate_positions, patchify, unpatchify
from ttutor.variants.vit import ViT, ViTConfig, with_image_size

CONFIG = ViTConfig(
    image_size=12, patch_size=4, n_channels=2, n_classes=5, d_model=15, n_heads=3, n_layers=2, d_ff=20, norm_eps=1e-5
)


@pytest.fixture
def vit():
    return randomised(ViT(CONFIG))


@pytest.fixture
def images():
    return torch.randn(3, 2, 12, 12, dtype=torch.float64)


def test_patches_are_cut_row_by_row():
    images = torch.randn(2, 3, 6, 10)
    patches = patchify(images, 2)
    assert patches.shape == (2, 15, 12)
    for row in range(3):
        for column in range(5):
            square = images[:, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            assert torch.equal(patches[:, 5 * row + column], square.flatten(1))


def test_embedding_patches_is_a_convolution_whose_stride_is_the_patch(vit, images):
    found = vit.vision.embed_patches(patchify(images, 4))
    kernel = vit.vision.embed_patches.weight.reshape(15, 2, 4, 4)
    expected = nn.functional.conv2d(images, kernel, vit.vision.embed_patches.bias, stride=4)
    torch.testing.assert_close(found, expected.flatten(2).transpose(1, 2), rtol=0, atol=1e-12)


def test_what_enters_the_layers_is_the_class_token_and_the_patches_with_their_positions(vit, images):
    found, vision = vit.vision.embed(images), vit.vision
    place = vision.position.table.weight
    torch.testing.assert_close(found[:, 0], (vision.class_token + place[0]).expand(3, -1))
    torch.testing.assert_close(found[:, 1:], vision.embed_patches(patchify(images, 4)) + place[1:])


def test_interpolated_positions_keep_the_class_token_and_what_is_smooth():
    table = torch.randn(10, 5, dtype=torch.float64)
    torch.testing.assert_close(interpolate_positions(table, 3, 3), table, rtol=0, atol=1e-15)
    table[1:] = table[1]
    larger = interpolate_positions(table, 4, 6)
    torch.testing.assert_close(larger, table[[0] + [1] * 24])
    rising = torch.cat([torch.zeros(1), torch.arange(8.0).repeat(8)])[:, None]  # from left to right
    larger = interpolate_positions(rising, 8, 16)[1:].reshape(8, 16)
    assert (larger.diff(dim=1) > 0).all()
    torch.testing.assert_close(larger, larger[:1].expand(8, -1))


def test_a_copy_for_larger_images_leaves_the_model_as_it_is(vit, images):
    before, mode = vit(images), vit.train().training
    larger = with_image_size(vit, 20)
    assert larger.config == CONFIG.replace(image_size=20) == larger.vision.config
    assert larger.training == mode
    assert larger(torch.randn(2, 2, 20, 20, dtype=torch.float64)).shape == (2, 5)
    assert torch.equal(vit.eval()(images), before)
    assert vit.config == CONFIG
    same = with_image_size(larger, 20).state_dict()
    torch.testing.assert_close(same, larger.state_dict(), rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match="image_size must be a multiple of patch_size"):
        with_image_size(vit, 18)


def by_hand(model: ViT, image: torch.Tensor, class_id: int, layer: int) -> torch.Tensor:
    """Grad-CAM of one image, written out: the rest of the model as a function of the tokens, and its Jacobian."""
    layers, hidden = model.vision.encoder.layers, model.vision.embed(image[None])
    for earlier in layers[:layer]:
        hidden = earlier(hidden)
    here = layers[layer]

    def logit(tokens: torch.Tensor) -> torch.Tensor:
        stream = hidden + here.self_attention(tokens)
        stream = stream + here.feed_forward(here.around_feed_forward.norm(stream))
        for later in layers[layer + 1 :]:
            stream = later(stream)
        return model.classifier(model.vision.encoder.final_norm(stream))[0, 0, class_id]

    tokens = here.around_attention.norm(hidden).detach()
    gradient = torch.autograd.functional.jacobian(logit, tokens)
    side = model.config.image_size // model.config.patch_size
    heat = torch.zeros(side, side, dtype=image.dtype)
    for row in range(side):
        for column in range(side):
            for k in range(model.config.d_model):
                heat[row, column] += gradient[0, 1:, k].mean() * tokens[0, 1 + side * row + column, k]
    return heat.clamp(min=0)


@pytest.mark.parametrize("layer", [0, 1])
def test_grad_cam_equals_the_formula_written_out(vit, images, layer):
    classes = torch.tensor([4, 0, 2])
    found = grad_cam(vit, images, classes, layer=layer)
    expected = torch.stack(
        [by_hand(vit, image, class_id, layer) for image, class_id in zip(images, classes.tolist(), strict=True)]
    )
    assert expected.count_nonzero() > 5
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(grad_cam(vit, images, 2, layer=layer - 2)[2], expected[2], rtol=1e-9, atol=1e-12)


def test_grad_cam_leaves_modes_gradients_and_hooks_alone(vit, images):
    vit.train()
    vit.vision.encoder.layers[0].eval()
    vit.vision.dropout.p = 0.5
    modes = [module.training for module in vit.modules()]
    vit.classifier.weight.grad = torch.ones_like(vit.classifier.weight)
    first = grad_cam(vit, images, class_id=1)
    assert torch.equal(first, grad_cam(vit, images, class_id=1))  # no dropout meanwhile
    assert [module.training for module in vit.modules()] == modes
    assert torch.equal(vit.classifier.weight.grad, torch.ones_like(vit.classifier.weight))
    assert all(parameter.grad is None for name, parameter in vit.named_parameters() if name != "classifier.weight")
    assert not first.requires_grad
    assert not any(module._forward_pre_hooks for module in vit.modules())
    vit.requires_grad_(False)
    with torch.no_grad():
        assert torch.equal(first, grad_cam(vit, images, class_id=1))


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_refused(vit, images):
    with pytest.raises(ShapeError, match=r"images are \(12, 8\) pixels, but .* for \(12, 12\); .*with_image_size"):
        vit(images[..., :8])
    with pytest.raises(ShapeError, match="axis 'channels' is 1 in images but must be 2"):
        vit(images[:, :1])
    with pytest.raises(ShapeError, match=r"images of \(12, 12\) pixels cannot be cut into squares of 5"):
        patchify(images, 5)
    with pytest.raises(ShapeError, match="6 patches of 8 numbers do not make up an image of 2 rows"):
        unpatchify(torch.zeros(1, 6, 8), 2)
    with pytest.raises(ShapeError, match="6 patches of 8 numbers do not make up an image of 4 rows"):
        unpatchify(torch.zeros(1, 6, 8), 2, n_rows=4)
    with pytest.raises(ShapeError, match="the table has 12 rows"):
        interpolate_positions(torch.zeros(12, 3), 2, 2)
