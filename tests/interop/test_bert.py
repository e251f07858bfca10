"""BERT against Hugging Face's, with each of its heads, with the same random weights, in float64."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

from tests.interop.oracles import assert_same_gradients, randomised
from ttutor.errors import SettingError
from ttutor.interop import from_huggingface, save_huggingface, to_huggingface
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM, BERTForPreTraining
from ttutor.variants.heads import TransformerForSequenceClassification, TransformerForTokenClassification

VOCAB = 53
CLOSE = {"rtol": 0, "atol": 1e-10}
ARCHITECTURES = {
    "BertModel": BERT,
    "BertForMaskedLM": BERTForMaskedLM,
    "BertForPreTraining": BERTForPreTraining,
    "BertForSequenceClassification": TransformerForSequenceClassification,
    "BertForTokenClassification": TransformerForTokenClassification,
}
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 17,
    "type_vocab_size": 3,
    "num_labels": 5,
    "classifier_dropout": 0.3,
}


def random_model(architecture: str, **changes: object) -> nn.Module:
    """One of their models whose parameters are all random, biases and gains too, so that none is forgotten unseen."""
    torch.manual_seed(0)
    config = transformers.BertConfig(**{**SIZES, **changes}, attn_implementation="eager")
    return randomised(getattr(transformers, architecture)(config).double())


@pytest.fixture(scope="module", params=ARCHITECTURES)
def theirs(request):
    return random_model(request.param)


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def token_ids():
    return torch.randint(1, VOCAB, (3, 7))  # their lookup of 0, the padding, has no gradient


@pytest.fixture
def segment_ids():
    return torch.randint(3, (3, 7))


IS_REAL = torch.arange(7) < torch.tensor([[7], [4], [1]])


def outputs(answer: object) -> tuple[torch.Tensor, ...]:
    """Answers of a model of either side as tensors: those with a row for each token first."""
    if isinstance(answer, torch.Tensor):
        return (answer,)
    if isinstance(answer, tuple):
        return answer
    names = ("last_hidden_state", "prediction_logits", "logits", "seq_relationship_logits")
    return tuple(answer[name] for name in names if name in answer)


def real(output: torch.Tensor) -> torch.Tensor:
    """What belongs to real tokens, in an output that has a row for each token or one for each text."""
    return output[IS_REAL] if output.ndim == 3 else output


def test_outputs_with_padding_and_segments(ours, theirs, token_ids, segment_ids):
    assert type(ours) is ARCHITECTURES[type(theirs).__name__]
    expected = outputs(theirs(token_ids, attention_mask=IS_REAL.long(), token_type_ids=segment_ids))
    found = outputs(ours(token_ids, IS_REAL, segment_ids))
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(real(mine), real(other), **CLOSE)


def test_gradients(ours, theirs, token_ids, segment_ids):
    for model in (ours, theirs):
        model.zero_grad()
        names = ("is_real", "segment_ids") if model is ours else ("attention_mask", "token_type_ids")
        answers = outputs(model(token_ids, **dict(zip(names, (IS_REAL, segment_ids), strict=True))))
        sum(real(answer).log_softmax(dim=-1)[..., 1].sum() for answer in answers).backward()
    assert_same_gradients(ours, theirs)


def test_positions_count_real_tokens_so_padding_may_stand_on_the_left(token_ids):
    theirs = random_model("BertModel")
    is_real = IS_REAL.flip(-1)
    positions = (is_real.cumsum(dim=-1) - 1).clamp(min=0)
    expected = theirs(token_ids, attention_mask=is_real.long(), position_ids=positions).last_hidden_state
    torch.testing.assert_close(from_huggingface(theirs)(token_ids, is_real)[is_real], expected[is_real], **CLOSE)


def test_a_folder_of_theirs(theirs, token_ids, tmp_path):
    theirs.save_pretrained(tmp_path)
    for mine, other in zip(outputs(from_huggingface(tmp_path)(token_ids)), outputs(theirs(token_ids)), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)


def test_a_folder_of_ours(theirs, token_ids, tmp_path):
    torch.manual_seed(1)
    config = BERTConfig(vocab_size=VOCAB, d_model=12, n_heads=2, n_layers=3, d_ff=18, max_len=9, activation="gelu_tanh")
    bert = BERT(config, pooler=type(theirs).__name__ not in ("BertForMaskedLM", "BertForTokenClassification"))
    kind = ARCHITECTURES[type(theirs).__name__]
    model = bert if kind is BERT else kind(bert, 12, 7) if "Classification" in kind.__name__ else kind(bert)
    model = model.double().eval()
    save_huggingface(model, tmp_path / "new")
    loaded, report = type(theirs).from_pretrained(tmp_path / "new", output_loading_info=True)
    assert not any(report.values()), report
    for mine, other in zip(outputs(model(token_ids)), outputs(loaded.eval()(token_ids)), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)
    again = from_huggingface(tmp_path / "new")(token_ids)
    assert all(torch.equal(a, b) for a, b in zip(outputs(model(token_ids)), outputs(again), strict=True))


def test_the_published_checkpoints_keep_all_they_hold(token_ids, tmp_path):
    theirs = random_model("BertForPreTraining")
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))
    tensors = load_file(tmp_path / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    save_file({**old, "bert.embeddings.position_ids": torch.arange(17)}, tmp_path / "model.safetensors")
    ours = from_huggingface(tmp_path)
    assert isinstance(ours, BERTForPreTraining)
    for mine, other in zip(ours(token_ids), outputs(theirs(token_ids)), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps=1e-05"),
        ({"is_decoder": True}, "is_decoder=True"),
        ({"hidden_act": "tanh"}, "hidden_act must be one of"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(changes, message):
    with pytest.raises(SettingError, match=message):
        from_huggingface(random_model("BertModel", **changes))


def test_an_architecture_that_we_have_not_is_refused():
    with pytest.raises(SettingError, match=r"architectures must hold one of .* but is \['BertForQuestionAnswering'\]"):
        from_huggingface(random_model("BertForQuestionAnswering"))


def test_models_of_ours_that_they_cannot_express_are_refused():
    config = BERTConfig(vocab_size=VOCAB, d_model=12, n_heads=2, n_layers=1, d_ff=18, max_len=9)
    bare = BERT(config, pooler=False)
    refused = {
        "pools by \"cls\", but this one by 'mean'": TransformerForSequenceClassification(
            BERT(config), 12, 3, pooling="mean"
        ),
        "has a pooler, but this BERT was made without": TransformerForSequenceClassification(bare, 12, 3),
        "BertForMaskedLM of transformers has no pooler": BERTForMaskedLM(BERT(config)),
        "stands on a Embedding": TransformerForTokenClassification(nn.Embedding(5, 12), 12, 3),
    }
    for message, model in refused.items():
        with pytest.raises(SettingError, match=message):
            to_huggingface(model)
