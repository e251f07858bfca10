"""GPT-2 against Hugging Face's, with the same random weights, in float64."""

from __future__ import annotations

import pytest
import torch
import transformers

from tests.interop.oracles import assert_same_tokens, padded, randomised
from ttutor.cache import DecoderCache
from ttutor.efficient import efficient_attention
from ttutor.errors import FileError, SettingError
from ttutor.generation import greedy_search
from ttutor.inside import capture
from ttutor.interop import from_huggingface, save_huggingface, to_huggingface
from ttutor.variants.gpt import GPT, GPTConfig

VOCAB, END = 53, 52
CLOSE = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(scope="module")
def theirs():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=VOCAB,
        n_positions=17,
        n_embd=12,
        n_layer=2,
        n_head=3,
        n_inner=20,
        bos_token_id=END,
        eos_token_id=END,
        attn_implementation="eager",
    )
    return randomised(transformers.GPT2LMHeadModel(config).double())


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def token_ids():
    return torch.randint(VOCAB, (3, 7))


def test_logits_and_every_hidden_state(ours, theirs, token_ids):
    expected = theirs(token_ids, output_hidden_states=True)
    with capture(ours, "embeddings", "decoder.layers.*", "decoder.final_norm") as seen:
        logits = ours(token_ids)
    torch.testing.assert_close(logits, expected.logits, **CLOSE)
    states = [seen["embeddings"], seen["decoder.layers.0"], seen["decoder.final_norm"]]
    for mine, other in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)


def test_the_attention_function_of_all_layers_can_be_chosen(ours, theirs, token_ids):
    calls = []

    def attend(*tensors, **options):
        calls.append(tensors)
        return efficient_attention(*tensors, **options, backend="tiled")

    torch.testing.assert_close(from_huggingface(theirs, attend=attend)(token_ids), ours(token_ids), **CLOSE)
    assert len(calls) == theirs.config.n_layer


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side(ours, theirs, token_ids, side):
    is_real = padded(side)
    positions = (is_real.cumsum(dim=-1) - 1).clamp(min=0)
    expected = theirs(token_ids, attention_mask=is_real.long(), position_ids=positions).logits
    torch.testing.assert_close(ours(token_ids, is_real)[is_real], expected[is_real], **CLOSE)


@pytest.mark.parametrize("chunks", [[7], [3, 4], [1] * 7, [5, 1, 1]])
def test_cached_in_chunks_equals_all_at_once(ours, theirs, token_ids, chunks):
    cache, is_real = DecoderCache(2), padded("left")
    parts = [
        ours(ids, real, cache)
        for ids, real in zip(token_ids.split(chunks, dim=1), is_real.split(chunks, dim=1), strict=True)
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1)[is_real], ours(token_ids, is_real)[is_real], **CLOSE)


def test_greedy_continuations_token_by_token(ours, theirs, token_ids):
    is_real = padded("left")
    expected = theirs.generate(
        token_ids, attention_mask=is_real.long(), max_new_tokens=9, do_sample=False, pad_token_id=END
    )
    found = greedy_search(ours, token_ids, is_real=is_real, eos_id=END, max_new_tokens=9)
    assert_same_tokens(found, expected[:, 7:].tolist(), END)


@pytest.mark.parametrize("max_shard_size", ["5GB", "4KB"])
def test_a_folder_of_theirs(theirs, token_ids, tmp_path, max_shard_size):
    theirs.save_pretrained(tmp_path, max_shard_size=max_shard_size)
    assert len(list(tmp_path.glob("*.safetensors"))) == (1 if max_shard_size == "5GB" else 8)
    torch.testing.assert_close(from_huggingface(tmp_path)(token_ids), theirs(token_ids).logits, **CLOSE)


def test_a_folder_of_ours(token_ids, tmp_path):
    torch.manual_seed(1)
    model = GPT(GPTConfig(vocab_size=VOCAB, d_model=12, n_heads=2, n_layers=3, d_ff=18, max_len=9)).double().eval()
    save_huggingface(model, tmp_path / "new")
    theirs = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "new", attn_implementation="eager")
    assert theirs.dtype == torch.float64
    torch.testing.assert_close(model(token_ids), theirs.eval()(token_ids).logits, **CLOSE)
    torch.testing.assert_close(from_huggingface(str(tmp_path / "new"))(token_ids), model(token_ids), rtol=0, atol=0)


def test_the_bare_model_and_the_masks_of_old_checkpoints(ours, theirs):
    tensors = dict(theirs.transformer.state_dict())
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 17, 17).tril()
    tensors["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    from ttutor.interop.gpt2 import FAMILY

    assert set(FAMILY.normalise(tensors, {})) == set(theirs.state_dict()) - {"lm_head.weight"}
    bare = from_huggingface(theirs.transformer)
    assert all(torch.equal(a, b) for a, b in zip(bare.parameters(), ours.parameters(), strict=True))


def test_a_config_that_asks_for_more_is_refused(theirs):
    config = transformers.GPT2Config(**{**theirs.config.to_dict(), "scale_attn_by_inverse_layer_idx": True})
    with pytest.raises(SettingError, match="scale_attn_by_inverse_layer_idx=True"):
        from_huggingface(transformers.GPT2LMHeadModel(config))


def test_a_projection_of_its_own(theirs, token_ids):
    borrowed = transformers.GPT2LMHeadModel(theirs.config).double().eval()
    borrowed.lm_head.weight = torch.nn.Parameter(torch.randn(VOCAB, 12, dtype=torch.float64))
    with pytest.raises(FileError, match=r"two values: lm_head.weight should be what embeddings.token.table.weight"):
        from_huggingface(borrowed)
    untied = transformers.GPT2Config(**{**theirs.config.to_dict(), "tie_word_embeddings": False})
    borrowed = transformers.GPT2LMHeadModel(untied).double().eval()
    ours = from_huggingface(borrowed)
    torch.testing.assert_close(ours(token_ids), borrowed(token_ids).logits, **CLOSE)
    assert set(to_huggingface(ours)[1]) == set(borrowed.state_dict())
