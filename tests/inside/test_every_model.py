"""Capture, lens and writes in each of our models, none of which knows of them."""

import pytest
import torch
from torch import Tensor, nn

from tests.inside.models import SOURCE_IDS, TARGET_IDS, TOKEN_IDS, language_model, translator
from tests.torch_twins import randomised
from ttutor.inside import ablate, capture, logit_lens, residual_stream, residual_writes, stack_of
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM
from ttutor.variants.llama import Llama, LlamaConfig
from ttutor.variants.t5 import T5, T5Config
from ttutor.variants.vit import ViT, ViTConfig

SIZES = {"d_model": 12, "n_heads": 6, "n_layers": 2, "d_ff": 20}
SANDWICH = {"norm_place": "both", "qk_norm": "each head", "d_head": 4, "n_kv_heads": 2}
TEXT = {"vocab_size": 23, **SIZES}


def bert() -> BERTForMaskedLM:
    return BERTForMaskedLM(BERT(BERTConfig(**TEXT, max_len=16)))


def vit() -> ViT:
    return ViT(ViTConfig(**SIZES, image_size=4, patch_size=2, n_channels=1, n_classes=5))


# The model, what it is called with, its attention layers, and whether its stream is a sum of writes.
MODELS = {
    "transformer post": (lambda: translator(norm="post"), (SOURCE_IDS, TARGET_IDS), 6, False),
    "transformer pre": (translator, (SOURCE_IDS, TARGET_IDS), 6, True),
    "gpt": (language_model, (TOKEN_IDS,), 2, True),
    "gpt alibi": (lambda: language_model(positions="alibi"), (TOKEN_IDS,), 2, True),
    "gpt rotary": (lambda: language_model(positions="rotary"), (TOKEN_IDS,), 2, True),
    "bert": (bert, (TOKEN_IDS,), 2, False),
    "llama": (lambda: Llama(LlamaConfig(**TEXT, n_kv_heads=2, d_head=4, window=3)), (TOKEN_IDS,), 2, True),
    "gemma": (lambda: Llama(LlamaConfig(**TEXT, window=3, global_every=2, **SANDWICH)), (TOKEN_IDS,), 2, True),
    "olmo": (lambda: Llama(LlamaConfig(**TEXT, norm_place="after", qk_norm="all heads")), (TOKEN_IDS,), 2, True),
    "t5": (lambda: T5(T5Config(**TEXT, d_head=5)), (SOURCE_IDS, TARGET_IDS), 6, True),
    "t5 gated": (lambda: T5(T5Config(**TEXT, d_head=5, feed_forward="geglu")), (SOURCE_IDS, TARGET_IDS), 6, True),
    "vit": (vit, (torch.randn(2, 1, 4, 4, dtype=torch.float64),), 2, True),
}


@pytest.fixture(params=MODELS)
def case(request) -> tuple[nn.Module, tuple[Tensor, ...], int, bool]:
    build, inputs, n_attentions, is_sum = MODELS[request.param]
    return randomised(build()), inputs, n_attentions, is_sum


def test_weights_and_values_make_the_context_that_the_layer_used(case):
    model, inputs, n_attentions, _ = case
    untouched = model(*inputs)
    with capture(model, "**.weights", "**.v", "**.context", "**.to_output.input") as seen:
        assert torch.equal(model(*inputs), untouched)
    layers = [name.removesuffix(".weights") for name in seen if name.endswith(".weights")]
    assert len(layers) == n_attentions
    for layer in layers:
        weights, v = seen[f"{layer}.weights"], seen[f"{layer}.v"]
        context = weights @ v.repeat_interleave(weights.shape[1] // v.shape[1], dim=1)
        torch.testing.assert_close(seen[f"{layer}.context"], context, rtol=0, atol=1e-11)
        merged = context.transpose(1, 2).flatten(2)
        torch.testing.assert_close(seen[f"{layer}.to_output.input"], merged, rtol=0, atol=1e-11)


def test_the_lens_ends_at_the_models_own_answer(case):
    model, inputs, _, _ = case
    if isinstance(model, ViT):
        readings, answer = logit_lens(model, *inputs, project=model.classifier)[..., 0, :], model(*inputs)
    elif isinstance(model, BERTForMaskedLM):
        readings, answer = logit_lens(model, *inputs, project=model.head), model(*inputs)
    else:
        readings, answer = logit_lens(model, *inputs), model(*inputs)
    assert len(readings) == 3
    torch.testing.assert_close(readings[-1], answer, rtol=0, atol=1e-12)


def test_the_stream_is_the_sum_of_what_is_written_where_norms_stand_inside(case):
    model, inputs, _, is_sum = case
    if is_sum:
        total = sum(residual_writes(model, *inputs).values())
        torch.testing.assert_close(total, residual_stream(model, *inputs)[-1], rtol=0, atol=1e-11)
    else:
        with pytest.raises(ValueError, match="no sum of writes"):
            residual_writes(model, *inputs)


def test_a_head_can_be_taken_away(case):
    model, inputs, _, _ = case
    stack = stack_of(model)
    name = f"{stack}.layers.1.self_attention.context" if stack else "layers.1.self_attention.context"
    untouched = model(*inputs)
    with ablate(model, name, heads=[1]):
        ablated = model(*inputs)
    with torch.no_grad():
        attention = model.get_submodule(name.removesuffix(".context"))
        attention.to_output.weight[:, attention.d_head : 2 * attention.d_head] = 0
    torch.testing.assert_close(ablated, model(*inputs), rtol=0, atol=1e-11)
    assert not torch.allclose(ablated, untouched)
