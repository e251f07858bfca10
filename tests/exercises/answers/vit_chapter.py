"""Answers to further exercises of the chapter on images."""

import torch
from torch.nn import functional

from ttutor.variants.patches import patchify, unpatchify


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
    "vit.receptive_field": (field_from_behind, field_by_sets),
    "vit.class_rollout": (rollout_by_paths, rollout_by_rows),
    "vit.resized_positions": (positions_channel_by_channel, positions_rows_then_columns),
    "vit.deletion_curve": (deletion_by_masks, deletion_by_patches),
}

STRAY = {
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
