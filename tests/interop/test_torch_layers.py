"""PyTorch's own layers and ours with their weights compute the same."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from tests.torch_twins import randomised
from ttutor.attention import scaled_dot_product_attention
from ttutor.errors import SettingError
from ttutor.interop import from_torch

SIZES = {"batch_first": True, "dropout": 0.0}
IS_PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
FUTURE = torch.ones(5, 5, dtype=torch.bool).triu(1)
HIDDEN = torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
MEMORY = torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
KEYS = ~IS_PADDING[:, None, None, :]
OPTIONS = {
    "post": {},
    "pre": {"norm_first": True},
    "gelu": {"activation": "gelu"},
    "module": {"activation": nn.GELU(approximate="tanh")},
    "no bias": {"bias": False},
    "eps": {"layer_norm_eps": 1e-2},
}


def attention(**options: object) -> tuple[nn.Module, object, object]:
    theirs = nn.MultiheadAttention(8, 2, **SIZES, **options)
    return (
        theirs,
        lambda it: it(HIDDEN, MEMORY, MEMORY, key_padding_mask=IS_PADDING)[0],
        lambda it: it(HIDDEN, MEMORY, mask=KEYS),
    )


def encoder(norm: bool = False, **options: object) -> tuple[nn.Module, object, object]:
    layer = nn.TransformerEncoderLayer(8, 2, 16, **{**SIZES, **options})
    last = nn.LayerNorm(8) if norm else None
    theirs = nn.TransformerEncoder(layer, 2, norm=last, enable_nested_tensor=False)
    return theirs, lambda it: it(HIDDEN, src_key_padding_mask=IS_PADDING), lambda it: it(HIDDEN, KEYS)


def decoder(**options: object) -> tuple[nn.Module, object, object]:
    layer = nn.TransformerDecoderLayer(8, 2, 16, **{**SIZES, **options})
    theirs = nn.TransformerDecoder(layer, 2)
    call = {"tgt_mask": FUTURE, "memory_key_padding_mask": IS_PADDING}
    return theirs, lambda it: it(HIDDEN, MEMORY, **call), lambda it: it(HIDDEN, MEMORY, memory_mask=KEYS)


def whole(**options: object) -> tuple[nn.Module, object, object]:
    theirs = nn.Transformer(8, 2, 1, 2, 16, **{**SIZES, **options})
    masks = {"src_key_padding_mask": IS_PADDING, "memory_key_padding_mask": IS_PADDING, "tgt_mask": FUTURE}

    def ours(it: nn.ModuleDict) -> Tensor:
        return it["decoder"](HIDDEN, it["encoder"](MEMORY, KEYS), memory_mask=KEYS)

    return theirs, lambda it: it(MEMORY, HIDDEN, **masks), ours


CASES = {
    "attention": attention,
    "attention, no bias": partial(attention, bias=False),
    **{f"encoder, {name}": partial(encoder, **options) for name, options in OPTIONS.items()},
    "encoder, last norm": partial(encoder, norm=True),
    **{f"decoder, {name}": partial(decoder, **options) for name, options in OPTIONS.items()},
    "whole, post": whole,
    "whole, pre": partial(whole, norm_first=True),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_ours_computes_what_theirs_does(case: str, training: bool) -> None:
    theirs, call_theirs, call_ours = CASES[case]()
    theirs = randomised(theirs).train(training)
    ours = from_torch(theirs)
    assert ours.training == training
    expected, came = call_theirs(theirs), call_ours(ours)
    is_real = ~IS_PADDING if case.startswith("encoder") else torch.ones_like(IS_PADDING)
    torch.testing.assert_close(came[is_real], expected[is_real])
    if training:
        expected[is_real].square().sum().backward()
        came[is_real].square().sum().backward()
        norms = [sum(p.grad.square().sum() for p in it.parameters() if p.grad is not None) for it in (theirs, ours)]
        torch.testing.assert_close(*norms)


def test_one_layer_of_either_kind() -> None:
    theirs = randomised(nn.TransformerEncoderLayer(8, 2, 16, **SIZES))
    torch.testing.assert_close(from_torch(theirs)(HIDDEN), theirs(HIDDEN))
    theirs = randomised(nn.TransformerDecoderLayer(8, 2, 16, **SIZES))
    torch.testing.assert_close(from_torch(theirs)(HIDDEN, MEMORY), theirs(HIDDEN, MEMORY, tgt_mask=FUTURE))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_fast_path_writes_zeros_where_ours_has_vectors() -> None:
    theirs = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, **SIZES), 2).double().eval()
    ours = from_torch(theirs)
    with torch.inference_mode():
        fast, came = theirs(HIDDEN, src_key_padding_mask=IS_PADDING), ours(HIDDEN, KEYS)
    torch.testing.assert_close(came[~IS_PADDING], fast[~IS_PADDING])
    assert fast[IS_PADDING].abs().max() == 0
    assert came[IS_PADDING].abs().min() > 0


def test_every_dropout_is_theirs() -> None:
    theirs = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.25, batch_first=True), 1)
    ours = from_torch(theirs, attend=scaled_dot_product_attention)
    layer = ours.layers[0]
    assert {module.p for module in ours.modules() if isinstance(module, nn.Dropout)} == {0.25}
    assert (layer.self_attention.dropout, layer.cross_attention.dropout) == (0.25, 0.25)
    assert layer.self_attention.attend is scaled_dot_product_attention


def test_the_weights_are_copies() -> None:
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    ours, before = from_torch(theirs), copy.deepcopy(theirs.state_dict())
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(1)
    assert all(torch.equal(theirs.state_dict()[name], tensor) for name, tensor in before.items())


REFUSED = {
    "batch_first=False": lambda: nn.MultiheadAttention(8, 2),
    "add_bias_kv=True": lambda: nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True),
    "add_zero_attn=True": lambda: nn.MultiheadAttention(8, 2, add_zero_attn=True, batch_first=True),
    "kdim=4": lambda: nn.MultiheadAttention(8, 2, kdim=4, batch_first=True),
    "vdim=4": lambda: nn.MultiheadAttention(8, 2, vdim=4, batch_first=True),
    "activation=": lambda: nn.TransformerEncoderLayer(8, 2, 16, activation=torch.tanh, batch_first=True),
    "expected nn.TransformerEncoder,": lambda: nn.Transformer(
        8, 2, 1, 1, 16, batch_first=True, custom_encoder=nn.Identity()
    ),
    "this part is RMSNorm": lambda: nn.TransformerDecoder(
        nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1, norm=nn.RMSNorm(8)
    ),
}


@pytest.mark.parametrize("option", REFUSED)
def test_an_option_without_a_counterpart_is_named(option: str) -> None:
    with pytest.raises(SettingError, match=option):
        from_torch(REFUSED[option]())


def test_another_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected one of nn\.MultiheadAttention, .* but came LSTM"):
        from_torch(nn.LSTM(3, 4))
