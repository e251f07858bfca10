"""The Transformer's picture: shapes and counts are held to a model, in Python and on the page, at every level."""

from __future__ import annotations

import re

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import Tensor, nn

from tests.widgets.conftest import Show
from tests.widgets.figure import (
    in_browser,
    press,
    spoken,
)
from ttutor.attention import attention_weights
from ttutor.transformer import Transformer, TransformerConfig, account
from ttutor.translation.packed import load_packed
from ttutor.widgets import BlocksExplorer, HeadsExplorer, TranslatorExplorer
from ttutor.widgets.block_parts import ATTENTIONS, LEVELS, PARTS, STEPS, kinds
from ttutor.widgets.stations import COMPONENTS

SMALL = TransformerConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=16)


CHOICES = [
    {},
    {"norm": "pre"},
    {"positions": "learned"},
    {"tie_embeddings": False, "logits_bias": True},
    {"norm": "pre", "activation": "gelu_tanh", "dropout": 0.0, "logits_bias": True},
]


LAYERS = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}


def specimen() -> BlocksExplorer:
    """The figure as the gallery shows it."""
    return BlocksExplorer.translating()


def plain() -> BlocksExplorer:
    """A figure of sizes alone, whose words look nowhere."""
    return BlocksExplorer(batch=2, source_length=4, target_length=4)


def extremes() -> list[BlocksExplorer]:
    largest = {"batch": 1024, "source_length": 64, "target_length": 64}
    shorter = BlocksExplorer.translating("A girl reads.")
    return [*(BlocksExplorer(level=level, norm="pre", **largest) for level in LEVELS), shorter]


def by_own_hooks(model: Transformer, batch: int, source: int, target: int) -> dict[str, tuple[int, ...]]:
    """Shapes as plain PyTorch hooks see them, with no help of ours; the first use of a shared module counts."""
    seen: dict[str, tuple[int, ...]] = {}

    def note(name: str):
        def hook(module: nn.Module, inputs: tuple, output: Tensor) -> None:
            seen.setdefault(name, tuple(output.shape))

        return hook

    handles = [module.register_forward_hook(note(name)) for name, module in model.named_modules() if name]
    device = model.to_logits.weight.device
    model(*(torch.ones(batch, length, dtype=torch.long, device=device) for length in (source, target)))
    for handle in handles:
        handle.remove()
    return seen


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("sizes", [(2, 7, 6), (3, 5, 4), (1, 1, 9)], ids=str)
def test_every_module_has_the_shape_that_its_part_says(sizes: tuple[int, int, int], norm: str) -> None:
    made = BlocksExplorer(SMALL.replace(norm=norm), batch=sizes[0], source_length=sizes[1], target_length=sizes[2])
    seen = by_own_hooks(Transformer(SMALL.replace(norm=norm)).eval(), *sizes)
    owners = {name: part.owner for name, part in PARTS.items() if part.owner in seen and name != "target_embedding"}
    assert len(owners) > 30
    assert {name: made.shape(name) for name in owners} == {name: seen[owner] for name, owner in owners.items()}


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_inside_an_attention_the_tensors_are_what_the_parts_say(attention: str) -> None:
    made, seen = BlocksExplorer(SMALL, batch=2, source_length=7, target_length=5), {}
    model = Transformer(SMALL).eval()
    side, name = attention.split(".")
    layer = getattr(getattr(model, side).layers[0], name)
    attend = layer.attend

    def watch(q: Tensor, k: Tensor, v: Tensor, mask: object = None, **options: object) -> Tensor:
        context = attend(q, k, v, mask, **options)
        seen.update(q=q, k=k, v=v, context=context, weights=attention_weights(q, k, mask))
        return context

    layer.attend = watch
    model(torch.ones(2, 7, dtype=torch.long), torch.ones(2, 5, dtype=torch.long))
    assert {part: made.shape(f"{attention}.{part}") for part in seen} == {
        part: tuple(tensor.shape) for part, tensor in seen.items()
    }


@pytest.mark.parametrize("changes", CHOICES, ids=str)
def test_the_parts_add_up_to_the_model(changes: dict) -> None:
    config = SMALL.replace(**changes)
    made, model = BlocksExplorer(config), Transformer(config)
    count = made.parameters
    ends = ["source_embedding", "source_positions", "target_embedding", "target_positions", "logits"]
    assert sum(map(count, ends)) + count("encoder") + count("decoder") == count("model") == model.n_parameters()
    assert count("model") == account(config).n_parameters
    for side, names in LAYERS.items():
        norms = [f"{side}.norm_{i + 1}" for i in range(len(names))]
        layer = sum(count(f"{side}.{name}") for name in names) + sum(map(count, norms))
        own = getattr(model, side)
        assert layer == sum(p.numel() for p in own.layers[0].parameters())
        assert config.n_layers * layer + count(f"{side}.final_norm") == count(side)
        inner = sum(count(f"{side}.{part}") for part in ("widen", "activation", "narrow"))
        assert inner == count(f"{side}.feed_forward")
    for attention in ATTENTIONS:
        assert sum(count(name) for name in PARTS if name.startswith(f"{attention}.")) == count(attention)


@pytest.mark.parametrize("changes", CHOICES[1:], ids=str)
def test_the_formula_of_a_count_gives_the_count(changes: dict) -> None:
    config = SMALL.replace(**changes)
    made = BlocksExplorer(config)
    for name, part in PARTS.items():
        formula = kinds(config)[part.kind].parameters
        value = eval(formula.replace("·", "*"), {}, made.facts["sizes"]) if formula else 0
        if name not in ("encoder", "decoder") and not (name.endswith("final_norm") and made.norm == "post"):
            assert made.parameters(name) == value, name


def test_the_parameters_of_a_model_that_is_there_are_its_own() -> None:
    model = Transformer(SMALL.replace(norm="pre"))
    model.encoder.layers[1].feed_forward = nn.Identity()  # counts are this model's, not its config's
    made = BlocksExplorer.of(model, batch=1)
    assert made.norm == "pre"
    assert made.parameters("model") == sum(p.numel() for p in model.parameters()) < account(model.config).n_parameters


def test_the_fallback_lists_steps_and_parts() -> None:
    made = plain()
    text = made.fallback_html()
    assert text.count("<li>") == len(STEPS) == 9
    assert "63,082,496 parameters" in text
    row = re.search(r"<tr><th[^>]*>decoder: cross-attention</th>(.*?)</tr>", text)[1]
    assert re.findall(r"<td>(.*?)</td>", row)[1:] == ["2 × 4 × 512", "1,050,624"]
    assert "final norm" not in text
    made.norm = "pre"
    assert "final norm" in made.fallback_html()


def test_a_sentence_of_ones_own_flows_through_the_picture() -> None:
    goat = ("yesterday the old goat ate <eos>", "gestern fraß die alte Ziege <eos>")
    made = BlocksExplorer(SMALL, source_length=6, target_length=4, sentences=goat)
    assert made.facts["sentences"] == {
        "source_ids": "yesterday the old goat ate <eos>",
        "target_ids": "<bos> gestern fraß die",
        "softmax": "gestern fraß die alte",
    }
    longer = BlocksExplorer(SMALL, source_length=7, target_length=4, sentences=goat)
    assert longer.facts["sentences"]["source_ids"] == "yesterday the old goat ate <eos> …"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"config": {"d_model": 8}}, TypeError, r"TransformerConfig, not dict.*BlocksExplorer\.of"),
        ({"source_length": 17}, ValueError, "source_length has to be from 1 to 16, not 17"),
        ({"level": "top"}, Exception, "level"),
        ({"sentences": "one text"}, TypeError, "sentences has to be two texts.*not 'one text'"),
    ],
    ids=str,
)
def test_what_it_cannot_show_is_refused(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BlocksExplorer(**{"config": SMALL, **options})


def part(page: Page, name: str) -> Locator:
    return page.locator(f'[data-id="{name}"]')


def panel(page: Page) -> str:
    return page.locator(".tt-found").text_content()


def test_the_numbers_of_a_sentence_are_those_of_the_translator() -> None:
    made, translator = BlocksExplorer.translating(), load_packed().translator
    model, run = translator.model, made.run
    source, target = (torch.tensor([ids]) for ids in run["ids"])
    with torch.no_grad():
        logits = model.eval()(source, target)[0]
        memory = model.encode(source)[0]
    assert run["next"] == [best[0][0] for best in run["best"]]
    assert run["target"] == ["<bos>", *run["next"][:-1]]  # its own translation, one place later
    found = [[row[1] for row in rows] for rows in run["best"]]
    torch.testing.assert_close(torch.tensor(found), logits.topk(3).values, atol=0.01, rtol=0)
    chances = [[row[2] for row in rows] for rows in run["best"]]
    torch.testing.assert_close(torch.tensor(chances), logits.softmax(-1).topk(3).values, atol=0.001, rtol=0)
    torch.testing.assert_close(torch.tensor(run["vectors"]["memory"]), memory[:, :COMPONENTS], atol=0.01, rtol=0)
    torch.testing.assert_close(torch.tensor(run["lengths"]["memory"]), memory.norm(dim=-1), atol=0.1, rtol=0)
    for weights in run["weights"].values():
        torch.testing.assert_close(torch.tensor(weights).sum(-1), torch.ones(len(weights)), atol=0.003, rtol=0)
    assert torch.tensor(run["weights"]["decoder.self_attention"]).triu(1).abs().max() == 0
    text = made.fallback_html()
    assert "Hund 0.9" in text
    with pytest.raises(ValueError, match="tokens that are read has to be from 1 to 9, not 11"):
        BlocksExplorer.translating("A little boy throws a ball to his dog.")
    with pytest.raises(ValueError, match="source_word has to be from 0 to 8, not 9"):
        made.source_word = 9


@in_browser
@pytest.mark.parametrize("level", LEVELS)
def test_every_part_of_a_level_says_its_name_role_shape_and_count(level: str, show: Show) -> None:
    made = BlocksExplorer(level=level, norm="pre")
    page = show(made)
    read = "all => all.map((e) => [e.dataset.id, e.getAttribute('aria-label')])"
    labels = dict(page.locator("[data-id]").evaluate_all(read))
    assert len(labels) == page.locator("[data-id]").count() > 9
    for name, label in labels.items():
        title, role = made.facts["kinds"][PARTS[name].kind][:2]
        count = f"{made.parameters(name):,}".replace(",", "\u202f") if made.parameters(name) else "none"
        sizes = " × ".join(f"{size:,}".replace(",", "\u202f") for size in made.shape(name))
        assert label.startswith(title)
        assert role in label
        assert f"{PARTS[name].axes.replace(' ', ' × ')} = {sizes}" in label
        assert label.endswith(count)


@in_browser
@pytest.mark.parametrize("side", LAYERS)
def test_pre_norm_moves_every_norm_below_its_sublayer(show: Show, side: str) -> None:
    page = show(BlocksExplorer(level=side))
    middle = "e => { const b = e.getBoundingClientRect(); return b.top + b.height / 2; }"
    pairs = [(f"{side}.norm_{i}", f"{side}.{name}") for i, name in enumerate(LAYERS[side], 1)]
    assert all(part(page, a).evaluate(middle) < part(page, b).evaluate(middle) for a, b in pairs)
    page.get_by_label("pre-norm").check()
    assert all(part(page, a).evaluate(middle) > part(page, b).evaluate(middle) for a, b in pairs)


@in_browser
def test_the_player_lights_the_parts_of_each_step(show: Show) -> None:
    page = show(plain())
    for step in STEPS:
        press(page, "Next")
        found = page.locator(".lit[data-id]").evaluate_all("all => all.map((e) => e.dataset.id)")
        assert sorted(found) == sorted(step.lit)
        expect(spoken(page)).to_contain_text(step.title)
    assert page.locator(".lit[data-to]").count() == 1  # the arrow into the softmax
    press(page, "Play")
    press(page, "Reset")  # it stops the player, too
    expect(page.get_by_role("button", name="Play")).to_have_count(1)
    expect(page.locator(".lit")).to_have_count(0)


@in_browser
def test_one_can_look_inside_and_come_back(show: Show) -> None:
    page = show(plain())
    part(page, "decoder").click(position={"x": 4, "y": 60})
    page.get_by_role("button", name="Look inside").click()
    part(page, "decoder.widen").click()
    assert "widen, decoder block" in panel(page)
    assert "Shape: batch × target × d_ff = 2 × 4 × 2\u202f048" in panel(page)
    page.get_by_role("button", name="Back to the whole").click()
    expect(part(page, "softmax")).to_have_count(1)
    page.get_by_role("button", name="Reset").click()
    assert part(show(BlocksExplorer(level="encoder")), "encoder.widen").count() == 1


def words(page: Page, name: str) -> str:
    return " ".join(page.locator(f'[data-words="{name}"] text').all_text_contents())


@in_browser
def test_sentences_are_shown_of_the_lengths_that_were_asked_for(show: Show) -> None:
    page = show(BlocksExplorer(source_length=4, target_length=3))
    ends = {"source_ids": "the old cat sits", "target_ids": "<bos> die alte", "softmax": "die alte Katze"}
    assert {name: words(page, name) for name in ends} == ends
    assert BlocksExplorer(source_length=9).facts["sentences"]["source_ids"] == "the old cat sits on the mat <eos> …"


@in_browser
@pytest.mark.parametrize("width", [390, 900])
def test_the_words_are_carried_up_and_meet_in_the_cross_attention(show: Show, width: int) -> None:
    page = show(plain(), width=width)

    def box(selector: str) -> dict:
        return page.locator(selector).bounding_box()

    def is_inside(name: str, part: str) -> bool:
        inner, outer = box(f'[data-words="{name}"]'), box(f'[data-id="{part}"]')
        return all(
            outer[at] <= inner[at] and inner[at] + inner[size] <= outer[at] + outer[size]
            for at, size in (("x", "width"), ("y", "height"))
        )

    assert is_inside("source_ids", "source_ids")
    assert is_inside("target_ids", "target_ids")
    tops = []
    for step in range(1, len(STEPS) + 1):
        press(page, "Next")
        tops.append(box('[data-words="target_ids"]')["y"])
        met = step >= 6
        assert is_inside("arrow", "decoder.cross_attention") == met
        assert is_inside("target_ids", "decoder.cross_attention") == (step in (6, 9))  # it ends where they met
        seen = page.locator(".web:not(.gone)").evaluate_all("all => all.map((e) => e.dataset.web)")
        looks = {3: "encoder.self_attention", 5: "decoder.self_attention", 6: "decoder.cross_attention"}
        assert seen == ([looks[step]] if step in looks else ["decoder.cross_attention"] * (step == 9))
        for name in ("source_ids", "target_ids"):
            words, column = box(f'[data-words="{name}"]'), box(f'[data-id="{name}"]')
            assert column["x"] <= words["x"] < words["x"] + words["width"] <= column["x"] + column["width"]
        assert is_inside("source_ids", "memory") == (step >= 4)
    assert tops[:-1] == sorted(tops[:-1], reverse=True)
    expect(page.locator('[data-words="softmax"]')).to_have_css("opacity", "1")
    assert "one kind of box only, cross-attention" in panel(page)


@in_browser
@pytest.mark.parametrize("width", [390, 900])
def test_a_word_that_is_picked_shows_its_numbers_at_every_station(show: Show, width: int) -> None:
    made = specimen()
    page, run = show(made, width=width), made.run
    page.locator('[data-words="arrow"] [data-word="2"]').click()
    page.locator('[data-words="target_ids"] [data-word="2"]').click()
    page.mouse.move(0, 0)

    def shown() -> list[str]:
        return page.locator(".tt-found .number").all_text_contents()

    told = []
    for _ in STEPS:
        press(page, "Next")
        page.mouse.move(0, 0)
        assert page.locator(".words .on").evaluate_all("all => all.map((e) => +e.dataset.word)") == [2] * 4
        told.append((panel(page), shown()))
    read, written = f"“{run['tokens'][2]}”", f"“{run['target'][2]}”"
    assert all(read in text for text, _ in told[:4])
    assert all(written in text for text, _ in told[4:])
    assert f"row {run['ids'][0][2]:,}".replace(",", "\u202f") in told[0][0]
    for step, name, k in ((1, "source_add", 2), (3, "memory", 2), (6, "decoder.feed_forward", 2)):
        assert f"{run['vectors'][name][k][0]:.2f}".replace("-", "−") in told[step][0]
        assert f"length {run['lengths'][name][k]:.1f}." in told[step][0]
    for step, name in ((2, "encoder.self_attention"), (4, "decoder.self_attention"), (5, "decoder.cross_attention")):
        row = run["weights"][name][2]
        assert told[step][1] == [f"{x:.3f}" for x in (row[:3] if name == "decoder.self_attention" else row)]
    assert [told[7][1], told[8][1]] == [
        [f"{row[at]:.{digits}f}" for row in run["best"][2]] for at, digits in ((1, 2), (2, 3))
    ]
    assert f"“{run['next'][2]}”: it is written" in told[8][0]


@in_browser
def test_a_word_that_is_picked_stays_picked_in_the_other_figures_of_the_translator(show: Show) -> None:
    page = show(TranslatorExplorer(), specimen(), HeadsExplorer.translating())
    machine, heads = (page.locator(f'[data-explorer="{name}"]') for name in ("blocks", "heads"))
    picked = machine.locator(".words .on")

    def places() -> list[int]:
        return picked.evaluate_all("all => all.map((e) => +e.dataset.word)")

    assert places() == [2, 2, 2, 2]  # read, written, the memory and what comes out
    page.get_by_role("group", name="the translation").get_by_role("button").nth(2).click()  # Hund
    assert sorted(places()) == [2, 2, 3, 3]
    machine.locator('[data-words="arrow"] [data-word="6"]').click()  # cat
    assert "“cat”" in heads.locator(".tt-found").inner_text()
    heads.get_by_role("button", name="dog asks").click()
    assert sorted(places()) == [2, 2, 3, 3]
    page.get_by_role("group", name="the translation").get_by_role("button").nth(5).click()  # beyond what is shown
    assert sorted(places()) == [2, 2, 3, 3]
    page.get_by_role("group", name="what was read").get_by_role("button").nth(4).click()  # the answer comes later
    expect(machine.locator('.words .on[data-word="4"]').first).to_be_visible()
    assert "“a”" in heads.locator(".tt-found").inner_text()


@in_browser
@pytest.mark.parametrize("width", [358, 828])
def test_words_that_are_not_there_yet_do_not_take_the_press(show: Show, width: int) -> None:
    page = show(specimen(), width=width)
    box = part(page, "softmax").locator(".shape").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(part(page, "softmax")).to_have_class(re.compile(r"\bon\b"))


@in_browser
def test_an_attention_speaks_of_the_word_that_is_framed_and_reset_of_what_to_do(show: Show) -> None:
    made = specimen()
    page, run = show(made), made.run
    start = page.locator(".tt-invite").inner_text()
    for i, j in ((2, 2), (6, 1), (0, 3)):
        page.locator(f'[data-words="arrow"] [data-word="{i}"]').click()
        page.locator(f'[data-words="target_ids"] [data-word="{j}"]').click()
        read, asks = run["tokens"][i], run["target"][j]
        for name, told in (
            ("encoder.self_attention", f"“{read}” looks at every word of its sentence."),
            ("decoder.self_attention", f"“{asks}” looks at “{' '.join(run['target'][: j + 1])}”, not ahead."),
            ("decoder.cross_attention", f"“{asks}” asks every word that was read."),
        ):
            part(page, name).click(position={"x": 4, "y": 4})
            assert told in panel(page)
            words, memory = page.locator(".tt-found").bounding_box(), part(page, "memory").bounding_box()
            assert words["y"] + words["height"] <= memory["y"] + 4
    press(page, "Reset")
    assert panel(page) == start
    assert start.startswith("Press Play")


@in_browser
def test_in_the_looking_a_line_is_as_thick_as_its_weight(show: Show) -> None:
    made = specimen()
    page = show(made)
    press(page, "Next", 6)
    lines = page.locator('[data-web="decoder.cross_attention"] path:not(.other)')
    thick = lines.evaluate_all("all => all.map((e) => parseFloat(getComputedStyle(e).strokeWidth))")
    weights = made.run["weights"]["decoder.cross_attention"][made.target_word]
    assert thick == pytest.approx([0.4 + 9 * weight for weight in weights], abs=0.01)
    part(page, "decoder.cross_attention").press("ArrowRight")
    assert f"“{made.run['target'][made.target_word + 1]}”" in panel(page)


@in_browser
def test_pointing_at_a_part_tells_what_tapping_keeps(show: Show) -> None:
    page = show(specimen(), width=900)
    part(page, "decoder.norm_2").hover()
    assert "Parameters: 2 · 128 = 256" in panel(page)
    assert "Shape: batch × target × d_model = 1 × 4 × 128" in panel(page)
    page.mouse.move(0, 0)
    assert panel(page) == page.locator(".tt-invite").inner_text()  # as at the first visit
    part(page, "decoder.norm_2").click()
    page.mouse.move(0, 0)
    assert "Parameters: 2 · 128 = 256" in panel(page)


@in_browser
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_in_the_whole_the_norms_stand_where_the_model_has_them(show: Show, norm: str) -> None:
    page = show(BlocksExplorer(norm=norm))
    middle = "e => { const b = e.getBoundingClientRect(); return b.top + b.height / 2; }"
    for side, names in LAYERS.items():
        for i, name in enumerate(names, 1):
            at = [part(page, f"{side}.{what}").evaluate(middle) for what in (name, f"add_{i}", f"norm_{i}")]
            below, above = (at[0], at[2]) if norm == "post" else (at[2], at[0])
            assert above < below  # y falls
            assert at[1] < at[0]
            assert (at[2] < at[1]) == (norm == "post")
        assert part(page, f"{side}.final_norm").count() == (norm == "pre")


@in_browser
def test_the_numbers_of_a_model_stand_in_the_picture_of_its_own_norms_alone(show: Show) -> None:
    page = show(BlocksExplorer.translating(norm="post"))
    press(page, "Next", 6)
    assert page.locator(".tt-found .number").count() == 0
    assert page.locator(".pick").count() == 0


@in_browser
def test_what_is_said_of_the_stream_fits_the_place_of_the_norm(show: Show) -> None:
    page = show(BlocksExplorer(level="encoder", norm="pre"))
    found = page.locator(".tt-found")
    assert "which only adds to it" in found.inner_text()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")  # where a page that grows moves on
    page.get_by_role("radio", name="post-norm").click()
    assert "only adds" not in found.inner_text()
    assert "a norm behind it changes all that passes" in found.inner_text()
    page = show(BlocksExplorer(level="encoder", norm="post"))
    assert "only adds" not in page.locator(".tt-invite").inner_text()
