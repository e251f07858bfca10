"""What a model says as it learns: told, kept, the same after a resume, and without any effect on the training."""

import errno
import json
import os
import re

import pytest
import torch

from tests.training.test_trainer import assert_bit_identical, reopened, stop_after
from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.errors import CheckpointError
from ttutor.training.progress import Stopped
from ttutor.training.trainer import Trainer
from ttutor.translation.report import Report
from ttutor.translation.samples import Samples, shown, spread_by_length
from ttutor.translation.translator import Translator

pytestmark = pytest.mark.trainer


def watched(trainer: Trainer, count: int = 3, quiet: bool = True) -> Trainer:
    """Run a training with samples."""
    trainer.run(on_validation=Report(trainer, count, quiet))
    return trainer


def kept(trainer: Trainer) -> list[dict]:
    return [json.loads(line) for line in trainer.folder.samples.read_text(encoding="utf-8").splitlines()]


def test_a_training_with_samples_ends_bit_for_bit_like_one_without(begin):
    plain, seen = begin("plain"), begin("seen")
    plain.run()
    torch.manual_seed(9)
    before = torch.get_rng_state()
    watched(seen)
    assert torch.equal(torch.get_rng_state(), before)
    assert_bit_identical(seen, plain)
    assert [one["validation_loss"] for one in seen.metrics] == [one["validation_loss"] for one in plain.metrics]


def test_every_validation_keeps_the_same_sentences_and_what_the_averaged_weights_say(begin):
    trainer = watched(begin(validate_every=4, steps=8))
    first, last = kept(trainer)
    assert (first["step"], last["step"]) == (4, 8)
    pairs = [[(one["source"], one["reference"]) for one in record["samples"]] for record in (first, last)]
    assert pairs[0] == pairs[1]
    assert set(pairs[0]) <= set(trainer.corpus.validation)
    assert len(set(pairs[0])) == 3
    translator = Translator.of(trainer)
    # All in one call: how long an endless translation may become depends on what is translated beside it.
    said = [one.text for one in translator.translate([source for source, _ in pairs[0]], beam_size=1)]
    assert [one["translation"] for one in last["samples"]] == said


def test_a_resumed_training_keeps_what_the_uninterrupted_one_keeps(begin):
    whole, stopped = watched(begin("whole")), begin("stopped")
    stop_after(stopped, 12)
    with pytest.raises(Stopped):
        watched(stopped)
    with stopped.folder.samples.open("a") as file:  # said after the last checkpoint, and cut off by a kill
        file.write(json.dumps({"step": 13, "samples": []}) + '\n{"step": 14, "sam')
    resumed = reopened(stopped)
    resumed.resume()
    watched(resumed)
    assert [record["step"] for record in kept(whole)] == [5, 10, 14]
    assert resumed.folder.samples.read_bytes() == whole.folder.samples.read_bytes()


def test_a_resume_makes_no_file_of_samples_where_there_was_none(begin):
    trainer = begin()
    trainer.run()
    reopened(trainer).resume()
    assert not trainer.folder.samples.exists()


def test_the_log_tells_the_whole_story(begin, capsys):
    trainer = watched(begin(), count=2, quiet=False)
    lines = capsys.readouterr().out.splitlines()
    pattern = (
        r"step (\d+), \d+\.\d min: loss (\d\.\d{3}), validation (\d\.\d{3}); [\d,]+ tokens/s, (\d+:\d\d left|done)"
    )
    told = [match for line in lines if (match := re.fullmatch(pattern, line))]
    expected = [
        [f"{one['step']}", f"{one['training_loss']:.3f}", f"{one['validation_loss']:.3f}"] for one in trainer.metrics
    ]
    assert [list(match.groups()[:3]) for match in told] == expected
    assert told[-1][4] == "done"
    assert len(lines) == 3 + 6 + 2 + 2, "sources and references once, translations each time"
    assert lines[1].startswith("  1  source       ")
    assert lines[8].startswith("  1  translation")


def test_the_speed_and_time_told_are_those_since_the_resume(begin, capsys):
    trainer = begin(steps=100)
    trainer.position.step, trainer.position.seconds, trainer.position.target_tokens = 80, 1000.0, 500_000
    report = Report(trainer, 0)
    trainer.position.step, trainer.position.seconds, trainer.position.target_tokens = 90, 1020.0, 540_000
    trainer.metrics.append({"step": 90, "seconds": 1020.0, "training_loss": 2.0, "validation_loss": 1.5})
    report(trainer)
    assert capsys.readouterr().out == "step 90, 17.0 min: loss 2.000, validation 1.500; 2,000 tokens/s, 0:20 left\n"


def test_a_training_that_ends_early_says_so(begin, capsys):
    trainer = begin(steps=400, learning_rate=1e-9, validate_every=1, patience=2)
    watched(trainer, count=0, quiet=False)
    told = capsys.readouterr().out.splitlines()
    assert trainer.position.step < 400
    assert [line.endswith("no better for too long: it ends here") for line in told] == [False] * (len(told) - 1) + [
        True
    ]


def test_a_model_that_says_nothing_is_shown_so():
    record = {"step": 1, "samples": [{"source": "a", "reference": "b", "translation": ""}]}
    assert shown(record, with_source=False) == "  1  translation  (nothing)"


def test_quiet_keeps_samples_and_prints_nothing_and_none_are_kept_unasked(begin, capsys):
    assert len(kept(watched(begin("quiet"), quiet=True))) == 3
    assert not watched(begin("none"), count=0).folder.samples.exists()
    assert capsys.readouterr().out == ""


def test_a_training_in_memory_needs_no_folder():
    trainer = Trainer(tiny_corpus(), tiny_recipe(steps=2, validate_every=1))
    samples = Samples(trainer, 1)
    records = []
    trainer.run(on_validation=lambda trainer: records.append(samples.take(trainer)))
    assert [record["step"] for record in records] == [1, 2]


def test_sentences_too_long_to_validate_on_are_not_shown():
    corpus = tiny_corpus()
    corpus.validation[:] = [("the dog " * 100, "le chien " * 100), ("the dog sleeps", "le chien dort")]
    assert Samples(Trainer(corpus, tiny_recipe()), 3).pairs == [("the dog sleeps", "le chien dort")]


def test_the_chosen_sentences_do_not_depend_on_their_order():
    pairs = [("x" * length, str(length)) for length in range(1, 12)]
    chosen = spread_by_length(pairs, 3)
    assert chosen == spread_by_length(pairs[::-1], 3)
    assert [len(source) for source, _ in chosen] == [2, 6, 10]


def test_no_byte_that_a_terminal_would_obey_is_shown():
    record = {"step": 1, "samples": [{"source": "a", "reference": "b", "translation": "\x1b[2Jclear\x07"}]}
    assert shown(record, with_source=False) == "  1  translation  \ufffd[2Jclear\ufffd"


def test_a_full_disk_is_one_message(begin, monkeypatch):
    trainer = begin()
    samples = Samples(trainer, 2)
    samples.take(trainer)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"samples\.jsonl: No space left on device; make room"):
        samples.take(trainer)
