"""Marian's translation models, and Pegasus, against Hugging Face's, with the same random weights, in float64."""

from __future__ import annotations

import pytest
import torch
import transformers
from einops import rearrange

from tests.interop.oracles import assert_same_tokens
from ttutor.cache import DecoderCache
from ttutor.errors import SettingError
from ttutor.generation import beam_search, greedy_search
from ttutor.inside import capture
from ttutor.interop import from_huggingface, save_huggingface, to_huggingface
from ttutor.masks import padding_mask
from ttutor.transformer import Transformer, TransformerConfig

VOCAB, END, PAD = 41, 0, 40  # Marian puts the end mark first, and last the padding, which also starts a target
EXACT = {"rtol": 0, "atol": 1e-10}
FAMILIES = {
    "marian": (transformers.MarianConfig, transformers.MarianMTModel),
    "pegasus": (transformers.PegasusConfig, transformers.PegasusForConditionalGeneration),
}


def published(family="marian", **changes):
    config = {
        "vocab_size": VOCAB,
        "d_model": 12,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_ffn_dim": 20,
        "decoder_ffn_dim": 20,
        "max_position_embeddings": 32,
        "activation_function": "swish",
        "scale_embedding": True,
        "pad_token_id": PAD,
        "eos_token_id": END,
        "decoder_start_token_id": PAD,
        "forced_eos_token_id": None,
        "attn_implementation": "eager",
    }
    make_config, make_model = FAMILIES[family]
    return make_model(make_config(**{**config, **changes})).double().eval()


@pytest.fixture(scope="module", params=FAMILIES)
def theirs(request):
    torch.manual_seed(0)
    model = published(request.param)
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            torch.nn.init.normal_(parameter, std=0.3)
    model.final_logits_bias.normal_()
    return model


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def source_ids():
    ids = torch.randint(1, PAD, (3, 7))
    return torch.where(torch.arange(7) < torch.tensor([[7], [4], [2]]), ids, PAD)


@pytest.fixture
def target_ids():
    return torch.cat([torch.full((3, 1), PAD), torch.randint(1, PAD, (3, 4))], dim=1)


def everything(token_ids):
    return torch.ones_like(token_ids, dtype=torch.bool)


def in_our_order(features):
    """Their features, sines and cosines apart, in the order that ours have."""
    return rearrange(features, "... (two pairs) -> ... (pairs two)", two=2)


def test_logits_and_every_hidden_state(ours, theirs, source_ids, target_ids):
    expected = theirs(
        source_ids,
        attention_mask=(source_ids != PAD).long(),
        decoder_input_ids=target_ids,
        output_hidden_states=True,
    )
    with capture(ours, "*_embeddings", "*coder.layers.*", "*coder.final_norm") as seen:
        logits = ours(source_ids, target_ids, is_real=everything(target_ids))
    torch.testing.assert_close(logits, expected.logits, **EXACT)
    real = source_ids != PAD
    for side, embedded, states in (
        ("encoder", "source_embeddings", expected.encoder_hidden_states),
        ("decoder", "target_embeddings", expected.decoder_hidden_states),
    ):
        last = "layers.1" if ours.config.norm == "post" else "final_norm"
        mine = [seen[embedded], seen[f"{side}.layers.0"], seen[f"{side}.{last}"]]
        for state, other in zip(mine, states, strict=True):
            chosen = real if side == "encoder" else everything(target_ids)
            torch.testing.assert_close(state[chosen], in_our_order(other)[chosen], **EXACT)


def test_gradients(ours, theirs, source_ids, target_ids):
    for model in (ours, theirs):
        model.zero_grad()
    mask = (source_ids != PAD).long()
    ours(source_ids, target_ids, is_real=everything(target_ids)).square().sum().backward()
    theirs(source_ids, attention_mask=mask, decoder_input_ids=target_ids).logits.square().sum().backward()
    gradient = theirs.model.encoder.layers[0].fc1.weight.grad
    mine = ours.encoder.layers[0].feed_forward.widen.weight.grad
    torch.testing.assert_close(mine, in_our_order(gradient), rtol=1e-9, atol=1e-9)
    gradient, mine = theirs.model.shared.weight.grad, ours.source_embeddings.token.table.weight.grad
    torch.testing.assert_close(mine[:PAD], in_our_order(gradient)[:PAD], rtol=1e-9, atol=1e-9)


def test_cached_decoding(ours, theirs, source_ids, target_ids):
    memory, cache = ours.encode(source_ids), DecoderCache(2)
    steps = [
        ours.project(ours.decode(ids, memory, padding_mask(source_ids, PAD), cache, is_real=everything(ids)))
        for ids in target_ids.split([2, 1, 2], dim=1)
    ]
    mask = (source_ids != PAD).long()
    expected = theirs(source_ids, attention_mask=mask, decoder_input_ids=target_ids).logits
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, **EXACT)


def test_greedy_translations_token_by_token(ours, theirs, source_ids):
    mask = (source_ids != PAD).long()
    expected = theirs.generate(source_ids, attention_mask=mask, max_new_tokens=12, num_beams=1, do_sample=False)
    found = greedy_search(ours, source_ids, bos_id=PAD, eos_id=END, max_new_tokens=12)
    assert_same_tokens(found, expected[:, 1:].tolist(), END)


def test_a_beam_finds_what_theirs_finds(ours, theirs, source_ids):
    mask = (source_ids != PAD).long()
    expected = theirs.generate(
        source_ids, attention_mask=mask, max_new_tokens=8, num_beams=3, length_penalty=0.0, early_stopping=True
    )
    found = beam_search(ours, source_ids, bos_id=PAD, eos_id=END, max_new_tokens=8, beam_size=3, alpha=0.0)
    for hypotheses, row in zip(found, expected[:, 1:].tolist(), strict=True):
        cut = row.index(END) if END in row else len(row)
        best = max(hypotheses, key=lambda found: found.log_probability)
        assert list(best.token_ids) == row[:cut]


def test_a_folder_of_theirs_translates(theirs, source_ids, tmp_path):
    theirs.save_pretrained(tmp_path)
    found = greedy_search(from_huggingface(tmp_path), source_ids, bos_id=PAD, eos_id=END, max_new_tokens=12)
    again = greedy_search(from_huggingface(theirs), source_ids, bos_id=PAD, eos_id=END, max_new_tokens=12)
    assert found == again


@pytest.mark.parametrize(("norm", "family"), [("post", "marian"), ("pre", "pegasus")])
def test_a_folder_of_ours(source_ids, target_ids, tmp_path, norm, family):
    torch.manual_seed(1)
    sizes = {"vocab_size": VOCAB, "d_model": 8, "n_heads": 2, "n_layers": 3, "d_ff": 10, "max_len": 16}
    model = Transformer(TransformerConfig(**sizes, pad_id=PAD, norm=norm)).double().eval()
    save_huggingface(model, tmp_path)
    theirs = FAMILIES[family][1].from_pretrained(tmp_path, attn_implementation="eager").eval()
    mask = (source_ids != PAD).long()
    expected = theirs(source_ids, attention_mask=mask, decoder_input_ids=target_ids).logits
    torch.testing.assert_close(model(source_ids, target_ids, is_real=everything(target_ids)), expected, **EXACT)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"scale_embedding": False}, "scale_embedding=False"),
        ({"decoder_layers": 1}, "decoder_layers=1 "),
        ({"activation_function": "tanh"}, "activation_function must be one of"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(changes, named):
    with pytest.raises(SettingError, match=named):
        from_huggingface(published(**changes))


def test_a_model_that_they_do_not_have_is_refused():
    sizes = {"vocab_size": 9, "d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8}
    model = Transformer(TransformerConfig(**sizes, positions="learned"))
    with pytest.raises(SettingError, match="positions='learned'"):
        to_huggingface(model)
