"""Answers to the exercises on vit that stand in no list: right ones in other styles, and stray mistakes."""

import torch
from torch.nn import functional

from ttutor.variants.patches import patchify, unpatchify


def patchify_by_unfold(images, patch_size):
    """The function for convolutions, turned round."""
    return functional.unfold(images, patch_size, stride=patch_size).transpose(1, 2)


def patchify_by_permute(images, patch_size):
    """Split, swap, join."""
    batch, channels, height, width = images.shape
    split = images.view(batch, channels, height // patch_size, patch_size, width // patch_size, patch_size)
    return split.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


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


def field_from_behind(layers):
    """Go from the last layer to the first: what does one feature need there?"""
    field = jump = 1
    for kernel, stride, dilation in layers[::-1]:
        field = (field - 1) * stride + (kernel - 1) * dilation + 1
        jump *= stride
    return field, jump


def field_by_sets(layers):
    """Follow two neighbouring features down to the pixels that they see."""
    seen = [{0}, {1}]
    for kernel, stride, dilation in reversed(layers):
        seen = [{place * stride + tap * dilation for place in one for tap in range(kernel)} for one in seen]
    return max(seen[0]) - min(seen[0]) + 1, min(seen[1]) - min(seen[0])


def field_with_a_border(layers):
    """Adds one pixel a layer, as if for padding."""
    field, jump = field_from_behind(layers)
    return field + len(layers), jump


def rollout_by_paths(weights):
    """The columns' vectors, from the image up."""
    tokens = torch.eye(weights.shape[-1], dtype=weights.dtype)
    for layer in weights.mean(dim=1):
        tokens = tokens + layer @ tokens
    return tokens[0, 1:] / tokens[0, 1:].sum()


def rollout_by_rows(weights):
    row = torch.eye(weights.shape[-1], dtype=weights.dtype)[0]
    for layer in reversed(list(weights.mean(dim=1))):
        row = 0.5 * (row + layer.T @ row)
    return row[1:] / row[1:].sum()


def rollout_without_the_last(weights):
    return rollout_by_rows(weights[:-1])


def positions_channel_by_channel(table, side):
    old = round((len(table) - 1) ** 0.5)
    columns = [
        functional.interpolate(column.reshape(1, 1, old, old), size=side, mode="bilinear").flatten()
        for column in table[1:].T
    ]
    return torch.cat([table[:1], torch.stack(columns, dim=1)])


def positions_rows_then_columns(table, side):
    old = round((len(table) - 1) ** 0.5)
    grid = table[1:].reshape(old, old, -1)
    for _ in range(2):
        lines = grid.permute(1, 2, 0)
        grid = functional.interpolate(lines, size=side, mode="linear", align_corners=False).permute(2, 0, 1)
        grid = grid.transpose(0, 1)
    return torch.cat([table[:1], grid.reshape(side * side, -1)])


def positions_with_a_shifted_class(table, side):
    right = positions_channel_by_channel(table, side)
    return torch.cat([right[:1] + 1, right[1:]])


def positions_with_noise(table, side):
    right = positions_channel_by_channel(table, side)
    return torch.cat([right[:1], right[1:] * 1.1])


def deletion_by_masks(model, image, fill, scores, class_id):
    """Each stage is the image where a rank is at least the number of the stage."""
    size = image.shape[-1] // scores.shape[-1]
    rank = scores.flatten().argsort(descending=True).argsort().reshape(scores.shape)
    rank = rank.repeat_interleave(size, 0).repeat_interleave(size, 1)
    stages = [torch.where(rank >= n, image, fill) for n in range(scores.numel() + 1)]
    return model(torch.stack(stages)).softmax(dim=-1)[:, class_id]


def deletion_by_patches(model, image, fill, scores, class_id):
    size = image.shape[-1] // scores.shape[-1]
    now, other = patchify(torch.stack([image, fill]), size)
    found = []
    for place in [None, *scores.flatten().sort(descending=True).indices]:
        if place is not None:
            now = now.clone()
            now[place] = other[place]
        found.append(model(unpatchify(now[None], size, n_rows=len(scores))).softmax(dim=-1)[0, class_id])
    return torch.stack(found)


def deletion_from_the_half(model, image, fill, scores, class_id):
    return deletion_by_masks(model, (image + fill) / 2, fill, scores, class_id)


def deletion_down_to_the_half(model, image, fill, scores, class_id):
    return deletion_by_masks(model, image, (image + fill) / 2, scores, class_id)


RIGHT = {
    "vit.patchify": (patchify_by_unfold, patchify_by_permute),
    "vit.class_token": (class_token_by_assignment, class_token_before_joining),
    "vit.receptive_field": (field_from_behind, field_by_sets),
    "vit.class_rollout": (rollout_by_paths, rollout_by_rows),
    "vit.resized_positions": (positions_channel_by_channel, positions_rows_then_columns),
    "vit.deletion_curve": (deletion_by_masks, deletion_by_patches),
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
    "vit.receptive_field": ((field_with_a_border, "one_layer"),),
    "vit.class_rollout": ((rollout_without_the_last, "idle_layer"),),
    "vit.resized_positions": (
        (positions_with_a_shifted_class, "first_row_stays"),
        (positions_with_noise, "flat_stays_flat"),
    ),
    "vit.deletion_curve": (
        (deletion_from_the_half, "begins_with_the_image"),
        (deletion_down_to_the_half, "ends_with_the_fill"),
    ),
}
