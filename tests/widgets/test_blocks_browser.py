"""The Transformer's picture as a reader without a kernel meets it: by pointer, keyboard and touch, at every level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_blocks import SMALL, specimen
from ttutor.widgets import BlocksExplorer
from ttutor.widgets.block_measure import measure_shapes
from ttutor.widgets.block_parts import LEVELS, PARTS, STEPS

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
# Text of the drawing that is too small, or sticks out of the box it stands in, or of the picture.
MISFITS = """
() => {
  const root = document.querySelector('.explorer > div').shadowRoot;
  const picture = root.querySelector('.picture svg').getBoundingClientRect();
  const misfits = [];
  for (const text of root.querySelectorAll('.picture text')) {
    const box = text.getBoundingClientRect();
    const size = parseFloat(getComputedStyle(text).fontSize) * picture.width
      / text.ownerSVGElement.viewBox.baseVal.width;
    const shape = text.parentNode.querySelector('.shape');
    const room = shape ? [...text.parentNode.querySelectorAll('.shape')].at(-1).getBoundingClientRect() : picture;
    if (size < 11) misfits.push(`${text.textContent}: ${size}px`);
    if (box.left < room.left - 1 || box.right > room.right + 1) misfits.push(`${text.textContent}: wider than its box`);
    if (box.left < picture.left || box.right > picture.right) misfits.push(`${text.textContent}: outside`);
  }
  return misfits;
}
"""


@pytest.fixture(autouse=True, scope="module")
def _each_model_is_run_once() -> Iterator[None]:
    """An explorer runs its model to see that the shapes are those it says; test_blocks.py tests that it does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ttutor.widgets.blocks.measure_shapes", cache(measure_shapes))
        yield


def part(page: Page, name: str) -> Locator:
    return page.locator(f'[data-id="{name}"]')


def panel(page: Page) -> str:
    return page.locator(".panel").inner_text()


def shown_parts(page: Page) -> list[str]:
    return page.locator("[data-id]").evaluate_all("all => all.map((e) => e.dataset.id)")


# ---------------------------------------------------------------- what is drawn


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_part_of_a_level_says_its_name_role_shape_and_count(level: str, norm: str, open_saved: Open) -> None:
    made = BlocksExplorer(level=level, norm=norm)
    page = open_saved(made)
    names = shown_parts(page)
    assert len(names) == len(set(names)) > 9
    for name in names:
        label = part(page, name).get_attribute("aria-label")
        title, role = made.facts["kinds"][PARTS[name].kind][:2]
        count = f"{made.parameters(name):,}".replace(",", "\u202f") if made.parameters(name) else "none"
        numbers = " × ".join(f"{size:,}".replace(",", "\u202f") for size in made.shape(name))
        assert label.startswith(title)
        assert role in label
        assert f"{PARTS[name].axes.replace(' ', ' × ')} = {numbers}" in label
        assert label.endswith(count)


def test_pre_norm_moves_every_norm_below_its_sublayer_and_adds_the_final_ones(open_saved: Open) -> None:
    page = open_saved(specimen())
    middle = "e => { const b = e.getBoundingClientRect(); return b.top + b.height / 2; }"
    pairs = [("encoder.norm_1", "encoder.self_attention"), ("encoder.norm_2", "encoder.feed_forward"),
             ("decoder.norm_1", "decoder.self_attention"), ("decoder.norm_2", "decoder.cross_attention"),
             ("decoder.norm_3", "decoder.feed_forward")]  # fmt: skip
    assert all(part(page, a).evaluate(middle) < part(page, b).evaluate(middle) for a, b in pairs)
    expect(part(page, "encoder.final_norm")).to_have_count(0)
    page.get_by_label("pre-norm").check()
    assert all(part(page, a).evaluate(middle) > part(page, b).evaluate(middle) for a, b in pairs)
    expect(part(page, "encoder.final_norm")).to_have_count(1)
    expect(part(page, "decoder.final_norm")).to_have_count(1)
    expect(page.locator('[role="status"]')).to_have_text("pre-norm")


@pytest.mark.parametrize("level", ["full", "decoder"])
def test_the_memorys_arrow_ends_where_keys_and_values_begin_and_queries_come_from_below(
    level: str, open_saved: Open
) -> None:
    page = open_saved(BlocksExplorer(level=level))
    ends = """e => { const p = e.querySelector('.wire'), n = p.getTotalLength();
      return [p.getPointAtLength(0), p.getPointAtLength(n)].map(({x, y}) => [x, y]); }"""
    arrow = part(page, "arrow").evaluate(ends)
    wires = page.locator('[data-to="decoder.cross_attention"]').all()
    value, key, query = (wire.evaluate(ends) for wire in wires)
    letters = [wire.locator("text").text_content() for wire in wires]
    assert letters == ["V", "K", "Q"]
    assert value[0] == key[0] == pytest.approx(arrow[1])
    box = (
        part(page, "decoder.cross_attention")
        .locator("rect")
        .evaluate("e => [e.x.baseVal.value + e.width.baseVal.value / 2, e.y.baseVal.value + e.height.baseVal.value]")
    )
    assert query[0][0] == pytest.approx(box[0])  # the middle of the decoder's column: its stream
    assert query[0][1] > box[1]
    memory = part(page, "memory").locator("rect").evaluate("e => e.x.baseVal.value + e.width.baseVal.value")
    assert arrow[0][0] == pytest.approx(memory)


def test_the_arrow_is_a_part_and_says_who_asks_and_who_answers(open_saved: Open) -> None:
    page = open_saved(specimen())
    x, y = part(page, "arrow").locator(".hit").evaluate(
        """e => { const p = e.getPointAtLength(e.getTotalLength() / 2).matrixTransform(e.getScreenCTM());
          return [p.x + 6, p.y]; }"""  # beside the line: it is easy to hit
    )  # fmt: skip
    page.mouse.move(x, y)
    assert "keys and values are made from it, queries from the decoder's stream" in panel(page)
    part(page, "decoder.cross_attention").hover()
    assert "Queries come from the decoder, keys and values from the encoder's output." in panel(page)
    assert "Shape: batch × target × d_model = 2 × 6 × 512" in panel(page)
    assert "4 · (512 · 512 + 512) = 1\u202f050\u202f624" in panel(page)
    assert "softmax(Q Kᵀ / √64)" in panel(page)


def test_numbers_and_names_of_axes(open_saved: Open) -> None:
    page = open_saved(specimen())
    expect(part(page, "memory").locator("text")).to_have_text(["memory", "2 × 7 × 512"])
    page.get_by_label("shapes as numbers").uncheck()
    expect(part(page, "memory").locator("text")).to_have_text(["memory", "batch source d_model"])
    expect(page.locator(".trace li").nth(4)).to_contain_text("weights (batch heads target source)")


def test_the_cells_of_the_weights_are_as_many_as_queries_times_keys(open_saved: Open) -> None:
    for level, count, struck in [("decoder.cross_attention", 42, 0), ("decoder.self_attention", 36, 15),
                                 ("encoder.self_attention", 49, 0)]:  # fmt: skip
        page = open_saved(BlocksExplorer(level=level))
        drawing = part(page, f"{level}.weights").locator("path.wire").get_attribute("d")
        assert (drawing.count("z"), drawing.count("l")) == (count, struck)


# ---------------------------------------------------------------- the forward pass


def test_the_player_lights_the_parts_of_each_step(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    lit = "all => all.map((e) => e.dataset.id)"
    for step in STEPS:
        page.get_by_role("button", name="Next").click()
        found = page.locator(".lit[data-id]").evaluate_all(lit)
        assert sorted(found) == sorted(name for name in step.lit)
        now = page.locator(".trace .now").inner_text().replace("\u00a0", " ").replace("\u202f", "")
        assert step.title in now
        for word, name in step.shapes:
            assert f"{word} ({' × '.join(map(str, made.shape(name)))})" in now
        expect(page.locator('[role="status"]')).to_have_text(step.title)
    assert page.locator(".lit[data-to]").count() == 1  # the arrow into the softmax
    page.get_by_role("button", name="Start over").click()
    expect(page.locator(".lit")).to_have_count(0)


def test_a_step_brings_back_the_full_picture(open_saved: Open) -> None:
    page = open_saved(BlocksExplorer(level="decoder"))
    told = page.get_by_role("group", name="steps").locator("output")
    expect(told).to_have_text("A step goes back to the full architecture.")
    page.get_by_role("button", name="Next").click()
    expect(told).to_have_text("step 1 of 8")
    expect(page.get_by_label("Show")).to_have_value("full architecture")


# ---------------------------------------------------------------- levels, keyboard, touch


def test_one_can_look_inside_and_come_back(open_saved: Open) -> None:
    page = open_saved(specimen())
    part(page, "decoder.cross_attention").click()
    page.get_by_role("button", name="Look inside").click()
    expect(part(page, "decoder.cross_attention.weights")).to_have_count(1)
    expect(page.locator('[role="status"]')).to_have_text("inside the decoder's cross-attention")
    part(page, "decoder.cross_attention.k").hover()
    assert "keys K, inside the decoder's cross-attention" in panel(page)
    assert "Shape: batch × heads × source × d_head = 2 × 8 × 7 × 64" in panel(page)
    page.mouse.move(2, 2)
    page.get_by_label("Show").select_option("encoder block")
    expect(part(page, "encoder.widen")).to_have_count(1)
    assert "stream passes each sublayer" in panel(page)
    page.get_by_role("button", name="Start over").click()
    expect(part(page, "softmax")).to_have_count(1)


def test_the_picture_is_one_tab_stop_and_arrows_follow_the_data(open_saved: Open) -> None:
    page = open_saved(specimen())
    page.get_by_role("button", name="Start over").focus()
    page.keyboard.press("Tab")
    expect(part(page, "source_ids")).to_be_focused()
    names = shown_parts(page)
    assert names.index("encoder.self_attention") < names.index("memory") < names.index("decoder.cross_attention")
    for name in names[1:]:
        page.keyboard.press("ArrowUp")
        expect(part(page, name)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(part(page, "softmax")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(part(page, "logits")).to_be_focused()
    assert page.locator('[data-id][tabindex="0"]').count() == 1
    expect(part(page, "logits")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Tab")
    assert page.locator(":focus").count() == 0 or "logits" not in str(page.locator(":focus").get_attribute("data-id"))


def test_enter_looks_inside_and_the_focus_stays_in_the_picture(open_saved: Open) -> None:
    page = open_saved(specimen())
    part(page, "encoder").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Show")).to_have_value("encoder block")
    expect(page.locator("[data-id]:focus")).to_have_count(1)
    part(page, "encoder.self_attention").focus()
    page.keyboard.press("Enter")
    expect(part(page, "encoder.self_attention.weights")).to_have_count(1)


def test_a_tap_tells_about_a_part_and_the_panel_is_on_the_screen(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360, touch=True)
    part(page, "softmax").tap()
    assert "Probabilities of the next token" in panel(page)
    expect(page.locator(".panel")).to_be_in_viewport(ratio=0.9)
    part(page, "source_ids").tap()
    assert "source ids" in panel(page)


# ---------------------------------------------------------------- looks, sizes


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "names"])
@pytest.mark.parametrize("width", [360, 900])
def test_words_fit_their_boxes_at_every_level(width: int, numbers: bool, open_saved: Open) -> None:
    for level in LEVELS:
        page = open_saved(BlocksExplorer(level=level, numbers=numbers, norm="pre"), width=width)
        assert page.evaluate(OVERFLOW) == []
        assert page.evaluate(MISFITS) == []


@pytest.mark.parametrize("width", [360, 620, 680, 1200])
def test_the_name_of_the_embedding_has_two_lines_at_every_width(width: int, open_saved: Open) -> None:
    page = open_saved(specimen(), width=width)
    expect(part(page, "source_embedding").locator("text.name")).to_have_text(["embedding", "× √d_model"])
    assert page.evaluate(MISFITS) == []


def test_there_is_one_button_that_starts_over_and_it_stops_the_player(open_saved: Open) -> None:
    page = open_saved(specimen())
    expect(page.get_by_role("button", name="Reset")).to_have_count(0)
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Start over").click()
    expect(page.get_by_role("button", name="Play")).to_have_count(1)


def test_a_small_model_and_long_sentences(open_saved: Open) -> None:
    page = open_saved(BlocksExplorer(SMALL, batch=1, source_length=16, target_length=1), width=360)
    expect(part(page, "memory").locator("text").nth(1)).to_have_text("1 × 16 × 12")
    page = open_saved(
        BlocksExplorer(level="decoder.cross_attention", batch=1024, source_length=64, target_length=64), width=360
    )
    assert page.evaluate(OVERFLOW) == []
    assert page.evaluate(MISFITS) == []


def test_the_picture_is_drawn_anew_when_its_place_changes(open_saved: Open) -> None:
    page = open_saved(specimen())
    wide = page.locator(".picture svg").get_attribute("viewBox")
    page.set_viewport_size({"width": 360, "height": 740})
    expect(page.locator(".picture svg")).not_to_have_attribute("viewBox", wide)
    assert page.evaluate(MISFITS) == []
