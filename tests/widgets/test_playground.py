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

from tests.widgets.conftest import Show, hurried
from tests.widgets.figure import HOSTILE, in_browser, numbers, spoken, whole_text
from ttutor import assets
from ttutor.widgets import PlaygroundExplorer
from ttutor.widgets.playground import CAUSAL, TASKS, USUAL_RATE, engine_source, key_of
from ttutor.widgets.static import _read

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
        assert len({tuple(row) for row in np.reshape(tested, (-1, length)).tolist()}) == len(kept)
        assert engine.evaluate("engine.tasks.sum.kept") == len(kept)
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


# ---------------------------------------------------------------- what is said of a training


SAY = "([source, name, given]) => new Function(`${source}; return ${name}`)()(...given)"
GOAL = 300
SHARES = dict[int, float | tuple[float, float]]
"""The share right at steps of a training; two where its parts changed, before and after it."""


def training(task: str, right: SHARES, *, seen: SHARES | None = None, changes: Any = (), **more: Any) -> dict[str, Any]:
    """A training as the figure keeps it; `changes` are steps, what changes of the parts there, and of the rate."""
    usual = ALL | {"causal": task in CAUSAL}
    made = [[0, usual, USUAL_RATE]]
    for step, changed, *rate in changes:
        made.append([step, made[-1][1] | changed, *(rate or [made[-1][2]])])
    if changes and changes[0][0] == 0:
        made = made[1:]
    points = [(step, share) for step, here in right.items() for share in (here if isinstance(here, tuple) else (here,))]
    steps, shares = zip(*points, strict=True)
    trained = [(seen or {}).get(step, share) for step, share in points]
    run = {"id": 1, "task": task, "seed": 1, "guess": "yes", "done": steps[-1], "steps": steps, "right": shares}
    return run | {"seen": trained, "loss": [0.5] * len(steps), "changes": made, "beside": None} | more


@pytest.fixture
def say(engine: Page) -> Any:
    """Any of the functions that write what the figure says."""
    source = re.sub(r"^export ", "", _read("playground_words"), flags=re.MULTILINE)
    return lambda name, *given: engine.evaluate(SAY, [source, name, given])


@pytest.fixture
def verdict(say: Any) -> Any:
    """What is said of a training: the outcome, and the rest."""

    def ask(
        run: dict[str, Any], *, goal: int = GOAL, simplest: float = 0.2, parts: Any = None, **more: Any
    ) -> list[str]:
        now = {"parts": parts or run["changes"][-1][1:], "right": run["right"][-1]} | more.pop("now", {})
        given = {"run": run, "now": now, "goal": goal, "simplest": simplest} | more
        return [words.replace("\u00a0", " ") for words in say("verdictOf", given)]

    return ask


OUT, BACK = {"positions": False}, {"positions": True}


@in_browser
def test_the_verdict_scores_a_guess_of_a_training_whose_parts_stayed(verdict: Any) -> None:
    outcome, rest = verdict(training("reverse", {0: 0.05, 300: 1}), recorded=[1, 1, 1, 1, 1])
    assert outcome == "It learns, as you guessed."
    assert rest == (
        "After 300 steps it has 100 % of the new letters right. "
        "Five other random starts, recorded: 100 % each. Now take the positions out."
    )
    outcome, rest = verdict(training("reverse", {0: 0.05, 300: 0.2}, changes=[(0, OUT)]), recorded=[0.191, 0.236])
    assert outcome == "It fails, and you guessed otherwise."
    assert "recorded: 19 to 24 %. A place does not know which place it is" in rest
    assert rest.endswith("nor where the other letters stand. Now tick “beside it, all parts”.")
    assert "take the positions out" not in rest


@in_browser
def test_the_verdict_of_a_pause_says_how_to_finish(verdict: Any) -> None:
    run = training("reverse", {0: 0.04, 1: 0.05})
    assert verdict(run) == [
        "",
        "Paused at step 1 of 300: 5 % of the new letters right, loss 0.50. Go on to finish.",
    ]
    unguessed = verdict(run | {"guess": None})[1]
    assert unguessed == "At step 1 of 300: 5 % of the new letters right, loss 0.50. Your guess lets it go on."
    changed = training("reverse", {0: 0.04, 1: 0.05, 2: 0.06}, changes=[(1, OUT)], guess=None)
    assert verdict(changed)[1].endswith("loss 0.50. Without positions from step 1. Go on to finish.")


@in_browser
def test_the_guess_is_asked_in_words_and_counted(say: Any) -> None:
    asked = {"task": "reverse", "seed": 1, "simplest": 0.291}
    assert say("guessWords", asked) == "Will it get nine letters in ten right?"
    assert say("guessWords", asked | {"guess": "no"}) == "Nine letters in ten right? You said no."
    assert say("guessWords", asked | {"task": "sum"}) == "Will it get nine new sums in ten right?"
    following = say("guessWords", asked | {"task": "next"}).replace("\u00a0", " ")
    assert following == "Will it beat a guess from the letter before alone (29 %)?"
    again = asked | {"seed": 2, "twin": False}
    assert say("guessWords", again) == "Another start (seed 2). Will it end the same?"
    # The one before failed, so who says that this one ends the same says that it will not learn.
    assert say("guessWords", again | {"guess": "no"}) == "Seed 2: the same end? You said yes."
    assert say("guessWords", again | {"guess": "no", "twin": True}) == "Seed 2: the same end? You said no."
    told = [["yes", True], ["yes", False], ["no", False], [None, True], ["no", None]]
    assert say("scoreWords", told) == "2 of 3 guesses right."
    assert say("scoreWords", told[:1]) == ""
    run = training("reverse", {0: 0.05, 300: 1})
    assert say("outcomeOf", run, GOAL, 0.2) is True
    assert say("outcomeOf", run | {"done": 200}, GOAL, 0.2) is None
    assert say("outcomeOf", training("reverse", {300: 1}, changes=[(100, OUT)]), GOAL, 0.2) is None


@in_browser
def test_the_words_before_a_guess_say_what_the_parts_do(say: Any) -> None:
    assert "".join(say("openingWords", "reverse", ALL)) == (
        "It has learned nothing yet. Positions tell a place where it stands, skips keep what came in, norms keep it to "
        "one size. Take a part out, if you like. Your guess starts the training."
    )
    assert say("openingWords", "who", ALL | OUT) == [
        "It has no positions: no place knows where it stands. Your guess starts the training."
    ]
    neither = say("openingWords", "reverse", ALL | {"skips": False, "norm": False})[0]
    assert neither.startswith("It has no skips: what a layer finds takes the place of what came in. It has no norms: a")
    assert say("openingWords", "sort", ALL | {"causal": True})[0].startswith("It looks left only: a place sees itself")
    assert say("openingWords", "next", ALL)[0].startswith("It looks both ways: a place sees what comes after it, too.")


@in_browser
def test_the_words_of_a_sequence_say_whether_it_is_trained_on(say: Any) -> None:
    assert say("standingWords", "sum", "4+7=", True, 20) == "4+7= is one of the 20 sums kept back."
    assert say("standingWords", "sum", "9+9=", False, 20) == "9+9= is in the training."
    assert say("standingWords", "who", "dog bites man who?", True) == (
        "dog bites man who? is kept back from the training."
    )
    assert say("standingWords", "reverse", "stressed", None) == ""


@in_browser
def test_the_verdict_of_sorting_without_positions_blames_the_places_and_not_the_digits(verdict: Any) -> None:
    run = training("sort", {0: 0.1, 600: 0.31}, changes=[(0, OUT)], guess="no")
    outcome, rest = verdict(run, goal=600, simplest=0.309)
    assert outcome == "It fails, as you guessed."
    assert "Which digits there are is enough to sort; but no place knows which place it is" in rest


@in_browser
def test_the_verdict_of_parts_taken_out_after_learning_tells_both_steps(verdict: Any) -> None:
    run = training("reverse", {0: 0.05, 300: (1, 0.17), 600: 0.2}, changes=[(300, OUT)])
    outcome, rest = verdict(run)
    assert outcome == "With all parts it had learned; without positions it has lost it."
    assert rest == (
        "At step 300, with all parts: 100 %. At step 600, without positions since 300: 20 %. "
        "No recorded run changed its parts on the way."
    )
    run = training("reverse", {300: (1, 0.9), 600: 1}, changes=[(300, {"skips": False})])
    assert verdict(run)[0] == "With all parts it had learned; without skips it still can."
    run = training("reverse", {300: (0.2, 0.1), 600: 1}, changes=[(0, OUT), (300, BACK)])
    assert verdict(run)[0] == "Without positions it had failed; with positions it has learned."
    run = training("reverse", {300: 0.2, 600: 1}, changes=[(0, {}, 0.0003), (300, {}, 0.003)])
    assert verdict(run)[0] == "With all parts it had failed; at a usual learning rate it has learned."


@in_browser
def test_the_verdict_of_a_part_out_and_back_scores_no_guess_and_gives_no_advice(verdict: Any) -> None:
    run = training("reverse", {190: (1, 0.2), 270: (0.2, 0.8), 590: 1}, changes=[(190, OUT), (270, BACK)])
    outcome, rest = verdict(run)
    assert outcome == "In the end, with all parts, it can do it."
    assert "Without positions from step 190, with positions from step 270. No recorded run changed" in rest
    assert "guess" not in outcome + rest
    assert "Now take" not in rest
    # Out and back with no step between: nothing happened.
    run = training("reverse", {0: 0.05, 300: 1}, changes=[(190, OUT), (190, BACK)])
    assert verdict(run)[0] == "It learns, as you guessed."
    run = training("reverse", {0: 0.05, 300: 1}, changes=[(300, OUT), (300, BACK)])
    assert verdict(run)[0] == "It learns, as you guessed."


@in_browser
def test_the_verdict_of_a_model_that_is_changed_and_not_trained_since(verdict: Any) -> None:
    run = training("reverse", {0: 0.05, 300: 1})
    changed = {"parts": [ALL | OUT, USUAL_RATE], "right": 0.17}
    outcome, rest = verdict(run, now=changed)
    assert outcome == "Without positions it falls to 17 %."
    assert rest.startswith("At step 300, with all parts, it had 100 % of the new letters right.")
    assert "guessed" not in rest
    blind = training("reverse", {0: 0.05, 300: 0.2}, changes=[(0, OUT)])
    put_in = {"parts": [ALL, USUAL_RATE], "right": 0.16}
    assert verdict(blind, now=put_in)[0] == (
        "Positions that it never trained with do not help it at once: 20 % before, 16 % now."
    )
    assert verdict(blind, now=put_in | {"right": 0.23})[0] == "With positions it rises to 23 %."


@in_browser
def test_the_verdict_of_what_is_learned_late_or_lost_later(verdict: Any) -> None:
    slow = training("reverse", {300: 0.19, 900: 1}, changes=[(0, {}, 0.0003)], guess="no")
    outcome, rest = verdict(slow, recorded=[0.166, 0.303])
    assert outcome == "At 300 steps it failed, as you guessed; it needed more steps."
    assert rest == (
        "19 % at step 300, 100 % at step 900. Five other random starts, recorded after 300 steps: 17 to 30 %. "
        "Now take the positions out."
    )
    early = training("reverse", {300: 0.19}, changes=[(0, {}, 0.0003)], guess="no")
    assert verdict(early)[1].endswith("A small learning rate makes small steps: let it go on.")
    lost = training("reverse", {300: 0.95, 600: 0.3}, changes=[(0, {}, 0.03)])
    assert verdict(lost)[0] == "At 300 steps it had learned, as you guessed; it has lost it since."


@in_browser
def test_the_verdict_says_by_heart_only_where_the_new_ones_are_low_at_the_same_step(verdict: Any) -> None:
    run = training("sum", {0: 0.05, 600: 0}, seen={600: 0.96})
    outcome, rest = verdict(run, goal=600, kept=20)
    assert outcome == "It fails, and you guessed otherwise."
    assert "After 600 steps it has none of the 20 sums kept back right." in rest
    assert rest.endswith("it has 96 % right: it has those by heart, and no rule that carries over to the 20.")
    late = training("reverse", {300: 0.19, 900: 1}, seen={300: 0.2, 900: 1}, changes=[(0, {}, 0.0003)])
    assert "by heart" not in verdict(late)[1]


@in_browser
def test_the_verdict_of_another_start_compares_it_with_the_one_before(verdict: Any) -> None:
    first = training("reverse", {0: 0.05, 300: 0.2}, changes=[(0, OUT)])
    second = first | {"id": 2, "seed": 2, "guess": None}
    assert verdict(second, before=first)[0] == "It fails again from another random start (seed 2)."
    guessed = second | {"guess": "no"}
    assert verdict(guessed, before=first)[0] == "It fails again from another random start (seed 2), as you guessed."
    assert verdict(first, before=first)[0] == "It fails, and you guessed otherwise."  # no other start
    learned = second | {"right": [0.05, 1]}
    assert (
        verdict(learned, before=first)[0]
        == "From this random start (seed 2) it learns; from the one before it did not."
    )
    assert verdict(learned | {"guess": "no"}, before=first)[0] == (
        "From this random start (seed 2) it learns, and you guessed otherwise; from the one before it did not."
    )
    assert verdict(second)[0] == "It fails."


@in_browser
def test_the_verdict_tells_of_the_second_model_beside_it(verdict: Any) -> None:
    beside = {"right": [0.05, 1], "steps": [0, 300], "done": 300}
    run = training("reverse", {0: 0.05, 300: 0.2}, changes=[(0, OUT)], beside=beside)
    assert "Beside it, with all parts: 100 %. " in verdict(run)[1]
    assert "Now tick" not in verdict(run)[1]
    assert "Beside it, with all parts: 100 % at step 200." in verdict(run | {"beside": beside | {"done": 200}})[1]


@in_browser
def test_the_verdict_of_the_next_letter_is_measured_on_the_letter_before(verdict: Any) -> None:
    run = training("next", {0: 0.02, 400: 0.32})
    assert verdict(run, goal=400, simplest=0.291)[0] == "It beats it, as you guessed: 32 % against 29 %."
    even = training("next", {0: 0.02, 400: 0.293})
    assert verdict(even, goal=400, simplest=0.291)[0] == (
        "It does not beat it, and you guessed otherwise: 29 % against 29 %."
    )
    reads = training("next", {0: 0.02, 400: 1}, changes=[(0, {"causal": False})])
    assert "it reads the answer" in verdict(reads, goal=400, simplest=0.291)[1]


@in_browser
def test_what_the_verdict_advises_is_what_the_recorded_trainings_did(verdict: Any) -> None:
    right = {run["setting"]: run["right"] for run in assets.load("playground_seeds")["runs"]}

    def of(**changes: Any) -> list[float]:
        return right[key_of("reverse", **(ALL | {"rate": USUAL_RATE} | changes))]

    neither = {"skips": False, "norm": False}
    one = training("reverse", {300: 1}, changes=[(0, {"skips": False})])
    assert verdict(one)[1].endswith("One layer can do without. Give it two, and take skips and norms both out.")
    assert min(of(**neither)) > 0.95
    assert max(of(layers=2, **neither)) < 0.3
    two = training("reverse", {300: 1}, changes=[(0, {"norm": False, "layers": 2})])
    assert verdict(two)[1].endswith("Here one of the two is enough. Now take both out.")
    assert min(of(layers=2, skips=False) + of(layers=2, norm=False)) > 0.95
    none = training("reverse", {300: 0.2}, changes=[(0, neither | {"layers": 2})])
    assert verdict(none)[1].endswith("Now put one of the two back.")


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
    assert len(seeds) == 5
    assert "Five other random starts, recorded: 100\u00a0% each." in words
    names = page.locator('[data-key^="name"]')
    assert "100\u00a0%" not in names.all_text_contents()  # the starts' name stands there, and each on its own line
    high = {name.text_content(): float(name.get_attribute("y")) - 4 for name in names.all()}
    dot = float(page.locator(".recorded").first.get_attribute("cy"))
    assert high["five recorded starts"] == pytest.approx(dot, abs=1)
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
    assert re.match(r"Without positions it falls to \d+\s%\. At step 300, with all parts, it had 100", found(page))
    assert page.locator(".fall").count() == 1
    assert not re.search(r"\d", page.locator("[data-key=lossname]").text_content())  # that was the whole model's
    assert page.locator(".tt-question").inner_text() == "Will it learn without positions?"
    assert page.locator(".tt-controls > span").inner_text() == "Would a new one learn without positions?"
    words = learn(page, "No")
    assert words.startswith("It fails, as you guessed.")
    assert share_in(words) < 0.4
    assert "A place does not know which place it is" in words
    assert page.locator(".line.before").count() == 2  # the run before, and its key


@in_browser
def test_sums_are_learned_by_heart_and_the_next_letter_is_read_without_a_mask(show: Show) -> None:
    page = show(PlaygroundExplorer("sum"))
    words = learn(page)
    assert share_in(words) < 0.1
    assert "you guessed otherwise" in words
    assert "it has those by heart" in words
    page = show(PlaygroundExplorer("next", causal=False))
    assert "it reads the answer" in learn(page)


@in_browser
def test_it_pauses_steps_goes_on_and_survives_switching_while_it_runs(show: Show) -> None:
    page = show(PlaygroundExplorer(), paced=True)
    page.get_by_role("button", name="No", exact=True).click()
    page.wait_for_timeout(450)
    page.get_by_role("button", name="Pause").click()
    settled(page)
    step = int(re.search(r"step (\d+)", found(page))[1])
    assert step < 300
    page.get_by_role("button", name="One step").click()
    settled(page)
    assert found(page).startswith(f"Paused at step {step + 1} of 300: ")
    page.get_by_role("button", name="Go on").click()
    for name in ("positions", "skips", "it looks left only", "norms", "positions"):
        page.get_by_label(name).click()
    page.get_by_role("button", name="Pause").click()
    settled(page)
    page.get_by_label("It learns to").select_option(index=2)
    assert "dog bites man" in page.locator("svg").first.get_attribute("aria-label")
    assert page.get_by_role("button", name="Go on").is_hidden()  # another task begins anew
    assert page.locator("[data-key=linenew]").get_attribute("d") == ""


@in_browser
def test_two_learn_side_by_side_and_another_seed_is_another_run(show: Show) -> None:
    page = show(PlaygroundExplorer("who", positions=False, beside=True))
    words = learn(page)
    assert 0.2 < share_in(words) < 0.8
    assert "Beside it, with all parts: 100" in words
    assert page.locator(".line.usual").count() == 2  # the line and its key
    assert page.locator("[data-key^=saidsecond].right").count() == 1
    asked = page.locator(".tt-controls > span")
    page.get_by_role("button", name="New start, at random").click()
    assert asked.inner_text() == "Another start (seed 2). Will it end the same?"
    assert page.get_by_role("button", name="Yes", exact=True).evaluate("e => e === e.getRootNode().activeElement")
    page.get_by_role("button", name="Yes", exact=True).click()
    assert asked.inner_text() == "Seed 2: the same end? You said yes."
    settled(page)
    assert found(page).startswith("It fails again from another random start (seed 2), as you guessed.")
    assert asked.inner_text() == "You said yes. 1 of 2 guesses right."


@in_browser
def test_the_second_click_of_a_double_click_does_not_pause(show: Show) -> None:
    page = show(PlaygroundExplorer(), paced=True)
    page.get_by_role("button", name="Yes", exact=True).dblclick()
    settled(page)
    assert found(page).startswith("It learns, as you guessed.")


@in_browser
def test_a_guess_is_still_asked_after_single_steps(show: Show) -> None:
    page = show(specimen())
    for name in ("Yes", "No"):  # a filled button would look chosen
        expect(page.get_by_role("button", name=name, exact=True)).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    for _ in range(2):
        page.get_by_role("button", name="One step").click()
        settled(page)
    assert found(page).startswith("At step 2 of 20: ")
    assert page.get_by_role("button", name="Go on").is_hidden()
    assert page.locator(".tt-controls > span").inner_text() == "Will it get nine letters in ten right?"
    assert learn(page, "No").startswith("It fails, as you guessed. After 20 steps ")


@in_browser
def test_a_longer_run_before_stays_inside_the_chart(show: Show) -> None:
    page = show(specimen())
    learn(page)
    page.get_by_role("button", name="Go on").click()
    settled(page)
    page.get_by_label("positions").click()
    settled(page)
    learn(page)
    ends = "e => { const b = e.getBBox(); return b.x + b.width; }"
    before, axis = (page.locator(f"[data-key={name}]").evaluate(ends) for name in ("linebefore", "floor"))
    assert 0 < before <= axis + 0.1


@in_browser
def test_a_key_goes_before_the_pointer_until_that_moves(show: Show) -> None:
    page = show(PlaygroundExplorer())
    line = page.locator(".such")
    page.locator("[data-key=hit8]").focus()
    page.locator("[data-key=hit2]").hover()
    assert line.inner_text().startswith("“r” is looked at by ")
    page.keyboard.press("ArrowRight")
    assert line.inner_text().startswith("Answer 2, ")
    assert page.locator(".hit.on").get_attribute("data-key") == "hit9"
    page.mouse.move(0, 0)
    page.locator("[data-key=hit2]").hover()
    assert line.inner_text().startswith("“r” is looked at by ")


@in_browser
def test_a_second_model_catches_up_and_nothing_moves(show: Show) -> None:
    page = show(PlaygroundExplorer(positions=False))
    learn(page)
    box, plot = page.locator("section.tt"), page.locator("svg").nth(1)
    before = [box.bounding_box(), plot.bounding_box()]
    page.get_by_label("beside it, all parts").click()
    settled(page)
    words = found(page)
    assert 0 < share_in(words) < 0.4  # the finished run stays
    assert "Beside it, with all parts: 100" in words
    assert [box.bounding_box(), plot.bounding_box()] == before
    page.get_by_label("beside it, all parts").click()
    settled(page)
    assert "Beside it" not in found(page)


@in_browser
def test_a_part_that_goes_out_and_comes_back_while_it_learns_is_marked(show: Show) -> None:
    page = show(PlaygroundExplorer("who", steps=150), paced=True)
    page.get_by_role("button", name="One step").click()  # the first, without a guess
    settled(page)
    assert re.match(r"At step 1 of 150: \d+\s% of the new answers right, loss \d", found(page))
    page.get_by_label("positions").click()
    settled(page)
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("[data-key=eventname0]")).to_have_text("without positions")
    page.get_by_label("positions").click()
    expect(page.locator("[data-key=eventname1]")).to_have_text("with positions", timeout=30_000)
    settled(page)
    words = found(page)
    assert re.match(r"In the end, with all parts, it can(not)? do it\.", words)
    assert re.search(r"Without positions from step 1, with positions from step \d+\. No recorded run", words)
    assert "guess" not in words
    assert page.locator(".tt-question").inner_text() == "What now, with all parts?"


@in_browser
def test_a_letter_shows_its_lines_and_one_head_at_a_time(show: Show) -> None:
    page = show(PlaygroundExplorer())
    line = page.locator(".such")
    strong = "all => all.filter((e) => +e.getAttribute('stroke-opacity') > 0.12).length"
    assert line.inner_text().startswith("Examples: ")
    everything = page.locator(".look").evaluate_all(strong)
    page.locator("[data-key=hit8]").hover()
    assert re.match(r"Answer 1, “.”, looks at ", line.inner_text())
    assert 0 < page.locator(".look").evaluate_all(strong) < everything
    page.mouse.move(0, 0)
    assert line.inner_text().startswith("Examples: ")
    page.locator("[data-key=hit0]").click()
    assert line.inner_text().startswith("“s₁” is looked at by answer ")
    page.mouse.move(0, 0)
    assert line.inner_text().startswith("“s₁” is looked at by answer ")  # what is chosen stays
    page.locator("[data-key=hit0]").press("ArrowRight")
    assert line.inner_text().startswith("“t” is looked at by answer ")
    assert page.locator("[data-key=hit0]").get_attribute("aria-pressed") == "true"
    page.locator("[data-key=hit0]").click()
    assert page.locator("[data-key=hit0]").get_attribute("aria-pressed") == "false"
    page.mouse.move(0, 0)
    assert line.inner_text().startswith("Examples: ")
    mean = page.locator(".look").evaluate_all("all => all.map((e) => e.getAttribute('stroke-width'))")
    for name in ("head 1", "head 2", "all heads"):
        page.locator("[data-key=turn]").click()
        assert page.locator(".turn").text_content() == name
        now = page.locator(".look").evaluate_all("all => all.map((e) => e.getAttribute('stroke-width'))")
        assert (now == mean) == (name == "all heads")


@in_browser
def test_on_a_phone_what_is_pressed_is_large_and_its_names_are_seen(show: Show) -> None:
    page = show(PlaygroundExplorer(beside=True, positions=False, slow=True), width=390, touch=True)
    page.locator("summary").click()
    for one in page.locator("button, select, .own input, .tt-toggle, .tt-option").all():
        if one.is_visible():
            box = one.bounding_box()
            assert min(box["width"], box["height"]) >= 43.9, one.inner_text()
    for name in ("It learns to", "Your own letters", "It has", "answer", "it says", "it reads", "your parts"):
        assert page.locator(".tt-stage").get_by_text(name, exact=True).first.is_visible(), name
    page.locator("[data-key=hit9]").tap()
    assert page.locator(".such").inner_text().startswith("Answer 2, ")


@in_browser
def test_the_invitation_stands_again_after_a_reset(show: Show) -> None:
    page = show(specimen(), motion=True)
    shown = "e => [...e.querySelectorAll('.tt-finding > *')].map((one) => getComputedStyle(one).opacity)"
    assert page.locator("section.tt").evaluate(shown) == ["1", "0"]
    page.get_by_role("button", name="Yes", exact=True).click()
    assert page.locator("section.tt").evaluate(shown) == ["0", "1"]  # at once: no two texts over each other
    settled(page)
    page.get_by_role("button", name="Reset").click()
    assert page.locator("section.tt").evaluate(shown) == ["1", "0"]


@in_browser
def test_python_reads_the_history(show: Show) -> None:
    from tests.widgets.test_every_explorer import WITH_A_MODEL
    from ttutor.widgets.static import module_source

    made = PlaygroundExplorer("who")
    page = show(made)
    page.evaluate(WITH_A_MODEL, [hurried(module_source("playground")), made.static_state()])
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
    page = show(specimen(), paced=True)
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
    assert "It knows no “ï”. Still showing: stressed." in whole_text(page)
    assert "s t r e s s e d" in page.locator("svg").first.get_attribute("aria-label")
    page.get_by_label("Your own letters").fill("abc")
    assert "3 letters: it needs 8. Still showing: stressed." in whole_text(page)
    page.get_by_label("Your own letters").fill("a")
    assert "1 letter: it needs 8." in whole_text(page)
    page.get_by_label("It learns to").select_option("add two digits")
    own = page.get_by_label("Your own sum")
    for text in ("12+3", "3-2=", "9+", ""):
        own.fill(text)
        assert "It adds two single digits, as in 9+9. Still showing: 4+7=." in whole_text(page)
    own.fill("9 +9")
    assert "9+9= is in the training." in page.locator(".such").inner_text()
    assert page.locator("svg").first.get_attribute("aria-label").endswith("the answer is 18")
    own.fill("7+4=")
    assert "7+4= is one of the 20 sums kept back." in page.locator(".such").inner_text()
    page.get_by_label("It learns to").select_option("say who did it, and to whom")
    for text, unknown in (("dog bit man", "It knows no “bit”. "), ("who? bites man dog", "")):
        page.get_by_label("Your own sentence").fill(text)
        words = f"{unknown}Words: dog man cat girl boy bird horse fox; bites sees hears likes; who? whom? Still showing"
        assert page.locator(".such").inner_text().startswith(words)
    page.get_by_label("It learns to").select_option("guess the next letter of a word")
    page.get_by_label("Your own word").fill("xyz")
    assert "xyz is none of its words." in page.locator(".such").inner_text()
    page = show(PlaygroundExplorer("who", text=HOSTILE[0][:40]))
    assert "It knows no “<img”" in whole_text(page)
    assert page.locator("section.tt img").count() == 0
