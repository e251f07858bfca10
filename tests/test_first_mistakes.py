"""Mistakes that a newcomer makes in the first hour: the message says what was expected, what came and what to do."""

from __future__ import annotations

import pytest
import torch

from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.attention import scaled_dot_product_attention
from ttutor.errors import FileError, InputError, SettingError
from ttutor.multihead import AttentionHead, MultiHeadAttention
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.trainer import Trainer
from ttutor.transformer import Transformer
from ttutor.translation.own_text import train_translator
from ttutor.translation.translator import EngineTranslator, Translator
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.vit import ViT, ViTConfig

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def test_tensors_of_two_number_formats_are_named() -> None:
    x = torch.randn(2, 3, 5, 8)
    with pytest.raises(TypeError, match="query is float64, key is float32, value is float32; convert"):
        scaled_dot_product_attention(x.double(), x, x)


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (AttentionHead(8, 4), torch.randn(2, 5, 8).double()),
        (MultiHeadAttention(8, 2), torch.randn(2, 5, 8).double()),
        (ViT(ViTConfig.tiny(image_size=32, n_layers=1)), torch.zeros(1, 3, 32, 32, dtype=torch.uint8)),
    ],
)
def test_a_layer_says_which_format_its_weights_have(layer: torch.nn.Module, x: torch.Tensor) -> None:
    with pytest.raises(TypeError, match=r"weights are float32, but .* is (float64|uint8).*; convert .*torch\.float32"):
        layer(x)


def test_only_autocast_may_mix_formats() -> None:
    layer, x = AttentionHead(8, 4), torch.randn(2, 5, 8, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match="query is bfloat16"):
        layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16


def test_attention_over_whole_numbers_asks_for_a_point() -> None:
    whole = torch.ones(3, 4, dtype=torch.long)
    with pytest.raises(TypeError, match=r"the tensors are int64; convert with \.float\(\)"):
        scaled_dot_product_attention(whole, whole, whole)


@pytest.mark.parametrize("model", [Transformer, GPT, ViT])
def test_a_model_takes_a_config_not_a_number(model: type[torch.nn.Module]) -> None:
    with pytest.raises(TypeError, match=f"expected a {model.__name__}Config, but came int 50"):
        model(50)


def test_a_tokenizer_is_trained_on_sentences_not_on_one_string() -> None:
    with pytest.raises(TypeError, match="came one string"):
        SubwordTokenizer.train("one text\nof two lines", vocab_size=300)
    with pytest.raises(TypeError, match="expected one sentence, but came list; encode_all"):
        SubwordTokenizer.train(["one text"], vocab_size=300).encode(["one", "text"])


def test_ids_in_a_list_are_no_tensor() -> None:
    with pytest.raises(TypeError, match=r"token_ids must be a torch\.Tensor .* came as list"):
        GPT(GPTConfig(vocab_size=10, d_model=8, n_heads=2, n_layers=1, d_ff=16))([[1, 2]])


def test_a_trainer_takes_a_corpus_not_a_path() -> None:
    with pytest.raises(TypeError, match=r"must be a Corpus, but came as str; file_corpus"):
        Trainer("my.en", TrainingRecipe.preset("embedded"))


def test_a_device_that_is_none_is_refused() -> None:
    with pytest.raises(SettingError, match="auto, cpu, cuda, or one GPU as cuda:1, got 'gpu'"):
        Trainer(tiny_corpus(), tiny_recipe(), device="gpu")


def test_a_translator_is_loaded_from_a_folder(tmp_path) -> None:
    path = tmp_path / "my.en"
    path.write_text("a cat\n")
    with pytest.raises(FileError, match="is a file; expected the folder"):
        Translator.load(path)


def test_a_folder_is_no_file_of_translations(tmp_path) -> None:
    with pytest.raises(InputError, match=r"is a folder; name that by folder=\.\.\."):
        train_translator(tmp_path / "my.en", tmp_path)


def test_a_translator_called_takes_one_sentence() -> None:
    with pytest.raises(TypeError, match=r"expected one sentence, but came list; translate\(\.\.\.\) takes several"):
        EngineTranslator.__call__(None, ["a"])
