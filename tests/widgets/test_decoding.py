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
from ttutor.generation import beam_search, greedy_search
from ttutor.interop import from_huggingface
from ttutor.tokenization import BOS_ID, EOS_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.transformer import Transformer, TransformerConfig
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
        figures[-1].sentence, figures[-1].step = number, len(one["candidates"]) - 1
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


def test_the_recorded_sentences_are_those_that_the_beam_gets_right() -> None:
    explorer = specimen()
    assert len(explorer.sentences) == 3
    for number, one in enumerate(explorer.sentences):
        assert explorer.results(number)[0][0] == one["reference"]


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


def test_a_model_of_hugging_face_is_recorded() -> None:
    theirs = hugging_face()
    explorer = DecodingExplorer.from_model(theirs, "abc", beam=2, tokenizer=Letters(), max_new_tokens=5)
    source = torch.tensor([Letters()("abc")["input_ids"]])
    (found,) = greedy_search(from_huggingface(theirs), source, bos_id=0, eos_id=1, max_new_tokens=5)
    assert explorer.greedy()[1] == pytest.approx(found.log_probability, abs=1e-3)


def test_other_models_are_refused() -> None:
    with pytest.raises(TypeError, match="or an encoder-decoder of Hugging Face with its tokenizer, not Transformer"):
        DecodingExplorer.from_model(translator().model, SENTENCE)


def assert_best(page: Page, explorer: DecodingExplorer) -> None:
    text, log_p, *_ = explorer.results()[0]
    lead = page.locator(".node.lead")
    assert float(lead.get_attribute("data-value")) == pytest.approx(log_p, abs=1e-6)
    assert (lead.get_attribute("aria-label") or "").startswith(f"“{text}”")
    same = text == explorer.greedy()[0]
    assert ("Both write the same" if same else "They differ") in page.locator(".tt-found").inner_text()


@in_browser
@pytest.mark.parametrize("sentence", range(3))
def test_the_best_at_the_end_is_pythons_under_every_penalty(sentence: int, show: Show) -> None:
    explorer = specimen()
    explorer.sentence = sentence
    explorer.step = len(explorer.sentences[sentence]["candidates"]) - 1
    page = show(explorer)
    page.get_by_text("Length penalty and data").click()
    assert_best(page, explorer)
    for key, alpha in (("Home", 0.0), ("End", 2.0)):
        page.get_by_label("Length penalty").press(key)
        explorer.alpha = alpha
        assert_best(page, explorer)


@in_browser
@pytest.mark.parametrize("sentence", range(3))
def test_every_step_shows_what_the_beam_keeps_and_greedys_beginning(sentence: int, show: Show) -> None:
    explorer = specimen()
    explorer.sentence = sentence
    page = show(explorer)
    page.get_by_text("Length penalty and data").click()
    one = explorer.sentences[sentence]
    for step, candidates in enumerate(one["candidates"], start=1):
        newest = f'.node[data-column="{step}"]'
        shown = numbers(page, newest).tolist()
        for total in (total for _, _, total, fate in candidates if fate):
            assert shown.pop(next(i for i, value in enumerate(shown) if abs(value - total) < 1e-6)) < 0
        # Beside them only greedy's beginning, where the beam has dropped it.
        own = sum(gain for _, gain in one["greedy"][:step])
        assert shown == ([pytest.approx(own, abs=1e-6)] if shown else [])
        if step <= len(one["greedy"]):
            assert numbers(page, f"{newest}.greedy") == pytest.approx([own], abs=2e-3)
        kept = sum(fate == KEPT for *_, fate in candidates)
        assert page.locator(f"{newest}[aria-label*=', kept']").count() == kept
        assert page.locator(".tt-player output").inner_text() == f"token {step} of {len(one['candidates'])}"
        press(page, "Next")
    assert f"the translator {one['model']} of training" in whole_text(page)
    page.get_by_label("Translate").select_option(index=(sentence + 1) % 3)
    expect(page.locator(".tt-player output")).to_contain_text("token 1 of")


@in_browser
def test_a_beginning_that_the_reader_keeps_is_judged_one_word_later(show: Show) -> None:
    page = show(specimen())
    for word, verdict in (("“j'”", "Yes."), ("“je”", "No.")):
        page.get_by_role("button", name=word).first.click()
        found = page.locator(".tt-found")
        expect(found).to_contain_text(verdict)
        expect(found).to_contain_text("“j'évite” has overtaken greedy’s “je évitent”")
        expect(page.locator("svg text", has_text="yours")).to_have_count(1)
        page.get_by_role("button", name="Reset").click()


@in_browser
def test_streams_are_as_broad_as_their_beginnings_are_probable(show: Show) -> None:
    page = show(specimen())
    page.wait_for_timeout(400)
    values = numbers(page, '.node[data-column="1"]')
    broad = page.locator(".stream").evaluate_all("all => all.map((e) => +e.dataset.broad)")
    both = [(width, math.exp(value)) for width, value in zip(broad, values, strict=True) if width > 1]
    assert len(both) == 2
    assert both[0][0] / both[1][0] == pytest.approx(both[0][1] / both[1][1], rel=0.01)


@in_browser
def test_the_finding_tells_who_leads_and_when_greedy_is_overtaken(show: Show) -> None:
    explorer = specimen()
    explorer.sentence = 0
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
    explorer.sentence, explorer.step = 0, 5
    page = show(explorer)
    lead, own = page.locator(".node.lead"), page.locator('.node.greedy[data-column="6"]')
    assert (lead.count(), own.count()) == (1, 1)
    values = [float(one.get_attribute("data-value")) for one in (lead, own)]
    assert values[0] > values[1]
    assert "“de” and “le” into “du”" in page.locator(".tt-found").inner_text()
    share = float(re.search(r"([\d.]+)\xa0%", lead.get_attribute("aria-label"))[1])
    assert share == pytest.approx(100 * math.exp(values[0]), abs=0.51)


@in_browser
def test_where_greedys_is_likelier_the_division_by_the_length_is_told(show: Show) -> None:
    explorer = specimen()
    explorer.sentence = 2
    explorer.step = len(explorer.sentences[2]["candidates"]) - 1
    (best, gain, length, *_), others = explorer.results()[0], explorer.results()[1:]
    text, total = explorer.greedy()
    assert best != text
    assert gain < total
    assert any(other[0] == text and other[2] < length for other in others)
    page = show(explorer)
    assert "shorter. The beam divides by the length" in page.locator(".tt-found").inner_text()


@in_browser
def test_every_sentence_has_the_same_height(show: Show) -> None:
    page = show(specimen())
    heights = set()
    for index in range(3):
        page.get_by_label("Translate").select_option(index=index)
        page.wait_for_timeout(400)
        heights.add((page.locator("svg").first.bounding_box() or {})["height"])
    assert len(heights) == 1


@in_browser
@pytest.mark.parametrize("sentence", range(3))
def test_it_says_whether_the_length_penalty_changes_the_best(sentence: int, show: Show) -> None:
    explorer = specimen()
    explorer.sentence = sentence
    explorer.step = len(explorer.sentences[sentence]["candidates"]) - 1
    best = []
    for alpha in (0.0, 2.0):
        explorer.alpha = alpha
        best.append(explorer.results()[0][0])
    page = show(explorer)
    page.get_by_text("Length penalty and data").click()
    told = "Here the same one is best for every α" if best[0] == best[1] else "Here α decides which one is best."
    assert told in whole_text(page)


@in_browser
def test_what_has_left_the_picture_on_a_phone_stands_above_it(show: Show) -> None:
    explorer = specimen()
    lengths = [len(one["candidates"]) for one in explorer.sentences]
    explorer.sentence = lengths.index(max(lengths))
    explorer.step = max(lengths) - 1
    page = show(explorer, width=390)
    before = (page.locator('[data-key="gone"]').text_content() or "").removeprefix("before: ")
    assert before
    natural = """all => all.map((word) => {
        const set = word.getAttribute("textLength");
        word.removeAttribute("textLength");
        const width = word.getComputedTextLength();
        if (set) word.setAttribute("textLength", set);
        return [Number(set || width), width];
    })"""
    drawn = page.locator("text.word").evaluate_all(natural)
    assert all(shown <= width + 0.5 for shown, width in drawn), "a token is never stretched"
    assert page.locator('.stream[d^="M0 "]').count(), "streams come in from the left edge"
    assert explorer.results()[0][0].startswith(before)
    assert show(explorer, width=900).locator('[data-key="gone"]').count() == 0


@in_browser
def test_pointing_at_a_beginning_tells_its_numbers_and_a_click_keeps_them(show: Show) -> None:
    explorer = specimen()
    explorer.step = 1
    page = show(explorer)
    found = page.locator(".tt-found")
    before = found.inner_text()
    boxes = page.locator('rect.node[data-column="2"]')
    assert boxes.count() > 2
    for index in range(boxes.count()):
        box = boxes.nth(index)
        key, total = box.get_attribute("data-key"), float(box.get_attribute("data-value"))
        parent = page.locator(f'[data-key="{key.rsplit(",", 1)[0]}"]')
        box.hover()
        told = found.inner_text()
        whole, start, last = (float(number) for number in re.findall(r"\b0\.\d{3}\b", told))
        assert whole == pytest.approx(math.exp(total), abs=5.1e-4)
        assert start == pytest.approx(math.exp(float(parent.get_attribute("data-value"))), abs=5.1e-4)
        assert last == pytest.approx(math.exp(total - float(parent.get_attribute("data-value"))), abs=5.1e-4)
        assert page.locator("rect.node.on").count() == 3  # the start, the first token, this one
        page.mouse.move(0, 0)
        assert found.inner_text() == before
    page.locator('rect.node[data-column="1"]').first.click()  # back to it
    assert re.match(r".*: 0\.\d{3}; kept", found.inner_text())
    press(page, "Reset")
    kept = page.locator('rect.node[data-column="2"]:not(.dead)').first
    kept.focus()
    kept.press("Enter")
    assert re.match(r".*: 0\.\d{3} = .*; kept\. (Yes|No)\. ", found.inner_text())


@in_browser
def test_a_tap_keeps_the_numbers_of_a_beginning_that_was_given_up(show: Show) -> None:
    explorer = specimen()
    explorer.sentence = 0
    explorer.step = len(explorer.sentences[0]["candidates"]) - 1
    page = show(explorer)
    found, before = page.locator(".tt-found"), page.locator(".tt-found").inner_text()
    given_up = page.locator('rect.node[aria-label*="finished"], rect.node[aria-label*="dropped"]').last
    given_up.hover()
    told = found.inner_text()
    assert re.match(r".*: .*; (finished|dropped)", told)
    given_up.click()
    page.mouse.move(0, 0)
    assert found.inner_text() == told
    press(page, "Reset")
    assert found.inner_text() == before
