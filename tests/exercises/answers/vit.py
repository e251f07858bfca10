"""Answers to the exercises on images: right ones in other styles, and mistakes that stand in no list."""

import torch
from torch.nn import functional


def patchify_by_loops(images, patch_size):
    """Cut square after square, as one would with scissors."""
    lines = []
    for image in images:
        for top in range(0, image.shape[1], patch_size):
            for left in range(0, image.shape[2], patch_size):
                lines.append(image[:, top : top + patch_size, left : left + patch_size].flatten())
    return torch.stack(lines).reshape(len(images), -1, images.shape[1] * patch_size**2)


def patchify_by_unfold(images, patch_size):
    """The function for convolutions, turned round."""
    return functional.unfold(images, patch_size, stride=patch_size).transpose(1, 2)


def patchify_by_permute(images, patch_size):
    """Split, swap, join."""
    batch, channels, height, width = images.shape
    split = images.view(batch, channels, height // patch_size, patch_size, width // patch_size, patch_size)
    return split.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


def transposed_and_by_columns(images, patch_size):
    """Two mistakes at once: patches by columns, channels last."""
    lines = functional.unfold(images, patch_size, stride=patch_size).transpose(1, 2)
    rows, columns = images.shape[2] // patch_size, images.shape[3] // patch_size
    by_columns = lines.unflatten(1, (rows, columns)).transpose(1, 2).flatten(1, 2)
    return by_columns.unflatten(2, (images.shape[1], -1)).transpose(2, 3).flatten(2)


def normalised(images, patch_size):
    """Takes the mean off every patch."""
    lines = patchify_by_unfold(images, patch_size)
    return lines - lines.mean(dim=-1, keepdim=True)


def shuffled_halves(images, patch_size):
    """Every number is there, but lines begin with pixels of the next patch."""
    lines = patchify_by_unfold(images, patch_size)
    half = lines.shape[2] // 2
    return torch.cat([lines[:, :, :half], lines[:, :, half:].roll(-1, dims=1)], dim=-1)


def class_token_by_assignment(patches, class_token, positions):
    """Fill a tensor part by part."""
    tokens = torch.zeros(patches.shape[0], patches.shape[1] + 1, patches.shape[2])
    tokens[:, :1] = class_token
    tokens[:, 1:] = patches
    return tokens + positions


def class_token_image_by_image(patches, class_token, positions):
    """Join for each image, then stack."""
    return torch.stack([torch.vstack([class_token.squeeze(0), image]) + positions for image in patches])


def class_token_before_joining(patches, class_token, positions):
    """Positions first, each to its own."""
    first = (class_token + positions[:1]).expand(len(patches), -1, -1)
    return torch.cat((first, patches + positions[1:]), dim=1)


def reversed_and_halved(patches, class_token, positions):
    """Positions in reverse, and only half of each."""
    return torch.cat([class_token.expand(len(patches), -1, -1), patches], dim=1) + positions.flip(0) / 2


def depends_on_the_image(patches, class_token, positions):
    """Adds the mean of the patches to the class token."""
    first = class_token + patches.mean(dim=1, keepdim=True)
    return torch.cat([first, patches], dim=1) + positions


def patches_in_reverse(patches, class_token, positions):
    """The last patch comes first."""
    return torch.cat([class_token.expand(len(patches), -1, -1), patches.flip(1)], dim=1) + positions


def nothing_is_learnt(patches, class_token, positions):
    """Neither token nor positions get a gradient."""
    with torch.no_grad():
        return class_token_before_joining(patches, class_token, positions)


RIGHT = {
    "vit.patchify": (patchify_by_loops, patchify_by_unfold, patchify_by_permute),
    "vit.class_token": (class_token_by_assignment, class_token_image_by_image, class_token_before_joining),
}

STRAY = {
    "vit.patchify": (
        (normalised, "every_number_once"),
        (shuffled_halves, "first_patch_is_a_square"),
    ),
    "vit.class_token": (
        (reversed_and_halved, "positions_follow"),
        (depends_on_the_image, "same_for_every_image"),
        (patches_in_reverse, "patches_follow"),
        (nothing_is_learnt, "gradients_arrive"),
    ),
}
