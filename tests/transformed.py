"""A program: every family of models under every transformation of PyTorch, and what came of it, as JSON.

It is a program because the annotation checks of a test run would stand in the way of what records a model.
"""

from __future__ import annotations

import copy
import io
import json
import pickle
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.func import functional_call, grad, jvp, vmap
from torch.utils.checkpoint import checkpoint

from ttutor.efficient import efficient_attention
from ttutor.positions import RotaryScaling
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.transformer.blueprint import Latent
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM
from ttutor.variants.clip import CLIP, CLIPConfig
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.heads import TransformerForSequenceClassification
from ttutor.variants.modern_bert import ModernBERT, ModernBERTConfig, ModernBERTForMaskedLM
from ttutor.variants.modern_decoder import ExpertsConfig, ModernDecoder, ModernDecoderConfig
from ttutor.variants.t5 import T5, T5Config
from ttutor.variants.vit import DistilledViT, VisionEncoder, ViT, ViTConfig

VOCAB, LONGEST = 31, 40
SIZES: dict[str, Any] = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20}
CLOSE = {"rtol": 1e-7, "atol": 1e-9}
HALF = {"rtol": 0.0, "atol": 0.0}

Inputs = tuple[Tensor, ...]


class Family(NamedTuple):
    """How to make a model, what it is called with, and which axes of that are free."""

    make: Callable[..., nn.Module]
    inputs: Callable[[int, int], Inputs]
    axes: tuple[dict[int, str], ...]


def texts(batch: int, length: int) -> Tensor:
    return torch.randint(4, VOCAB - 1, (batch, length))


def padded(batch: int, length: int) -> Inputs:
    """Texts, and which of their tokens are real: the padding of each row on its own side, another in each call."""
    place, n_real = torch.arange(length), torch.randint(1, length + 1, (batch, 1))
    right = torch.arange(batch)[:, None] % 2 == 0
    return texts(batch, length), torch.where(right, place < n_real, place >= length - n_real)


def right_padded(batch: int, length: int) -> Inputs:
    return texts(batch, length), torch.arange(length) < torch.randint(1, length + 1, (batch, 1))


def pairs(batch: int, length: int) -> Inputs:
    source, is_real = right_padded(batch, length)
    return source.masked_fill(~is_real, 0), texts(batch, length + 2)


def images(batch: int, _: int) -> Inputs:
    return (torch.randn(batch, 3, 8, 8),)


def images_and_texts(batch: int, length: int) -> Inputs:
    ids = texts(batch, length)
    ids[:, -1] = VOCAB - 1
    return *images(batch, 0), ids


def decoder(**changes: Any) -> Family:
    def make(**options: Any) -> nn.Module:
        return ModernDecoder(ModernDecoderConfig(vocab_size=VOCAB, max_len=64, **{**SIZES, **changes}), **options)

    return Family(make, padded, TEXT)


def gpt(positions: str) -> Family:
    config = GPTConfig(vocab_size=VOCAB, max_len=64, dropout=0.0, positions=positions, **{**SIZES, "d_model": 24})
    return Family(partial(GPT, config), padded, TEXT)


def vision(kind: Callable[..., nn.Module], **changes: Any) -> Family:
    return Family(partial(kind, ViTConfig(image_size=8, patch_size=4, n_classes=5, **SIZES, **changes)), images, IMAGE)


def bert(head: Callable[[BERT], nn.Module]) -> Family:
    def make(**options: Any) -> nn.Module:
        return head(BERT(BERTConfig(vocab_size=VOCAB, max_len=64, dropout=0.0, **SIZES), **options))

    return Family(make, padded, TEXT)


def modern_bert(**options: Any) -> nn.Module:
    config = ModernBERTConfig(vocab_size=VOCAB, max_len=64, window=3, global_every=2, **SIZES)
    return ModernBERTForMaskedLM(ModernBERT(config, **options))


def clip(end_id: int | None) -> Family:
    config = CLIPConfig(
        vision=ViTConfig(image_size=8, patch_size=4, norms_embeddings=True, **SIZES),
        text=GPTConfig(vocab_size=VOCAB, max_len=64, dropout=0.0, **SIZES),
        d_shared=6,
        end_id=end_id,
    )
    return Family(partial(CLIP, config), images_and_texts, (*IMAGE, {0: "batch", 1: "length"}))


TEXT = ({0: "batch", 1: "length"}, {0: "batch", 1: "length"})
PAIR = ({0: "batch", 1: "length"}, {0: "batch", 1: "target"})
IMAGE: tuple[dict[int, str], ...] = ({0: "batch"},)
TRANSLATOR = {"vocab_size": VOCAB, "max_len": 64, "dropout": 0.0, **SIZES}
EXPERTS = ExpertsConfig(n_experts=4, n_chosen=2, d_ff=9)
BALANCED = ExpertsConfig(n_experts=4, n_chosen=2, d_ff=9, n_shared=1, is_balanced=True, n_groups=2, n_groups_chosen=1)
FAMILIES = {
    **{f"GPT, {kind}": gpt(kind) for kind in ("learned", "sinusoidal", "rotary", "alibi", "none")},
    "Llama 3": decoder(n_kv_heads=1, rotary_scaling=RotaryScaling(factor=8.0, trained_len=16)),
    "Gemma": decoder(
        n_kv_heads=1,
        norm_place="both",
        qk_norm="each head",
        window=3,
        global_every=2,
        local_rotary_base=100.0,
        score_cap=2.0,
        logit_cap=3.0,
        scale_embeddings=True,
        tie_embeddings=True,
    ),
    "OLMo": decoder(norm_place="after", qk_norm="all heads"),
    "Mixtral": decoder(experts=EXPERTS, window=4),
    "DeepSeek": decoder(experts=BALANCED, latent=Latent(d_head=5, d_rotary=4, d_value=3, d_latent=6, d_query_latent=7)),
    "gpt-oss": decoder(has_sinks=True, attention_bias=True, window=3, global_every=2, experts=EXPERTS),
    "Transformer, post": Family(partial(Transformer, TransformerConfig(norm="post", **TRANSLATOR)), pairs, PAIR),
    "Transformer, pre": Family(
        partial(Transformer, TransformerConfig(norm="pre", positions="learned", logits_bias=True, **TRANSLATOR)),
        pairs,
        PAIR,
    ),
    "T5": Family(partial(T5, T5Config(vocab_size=VOCAB, d_head=5, dropout=0.0, **SIZES)), pairs, PAIR),
    "BERT": bert(BERTForMaskedLM),
    "BERT, a classifier": bert(lambda encoder: TransformerForSequenceClassification(encoder, 12, 3, dropout=0.0)),
    "ModernBERT": Family(modern_bert, right_padded, TEXT),
    "ViT": vision(ViT),
    "DeiT": vision(DistilledViT, is_distilled=True),
    "DINOv2": vision(VisionEncoder, n_registers=2, layer_scale=0.5),
    "CLIP": clip(VOCAB - 1),
    "CLIP, first configs": clip(None),
}


def built(family: Family, dtype: torch.dtype = torch.float64, **options: Any) -> nn.Module:
    """A model none of whose weights hides anything."""
    torch.manual_seed(0)
    model = family.make(**options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.to(dtype).eval()


def inputs_of(family: Family, batch: int, length: int, dtype: torch.dtype = torch.float64) -> Inputs:
    torch.manual_seed(batch + length)
    return tuple(one.to(dtype) if one.is_floating_point() else one for one in family.inputs(batch, length))


def result(output: Any) -> Tensor:
    """All numbers of an output, as one tensor."""
    return output if isinstance(output, Tensor) else torch.cat([one.flatten() for one in output])


def loss_of(model: nn.Module, weights: dict[str, Tensor], inputs: Inputs) -> Tensor:
    output = result(functional_call(model, weights, inputs))
    return (output * torch.linspace(-1, 1, output.shape[-1], dtype=output.dtype)).sin().mean()


def compare(found: Any, expected: Any, **tolerance: float) -> None:
    torch.testing.assert_close(found, expected, **(tolerance or CLOSE))


# The transformations -------------------------------------------------------------------------------------------------


def compiled(family: Family, backend: str = "eager") -> None:
    torch._dynamo.reset()
    model = built(family)
    run = torch.compile(model, backend=backend)
    for batch, length in ((3, 9), (2, 13), (4, 5)):
        inputs = inputs_of(family, batch, length)
        compare(result(run(*inputs)), result(model(*inputs)))


def exported(family: Family) -> None:
    model = built(family)
    names = {"batch": Dim("batch"), "length": Dim("length", max=LONGEST), "target": Dim("target", max=LONGEST)}
    shapes = tuple({axis: names[name] for axis, name in free.items()} for free in family.axes)
    program = torch.export.export(model, inputs_of(family, 3, 9), dynamic_shapes=shapes).module()
    for batch, length in ((2, 13), (5, 30), (3, 9), (4, 6)):
        inputs = inputs_of(family, batch, length)
        compare(result(program(*inputs)), result(model(*inputs)))


def traced(family: Family) -> None:
    model = built(family)
    run = torch.jit.trace(model, inputs_of(family, 3, 9), check_trace=False)
    torch.manual_seed(1)
    other = tuple(one.double() if one.is_floating_point() else one for one in family.inputs(3, 9))
    compare(result(run(*other)), result(model(*other)))


def mapped(family: Family) -> None:
    """The gradients of each row alone, at once."""
    model, inputs = built(family), inputs_of(family, 3, 9)
    weights = {name: weight.detach() for name, weight in model.named_parameters()}

    def of_one(weights: dict[str, Tensor], *row: Tensor) -> Tensor:
        return loss_of(model, weights, tuple(one[None] for one in row))

    found = vmap(grad(of_one), in_dims=(None, *[0 for _ in inputs]))(weights, *inputs)
    for row in range(3):
        expected = grad(of_one)(weights, *(one[row] for one in inputs))
        compare({name: of_all[row] for name, of_all in found.items()}, expected)


def penalty(family: Family, **options: Any) -> None:
    """The gradient of the gradient's length, against its definition: how that length grows along some direction."""
    model, inputs = built(family, **options), inputs_of(family, 3, 9)
    weights = dict(model.named_parameters())
    loss = loss_of(model, weights, inputs)
    first = torch.autograd.grad(loss, list(weights.values()), create_graph=True, materialize_grads=True)
    length = sum((one**2).sum() for one in first)
    second = torch.autograd.grad(length, list(weights.values()), materialize_grads=True)
    torch.manual_seed(1)
    direction, step = [torch.randn_like(one) for one in second], 1e-5
    growth = sum((one * along).sum() for one, along in zip(second, direction, strict=True))

    def length_at(sign: int) -> Tensor:
        moved = {
            name: (one + sign * step * along).detach().requires_grad_()
            for (name, one), along in zip(weights.items(), direction, strict=True)
        }
        gradients = torch.autograd.grad(loss_of(model, moved, inputs), list(moved.values()), allow_unused=True)
        return sum((one**2).sum() for one in gradients if one is not None)

    compare(growth, (length_at(1) - length_at(-1)) / (2 * step), rtol=1e-4, atol=1e-5)


def penalty_eager(family: Family) -> None:
    penalty(family, attend=partial(efficient_attention, backend="eager"))


def forward_mode(family: Family) -> None:
    """A derivative taken forwards along a direction is the gradient's product with it."""
    model, inputs = built(family), inputs_of(family, 3, 9)
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    direction = {name: torch.randn_like(weight) for name, weight in weights.items()}
    run = partial(loss_of, model, inputs=inputs)
    _, found = jvp(lambda weights: run(weights), (weights,), (direction,))
    gradients = grad(lambda weights: run(weights))(weights)
    compare(found, sum((gradients[name] * direction[name]).sum() for name in weights))


def copied(family: Family) -> None:
    model, inputs = built(family), inputs_of(family, 3, 9)
    assert torch.equal(result(copy.deepcopy(model)(*inputs)), result(model(*inputs)))


def pickled(family: Family) -> None:
    model, inputs, kept = built(family), inputs_of(family, 3, 9), io.BytesIO()
    assert torch.equal(result(pickle.loads(pickle.dumps(model))(*inputs)), result(model(*inputs)))
    torch.save(model, kept)
    kept.seek(0)
    assert torch.equal(result(torch.load(kept, weights_only=False)(*inputs)), result(model(*inputs)))


def functional(family: Family) -> None:
    model, inputs = built(family), inputs_of(family, 3, 9)
    with torch.device("meta"):
        empty = family.make().eval()
    found = functional_call(empty, {**dict(model.named_parameters()), **dict(model.named_buffers())}, inputs)
    assert torch.equal(result(found), result(model(*inputs)))


def from_meta(family: Family, *, assign: bool = False) -> None:
    model, inputs = built(family), inputs_of(family, 3, 9)
    with torch.device("meta"):
        empty = family.make().eval()
    filled = empty if assign else empty.to(torch.float64).to_empty(device="cpu")
    filled.load_state_dict(model.state_dict(), assign=assign)
    assert torch.equal(result(filled(*inputs)), result(model(*inputs)))


def default_dtype(family: Family, dtype: torch.dtype) -> None:
    """A model that is made in half precision is the one that is brought there."""
    cast, inputs = built(family, torch.float32).to(dtype), inputs_of(family, 3, 9, dtype)
    torch.set_default_dtype(dtype)
    try:
        made = family.make().eval()
        assert {parameter.dtype for parameter in made.parameters()} == {dtype}
        made.load_state_dict(cast.state_dict())
        found = result(made(*inputs))
    finally:
        torch.set_default_dtype(torch.float32)
    assert found.dtype is dtype
    assert torch.equal(found, result(cast(*inputs)))
    precise, wide = built(family), inputs_of(family, 3, 9)
    compare(found.double(), result(precise(*wide)), rtol=0.1, atol=0.25)


class Int8Linear(nn.Module):
    """A linear map whose weight is kept as whole numbers."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        scale = linear.weight.detach().abs().amax(dim=1, keepdim=True) / 127
        self.register_buffer("weight", (linear.weight.detach() / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, hidden: Tensor) -> Tensor:
        return nn.functional.linear(hidden, self.weight.to(hidden.dtype) * self.scale, self.bias)


def quantised(family: Family) -> None:
    model, inputs = built(family), inputs_of(family, 3, 9)
    rounded, whole = copy.deepcopy(model), copy.deepcopy(model)
    for name, module in model.named_modules():
        if type(module) is nn.Linear:
            parent, _, own = name.rpartition(".")
            eight = Int8Linear(module)
            setattr(whole.get_submodule(parent), own, eight)
            linear = copy.deepcopy(module)
            linear.weight = nn.Parameter(eight.weight * eight.scale)
            setattr(rounded.get_submodule(parent), own, linear)
    compare(result(whole(*inputs)), result(rounded(*inputs)))


def quantised_by_torch(family: Family) -> None:
    model, inputs = built(family, torch.float32), inputs_of(family, 3, 9, torch.float32)
    found = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})(*inputs)
    compare(result(found), result(model(*inputs)), rtol=0.2, atol=0.5)


def autocast(family: Family) -> None:
    model, inputs = built(family, torch.float32), inputs_of(family, 3, 9, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = result(model(*inputs))
        found.float().square().mean().backward()
    compare(found.float(), result(model(*inputs)), rtol=0.1, atol=0.25)
    gradients = [one.grad for one in model.parameters() if one.grad is not None]
    assert gradients
    assert all(one.isfinite().all() for one in gradients)


def checkpointed(family: Family) -> None:
    model, inputs = built(family), inputs_of(family, 3, 9)
    weights = list(model.parameters())
    for use_reentrant in (False, True):
        first = inputs if any(one.requires_grad for one in inputs) else (torch.zeros((), requires_grad=True), *inputs)
        output = checkpoint(lambda _, *inputs: result(model(*inputs)), *first, use_reentrant=use_reentrant)
        found = torch.autograd.grad(output.sin().sum(), weights, allow_unused=True) if not use_reentrant else None
        expected = torch.autograd.grad(result(model(*inputs)).sin().sum(), weights, allow_unused=True)
        if found is None:
            output.sin().sum().backward()
            found = tuple(weight.grad for weight in weights)
        compare(found, expected)


TRANSFORMATIONS: dict[str, Callable[[Family], None]] = {
    "compile": compiled,
    "export": exported,
    "jit.trace": traced,
    "vmap of gradients": mapped,
    "gradient of a gradient": penalty,
    "gradient of a gradient, eager": penalty_eager,
    "forward mode": forward_mode,
    "deepcopy": copied,
    "pickle": pickled,
    "functional_call": functional,
    "meta, to_empty, load": from_meta,
    "meta, load with assign": partial(from_meta, assign=True),
    "float16 by default": partial(default_dtype, dtype=torch.float16),
    "bfloat16 by default": partial(default_dtype, dtype=torch.bfloat16),
    "quantised linears": quantised,
    "quantised by PyTorch": quantised_by_torch,
    "autocast": autocast,
    "checkpointing": checkpointed,
}


def outcome(family: str, name: str) -> str:
    """What came of it: "equal", or what was raised."""
    try:
        TRANSFORMATIONS[name](FAMILIES[family])
    except Exception as error:  # whatever it is, the test that reads this shows it
        return f"{type(error).__name__}: {error}"
    return "equal"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = json.loads(sys.argv[1])
    json.dump({f"{family}: {name}": outcome(family, name) for family, name in asked}, sys.stdout)
