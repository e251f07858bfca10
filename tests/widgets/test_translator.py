"""The translator in the page: its script computes what Python does, and the figure shows what its traits say."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from tests.require import missing
from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, spoken, whole_text
from tests.widgets.test_decoding import SENTENCE, translator
from ttutor.corpora.datasets import data_root
from ttutor.translation.packed import PackedTranslator, load_packed
from ttutor.translation.what_if import switch_names, what_if
from ttutor.widgets import BlocksExplorer, HeadsExplorer, TranslatorExplorer
from ttutor.widgets.decoding import FINISHED
from ttutor.widgets.translator import EXAMPLES, answer_to

SOME_SENTENCES = [
    EXAMPLES[0],
    "The woman's bag is red, and her shoes are blue.",
    "3 men, 12 women & a dog: all of them laugh!",
    "“Where is the café?” asks the tourist — nobody’s answering …",
    "ÅNGSTRÖM, Łódź, 北京 and 🐎\u200d🐎 are not in the captions",
    "  two   blanks\tand a tab ",
    ".",
]
MORE_SENTENCES = [
    *EXAMPLES[1:],
    "A man rides a horse.",
    "Two dogs run through the snow.",
    "A child in a yellow raincoat jumps into a puddle.",
    "Several people are waiting for the bus in the rain.",
    "An elderly couple is dancing in front of a church.",
    "A young man with a beard is repairing his bicycle.",
    "Children are playing football on a green field while their parents watch them from the side.",
    "A cook is preparing food in a large kitchen, and a waiter is talking to the guests.",
    "The girl who is holding a balloon is looking at the man who is selling ice cream.",
    "Nobody is sitting at the table.",
    "A black and white cat sleeps on top of a car.",
    "Colourless green ideas sleep furiously.",
    "Quantum gravity puzzles 1,000 physicists at CERN.",
    "l'homme qu'il'y don't o'clock 'tis",
    "x",
]
"""Sentences of our own: captions, and what is nothing like one. The soak tests add the others to the first seven."""
RUN = """
async ([source, packed, questions]) => {
  window.engine ||= await import(`data:text/javascript;charset=utf-8,${encodeURIComponent(source)}`);
  if (packed) window.translating = new window.engine.TranslatorModel(window.engine.bytesOf(packed));
  const model = window.translating;
  const bytes = (floats) => {
    let text = "";
    for (const byte of new Uint8Array(Float32Array.from(floats).buffer)) text += String.fromCharCode(byte);
    return btoa(text);
  };
  return questions.map(({ text, off = [], by = "zero", beginning = [], longest, beam }) => {
    const source = model.read(text);
    const steps = [...model.greedy(source, { off: new Set(off), by, beginning, longest })];
    const ids = steps.map(({ id }) => id);
    const found = beam && [...model.beam(source, { size: beam })].at(-1).found;
    return { source, ids, text: model.text(ids, text),
      encoder: bytes(steps[0].weights.encoder.flat().flatMap(({ data }) => [...data])),
      last: ["decoder", "cross"].map((part) => bytes(steps.flatMap(({ weights }) => weights[part].flat().flatMap(
        ({ columns, data }) => [...data.slice(-columns)])))),
      logits: steps.map(({ logits }) => bytes(logits)),
      found: found && found.map(({ ids, total, score, finished }) => [model.text(ids, text), total, score, finished]) };
  });
}
"""


def specimen() -> TranslatorExplorer:
    """The figure as the gallery shows it."""
    return TranslatorExplorer()


def hostile() -> TranslatorExplorer:
    return TranslatorExplorer(packed_small(), HOSTILE[0], examples=HOSTILE)


def extremes() -> list[TranslatorExplorer]:
    long = " ".join(EXAMPLES)[:200]
    return [
        TranslatorExplorer(text=long),
        TranslatorExplorer(text="", view="heads"),
        TranslatorExplorer(text=EXAMPLES[1], view="beam", off=["positions"]),
        TranslatorExplorer(packed_small(), "incomprehensibilities" * 5),
    ]


TAP = ("button:has-text('Hund')", "looks most at “dog”")


@cache
def packed_small() -> PackedTranslator:
    """An untrained translator, as eight bits hold it."""
    return PackedTranslator.from_bytes(PackedTranslator.of(translator(), [SENTENCE]).to_bytes())


@pytest.fixture(scope="module")
def engine(browser: Browser) -> Iterator[Page]:
    """A page of nothing, in which the script's model runs."""
    page = browser.new_page()
    yield page
    page.close()


def ask(page: Page, packed: PackedTranslator | None, questions: list[dict]) -> list[dict]:
    source = files("ttutor.widgets") / "js" / "translator_model.js"
    carried = base64.b64encode(packed.to_bytes()).decode() if packed else ""
    answers = page.evaluate(RUN, [source.read_text(encoding="utf-8"), carried, questions])
    for one in answers:
        one["logits"] = torch.stack(list(map(floats, one["logits"])))
        one["encoder"], one["last"] = floats(one["encoder"]), list(map(floats, one["last"]))
    return answers


def floats(carried: str) -> torch.Tensor:
    return torch.tensor(np.frombuffer(base64.b64decode(carried), dtype=np.float32))


def assert_same(packed: PackedTranslator, question: dict, answer: dict) -> None:
    options = {name: question[name] for name in ("off", "beginning") if name in question}
    means = packed.head_means if question.get("by") == "mean" else None
    found = what_if(packed.translator, question["text"], means=means, longest=question["longest"], **options)
    assert tuple(answer["source"]) == found.source, question
    assert answer["ids"] == [step.token_id for step in found.steps], question
    assert (answer["logits"] - found.logits).abs().max() < 1e-4, question
    assert (answer["encoder"] - found.weights["encoder"].flatten()).abs().max() < 1e-4, question
    for part, looked in zip(("decoder", "cross"), answer["last"], strict=True):
        n_keys = [at + 1 if part == "decoder" else len(found.source) for at in range(len(found.steps))]
        rows = [found.weights[part][:, :, at, :n].flatten() for at, n in enumerate(n_keys)]
        assert (looked - torch.cat(rows)).abs().max() < 1e-4, (part, question)


@in_browser
@pytest.mark.parametrize("longest", [3, pytest.param(8, marks=pytest.mark.soak)])
def test_the_script_computes_pythons_logits_under_every_switch(engine: Page, longest: int) -> None:
    packed, names = packed_small(), switch_names(packed_small().translator.model)
    each = [(name, by) for name in names for by in ("zero", "mean")]
    questions = [{"text": SENTENCE, "off": [name], "by": by, "longest": longest} for name, by in each]
    questions += [{"text": SENTENCE, "off": list(pair), "longest": 4} for pair in zip(names, names[7:], strict=False)]
    questions += [{"text": "the red car", "beginning": [40, 50], "longest": 9, "off": names[-3:]}]
    for question, answer in zip(questions, ask(engine, packed, questions), strict=True):
        assert_same(packed, question, answer)


@in_browser
@pytest.mark.parametrize(
    "sentences", [SOME_SENTENCES, pytest.param(MORE_SENTENCES, marks=pytest.mark.soak)], ids=["some", "more"]
)
def test_the_script_translates_our_sentences_as_python_does(engine: Page, sentences: list[str]) -> None:
    assert_translates(engine, sentences)


@in_browser
@pytest.mark.soak
def test_the_script_translates_500_captions_as_python_does(engine: Page) -> None:
    path = data_root() / "multi30k" / "test_2016_flickr.en.gz"
    if not path.exists():
        missing("data", f"no {path.name}: `ttutor fetch multi30k`")
    assert_translates(engine, gzip.decompress(path.read_bytes()).decode().splitlines()[:500])


def assert_translates(page: Page, sentences: list[str]) -> None:
    """Logits of greedy search to 1e-4, and every hypothesis of a beam of four, word for word."""
    packed = load_packed()
    ask(page, packed, [])
    for text in sentences:
        best = packed.translator(text, beam_size=4, attention=False)  # by itself: a batch shares its limit
        question = {"text": text, "longest": 78, "beam": 4 if text.strip() else None}
        (answer,) = ask(page, None, [question])
        assert_same(packed, question, answer)
        found = [one[0] for one in answer["found"]]
        assert found == [best.text, *(text for text, _ in best.alternatives)], text
        assert answer["found"][0][2] == pytest.approx(best.score, abs=1e-4), text


def answer_shown(page: Page) -> dict:
    return json.loads(page.evaluate("JSON.stringify(window.shownAnswer)"))


def settled(page: Page) -> None:
    expect(page.locator("section.tt[aria-busy=true]")).to_have_count(0, timeout=20_000)


def written(page: Page) -> str:
    return " ".join(page.locator(".written .chip").all_inner_texts())


def test_what_is_stored_is_what_python_computes() -> None:
    stored, now = specimen().answer, answer_to(load_packed(), text=EXAMPLES[0])
    assert stored.keys() == now.keys()
    for name in stored.keys() - {"written", "weights", "usual_probabilities"}:
        assert stored[name] == now[name], name
    assert [one[0] for one in stored["written"]] == [one[0] for one in now["written"]]
    assert [one[1] for one in stored["written"]] == pytest.approx([one[1] for one in now["written"]], abs=2e-3)
    assert stored["usual_probabilities"] == pytest.approx(now["usual_probabilities"], abs=2e-3)
    np.testing.assert_allclose(stored["weights"], now["weights"], atol=2e-3)


def test_python_sets_what_is_asked_and_reads_the_answer() -> None:
    explorer = TranslatorExplorer(packed_small(), SENTENCE)
    usual = explorer.translation
    explorer.off = ["scale", "encoder.0"]
    assert explorer.off == ["encoder.0", "scale"]  # in the order of the model
    assert explorer.answer["usual_translation"] == usual
    assert explorer.answer == answer_to(packed_small(), text=SENTENCE, off=["encoder.0", "scale"])
    explorer.off = []
    explorer.beginning = [60]
    assert explorer.answer["written"][0][0] == 60
    assert "by=zero&beginning=60" in explorer.link("page.html")


def test_a_translator_of_your_own_will_do() -> None:
    explorer = TranslatorExplorer(translator(), SENTENCE)
    assert explorer.sizes == {"layers": 2, "heads": 2}
    assert explorer.answer == answer_to(packed_small(), text=SENTENCE)


@cache
def small() -> TranslatorExplorer:
    return TranslatorExplorer(packed_small(), SENTENCE)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("off", ["cross.2.0"], "nothing called 'cross.2.0' to switch off"),
        ("text", "x" * 201, "the length of text has to be from 0 to 200"),
        ("beginning", [99999], "a token of beginning has to be from 0 to"),
    ],
)
def test_bad_input_is_refused_with_a_reason(name, value, message) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        setattr(small(), name, value)


@in_browser
def test_a_reader_types_forces_a_word_and_switches_a_head_off(show: Show) -> None:
    page = show(specimen(), width=360)
    line = page.get_by_label("English sentence")
    assert line.evaluate("e => e.scrollWidth === e.clientWidth")  # its example has room
    line.fill("Two dogs run through the snow.")
    settled(page)
    expected = answer_to(load_packed(), text="Two dogs run through the snow.")
    assert spoken(page).inner_text().startswith(expected["translation"])
    page.locator(".written .chip").nth(1).click()
    ranked = expected["written"][1][2]
    shown = page.locator(".next .number").all_inner_texts()
    assert shown == ["<0.01" if 0 < p < 0.005 else f"{p:.2f}" for _, p in ranked]
    page.locator(".next button").nth(1).click()
    settled(page)
    beginning = [expected["written"][0][0], ranked[1][0]]
    forced = answer_to(load_packed(), text="Two dogs run through the snow.", beginning=beginning)
    assert f"ticks: before. Underlined: changed. Before: {expected['translation']}" in whole_text(page)
    assert spoken(page).inner_text().startswith(forced["translation"])
    usual = {step[0] for step in expected["written"]}
    new = {step[0] for step in forced["written"][2:]} - usual
    said = page.locator(".tt-found").inner_text()
    assert bool(re.search("It (adds|writes) ", said)) == bool(new)
    assert "from your “" in said or "come only words that were there before" in said
    page.get_by_text("Reset", exact=True).click()
    page.get_by_role("radio", name="Heads").check(force=True)
    for layer in range(4):
        page.get_by_role("switch", name=f"whole decoder layer {layer}").click()
    settled(page)
    broken = answer_to(load_packed(), text=EXAMPLES[0], off=[f"decoder.{layer}" for layer in range(4)])
    assert spoken(page).inner_text().startswith(broken["translation"])
    assert "Without 4 parts" in whole_text(page)
    assert {token_id for token_id, *_ in broken["written"]}.isdisjoint(broken["usual"])
    assert len(broken["written"]) > 3
    assert "nothing is left of the translation" in whole_text(page)
    assert page.locator(".chip.other").count() == 3  # of one token that is repeated
    page.get_by_role("radio", name="Cross").check(force=True)
    for head in page.locator(".switch:not(.layer)").all():
        expect(head).to_have_attribute("aria-checked", "false")


@in_browser
def test_the_sentence_that_is_typed_goes_on_in_the_heads(show: Show) -> None:
    typed, query = "Two dogs run through the snow.", 3
    page = show(specimen(), HeadsExplorer.translating())
    figure, expected = page.locator("[data-explorer=heads]"), HeadsExplorer.translating(typed)
    page.get_by_label("English sentence").fill(typed)
    settled(page)
    figure.get_by_role("button", name=f"{expected.tokens[query]} asks").click()
    names = figure.locator("[data-key^=query]").all_text_contents()
    assert names == expected.tokens
    for head, button in enumerate(figure.locator(".heads button").all()):
        button.click()
        shown = figure.locator("text[data-value]").evaluate_all("all => all.map((e) => +e.dataset.value)")
        np.testing.assert_allclose(shown, expected.weights[0][head][query], atol=2e-3)
    # Where a part is switched off, it is another model: the heads stay what they are.
    page.get_by_role("radio", name="Heads").check(force=True)
    page.locator(".switch").nth(1).click()
    settled(page)
    after = figure.locator("text[data-value]").evaluate_all("all => all.map((e) => +e.dataset.value)")
    assert after == shown


@in_browser
@pytest.mark.parametrize("typed", ["Two dogs run through the snow.", "A woman sings."])
def test_the_sentence_that_is_typed_goes_through_the_whole_machine(show: Show, typed: str) -> None:
    page = show(specimen(), BlocksExplorer.translating())
    machine, expected = page.locator("[data-explorer=blocks]"), BlocksExplorer.translating(typed)
    page.get_by_label("English sentence").fill(typed)
    settled(page)
    words = machine.locator("[data-words=source_ids] text").all_text_contents()
    assert words == expected.run["tokens"]
    assert machine.locator("[data-words=softmax] text").all_text_contents() == expected.run["next"]
    found, digits = machine.locator(".tt-found"), re.compile(r"−?\d+\.\d+")

    def shown() -> list[float]:
        return [float(number.replace("−", "-")) for number in digits.findall(found.inner_text())]

    stations = (
        ("vectors", "source_add", "source_word"),
        ("weights", "encoder.self_attention", "source_word"),
        ("vectors", "memory", "source_word"),
        ("weights", "decoder.self_attention", "target_word"),
        ("weights", "decoder.cross_attention", "target_word"),
        ("vectors", "decoder.feed_forward", "target_word"),
    )
    machine.get_by_role("button", name="Next").click()
    for kind, part, word in stations:
        machine.get_by_role("button", name="Next").click()
        numbers = expected.run[kind][part][getattr(expected, word)]
        if kind == "vectors":
            length = expected.run["lengths"][part][getattr(expected, word)]
            np.testing.assert_allclose(shown(), [*numbers[:3], length], atol=0.11)
        else:
            n = expected.target_word + 1 if part == "decoder.self_attention" else len(numbers)
            np.testing.assert_allclose(shown()[:n], numbers[:n], atol=2e-3)
    machine.get_by_role("button", name="Next").click()
    best = expected.run["best"][expected.target_word]
    np.testing.assert_allclose(shown(), [logit for _, logit, _ in best], atol=0.02)
    machine.get_by_text("Reset", exact=True).click()
    assert machine.locator("[data-words=source_ids] text").all_text_contents() == words


@in_browser
def test_words_that_were_never_read_are_told_and_the_beam_is_pythons(show: Show) -> None:
    page = show(specimen())
    page.get_by_label("English sentence").fill("A man eats quantum soup.")
    settled(page)
    assert "never read “quantum”" in whole_text(page)
    page.get_by_role("radio", name="Beam").check(force=True)
    settled(page)
    best = load_packed().translator("A man eats quantum soup.", beam_size=4, attention=False)
    shown = [text.strip() for text in page.locator(".found li > span:first-child").all_inner_texts()]
    assert [text.replace(" ", "") for text in shown] == [
        text.replace(" ", "") for text in (best.text, *(text for text, _ in best.alternatives))
    ]
    values = page.locator(".found li").evaluate_all("all => all.map((e) => +e.dataset.value)")
    tree = answer_to(load_packed(), text="A man eats quantum soup.", view="beam")["tree"]
    ended = [total for step in tree for _, _, total, fate in step if fate >= FINISHED]
    assert all(min(abs(value - total) for total in ended) < 2e-3 for value in values)


SAID = ".tt-found, .tt-card > .tt-note, .strange, .found"
# What the figure has said in words, with the question that stood then, at every change until it is done.
WATCH = f"""
() => {{
  const root = document.querySelector('.explorer > div').shadowRoot;
  const section = root.querySelector('section.tt');
  window.seen = [];
  const look = () => section.hasAttribute('aria-busy') && window.seen.push(
    [...root.querySelectorAll({SAID!r})].map((e) => e.hidden ? '' : e.textContent).join('|'));
  new MutationObserver(look).observe(root, {{ subtree: true, childList: true, characterData: true, attributes: true }});
}}
"""


@in_browser
def test_nothing_is_said_while_an_answer_is_still_computed(show: Show) -> None:
    page = show(specimen())
    page.get_by_label("English sentence").fill("A man eats quantum soup.")
    settled(page)
    page.evaluate(WATCH)
    page.get_by_role("radio", name="Beam").check(force=True)
    settled(page)
    page.get_by_role("radio", name="Heads").check(force=True)
    settled(page)
    for layer in range(2):
        page.get_by_role("switch", name=f"whole decoder layer {layer}").click()
        settled(page)
    seen = set(page.evaluate("window.seen"))
    assert seen
    assert {words.replace("|", "") for words in seen} == {"It writes …"}
    page.get_by_role("radio", name="Beam").check(force=True)
    settled(page)
    expect(page.locator(".tt-found")).not_to_contain_text("It writes")


@in_browser
@pytest.mark.parametrize("view", ["Words", "Heads", "Beam"])
def test_an_empty_line_leaves_no_translation_and_no_warning(show: Show, view: str) -> None:
    page = show(specimen())
    page.get_by_role("radio", name=view).check(force=True)
    page.get_by_label("English sentence").fill("A man eats quantum soup.")
    settled(page)
    page.get_by_label("English sentence").fill("")
    expect(page.locator(".chip")).to_have_count(0)  # a figure waits a moment for more letters before it is busy
    settled(page)
    assert page.locator(".strange").is_hidden()
    assert "“" not in page.locator(".tt-found").inner_text()
    assert page.locator(".tt-card > .tt-note").first.inner_text() == ""


@in_browser
def test_each_view_says_what_it_shows_also_beside_a_forced_word(show: Show) -> None:
    page = show(specimen())
    page.locator(".written .chip").nth(2).click()
    page.locator(".next button").nth(4).click()
    settled(page)
    found = page.locator(".tt-found")
    expect(found).to_contain_text("from your “")
    page.get_by_role("radio", name="Heads").check(force=True)
    settled(page)
    expect(found).to_contain_text("on average of all heads")
    page.get_by_role("radio", name="Beam").check(force=True)
    settled(page)
    expect(found).to_contain_text("The beam searches without your words.")


@in_browser
def test_after_an_end_mark_that_was_forced_nothing_is_written(show: Show) -> None:
    page = show(specimen())
    page.locator(".next button").filter(has_text="end").first.click()
    settled(page)
    said = page.locator(".tt-found").inner_text()
    assert said.startswith("It leaves out ")
    assert said.endswith(", because nothing is written after your end mark.")


CHANGED = "Bars: how probable; ticks: before. Underlined: changed."


@in_browser
def test_what_a_head_changes_is_told_beside_the_words_that_were_forced(show: Show) -> None:
    page = show(specimen())
    page.locator(".next button").nth(1).click()
    settled(page)
    found, note = page.locator(".tt-found"), page.locator(".tt-card > .tt-note").first
    assert found.inner_text() == "It writes “schwarze” instead of “schwarzer”, because it writes on from your “Eine”."
    free, forced = specimen(), specimen()
    forced.beginning = [free.answer["written"][0][2][1][0]]
    assert note.inner_text() == f"{CHANGED} Before: {free.translation}"
    page.get_by_role("radio", name="Heads").check(force=True)
    for name, expected in (("cross.3.1", ", no word changes; “"), ("decoder.0", "3 tokens are added")):
        forced.off, before = [*forced.off, name], forced.answer["usual_translation"]
        label = "head 1 of layer 3" if name[0] == "c" else "whole decoder layer 0"
        page.get_by_role("switch", name=label).click()
        settled(page)
        assert expected in found.inner_text()
        if forced.translation != forced.answer["usual_translation"]:
            assert note.inner_text() == f"{CHANGED} With all on: {forced.answer['usual_translation']}"
    assert before.startswith("Eine")
    forced.view, free.off = "beam", forced.off
    assert forced.answer["usual"] == [one[0] for one in free.answer["written"]]
    page.get_by_role("radio", name="Beam").check(force=True)
    settled(page)
    assert note.inner_text() == f"{CHANGED} Without your words: {free.translation}"


@in_browser
def test_a_change_of_no_word_names_the_probability_that_moved_most(show: Show) -> None:
    page = show(specimen())
    page.get_by_role("radio", name="Heads").check(force=True)
    page.get_by_role("switch", name="whole decoder layer 0").click()
    settled(page)
    off = answer_to(load_packed(), text=EXAMPLES[0], off=["decoder.0"])
    assert off["usual"] == [one[0] for one in off["written"]]
    moves = [(now - was, was, now) for (_, now, _), was in zip(off["written"], off["usual_probabilities"], strict=True)]
    far, was, now = max(moves, key=lambda move: abs(move[0]))
    said = page.locator(".tt-found").inner_text()
    assert said.startswith("Without the whole decoder layer 0, no word changes; ")
    assert said.endswith(f" {'falls' if far < 0 else 'rises'} most, from {was:.2f} to {now:.2f}.")
    ticks = page.locator(".written .chip").evaluate_all("all => all.map((e) => e.style.getPropertyValue('--was'))")
    assert [tick and float(tick) for tick in ticks] == [
        pytest.approx(was, abs=2e-3) if abs(far) >= 0.005 else "" for far, was, _ in moves
    ]
    page.get_by_text("Reset", exact=True).click()
    assert page.locator(".chip.was").count() == 0


@in_browser
def test_what_is_off_looks_nowhere(show: Show) -> None:
    page = show(specimen())
    page.get_by_role("radio", name="Heads").check(force=True)
    settled(page)
    lines = page.locator(".stage path")
    assert lines.count() > 0
    page.get_by_role("switch", name="head 1 of layer 2").click()
    settled(page)
    assert answer_to(load_packed(), text=EXAMPLES[0], off=["cross.2.1"], layer=2, head=1)["weights"] == []
    assert lines.count() == 0
    assert page.locator("[aria-label*=weight]").count() == 0
    assert "No lines: head 1 of layer 2 is off and looks nowhere." in whole_text(page)
    page.get_by_role("button", name="Show the mean of all").click()
    settled(page)
    without = answer_to(load_packed(), text=EXAMPLES[0], off=["cross.2.1"])["weights"]
    chips = page.get_by_role("group", name="what was read").get_by_role("button")
    shown = chips.evaluate_all("all => all.map((e) => +e.style.getPropertyValue('--w'))")
    assert shown == pytest.approx(without[0], abs=2e-3)
    for layer in range(4):
        for head in range(4):
            if (layer, head) != (2, 1):
                page.get_by_role("switch", name=f"head {head} of layer {layer}").click()
    page.get_by_role("button", name="Show the mean of all").click()
    settled(page)
    assert lines.count() == 0
    # As many change as are there no longer, along a longest common part.
    off = answer_to(load_packed(), text=EXAMPLES[0], off=[f"cross.{i}.{j}" for i in range(4) for j in range(4)])
    written, usual = [one[0] for one in off["written"]], off["usual"]
    kept = sum(block.size for block in SequenceMatcher(None, usual, written, autojunk=False).get_matching_blocks())
    n_lost = len(usual) - kept
    assert f"Without 16 parts, {n_lost} of {len(usual)} tokens change." in whole_text(page)
    assert page.locator(".chip.other").count() == len(written) - kept
    assert "No lines: all these heads are off and look nowhere." in whole_text(page)


@in_browser
def test_what_the_beam_finds_is_told_beside_its_best_however_improbable_that_is(show: Show) -> None:
    text = " ".join(EXAMPLES)[:200]
    page = show(TranslatorExplorer(text=text, view="beam"))
    totals = page.locator(".found li").evaluate_all("all => all.map((e) => +e.dataset.value)")
    assert totals[0] < -7
    shown = page.locator(".found .number").all_inner_texts()
    ratios = [math.exp(total - totals[0]) for total in totals]
    assert shown == ["1", *("<0.01" if ratio < 0.005 else f"{ratio:.2f}" for ratio in ratios[1:])]
    widths = page.locator(".found .bar").evaluate_all("all => all.map((e) => parseFloat(e.style.width))")
    assert widths == pytest.approx([100 * ratio / max(ratios) for ratio in ratios], abs=0.1)
    told = re.search(r"of probability 1 in ([\d\u202f]+)", whole_text(page))[1]
    assert float(told.replace("\u202f", "")) == pytest.approx(math.exp(-totals[0]), rel=0.06)


@in_browser
def test_one_word_alone_is_framed_and_the_panel_is_about_it(show: Show) -> None:
    page = show(specimen())
    page.get_by_role("group", name="what was read").get_by_role("button").nth(2).click()
    settled(page)
    explorer = specimen()
    explorer.part = "encoder"
    row = explorer.answer["weights"][2]
    assert page.locator(".chip.on").all_inner_texts() == ["dog"]
    assert page.locator(".next").is_hidden()
    shown = page.locator(".panel .tt-bars .number").all_inner_texts()
    assert shown == ["<0.01" if 0 < p < 0.005 else f"{p:.2f}" for p in sorted(row, reverse=True)[:5]]
    page.get_by_label("English sentence").fill("A man eats soup.")
    settled(page)
    assert page.locator(".chip.on").all_inner_texts() == page.locator(".written .chip").all_inner_texts()[:1]
    assert page.locator(".next button").count() == 5


@in_browser
def test_an_address_says_what_is_shown_and_shows_it_again(show: Show) -> None:
    explorer = specimen()
    explorer.off = ["cross.1.2", "positions"]
    explorer.by = "mean"
    page = show(specimen())
    page.evaluate("address => history.replaceState(null, '', address)", explorer.link(""))
    page = show_again(page, show, specimen())
    settled(page)
    assert explorer.translation in spoken(page).inner_text()
    assert unquote(page.evaluate("location.hash")) == unquote(explorer.link("")).replace("+", "+")
    for nonsense in ("#what-if?off=a,b&layer=99&beginning=x&view=no", "#what-if?"):
        page.evaluate("address => history.replaceState(null, '', address)", nonsense)
        page = show_again(page, show, specimen())
        settled(page)
        assert specimen().translation in spoken(page).inner_text()


def show_again(page: Page, show: Show, explorer: TranslatorExplorer) -> Page:
    """Mount anew without leaving the address."""
    from tests.widgets.conftest import MOUNT

    assert page.evaluate(MOUNT, explorer.to_html())
    return page


@in_browser
def test_without_its_weights_the_stored_example_stands_and_the_figure_says_why(
    browser: Browser, tmp_path: Path
) -> None:
    from ttutor.widgets.base import _PAGE
    from ttutor.widgets.static import static_script

    path = tmp_path / "alone.html"
    body = specimen().to_html()
    path.write_text(_PAGE.format(title="Alone", body=body, script=static_script(["translator"])), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.get_by_label("English sentence").fill("x")
    expect(page.locator(".strange")).to_contain_text("could not be loaded here (page_translator.js did not load)")
    assert written(page).startswith("Ein schwarzer Hund")
    page.close()


@pytest.mark.soak
def test_what_the_tour_says_of_the_switches_is_so() -> None:
    """Each head of its sentence can go unnoticed, the positions cannot, and in another sentence a head matters."""
    packed = load_packed()
    heads = [name for name in switch_names(packed.translator.model) if name.count(".") == 2]

    def changed(text: str) -> list[str]:
        usual = answer_to(packed, text=text)["translation"]
        return [name for name in heads if answer_to(packed, text=text, off=[name])["translation"] != usual]

    dog, boy = "A black dog chases a white cat.", "A little boy throws a ball to his dog."
    assert {dog, boy} <= set(EXAMPLES)
    assert len(heads) == 48
    assert changed(dog) == []
    assert "schwarze Katze" in answer_to(packed, text=dog, off=["positions"])["translation"]
    assert changed(boy)
