"""The lens ends at the model's own logits, and the parts of a stream and of a logit add up to the whole."""

import pytest
import torch
from torch import nn

from tests.inside.models import SOURCE_IDS, TARGET_IDS, TOKEN_IDS, language_model, translator
from ttutor.decoder import Decoder
from ttutor.inside import (
    capture,
    head_writes,
    logit_attribution,
    logit_lens,
    patch,
    read_out,
    residual_stream,
    residual_writes,
    stack_of,
)
from ttutor.layers import PostNorm, RMSNorm
from ttutor.masks import padding_mask
from ttutor.shapes import ShapeError

IDS = torch.tensor([[3, 8, 9, 1, 7], [9, 2, 4, 6, 5]])


class RootMeanSquareModel(nn.Module):
    """A decoder-only language model with a root-mean-square norm and a biased projection."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(23, 12)
        self.stack = Decoder(12, 3, 20, 3, cross_attention=False, norm="pre", make_norm=RMSNorm)
        self.to_logits = nn.Linear(12, 23)

    def forward(self, token_ids):
        return self.project(self.stack(self.table(token_ids)))

    def project(self, hidden):
        return self.to_logits(hidden)


@pytest.fixture
def rms_model():
    model = RootMeanSquareModel().double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_last_reading_is_the_models_own_logits_bit_for_bit(norm):
    model = translator(norm=norm, n_layers=3)
    readings = logit_lens(model, SOURCE_IDS, TARGET_IDS)
    assert readings.shape == (4, 2, 5, 23)
    assert torch.equal(readings[-1], model(SOURCE_IDS, TARGET_IDS))
    assert not torch.allclose(readings[-2], readings[-1])


def test_every_reading_is_the_model_without_the_layers_above():
    model = language_model(n_layers=3)
    readings = logit_lens(model, TOKEN_IDS)
    for n_layers in (2, 1):
        del model.decoder.layers[n_layers]
        assert torch.equal(readings[n_layers], model(TOKEN_IDS))
    assert torch.equal(readings[0], model.project(model.decoder.final_norm(model.embeddings(TOKEN_IDS))))


def test_the_stream_of_another_stack_can_be_read():
    model = translator()
    stream = residual_stream(model, SOURCE_IDS, TARGET_IDS, stack="encoder")
    assert stream.shape == (3, 2, 7, 12)
    assert torch.equal(model.encoder.final_norm(stream[-1]), model.encode(SOURCE_IDS))
    assert (stack_of(model), stack_of(model.encoder)) == ("decoder", "")
    mask = padding_mask(SOURCE_IDS, 0)
    assert torch.equal(residual_stream(model.encoder, stream[0], mask), stream)


def test_options_reach_the_model():
    model = language_model()
    is_real = torch.tensor([[True] * 5, [False] * 2 + [True] * 3])
    readings = logit_lens(model, TOKEN_IDS, is_real=is_real)
    assert torch.equal(readings[-1], model(TOKEN_IDS, is_real))
    assert not torch.equal(readings[-1], model(TOKEN_IDS))


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_writes_add_up_to_the_stream(stack):
    model = translator(n_layers=3)
    stream = residual_stream(model, SOURCE_IDS, TARGET_IDS, stack=stack)
    writes = residual_writes(model, SOURCE_IDS, TARGET_IDS, stack=stack)
    assert len(writes) == 1 + 3 * (2 if stack == "encoder" else 3)
    torch.testing.assert_close(sum(writes.values()), stream[-1], rtol=0, atol=1e-12)
    first_layer = [write for name, write in writes.items() if name == "embeddings" or ".0." in name]
    torch.testing.assert_close(sum(first_layer), stream[1], rtol=0, atol=1e-12)
    with capture(model, "decoder.layers.1.feed_forward") as seen:
        model(SOURCE_IDS, TARGET_IDS)
    if stack == "decoder":
        assert torch.equal(writes["decoder.layers.1.around_feed_forward"], seen["decoder.layers.1.feed_forward"])


def test_parts_add_up_to_the_logit():
    model = translator()
    parts = logit_attribution(model, residual_writes(model, SOURCE_IDS, TARGET_IDS), IDS)
    logits = model(SOURCE_IDS, TARGET_IDS).gather(-1, IDS[..., None])[..., 0]
    torch.testing.assert_close(sum(parts.values()), logits, rtol=0, atol=1e-12)
    assert list(parts)[0] == "embeddings"
    assert list(parts)[-1] == "bias"


def test_parts_add_up_with_another_norm_and_a_biased_projection(rms_model):
    parts = logit_attribution(rms_model, residual_writes(rms_model, TOKEN_IDS), IDS)
    logits = rms_model(TOKEN_IDS).gather(-1, IDS[..., None])[..., 0]
    torch.testing.assert_close(sum(parts.values()), logits, rtol=0, atol=1e-12)
    torch.testing.assert_close(parts["bias"], rms_model.to_logits.bias[IDS])
    assert torch.equal(logit_lens(rms_model, TOKEN_IDS)[-1], rms_model(TOKEN_IDS))


def test_a_part_is_what_the_logit_loses_without_it_while_the_norm_is_held():
    model = language_model()
    name = "decoder.layers.1.around_feed_forward"  # the last writer: nothing comes after it but the norm
    part = logit_attribution(model, residual_writes(model, TOKEN_IDS), IDS)[name]
    with capture(model, "decoder.final_norm.input") as seen:
        model(TOKEN_IDS)
    stream = seen["decoder.final_norm.input"]
    spread = (stream.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()
    with patch(model, {f"{name}.dropout": torch.zeros_like}), capture(model, "decoder.final_norm.input") as without:
        model(TOKEN_IDS)
    lost = stream - without["decoder.final_norm.input"]
    lost = model.decoder.final_norm.gain * (lost - lost.mean(dim=-1, keepdim=True)) / spread
    logits = (lost @ model.to_logits.weight.T).gather(-1, IDS[..., None])[..., 0]
    torch.testing.assert_close(part, logits, rtol=0, atol=1e-12)


def test_a_sublayers_part_splits_into_its_heads():
    model = language_model()
    writes = residual_writes(model, TOKEN_IDS)
    name = "decoder.layers.0.around_self_attention"
    whole = logit_attribution(model, writes, IDS)
    attention = model.decoder.layers[0].self_attention
    with capture(attention, "context") as seen:
        model(TOKEN_IDS)
    del writes[name]
    writes |= {f"head {i}": write for i, write in enumerate(head_writes(attention, seen["context"]).unbind(1))}
    writes["output bias"] = attention.to_output.bias.expand(2, 5, 12)
    parts = logit_attribution(model, writes, IDS)
    heads = sum(parts[f"head {i}"] for i in range(3)) + parts["output bias"]
    torch.testing.assert_close(heads, whole[name], rtol=0, atol=1e-12)


def test_another_projection_can_be_read():
    model = language_model()
    probe = nn.Linear(12, 4).double()
    stream = residual_stream(model, TOKEN_IDS)
    expected = probe(model.decoder.final_norm(stream))
    torch.testing.assert_close(logit_lens(model, TOKEN_IDS, project=probe), expected)
    parts = logit_attribution(model, residual_writes(model, TOKEN_IDS), IDS % 4, project=probe)
    wanted = expected[-1].gather(-1, IDS[..., None] % 4)[..., 0]
    torch.testing.assert_close(sum(parts.values()), wanted, rtol=0, atol=1e-12)


def test_read_out_takes_single_vectors():
    model = translator()
    vector = torch.randn(12, dtype=torch.float64)
    torch.testing.assert_close(read_out(model, vector), model.to_logits(model.decoder.final_norm(vector)))


@pytest.mark.usefixtures("as_readers_run_it")
def test_models_without_stream_sum_or_projection_are_refused():
    with pytest.raises(ValueError, match="Linear has no part with `layers` and `final_norm`"):
        stack_of(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="Transformer has no part called 'encode'"):
        residual_stream(translator(), SOURCE_IDS, TARGET_IDS, stack="encode")
    with pytest.raises(ValueError, match="Encoder has no method `project`: give what maps hidden vectors to logits"):
        read_out(translator().encoder, torch.zeros(12, dtype=torch.float64))
    with pytest.raises(ValueError, match="the stream of Transformer is no sum of writes"):
        residual_writes(translator(norm="post"), SOURCE_IDS, TARGET_IDS)
    model = language_model()
    model.decoder.layers[1].around_feed_forward = PostNorm(12).double()
    with pytest.raises(ValueError, match="the stream of GPT is no sum of writes"):
        residual_writes(model, TOKEN_IDS)
    model = language_model()
    writes = residual_writes(model, TOKEN_IDS)
    with pytest.raises(ShapeError, match="axis 'tokens' is 4 in token_ids but 5 in embeddings"):
        logit_attribution(model, writes, IDS[:, :4])
    model.project = lambda hidden: model.to_logits(hidden).relu()
    with pytest.raises(ValueError, match="the projection of GPT is not affine"):
        logit_attribution(model, writes, IDS)
