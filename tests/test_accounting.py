"""What a model costs, against built modules, torch's operation counter, what autograd keeps, and the literature."""

import dataclasses
import inspect
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import DecoderCache
from ttutor.configs import Config
from ttutor.transformer import Latent, Stack, Transformer, TransformerConfig, account
from ttutor.transformer.activations import ActivationPolicy, layer_activations
from ttutor.variants.bert import BERT, BERTConfig
from ttutor.variants.experts import n_active_parameters
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.llama import Llama, LlamaConfig
from ttutor.variants.modern_decoder import ExpertsConfig
from ttutor.variants.objectives import repeat_layer
from ttutor.variants.t5 import T5, T5Config
from ttutor.variants.vit import ViT, ViTConfig

MODELS = {
    TransformerConfig: Transformer,
    GPTConfig: GPT,
    BERTConfig: BERT,
    LlamaConfig: Llama,
    T5Config: T5,
    ViTConfig: ViT,
}


def parameters_of(method: Callable) -> list[inspect.Parameter]:
    return list(inspect.signature(method).parameters.values())


PRESETS = [  # what is bound to the class is a classmethod; one that demands nothing makes a config
    (config, name)
    for config in MODELS
    for name, method in inspect.getmembers(config, inspect.ismethod)
    if all(one.default is not one.empty or one.kind is one.VAR_KEYWORD for one in parameters_of(method))
]
EACH_TIME = ("base", "gpt2", "llama3_8b", "gemma3_1b")  # at least one of every family; `make soak` takes them all
BATCH, TOKENS, SOURCE = 2, 7, 5


def name_of(value: object) -> str | None:
    """What a case is called in the report."""
    return value.__name__ if isinstance(value, type) else type(value).__name__ if isinstance(value, Config) else None


def build(config: Config, device: str = "meta") -> nn.Module:
    """A model with plain attention, since that is what `account` tells the costs of."""
    with torch.device(device):
        return MODELS[type(config)](config, attend=scaled_dot_product_attention)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def call(model: nn.Module) -> torch.Tensor:
    """Run a model's whole forward on `BATCH` inputs of length `TOKENS` (and `SOURCE`); an image has its own length."""
    like = next(model.parameters())
    config = model.config

    def ids(n_tokens: int) -> torch.Tensor:
        return torch.ones(BATCH, n_tokens, dtype=torch.long, device=like.device)

    if isinstance(config, ViTConfig):
        size = (BATCH, config.n_channels, config.image_size, config.image_size)
        return model(torch.zeros(size, dtype=like.dtype, device=like.device))
    if isinstance(config, BERTConfig):
        return model.pool(model(ids(TOKENS)))
    return model(ids(SOURCE), ids(TOKENS)) if isinstance(config, TransformerConfig | T5Config) else model(ids(TOKENS))


def account_of_call(config: Config, **more):
    """What `call` should cost."""
    lengths = {} if isinstance(config, ViTConfig) else {"n_tokens": TOKENS}
    if isinstance(config, TransformerConfig | T5Config):
        lengths["n_memory"] = SOURCE
    return account(config, batch=BATCH, **lengths, **more)


SMALL, FEW, FLAG = st.integers(1, 9), st.integers(1, 5), st.booleans()
ODD_SIZES = st.fixed_dictionaries(
    {
        "n_groups": FEW,
        "n_kv_heads": FEW,
        "pairs": FEW,
        "n_layers": st.integers(1, 3),
        "d_model": SMALL,
        "d_ff": SMALL,
        "vocab_size": SMALL,
        "max_len": st.integers(TOKENS, 9),
        "tie_embeddings": FLAG,
        "logits_bias": FLAG,
        "norm": st.sampled_from(["post", "pre"]),
        "is_learned": FLAG,
        "n_segments": SMALL,
        "feed_forward": st.sampled_from(["relu", "geglu", "swiglu"]),
        "n_buckets": st.integers(4, 9),
        "n_channels": SMALL,
        "n_classes": SMALL,
    }
)


def odd_config(config: type[Config], sizes: dict) -> Config:
    """A small config of a family, of sizes that nobody would publish."""
    fields = {field.name for field in dataclasses.fields(config)}
    n_heads = sizes["n_kv_heads"] * (sizes["n_groups"] if "n_kv_heads" in fields else 1)
    values = sizes | {"n_heads": n_heads, "d_head": 2 * sizes["pairs"], "patch_size": 3, "image_size": 6}
    values["positions"] = "learned" if sizes["is_learned"] else "sinusoidal"
    if "d_head" not in fields:  # where there is one, the heads together need not be as wide as the stream
        values["d_model"] = n_heads * values["d_head"]
    return config(**{name: value for name, value in values.items() if name in fields})


def presets(*without: str) -> list:
    """The presets that have none of some parts, as cases."""
    return [
        pytest.param(config, name, marks=() if name in EACH_TIME else pytest.mark.soak)
        for config, name in PRESETS
        if not any(getattr(getattr(config, name)(), part, None) for part in without)
    ]


def test_there_are_presets_of_every_family():
    assert {config for config, name in PRESETS if name in EACH_TIME} == set(MODELS)
    assert len(PRESETS) > 4 * len(MODELS)


# Parameters


@pytest.mark.parametrize("n_layers", [5, pytest.param(None, marks=pytest.mark.soak, id="all")])
@pytest.mark.parametrize(("config", "preset"), presets(), ids=name_of)
def test_every_preset_counts_what_its_module_has(config, preset, n_layers):
    """With five layers every kind of layer is there; models of thousands of experts take long to build whole."""
    config = getattr(config, preset)()
    config = config if n_layers is None else config.replace(n_layers=n_layers)
    assert account(config).n_parameters == count(build(config))


@pytest.mark.parametrize("config", MODELS)
@settings(max_examples=8, deadline=None)
@given(sizes=ODD_SIZES)
def test_odd_sizes_count_what_their_module_has(config, sizes):
    config = odd_config(config, sizes)
    assert account(config).n_parameters == count(build(config))


@pytest.mark.parametrize(
    ("config", "published"),
    [
        (TransformerConfig.base(), 63_082_496),  # 37,000 shared tokens; the paper's table 3 prints 65 million
        (BERTConfig.base(), 109_482_240),
        (BERTConfig.large(), 335_141_888),
        (GPTConfig.gpt2(), 124_439_808),
        (GPTConfig.gpt2_medium(), 354_823_168),
        (GPTConfig.gpt2_large(), 774_030_080),
        (GPTConfig.gpt2_xl(), 1_557_611_200),
        (GPTConfig.gpt3(), 174_604_259_328),
        (LlamaConfig.llama_7b(), 6_738_415_616),
        (LlamaConfig.llama2_70b(), 68_976_648_192),
        (LlamaConfig.llama3_8b(), 8_030_261_248),
        (LlamaConfig.mistral_7b(), 7_241_732_096),
        (LlamaConfig.mixtral_8x7b(), 46_702_792_704),
        (LlamaConfig.qwen3_30b_a3b(), 30_532_122_624),
        (LlamaConfig.olmo2_7b(), 7_298_617_344),
        (LlamaConfig.gemma2_2b(), 2_614_341_888),
        (LlamaConfig.gemma3_1b(), 999_885_952),
        (LlamaConfig.deepseek_v3(), 671_026_419_200 - 58 * 256),  # its balancing biases are counted among the weights
        (LlamaConfig.gpt_oss_20b(), 20_914_757_184),
        (T5Config.small(), 60_506_624),
        (T5Config.base(), 222_903_552),
        (T5Config.large(), 737_668_096),
        (T5Config.v1_1_small(), 76_961_152),
        (T5Config.v1_1_base(), 247_577_856),
        (T5Config.v1_1_large(), 783_150_080),
        (ViTConfig.base(), 86_567_656),
        (ViTConfig.large(), 304_326_632),
    ],
    ids=name_of,
)
def test_published_models_have_their_counted_size(config, published):
    assert account(config).n_parameters == published


def test_shared_layers_cost_parameters_once_and_operations_every_time():
    config = BERTConfig(vocab_size=23, d_model=12, n_heads=3, n_layers=6, d_ff=28, max_len=16)
    model = build(config)
    model.encoder.layers = repeat_layer(model.encoder.layers[0], 6)
    own = config.blueprint()
    shared = own.replace(stacks=(own.stacks[0].replace(n_distinct_layers=1),))
    assert account(shared).n_parameters == count(model)
    assert account(shared).flops == account(own).flops


# Operations


# Experts cannot be chosen without numbers, and a soft cap computes the scores twice.
@pytest.mark.parametrize(("config", "preset"), presets("experts", "score_cap"), ids=name_of)
@pytest.mark.parametrize("n_layers", [2, pytest.param(None, marks=pytest.mark.soak, id="all")])
def test_forward_operations_of_every_preset_are_those_that_torch_counts(config, preset, n_layers):
    config = getattr(config, preset)()
    config = config if n_layers is None else config.replace(n_layers=n_layers)
    model = build(config).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        call(model)
    assert account_of_call(config).forward_flops == counter.get_total_flops()


@pytest.mark.parametrize("config", MODELS)
@settings(max_examples=4, deadline=None)
@given(sizes=ODD_SIZES)
def test_forward_operations_of_odd_sizes_are_those_that_torch_counts(config, sizes):
    config = odd_config(config, sizes)
    with FlopCounterMode(display=False) as counter:
        call(build(config))
    assert account_of_call(config).forward_flops == counter.get_total_flops()


EXPERTS = ExpertsConfig(n_experts=4, n_chosen=2, d_ff=9, n_shared=2, n_dense_layers=1, is_balanced=True)
LATENT = Latent(d_head=5, d_rotary=4, d_value=3, d_latent=6, d_query_latent=7)


@pytest.mark.parametrize(
    "parts",
    [
        {"latent": LATENT},
        {"experts": EXPERTS},
        {"latent": LATENT.replace(d_query_latent=None), "experts": EXPERTS},
        {
            "has_sinks": True,
            "attention_bias": True,
            "experts": ExpertsConfig(n_experts=3, n_chosen=2, d_ff=9, bias=True),
        },
        {"norm_place": "both", "qk_norm": "each head"},
        {"norm_place": "after", "qk_norm": "all heads"},
    ],
    ids=lambda parts: ", ".join(parts),
)
def test_modern_parts_count_what_they_have_and_do(parts):
    config = LlamaConfig(vocab_size=11, d_model=12, n_heads=6, n_layers=3, d_ff=28, **parts)
    model = build(config, "cpu")
    assert account(config).n_parameters == count(model)
    assert account(config).n_active_parameters == n_active_parameters(model)
    with FlopCounterMode(display=False) as counter:
        call(model)
    sinks = config.n_layers * 4 * BATCH * TOKENS * config.n_heads * 2 * parts.get("has_sinks", 0)  # a key more in each
    assert account_of_call(config).forward_flops + sinks == counter.get_total_flops()
    if "latent" in parts:
        cache = DecoderCache(config.n_layers)
        model.decode(torch.ones(BATCH, TOKENS, dtype=torch.long), cache=cache)
        assert account_of_call(config).cache_bytes == cache.n_bytes


@pytest.mark.parametrize("config", MODELS)
def test_a_training_step_takes_three_times_the_forward_pass(config):
    config = config() if config is not TransformerConfig else config.base()
    config = config.replace(n_layers=2)
    model = build(config)
    with FlopCounterMode(display=False) as counter:
        call(model).sum().backward()
    costs = account_of_call(config)
    # Nobody asks for the gradient of an image, so its first matrix takes part in two products, not three.
    spared = costs.flops["embeddings"] if isinstance(config, ViTConfig) else 0
    assert costs.training_flops - spared == counter.get_total_flops()


# Memory


@pytest.mark.parametrize("config", [TransformerConfig, GPTConfig, LlamaConfig, T5Config])
@settings(max_examples=3, deadline=None)
@given(sizes=ODD_SIZES)
def test_the_cache_holds_what_was_reckoned(config, sizes):
    config = odd_config(config, sizes)
    model, cache = build(config, "cpu").eval(), DecoderCache(config.n_layers)
    target_ids = torch.ones(BATCH, TOKENS, dtype=torch.long) % config.vocab_size
    if isinstance(config, TransformerConfig | T5Config):
        model.decode(target_ids, torch.zeros(BATCH, SOURCE, config.d_model), cache=cache)
    else:
        model.decode(target_ids, cache=cache)
    caches = [part for layer in cache.layers for part in (layer.self_attention, layer.cross_attention)]
    held = sum(tensor.numel() for part in caches if len(part) for tensor in part.read())
    assert account_of_call(config, dtype=torch.float16).cache_bytes == 2 * held


def test_adam_keeps_what_was_reckoned():
    config = GPTConfig(vocab_size=11, d_model=12, n_heads=3, n_layers=1, d_ff=28, max_len=16)
    model = build(config, "cpu").double()
    optimizer = torch.optim.AdamW(model.parameters())
    call(model).sum().backward()
    optimizer.step()
    means = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    costs = account(config, dtype=torch.float64)
    assert costs.adam_bytes == sum(mean.nbytes for mean in means)
    assert costs.weight_bytes == sum(parameter.nbytes for parameter in model.parameters())


def kept_bytes(forward: Callable[[], torch.Tensor], module: nn.Module) -> int:
    """Bytes of all storages that autograd keeps for the backward pass, parameters aside."""
    kept = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)  # and so no storage is freed and its address used again
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward()
    own = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in kept}
    return sum(n_bytes for address, n_bytes in storages.items() if address not in own)


STEM = {"vocab_size": 11, "d_model": 12, "n_heads": 3, "d_ff": 28, "n_layers": 1}
KEPT = {
    "2017": TransformerConfig(**STEM),
    "2017, GELU": TransformerConfig(**STEM, activation="gelu"),
    "2017, norm before": TransformerConfig(**STEM, norm="pre", positions="learned"),
    "2017, no dropout": TransformerConfig(**STEM, dropout=0.0),
    "GPT": GPTConfig(**STEM, max_len=16),
    "BERT": BERTConfig(**STEM, max_len=16),
    "Llama": LlamaConfig(**{**STEM, "n_heads": 6}, n_kv_heads=3, d_head=4),
    "T5": T5Config(**STEM, d_head=5),
    "T5, no dropout": T5Config(**STEM, d_head=5, dropout=0.0),
    "T5 1.1": T5Config(**STEM, d_head=5, feed_forward="geglu"),
    "ViT": ViTConfig(image_size=8, patch_size=4, n_classes=5, d_model=12, n_heads=3, d_ff=28, n_layers=1),
    "ViT, dropout": ViTConfig(
        image_size=8, patch_size=4, n_classes=5, d_model=12, n_heads=3, d_ff=28, n_layers=1, dropout=0.1
    ),
}


def kept_by_a_training_step(config: Config, dtype: torch.dtype) -> int:
    model = build(config, "cpu").to(dtype).train()

    def loss() -> torch.Tensor:
        logits = call(model).flatten(0, -2)
        return nn.functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))

    return kept_bytes(loss, model)


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, torch.float32) for name in KEPT), ("2017", torch.float64), ("Llama", torch.float64)]
)
def test_a_training_step_keeps_what_was_reckoned(name, dtype):
    """Each further layer to the byte; what is left out besides does not grow with the depth, and is small."""
    one, two = (KEPT[name].replace(n_layers=n_layers) for n_layers in (1, 2))
    kept_one, kept_two = (kept_by_a_training_step(config, dtype) for config in (one, two))
    reckoned_one, reckoned_two = (account_of_call(config, dtype=dtype).activation_bytes for config in (one, two))
    layer = reckoned_two - reckoned_one
    angles = 0
    if name == "Llama" and dtype == torch.float32:  # they are float64, and rounded in each layer
        angles = 2 * BATCH * TOKENS * one.d_head * dtype.itemsize  # a sine and a cosine, of queries and of keys
    assert kept_two - kept_one == layer + angles
    assert 0 <= kept_one - reckoned_one < 0.2 * layer


def test_the_formula_is_that_of_korthikanti_and_others():
    """34 n d + 5 h n^2 bytes; ours also counts a norm's two statistics, and one more dropout, of the inner features.

    What dropout keeps takes two bytes here, and one there: of what two sublayers write, and of the weights.
    """
    n, d, h = 16, 24, 3
    stack = Stack(
        name="decoder",
        n_layers=1,
        d_model=d,
        n_heads=h,
        n_kv_heads=h,
        d_head=d // h,
        d_ff=4 * d,
        activation="gelu",
        is_masked=False,
        dropout=0.1,
        drops_inside=True,
    )
    kept = layer_activations(stack, n, policy=ActivationPolicy(dtype=torch.float16))
    statistics, inner_dropout, second_bytes = 2 * 2 * 2 * n, 2 * 4 * n * d, 2 * n * d + h * n**2
    assert sum(kept.values()) - statistics - inner_dropout - second_bytes == 34 * n * d + 5 * h * n**2


# The table


def test_the_table_shows_the_numbers_with_their_units():
    costs = account(LlamaConfig.llama_7b(), dtype=torch.float16)
    rows = {" ".join(line.split()) for line in str(costs).splitlines()}
    assert "Llama: 6,738,415,616 parameters, by part" in rows
    assert f"feed-forward {32 * 3 * 4096 * 11_008:,} 64.2 %" in rows
    assert "weights 13.5 GB" in rows
    assert "Adam's two means 27.0 GB while training" in rows
    assert "key/value cache 1.07 GB while generating" in rows  # 2 * 32 * 4096 * 2048 * 2 bytes
    assert "other" not in str(costs), "parts that a model does not have are left out"
    assert "cache" not in str(account(ViTConfig.base()))


# What cannot be


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_tokens": 0}, r"n_tokens must be a positive integer \(n_tokens=0\)"),
        ({"n_memory": 5}, "GPT has a single stack and reads no memory, but n_memory=5"),
    ],
)
@pytest.mark.usefixtures("as_readers_run_it")
def test_impossible_calls_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        account(GPTConfig.gpt2(), **sizes)
