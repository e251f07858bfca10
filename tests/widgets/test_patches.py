"""The patches of an image: state, numbers and models of ours and of Hugging Face, in Python and on the page."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, slide
from ttutor.inside import attention_rollout, capture
from ttutor.variants.vit import VisionEncoder, ViT, ViTConfig
from ttutor.widgets import PatchesExplorer
from ttutor.widgets.patches import thousandths

CONFIG = ViTConfig(
    image_size=12, patch_size=4, n_channels=3, n_classes=2, d_model=12, n_heads=3, n_layers=2, d_ff=16
)  # fmt: skip


def specimen() -> PatchesExplorer:
    """The figure as the gallery shows it."""
    return PatchesExplorer.recorded()


def hostile() -> PatchesExplorer:
    texts = {"probabilities": {HOSTILE[0]: 1.0}, "answer": HOSTILE[1], "note": HOSTILE[2]}
    return PatchesExplorer(np.eye(4), 2, **texts)


def extremes() -> list[PatchesExplorer]:
    sizes = [((3, 2, 2), 2), ((3, 8, 64), 8), ((3, 64, 8), 8), ((1, 64, 64), 4)]
    return [PatchesExplorer(np.random.default_rng(0).random(size), patch) for size, patch in sizes]


TAP = ('.cell[data-place="20"]', "Patch 20 is 16 numbers")


def vit(kind: type = ViT) -> torch.nn.Module:
    torch.manual_seed(0)
    model = kind(CONFIG)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def some_attention(layers: int = 2, tokens: int = 10) -> np.ndarray:
    weights = np.random.default_rng(0).gamma(0.3, size=(layers, tokens, tokens))
    return weights / weights.sum(-1, keepdims=True)


def test_thousandths_add_up_and_are_nearest() -> None:
    weights = some_attention(2, 33)
    kept = np.array(thousandths(weights, 33))
    assert (kept.sum(-1) == 1000).all()
    assert np.abs(kept / 1000 - weights).max() < 0.001


def test_it_opens_with_the_patch_in_which_there_is_most_to_see() -> None:
    image = np.full((12, 12), 0.9)
    image[5, 9] = 0.0
    assert PatchesExplorer(image, 4).selected == 6


def test_rollout_is_ours_through_the_layers_that_are_chosen() -> None:
    explorer = PatchesExplorer(np.zeros((6, 6)), 2, some_attention(3))
    explorer.view = "rollout"
    kept = torch.tensor(explorer.attention, dtype=torch.float64)[:, None, None] / 1000
    explorer.selected = 4
    for layer in (1, 2, 3):
        explorer.layer = layer
        np.testing.assert_allclose(explorer.weights, attention_rollout(kept[:layer])[0, 4], atol=1e-12)
        assert explorer.weights.sum() == pytest.approx(1)
    explorer.view = "attention"
    np.testing.assert_allclose(explorer.weights, kept[2, 0, 0, 4], atol=1e-12)
    explorer.view = "image"
    assert explorer.weights is None


@pytest.mark.parametrize("kind", [ViT, VisionEncoder])
def test_a_model_of_ours_is_read_and_left_as_it_was(kind: type) -> None:
    model, image = vit(kind).train(), torch.randn(3, 12, 12)
    explorer = PatchesExplorer.from_model(
        model, image, class_names=["cat", "dog"] if kind is ViT else None, answer="dog"
    )
    assert model.training
    with (
        capture(model.eval(), f"{'vision.' * (kind is ViT)}encoder.layers.*.self_attention.weights") as seen,
        torch.no_grad(),
    ):
        out = model(image[None])
    mean = seen.stack()[:, 0].mean(1)
    np.testing.assert_allclose(np.array(explorer.attention) / 1000, mean, atol=1e-3)
    shown = np.array([list(bytes.fromhex(row)) for row in explorer.pixels]).reshape(12, 12, 3).transpose(2, 0, 1)
    stretched = (image - image.min()) / (image.max() - image.min())
    np.testing.assert_allclose(shown / 255, stretched, atol=0.5 / 255 + 1e-6)
    table = (model.vision if kind is ViT else model).position.table.weight
    cosine = torch.nn.functional.cosine_similarity(table[:, None], table, dim=-1)
    np.testing.assert_allclose(np.array(explorer.positions) / 100, cosine.detach(), atol=0.0051)
    if kind is ViT:
        best = out.softmax(-1).max().item()
        assert f"({best:.3f}), then" in explorer.notes["source"]
    assert explorer.notes["source"].endswith(f"he right answer is dog. {kind.__name__} of 2 layers.")


def test_a_vit_of_hugging_face_is_read_and_left_as_it_was() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=4,
        num_channels=1, num_labels=3,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.ViTForImageClassification(config).eval()
    image = torch.randn(1, 16, 16)
    explorer = PatchesExplorer.from_model(model, image)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(image[None], output_attentions=True)
    expected = torch.stack(out.attentions)[:, 0].mean(1)
    np.testing.assert_allclose(np.array(explorer.attention) / 1000, expected, atol=1e-3)
    assert explorer.n_tokens == 17
    assert np.shape(explorer.positions) == (17, 17)
    assert "LABEL_" in explorer.notes["source"]


def test_a_large_image_is_drawn_smaller_and_it_is_said() -> None:
    image = np.random.default_rng(0).random((72, 72))
    with pytest.warns(UserWarning, match="each drawn pixel is the mean of 2 x 2"):
        explorer = PatchesExplorer(image, 8)
    assert (explorer.size, explorer.step, len(explorer.pixels)) == ((72, 72), 2, 36)
    means = image.reshape(36, 2, 36, 2).mean((1, 3))
    assert explorer.pixels[0] == np.rint(255 * means[0]).astype(np.uint8).tobytes().hex()
    with pytest.raises(ValueError, match="patch_size has to be a multiple of 2"):
        explorer.patch_size = 9


@pytest.mark.parametrize(
    ("image", "patch", "options", "message"),
    [
        (np.full((4, 4), np.nan), 2, {}, "NaN or infinite"),
        (np.zeros((4, 4, 3)), 2, {}, "put the channels first"),
        (np.full((4, 4), 7.0), 2, {}, "image goes from 7 to 7; give floats from 0 to 1, or bytes"),
        (np.zeros((4, 4)), 3, {}, "patch_size is 3, but has to divide both sides of an image of 4 x 4"),
        (np.zeros((24, 24)), 1, {}, "would be 576; this figure draws up to 256"),
        (np.zeros((4, 4)), 2, {"attention": np.ones((2, 4, 4)) / 4}, r"expected \(layers, 5, 5\)"),
    ],
)
def test_bad_input_is_refused_with_a_reason(image, patch: int, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PatchesExplorer(image, patch, **options)


def test_other_models_and_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="expected a ViT of ours .* not Linear"):
        PatchesExplorer.from_model(torch.nn.Linear(2, 2), torch.zeros(1, 4, 4))
    with pytest.raises(ValueError, match="expected one image"):
        PatchesExplorer.from_model(vit(), torch.zeros(2, 3, 12, 12))
    with pytest.raises(ValueError, match="class_names has 1 names, but the model has 2 classes"):
        PatchesExplorer.from_model(vit(), torch.zeros(3, 12, 12), class_names=["a"])


def test_the_fallback_has_the_picture_the_cost_and_the_largest_weights() -> None:
    explorer = specimen()
    explorer.view = "rollout"
    text = explorer.fallback_html()
    assert "37 tokens, 1,369 pairs" in text
    assert text.count("<text") == 36
    assert "data:image/png;base64," in text
    assert "not an explanation" in text
    largest = explorer.weights.argsort()[::-1][0]
    assert f'<th scope="row">{f"patch {largest}" if largest else "CLS"}</th><td>{explorer.weights.max():.3f}' in text
    assert not re.search(r"https?://(?!www\.w3\.org)", explorer.to_html())


def patch(page: Page, place: int):
    return page.locator(f'.cell[data-place="{place}"]')


def tile(page: Page, place: int):
    return page.locator(f'.tile[data-place="{place}"]')


def side(page: Page) -> str:
    return page.locator(".side").inner_text()


def choose(page: Page, view: str) -> None:
    page.get_by_label(view, exact=True).check()


@in_browser
@pytest.mark.parametrize("view", ["attention", "rollout", "positions"])
def test_numbers_on_screen_are_pythons(show: Show, view: str) -> None:
    made = specimen()
    page = show(made)
    choose(page, view)
    made.view = view
    for layer in (1, 2):
        if view != "positions":
            page.get_by_label("Layer", exact=True).press("Home" if layer == 1 else "End")
            made.layer = layer
        for place in (0, 15, 36):
            tile(page, place).click()
            made.selected = place
            np.testing.assert_allclose(numbers(page, ".tile"), made.weights, atol=1e-6)
            np.testing.assert_allclose(numbers(page, ".cell"), made.weights[1:], atol=1e-6)
    order = np.argsort(-made.weights, kind="stable")[:8]
    listed = page.locator(".side .number").all_inner_texts()
    assert [text.replace("−", "-") for text in listed] == [f"{made.weights[i]:.3f}" for i in order]
    assert page.locator(".side .token").all_inner_texts() == [f"patch {i}" if i else "CLS" for i in order]


@in_browser
def test_of_an_image_alone_every_patch_size_says_how_many_tokens_and_pairs(show: Show) -> None:
    made = PatchesExplorer(np.random.default_rng(0).random((24, 24)), 2)
    page = show(made)
    page.get_by_text("About the image").click()
    for size in (2, 3, 4, 6, 8, 12, 24):
        made.patch_size = size
        assert page.locator(".cell").count() == made.n_tokens - 1
        assert page.locator(".tile").count() == made.n_tokens
        row = page.locator(".cost li.on").inner_text()
        assert f"{size} × {size}: {made.n_tokens} tokens" in row
        assert f"{made.n_tokens**2:,}".replace(",", "\u202f") in row
        page.get_by_label("Patch size").press("ArrowRight")
    assert page.locator(".tile").count() == 2


@in_browser
def test_of_a_model_that_reads_one_size_no_other_is_offered(show: Show) -> None:
    page = show(specimen())
    expect(page.get_by_label("Patch size")).to_have_count(0)
    expect(page.get_by_label("image", exact=True)).to_be_checked()
    choose(page, "rollout")
    assert f"What patch {specimen().selected} draws from" in side(page)


@in_browser
def test_no_bar_is_longer_than_one_of_a_larger_number_and_the_chosen_one_has_none(show: Show) -> None:
    made = specimen()
    made.selected = 0
    page = show(made)
    choose(page, "rollout")
    tiles = [page.locator(f'.tile[data-place="{place}"]') for place in range(37)]
    heights = [tile.locator(".up").bounding_box()["height"] for tile in tiles]
    order = [place for place in np.argsort(numbers(page, ".tile")) if place]
    assert (np.diff(np.array(heights)[order]) > -0.1).all()
    assert heights[0] == 0


@in_browser
@pytest.mark.parametrize("width", [360, 900])
def test_every_patch_of_the_line_is_in_view(show: Show, width: int) -> None:
    page = show(specimen(), width=width)
    patch(page, 19).click()
    ends = [tile(page, place).bounding_box() for place in (0, 19, 36)]
    assert ends[0]["x"] >= 0
    assert ends[2]["x"] + ends[2]["width"] <= width
    assert min(end["width"] for end in ends) > 18


@in_browser
def test_a_patch_that_is_tapped_flies_to_its_place_in_the_line(show: Show) -> None:
    page = show(specimen(), motion=True)
    patch(page, 19).scroll_into_view_if_needed()
    moving = "e => e.getAnimations().map((one) => one.effect.getTiming().duration)"
    page.wait_for_timeout(2500)  # at first all of them fly
    patch(page, 19).click()
    assert tile(page, 19).locator("canvas").evaluate(moving) == [900]
    assert tile(page, 18).locator("canvas").evaluate(moving) == []


@in_browser
def test_the_finding_says_what_a_patch_draws_from_and_whom_it_resembles(show: Show) -> None:
    made = specimen()
    page = show(made)
    found = page.locator(".tt-found")
    choose(page, "rollout")
    made.view = "rollout"
    tile(page, 15).click()
    made.selected = 15
    order = [i for i in np.argsort(-made.weights, kind="stable") if i != 15]
    first, second = (f"patch {i}" if i else "CLS" for i in order[:2])
    assert found.inner_text() == f"Patch 15 draws most from {first}, then from {second}, itself apart."
    choose(page, "attention")
    weights = np.array(made.attention[made.layer - 1][15]) / 1000
    spread = np.exp(-np.sum(weights * np.log(np.maximum(weights, 1e-9))))
    assert spread > 0.75 * 37, "nothing stands out"
    assert found.inner_text().startswith("Patch 15 attends most to ")
    assert found.inner_text().endswith(f" as equal shares for {round(spread)} of the 37 tokens.")
    slide(page, "Layer", "Home")
    assert found.inner_text().startswith("Patch 15 attends most to ")
    choose(page, "positions")
    made.view = "positions"
    alike = [i for i in np.argsort(-made.weights, kind="stable") if i not in (0, 15)][:4]
    beside = 0
    for made.selected in range(1, 37):
        likest = next(i for i in np.argsort(-made.weights, kind="stable") if i not in (0, made.selected))
        rows, columns = np.divmod(np.array([made.selected, likest]) - 1, 6)
        beside += int(abs(np.diff(rows)[0]) + abs(np.diff(columns)[0]) == 1)
    assert found.inner_text() == (
        f"Patch 15 is, by position, most like patch {alike[0]}, then like patch {alike[1]}, itself apart. "
        f"For {beside} of 36 patches a neighbour is the likest."
    )
    choose(page, "image")
    assert found.inner_text() == "Patch 15 is 16 numbers, and one of 36 words of this sentence."


@in_browser
def test_by_position_it_is_counted_how_many_patches_are_likest_to_a_neighbour(show: Show) -> None:
    made = specimen()
    made.view, made.selected = "positions", 9
    likeness = np.array(made.positions, dtype=float)[1:, 1:]
    np.fill_diagonal(likeness, -np.inf)
    side = round(len(likeness) ** 0.5)
    rows, columns = np.divmod(np.arange(len(likeness)), side)
    likest = likeness.argmax(axis=1)
    beside = np.abs(rows - rows[likest]) + np.abs(columns - columns[likest]) == 1
    found = show(made).locator(".tt-found").inner_text()
    assert f"For {beside.sum()} of {len(likeness)} patches a neighbour is the likest." in found
