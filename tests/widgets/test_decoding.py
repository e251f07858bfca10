"""Decoding in Python: what is recorded of a search, what the figure says of it, and what it refuses."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch
import transformers

from tests.training.tiny import tiny_corpus
from ttutor import assets
from ttutor.corpora.text_style import TextStyle
from ttutor.corpora.tokenizer import BOS_ID, EOS_ID, SubwordTokenizer
from ttutor.generation import beam_search, greedy_search, length_penalty
from ttutor.interop import from_huggingface
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.alignment import cross_attention
from ttutor.translation.translator import Translator
from ttutor.widgets import DecodingExplorer
from ttutor.widgets.decoding_trace import CUT, DROPPED, FINISHED, KEPT

SENTENCE = "the dog sleeps"
HOSTILE = '<img src=x onerror="alert(1)"> </script>'


def specimen() -> DecodingExplorer:
    """The figure as the gallery shows it."""
    return DecodingExplorer.recorded()


@cache
def translator(seed: int = 0) -> Translator:
    """An untrained translator with opinions."""
    tokenizer = SubwordTokenizer.train([text for pair in tiny_corpus().train for text in pair], vocab_size=300)
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 32, "max_len": 64, "norm": "pre"}
    model = Transformer(TransformerConfig(vocab_size=tokenizer.vocab_size, tie_embeddings=False, **sizes))
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.7)
    return Translator(model, tokenizer, TextStyle())


@cache
def made(beam: int = 3, n_tokens: int = 8) -> DecodingExplorer:
    return DecodingExplorer.from_model(translator(), SENTENCE, beam=beam, max_new_tokens=n_tokens)


def source_ids() -> torch.Tensor:
    return torch.tensor([[*translator().tokenizer.encode(SENTENCE), EOS_ID]])


def limits(n_tokens: int = 8) -> dict:
    return {"bos_id": BOS_ID, "eos_id": EOS_ID, "max_new_tokens": n_tokens}


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("beam", [1, 3, 5])
def test_results_are_those_of_the_search(beam: int, alpha: float) -> None:
    explorer = DecodingExplorer(made(beam).tokens, made(beam).sentences, beam_size=beam, alpha=alpha)
    (found,) = beam_search(translator().model, source_ids(), beam_size=beam, alpha=alpha, **limits())
    assert [one[4] for one in explorer.results()] == [one.is_finished for one in found]
    assert [one[1] for one in explorer.results()] == pytest.approx([one.log_probability for one in found], abs=1e-4)
    assert [one[3] for one in explorer.results()] == pytest.approx([one.score for one in found], abs=1e-4)


def test_greedy_is_the_greedy_search() -> None:
    (found,) = greedy_search(translator().model, source_ids(), **limits())
    text, total = made().greedy()
    assert total == pytest.approx(found.log_probability, abs=1e-3)
    assert text.replace(" ", "") == "".join(translator().tokenizer.tokens(found.token_ids)).replace("▁", "")


def test_the_recorded_attention_is_the_mean_of_what_the_decoder_does() -> None:
    recorded = made(1).sentences[0]
    assert {len(row) for rows in recorded["attention"] for row in rows} == {len(recorded["source_tokens"])}
    ids = greedy_search(translator().model, source_ids(), **limits())[0].token_ids
    (seen,) = cross_attention(translator().model, translator().tokenizer, source_ids().tolist(), [list(ids)])
    for at, row in enumerate(seen.mean().tolist()):
        assert recorded["attention"][at][0] == pytest.approx(row, abs=6e-4)


def test_next_tokens_are_probabilities_and_sums_add_up() -> None:
    recorded = made().sentences[0]
    totals = [0.0]
    for following, candidates in zip(recorded["next"], recorded["candidates"], strict=True):
        for row, token, total, _ in candidates:
            gains = {place: math.log(p) for place, p in following[row] if p > 0.01}
            if token in gains:
                assert total == pytest.approx(totals[row] + gains[token], abs=0.01)
        totals = [total for _, _, total, fate in candidates if fate == KEPT]


def test_as_many_beginnings_live_as_the_beam_has_places() -> None:
    recorded = made().sentences[0]
    for at, candidates in enumerate(recorded["candidates"]):
        fates = [fate for *_, fate in candidates]
        last = at + 1 == len(recorded["candidates"])
        assert fates.count(KEPT) == (0 if last else 3)
        assert fates.count(CUT) <= 3 * last
        assert DROPPED in fates or last
        n_open = 1 if at == 0 else 3
        assert len(recorded["attention"][at]) == len(recorded["next"][at]) == n_open


def test_the_recording_is_whole_and_says_where_it_comes_from() -> None:
    explorer = specimen()
    stored = assets.load("decoder_recording")
    assert "python experiments/decoder_recording.py" in explorer.note
    for step, count in stored["n_differing"].items():
        assert f"{count} after {step}" in explorer.note
    last = max(int(step) for step in stored["n_differing"])
    assert explorer.sentences[0]["model"] == f"after {last} of {last} steps"


def test_the_recording_has_the_cases_that_the_text_speaks_of() -> None:
    explorer = specimen()
    differing = [explorer.greedy(i)[0] != explorer.results(i)[0][0] for i in range(len(explorer.sentences))]
    assert any(differing)
    flips = 0
    for number in range(len(explorer.sentences)):
        explorer.alpha = 1.0
        first = explorer.results(number)[0][0]
        explorer.alpha = 0.0
        flips += explorer.results(number)[0][0] != first
    assert flips >= 1, "no sentence whose ranking the length penalty changes"
    assert all(FINISHED in {fate for step in one["candidates"] for *_, fate in step} for one in explorer.sentences)


def test_scores_use_the_penalty_of_the_room() -> None:
    explorer = specimen()
    for _, total, n_tokens, score, _ in explorer.results(0):
        assert score == total / length_penalty(n_tokens, explorer.alpha)


# ---------------------------------------------------------------- Hugging Face


class Letters:
    """A tokenizer of theirs, as far as it is used: a token for each letter."""

    def __call__(self, text: str) -> dict:
        return {"input_ids": [*(ord(letter) - 95 for letter in text), 1]}

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"▁{chr(95 + i)}" if i > 1 else ("<pad>", "</s>")[i] for i in ids]


def hugging_face(kind: str) -> torch.nn.Module:
    torch.manual_seed(0)
    if kind == "t5":
        sizes = {"d_kv": 5, "num_layers": 2, "num_heads": 3, "relative_attention_num_buckets": 8}
        config = transformers.T5Config(vocab_size=40, d_model=12, d_ff=20, decoder_start_token_id=0, **sizes)
        return transformers.T5ForConditionalGeneration(config).eval()
    sides = {f"{side}_{name}": n for side in ("encoder", "decoder")
             for name, n in (("layers", 2), ("attention_heads", 3), ("ffn_dim", 20))}  # fmt: skip
    marks = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "forced_eos_token_id": None}
    config = transformers.MarianConfig(
        vocab_size=40, d_model=12, max_position_embeddings=32, scale_embedding=True, activation_function="swish",
        attn_implementation="eager", **sides, **marks,
    )  # fmt: skip
    return transformers.MarianMTModel(config).eval()


@pytest.mark.parametrize("kind", ["t5", "marian"])
def test_a_model_of_hugging_face_is_recorded_with_its_own_attention(kind: str) -> None:
    theirs = hugging_face(kind)
    explorer = DecodingExplorer.from_model(theirs, "abc", beam=2, tokenizer=Letters(), max_new_tokens=5)
    recorded = explorer.sentences[0]
    assert recorded["source_tokens"] == ["▁a", "▁b", "▁c", "</s>"]
    source = torch.tensor([Letters()("abc")["input_ids"]])
    (found,) = greedy_search(from_huggingface(theirs), source, bos_id=0, eos_id=1, max_new_tokens=5)
    assert explorer.greedy()[1] == pytest.approx(found.log_probability, abs=1e-3)
    theirs.set_attn_implementation("eager")
    with torch.no_grad():
        start = theirs(input_ids=source, decoder_input_ids=torch.tensor([[0]]), output_attentions=True)
    weights = torch.stack(start.cross_attentions).mean(dim=(0, 2))[0, 0]
    assert recorded["attention"][0][0] == pytest.approx(weights.tolist(), abs=1e-3)


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("", {}, ValueError, "'' is no sentence"),
        ([], {}, ValueError, "there is no sentence"),
        (SENTENCE, {"beam": 0}, ValueError, "beam has to be from 1 to 5"),
        (SENTENCE, {"beam": 6}, ValueError, "beam has to be from 1 to 5"),
        (SENTENCE, {"alpha": 3.0}, ValueError, "alpha has to be from 0 to 2"),
        (SENTENCE, {"alpha": math.nan}, ValueError, "alpha has to be from 0 to 2"),
        ([SENTENCE] * 3, {"beam": 5}, ValueError, "make a page of .* bytes, more than 30,000; give fewer"),
        ([SENTENCE] * 10_000, {}, ValueError, "10000 sentences are more than fit; give up to 8"),
    ],
)
def test_bad_input_is_refused_with_a_reason(text, options, error, message) -> None:
    with pytest.raises(error, match=message):
        DecodingExplorer.from_model(translator(), text, **options)


def test_other_models_are_refused() -> None:
    with pytest.raises(
        TypeError, match="has to be a Translator, or an encoder-decoder of Hugging Face, not Transformer"
    ):
        DecodingExplorer.from_model(translator().model, SENTENCE)
    with pytest.raises(TypeError, match="needs its tokenizer"):
        DecodingExplorer.from_model(hugging_face("t5"), SENTENCE)


def test_places_that_are_not_there_are_refused_and_a_new_sentence_begins_where_it_can() -> None:
    explorer = specimen()
    n_steps = len(explorer.sentences[0]["next"])
    explorer.step = n_steps - 1
    for name, value in (("step", n_steps), ("step", -1), ("beam", 3), ("sentence", len(explorer.sentences))):
        with pytest.raises(ValueError, match=f"{name} has to be from 0 to"):
            setattr(explorer, name, value)
    explorer.sentence = 1
    assert 0 <= explorer.step < len(explorer.sentences[1]["next"])


def test_a_recording_that_is_not_whole_is_refused() -> None:
    tokens, (sentence,) = made().tokens, made().sentences
    for change, message in (
        ({"next": sentence["next"][:-1]}, "as many steps"),
        ({"attention": [[[math.nan] * len(sentence["source_tokens"])], *sentence["attention"][1:]]}, "nan"),
        ({"candidates": [[[7, 0, -1.0, 1]], *sentence["candidates"][1:]]}, "extends nothing that is there"),
    ):
        with pytest.raises(ValueError, match=message):
            DecodingExplorer(tokens, [{**sentence, **change}], beam_size=3)
    broken = {name: value for name, value in sentence.items() if name != "greedy"}
    with pytest.raises(ValueError, match=r"sentences\[0\] has no greedy"):
        DecodingExplorer(tokens, [broken], beam_size=3)


# ---------------------------------------------------------------- what is stored


def test_a_long_source_is_read_whole_and_shown_in_part() -> None:
    explorer = DecodingExplorer.from_model(translator(), "dog " * 40, beam=2, max_new_tokens=3)
    recorded = explorer.sentences[0]
    assert len(recorded["source_tokens"]) == 25
    assert recorded["source_tokens"][-1].endswith(" more")
    assert sum(recorded["attention"][0][0]) == pytest.approx(1, abs=0.02)


def test_the_fallback_has_both_searches_and_hostile_text_stays_text() -> None:
    explorer = DecodingExplorer.from_model(translator(), HOSTILE, beam=2, max_new_tokens=4)
    assert "<img" not in explorer.to_html()
    assert "greedy" in explorer.fallback_html()
    text, total = specimen().greedy(0)
    assert f"<td>{total:.2f}</td>" in specimen().fallback_html()
    assert repr(specimen()) == f"DecodingExplorer({len(specimen().sentences)} sentences, beam of 3, sentence 0, step 0)"
