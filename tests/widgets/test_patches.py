"""The patches of an image: state, numbers and models of ours and of Hugging Face, in Python and on the page."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, slide
from ttutor.inside import capture
from ttutor.variants.vit import VisionEncoder, ViT, ViTConfig
from ttutor.widgets import PatchesExplorer
from ttutor.widgets.patches import read_vit, thousandths

CONFIG = ViTConfig(
    image_size=12, patch_size=4, n_channels=3, n_classes=2, d_model=12, n_heads=3, n_layers=2, d_ff=16
)  # fmt: skip


TWO = {"cat": 0.5, "dog": 0.5}


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


def some_answers(patches: int = 9) -> np.ndarray:
    """Of two classes, without each patch."""
    first = np.random.default_rng(1).random(patches)
    return np.stack([first, 1 - first], axis=1)


def test_the_numbers_of_every_view_are_those_of_the_selected_token() -> None:
    answers = some_answers()
    explorer = PatchesExplorer(
        np.zeros((6, 6)), 2, some_attention(3), probabilities={"cat": 0.25, "dog": 0.75}, hidden=answers
    )
    assert explorer.weights is None
    explorer.view, explorer.selected = "attention", 4
    kept = np.array(explorer.attention) / 1000
    for layer in (1, 2, 3):
        explorer.layer = layer
        np.testing.assert_allclose(explorer.weights, kept[layer - 1, 4], atol=1e-12)
    explorer.view = "hide"
    assert explorer.classes == ["dog", "cat"]
    np.testing.assert_allclose(explorer.weights[1:], 0.75 - answers[:, 1], atol=0.001)
    assert explorer.weights[0] == 0


def test_of_a_thousand_classes_those_are_kept_that_are_ever_the_answer() -> None:
    answers = np.full((9, 1000), 0.9 / 999)
    answers[:, 3] = 0.1
    answers[[2, 5], 3] = 0.9 / 999
    answers[2, 40] = answers[5, 700] = 0.1
    names = {f"class {i}": share for i, share in enumerate(answers[0])}
    explorer = PatchesExplorer(np.zeros((6, 6)), 2, probabilities=names, hidden=answers)
    assert explorer.classes[0] == "class 3"
    assert {"class 40", "class 700"} < set(explorer.classes)
    assert len(explorer.classes) == 5
    assert np.shape(explorer.hidden) == (10, 5)


@pytest.mark.parametrize("size", [12, 28])
def test_a_hidden_patch_is_the_mean_of_the_image_to_the_model(size: int) -> None:
    torch.manual_seed(0)
    model = ViT(replace(CONFIG, image_size=size)).train()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    image = torch.randn(3, size, size) + torch.tensor([0.0, 1.0, 5.0])[:, None, None]
    read = read_vit(model, image)
    assert model.training
    n = size // 4
    assert read.hidden.shape == (n * n, 2)
    model.eval()
    for place in (0, n + 1, n * n - 1):
        seen = image.clone()
        rows, columns = (slice(4 * i, 4 * i + 4) for i in divmod(place, n))
        seen[:, rows, columns] = image.mean((1, 2))[:, None, None]
        with torch.no_grad():
            expected = model(seen[None]).softmax(-1)[0]
        torch.testing.assert_close(read.hidden[place].float(), expected, atol=1e-5, rtol=0)


def test_hiding_one_patch_of_the_drawing_that_is_got_wrong_makes_the_answer_right() -> None:
    made = specimen()
    answers = np.array(made.hidden)
    best = answers.argmax(axis=1)
    right = made.classes.index(made.answer)
    assert best[0] == 0 != right
    assert 1 <= (best == right).sum() <= 3, "it is to be found, and not everywhere"
    assert (answers[best == right, 0] < answers[0, 0] - 500).all(), "no matter of a hair"
    # What the figure says of attention is worth a riddle: what CLS attends to most is not what turns the answer.
    turning = set(np.flatnonzero(best))
    for layer in made.attention:
        most = 1 + np.argsort(-np.array(layer[0][1:]), kind="stable")[: len(turning)]
        assert set(most) != turning


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
        (np.zeros((4, 4)), 2, {"hidden": np.ones((4, 2)) / 2}, "hidden needs probabilities"),
        (
            np.zeros((4, 4)),
            2,
            {"hidden": np.ones((5, 2)) / 2, "probabilities": TWO},
            r"expected \(4, 2\) \(patches, classes",
        ),
        (np.zeros((4, 4)), 2, {"hidden": np.full((4, 2), np.nan), "probabilities": TWO}, "has to be a finite number"),
        (np.zeros((4, 4)), 2, {"hidden": np.ones((4, 2)), "probabilities": TWO}, "adding up to one"),
        (np.zeros((4, 4)), 2, {"hidden": np.full((4, 2), [2, -1]), "probabilities": TWO}, "at least 0"),
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
    made = PatchesExplorer(np.zeros((4, 4)), 2)
    with pytest.raises(ValueError, match="view has to be one of image, not 'hide'"):
        made.view = "hide"
    with pytest.raises(ValueError, match="tried has to be from 1 to 4, not 0; it lists patches"):
        made.tried = [0]


def test_two_classes_of_one_name_stay_apart() -> None:
    read = read_vit(vit(), torch.zeros(3, 12, 12), class_names=["crane", "crane"])
    assert list(read.probabilities) == ["crane (0)", "crane (1)"]


def test_the_fallback_has_the_picture_the_cost_and_the_largest_weights() -> None:
    explorer = specimen()
    for view, caption in [
        ("hide", "What the answer triangle loses when one patch is hidden"),
        ("attention", "Token 23, attention in layer 2"),
        ("positions", "Token 23, similarity of position"),
    ]:
        explorer.view = view
        text = explorer.fallback_html()
        assert "37 tokens, 1,369 pairs" in text
        assert text.count("<text") == 36
        assert "data:image/png;base64," in text
        assert caption in text
        largest = explorer.weights.argsort()[::-1][0]
        name = f"patch {largest}" if largest else "CLS"
        assert f'<th scope="row">{name}</th><td>{explorer.weights.max():.3f}' in text
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
@pytest.mark.parametrize("view", ["attention", "positions"])
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


def cost(made: PatchesExplorer, places: set[int]) -> np.ndarray:
    """What the answer loses without each patch, of those that were hidden."""
    return np.where(np.isin(np.arange(made.n_tokens), list(places)), made.weights, 0)


def answered(page: Page) -> list[str]:
    return [text.replace("−", "-") for text in page.locator(".answers .number").all_inner_texts()]


@in_browser
def test_without_a_patch_the_answer_is_pythons_and_a_map_grows_of_what_each_cost(show: Show) -> None:
    made = specimen()
    page = show(made)
    choose(page, "hide")
    made.view = "hide"
    found = page.locator(".tt-found")
    assert answered(page) == [f"{share / 1000:.3f}" for share in made.hidden[0]]
    assert page.locator(".gone").count() == 0
    whole = made.hidden[0][0] / 1000
    assert found.inner_text() == (
        f"Nothing is hidden: the model says {made.classes[0]} ({whole:.3f}); right is {made.answer}. "
        "CLS has no pixels and cannot be hidden."
    )
    turning = [place for place, row in enumerate(made.hidden) if np.argmax(row)]
    for n, place in enumerate(turning):
        patch(page, place).click()
        row = made.hidden[place]
        best = int(np.argmax(row))
        assert answered(page) == [f"{share / 1000:.3f}" for share in row]
        assert page.locator(".cell.gone, .tile.gone").count() == 2
        assert page.locator(".cell.gone").get_attribute("data-place") == str(place)
        np.testing.assert_allclose(numbers(page, ".tile"), cost(made, set(turning[: n + 1])), atol=1e-6)
        right = ", which is right" * (made.classes[best] == made.answer)
        others = sum(np.argmax(made.hidden[other]) == best for other in turning) - 1
        assert others < 2
        assert found.inner_text() == (
            f"Without patch {place} the model says {made.classes[best]} ({row[best] / 1000:.3f}){right}: "
            f"{made.classes[0]} hung on this patch, {whole:.3f} before and {row[0] / 1000:.3f} now. "
            f"Hiding {'another one also gives' if others else 'no other gives'} {made.classes[best]}."
        )
    idle = next(place for place in range(1, 37) if place not in turning)
    tile(page, idle).click()
    assert f"Without patch {idle} the model still says {made.classes[0]}: {whole:.3f} before" in found.inner_text()
    assert page.locator(".cell .left").count() == len(turning) + 1
    for place in turning:
        assert patch(page, place).inner_text() == str(round(made.hidden[place][0] / 10))
    tile(page, 0).click()
    assert page.locator(".gone").count() == 0
    assert answered(page)[0] == f"{whole:.3f}"
    page.get_by_role("button", name="Reset").click()
    choose(page, "hide")
    assert page.locator(".cell .left").count() == 0


@in_browser
def test_what_is_said_of_attention_to_a_hidden_patch_is_so(show: Show) -> None:
    made = specimen()
    page = show(made)
    choose(page, "hide")
    weights = np.array(made.attention)[:, 0, 1:]
    turning = [place for place, row in enumerate(made.hidden) if np.argmax(row)]
    idle = next(place for place in range(1, 37) if place not in turning)
    for place in [*turning, idle]:
        patch(page, place).click()
        ranks = [1 + int((layer > layer[place - 1]).sum()) for layer in weights]
        told = page.locator(".told").inner_text()
        assert (
            f"By the attention of CLS, patch {place} of 36 is number {ranks[0]} in layer 1, "
            f"number {ranks[1]} in layer 2." in told
        )
        most = [set(1 + np.argsort(-layer, kind="stable")[: len(turning)]) for layer in weights]
        pointed = [len(one & set(turning)) for one in most]
        last = (
            f"Hiding one patch changes the answer for {len(turning)} of the 36. Of the {len(turning)} with most "
            f"attention from CLS it does so for {pointed[0]} in layer 1, for {pointed[1]} in layer 2."
        )
        assert (last in told) == (place in turning)


@in_browser
def test_pointing_gives_no_riddle_away_and_the_arrow_keys_hide(show: Show) -> None:
    page = show(specimen())
    choose(page, "hide")
    patch(page, 11).hover()
    assert page.locator(".gone").count() == 0
    patch(page, 8).click()
    patch(page, 8).press("ArrowRight")
    assert page.locator(".cell.gone").get_attribute("data-place") == "9"
    assert page.locator(".cell .left").count() == 2


@in_browser
def test_question_and_bars_say_which_answer_is_right_where_it_is_known(show: Show) -> None:
    question, right = ".tt-question", ".answers li.on"
    answers = some_answers(4)
    for number, asked in [
        (4, "The model says triangle. Which patch has to go for it to see the cross?"),
        (0, "The model says circle. Is there a patch without which it says something else?"),
    ]:
        made = PatchesExplorer.recorded(number)
        page = show(made)
        choose(page, "hide")
        assert page.locator(question).inner_text() == asked
        assert page.locator(right).inner_text().startswith(f"{made.answer} (right)")
    for answer, asked in [
        ("", "The model says dog. Is there a patch without which it says something else?"),
        ("cow", "The model says dog. That is wrong: which patch misleads it most?"),
    ]:
        probabilities = {"cat": 0.0, "dog": 1.0}
        made = PatchesExplorer(np.eye(4), 2, probabilities=probabilities, hidden=answers, answer=answer)
        page = show(made)
        choose(page, "hide")
        assert page.locator(question).inner_text() == asked
        assert page.locator(right).count() == 0
        patch(page, 1).click()
        assert "attention" not in page.locator(".told").inner_text()


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
    choose(page, "attention")
    assert f"What patch {specimen().selected} attends to in layer 2" in side(page)


@in_browser
def test_no_bar_is_longer_than_one_of_a_larger_number_and_the_chosen_one_has_none(show: Show) -> None:
    made = specimen()
    made.selected = 0
    page = show(made)
    choose(page, "attention")
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
def test_the_finding_says_what_a_patch_attends_to_and_whom_it_resembles(show: Show) -> None:
    made = specimen()
    page = show(made)
    found = page.locator(".tt-found")
    tile(page, 15).click()
    choose(page, "attention")
    weights = np.array(made.attention[made.layer - 1][15]) / 1000
    spread = np.exp(-np.sum(weights * np.log(np.maximum(weights, 1e-9))))
    assert spread > 0.75 * 37, "nothing stands out"
    assert found.inner_text().startswith("Patch 15 attends most to ")
    slide(page, "Layer", "Home")
    assert found.inner_text().startswith("Patch 15 attends most to ")
    choose(page, "positions")
    made.view = "positions"
    made.selected = 15
    alike = [i for i in np.argsort(-made.weights, kind="stable") if i not in (0, 15)][:4]
    beside = 0
    for made.selected in range(1, 37):
        likest = next(i for i in np.argsort(-made.weights, kind="stable") if i not in (0, made.selected))
        rows, columns = np.divmod(np.array([made.selected, likest]) - 1, 6)
        beside += int(abs(np.diff(rows)[0]) + abs(np.diff(columns)[0]) == 1)
    assert found.inner_text() == (
        "Patch 15 is, by position and among the patches, most like "
        f"patch {alike[0]}, then like patch {alike[1]}, itself apart. "
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
