"""A config is read as it stands: every entry left out, given as null, and given besides, for each family.

The judge is `transformers`: what ours makes of a config is what ours makes of their own completion of it, or a refusal
that names the entry. (That whole configs are read right is tested family by family, against their models.)
"""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tests.interop.decoders import FAMILIES as DECODERS
from tests.interop.decoders import config_of
from ttutor.errors import FileError, SettingError
from ttutor.interop.defaults import DEFAULTS
from ttutor.interop.entries import ABSENT, GENERAL, OLDER, OTHER_NAMES, UNUSED, completed
from ttutor.interop.families import agree
from ttutor.interop.huggingface import FAMILIES, TABLES, _family

ARCHITECTURES = {
    "bert": "BertForMaskedLM",
    "clip": "CLIPModel",
    "gpt2": "GPT2LMHeadModel",
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "modernbert": "ModernBertForMaskedLM",
    "t5": "T5ForConditionalGeneration",
    "vit": "ViTForImageClassification",
    "deit": "DeiTForImageClassificationWithTeacher",
    "dinov2": "Dinov2Model",
    "dinov2_with_registers": "Dinov2WithRegistersModel",
}
# What ours demands and is not their default, so that there is something to leave out.
OWN = {"marian": {"scale_embedding": True}, "pegasus": {"scale_embedding": True}}
# Small sizes: each family says them in its own words.
SMALL = {
    "hidden_size": 12,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "vocab_size": 53,
    "max_position_embeddings": 64,
    "n_embd": 12,
    "n_head": 3,
    "n_layer": 2,
    "n_positions": 64,
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "num_layers": 2,
    "num_heads": 3,
    "d_ff": 20,
    "pad_token_id": 0,
    "local_attention": 4,
    "image_size": 15,
    "patch_size": 5,
}
CLASSES = {DECODERS[name][0].model_type: name for name in DECODERS}
TYPES = [*FAMILIES, *TABLES]


@cache
def whole(model_type: str) -> dict:
    """A small config of theirs with all its entries, as a file holds it."""
    if model_type in CLASSES:
        theirs = config_of(CLASSES[model_type]).to_dict()
    else:
        kind = CONFIG_MAPPING[model_type]
        fields = {field.name for field in dataclasses.fields(kind)}
        own = OWN.get(model_type, {})
        theirs = kind(**{name: size for name, size in SMALL.items() if name in fields}, **own).to_dict()
    theirs["architectures"] = [ARCHITECTURES.get(model_type, "any")]
    return {name: value for name, value in theirs.items() if name != "transformers_version"}


def ours(config: dict) -> object:
    """Our config of theirs, by a model without numbers."""
    family = _family(config["model_type"])
    with torch.device("meta"):
        config = completed(config)
        agree(config, **ABSENT)
        model = family.build(config, {})
    return type(model), getattr(model, "config", None) or family.describe(model)


def expected(config: dict) -> object:
    """The same of their own completion, or None where they refuse it."""
    try:
        theirs = CONFIG_MAPPING[config["model_type"]].from_dict(dict(config)).to_dict()
    except Exception:  # whatever their checks raise
        return None
    return ours({**theirs, "architectures": config.get("architectures")})


def check(config: dict, name: str) -> None:
    """Ours reads a config as theirs do, or names what it refuses."""
    (found, refusal), (wanted, _) = (outcome(read, config) for read in (ours, expected))
    own_name = OTHER_NAMES.get(config["model_type"], {}).get(name, name)
    if found is None:
        assert wanted is None or name in refusal or own_name in refusal
    else:
        assert wanted is None or found == wanted


def outcome(read, config: dict) -> tuple[object, str]:
    """What came of reading a config, or why nothing did."""
    try:
        return read(config), ""
    except (SettingError, FileError, ValueError, TypeError, KeyError) as refusal:
        return None, str(refusal)


# Families that differ most from one another; the others are tried before a release (all together 2 minutes).
EACH_TIME = ("clip", "marian", "t5", "gemma3_text")
ENTRIES = [
    pytest.param(model_type, name, marks=() if model_type in EACH_TIME else pytest.mark.soak)
    for model_type in TYPES
    for name in whole(model_type)
    if name != "model_type"
]


@pytest.mark.parametrize(("model_type", "name"), ENTRIES)
def test_an_entry_that_is_left_out_is_their_default(model_type, name):
    config = {other: value for other, value in whole(model_type).items() if other != name}
    if name == "architectures" and model_type in ARCHITECTURES:
        return  # it says which class, which nothing else tells
    check(config, name)


@pytest.mark.parametrize(("model_type", "name"), ENTRIES)
def test_null_is_what_it_is_to_them_or_refused(model_type, name):
    if name != "architectures":
        check({**whole(model_type), name: None}, name)


@pytest.mark.parametrize("model_type", [*DEFAULTS])
def test_the_defaults_are_theirs(model_type):
    theirs = {}
    for field in dataclasses.fields(CONFIG_MAPPING[model_type]):
        made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        theirs[field.name] = made
    missing = {name: value for name, value in DEFAULTS[model_type].items() if name not in theirs}
    assert {name: theirs[name] for name in DEFAULTS[model_type] if name in theirs} == {
        name: value for name, value in DEFAULTS[model_type].items() if name in theirs
    }
    others = {"attention_bias", "head_dim", "decoder_vocab_size", "share_encoder_decoder_embeddings"}
    assert set(missing) <= others  # which we know of other families, and demand to be as they are here


@cache
def entries_of_all_families() -> frozenset[str]:
    """Every entry that any config of theirs has."""
    names = set()
    for model_type in list(CONFIG_MAPPING):
        try:
            kind = CONFIG_MAPPING[model_type]
        except Exception:  # a family whose packages are not here
            continue
        names |= {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    return frozenset(names)


@pytest.mark.parametrize("model_type", TYPES)
def test_whatever_is_known_of_another_family_is_refused_by_name(model_type):
    known = set(GENERAL) | set(ABSENT) | set(OLDER.get(model_type, {})) | set(DEFAULTS[model_type])
    known |= set(OTHER_NAMES.get(model_type, {})) | {name for names in UNUSED.values() for name in names}
    strangers = sorted(entries_of_all_families() - known - {"rope_theta", "rope_scaling"})
    assert len(strangers) > 300
    with pytest.raises(SettingError, match="not known here") as refused:
        completed({**whole(model_type), **dict.fromkeys(strangers, 1)})
    assert str(refused.value).partition(": ")[2].partition(";")[0].split(", ") == strangers


@pytest.mark.parametrize("model_type", TYPES)
def test_what_is_said_to_change_nothing_changes_nothing_of_their_model(model_type):
    """All such entries of a family at once, given other values than their own."""
    if model_type not in CLASSES:
        return
    kind = CONFIG_MAPPING[model_type]
    fields = {field.name for field in dataclasses.fields(kind)}
    tuned = {"attention_dropout": 0.5, "router_aux_loss_coef": 0.5, "router_jitter_noise": 0.5}
    others = {"initializer_range": 0.5, "output_router_logits": False, "pretraining_tp": 1, "bos_token_id": 3}
    ids, outputs = torch.randint(1, 50, (1, 7)), []
    for own in ({}, {name: value for name, value in {**tuned, **others}.items() if name in fields}):
        torch.manual_seed(0)
        config = config_of(CLASSES[model_type], **own)
        model = transformers.AutoModelForCausalLM.from_config(config, experts_implementation="eager").eval()
        torch.manual_seed(0)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        with torch.no_grad():
            outputs.append(model(ids).logits)
    assert torch.equal(*outputs)


@pytest.mark.parametrize(
    ("model_type", "entries", "said"),
    [
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "short_factor": [1]}}, "short_factor"),
        ("llama", {"quantization_config": {"bits": 4}}, "quantization_config"),
        ("gpt2", {"pruned_heads": {"0": [1]}}, "pruned_heads"),
        ("bert", {"is_decoder": True}, "is_decoder"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("deepseek_v3", {"scoring_func": "softmax"}, "scoring_func"),
        ("olmo2", {"head_dim": 7}, "head_dim"),
        ("marian", {"normalize_before": True}, "normalize_before"),
        ("mistral", {"layer_types": ["sliding_attention"]}, "layer_types"),
        ("t5", {"is_gated_act": True}, "is_gated_act"),
    ],
)
def test_an_entry_that_changes_the_computation_is_refused_by_name(model_type, entries, said):
    with pytest.raises(SettingError, match=said):
        ours({**whole(model_type), **entries})


def test_the_number_of_classes_is_read_in_each_of_its_forms():
    from ttutor.interop.classes import n_classes

    forms = [({}, 2), ({"id2label": None}, 2), ({"num_labels": 3}, 3), ({"id2label": {"0": "a"}}, 1)]
    assert [n_classes(config) for config, _ in forms] == [count for _, count in forms]
    assert n_classes({"id2label": None, "num_labels": 5}) == 5
