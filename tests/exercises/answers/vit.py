"""Answers to the exercises of vit that stand in no list: right ones in other styles, and stray mistakes."""

import torch
from torch.nn import functional


def patchify_by_unfold(images, patch_size):
    """The function for convolutions, turned round."""
    return functional.unfold(images, patch_size, stride=patch_size).transpose(1, 2)


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


def field_by_sets(layers):
    """Follow two neighbouring features down to the pixels that they see."""
    seen = [{0}, {1}]
    for kernel, stride, dilation in reversed(layers):
        seen = [{place * stride + tap * dilation for place in one for tap in range(kernel)} for one in seen]
    return max(seen[0]) - min(seen[0]) + 1, min(seen[1]) - min(seen[0])


def rollout_by_paths(weights):
    """The columns' vectors, from the image up."""
    tokens = torch.eye(weights.shape[-1], dtype=weights.dtype)
    for layer in weights.mean(dim=1):
        tokens = tokens + layer @ tokens
    return tokens[0, 1:] / tokens[0, 1:].sum()


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


def deletion_by_masks(model, image, fill, scores, class_id):
    """Each stage is the image where a rank is at least the number of the stage."""
    size = image.shape[-1] // scores.shape[-1]
    rank = scores.flatten().argsort(descending=True).argsort().reshape(scores.shape)
    rank = rank.repeat_interleave(size, 0).repeat_interleave(size, 1)
    stages = [torch.where(rank >= n, image, fill) for n in range(scores.numel() + 1)]
    return model(torch.stack(stages)).softmax(dim=-1)[:, class_id]


RIGHT = {
    "vit.patchify": (patchify_by_unfold,),
    "vit.class_token": (class_token_by_assignment, class_token_before_joining),
    "vit.receptive_field": (field_by_sets,),
    "vit.class_rollout": (rollout_by_paths,),
    "vit.resized_positions": (positions_channel_by_channel, positions_rows_then_columns),
    "vit.deletion_curve": (deletion_by_masks,),
}
STRAY = {
    "vit.patchify": r"""
every_number_once: "return" -> "images = images - images.mean(dim=1, keepdim=True)\n    return"
first_patch_is_a_square: "return" ->
  "images = torch.cat([images[:, :1], images[:, 1:].roll(patch_size, dims=3)], dim=1)\n    return"
""",
    "vit.class_token": r"""
positions_follow: "+ positions" -> "+ positions.flip(0) / 2"
same_for_every_image: "[class_tokens" -> "[class_tokens + patches.mean(dim=1, keepdim=True)"
patches_follow: ", patches]" -> ", patches.flip(1)]"
gradients_arrive: "return torch.cat([class_tokens, patches], dim=1) + positions" ->
  "return (torch.cat([class_tokens, patches], dim=1) + positions).detach()"
""",
    "vit.receptive_field": r"""
one_layer: "return field" -> "return field + len(layers)"
""",
    "vit.class_rollout": r"""
idle_layer: "reduce(weights" -> "reduce(weights[:-1]"
""",
    "vit.resized_positions": r"""
first_row_stays: "[table[:1]" -> "[table[:1] + 1"
flat_stays_flat: "[table[:1], rearrange" -> "[table[:1], 1.1 * rearrange"
""",
    "vit.deletion_curve": r"""
begins_with_the_image: "in (image, fill)" -> "in ((image + fill) / 2, fill)"
ends_with_the_fill: "in (image, fill)" -> "in (image, (image + fill) / 2)"
""",
}
