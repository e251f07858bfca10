"""GGUF files against `transformers`, with small random models of the architecture "llama"."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers

from tests.interop import gguf_writing
from tests.interop.oracles import randomised
from ttutor.errors import FileError, SettingError
from ttutor.interop import from_gguf, to_huggingface
from ttutor.interop.gguf_files import read_gguf
from ttutor.interop.gguf_tokenizers import end_ids_of, tokenizer_of

LLAMA_3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "original_max_position_embeddings": 8192,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}


def make(**changes: object) -> transformers.LlamaForCausalLM:
    torch.manual_seed(0)
    return randomised(transformers.LlamaForCausalLM(gguf_writing.config(**changes)), std=0.1).eval()


@pytest.fixture(scope="module")
def theirs() -> transformers.LlamaForCausalLM:
    return make()


@pytest.fixture
def token_ids() -> torch.Tensor:
    return torch.randint(64, (2, 9))


@pytest.mark.parametrize("is_tied", [False, True])
def test_logits_agree_with_transformers(tmp_path: Path, token_ids: torch.Tensor, is_tied: bool) -> None:
    theirs = make(tie_word_embeddings=is_tied)
    ours = from_gguf(gguf_writing.write(tmp_path / "a.gguf", theirs))
    assert ours.config.tie_embeddings == is_tied
    assert not ours.training
    torch.testing.assert_close(ours(token_ids), theirs(token_ids).logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_number_formats_are_read_as_gguf_reads_them(
    tmp_path: Path, theirs: transformers.LlamaForCausalLM, name: str
) -> None:
    kind = gguf.GGMLQuantizationType[name]
    file = read_gguf(gguf_writing.write(tmp_path / "a.gguf", theirs, kind=kind))
    assert file.formats() == {"F32": 5, name: 16}
    ours = from_gguf(file)
    weight = theirs.model.layers[1].self_attn.v_proj.weight.detach().numpy()
    expected = gguf.quants.dequantize(gguf.quants.quantize(weight, kind), kind)
    torch.testing.assert_close(
        ours.layers[1].self_attention.to_value.weight.detach(), torch.from_numpy(expected), rtol=0, atol=0
    )
    largest = np.abs(weight).max()
    assert np.abs(expected - weight).max() <= (largest / 7 if name.startswith("Q4") else largest / 14)


def test_rotary_positions_scaled_by_one_factor(tmp_path: Path, token_ids: torch.Tensor) -> None:
    theirs = make(rope_scaling={"rope_type": "linear", "factor": 4.0})
    fields = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    ours = from_gguf(gguf_writing.write(tmp_path / "a.gguf", theirs, fields=fields))
    torch.testing.assert_close(ours(token_ids), theirs(token_ids).logits, rtol=0, atol=1e-4)


def test_rotary_positions_of_llama_3_1_are_known_by_their_factors(tmp_path: Path, token_ids: torch.Tensor) -> None:
    theirs = make(rope_scaling=LLAMA_3, rope_theta=500_000.0)
    plain = 500_000.0 ** (-np.arange(0, 16, 2) / 16)
    factors = {"rope_freqs.weight": (plain / theirs.model.rotary_emb.inv_freq.numpy()).astype(np.float32)}
    assert 1 < factors["rope_freqs.weight"].max() <= 8
    path = gguf_writing.write(tmp_path / "a.gguf", theirs, fields={"llama.rope.freq_base": 500_000.0}, extra=factors)
    ours = from_gguf(path)
    torch.testing.assert_close(ours(token_ids), theirs(token_ids).logits, rtol=0, atol=1e-4)
    assert to_huggingface(ours)[0]["rope_parameters"]["rope_type"] == "llama3"
    factors["rope_freqs.weight"][2] *= 2
    path = gguf_writing.write(tmp_path / "b.gguf", theirs, fields={"llama.rope.freq_base": 500_000.0}, extra=factors)
    with pytest.raises(SettingError, match="by another rule than Llama 3's"):
        from_gguf(path)


@pytest.mark.parametrize(
    ("fields", "extra", "error", "message"),
    [
        ({"general.architecture": "qwen2"}, {}, SettingError, "must be 'llama', but .* has 'qwen2'"),
        ({"general.architecture": None}, {}, SettingError, "no field general.architecture"),
        ({"llama.block_count": None}, {}, SettingError, "no field llama.block_count"),
        ({"llama.expert_count": 8}, {}, SettingError, "mixture of experts"),
        ({"llama.rope.scaling.type": "yarn"}, {}, SettingError, "must be none or linear, but is 'yarn'"),
        ({"llama.rope.dimension_count": 8}, {}, SettingError, "all 16 features of a head must be turned"),
        ({"llama.attention.head_count": [4, 4]}, {}, SettingError, "as many heads"),
        ({"split.count": 2}, {}, SettingError, "one of 2 parts"),
        ({"llama.feed_forward_length": 64}, {}, FileError, "wrong size: model.layers.0.mlp.gate_proj.weight"),
        ({"llama.block_count": 3}, {}, FileError, "missing: model.layers.2.input_layernorm.weight"),
        ({}, {"blk.0.attn_q.bias": np.zeros(64, np.float32)}, FileError, "surplus: .*q_proj.bias"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    tmp_path: Path, theirs: transformers.LlamaForCausalLM, fields: dict, extra: dict, error: type, message: str
) -> None:
    path = gguf_writing.write(tmp_path / "a.gguf", theirs, fields=fields, extra=extra)
    with pytest.raises(error, match=message):
        from_gguf(path)


@pytest.mark.parametrize("n_bytes", [0, 3, 100, 3000])
def test_a_damaged_file_is_refused(tmp_path: Path, theirs: transformers.LlamaForCausalLM, n_bytes: int) -> None:
    path = gguf_writing.write(tmp_path / "a.gguf", theirs)
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(FileError, match="is no GGUF file, or is damaged: .*; fetch it again"):
        from_gguf(path)
    path.write_bytes(b"PK\x03\x04" + bytes(1000))
    with pytest.raises(FileError, match="is no GGUF file"):
        from_gguf(path)


def test_the_tokenizer_cuts_as_its_file_says(tmp_path: Path, theirs: transformers.LlamaForCausalLM) -> None:
    file = read_gguf(gguf_writing.write(tmp_path / "a.gguf", theirs))
    tokenizer = tokenizer_of(file)
    assert tokenizer.encode("THE THE<tool>12</s>").tokens == ["THE", "ĠTHE", "<tool>", "1", "2", "</s>"]
    assert tokenizer.decode(tokenizer.encode("THE THE<tool>12</s>").ids) == "THE THE<tool>12"
    assert end_ids_of(file) == (1,)
    with_start = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.pre": "llama-bpe"}
    tokenizer = tokenizer_of(read_gguf(gguf_writing.write(tmp_path / "b.gguf", theirs, fields=with_start)))
    assert tokenizer.encode("THE THE").tokens == ["<s>", "THE", "ĠTHE"]
    assert tokenizer.encode("THE THE", add_special_tokens=False).tokens == ["THE", "ĠTHE"]


@pytest.mark.parametrize(("name", "value"), [("model", "llama"), ("pre", "jais")])
def test_a_tokenizer_of_another_kind_is_refused(
    tmp_path: Path, theirs: transformers.LlamaForCausalLM, name: str, value: str
) -> None:
    path = gguf_writing.write(tmp_path / "a.gguf", theirs, fields={f"tokenizer.ggml.{name}": value})
    with pytest.raises(SettingError, match=f"must be of the kind 'gpt2' .*{value}"):
        tokenizer_of(read_gguf(path))
