"""The patches of an image in Python: state, numbers, models of ours and of Hugging Face, what is refused."""

import html
import json
import re

import numpy as np
import pytest
import torch

from ttutor import assets
from ttutor.inside import attention_rollout, capture
from ttutor.variants.drawings import SHAPES, drawn_shapes
from ttutor.variants.vit import VisionEncoder, ViT, ViTConfig
from ttutor.widgets import PatchesExplorer
from ttutor.widgets.patches_input import MAX_WEIGHTS, thousandths

CONFIG = ViTConfig(
    image_size=12, patch_size=4, n_channels=3, n_classes=2, d_model=12, n_heads=3, n_layers=2, d_ff=16
)  # fmt: skip
HOSTILE = "</script><img src=x onerror=window.hacked=1>"


def specimen() -> PatchesExplorer:
    """The figure as the gallery shows it."""
    return PatchesExplorer.recorded()


def vit(kind: type = ViT) -> torch.nn.Module:
    torch.manual_seed(0)
    model = kind(CONFIG)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def some_attention(layers: int = 2, tokens: int = 10) -> np.ndarray:
    weights = np.random.default_rng(0).gamma(0.3, size=(layers, tokens, tokens))
    return weights / weights.sum(-1, keepdims=True)


def state_of(explorer: PatchesExplorer) -> dict:
    return json.loads(html.unescape(re.search(r'data-state="([^"]*)"', explorer.to_html())[1]))


# ---------------------------------------------------------------- numbers


def test_pixels_are_kept_to_a_byte() -> None:
    image = np.random.default_rng(0).random((3, 6, 4))
    explorer = PatchesExplorer(image, 2)
    rows = np.array([list(bytes.fromhex(row)) for row in explorer.pixels]).reshape(6, 4, 3)
    np.testing.assert_array_equal(rows, np.rint(255 * image).transpose(1, 2, 0))
    assert explorer.size == (6, 4)
    assert explorer.n_tokens == 7


@pytest.mark.parametrize("make", [torch.tensor, np.array, list])
def test_an_image_may_be_of_any_kind_of_table(make) -> None:
    assert PatchesExplorer(make([[0.0, 1.0], [0.5, 0.25]]), 1).pixels == ["00ff", "8040"]


def test_bytes_are_taken_as_bytes() -> None:
    assert PatchesExplorer(torch.tensor([[0, 255], [17, 1]], dtype=torch.uint8), 2).pixels == ["00ff", "1101"]


def test_thousandths_add_up_and_are_nearest() -> None:
    weights = some_attention(2, 33)
    kept = np.array(thousandths(weights, 33))
    assert (kept.sum(-1) == 1000).all()
    assert np.abs(kept / 1000 - weights).max() < 0.001


def test_heads_are_averaged() -> None:
    heads = np.stack([some_attention(), np.full((2, 10, 10), 0.1)], axis=1)
    one = PatchesExplorer(np.zeros((6, 6)), 2, heads)
    assert one.attention == PatchesExplorer(np.zeros((6, 6)), 2, heads.mean(1)).attention


def test_rollout_is_ours_through_the_layers_that_are_chosen() -> None:
    explorer = PatchesExplorer(np.zeros((6, 6)), 2, some_attention(3))
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


def test_another_patch_size_has_no_attention_and_keeps_the_place_inside() -> None:
    explorer = PatchesExplorer(np.zeros((6, 6)), 2, some_attention())
    explorer.selected = 9
    explorer.patch_size = 3
    assert explorer.weights is None
    assert (explorer.n_tokens, explorer.selected) == (5, 0)
    explorer.patch_size = 2
    assert explorer.weights is not None


# ---------------------------------------------------------------- recorded, and models


@pytest.mark.parametrize("number", range(5))
def test_what_was_recorded_is_shown_as_it_was_stored(number: int) -> None:
    record = assets.load("vit_recording")
    stored = record["images"][number]
    explorer = PatchesExplorer.recorded(number)
    assert explorer.pixels == stored["pixels"]
    assert explorer.attention == [[list(map(int, row.split())) for row in layer] for layer in stored["attention"]]
    assert explorer.positions == [list(map(int, row.split())) for row in record["positions"]]
    best = SHAPES[int(np.argmax(stored["probabilities"]))]
    assert f"The model answers {best} (" in explorer.notes["source"]
    assert f"the right answer is {stored['class']}." in explorer.notes["source"]
    assert "python experiments/vit_recording.py" in explorer.notes["source"]


def test_the_recorded_drawings_are_the_held_out_ones_and_one_answer_is_wrong() -> None:
    record = assets.load("vit_recording")
    images, classes = drawn_shapes(record["settings"]["n_held_out"], seed=999)
    first = int((classes == 0).nonzero()[0])
    assert PatchesExplorer(images[first], 4).pixels == record["images"][0]["pixels"]
    answers = [SHAPES[int(np.argmax(one["probabilities"]))] for one in record["images"]]
    rights = [one["class"] for one in record["images"]]
    assert [a == b for a, b in zip(answers, rights, strict=True)] == [True] * 4 + [False]
    assert min(record["accuracies"]) > 0.93
    assert len(record["accuracies"]) == 3


def test_neighbours_learnt_positions_that_are_alike() -> None:
    """What the figure says of position similarity: the model was not told the grid, and yet found it."""
    explorer = specimen()
    similarity = np.array(explorer.positions)[1:, 1:] / 100
    place = np.stack(np.divmod(np.arange(36), 6), axis=-1)
    distance = np.abs(place[:, None] - place).max(-1)
    assert similarity[distance == 1].mean() > similarity[distance > 2].mean() + 0.15


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


@pytest.mark.parametrize("name", ["ViTForImageClassification", "ViTModel"])
def test_a_vit_of_hugging_face_is_read_and_left_as_it_was(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=4,
        num_channels=1, num_labels=3,
    )  # fmt: skip
    torch.manual_seed(0)
    model = getattr(transformers, name)(config).eval()
    before = model.config._attn_implementation
    image = torch.randn(1, 16, 16)
    explorer = PatchesExplorer.from_model(model, image)
    assert model.config._attn_implementation == before
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(image[None], output_attentions=True)
    expected = torch.stack(out.attentions)[:, 0].mean(1)
    np.testing.assert_allclose(np.array(explorer.attention) / 1000, expected, atol=1e-3)
    assert explorer.n_tokens == 17
    assert np.shape(explorer.positions) == (17, 17)
    assert ("LABEL_" in explorer.notes["source"]) == (name == "ViTForImageClassification")


def test_a_large_image_is_drawn_smaller_and_it_is_said() -> None:
    image = np.random.default_rng(0).random((72, 72))
    with pytest.warns(UserWarning, match="each drawn pixel is the mean of 2 x 2"):
        explorer = PatchesExplorer(image, 8)
    assert (explorer.size, explorer.step, len(explorer.pixels)) == ((72, 72), 2, 36)
    means = image.reshape(36, 2, 36, 2).mean((1, 3))
    assert explorer.pixels[0] == np.rint(255 * means[0]).astype(np.uint8).tobytes().hex()
    with pytest.raises(ValueError, match="patch_size has to be a multiple of 2"):
        explorer.patch_size = 9


# ---------------------------------------------------------------- what it refuses


NAN = np.full((4, 4), np.nan)


@pytest.mark.parametrize(
    ("image", "patch", "options", "message"),
    [
        (NAN, 2, {}, "NaN or infinite"),
        ([[0, 1], [0]], 1, {}, "rows of equal length"),
        ([], 1, {}, r"image has shape \(0,\)"),
        (np.zeros((4, 4, 3)), 2, {}, "put the channels first"),
        (np.zeros((2, 4, 4)), 2, {}, "with 1 or 3 channels"),
        (np.full((4, 4), 7.0), 2, {}, "image goes from 7 to 7; give floats from 0 to 1, or bytes"),
        (np.zeros((4, 4)), 3, {}, "patch_size is 3, but has to divide both sides of an image of 4 x 4"),
        (np.zeros((4, 4)), 0, {}, "patch_size is 0"),
        (np.zeros((24, 24)), 1, {}, "would be 576; this figure draws up to 256"),
        (np.zeros((10_000, 10_000)), 1, {}, "this figure draws up to 256"),
        (np.zeros((97, 97)), 97, {}, None),
        (np.zeros((4, 4)), 2, {"attention": np.ones((2, 4, 4)) / 4}, r"expected \(layers, 5, 5\)"),
        (np.zeros((4, 4)), 2, {"attention": np.ones((2, 5, 5))}, "add up to one"),
        (np.zeros((4, 4)), 2, {"attention": np.full((2, 5, 5), np.nan)}, "add up to one"),
        (np.zeros((4, 4)), 2, {"positions": 2 * np.ones((5, 5))}, "cosine similarities"),
        (np.zeros((4, 4)), 2, {"probabilities": {"a": 2.0}}, "a number from 0 to 1"),
        (np.zeros((4, 4)), 2, {"probabilities": {"a": float("nan")}}, "a number from 0 to 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:the image is larger")
def test_bad_input_is_refused_with_a_reason(image, patch, options, message) -> None:
    if message is None:
        assert PatchesExplorer(image, patch, **options).step == 97
        return
    with pytest.raises(ValueError, match=message):
        PatchesExplorer(image, patch, **options)


def test_too_much_attention_is_refused_with_what_to_do() -> None:
    n = 197
    with pytest.raises(ValueError, match=f"465,708 weights, more than the {MAX_WEIGHTS:,} .*with_image_size"):
        PatchesExplorer(np.zeros((56, 56)), 4, np.full((12, n, n), 1 / n))


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("patch_size", 5, "has to divide"), ("view", "heads", "one of image, attention, rollout, positions"),
        ("layer", 3, "between 1 and 2"), ("layer", 0, "between 1 and 2"), ("selected", 37, "between 0"),
        ("attention", [[[1000]]], "rows adding up to 1000"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_later_too(trait, value, message) -> None:
    with pytest.raises(ValueError, match=message):
        setattr(specimen(), trait, value)


def test_other_models_and_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="expected a ViT of ours .* not Linear"):
        PatchesExplorer.from_model(torch.nn.Linear(2, 2), torch.zeros(1, 4, 4))
    with pytest.raises(ValueError, match="expected one image"):
        PatchesExplorer.from_model(vit(), torch.zeros(2, 3, 12, 12))
    with pytest.raises(ValueError, match="NaN"):
        PatchesExplorer.from_model(vit(), torch.full((3, 12, 12), torch.nan))
    with pytest.raises(ValueError, match="class_names has 1 names, but the model has 2 classes"):
        PatchesExplorer.from_model(vit(), torch.zeros(3, 12, 12), class_names=["a"])
    with pytest.raises(ValueError, match="there are 0 to 4"):
        PatchesExplorer.recorded(9)


# ---------------------------------------------------------------- what is stored


def test_the_fallback_has_the_picture_the_cost_and_the_largest_weights() -> None:
    explorer = specimen()
    text = explorer.fallback_html()
    assert "37 tokens, 1,369 pairs" in text
    assert text.count("<text") == 36
    assert "data:image/png;base64," in text
    assert "not an explanation" in text
    largest = explorer.weights.argsort()[::-1][0]
    assert f'<th scope="row">{f"patch {largest}" if largest else "CLS"}</th><td>{explorer.weights.max():.3f}' in text
    assert not re.search(r"https?://(?!www\.w3\.org)", explorer.to_html())


def test_the_picture_is_a_png_of_the_pixels() -> None:
    import base64
    import io

    import matplotlib.image

    explorer = specimen()
    data = re.search(r"base64,([^\"]+)", explorer.fallback_html())[1]
    shown = matplotlib.image.imread(io.BytesIO(base64.b64decode(data)), format="png")
    rows = np.array([list(bytes.fromhex(row)) for row in explorer.pixels])
    np.testing.assert_allclose(shown, rows / 255, atol=1e-6)


def test_names_are_never_markup() -> None:
    explorer = PatchesExplorer(np.zeros((4, 4)), 2, probabilities={HOSTILE: 1.0}, answer=HOSTILE, note=HOSTILE)
    assert HOSTILE not in explorer.to_html()
    assert HOSTILE in state_of(explorer)["notes"]["source"]
