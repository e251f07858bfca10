"""Bundles: what watches an answer runs alone, gives the same values, and holds nothing that is to stay secret."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from tests.grading.bench import SEED, session_of_answers
from ttutor.errors import InputError
from ttutor.exercises import exercises, find
from ttutor.exercises.mutation import source_of
from ttutor.exercises.running import expectation, outcome
from ttutor.exercises.values import same
from ttutor.grading.bundle import cut, given_to, sources_for
from ttutor.grading.sandbox import worker_folder

WATCHED = [one for one in exercises() if not one.calls_directly]


def bodies(code) -> set[str]:
    """The functions and methods of some code, docstrings aside, as normalised text."""
    found = set()
    for node in ast.walk(ast.parse(source_of(code))):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            body = node.body if isinstance(node.body, list) else [node.body]
            plain = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
            found.add("\n".join(map(ast.unparse, plain)))
    return {one for one in found if len(one) > 20}


@pytest.mark.parametrize("exercise", WATCHED, ids=lambda one: one.id)
def test_what_watches_holds_no_answer_and_no_hint(exercise):
    modules = cut(((exercise.observe.__module__, exercise.observe.__name__),))
    text = "\n".join(modules.values())
    secret = [exercise.reference, exercise.solution or exercise.reference]
    secret += [answer for mistake in exercise.mistakes for answer in mistake.answers]
    normalised = "\n".join(ast.unparse(ast.parse(module)) for module in modules.values())
    for code in secret:
        for body in bodies(code):
            assert textwrap.indent(body, "    ") not in normalised
            assert body not in normalised.splitlines()
    says = [*exercise.hints, exercise.explanation, *(hint.says for hint in (*exercise.mistakes, *exercise.properties))]
    assert not [sentence for sentence in says if sentence and sentence in text]


def test_bundles_run_where_there_is_no_ttutor():
    """Every bundle is imported by a Python that cannot find the package."""
    script = """
import json, sys
sys.path[:] = [p for p in sys.path if p]
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in str(f)]
sys.path.insert(0, {folder!r})
from worker.student import BundledImporter
import importlib
for watch, sources in json.load(sys.stdin):
    given = BundledImporter()
    given.sources |= sources
    given.install()
    assert callable(getattr(importlib.import_module(watch[0]), watch[1]))
    sys.meta_path.remove(given)
    print(*watch)
"""
    given = [([one.observe.__module__, one.observe.__name__], sources_for(one)) for one in WATCHED]
    done = subprocess.run(
        [sys.executable, "-c", script.format(folder=str(worker_folder().parent))],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(WATCHED)


@pytest.mark.soak
@pytest.mark.parametrize("exercise", WATCHED, ids=lambda one: one.id)
def test_bundles_give_the_same_value_as_the_exercise(forks, exercise):
    answer = exercise.solution or exercise.reference
    with session_of_answers(forks, exercise, [answer]) as session:
        remote = session.answer("answer_0")
        for case in exercise.cases:
            here = expectation(replace(exercise, reference=answer), case, SEED)
            there = outcome(exercise, case, remote, here, SEED)
            assert same(here, there.value, 1e-9), (case.name, there.error)


def test_exercises_that_are_called_directly_need_no_bundle_unless_they_hand_functions_over():
    direct = [one for one in exercises() if one.calls_directly and not given_to(one)]
    handing = {one.id for one in direct if set(sources_for(one)) != set(sources_for(find("attention.softmax")))}
    assert handing == {"decoder.future_leaks", "efficient.tell_exact", "training.low_loss"}
    assert len(direct) > 20


def test_what_an_exercise_gives_is_cut_out_too():
    (exercise,) = (one for one in exercises("encoder") if one.id == "encoder.lost_stream")
    assert given_to(exercise) == (("ttutor.layers", "layer_norm"),)
    sources = sources_for(exercise)
    assert "def layer_norm" in sources["ttutor.layers.norms"]
    assert "class FeedForward" not in "".join(sources.values())


def test_what_cannot_be_followed_is_said():
    with pytest.raises(InputError, match="no source"):
        cut((("ttutor.nowhere", "nothing"),))
