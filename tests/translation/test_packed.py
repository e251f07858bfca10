"""A translator in one file: it comes back as eight bits hold it, and the one that ships says what it is."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
import safetensors.torch
import torch

from tests.widgets.test_decoding import translator
from ttutor.errors import FileError
from ttutor.translation import load_default
from ttutor.translation.packed import PackedTranslator, head_means, known_words, load_packed, word_number

SENTENCES = ["the dog sleeps", "the red car"]


def packed() -> PackedTranslator:
    means = head_means(translator(), [("the dog sleeps", "le chien dort")])
    return PackedTranslator(translator(), means, known_words(SENTENCES), {"data": "none"})


def test_it_comes_back_with_every_weight_within_half_a_step() -> None:
    before, after = packed(), PackedTranslator.from_bytes(packed().to_bytes())
    for (name, one), other in zip(
        before.translator.model.named_parameters(), after.translator.model.parameters(), strict=True
    ):
        step = one.abs().amax(dim=-1, keepdim=True) / 127 if one.ndim == 2 else torch.zeros(1)
        assert ((one - other).abs() <= 0.501 * step).all(), name
    assert after.translator.tokenizer.encode("the dog") == before.translator.tokenizer.encode("the dog")
    assert after.translator.style == before.translator.style
    assert after.card == before.card
    assert all(torch.equal(after.head_means[part], means) for part, means in before.head_means.items())
    assert after.to_bytes() == PackedTranslator.from_bytes(after.to_bytes()).to_bytes()


def test_words_that_were_never_read_are_told() -> None:
    assert packed().strange_words("The dog, a Car and the quantum.") == ["a", "and", "quantum"]
    assert PackedTranslator.of(translator(), SENTENCES).strange_words("quantum") == []


def test_the_hash_is_that_of_its_authors() -> None:
    known = {"a": 0xE40C292C, "foobar": 0xBF9CF968}  # test vectors of Fowler, Noll and Vo
    assert {word: word_number(word) % 2**32 for word in known} == known


def test_the_mean_of_a_head_is_the_mean_of_its_context() -> None:
    from ttutor.inside import capture

    model, tokenizer = translator().model, translator().tokenizer
    source, target = ([*tokenizer.encode(text)] for text in ("the dog", "le chien"))
    with torch.no_grad(), capture(model, "decoder.layers.1.cross_attention.context") as seen:
        model(torch.tensor([[*source, 3]]), torch.tensor([[2, *target]]))
    expected = seen["decoder.layers.1.cross_attention.context"][0].mean(dim=1)
    assert torch.allclose(head_means(translator(), [("the dog", "le chien")])["cross"][1], expected, atol=1e-6)


@pytest.mark.parametrize("damaged", [b"", b"nothing of the kind", b"\x08" + bytes(7) + b'{"a":1} '])
def test_other_files_are_refused(damaged: bytes) -> None:
    with pytest.raises(FileError, match="no packed translator, or a damaged one"):
        PackedTranslator.from_bytes(damaged)


@pytest.mark.parametrize(("name", "size"), [("n_layers", 10**9), ("d_model", 10**8), ("max_len", 10**9)])
def test_sizes_that_are_not_those_of_the_weights_are_refused_before_anything_is_made(name: str, size: int) -> None:
    whole = (files("ttutor.assets") / "page_translator.safetensors").read_bytes()
    tensors = safetensors.torch.load(whole)
    header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    about = json.loads(header["__metadata__"]["about"])
    about["config"][name] = size
    with pytest.raises(FileError, match="are those of no packed translator"):
        PackedTranslator.from_bytes(safetensors.torch.save(tensors, {"about": json.dumps(about)}))


def test_the_shipped_translator_translates_and_says_what_it_is() -> None:
    assert load_default()("A man rides a horse.", beam_size=4).text == "Ein Mann reitet auf einem Pferd."
    assert set(load_packed().card) == {"summary", "data", "recipe", "scores", "limits", "terms"}
    assert load_packed().strange_words("A man measures quantum gravity.") == ["quantum"]
