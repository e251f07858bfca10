"""The playground: its JavaScript computes PyTorch's gradients, learns in the page, and says what came out."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from torch import Tensor, nn
from torch.nn import functional

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, spoken, whole_text
from ttutor import assets
from ttutor.widgets import PlaygroundExplorer
from ttutor.widgets.playground import CAUSAL, TASKS, USUAL_RATE, engine_source, key_of

WIDTH = 32
ALL = {"positions": True, "causal": False, "heads": 2, "skips": True, "norm": True, "layers": 1}
TWO_FIFTHS = 120  # steps of a run of 300
SETUP = """
async (source) => {
  const engine = new Function(`return ${source}`)();
  const carried = (floats) => {
    let text = "";
    for (const byte of new Uint8Array(Float64Array.from(floats).buffer)) text += String.fromCharCode(byte);
    return btoa(text);
  };
  const all = (store, kind) => Object.fromEntries(
    Object.entries(store.named).map(([name, one]) => [name, carried(one[kind])]));
  const random = (length, seed) => {
    const one = new engine.Random(seed);
    return Float64Array.from({ length }, () => one.normal());
  };
  Object.assign(window, { engine, carried, all, random });
}
"""
GRADIENTS = """
({ task, parts, seed }) => {
  const training = new engine.Training(task, seed);
  const { model, tested: { tokens, targets } } = training;
  const values = all(model.store, "value");
  const loss = model.backward(tokens, targets, parts);
  return { values, gradients: all(model.store, "gradient"), loss, logits: carried(model.unembed.y),
    tokens: [...tokens], targets: [...targets] };
}
"""
STEPS = """
({ task, parts, seed, rate, steps }) => {
  const training = new engine.Training(task, seed);
  const backward = training.model.backward.bind(training.model);
  const batches = [];
  training.model.backward = (tokens, targets, parts) => {
    batches.push([[...tokens], [...targets]]);
    return backward(tokens, targets, parts);
  };
  const values = all(training.model.store, "value");
  const losses = Array.from({ length: steps }, () => training.step(parts, rate).loss);
  return { values, losses, batches, length: training.length, after: all(training.model.store, "value") };
}
"""
ALONE = """
({ kind, rows, length, parts }) => {
  const store = new engine.Store(20000);
  const sizes = { width: 32, length, rows };
  const layer = {
    Attention: () => new engine.Attention(store, "one", sizes, new engine.Random(3)),
    FeedForward: () => new engine.FeedForward(store, "one", sizes, new engine.Random(3)),
    Norm: () => new engine.Norm(store, "one", 32, rows),
    Linear: () => new engine.Linear(store, "one", 32, 7, rows, new engine.Random(3)),
  }[kind]();
  for (const name in store.named) if (/bias|gain/.test(name))
    store.named[name].value.set(random(store.named[name].value.length, 5).map((value) => 1 + 0.1 * value));
  const [x, dy] = [random(rows * 32, 1), random(rows * (kind === "Linear" ? 7 : 32), 2)];
  const y = carried(layer.forward(x, rows, parts));
  const dx = carried(layer.backward(dy, rows, parts));
  return { x: carried(x), dy: carried(dy), y, dx, values: all(store, "value"), gradients: all(store, "gradient") };
}
"""
ADAM = """
({ rate, gradients }) => {
  const store = new engine.Store(8);
  const one = store.make("one", 8, () => 0.5);
  return gradients.map((gradient) => { one.gradient.set(gradient); store.step(rate); return [...one.value]; });
}
"""
REPLAY = """
({ task, parts, seed, rate }) => {
  const training = new engine.Training(task, seed);
  for (let step = 0; step < engine.tasks[task].steps; step += 1) training.step(parts, rate);
  return Math.round(1000 * training.right(parts)) / 1000;
}
"""


def specimen() -> PlaygroundExplorer:
    """The figure as the gallery shows it, but for the length of its runs."""
    return PlaygroundExplorer(steps=20)


def extremes() -> list[PlaygroundExplorer]:
    return [
        PlaygroundExplorer("next", layers=2, beside=True, text="incomprehensibilities"),
        PlaygroundExplorer("who", text="horse hears girl whom?", positions=False, skips=False, norm=False, causal=True),
        PlaygroundExplorer("sum", heads=4, beside=True),
    ]


TAP = ("button:has-text('Yes')", "Pause")


# ---------------------------------------------------------------- the same numbers as PyTorch


@pytest.fixture(scope="module")
def engine(browser: Browser) -> Iterator[Page]:
    """A page of nothing, in which the script's layers, tasks and trainings are at hand."""
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.evaluate(SETUP, engine_source())
    yield page
    page.close()


def floats(carried: str, *shape: int) -> Tensor:
    return torch.tensor(np.frombuffer(base64.b64decode(carried), dtype=np.float64)).reshape(shape or (-1,))


def parameters(values: dict[str, str]) -> dict[str, Tensor]:
    return {name: floats(carried).requires_grad_() for name, carried in values.items()}


def linear(x: Tensor, given: dict[str, Tensor], name: str) -> Tensor:
    bias = given[f"{name}.bias"]
    return x @ given[f"{name}.weight"].reshape(x.shape[-1], len(bias)) + bias


def norm(x: Tensor, given: dict[str, Tensor], name: str) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], given[f"{name}.gain"], given[f"{name}.bias"])


def attention(x: Tensor, given: dict[str, Tensor], name: str, parts: dict[str, Any]) -> Tensor:
    """PyTorch's own, on sequences ``batch length width``."""
    batch, length, _ = x.shape
    heads = [
        part.reshape(batch, length, parts["heads"], -1).transpose(1, 2)
        for part in linear(x, given, f"{name}.project").chunk(3, dim=-1)
    ]
    mixed = functional.scaled_dot_product_attention(*heads, is_causal=parts["causal"])
    return linear(mixed.transpose(1, 2).reshape(batch, length, -1), given, f"{name}.out")


def feed_forward(x: Tensor, given: dict[str, Tensor], name: str) -> Tensor:
    return linear(torch.relu(linear(x, given, f"{name}.widen")), given, f"{name}.narrow")


def logits_of(given: dict[str, Tensor], tokens: Tensor, parts: dict[str, Any]) -> Tensor:
    """The model of the page, written with PyTorch's functions; tokens are ``batch length``."""
    x = given["embedding"].reshape(-1, WIDTH)[tokens]
    x = x + given["places"].reshape(-1, WIDTH) if parts["positions"] else x
    for layer in range(parts["layers"]):
        for name in (f"{layer}.attention", f"{layer}.feed_forward"):
            read = norm(x, given, f"{name}.norm") if parts["norm"] else x
            written = attention(read, given, name, parts) if "attention" in name else feed_forward(read, given, name)
            x = x + written if parts["skips"] else written
    return linear(norm(x, given, "norm") if parts["norm"] else x, given, "unembed")


def loss_of(given: dict[str, Tensor], tokens: Tensor, targets: Tensor, parts: dict[str, Any]) -> Tensor:
    return functional.cross_entropy(logits_of(given, tokens, parts).flatten(0, 1), targets.flatten(), ignore_index=-1)


SWITCHES = [
    dict(zip(("positions", "causal", "skips", "norm"), on, strict=True)) for on in product((True, False), repeat=4)
]
VARIED = [ALL | switches | {"heads": (1, 2, 4)[i % 3], "layers": 1 + i % 2} for i, switches in enumerate(SWITCHES)]


@in_browser
@pytest.mark.parametrize("task", TASKS)
def test_every_gradient_is_pytorchs_under_every_switch(engine: Page, task: str) -> None:
    for parts in VARIED:
        found = engine.evaluate(GRADIENTS, {"task": task, "parts": parts, "seed": 4})
        given = parameters(found["values"])
        length = given["places"].numel() // WIDTH
        tokens, targets = (torch.tensor(found[name]).reshape(-1, length) for name in ("tokens", "targets"))
        loss = loss_of(given, tokens, targets, parts)
        loss.backward()
        assert found["loss"] == pytest.approx(loss.item(), abs=1e-8), parts
        for name, one in given.items():
            expected = torch.zeros_like(one) if one.grad is None else one.grad
            assert (floats(found["gradients"][name]) - expected).abs().max() < 1e-8, (name, parts)
        used = [name for name, one in given.items() if one.grad is not None and one.grad.abs().max() > 0]
        assert len(used) >= 8 * parts["layers"] + 3


@in_browser
@pytest.mark.parametrize(
    ("task", "parts"),
    [("reverse", ALL), ("next", ALL | {"causal": True, "layers": 2}), ("sort", ALL | {"norm": False})],
)
def test_fifty_losses_are_those_of_pytorch_with_its_adam(engine: Page, task: str, parts: dict[str, Any]) -> None:
    found = engine.evaluate(STEPS, {"task": task, "parts": parts, "seed": 9, "rate": USUAL_RATE, "steps": 50})
    given = parameters(found["values"])
    optimizer = torch.optim.Adam(given.values(), USUAL_RATE)
    losses = []
    for batch in found["batches"]:
        tokens, targets = (torch.tensor(one).reshape(-1, found["length"]) for one in batch)
        loss = loss_of(given, tokens, targets, parts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] - losses[-1] > 0.3
    np.testing.assert_allclose(found["losses"], losses, atol=1e-5)
    for name, carried in found["after"].items():
        assert (floats(carried) - given[name].detach()).abs().max() < 1e-4, name


@in_browser
@pytest.mark.parametrize(("kind", "heads", "causal"), [
    ("Attention", 1, False), ("Attention", 2, True), ("Attention", 4, False),
    ("FeedForward", 1, False), ("Norm", 1, False), ("Linear", 1, False),
])  # fmt: skip
@pytest.mark.parametrize("rows", [5, 15])
def test_each_layer_alone_goes_forward_and_back_as_pytorchs(
    engine: Page, kind: str, heads: int, causal: bool, rows: int
) -> None:
    parts = {"heads": heads, "causal": causal}
    found = engine.evaluate(ALONE, {"kind": kind, "rows": rows, "length": 5, "parts": parts})
    given = parameters(found["values"])
    x = floats(found["x"], rows // 5, 5, WIDTH).requires_grad_()
    y = {
        "Attention": lambda: attention(x, given, "one", parts),
        "FeedForward": lambda: feed_forward(x, given, "one"),
        "Norm": lambda: norm(x, given, "one"),
        "Linear": lambda: linear(x, given, "one"),
    }[kind]()
    y.backward(floats(found["dy"]).reshape(y.shape))
    assert (floats(found["y"])[: y.numel()] - y.flatten()).abs().max() < 1e-10
    assert (floats(found["dx"])[: x.numel()] - x.grad.flatten()).abs().max() < 1e-10
    for name, one in given.items():
        assert (floats(found["gradients"][name]) - one.grad).abs().max() < 1e-10, name


@in_browser
@pytest.mark.parametrize("rate", [0.003, 0.1])
def test_adam_alone_is_pytorchs(engine: Page, rate: float) -> None:
    gradients = torch.randn(20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 0.01
    found = engine.evaluate(ADAM, {"rate": rate, "gradients": gradients.tolist()})
    one = nn.Parameter(torch.full((8,), 0.5, dtype=torch.float64))
    optimizer = torch.optim.Adam([one], rate)
    for gradient, after in zip(gradients, found, strict=True):
        one.grad = gradient
        optimizer.step()
        np.testing.assert_allclose(after, one.detach(), atol=1e-12)


# ---------------------------------------------------------------- what it learns from


DRAWS = """
([task, n]) => {
  const { draw, right, isKept, vocabulary } = engine.tasks[task];
  const random = new engine.Random(11);
  return Array.from({ length: n }, () => {
    const ids = draw(random);
    return { read: ids.map((id) => vocabulary[id]), kept: isKept(ids),
      right: right(ids).map((id) => (id < 0 ? null : vocabulary[id])) };
  });
}
"""


def answer_to(task: str, read: list[str]) -> list[str | None]:
    """What is right at each place, worked out anew."""
    if task in ("reverse", "sort"):
        return read[::-1] if task == "reverse" else sorted(read)
    if task == "who":
        return [None, None, None, read[0] if read[3] == "who?" else read[2]]
    if task == "sum":
        return [None, None, None, str(int(read[0]) + int(read[2]))]
    return [None if token == "." else following for token, following in zip(read, [*read[1:], "."], strict=True)]


@in_browser
@pytest.mark.parametrize("task", TASKS)
def test_what_is_called_right_is_right_and_nothing_that_is_kept_back_is_trained_on(engine: Page, task: str) -> None:
    drawn = engine.evaluate(DRAWS, [task, 2000])
    assert [one["right"] for one in drawn] == [answer_to(task, one["read"]) for one in drawn]
    kept = {" ".join(one["read"]) for one in drawn if one["kept"]}
    trained = {" ".join(one["read"]) for one in drawn if one["kept"] is False}
    assert kept.isdisjoint(trained)
    if task in ("who", "sum", "next"):
        assert 0.1 < len(kept) / len(kept | trained) < 0.3
        batches = engine.evaluate(STEPS, {"task": task, "parts": ALL, "seed": 0, "rate": 0.003, "steps": 20})["batches"]
        tested = engine.evaluate(GRADIENTS, {"task": task, "parts": ALL, "seed": 0})["tokens"]
        length = len(drawn[0]["read"])
        rows = {tuple(row) for batch, _ in batches for row in np.reshape(batch, (-1, length)).tolist()}
        assert rows.isdisjoint(map(tuple, np.reshape(tested, (-1, length)).tolist()))
    if task == "sum":  # 3 + 5 is kept back with 5 + 3
        assert kept == {" ".join([b, plus, a, equals]) for a, plus, b, equals in map(str.split, kept)}


def test_the_recorded_trainings_hold_what_the_figure_and_the_chapters_say() -> None:
    stored = assets.load("playground_seeds")
    right = {run["setting"]: run["right"] for run in stored["runs"]}
    assert len(right) == 90
    assert {len(shares) for shares in right.values()} == {5}

    def shares(task: str, **changes: Any) -> list[float]:
        usual = ALL | {"causal": task in CAUSAL, "rate": USUAL_RATE}
        return right[key_of(task, **(usual | changes))]

    for task in ("reverse", "sort", "who"):
        assert min(shares(task)) > 0.9
        assert max(shares(task, positions=False)) < stored["simplest"][task] + 0.15
    assert max(shares("sum")) < 0.1
    # Chapter 4: the mask alone does not help one layer, and is enough for two.
    assert max(shares("who", positions=False, causal=True)) < 0.65
    assert min(shares("who", positions=False, causal=True, layers=2)) > 0.95
    # Chapter 5: two layers need skips or norms, and one of the two is enough.
    assert max(shares("reverse", layers=2, skips=False, norm=False)) < 0.3
    assert min(shares("reverse", layers=2, skips=False)) > 0.95
    assert min(shares("reverse", layers=2, norm=False)) > 0.95
    assert min(shares("next", causal=False)) > 0.99
    assert max(shares("next")) < 0.45
    assert min(shares("next")) > stored["simplest"]["next"] - 0.05


@in_browser
def test_a_recorded_training_comes_out_again(engine: Page) -> None:
    right = {run["setting"]: run["right"] for run in assets.load("playground_seeds")["runs"]}
    for task, changes, tolerance in (("reverse", {"positions": False}, 0.05), ("who", {}, 1e-3)):
        parts = ALL | changes
        again = engine.evaluate(REPLAY, {"task": task, "parts": parts, "seed": 101, "rate": USUAL_RATE})
        assert again == pytest.approx(right[key_of(task, **parts, rate=USUAL_RATE)][0], abs=tolerance)


# ---------------------------------------------------------------- in the page


def settled(page: Page, seconds: float = 90) -> None:
    expect(page.locator("section.tt[aria-busy=true]")).to_have_count(0, timeout=1000 * seconds)


def found(page: Page) -> str:
    return page.locator(".tt-found").inner_text()


def share_in(words: str) -> float:
    """The first share of a sentence."""
    return float(re.search(r"(\d+)\s%", words)[1]) / 100


def learn(page: Page, guess: str = "Yes") -> str:
    page.get_by_role("button", name=guess, exact=True).click()
    settled(page)
    return found(page)


@in_browser
def test_it_learns_to_reverse_and_falls_without_positions(show: Show) -> None:
    page = show(PlaygroundExplorer())
    words = learn(page)
    assert share_in(words) > 0.98
    assert "as you guessed" in words
    seeds = assets.load("playground_seeds")["provenance"]["seeds"]
    assert f"Seeds {seeds[0]} to {seeds[-1]}, recorded with the same parts: 100" in words
    assert page.locator(".mark").count() == 3  # nine in ten, the simplest answer, chance
    assert spoken(page).inner_text() == words
    assert page.locator("text.token.right").all_text_contents() == list("desserts")
    assert page.get_by_role("button", name="Yes", exact=True).is_hidden()  # the same again would come out the same
    shares = next(run for run in assets.load("playground_seeds")["runs"] if run["setting"] == "reverse 10211 1 0.003")
    np.testing.assert_allclose(numbers(page, ".recorded"), shares["right"], atol=1e-9)
    page.get_by_label("Your own letters").fill("drawkcab")
    settled(page)
    assert page.locator("text.token.right").all_text_contents() == list("backward")
    page.get_by_label("positions").click()
    settled(page)
    assert "without positions" in found(page)
    assert page.locator(".fall").count() == 1
    assert page.locator(".tt-question").inner_text() == "Will it learn this without positions?"
    words = learn(page, "No")
    assert words.startswith("It fails, as you guessed.")
    assert share_in(words) < 0.4
    assert "which letters there are, and not where" in words
    assert page.locator(".line.before").count() == 2  # the run before, and its key


@in_browser
def test_sums_are_learned_by_heart_and_the_next_letter_is_read_without_a_mask(show: Show) -> None:
    page = show(PlaygroundExplorer("sum"))
    words = learn(page)
    assert share_in(words) < 0.1
    assert "you guessed otherwise" in words
    assert "knows them by heart" in words
    page = show(PlaygroundExplorer("next", causal=False))
    assert "it reads the answer" in learn(page)


@in_browser
def test_it_pauses_steps_goes_on_and_survives_switching_while_it_runs(show: Show) -> None:
    page = show(PlaygroundExplorer())
    page.get_by_role("button", name="No", exact=True).click()
    page.get_by_role("button", name="Pause").click()
    settled(page)
    step = int(re.search(r"step (\d+)", found(page))[1])
    assert step < 300
    page.get_by_role("button", name="One step").click()
    settled(page)
    assert found(page).startswith(f"It stands at step {step + 1}, with ")
    page.get_by_role("button", name="Go on").click()
    for name in ("positions", "skips", "causal", "norms", "positions"):
        page.get_by_label(name).click()
    page.get_by_role("button", name="Pause").click()
    settled(page)
    page.get_by_label("It learns to").select_option(index=2)
    assert "nothing yet" in page.locator("svg").first.get_attribute("aria-label")
    assert "100" in learn(page)


@in_browser
def test_two_learn_side_by_side_and_another_seed_is_another_run(show: Show) -> None:
    page = show(PlaygroundExplorer("who", positions=False, beside=True))
    words = learn(page)
    assert 0.2 < share_in(words) < 0.8
    assert page.locator(".line.usual").count() == 2  # the line and its key
    assert page.locator(".tt-picture").nth(1).locator("text.token.right").count() == 1
    page.get_by_role("button", name="Another seed").click()
    settled(page)
    assert "After 300 steps" in found(page)


@in_browser
def test_python_reads_the_history(show: Show) -> None:
    from tests.widgets.test_every_explorer import WITH_A_MODEL
    from ttutor.widgets.static import module_source

    made = PlaygroundExplorer("who")
    page = show(made)
    page.evaluate(WITH_A_MODEL, [module_source("playground"), made.static_state()])
    learn(page)
    made.history = json.loads(page.evaluate("JSON.stringify(window.figure.state.history)"))
    (run,) = made.history
    assert (run["task"], run["guess"], run["positions"], run["done"]) == ("who", "yes", True, 300)
    assert run["steps"][0] == 0
    assert run["steps"][-1] == 300
    assert run["right"][-1] > 0.9 > run["right"][0]
    assert run["loss"][-1] < 0.2
    page.evaluate("window.figure.stop()")


@in_browser
def test_where_workers_are_forbidden_it_learns_beside_the_drawing(browser: Browser, tmp_path) -> None:
    page = browser.new_page()
    page.add_init_script("window.Worker = function () { throw new Error('forbidden'); };")
    page.goto(PlaygroundExplorer("who").save(tmp_path / "page.html").as_uri())
    assert share_in(learn(page)) > 0.9
    page.close()


@in_browser
def test_reset_ends_a_running_training(show: Show) -> None:
    page = show(specimen())
    before = whole_text(page)
    page.get_by_role("button", name="Yes", exact=True).click()
    page.get_by_role("button", name="Reset").click()
    settled(page)
    page.wait_for_timeout(100)
    assert whole_text(page) == before


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="task has to be one of reverse, sort, who, sum, next, not 'copy'"):
        PlaygroundExplorer("copy")
    with pytest.raises(ValueError, match="the length of text has to be from 0 to 40"):
        PlaygroundExplorer(text="x" * 41)


@in_browser
def test_what_it_does_not_know_is_told(show: Show) -> None:
    page = show(PlaygroundExplorer(text="naïveté!"))
    assert "It knows no “ï”" in whole_text(page)
    assert "s t r e s s e d" in page.locator("svg").first.get_attribute("aria-label")
    page.get_by_label("It knows no").fill("abc")
    assert "3 of 8" in whole_text(page)
    page = show(PlaygroundExplorer("who", text=HOSTILE[0][:40]))
    assert "It knows no “<img”" in whole_text(page)
    assert page.locator("section.tt img").count() == 0
