"""What goes wrong with the matrix that moves positions."""

import torch


def _frequencies(d_model):
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def _blocks(angles, signs=(1, -1)):
    """Blocks of cosine and sine along the diagonal; `signs` are those of the sine in the first and the second row."""
    return torch.block_diag(
        *(
            torch.stack([angle.cos(), signs[0] * angle.sin(), signs[1] * angle.sin(), angle.cos()]).view(2, 2)
            for angle in angles
        )
    )


def transposed(offset, d_model):
    return _blocks(offset * _frequencies(d_model)).T.contiguous()


def negated_offset(offset, d_model):
    return _blocks(-offset * _frequencies(d_model))


def halves(offset, d_model):
    angle = offset * _frequencies(d_model)
    cos, sin = angle.cos().diag(), angle.sin().diag()
    return torch.cat([torch.cat([cos, sin], dim=1), torch.cat([-sin, cos], dim=1)])


def one_step(offset, d_model):
    return _blocks(_frequencies(d_model))


def one_angle(offset, d_model):
    return _blocks(torch.full((d_model // 2,), float(offset), dtype=torch.float64))


def frequency_by_pair(offset, d_model):
    return _blocks(offset * _frequencies(d_model).sqrt())


def frequency_by_feature(offset, d_model):
    angle = offset * 10000.0 ** (-torch.arange(d_model, dtype=torch.float64) / d_model)
    matrix = angle.cos().diag()
    for even in range(0, d_model, 2):
        matrix[even, even + 1], matrix[even + 1, even] = angle[even].sin(), -angle[even + 1].sin()
    return matrix


def only_cosines(offset, d_model):
    return (offset * _frequencies(d_model)).cos().repeat_interleave(2).diag()


def mirrored(offset, d_model):
    return _blocks(offset * _frequencies(d_model), signs=(1, 1))


def one_position(offset, d_model):
    def vector(position):
        angle = position * _frequencies(d_model)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten()

    return torch.outer(vector(offset), vector(0)) / (d_model / 2)


def permutation(offset, d_model):
    return torch.eye(d_model, dtype=torch.float64).roll(offset, dims=0)


def in_float32(offset, d_model):
    return _blocks(offset * _frequencies(d_model)).float()
