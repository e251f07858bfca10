"""The published models, opened by our classes, against `transformers` and against numbers that it gave once."""

from __future__ import annotations

import pytest
import torch

from ttutor.interop import to_huggingface
from ttutor.pretrained import Pretrained, models_root, sentence_vectors

TEXT = "The capital of France is Paris, and the capital of Germany is Berlin. 17 + 25 ="
BEST = {216: 18.5529, 4649: 13.1933, 7042: 12.5345, 4521: 12.4171, 253: 12.2910}
"""The five largest logits after it, as transformers 5.23 computed them from its own reading of the file."""


@torch.inference_mode()
def test_the_language_model_gives_the_stored_numbers(smollm2: Pretrained) -> None:
    assert sum(parameter.numel() for parameter in smollm2.model.parameters()) == 134_515_008
    assert smollm2.facts["formats"] == {"F32": 61, "Q4_1": 210, "Q8_0": 1}
    logits = smollm2.model(smollm2.ids(TEXT))[0, -1]
    best = logits.topk(5)
    assert best.indices.tolist() == list(BEST)
    torch.testing.assert_close(best.values, torch.tensor(list(BEST.values())), rtol=0, atol=1e-3)


@torch.inference_mode()
def test_the_language_model_agrees_with_transformers(smollm2: Pretrained, transformers) -> None:
    config, tensors = to_huggingface(smollm2.model)
    with torch.device("meta"):
        theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
    theirs.load_state_dict(tensors, assign=True)
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(theirs.config)  # its frequencies are in no file
    ids = smollm2.ids(TEXT)
    torch.testing.assert_close(smollm2.model(ids), theirs.eval()(ids).logits, rtol=0, atol=1e-3)


@pytest.mark.soak
@torch.inference_mode()
def test_the_language_model_agrees_with_transformers_reading_the_file_itself(smollm2: Pretrained, transformers) -> None:
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    config = transformers.LlamaConfig(**to_huggingface(smollm2.model)[0])
    theirs = transformers.LlamaForCausalLM(config).eval()
    (path,) = (models_root() / "smollm2").glob("*.gguf")
    read = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=theirs)
    assert theirs.load_state_dict(read["tensors"], strict=False).missing_keys == ["lm_head.weight"]  # tied
    ids = smollm2.ids(TEXT)
    torch.testing.assert_close(smollm2.model(ids), theirs(ids).logits, rtol=0, atol=1e-3)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    for text in (
        TEXT,
        "  def f(x):\n\treturn x**2 + 1234567\n\n\n",
        "naïve café ☕ 日本語 don't it'S",
        "<|im_start|>a\n",
    ):
        assert smollm2.tokenizer.encode(text).ids == tokenizer(text)["input_ids"]


@torch.inference_mode()
def test_the_sentence_encoder_agrees_with_transformers(minilm: Pretrained, transformers) -> None:
    theirs = transformers.BertModel.from_pretrained(models_root() / "minilm").eval()
    ids = minilm.ids("A bank of the river is not a bank.")
    torch.testing.assert_close(minilm.model(ids), theirs(ids).last_hidden_state, rtol=0, atol=1e-4)


def test_sentences_are_near_in_meaning_whatever_stands_beside_them(minilm: Pretrained) -> None:
    texts = ["bank of the river", "shore", "I deposited money at the bank", "savings account"]
    vectors = sentence_vectors(minilm, texts)
    torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(4))
    nearness = vectors @ vectors.T
    assert nearness[0, 1] > nearness[2, 1]
    assert nearness[2, 3] > nearness[1, 3]
    alone = torch.cat([sentence_vectors(minilm, [text]) for text in texts])
    torch.testing.assert_close(vectors, alone, rtol=0, atol=1e-5)
    torch.testing.assert_close(sentence_vectors(minilm, texts, batch_size=3), vectors, rtol=0, atol=1e-5)
    assert sentence_vectors(minilm, []).shape == (0, 384)
    assert sentence_vectors(minilm, ["word " * 600]).shape == (1, 384)
    with pytest.raises(TypeError, match="a list of texts, not one"):
        sentence_vectors(minilm, "a text")
