"""The claims ledger, and the callout that a chapter shows for a claim."""

import html
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch

from ttutor.claims import MIME, VERDICTS, Claim, ClaimContradicted, all_claims, below, claim, in_short
from ttutor.measurement import format_number, magnitude

ROOT = Path(__file__).resolve().parents[1]
BIBLIOGRAPHY = ROOT / "book" / "references.bib"


class Balance(HTMLParser):
    """Collects text, and complains about tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parse(markup: str) -> Balance:
    parser = Balance()
    parser.feed(markup)
    assert parser.open == []
    return parser


# ---------------------------------------------------------------- the ledger


def test_the_ledger_is_complete_and_numbered_without_gaps() -> None:
    assert len(all_claims()) == 232
    for prefix, ids in itertools.groupby(all_claims(), lambda claim_id: claim_id.partition("-")[0]):
        assert all(claim_id == f"{prefix}-{number:02d}" for number, claim_id in enumerate(ids, 1))


def test_sources_stand_in_the_bibliography_which_has_no_entry_twice() -> None:
    keys = re.findall(r"^@\w+\{([^,\s]+),", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(keys) == len(set(keys))
    named = {source for entry in all_claims().values() for source in entry.sources}
    assert named <= set(keys), f"not in the bibliography: {sorted(named - set(keys))}"


def test_a_verdict_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="verdict 'true'.*right"):
        Claim(id="X-01", chapter="x", verdict="true", statement="s", correct="c", measure="m")


# ---------------------------------------------------------------- the callout


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_callout_says_everything_in_words(verdict: str) -> None:
    entry = next(entry for entry in all_claims().values() if entry.verdict == verdict)
    shown = claim(entry.id, measured={"gap": 0.123456}, agrees=True, source="vaswani2017")
    page = parse(shown._repr_html_())
    for text in (page.text, repr(shown)):
        for part in (entry.id, entry.statement, verdict, *in_short(entry.correct), "gap", "0.123", "vaswani2017"):
            assert part in text
        assert "0.1234" not in text


def test_the_callout_shows_one_sentence_of_what_is_true_and_folds_the_rest() -> None:
    shown, _, folded = claim("ATT-02", measured={"gap": 0.123}, agrees=True)._repr_html_().partition("<details")
    assert "They cover the token itself as well" in shown
    assert "0.123" in folded
    assert "0.123" not in shown


def test_a_stored_output_carries_the_claims_record() -> None:
    measured = {"rows": torch.tensor([0.25, 0.75]), "all": np.bool_(True), "n": np.int64(12345), "note": 'a "<b>" & b'}
    shown = claim("ATT-10", measured=measured, agrees=True)
    expected = [["rows", "[0.25, 0.75]"], ["all", "yes"], ["n", "12,345"], ["note", 'a "<b>" & b']]
    record = {"claim": "ATT-10", "verdict": "wrong", "measured": expected, "source": None}
    assert json.loads(json.dumps(shown._repr_mimebundle_())) == {MIME: record}
    assert shown._repr_html_().startswith('<div class="ttutor-claim verdict-wrong" id="claim-ATT-10" ')


def test_a_cited_claim_needs_no_measurement_and_does_not_say_that_it_agrees() -> None:
    shown = claim("ATT-24", source="ramapuram2024")
    record = shown._repr_mimebundle_()[MIME]
    assert (record["source"], record["measured"]) == ("ramapuram2024", None)
    assert "Measured" not in repr(shown) + shown._repr_html_()


def test_what_is_measured_is_never_markup() -> None:
    markup = claim("ATT-01", measured={"<img src=x>": "<script>alert(1)</script>"}, agrees=True)._repr_html_()
    assert "<img" not in markup
    assert "<script" not in markup
    assert html.escape("<script>alert(1)</script>") in markup


def test_noise_in_the_last_digits_of_another_processor_does_not_show() -> None:
    def show(noise: float) -> str:
        measured = {"a": 0.5 + noise, "b": [1 / 3 + noise, {"c": -0.0}], "t": torch.tensor([[2.0 + noise]])}
        tiny = below(abs(noise), 1e-12)
        return claim("ATT-03", measured={"x": measured, "y": tiny}, agrees=True)._repr_html_()

    assert show(0.0) == show(1e-15) == show(-1e-15)
    assert "0.333" in show(0.0)


@pytest.mark.parametrize("false", [False, np.bool_(False), torch.tensor(False), np.array([False])])
def test_a_measurement_that_contradicts_the_verdict_fails_the_cell(false: object) -> None:
    with pytest.raises(ClaimContradicted, match=r"ATT-03[\s\S]*right[\s\S]*row sum: 0.9"):
        claim("ATT-03", measured={"row sum": 0.9}, agrees=false)
    assert issubclass(ClaimContradicted, AssertionError)


NOT_ONE_BOOL = [None, 1, 0.3, "yes", torch.tensor([True, True]), np.array([True, False]), torch.tensor(1.0), [True]]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        *(({"measured": 1.0, "agrees": one}, TypeError, "has to be one True or False") for one in NOT_ONE_BOOL),
        ({}, ValueError, "needs measured=.* or source="),
        ({"source": "vaswani2017", "agrees": True}, TypeError, "measured nothing"),
        *(({"source": blank}, TypeError, "key of the bibliography") for blank in ("", "  ")),
        *(
            ({"measured": measured, "agrees": True}, ValueError, "give between 1 and")
            for measured in ({}, [], torch.zeros(100), {"a": []})
        ),
        *(
            ({"measured": measured, "agrees": True}, TypeError, "cannot show a measured")
            for measured in (object(), {"a": {1, 2}}, b"bytes", {"a": None})
        ),
    ],
)
def test_a_claim_that_is_not_said_properly_is_refused(arguments: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        claim("ATT-03", **arguments)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("ATT-1", "no claim 'ATT-1'; near matches: .*ATT-1"),
        ("att-03", "near matches: .*ATT-03"),
        ("ATTN-03", "near matches: .*ATT-03"),
        ("????", "all_claims"),
    ],
)
def test_an_unknown_id_lists_near_matches_or_says_how_to_find_one(wrong: str, words: str) -> None:
    with pytest.raises(KeyError, match=words):
        claim(wrong, measured=1.0, agrees=True)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (-0.0, "0"), (0.5, "0.5"), (1 / 3, "0.333"), (-2 / 3, "-0.667"), (27.7128, "27.7"),
        (999.6, "1,000"), (1234.5, "1,230"), (123456.0, "123,000"), (1e6, "1e6"), (1.25e7, "1.25e7"),
        (1e-4, "0.0001"), (9.99e-5, "9.99e-5"), (3.6e-16, "3.6e-16"), (4096, "4096"), (63082496, "63,082,496"),
        (-12345, "-12,345"), (True, "yes"), (np.False_, "no"), (np.float32(0.1), "0.1"), (np.int64(3), "3"),
        (float("nan"), "not a number"), (float("inf"), "infinity"), (float("-inf"), "-infinity"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_a_reader(value: object, shown: str) -> None:
    assert format_number(value) == shown


def test_fewer_digits_on_request() -> None:
    assert claim("TRN-07", measured={"loss": 0.0437}, agrees=True, digits=1).measured == {"loss": 0.04}


@pytest.mark.parametrize("value", [1e-6, 1.0, -1.0, float("nan")])
def test_below_refuses_what_is_not_below(value: float) -> None:
    with pytest.raises(ClaimContradicted, match="expected a value below 1e-6"):
        below(value, 1e-6)


@pytest.mark.parametrize("value", [1e-8, -1e-9, torch.tensor(1e-8)])
def test_below_takes_errors_of_either_sign(value) -> None:
    assert below(value, 1e-6) == "below 1e-6"


@pytest.mark.parametrize("value", [-0.5, 0.5, torch.tensor([[-0.5]], requires_grad=True), np.float32(-0.5)])
def test_magnitude_is_the_distance_from_zero(value) -> None:
    assert magnitude(value) == 0.5
