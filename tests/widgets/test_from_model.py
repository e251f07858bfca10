"""Attention read out of models, ours and Hugging Face's: the very weights, and the sum that the layer gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from ttutor.corpora.text_style import TextStyle
from ttutor.encoder import Encoder
from ttutor.inside import capture
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.translator import Translator
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.llama import Llama, LlamaConfig
from ttutor.variants.t5 import T5, T5Config
from ttutor.widgets import AttentionExplorer, HeadsExplorer
from ttutor.widgets.from_model import recorded_attention
from ttutor.widgets.heads import write_products

SIZES = {"vocab_size": 40, "d_model": 12, "n_heads": 6, "n_layers": 2, "d_ff": 20}
SOURCE, TARGET = [5, 6, 7, 8, 3], [10, 11, 12, 3]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def ours(kind: str) -> nn.Module:
    built = {
        "transformer": lambda: Transformer(TransformerConfig(**SIZES, max_len=64, dropout=0.3)),
        "t5": lambda: T5(T5Config(**SIZES, d_head=4)),
        "gpt": lambda: GPT(GPTConfig(**SIZES, max_len=64)),
        "gpt alibi": lambda: GPT(GPTConfig(**SIZES, max_len=64, positions="alibi")),
        "bert": lambda: BERT(BERTConfig(**SIZES, max_len=64)),
        "bert with a head": lambda: BERTForMaskedLM(BERT(BERTConfig(**SIZES, max_len=64))),
        "llama": lambda: Llama(LlamaConfig(**SIZES, n_kv_heads=2, d_head=4)),
    }[kind]()
    for parameter in built.parameters():
        nn.init.normal_(parameter, std=0.4)
    return built


def theirs(kind: str) -> nn.Module:
    sizes = {"vocab_size": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 3}
    marian = {
        "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "decoder_start_token_id": 0,
        "max_position_embeddings": 64, "scale_embedding": True, "forced_eos_token_id": None,
    }  # fmt: skip
    hidden = {"hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 32}
    gpt = {"n_embd": 16, "n_head": 2, "n_layer": 2, "n_positions": 64}
    built = {
        "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**gpt, **sizes)),
        "bert": lambda: transformers.BertModel(transformers.BertConfig(**hidden, **sizes)),
        "marian": lambda: transformers.MarianMTModel(transformers.MarianConfig(**marian, **sizes)),
    }[kind]()
    for name, parameter in built.named_parameters():
        if "embed_positions" not in name:  # whose waves are fixed
            nn.init.normal_(parameter, std=0.2)
    return built


def translator() -> Translator:
    lines = ["the red car sleeps", "la voiture rouge dort", "the dog sees a cat", "le chien voit un chat"]
    tokenizer = SubwordTokenizer.train(lines, vocab_size=340)
    model = Transformer(TransformerConfig(**{**SIZES, "vocab_size": tokenizer.vocab_size}, max_len=64))
    return Translator(model, tokenizer, TextStyle(lower_case=True, final_mark=False))


class Words:
    """A tokenizer as Hugging Face's are: called with a text, it gives ids with their marks."""

    eos_token_id = 3
    vocabulary = ("<pad>", "<s>", "<unk>", "</s>", "Ġthe", "Ġred", "Ġcar", "cafÃ©")

    def __call__(self, text: str | None = None, text_target: str | None = None) -> dict:
        known = [self.decode([number]).strip() for number in range(len(self.vocabulary))]
        return {"input_ids": [*map(known.index, (text or text_target).split()), self.eos_token_id]}

    def convert_ids_to_tokens(self, token_id: int) -> str:
        return self.vocabulary[token_id]

    def decode(self, ids: list[int]) -> str:
        return self.vocabulary[ids[0]].replace("Ġ", " ").encode("latin-1").decode()


PAIRS = [("transformer", part) for part in ("encoder", "decoder", "cross")] + [
    ("t5", part) for part in ("encoder", "decoder", "cross")
]
SINGLE = [("gpt", "decoder"), ("gpt alibi", "decoder"), ("bert", "encoder"), ("bert with a head", "encoder")]
SINGLE += [("llama", "decoder")]
THEIRS = [("gpt2", "decoder"), ("bert", "encoder")] + [("marian", part) for part in ("encoder", "decoder", "cross")]


def test_our_translator_is_read_as_capture_reads_it() -> None:
    model = ours("transformer").eval()
    source, inputs = torch.tensor([SOURCE]), torch.tensor([[2, *TARGET[:-1]]])
    with torch.no_grad(), capture(model, "**.weights", "**.self_attention", "**.cross_attention") as seen:
        model(source, inputs)
    for part, names in {
        "encoder": "encoder.layers.{}.self_attention",
        "decoder": "decoder.layers.{}.self_attention",
        "cross": "decoder.layers.{}.cross_attention",
    }.items():
        found = recorded_attention(model, SOURCE, part=part, target=TARGET)
        for layer in range(2):
            torch.testing.assert_close(found.weights[layer], seen[f"{names.format(layer)}.weights"][0])
            total = found.writes[layer].sum(dim=0) + found.rest[layer]
            torch.testing.assert_close(total, seen[names.format(layer)][0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "part"), PAIRS)
def test_pairs_of_texts_have_their_tokens(kind: str, part: str) -> None:
    found = recorded_attention(ours(kind), SOURCE, part=part, target=TARGET)
    start = 0 if kind == "t5" else 2
    queries = {"encoder": SOURCE, "decoder": [start, *TARGET[:-1]], "cross": TARGET}[part]
    assert found.tokens == [str(one) for one in queries]
    assert found.key_tokens == [str(one) for one in (SOURCE if part == "cross" else queries)]
    assert found.weights.shape == (2, 6, len(found.tokens), len(found.key_tokens))
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(found.weights.shape[:-1]))


@pytest.mark.parametrize(("kind", "part"), SINGLE)
def test_single_stacks_know_what_they_are(kind: str, part: str) -> None:
    found = recorded_attention(ours(kind), torch.tensor([SOURCE]))
    assert found.part == part
    assert bool((found.weights.triu(1) == 0).all()) == (part == "decoder")
    assert found.writes.shape == (2, 6, 5, 12)
    with pytest.raises(ValueError, match=f"has no part 'cross'; it has '{part}'"):
        recorded_attention(ours(kind), SOURCE, part="cross")


@pytest.mark.parametrize(("kind", "part"), THEIRS)
def test_models_of_hugging_face_are_read_and_left_as_they_were(kind: str, part: str) -> None:
    model = theirs(kind).train()
    found = recorded_attention(model, SOURCE, part=part, target=TARGET if kind == "marian" else None)
    assert all(one.training for one in model.modules())
    assert found.part == part
    model.eval().set_attn_implementation("eager")
    inputs = {"decoder_input_ids": torch.tensor([[0, *TARGET[:-1]]])} if kind == "marian" else {}
    output = model(torch.tensor([SOURCE]), output_attentions=True, **inputs)
    name = {"cross": "cross_attentions"}.get(part, f"{part}_attentions" if inputs else "attentions")
    torch.testing.assert_close(found.weights, torch.stack([one[0] for one in output[name]]).detach())


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_a_translator_reads_and_writes_by_itself(part: str) -> None:
    found = recorded_attention(translator(), "The red car.", part=part)
    source = ["▁the", "▁red", "▁car", "<eos>"]
    if part == "encoder":
        assert found.tokens == source
    else:
        assert found.key_tokens == (source if part == "cross" else found.tokens)
        assert (found.tokens[0] == "<bos>") == (part == "decoder")


def test_a_tokenizer_gives_ids_and_words() -> None:
    found = recorded_attention(theirs("marian"), "the red car", Words(), part="cross", target="café the")
    assert found.key_tokens == ["▁the", "▁red", "▁car", "</s>"]
    assert found.tokens == ["café", "▁the", "</s>"]


# ---------------------------------------------------------------- the explorers


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_the_map_shows_the_models_weights_at_temperature_one(part: str) -> None:
    model, options = ours("transformer"), {"part": part, "target": TARGET}
    found = recorded_attention(model, SOURCE, **options)
    explorer = AttentionExplorer.from_model(model, SOURCE, layer=-2, head=1, **options)
    np.testing.assert_allclose(explorer.weights, found.weights[0, 1].double(), atol=5e-4)
    assert (explorer.tokens, explorer.key_tokens) == (found.tokens, found.key_tokens)
    hidden = found.weights[0, 1] == 0
    assert explorer.mask == ([] if not hidden.any() else (~hidden).tolist())


def test_all_heads_of_a_model() -> None:
    found = recorded_attention(ours_model := ours("gpt"), SOURCE)
    explorer = HeadsExplorer.from_model(ours_model, SOURCE, query=4, layer=1)
    np.testing.assert_allclose(explorer.weights, found.weights, atol=5e-4)
    np.testing.assert_allclose(explorer.products, write_products(found.writes, found.rest), atol=2e-3)
    assert explorer.note == "Decoder self-attention of GPT."


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("model", "text", "options", "error", "words"),
    [
        ("gpt2", SOURCE, {}, TypeError, "expected a model"),
        (Encoder(8, 2, 16, 1), SOURCE, {}, TypeError, "no model of texts"),
        (ours("gpt"), "the cat", {}, TypeError, "give the model's tokenizer too"),
        (ours("gpt"), ["the", "cat"], {}, TypeError, "one string or the token ids of one text"),
        (ours("gpt"), [], {}, ValueError, "text is empty"),
        (ours("gpt"), SOURCE, {"target": TARGET}, ValueError, "reads one text only"),
        (ours("gpt"), SOURCE, {"part": "middle"}, ValueError, "has no part 'middle'"),
        (translator(), "the", {"part": "cross", "target": ""}, ValueError, "target is empty"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_reason(model, text, options, error, words) -> None:
    with pytest.raises(error, match=words):
        recorded_attention(model, text, **options)
