"""What the exercises on images take as right meets the package."""

import torch
from torch import nn

from ttutor.exercises import find
from ttutor.inside import attention_rollout
from ttutor.variants.vit import VisionEncoder, ViTConfig


def small_encoder():
    """Patches of 4 x 4 pixels in images of 8 x 8, all numbers drawn."""
    encoder = VisionEncoder(ViTConfig.tiny(image_size=8, patch_size=4, n_layers=1)).eval()
    nn.init.normal_(encoder.class_token)
    return encoder


def test_the_class_token_is_put_before_the_patches_as_in_the_package():
    encoder, images = small_encoder(), torch.randn(3, 3, 8, 8)
    patches = encoder.embed_patches(find("vit.patchify").reference(images, 4))
    table = encoder.position.table.weight
    came = find("vit.class_token").reference(patches, encoder.class_token[None, None], table)
    torch.testing.assert_close(came, encoder.embed(images))


def test_patches_are_what_a_convolution_reads():
    images, kernel = torch.randn(2, 3, 6, 9, dtype=torch.float64), torch.randn(5, 3, 3, 3, dtype=torch.float64)
    expected = nn.functional.conv2d(images, kernel, stride=3).flatten(2).mT
    came = find("vit.patchify").reference(images, 3) @ kernel.flatten(1).T
    torch.testing.assert_close(came, expected)


def test_the_class_tokens_rollout_is_a_row_of_the_packages():
    weights = torch.randn(3, 1, 2, 5, 5, dtype=torch.float64).softmax(dim=-1)
    row = attention_rollout(weights)[0, 0, 1:]
    torch.testing.assert_close(find("vit.class_rollout").reference(weights[:, 0]), row / row.sum())


def test_a_receptive_field_is_where_gradients_arrive():
    layers = [(3, 2, 1), (2, 1, 3), (4, 3, 1)]
    stack = nn.Sequential(*(nn.Conv2d(1, 1, kernel, stride, dilation=dilation) for kernel, stride, dilation in layers))
    for weight in stack.parameters():
        nn.init.ones_(weight)
    image = torch.zeros(1, 1, 60, 60, requires_grad=True)
    features = stack(image)
    seen = [torch.autograd.grad(features[0, 0, 0, k], image, retain_graph=True)[0][0, 0, 0].nonzero() for k in (0, 1)]
    field = int(seen[0].max() - seen[0].min()) + 1
    assert find("vit.receptive_field").reference(layers) == (field, int(seen[1].min() - seen[0].min()))


def test_positions_are_interpolated_as_torch_does_it():
    table = torch.randn(17, 3, dtype=torch.float64)
    grid = table[1:].T.reshape(1, 3, 4, 4)
    expected = nn.functional.interpolate(grid, size=(7, 7), mode="bilinear", align_corners=False).reshape(3, 49).T
    came = find("vit.resized_positions").reference(table, 7)
    torch.testing.assert_close(came, torch.cat([table[:1], expected]))


def test_a_deletion_curve_runs_from_the_image_to_the_fill():
    model, image, fill, scores, class_id = find("vit.deletion_curve").cases[0].inputs(torch.Generator().manual_seed(1))
    came = find("vit.deletion_curve").reference(model, image, fill, scores, class_id)
    ends = model(torch.stack([image, fill])).softmax(dim=-1)[:, class_id]
    torch.testing.assert_close(came[[0, -1]], ends)
