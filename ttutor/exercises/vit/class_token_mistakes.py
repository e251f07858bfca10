"""What goes wrong when a class token and positions are added to patches."""

import torch
from einops import repeat


def joined(patches, class_token):
    expanded = repeat(class_token, "1 1 d_model -> batch 1 d_model", batch=len(patches))
    return torch.cat([expanded, patches], dim=1)


def not_expanded(patches, class_token, positions):
    return torch.cat([class_token, patches], dim=1) + positions


def squeezed(patches, class_token, positions):
    return (joined(patches, class_token) + positions).squeeze()


def appended_last(patches, class_token, positions):
    return joined(patches, class_token).roll(-1, dims=1) + positions


def appended_last_with_its_position(patches, class_token, positions):
    return (joined(patches, class_token) + positions).roll(-1, dims=1)


def no_pos_on_cls(patches, class_token, positions):
    return joined(patches + positions[1:], class_token)


def pos_before_cls(patches, class_token, positions):
    return joined(patches + positions[:-1], class_token)


def pos_of_cls_last(patches, class_token, positions):
    return joined(patches, class_token) + positions.roll(1, dims=0)


def no_pos(patches, class_token, positions):
    return joined(patches, class_token)


def added_not_cat(patches, class_token, positions):
    return patches + class_token + positions[1:]


def added_not_cat_from_zero(patches, class_token, positions):
    return patches + class_token + positions[:-1]


def replaces_first_patch(patches, class_token, positions):
    return joined(patches[:, 1:], class_token) + positions[:-1]


def only_positions_on_patches_twice(patches, class_token, positions):
    return joined(patches + positions[1:], class_token) + positions


def positions_multiplied(patches, class_token, positions):
    return joined(patches, class_token) * positions


def class_token_ignored(patches, class_token, positions):
    return joined(patches, torch.zeros_like(class_token)) + positions


def token_of_every_image(patches, class_token, positions):
    return torch.cat([patches.mean(dim=1, keepdim=True), patches], dim=1) + positions


def one_position_for_all(patches, class_token, positions):
    return joined(patches, class_token) + positions[0]


def position_per_image(patches, class_token, positions):
    return joined(patches, class_token) + positions[: len(patches), None]


def joined_along_features(patches, class_token, positions):
    expanded = class_token.expand_as(patches)
    return torch.cat([expanded, patches], dim=-1)


def joined_along_batch(patches, class_token, positions):
    return torch.cat([class_token.expand(1, patches.shape[1], -1), patches], dim=0) + positions[1:]


def detached(patches, class_token, positions):
    return joined(patches, class_token.detach()) + positions


def copied_from_data(patches, class_token, positions):
    tokens = patches.new_empty(len(patches), patches.shape[1] + 1, patches.shape[2])
    tokens[:, 0] = class_token.data[0, 0]
    tokens[:, 1:] = patches
    return tokens + positions


def detached_positions(patches, class_token, positions):
    return joined(patches, class_token) + positions.detach()


def inplace(patches, class_token, positions):
    patches += positions[1:]
    return joined(patches, class_token + positions[0])
