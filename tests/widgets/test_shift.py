"""The shifted input: what is read and what has to be said, in Python and on the page."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser
from ttutor.widgets import ShiftExplorer


def specimen() -> ShiftExplorer:
    """The figure as the gallery shows it."""
    return ShiftExplorer()


def hostile() -> ShiftExplorer:
    return ShiftExplorer(HOSTILE)


def extremes() -> list[ShiftExplorer]:
    return [ShiftExplorer([f"token{i}" for i in range(24)]), ShiftExplorer(["a"])]


TAP = ("label:has-text('shift')", "it learns to copy")


def test_the_shift() -> None:
    made = ShiftExplorer(["un", "chat"])
    assert list(zip(made.decoder_input, made.labels, strict=True)) == [
        ("<bos>", "un"),
        ("un", "chat"),
        ("chat", "<eos>"),
    ]
    made.shifted = False
    assert made.decoder_input == made.labels


@in_browser
def test_what_is_read_and_said_is_pythons_at_every_position(show: Show) -> None:
    made = ShiftExplorer(position=0)
    page = show(made)
    for made.shifted in (True, False):
        page.get_by_label("shift the input").set_checked(made.shifted)
        for position, label in enumerate(made.labels):
            page.locator(f'[data-key="place{position}"]').click()
            seen = " ".join(made.decoder_input[: position + 1])
            expect(page.locator(".tt-found")).to_contain_text(f"It reads “{seen}” and has to say “{label}”")
            assert page.locator(".read, .answer").count() == position + 1
            assert page.locator(".answer").count() == (not made.shifted)
    page.locator('[data-key="place1"]').press("Enter")
    expect(page.locator(".tt-found")).to_contain_text("has to say “chat”")
