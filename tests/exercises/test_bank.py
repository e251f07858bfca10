"""Every exercise keeps the same promises: what is right passes, and each mistake meets the sentence meant for it."""

from __future__ import annotations

import inspect
import re

import pytest
import torch

from tests.exercises.bank import EXERCISES, RIGHT, STRAY, alike, idle_cases
from ttutor.exercises import Exercise, Result
from ttutor.exercises.diagnosis import GENERIC
from ttutor.exercises.judge import judge
from ttutor.exercises.source import imports, solution_source, stub_source
from ttutor.exercises.student_code import is_puzzle

QUICK, HALF, ALL = range(1), range(5), range(20)

FUNCTIONS = [exercise for exercise in EXERCISES if not isinstance(exercise.stub, type)]
every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def seeds(soak: range) -> pytest.MarkDecorator:
    """Few seeds in every run, all of them in the long one."""
    more = [seed for seed in soak if seed not in QUICK]
    return pytest.mark.parametrize("seed", [*QUICK, *(pytest.param(seed, marks=pytest.mark.soak) for seed in more)])


def verdict(exercise: Exercise, answer, seed: int, **keywords) -> Result:
    return judge(exercise, answer, seed=seed, hidden=True, **keywords)


@seeds(ALL)
@every_exercise
def test_the_reference_passes_and_the_solution_without_a_shortcut(exercise: Exercise, seed: int) -> None:
    for answer, allow_shortcuts in ((exercise.reference, True), (exercise.solution or exercise.reference, False)):
        result = verdict(exercise, answer, seed, allow_shortcuts=allow_shortcuts)
        assert (result.passed, result.points) == (True, exercise.points), result


@seeds(HALF)
@every_exercise
def test_right_answers_in_other_styles_pass(exercise: Exercise, seed: int) -> None:
    assert RIGHT.get(exercise.id), "a right answer in another style is wanted in tests/exercises/answers"
    for answer in RIGHT[exercise.id]:
        result = verdict(exercise, answer, seed)
        assert result.passed, f"{answer.__name__}: {result}"


@seeds(HALF)
@every_exercise
def test_every_mistake_gets_its_own_sentence_and_never_all_points(exercise: Exercise, seed: int) -> None:
    astray = {}
    for mistake in exercise.mistakes:
        for answer in mistake.answers:
            result = verdict(exercise, answer, seed, allow_shortcuts=True)
            if result.passed or result.hint_id != mistake.id or result.points >= exercise.points:
                astray[answer.__name__] = f"{mistake.id} expected, {result.hint_id} came: {result.message}"
    assert astray == {}


@seeds(HALF)
@every_exercise
def test_mistakes_that_look_the_same_share_a_sentence(exercise: Exercise, seed: int) -> None:
    pairs = [tuple(name.partition("/")[0] for name in pair) for pair in alike(exercise, seed)]
    assert [(one, other) for one, other in pairs if one != other] == []


@seeds(HALF)
@every_exercise
def test_every_case_kills_a_mistake_that_no_other_case_kills(exercise: Exercise, seed: int) -> None:
    assert idle_cases(exercise, seed) == []


@seeds(HALF)
@every_exercise
def test_a_mistake_that_stands_in_no_list_gets_a_hint_all_the_same(exercise: Exercise, seed: int) -> None:
    assert STRAY.get(exercise.id), "a mistake that stands in no list is wanted in tests/exercises/answers"
    for answer, hint_id in STRAY[exercise.id]:
        result = verdict(exercise, answer, seed)
        # Which of the hints that fit comes first can depend on the numbers that were drawn.
        known = {hint_id} if seed in QUICK else {one.id for one in (*exercise.mistakes, *exercise.properties)}
        assert not result.passed
        assert result.hint_id in known, f"{answer.__name__}: {result}"


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda exercise: exercise.id)
def test_a_result_of_which_one_number_is_off_fails(exercise: Exercise) -> None:
    solution = exercise.solution or exercise.reference
    for spoil in (spoil_first, spoil_last):
        result = verdict(exercise, lambda *inputs, spoil=spoil: spoil(solution(*inputs)), 0)
        assert not result.passed
        assert result.points < exercise.points


@every_exercise
def test_the_untouched_stub_scores_zero(exercise: Exercise) -> None:
    for stub in (exercise.stub, compiled(exercise, stub_source(exercise)), None):
        result = verdict(exercise, stub, 0)
        assert (result.passed, result.started, result.points) == (False, False, 0)


@every_exercise
def test_the_stub_shows_where_to_write_and_takes_what_the_solution_takes(exercise: Exercise) -> None:
    assert is_puzzle(exercise) or re.search(r"^ +\.\.\.$", stub_source(exercise), re.MULTILINE)
    assert inspect.getdoc(exercise.stub), "the stub says in its docstring what it is for"
    if not isinstance(exercise.stub, type):
        stub, solution = (inspect.signature(one) for one in (exercise.stub, exercise.solution or exercise.reference))
        assert list(stub.parameters) == list(solution.parameters)


@every_exercise
def test_sentences_are_short_and_do_not_give_the_solution_away(exercise: Exercise) -> None:
    sentences = {hint.id: hint.says for hint in (*exercise.mistakes, *exercise.properties)}
    assert [
        name for name, says in sentences.items() if len(says.split()) > 60 or not says.endswith((".", "?", "!", ")"))
    ] == []
    assert len(set(sentences.values())) == len(sentences)
    assert set(sentences) & set(GENERIC) == set()
    body = [line.strip() for line in solution_source(exercise).splitlines()]
    lines = [line for line in body if len(line) > 20 and ("=" in line or "return" in line)]
    assert [name for name, says in sentences.items() for line in lines if line in says] == []


def test_answers_for_tests_belong_to_exercises() -> None:
    ids = {exercise.id for exercise in EXERCISES}
    assert (set(RIGHT) | set(STRAY)) - ids == set()


def test_ids_are_words() -> None:
    ids = [hint.id for one in EXERCISES for hint in (*one.mistakes, *one.properties)]
    assert [name for name in ids if not re.fullmatch(r"[a-z][a-z0-9_]*", name)] == []


def spoil_first(value):
    """Change one entry in the first part of a value, if of a tensor by a hundredth of the largest."""
    return spoil(value, 0)


def spoil_last(value):
    """Change one entry in its last part."""
    return spoil(value, -1)


def spoil(value, end: int):
    match value:
        case tuple() | list():
            parts = list(value) or [None]
            parts[end] = spoil(parts[end], end)
            return type(value)(parts)
        case dict():
            name = list(value)[end]
            return value | {name: spoil(value[name], end)}
        case torch.Tensor():
            return spoil_entry(value, end)
        case bool() | None:
            return not value
        case str():
            return f"{value}x"
    return value + 1


def spoil_entry(value: torch.Tensor, end: int) -> torch.Tensor:
    place = (end,) * value.ndim
    value = value.clone()
    if not value.is_floating_point():
        value[place] = ~value[place] if value.dtype == torch.bool else value[place] + 1
        return value
    largest = value.detach().where(value.isfinite(), 0).abs().max()
    value[place] = value[place].nan_to_num(neginf=0.0, posinf=0.0) + 1e-2 * largest + (largest == 0)
    return value


def compiled(exercise: Exercise, source: str):
    """Return what a notebook has after a cell with the exercise's imports and a cell with this source."""
    names: dict = {"__name__": "__main__"}
    exec("\n".join(imports(exercise)), names)
    exec(compile(source, "<cell>", "exec"), names)
    return names[exercise.name]
