"""ModernBERT against Hugging Face's, with the same random weights, in float64."""

from __future__ import annotations

import pytest
import torch
import transformers

from tests.interop.oracles import in_float64, padded, randomised
from ttutor.errors import SettingError
from ttutor.interop import from_huggingface, save_huggingface
from ttutor.transformer import account
from ttutor.variants.modern_bert import ModernBERT, ModernBERTConfig

CLOSE = {"rtol": 0, "atol": 1e-10}
SIZES = {
    "vocab_size": 53,
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 5,
    "num_attention_heads": 3,
    "local_attention": 4,
    "norm_eps": 1e-3,
    **dict.fromkeys(("pad_token_id", "cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id"), 0),
}


def build(architecture="ModernBertForMaskedLM", **changes):
    torch.manual_seed(0)
    with in_float64():
        config = transformers.ModernBertConfig(**{**SIZES, **changes}, attn_implementation="eager")
        return randomised(getattr(transformers, architecture)(config).double())


@pytest.fixture(scope="module", params=["ModernBertForMaskedLM", "ModernBertModel"])
def theirs(request):
    return build(request.param)


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


def output(answer):
    return answer.logits if "logits" in answer else answer.last_hidden_state


@pytest.mark.parametrize("side", ["left", "right"])
def test_outputs_with_padding_and_windows(ours, theirs, side):
    token_ids, is_real = torch.randint(53, (3, 7)), padded(side)
    with in_float64():
        expected = output(theirs(token_ids, attention_mask=is_real.long()))
    torch.testing.assert_close(ours(token_ids, is_real)[is_real], expected[is_real], **CLOSE)


def test_folders_go_both_ways(ours, theirs, tmp_path):
    token_ids = torch.randint(53, (3, 7))
    theirs.save_pretrained(tmp_path / "theirs")
    assert torch.equal(from_huggingface(tmp_path / "theirs")(token_ids), ours(token_ids))
    folder = save_huggingface(ours, tmp_path / "ours")
    with in_float64():
        loaded = type(theirs).from_pretrained(folder, dtype="auto", attn_implementation="eager").double()
        expected = output(loaded(token_ids))
    torch.testing.assert_close(ours(token_ids), expected, **CLOSE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm_bias": True}, "norm_bias=True"),
        ({"local_attention": 5}, "as many on both sides"),
        ({"layer_types": ["full_attention", "full_attention", *["sliding_attention"] * 3]}, "in an even step"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(changes, message):
    with pytest.raises(SettingError, match=message):
        from_huggingface(build(**changes))


def test_an_account_counts_what_the_module_has():
    config = ModernBERTConfig(vocab_size=53, d_model=12, n_heads=3, n_layers=5, d_ff=20)
    assert account(config).n_parameters == sum(parameter.numel() for parameter in ModernBERT(config).parameters())
