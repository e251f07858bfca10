"""What is captured is what the model used, by whatever name, and the model is left as it was."""

import pytest
import torch
from torch import nn

from tests.inside.models import SOURCE_IDS, TARGET_IDS, TOKEN_IDS, language_model, translator
from tests.torch_twins import attention_twin, randomised
from ttutor.cache import DecoderCache
from ttutor.encoder import Encoder
from ttutor.errors import ShapeError
from ttutor.inside import capture, intermediates, patch
from ttutor.inside.taps import find_sites
from ttutor.masks import CAUSAL
from ttutor.multihead import MultiHeadAttention
from ttutor.recurrence import LSTMCell, RecurrentEncoder


@pytest.fixture
def attention():
    return randomised(MultiHeadAttention(12, 3))


@pytest.fixture
def hidden():
    return torch.randn(2, 5, 12, dtype=torch.float64)


def state(model: nn.Module) -> list[object]:
    """Everything that a context could leave behind."""
    return [
        (name, dict(module._forward_hooks), dict(module._forward_pre_hooks), vars(module).get("attend"))
        for name, module in model.named_modules()
    ]


def test_weights_and_context_by_head_equal_torch(attention, hidden):
    memory = torch.randn(2, 7, 12, dtype=torch.float64)
    output, weights = attention_twin(attention)(hidden, memory, memory, average_attn_weights=False)
    with capture(attention, "weights", "output", "context", "v") as seen:
        attention(hidden, memory)
    torch.testing.assert_close(seen["weights"], weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(seen["output"], output, rtol=0, atol=1e-12)
    torch.testing.assert_close(seen["context"], weights @ seen["v"], rtol=0, atol=1e-12)


def test_inputs_and_outputs_are_those_of_the_module():
    model = translator()
    names = ("decoder.layers.*.feed_forward", "decoder.layers.*.feed_forward.input", "encoder", "decoder.layers.0")
    with capture(model, *names, "decoder.layers.1.around_self_attention.input") as seen:
        model(SOURCE_IDS, TARGET_IDS)
    for i in range(2):
        again = model.decoder.layers[i].feed_forward(seen[f"decoder.layers.{i}.feed_forward.input"])
        assert torch.equal(again, seen[f"decoder.layers.{i}.feed_forward"])
    assert torch.equal(seen["encoder"], model.encode(SOURCE_IDS))
    assert seen["decoder.layers.1.around_self_attention.input"] is seen["decoder.layers.0"]


def test_capturing_changes_no_result_and_leaves_nothing_behind():
    model = translator()
    before, untouched = state(model), model(SOURCE_IDS, TARGET_IDS)
    with capture(model, "**") as seen:
        assert torch.equal(model(SOURCE_IDS, TARGET_IDS), untouched)
        assert state(model) != before
    assert state(model) == before
    assert torch.equal(seen["output"], untouched)
    n_weights = len([name for name in seen if name.endswith(".weights")])
    assert n_weights == 2 + 2 * 2  # two encoder layers with one attention each, two decoder layers with two


def test_the_attention_function_comes_back_after_an_exception(attention, hidden):
    before = state(attention)
    with pytest.raises(RuntimeError, match="on purpose"), capture(attention, "weights"):  # noqa: PT012
        attention(hidden)
        raise RuntimeError("on purpose")
    assert state(attention) == before


def test_cached_decoding_gives_a_call_for_each_step():
    model = language_model()
    cache = DecoderCache(2)
    name = "decoder.layers.1.self_attention.weights"
    with torch.no_grad(), capture(model, name) as whole:
        model(TOKEN_IDS)
    with torch.no_grad(), capture(model, name) as seen:
        for step in TOKEN_IDS.split([2, 1, 1, 1], dim=1):
            model(step, cache=cache)
    assert [tuple(weights.shape) for weights in seen.calls(name)] == [
        (2, 3, n, m) for n, m in zip((2, 1, 1, 1), (2, 3, 4, 5), strict=True)
    ]
    torch.testing.assert_close(seen[name], whole[name][:, :, 4:], rtol=0, atol=1e-12)  # the latest call


def test_grouped_heads_have_weights_for_every_query_head(hidden):
    attention = MultiHeadAttention(12, 6, 2).double()
    with capture(attention, "*") as seen:
        attention(hidden, mask=CAUSAL)
    assert (seen["k"].shape, seen["weights"].shape) == ((2, 2, 5, 2), (2, 6, 5, 5))
    v = seen["v"].repeat_interleave(3, dim=1)
    torch.testing.assert_close(seen["weights"] @ v, seen["context"], rtol=0, atol=1e-12)


def test_weights_of_a_layer_that_has_none_are_refused(attention, hidden):
    attention.attend = lambda q, k, v, mask=None, **options: v.mean(dim=-2, keepdim=True).expand_as(q)
    with capture(attention, "context"):
        attention(hidden)
    with pytest.raises(ValueError, match="does not use softmax weights"), capture(attention, "weights"):
        attention(hidden)


def test_a_recurrent_cell_gives_a_state_for_each_step():
    encoder = RecurrentEncoder(LSTMCell(3, 4))
    inputs = torch.randn(2, 5, 3)
    with capture(encoder, "cell", "cell.input") as seen:
        hidden, _ = encoder(inputs)
    assert torch.equal(torch.stack(seen.calls("cell.input"), dim=1), inputs)
    assert torch.equal(torch.stack([state[0] for state in seen.calls("cell")], dim=1), hidden)
    with pytest.raises(TypeError, match="only tensors can be stacked, but cell gave something else"):
        seen.stack()
    with patch(encoder, {"cell": lambda state: (torch.zeros_like(state[0]), state[1])}):
        assert (encoder(inputs)[0] == 0).all()


def test_a_star_stands_for_one_part_and_two_for_any_number():
    encoder = Encoder(8, 2, 16, 2)
    assert list(find_sites(encoder, "layers.*")) == ["layers.0", "layers.1"]
    assert list(find_sites(encoder, "**.weights")) == [f"layers.{i}.self_attention.weights" for i in (0, 1)]
    assert list(find_sites(encoder, "layers.1.**.norm")) == [
        "layers.1.around_attention.norm",
        "layers.1.around_feed_forward.norm",
    ]
    assert list(find_sites(MultiHeadAttention(8, 2), "**.weights")) == ["weights"]
    everything = intermediates(encoder)
    assert everything[:2] == ["output", "input"]
    assert "layers" not in everything  # a list of layers never runs
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("encoder.layers.2.feed_forward", "encoder.layers.1.feed_forward"),
        ("decoder.layers.0.selfattention.weights", "decoder.layers.0.self_attention.weights"),
        ("decoder.layers.0.feed_forward.weights", "decoder.layers.0.feed_forward.input"),
    ],
)
def test_an_unknown_name_is_refused_with_similar_ones(name, similar):
    with pytest.raises(ValueError, match=f"Transformer has no intermediate '{name}'; similar names: .*{similar}"):
        capture(translator(), name).__enter__()


def test_what_was_not_asked_for_or_did_not_run_is_told_apart():
    model = translator()
    with capture(model, "decoder.layers.0", "encoder.layers.0") as seen:
        model.encode(SOURCE_IDS)
    assert list(seen) == ["encoder.layers.0"]
    assert len(seen) == 1
    assert "decoder.layers.0" not in seen
    assert seen.calls("decoder.layers.0") == []
    with pytest.raises(KeyError, match="did not run it while the context was open"):
        seen["decoder.layers.0"]
    with pytest.raises(KeyError, match="'encoder' is not among what is captured here: decoder.layers.0, encoder.lay"):
        seen["encoder"]


def test_equal_shapes_stack_and_others_are_refused():
    model = translator()
    with capture(model, "encoder.layers.*", "decoder.layers.0") as seen:
        with pytest.raises(ValueError, match="nothing to stack"):
            seen.stack()
        model.encode(SOURCE_IDS)
        assert torch.equal(seen.stack()[1], seen["encoder.layers.1"])
        model(SOURCE_IDS, TARGET_IDS)
        with pytest.raises(ShapeError, match=r"'decoder.layers.0': \(2, 5, 12\)"):
            seen.stack()
