"""The curve of a training: the right numbers, the same bytes, and a message where there is nothing to draw."""

import errno
import json
import os
import sys
import xml.etree.ElementTree as tree
from functools import partial

import pytest

from ttutor.errors import FileError, RunError
from ttutor.training.curve import draw, write_curve
from ttutor.training.run_folder import RunFolder
from ttutor.translation import training_command

pytest.importorskip("matplotlib")


def records(*losses: float, every: int = 50) -> list[dict]:
    return [
        {
            "step": every * number,
            "seconds": 30.0 * number,
            "learning_rate": 1e-3 / number,
            "training_loss": loss + 1,
            "validation_loss": loss,
        }
        for number, loss in enumerate(losses, start=1)
    ]


@pytest.fixture
def run_of(begin):
    """A run's folder with these records: `run_of("name", records)`."""

    def make(name: str, lines: list) -> RunFolder:
        folder = begin(name).folder
        folder.metrics.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
        return folder

    return make


@pytest.fixture
def curve(ttutor):
    """Run `ttutor curve`."""
    return partial(ttutor, "curve")


@pytest.mark.parametrize(
    "damaged",
    [
        {"step": 75},
        {"training_loss": "2.5"},
        {"validation_loss": None},
        {"learning_rate": True},
        {"seconds": 10**400},
        {"training_loss": float("nan")},
    ],
)
def test_a_damaged_record_is_left_out(run_of, tmp_path, damaged):
    good = records(3.0, 2.0)
    bad = {"step": 75} if damaged == {"step": 75} else {**good[0], "step": 75, **damaged}
    for name, lines in (("good", good), ("bad", [*good, bad])):
        write_curve([run_of(f"{name}/run", lines)], tmp_path / f"{name}.svg")
    assert (tmp_path / "bad.svg").read_bytes() == (tmp_path / "good.svg").read_bytes()


def lines_of(axes) -> dict[str, list]:
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def labels(path) -> str:
    """The texts of an SVG picture, which Matplotlib keeps in comments beside their outlines."""
    parser = tree.XMLParser(target=tree.TreeBuilder(insert_comments=True))
    nodes = tree.parse(path, parser).iter()
    return "\n".join(node.text.strip() for node in nodes if node.tag is tree.Comment)


def test_every_number_is_drawn_where_it_belongs():
    losses, rate = draw({"a": records(3.0, 1.5, 2.0)}).axes
    drawn = lines_of(losses)
    assert drawn["training"] == [[50, 4.0], [100, 2.5], [150, 3.0]]
    assert drawn["validation (lowest 1.500 at step 100)"] == [[50, 3.0], [100, 1.5], [150, 2.0]]
    assert [line.get_ydata().tolist() for line in rate.lines] == [[1e-3, 1e-3 / 2, 1e-3 / 3]]


def test_the_same_metrics_give_the_same_bytes(run_of, tmp_path):
    folder = run_of("a", records(3.0, 2.0))
    for suffix in ("svg", "pdf", "png"):
        one, other = tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}"
        write_curve([folder], one)
        write_curve([folder], other)
        assert one.read_bytes() == other.read_bytes()
    assert "<dc:date>" not in (tmp_path / "one.svg").read_text()


def test_the_command_draws_the_last_run_into_its_folder(curve, tmp_path, begin):
    folder = begin("ttutor-runs/mine").folder
    folder.metrics.write_text(json.dumps(records(2.0)[0]) + "\n")
    assert curve().stdout == f"{os.path.join('ttutor-runs', 'mine', 'curve.svg')}\n"
    assert "mine (0.5 minutes)" in labels(folder.curve)


def test_several_runs_are_overlaid_and_told_apart(curve, run_of, tmp_path):
    one, other = run_of("one", records(3.0, 2.0)), run_of("other", records(2.5))
    assert curve("--run", one.path, "--run", other.path).stdout == "curve.svg\n"
    text = labels(tmp_path / "curve.svg")
    assert "one: validation (lowest 2.000 at step 100)" in text
    assert "other: validation (lowest 2.500 at step 50)" in text
    same = run_of("deeper/one", records(1.0))
    curve("--run", one.path, "--run", same.path, "--output", "same.svg")
    assert f"2: {same.path}: training" in labels(tmp_path / "same.svg")


def test_what_cannot_be_drawn_is_one_message_and_code_2(curve, run_of, tmp_path):
    empty, full = run_of("empty", []), run_of("full", records(2.0))
    assert "there is no trained model under ttutor-runs" in curve(code=2).output
    assert "there is no trained model in nowhere" in curve("--run", "nowhere", code=2).output
    assert "metrics.jsonl holds no validation yet" in curve("--run", empty.path, code=2).output
    assert "the first comes after 5 steps" in curve("--run", full.path, "--run", empty.path, code=2).output
    assert "must end in .svg, .pdf, .png" in curve("--run", full.path, "--output", "curve.gif", code=2).output
    assert "cannot write" in curve("--run", full.path, "--output", tmp_path / "no/where.svg", code=2).output
    full.metrics.unlink()
    assert "holds no validation yet" in curve("--run", full.path, code=2).output


def test_without_matplotlib_the_extra_is_named(run_of, tmp_path, monkeypatch):
    folder = run_of("a", records(2.0))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(RunError, match=r'pip install "ttutor\[widgets\]"'):
        write_curve([folder], tmp_path / "a.svg")


def finished(begin) -> RunFolder:
    """A training that has come to its end, and its curve drawn."""
    trainer = begin()
    trainer.run()
    training_command.draw_curve(trainer, print)
    return trainer.folder


@pytest.mark.trainer
def test_a_training_draws_its_curve_at_the_end(begin, capsys):
    folder = finished(begin)
    assert "validation" in labels(folder.curve)
    assert f"drawn: {folder.curve}" in capsys.readouterr().out


@pytest.mark.trainer
def test_a_training_does_not_fail_for_the_lack_of_a_picture(begin, monkeypatch, capsys):
    trainer = begin()
    trainer.run()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    training_command.draw_curve(trainer, print)
    told = capsys.readouterr()
    assert "Warning: the training is saved, but not its curve: cannot write" in told.err
    assert told.out == ""
    assert not trainer.folder.curve.exists()
    with pytest.raises(FileError, match="No space left"):
        write_curve([trainer.folder], trainer.folder.curve)
