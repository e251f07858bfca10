"""``ttutor doctor``: what it finds, what it advises, and that it works with the core alone."""

from __future__ import annotations

import importlib.metadata
import json
import sys

import pytest
from packaging.requirements import Requirement

import ttutor
from ttutor import doctor
from ttutor.doctor import Group, examine, extra_of, find_problems, render
from ttutor.efficient import BACKENDS


def test_report_names_what_is_running() -> None:
    report = examine()
    assert report.ttutor == ttutor.__version__
    assert report.torch["version"].startswith(importlib.metadata.version("torch").split("+")[0])
    assert report.torch["device"] in ("cpu", "cuda", "mps")
    assert [group.name for group in report.groups] == ["core", *doctor.EXTRAS] == list(doctor.PURPOSE)
    assert report.problems == []


def test_every_requirement_of_the_metadata_is_looked_at() -> None:
    requirements = [Requirement(line) for line in importlib.metadata.requires("ttutor")]
    looked_at = {name for group in examine().groups for name in [*group.installed, *group.missing]}
    assert looked_at == {requirement.name for requirement in requirements if extra_of(requirement)}
    assert {"torch", "pytest"} <= looked_at


@pytest.mark.parametrize(
    ("n_threads", "wish", "said"),
    [
        (3, "3", "3, since OMP_NUM_THREADS is 3"),
        (1, None, "1, since there is one core"),
        (2, None, "2: translate and train work on so many batches side by side; 1 for chat,"),
    ],
)
def test_the_number_of_threads_is_said_with_its_reason(n_threads: int, wish: str | None, said: str) -> None:
    assert doctor.survey_threads(n_threads, wish).startswith(said)


def test_each_attention_backend_says_whether_it_can_run_here() -> None:
    report = examine()
    assert set(report.attention) == set(BACKENDS)
    assert report.attention["sdpa"] == "can run"
    assert {state.split(":")[0] for state in report.attention.values()} <= {"can run", "cannot"}
    assert "attention sdpa: can run" in render(report)
    assert doctor.survey_attention({"error": "OSError: libtorch_cpu.so"}) == {}


@pytest.mark.parametrize(
    ("text", "extra"),
    [
        ("torch>=2.9", "core"),
        ("jupyter-book<2,>=1.0.4.post1; extra == 'book'", "book"),
        (f"tool>=3.5; (sys_platform == '{sys.platform}') and extra == 'test'", "test"),
        ("tool>=3.5; (sys_platform == 'amiga') and extra == 'test'", None),
        ('ttutor[book,test]; extra == "dev"', None),
    ],
)
def test_a_requirement_belongs_to_an_extra_and_those_of_other_platforms_are_not_missed(text: str, extra: str) -> None:
    assert extra_of(Requirement(text)) == extra


def test_a_missing_package_is_named_with_the_command_that_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "tokenizers":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    report = examine()
    text = render(report)
    assert "translation (ttutor fetch, train, translate, evaluate): missing tokenizers>=" in text
    assert 'pip install ".[translation]"' in text
    assert report.problems == [], "an extra that is not installed is a choice, not a problem"


def test_too_old_a_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.1")
    report = examine()
    assert "einops>=0.8 (found 0.0.1)" in report.problems[0]
    assert doctor.run() == 2


def test_broken_torch_is_a_problem_with_a_remedy() -> None:
    problems = find_problems([Group("core", {}, [])], {"error": "OSError: libtorch_cpu.so"})
    assert problems == ["PyTorch does not load (OSError: libtorch_cpu.so): pip install --force-reinstall torch"]


def test_installed_as_a_wheel_it_advises_the_package_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "editable_checkout", lambda: None)
    assert Group("widgets", {}, ["ipywidgets"]).remedy == 'pip install "ttutor[widgets]"'
    assert Group("core", {}, ["einops"]).remedy == 'pip install "ttutor"'


@pytest.mark.parametrize(("folder", "expected"), [("", "not set"), ("{tmp}", "not found there")])
def test_the_data_folder_is_looked_at(folder: str, expected: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTUTOR_DATA", folder.replace("{tmp}", str(tmp_path)))
    assert expected in " ".join(doctor.survey_data().values())


def test_json_holds_the_same(capsys: pytest.CaptureFixture) -> None:
    assert doctor.run(as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["ttutor"] == ttutor.__version__
