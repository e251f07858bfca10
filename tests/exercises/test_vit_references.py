"""What the exercises on images take as right meets the package."""

import torch
from torch import nn

from ttutor.exercises import find
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
