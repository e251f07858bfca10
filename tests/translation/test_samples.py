"""What a model says as it learns: told, kept, the same after a resume, and without any effect on the training."""

import json
import re

import pytest
import torch

from tests.training.test_trainer import assert_bit_identical
from ttutor.training.trainer import Trainer
from ttutor.translation.report import Report
from ttutor.translation.samples import shown
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


def test_when_validation_has_long_been_worse_the_log_and_the_samples_say_so(begin, capsys):
    trainer, losses = begin(validate_every=1, steps=7), iter([5.0, 4.0, *[4.5] * 5])
    trainer.validation_loss = lambda: next(losses)
    watched(trainer, count=1, quiet=False)
    lines = capsys.readouterr().out.splitlines()
    told = [number for number, line in enumerate(lines) if "no validation has been better since step 2, whose" in line]
    assert len(told) == 1
    assert lines[told[0] - 1].startswith("step 7, ")
    assert [record["best_step"] for record in kept(trainer)] == [1, 2, 2, 2, 2, 2, 2]


def test_quiet_keeps_samples_and_prints_nothing_and_none_are_kept_unasked(begin, capsys):
    assert len(kept(watched(begin("quiet"), quiet=True))) == 3
    assert not watched(begin("none"), count=0).folder.samples.exists()
    assert capsys.readouterr().out == ""


def test_no_byte_that_a_terminal_would_obey_is_shown():
    record = {"step": 1, "samples": [{"source": "a", "reference": "b", "translation": "\x1b[2Jclear\x07"}]}
    assert shown(record, with_source=False) == "  1  translation  \ufffd[2Jclear\ufffd"
