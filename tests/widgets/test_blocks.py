"""The Transformer's picture in Python: shapes and counts are held to a model; its words, its fallback, its refusals."""

from __future__ import annotations

import html
import json
import re

import pytest
import torch
from torch import Tensor, nn

from ttutor.attention import attention_weights
from ttutor.transformer import Transformer, TransformerConfig, account
from ttutor.widgets import BlocksExplorer
from ttutor.widgets.block_parts import LEVELS, PARTS, STEPS
from ttutor.widgets.block_words import kinds

SMALL = TransformerConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=16)
CHOICES = [
    {},
    {"norm": "pre"},
    {"positions": "learned"},
    {"tie_embeddings": False, "logits_bias": True},
    {"norm": "pre", "activation": "gelu_tanh", "dropout": 0.0, "logits_bias": True},
]
LAYERS = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}


def specimen() -> BlocksExplorer:
    """The figure as the gallery shows it."""
    return BlocksExplorer(batch=2, source_length=7, target_length=6)


def by_own_hooks(model: Transformer, batch: int, source: int, target: int) -> dict[str, tuple[int, ...]]:
    """Shapes as plain PyTorch hooks see them, with no help of ours; the first use of a shared module counts."""
    seen: dict[str, tuple[int, ...]] = {}

    def note(name: str):
        def hook(module: nn.Module, inputs: tuple, output: Tensor) -> None:
            seen.setdefault(name, tuple(output.shape))

        return hook

    handles = [module.register_forward_hook(note(name)) for name, module in model.named_modules() if name]
    device = model.to_logits.weight.device
    model(*(torch.ones(batch, length, dtype=torch.long, device=device) for length in (source, target)))
    for handle in handles:
        handle.remove()
    return seen


# ---------------------------------------------------------------- shapes


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("sizes", [(2, 7, 6), (3, 5, 4), (1, 1, 9)], ids=str)
def test_every_module_has_the_shape_that_its_part_says(sizes: tuple[int, int, int], norm: str) -> None:
    made = BlocksExplorer(SMALL.replace(norm=norm), batch=sizes[0], source_length=sizes[1], target_length=sizes[2])
    seen = by_own_hooks(Transformer(SMALL.replace(norm=norm)).eval(), *sizes)
    sites = {name: part.site for name, part in PARTS.items() if part.site in seen and name != "target_embedding"}
    assert len(sites) > 35
    assert {name: made.shape(name) for name in sites} == {name: seen[site] for name, site in sites.items()}


@pytest.mark.parametrize("attention", [level for level in LEVELS if "attention" in level])
def test_inside_an_attention_the_tensors_are_what_the_parts_say(attention: str) -> None:
    made, seen = BlocksExplorer(SMALL, batch=2, source_length=7, target_length=5), {}
    model = Transformer(SMALL).eval()
    side, name = attention.split(".")
    layer = getattr(getattr(model, side).layers[0], name)
    attend = layer.attend

    def watch(q: Tensor, k: Tensor, v: Tensor, mask: object = None, **options: object) -> Tensor:
        context = attend(q, k, v, mask, **options)
        seen.update(q=q, k=k, v=v, context=context, weights=attention_weights(q, k, mask))
        return context

    layer.attend = watch
    model(torch.ones(2, 7, dtype=torch.long), torch.ones(2, 5, dtype=torch.long))
    assert {part: made.shape(f"{attention}.{part}") for part in seen} == {
        part: tuple(tensor.shape) for part, tensor in seen.items()
    }


def test_the_traces_shapes_of_the_base_model() -> None:
    made = specimen()
    assert [[made.shape(part) for _, part in step.shapes] for step in STEPS] == [
        [(2, 7), (2, 6)],
        [(2, 7, 512), (2, 6, 512)],
        [(2, 7, 512)],
        [(2, 8, 6, 6), (2, 6, 512)],
        [(2, 8, 6, 7), (2, 6, 512)],
        [(2, 6, 512)],
        [(2, 6, 37_000)],
        [(2, 6, 37_000)],
    ]


def test_shapes_follow_the_lengths_that_are_set() -> None:
    made = specimen()
    made.batch, made.source_length, made.target_length = 5, 3, 1
    assert made.shape("decoder.cross_attention.weights") == (5, 8, 1, 3)
    assert made.shape("memory") == made.shape("arrow") == (5, 3, 512)


def test_the_memory_is_one_tensor_in_every_decoder_layer_and_queries_are_not_made_of_it() -> None:
    model, keys, values, queries, memories = Transformer(SMALL).eval(), [], [], [], []
    model.encoder.register_forward_hook(lambda module, inputs, output: memories.append(output))
    for layer in model.decoder.layers:
        for projection, found in (("to_query", queries), ("to_key", keys), ("to_value", values)):
            getattr(layer.cross_attention, projection).register_forward_pre_hook(
                lambda module, inputs, found=found: found.append(inputs[0])
            )
    model(torch.ones(1, 7, dtype=torch.long), torch.ones(1, 5, dtype=torch.long))
    assert len(memories) == 1
    assert len(keys) == len(values) == SMALL.n_layers
    assert all(one is memories[0] for one in keys + values)
    assert all(one.shape[1] == 5 for one in queries)  # as long as the target: the decoder's


def test_a_model_whose_shapes_are_not_as_said_is_refused() -> None:
    model = Transformer(SMALL)
    model.decoder.layers[0].feed_forward.narrow = nn.Linear(20, 12 * 1)
    model.encoder.layers[0].feed_forward.widen = nn.Linear(12, 24)
    model.encoder.layers[0].feed_forward.narrow = nn.Linear(24, 12)
    with pytest.raises(ValueError, match=r"axis 'd_ff' is 24 in encoder\.widen but must be 20"):
        BlocksExplorer.of(model)


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize("changes", CHOICES, ids=str)
def test_the_parts_add_up_to_the_model(changes: dict) -> None:
    config = SMALL.replace(**changes)
    made, model = BlocksExplorer(config), Transformer(config)
    count = made.parameters
    ends = ["source_embedding", "source_positions", "target_embedding", "target_positions", "logits"]
    assert sum(map(count, ends)) + count("encoder") + count("decoder") == count("model") == model.n_parameters()
    assert count("model") == account(config).n_parameters
    for side, names in LAYERS.items():
        norms = [f"{side}.norm_{i + 1}" for i in range(len(names))]
        layer = sum(count(f"{side}.{name}") for name in names) + sum(map(count, norms))
        own = getattr(model, side)
        assert layer == sum(p.numel() for p in own.layers[0].parameters())
        assert config.n_layers * layer + count(f"{side}.final_norm") == count(side)
        inner = sum(count(f"{side}.{part}") for part in ("widen", "activation", "narrow"))
        assert inner == count(f"{side}.feed_forward")
    for attention in (level for level in LEVELS if "attention" in level):
        assert sum(count(name) for name in PARTS if name.startswith(f"{attention}.")) == count(attention)


@pytest.mark.parametrize("changes", CHOICES, ids=str)
def test_the_formula_of_a_count_gives_the_count(changes: dict) -> None:
    config = SMALL.replace(**changes)
    made = BlocksExplorer(config)
    for name, part in PARTS.items():
        formula = kinds(config)[part.kind].count
        value = eval(formula.replace("·", "*"), {}, made.facts["sizes"]) if formula else 0
        if name not in ("encoder", "decoder") and not (name.endswith("final_norm") and made.norm == "post"):
            assert made.parameters(name) == value, name


def test_pre_norm_adds_a_final_norm_to_each_stack_and_nothing_else() -> None:
    made = specimen()
    before = {name: made.parameters(name) for name in made.parts}
    made.norm = "pre"
    more = {name: made.parameters(name) - count for name, count in before.items() if made.parameters(name) != count}
    assert more == {
        "model": 2048, "encoder": 1024, "decoder": 1024, "encoder.final_norm": 1024, "decoder.final_norm": 1024,
    }  # fmt: skip


def test_a_model_that_is_there_is_measured_and_left_as_it_was() -> None:
    model = Transformer(SMALL.replace(norm="pre"))
    model.encoder.layers[1].feed_forward = nn.Identity()  # counts are this model's, not its config's
    model.decoder.eval()
    modes = [module.training for module in model.modules()]
    state = torch.random.get_rng_state()
    made = BlocksExplorer.of(model, batch=1)
    assert made.norm == "pre"
    assert made.parameters("model") == sum(p.numel() for p in model.parameters()) < account(model.config).n_parameters
    assert modes == [module.training for module in model.modules()]
    assert torch.equal(state, torch.random.get_rng_state())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


# ---------------------------------------------------------------- words and form


def test_the_sentence_on_cross_attention_has_its_sides_right() -> None:
    words = kinds(SMALL)
    assert words["cross"].role == "Queries come from the decoder, keys and values from the encoder's output."
    assert "keys and values are made from it, queries from the decoder's stream" in words["arrow"].role
    assert words["queries_from"].role == "The decoder's stream: the queries are made from it."


def test_every_word_is_of_this_model() -> None:
    assert "GELU" in kinds(SMALL.replace(activation="gelu_tanh"))["feed"].formula
    assert kinds(SMALL)["positions"].count == ""
    assert kinds(SMALL.replace(positions="learned"))["positions"].count == "max_len · d_model"
    assert "dropout 0.1" in kinds(SMALL)["add"].role
    assert "dropout" not in kinds(SMALL.replace(dropout=0.0))["add"].role
    assert kinds(SMALL)["attend"].written(specimen().facts["sizes"])[2].endswith("= softmax(Q Kᵀ / √64) V")
    assert {part.kind for part in PARTS.values()} <= set(kinds(SMALL))


def test_lit_parts_and_shapes_of_the_steps_exist() -> None:
    assert len(STEPS) == 8
    for step in STEPS:
        assert set(step.lit) | {part for _, part in step.shapes} <= set(PARTS)


def test_the_fallback_lists_steps_and_parts() -> None:
    made = specimen()
    text = made.fallback_html()
    assert text.count("<li>") == 8
    assert "63,082,496 parameters" in text
    row = re.search(r"<tr><th[^>]*>decoder: cross-attention</th>(.*?)</tr>", text)[1]
    assert re.findall(r"<td>(.*?)</td>", row)[1:] == ["2 × 6 × 512", "1,050,624"]
    assert "final norm" not in text
    made.norm = "pre"
    assert "final norm" in made.fallback_html()


def test_the_state_is_plain_and_complete() -> None:
    stored = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', specimen().to_html())[1]))
    assert set(stored) == set(BlocksExplorer._state_keys)
    assert repr(specimen()) == ("BlocksExplorer(6 + 6 layers, d_model 512, 63,082,496 parameters, post-norm, full)")


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"config": {"d_model": 8}}, TypeError, r"TransformerConfig, not dict.*BlocksExplorer\.of"),
        ({"batch": 0}, ValueError, "batch has to be a whole number from 1 to 1024, not 0"),
        ({"source_length": 17}, ValueError, "source_length has to be a whole number from 1 to 16, not 17"),
        ({"target_length": 2.5}, ValueError, "target_length has to be"),
        ({"batch": True}, ValueError, "batch has to be"),
        ({"level": "top"}, Exception, "level"),
        ({"norm": "sandwich"}, Exception, "norm"),
    ],
    ids=str,
)
def test_what_it_cannot_show_is_refused(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BlocksExplorer(**{"config": SMALL, **options})


def test_traits_refuse_what_they_cannot_hold() -> None:
    made = BlocksExplorer(SMALL)
    with pytest.raises(ValueError, match="from 1 to 16, not 500"):
        made.source_length = 500
    with pytest.raises(ValueError, match="selected has to be a part or empty, not '<b>'"):
        made.selected = "<b>"
    with pytest.raises(ValueError, match=r"step has to be between 0 \(none\) and 8, not 9"):
        made.step = 9
    with pytest.raises(KeyError, match="there is no part 'softmin'"):
        made.shape("softmin")
    with pytest.raises(TypeError, match=r"shows a ttutor.transformer.Transformer .* not Linear"):
        BlocksExplorer.of(nn.Linear(2, 2))


def test_many_tokens_are_refused_with_the_limit() -> None:
    with pytest.raises(ValueError, match="from 1 to 64, not 10000"):
        BlocksExplorer(source_length=10_000)
