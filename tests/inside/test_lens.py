"""The lens ends at the model's own logits, and the parts of a stream add up to the whole."""

import pytest
import torch
from torch import nn

from tests.inside.models import SOURCE_IDS, TARGET_IDS, TOKEN_IDS, language_model, translator
from ttutor.inside import capture, logit_lens, read_out, residual_stream, residual_writes, stack_of
from ttutor.layers import PostNorm


def test_every_reading_is_the_model_without_the_layers_above():
    model = language_model(n_layers=3)
    readings = logit_lens(model, TOKEN_IDS)
    for n_layers in (2, 1):
        del model.decoder.layers[n_layers]
        assert torch.equal(readings[n_layers], model(TOKEN_IDS))
    assert torch.equal(readings[0], model.project(model.decoder.final_norm(model.embeddings(TOKEN_IDS))))


def test_writes_add_up_to_the_stream():
    model = translator(n_layers=3)
    stream = residual_stream(model, SOURCE_IDS, TARGET_IDS)
    writes = residual_writes(model, SOURCE_IDS, TARGET_IDS)
    assert len(writes) == 1 + 3 * 3
    torch.testing.assert_close(sum(writes.values()), stream[-1], rtol=0, atol=1e-12)
    first_layer = [write for name, write in writes.items() if name == "embeddings" or ".0." in name]
    torch.testing.assert_close(sum(first_layer), stream[1], rtol=0, atol=1e-12)
    with capture(model, "decoder.layers.1.feed_forward") as seen:
        model(SOURCE_IDS, TARGET_IDS)
    assert torch.equal(writes["decoder.layers.1.around_feed_forward"], seen["decoder.layers.1.feed_forward"])


@pytest.mark.usefixtures("as_readers_run_it")
def test_models_without_stream_sum_or_projection_are_refused():
    with pytest.raises(ValueError, match="Linear has no part with `layers` and `final_norm`"):
        stack_of(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="Encoder has no method `project`: give what maps hidden vectors to logits"):
        read_out(translator().encoder, torch.zeros(12, dtype=torch.float64))
    with pytest.raises(ValueError, match="the stream of Transformer is no sum of writes"):
        residual_writes(translator(norm="post"), SOURCE_IDS, TARGET_IDS)
    model = language_model()
    model.decoder.layers[1].around_feed_forward = PostNorm(12).double()
    with pytest.raises(ValueError, match="the stream of GPT is no sum of writes"):
        residual_writes(model, TOKEN_IDS)
