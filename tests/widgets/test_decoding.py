"""Decoding: what is recorded of a search, what the figure says of it, step by step on the page, what it refuses."""

from __future__ import annotations

import math
import re
from functools import cache

import pytest
import torch
import transformers
from playwright.sync_api import Page, expect

from tests.training.tiny import tiny_corpus
from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, press, whole_text
from ttutor.corpora.text_style import TextStyle
from ttutor.corpora.tokenizer import BOS_ID, EOS_ID, SubwordTokenizer
from ttutor.generation import beam_search, greedy_search
from ttutor.interop import from_huggingface
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.alignment import cross_attention
from ttutor.translation.translator import Translator
from ttutor.widgets import DecodingExplorer
from ttutor.widgets.decoding import KEPT

SENTENCE = "the dog sleeps"


def specimen() -> DecodingExplorer:
    """The figure as the gallery shows it."""
    return DecodingExplorer.recorded()


def hostile() -> DecodingExplorer:
    return DecodingExplorer.from_model(translator(), HOSTILE[0], beam=2, max_new_tokens=3)


def extremes() -> list[DecodingExplorer]:
    figures = []
    for number, one in enumerate(specimen().sentences):
        figures.append(specimen())
        figures[-1].sentence, figures[-1].step = number, len(one["next"]) - 1
    return figures


TAP = ("button:has-text('Next')", "token 2 of")


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


class Letters:
    """A tokenizer of theirs, as far as it is used: a token for each letter."""

    def __call__(self, text: str) -> dict:
        return {"input_ids": [*(ord(letter) - 95 for letter in text), 1]}

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"▁{chr(95 + i)}" if i > 1 else ("<pad>", "</s>")[i] for i in ids]


def hugging_face() -> torch.nn.Module:
    torch.manual_seed(0)
    sizes = {"d_kv": 5, "num_layers": 2, "num_heads": 3, "relative_attention_num_buckets": 8}
    config = transformers.T5Config(vocab_size=40, d_model=12, d_ff=20, decoder_start_token_id=0, **sizes)
    return transformers.T5ForConditionalGeneration(config).eval()


def test_a_model_of_hugging_face_is_recorded_with_its_own_attention() -> None:
    theirs = hugging_face()
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


def test_other_models_are_refused() -> None:
    with pytest.raises(TypeError, match="or an encoder-decoder of Hugging Face with its tokenizer, not Transformer"):
        DecodingExplorer.from_model(translator().model, SENTENCE)


def see(page: Page, panel: str) -> None:
    page.get_by_label(panel, exact=True).check()


def node(page: Page, row: int, column: int):
    return page.locator(f'.node[data-row="{row}"][data-column="{column}"]')


def results(page: Page) -> list[tuple[str, list[float]]]:
    """What the table lists, greedy first: the translation, and its numbers."""
    return page.locator("tr:has([data-value])").evaluate_all(
        """rows => rows.map((row) => [row.children[1].textContent,
          [...row.querySelectorAll('[data-value]')].map((cell) => Number(cell.dataset.value))])"""
    )


def assert_results(page: Page, explorer: DecodingExplorer) -> None:
    (text, (total,)), *found = results(page)
    assert text == explorer.greedy()[0]
    assert total == pytest.approx(explorer.greedy()[1], abs=1e-6)
    assert [one[0] for one in found] == [one[0] for one in explorer.results()]
    for (_, shown), (_, log_p, _, score, _) in zip(found, explorer.results(), strict=True):
        assert shown == pytest.approx([log_p, score], abs=1e-6)


@in_browser
@pytest.mark.parametrize("sentence", range(4))
def test_the_end_of_every_sentence_is_pythons_under_every_penalty(sentence: int, show: Show) -> None:
    explorer = specimen()
    explorer.sentence = sentence
    explorer.step = len(explorer.sentences[sentence]["next"]) - 1
    page = show(explorer)
    see(page, "Results")
    assert_results(page, explorer)
    for key, alpha in (("Home", 0.0), ("End", 2.0)):
        page.get_by_label("Length penalty").press(key)
        explorer.alpha = alpha
        assert_results(page, explorer)
    same = explorer.results()[0][0] == explorer.greedy()[0]
    assert ("Both write the same" if same else "They differ") in page.locator("section.tt").inner_text()


@in_browser
def test_every_step_shows_its_candidates_weights_and_next_tokens(show: Show) -> None:
    explorer = specimen()
    page = show(explorer)
    one = explorer.sentences[0]
    assert "α acts once" not in whole_text(page)
    see(page, "Results")
    assert "α acts once a translation is finished" in whole_text(page)
    for step, candidates in enumerate(one["candidates"]):
        see(page, "Tree")
        assert sorted(numbers(page, f'.node[data-column="{step + 1}"]')) == pytest.approx(
            sorted(total for _, _, total, fate in candidates if fate), abs=1e-6
        )
        kept = sum(fate == KEPT for *_, fate in candidates)
        assert page.locator(f'.node[data-column="{step + 1}"]:not(.dead):not(.ended)').count() == kept
        see(page, "Attention")
        assert numbers(page, ".word") == pytest.approx(one["attention"][step][0], abs=1e-6)
        see(page, "Choices")
        shares = [f"{p:.3f}" for _, p in one["next"][step][0]]
        assert page.locator(".tt-bars .number").all_inner_texts()[:-1] == shares
        assert f"ln {shares[0]} =" in page.locator("p.tt-note", has_text="Best extension").inner_text()
        press(page, "Next")
    assert page.locator(".tt-player output").inner_text() == f"token {len(one['next'])} of {len(one['next'])}"
    see(page, "Results")
    assert "α acts once" not in whole_text(page)
    page.get_by_label("Sentence").select_option(index=2)  # a shorter one begins anew
    expect(page.locator(".tt-player output")).to_contain_text("token 1 of")
    page.get_by_text("About the data").click()
    assert f"The model {explorer.sentences[2]['model']} of training" in whole_text(page)


@in_browser
def test_the_finding_tells_who_leads_and_when_greedy_is_overtaken(show: Show) -> None:
    explorer = specimen()
    page = show(explorer)
    one = explorer.sentences[0]
    greedy = [token for token, _ in one["greedy"]]
    partials: list[list[int]] = [[]]
    overtaken = []
    for at, candidates in enumerate(one["candidates"][:-1]):
        totals = {(*partials[row], token): total for row, token, total, _ in candidates}
        partials = [[*partials[row], token] for row, token, _, fate in candidates if fate == KEPT]
        gain = max(totals.values()) - totals[tuple(greedy[: at + 1])]
        said = page.locator(".tt-found").inner_text()
        assert (f"it is {math.exp(gain):.1f} times as probable" if gain else "Greedy’s beginning leads") in said
        overtaken.append(gain > 0)
        press(page, "Next")
    assert any(overtaken)
    assert not overtaken[0]
    assert "They differ" in page.locator(".tt-found").inner_text()


@in_browser
def test_the_leader_is_lit_beside_greedys_and_the_reason_is_told(show: Show) -> None:
    explorer = specimen()
    explorer.step = 5
    page = show(explorer)
    lead, own = page.locator(".node.lead"), page.locator('.node.greedy[data-column="6"]')
    assert (lead.count(), own.count()) == (1, 1)
    values = [float(one.get_attribute("data-value")) for one in (lead, own)]
    assert values[0] > values[1]
    assert "“de” and “le” into “du”" in page.locator(".tt-found").inner_text()
    share = float(re.sub(r"[^\d.]", "", lead.locator("small").inner_text()))
    assert share == pytest.approx(100 * math.exp(values[0]), abs=0.51)
