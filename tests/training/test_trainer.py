"""The training loop: it learns, it repeats itself bit for bit, it loses nothing, it says what is wrong."""

import os
import pickle
import signal
import threading
import time
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.errors import FileError, InputError, RunError
from ttutor.tokenization import PAD_ID
from ttutor.training import progress
from ttutor.training.batching import loss_by_frequency, make_batch
from ttutor.training.checkpoint import TENSORS
from ttutor.training.loss import batch_loss
from ttutor.training.progress import Stopped
from ttutor.training.run_folder import RunFolder
from ttutor.training.trainer import Trainer
from ttutor.translation.translator import Translator

pytestmark = pytest.mark.trainer
ROOT = Path(__file__).resolve().parents[2]


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    own = {f"model.{name}": parameter.detach() for name, parameter in trainer.model.named_parameters()}
    return own | {f"average.{name}": tensor for name, tensor in trainer.average.tensors.items()}


def assert_bit_identical(one: Trainer, other: Trainer) -> None:
    mine, theirs = weights(one), weights(other)
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def reopened(trainer: Trainer) -> Trainer:
    """A new trainer on the same folder, as a new process would make it."""
    folder = RunFolder(trainer.folder.path)
    return Trainer(trainer.corpus, folder.recipe(), folder, tokenizer=folder.tokenizer(), precision=trainer.precision)


def stop_after(trainer: Trainer, step: int) -> None:
    """Press Ctrl-C while the training takes this step."""
    take = trainer.training_step

    def step_and_signal(batches):
        loss = take(batches)
        if trainer.position.step == step:
            os.kill(os.getpid(), signal.SIGINT)
        return loss

    trainer.training_step = step_and_signal


def test_the_loss_goes_down():
    trainer = Trainer(tiny_corpus(), tiny_recipe(steps=30, validate_every=10))
    losses = [record["validation_loss"] for record in trainer.run()]
    assert losses[0] > losses[1] > losses[2]


def test_two_runs_with_one_seed_are_bit_identical_and_another_seed_differs():
    first, second, other = (Trainer(tiny_corpus(), tiny_recipe(seed=seed)) for seed in (3, 3, 4))
    for trainer in (first, second, other):
        torch.manual_seed(time.time_ns())  # whatever the process drew before must not matter
        trainer.run()
    assert_bit_identical(first, second)
    assert [record["training_loss"] for record in first.metrics] == [
        record["training_loss"] for record in second.metrics
    ]
    assert not torch.equal(next(first.model.parameters()), next(other.model.parameters()))


def test_the_callers_random_numbers_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    Trainer(tiny_corpus(), tiny_recipe(steps=3)).run()
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(("at", "optimizer"), [(4, "muon"), (13, "adamw")])
def test_ctrl_c_saves_and_the_resumed_run_ends_bit_identical(begin, at, optimizer):
    whole = begin("whole", optimizer=optimizer)
    whole.run()
    stopped = begin("stopped", optimizer=optimizer)
    stop_after(stopped, at)
    with pytest.raises(Stopped):
        stopped.run()
    assert stopped.position.step == at
    resumed = reopened(stopped)
    assert resumed.resume() == []
    assert resumed.position.step == at
    resumed.run()
    assert_bit_identical(resumed, whole)
    assert resumed.position.target_tokens == whole.position.target_tokens
    columns = ("step", "epoch", "learning_rate", "training_loss", "validation_loss")
    assert [[one[name] for name in columns] for one in resumed.metrics] == [
        [one[name] for name in columns] for one in whole.metrics
    ]
    assert list(RunFolder(stopped.folder.path).read_metrics()) == resumed.metrics


@pytest.mark.parametrize("quiet", [False, True])
def test_a_slow_first_step_is_spoken_of_once_while_it_is_under_way(begin, monkeypatch, quiet):
    assert progress.SILENCE < 10
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    said, heard = [], threading.Event()
    monkeypatch.setattr(progress, "say_above", lambda text: (said.append(text), heard.set()))
    trainer, timers = begin(steps=3, batches_per_step=2), []
    take = trainer.training_step

    def slow_step(batches):
        timers.extend(one for one in threading.enumerate() if isinstance(one, threading.Timer))
        if not quiet:
            assert heard.wait(timeout=60), "the step is still under way, and nobody knows"
        return take(batches)

    trainer.training_step = slow_step
    trainer.run(quiet=quiet)
    told = "The first step is under way: 2 batches of up to 400 tokens. Ctrl-C stops after it, a second one at once."
    assert said == ([] if quiet else [told])
    assert not quiet or timers == []


def test_a_quick_first_step_is_not_spoken_of(begin, monkeypatch):
    monkeypatch.setattr(progress, "SILENCE", 3600.0)
    begin(steps=3).run(quiet=False)
    assert not any(isinstance(one, threading.Timer) and not one.finished.is_set() for one in threading.enumerate())


def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_still_ends_bit_identical(begin):
    whole = begin("whole")
    whole.run()
    damaged = begin("damaged")
    damaged.run()
    newest = max(damaged.folder.checkpoints.iterdir()) / TENSORS
    newest.write_bytes(newest.read_bytes()[:-100])
    resumed = reopened(damaged)
    (message,) = resumed.resume()
    assert "step-00000014" in message
    assert resumed.position.step == 12
    resumed.run()
    assert_bit_identical(resumed, whole)


def test_nothing_is_unpickled_on_the_way(begin, monkeypatch):
    trainer = begin()
    trainer.run()

    def refuse(*_, **__):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    assert reopened(trainer).resume() == []


def test_a_text_that_changed_since_the_checkpoint_is_refused(begin):
    trainer = begin()
    trainer.run()
    folder = trainer.folder
    other = Trainer(tiny_corpus(seed=1), folder.recipe(), folder, tokenizer=folder.tokenizer())
    with pytest.raises(FileError, match="the text has changed since the checkpoint"):
        other.resume()


def test_nan_stops_with_the_last_checkpoint_intact(begin):
    trainer = begin()
    take = trainer.loss

    def poisoned(batch, smoothing):
        return take(batch, smoothing) * (float("nan") if trainer.position.step == 7 else 1.0)

    trainer.loss = poisoned
    with pytest.raises(RunError, match=r"the loss became nan .* at step \d+ .* is intact.*smaller learning_rate"):
        trainer.run()
    assert all(tensor.isfinite().all() for tensor in weights(trainer).values())
    resumed = reopened(trainer)
    resumed.resume()
    assert resumed.position.step == 6
    assert all(tensor.isfinite().all() for tensor in weights(resumed).values())


def test_the_step_s_loss_is_torch_s_on_all_logits():
    """The projection of real positions alone, checked against torch's loss over the padded rectangle."""
    trainer = Trainer(tiny_corpus(), tiny_recipe(dropout=0.0), precision="fp32")
    batch = make_batch([trainer.batches.pairs[index] for index in range(7)])
    logits = trainer.model(batch.source, batch.target_in)
    expected = functional.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), label_smoothing=0.1, ignore_index=PAD_ID
    )
    torch.testing.assert_close(trainer.loss(batch, smoothing=0.1), expected)


def test_a_step_s_gradient_is_that_of_the_mean_over_all_its_tokens():
    trainer = Trainer(tiny_corpus(), tiny_recipe(dropout=0.0), precision="fp32")
    batches = [make_batch(trainer.batches.pairs[start:end]) for start, end in ((0, 3), (3, 11))]
    loss = trainer.backward(batches)
    gradients = [parameter.grad.clone() for parameter in trainer.model.parameters()]
    counts = torch.tensor([batch.n_target_tokens for batch in batches])
    expected = (
        sum(trainer.loss(batch, smoothing=0.1) * n for batch, n in zip(batches, counts, strict=True)) / counts.sum()
    )
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for found, wanted in zip(gradients, torch.autograd.grad(expected, list(trainer.model.parameters())), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_in_one_process_a_run_is_the_plain_loop_bit_for_bit(threads):
    """Written out without a word of devices or processes: what they are for must cost the usual training nothing."""
    threads(1)  # as each of the trainer's places has one
    trainer = Trainer(tiny_corpus(), tiny_recipe(dropout=0.0, optimizer="adamw", steps=6), precision="fp32")
    plain = Trainer(tiny_corpus(), trainer.recipe, precision="fp32")
    parameters = list(plain.model.parameters())
    optimizer = torch.optim.AdamW(
        parameters, betas=(0.9, 0.98), eps=1e-9, weight_decay=trainer.recipe.weight_decay, fused=True
    )
    rates, take = [], trainer.training_step
    trainer.training_step = lambda batches: (take(batches), rates.append(trainer.learning_rate))[0]
    trainer.run()
    stream = (batch for epoch in range(9) for batch in plain.batches.epoch(epoch))
    for rate in rates:
        batches = [next(stream), next(stream)]
        n_tokens = sum(batch.n_target_tokens for batch in batches)
        losses = [batch_loss(plain.model, batch, 0.1) * (batch.n_target_tokens / n_tokens) for batch in batches]
        first, second = (torch.autograd.grad(loss, parameters) for loss in losses)
        for parameter, one, other in zip(parameters, first, second, strict=True):
            parameter.grad = one + other
        torch.nn.utils.clip_grad_norm_(parameters, trainer.recipe.clip_norm, foreach=True)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
    assert len(rates) == 6
    for found, expected in zip(trainer.model.parameters(), parameters, strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("batches_per_step", [1, 3])
def test_every_pair_is_learned_from_once_an_epoch_whatever_the_batches_a_step(batches_per_step):
    trainer = Trainer(tiny_corpus(), tiny_recipe(batches_per_step=batches_per_step))
    taken = [batch for _ in range(20) for batch in trainer.next_batches()]
    expected = [batch for epoch in range(20) for batch in trainer.batches.epoch(epoch)][: len(taken)]
    assert len(taken) == 20 * batches_per_step > 2 * trainer.batches.per_epoch()
    for one, other in zip(taken, expected, strict=True):
        assert torch.equal(one.source, other.source)
        assert torch.equal(one.target_out, other.target_out)


def test_the_number_of_threads_does_not_change_the_weights(threads):
    trainers = []
    for n_threads in (1, 2):
        threads(n_threads)
        trainers.append(Trainer(tiny_corpus(), tiny_recipe()))
        trainers[-1].run()
    assert_bit_identical(*trainers)


def worsening(trainer: Trainer, losses: list[float]) -> None:
    """Let the validations give these losses."""
    given = iter(losses)
    trainer.validation_loss = lambda: next(given)


def test_patience_ends_the_training_and_keeps_the_best_weights(begin):
    trainer, kept = begin(patience=2, validate_every=2, steps=40), []
    worsening(trainer, [5.0, 4.0, 4.5, 4.2])
    trainer.run(on_validation=lambda one: kept.append({name: t.clone() for name, t in one.average.tensors.items()}))
    assert [record["validation_loss"] for record in trainer.metrics] == [5.0, 4.0, 4.5, 4.2]
    assert (trainer.position.step, trainer.position.best_step, trainer.position.best_loss) == (8, 4, 4.0)
    assert all(torch.equal(tensor, kept[1][name]) for name, tensor in trainer.result().items())
    loaded = dict(Translator.load(trainer.folder.path).model.named_parameters())
    assert all(torch.equal(tensor, kept[1][name]) for name, tensor in loaded.items())
    again = reopened(trainer)
    again.resume()
    assert again.run() == trainer.metrics  # it does not go on
    assert all(torch.equal(tensor, kept[1][name]) for name, tensor in again.result().items())


@pytest.mark.parametrize("n_worse", [4, 5])
def test_long_past_its_best_a_training_goes_on_and_the_best_weights_translate(begin, n_worse):
    trainer, kept = begin(validate_every=2, steps=2 + 2 * n_worse), []
    worsening(trainer, [4.0] + [4.5] * n_worse)
    trainer.run(on_validation=lambda one: kept.append({name: t.clone() for name, t in one.average.tensors.items()}))
    assert trainer.position.step == trainer.recipe.steps
    expected = kept[0] if n_worse == 5 else kept[-1]
    again = reopened(trainer)
    again.resume()
    loaded = dict(Translator.load(trainer.folder.path).model.named_parameters())
    for weights_ in (trainer.result(), again.result(), loaded):
        assert all(torch.equal(tensor, expected[name]) for name, tensor in weights_.items())


def test_a_training_that_ended_before_it_learned_says_so(begin):
    trainer = begin(steps=2, validate_every=2)
    known = loss_by_frequency(trainer.batches.pairs, trainer.validation.pairs)
    assert "hardly learned" in trainer.hardly_learned()  # not a step so far
    worsening(trainer, [0.95 * known])
    trainer.run()
    assert f"its best validation loss is {0.95 * known:.2f} after 2 steps, and {known:.2f}" in trainer.hardly_learned()
    trainer.position.best_loss = 0.85 * known
    assert trainer.hardly_learned() == ""


@pytest.mark.parametrize(("length", "steps"), [({"steps": 4}, 4), ({"epochs": 2.0}, None)])
def test_the_training_is_as_long_as_the_recipe_says(length, steps):
    trainer = Trainer(tiny_corpus(), tiny_recipe(**length))
    trainer.run()
    assert trainer.position.step == (steps or trainer.batches.per_epoch())  # two batches a step
    assert 0 < trainer.learning_rate <= 0.5 * trainer.recipe.learning_rate


def test_minutes_end_the_training_by_the_clock():
    trainer = Trainer(tiny_corpus(), tiny_recipe(minutes=0.005))
    trainer.run()
    assert 0.3 <= trainer.position.seconds < 30


def test_pairs_too_long_for_the_recipe_are_left_out_and_counted():
    corpus = tiny_corpus()
    corpus.train.append(("the dog " * 100, "le chien " * 100))
    trainer = Trainer(corpus, tiny_recipe())
    assert trainer.n_left_out == 1
    with pytest.raises(InputError, match="none of the 121 training pairs has at most max_tokens=1 tokens"):
        Trainer(corpus, tiny_recipe(max_tokens=1))


def test_a_trainer_with_a_new_folder_makes_a_run_that_loads(tmp_path):
    trainer = Trainer(tiny_corpus(), tiny_recipe(steps=3), RunFolder(tmp_path / "my-run"))
    trainer.run()
    loaded = Translator.load(tmp_path / "my-run")
    assert loaded("the dog sleeps", beam_size=1) == Translator.of(trainer)("the dog sleeps", beam_size=1)
    again = reopened(trainer)
    again.resume()
    assert again.position.step == 3


def test_a_trainer_does_not_write_over_a_run_that_it_did_not_resume(begin):
    trainer = begin()
    trainer.run()
    with pytest.raises(FileError, match=r"holds a training run already; go on with it by Trainer.resume\(\)"):
        reopened(trainer).run()
    assert reopened(trainer).resume() == []


@pytest.mark.parametrize("content", [None, b'\xff\xfe\n{"step": 5, "loss"\n[1]\n{"step": null}\n5\n'])
def test_lost_or_damaged_metrics_do_not_keep_a_run_from_going_on(begin, content):
    trainer = begin()
    trainer.run()
    if content is None:
        trainer.folder.metrics.unlink()
    else:
        trainer.folder.metrics.write_bytes(content)
    resumed = reopened(trainer)
    assert resumed.resume() == []
    assert resumed.run() == []


@pytest.mark.parametrize(("changes", "warmup"), [({"steps": 40}, 4), ({"steps": 5}, 1), ({"steps": 90_000}, 1000)])
def test_a_warm_up_that_is_not_named_takes_a_tenth_of_the_training(changes, warmup) -> None:
    trainer = Trainer(tiny_corpus(), tiny_recipe(warmup=None, **changes))
    assert trainer.warmup() == 1000  # nothing is known of the pace yet; after one step it is
    trainer.position.step = 3
    assert trainer.warmup() == warmup
    assert Trainer(tiny_corpus(), tiny_recipe(warmup=7, **changes)).warmup() == 7


def test_a_warm_up_by_the_clock_takes_a_tenth_of_what_the_pace_promises() -> None:
    trainer = Trainer(tiny_corpus(), tiny_recipe(warmup=None, minutes=2.0))
    trainer.position.step, trainer.position.seconds = 50, 12.0
    assert trainer.warmup() == 50
