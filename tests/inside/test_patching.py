"""A patched model computes what the same model with that intermediate would, and ablation takes away what it names."""

import pytest
import torch
from torch import nn

from tests.inside.models import SOURCE_IDS, TARGET_IDS, TOKEN_IDS, language_model, translator
from ttutor.errors import ShapeError
from ttutor.inside import ablate, ablation_effects, capture, patch
from ttutor.multihead import MultiHeadAttention

ZEROS = torch.zeros(2, 7, 12, dtype=torch.float64)  # as large as the encoder's output


@pytest.fixture
def model():
    return translator()


def run(model):
    return model(SOURCE_IDS, TARGET_IDS)


@pytest.mark.parametrize(
    "name",
    [
        "encoder.layers.1",
        "encoder.layers.0.input",
        "decoder.layers.1.feed_forward",
        "decoder.layers.0.cross_attention.weights",
        "decoder.layers.0.self_attention.q",
        "decoder.layers.1.self_attention.context",
        "decoder.final_norm.input",
    ],
)
def test_putting_back_what_was_there_changes_nothing_and_something_else_does(model, name):
    untouched = run(model)
    with capture(model, name) as seen:
        run(model)
    with patch(model, {name: seen[name]}):
        torch.testing.assert_close(run(model), untouched, rtol=0, atol=1e-12)
    with patch(model, {name: seen[name].flip(1)}):
        assert (run(model) - untouched).abs().max() > 1e-3
    assert torch.equal(run(model), untouched)


def test_patching_the_last_stream_decides_the_logits(model):
    new = torch.randn(2, 5, 12, dtype=torch.float64)
    with patch(model, {"decoder.layers.1": new}):
        logits = run(model)
    torch.testing.assert_close(logits, model.to_logits(model.decoder.final_norm(new)))


@pytest.mark.parametrize("n_kv_heads", [1, 2, 6])
def test_patched_weights_blend_the_values(n_kv_heads):
    attention = MultiHeadAttention(12, 6, n_kv_heads).double()
    hidden, new = torch.randn(2, 5, 12, dtype=torch.float64), torch.rand(2, 6, 5, 5, dtype=torch.float64)
    with patch(attention, {"weights": new}), capture(attention, "v", "context", "output") as seen:
        attention(hidden)
    context = new @ seen["v"].repeat_interleave(6 // n_kv_heads, dim=1)
    torch.testing.assert_close(seen["context"], context, rtol=0, atol=1e-12)
    merged = context.transpose(1, 2).reshape(2, 5, 12)
    torch.testing.assert_close(seen["output"], attention.to_output(merged), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    ("patches", "error", "message"),
    [
        ({"encoder": ZEROS[..., :3]}, ShapeError, r"'encoder' is \(2, 7, 3\), but the model computed \(2, 7, 12\)"),
        ({"encoder": ZEROS.float()}, TypeError, "'encoder' is torch.float32, but the model computed torch.float64"),
        ({"encoder": lambda _: None}, TypeError, "must be a tensor, but is NoneType"),
        ({"encoders": ZEROS}, ValueError, "no intermediate 'encoders'; similar names: encoder"),
    ],
)
def test_misfitting_patches_are_refused(model, patches, error, message):
    with pytest.raises(error, match=message), patch(model, patches):
        run(model)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_only_the_named_heads_and_tokens_change():
    model = language_model()
    name = "decoder.layers.0.self_attention.v"
    with capture(model, name) as whole:
        model(TOKEN_IDS)
    with ablate(model, name, heads=[2], tokens=[0, -1]), capture(model, name) as seen:
        model(TOKEN_IDS)
    expected = whole[name].clone()
    expected[:, 2, [0, 4]] = 0
    assert torch.equal(seen[name], expected)


def test_mean_ablation_averages_batch_and_tokens_of_each_head():
    model = language_model()
    name = "decoder.layers.1.self_attention.context"
    with capture(model, name) as whole:
        model(TOKEN_IDS)
    with ablate(model, name, heads=[0], by="mean"), capture(model, name) as seen:
        model(TOKEN_IDS)
    mean = torch.stack([whole[name][row, 0, token] for row in range(2) for token in range(5)]).mean(0)
    torch.testing.assert_close(seen[name][:, 0], mean.expand(2, 5, 4), rtol=0, atol=1e-12)
    assert torch.equal(seen[name][:, 1:], whole[name][:, 1:])


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("decoder.layers.0.feed_forward", {"heads": [0]}, ValueError, "has no heads: heads are ablated in q, k, v"),
        ("encoder", {"by": "median"}, ValueError, 'by must be "zero", "mean" or a tensor, but is \'median\''),
        ("**.q", {"heads": [3]}, IndexError, r"has 3 heads, so heads=\[3\] cannot be ablated"),
        ("encoder", {"tokens": [-8]}, IndexError, r"'encoder' has 7 tokens, so tokens=\[-8\]"),
        ("encoder", {"by": ZEROS[:, :5]}, ShapeError, r"by has shape \(2, 5, 12\), .* to 'encoder': \(2, 7, 12\)"),
    ],
)
def test_impossible_ablations_are_refused(model, name, options, error, message):
    with pytest.raises(error, match=message), ablate(model, name, **options):
        run(model)


def test_ablation_effects_are_differences_to_the_whole_model():
    model = language_model()
    nn.init.zeros_(model.decoder.layers[1].self_attention.to_output.weight[:, 4:8])  # head 1 of layer 1 writes nothing

    def loss():
        return model(TOKEN_IDS)[..., 7].mean()

    effects = ablation_effects(model, loss)
    assert list(effects) == [f"decoder.layers.{i}.self_attention.context" for i in (0, 1)]
    table = torch.stack(list(effects.values()))
    assert table[1, 1] == 0
    assert (table != 0).sum() == 5
    whole = loss()
    with ablate(model, "decoder.layers.0.self_attention.context", heads=[2]):
        assert table[0, 2] == loss() - whole
