"""The judge: what it says to which answer, in which order, and what it leaves as it was."""

from __future__ import annotations

import linecache
import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from einops import rearrange

from tests.exercises import specimen as one
from tests.exercises.specimen import reference, specimen
from ttutor.exercises import Case, Mistake, Property
from ttutor.exercises.judge import judge
from ttutor.exercises.running import expectation

EXERCISE = specimen()


def said(answer, exercise=EXERCISE, **keywords) -> str | None:
    return judge(exercise, answer, **keywords).hint_id


def test_what_is_right_passes_with_all_points() -> None:
    result = judge(EXERCISE, reference)
    assert (result.passed, result.points, result.points_possible, result.hint_id) == (True, 4, 4, None)
    assert result.message == "Right: it passes all 3 checks."


@pytest.mark.parametrize("mistake", EXERCISE.mistakes, ids=lambda mistake: mistake.id)
def test_a_known_mistake_meets_its_sentence(mistake: Mistake) -> None:
    result = judge(EXERCISE, mistake.answers[0])
    assert (result.passed, result.hint_id, result.message) == (False, mistake.id, mistake.says)


def test_points_are_those_of_the_cases_that_are_right() -> None:
    result = judge(EXERCISE, one.cut_off)
    assert [(tried.name, tried.right, tried.points) for tried in result.tried] == [
        ("a scale of 2", True, 2),
        ("a scale of 0", True, 1),
        ("large values", False, 1),
    ]
    assert result.points == 3


def test_what_is_not_started_scores_nothing_and_is_not_called() -> None:
    def numbered_double(values, scale):
        """Mine."""

    def not_yet(values, scale):
        raise NotImplementedError

    for answer in (None, ..., one.numbered_double, numbered_double, not_yet, lambda values, scale: None):
        result = judge(EXERCISE, answer)
        assert (result.passed, result.started, result.points) == (False, False, 0)


def test_a_puzzle_is_not_started_until_its_code_is_changed() -> None:
    def numbered_double(values, scale):  # the same code as in `forgets_rows`
        return values * scale

    puzzle = specimen(stub=one.forgets_rows)
    assert "as you found it" in judge(puzzle, one.forgets_rows).message
    assert said(numbered_double, puzzle) == "not_started"
    assert said(one.counts_from_one, puzzle) == "counts_from_one"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            torch.zeros(3),
            "expected the function numbered_double, but a Tensor came. Hand in its name, without brackets.",
        ),
        (lambda values: values, "values, scale"),
    ],
)
def test_what_cannot_be_called_as_the_stub_is_refused_with_advice(answer, words: str) -> None:
    result = judge(EXERCISE, answer)
    assert result.hint_id == "cannot_load"
    assert words in result.message


def test_an_instance_in_place_of_a_class_is_refused() -> None:
    class Stub:
        def forward(self): ...

    exercise = specimen(stub=Stub, observe=lambda answer: 1.0, cases=(Case(name="itself", inputs=lambda random: ()),))
    assert said(Stub(), exercise) == "cannot_load"
    assert said(Stub, exercise) == "not_started"


def test_a_shortcut_is_refused_whichever_way_it_is_taken() -> None:
    def helper(values):
        return torch.addcmul(values, values, values)

    def through_a_helper(values, scale):
        return helper(values)

    def by_method(values, scale):
        return values.addcmul(values, values)

    take = torch.addcmul

    def by_another_name(values, scale):
        return take(values, values, values)

    for answer in (through_a_helper, by_method, by_another_name):
        result = judge(EXERCISE, answer)
        assert (result.hint_id, result.points) == ("shortcut", 0)
        assert "addcmul" in result.message


def test_an_exception_that_beginners_meet_is_explained() -> None:
    def with_places(values, scale):
        return values - values.max(-1)

    def turned(values, scale):
        return torch.ones(3, 4) @ torch.ones(3, 4).T @ torch.ones(4)

    def misspelt(values, scale):
        return vvalues * scale  # noqa: F821

    assert "take `.values`, or use `amax`." in judge(EXERCISE, with_places).message
    assert "`.mT` exchanges the last two." in judge(EXERCISE, turned).message
    assert "Did you mean `values`?" in judge(EXERCISE, misspelt).message


BEGINNERS = {
    "values * exp(values)": "return values * exp(values)`). Did you mean `torch.exp`?",
    "F.relu(values)": "Its import is missing: `import torch.nn.functional as F`.",
    "values * math.exp(values)": "`math` and `float` take one number",
    "values if not values else scale": "for each entry of a tensor write `~`, `&`, `|`",
    "values.view(len(values) / 1, -1)": "write `//` for a whole number",
    "np.sum(values)": "A function of NumPy got a tensor",
    "rearrange(values, 'tokens ... -> ... tokens', heads=2)": "Axis heads is not used in transform",
    "values @ values.T.double()": None,
}


@pytest.mark.parametrize("body", BEGINNERS)
def test_an_error_of_beginners_says_what_to_do(body: str) -> None:
    source = f"def answer(values, scale): return {body}"
    linecache.cache["<mine>"] = (len(source), None, [source], "<mine>")
    space: dict = {"math": math, "np": np, "rearrange": rearrange} if "F." not in body else {}
    exec(compile(source, "<mine>", "exec"), space)
    message = judge(EXERCISE, space["answer"]).message
    expected = BEGINNERS[body]
    assert expected in message if expected else "turns all axes" not in message


def test_parameters_that_do_not_fit_are_named() -> None:
    message = judge(EXERCISE, lambda values: values).message
    assert "Keep the parameters of the stub, in their order." in message


def test_what_else_is_wrong_is_said_beside_a_shortcut() -> None:
    def wrong_too(values, scale):
        return torch.addcmul(values, values, values) + 1

    def right(values, scale):
        torch.addcmul(values, values, values)
        return reference(values, scale)

    assert judge(EXERCISE, right, allow_shortcuts=True).passed
    assert "not right either" not in judge(EXERCISE, right).message
    otherwise = judge(EXERCISE, wrong_too, allow_shortcuts=True).message
    assert judge(EXERCISE, wrong_too).message.endswith(f"What it gives is not right either: {otherwise}")
    assert otherwise not in judge(EXERCISE, wrong_too, hidden=True).message


def test_a_function_of_ones_own_may_have_a_forbidden_name() -> None:
    def addcmul(values, scale):
        return reference(values, scale)

    def answer(values, scale):
        return addcmul(values, scale)

    assert judge(EXERCISE, answer).passed


def test_what_a_student_raises_is_reported_with_its_line_and_the_shapes() -> None:
    def answer(values, scale):
        wrong = values @ values
        return wrong

    result = judge(EXERCISE, answer)
    assert result.hint_id == "raises"
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied" in result.message
    assert "wrong = values @ values" in result.message
    assert "values (3, 5), scale 2.0" in result.message


def test_only_a_keyboard_interrupt_gets_out() -> None:
    def answer(values, scale):
        raise SystemExit(0) if judged == "kept in" else KeyboardInterrupt

    judged = "kept in"
    assert said(answer) == "raises"
    judged = "let out"
    with pytest.raises(KeyboardInterrupt):
        judge(EXERCISE, answer)


@pytest.mark.parametrize(
    ("answer", "hint_id", "words"),
    [
        (lambda values, scale: reference(values, scale).numpy(), "type", "plain torch.Tensor, but came as a ndarray"),
        (lambda values, scale: reference(values, scale).tolist(), "type", "came as a list of 3"),
        (lambda values, scale: torch.nn.Parameter(reference(values, scale)), "type", "a Parameter of shape (3, 5)"),
        (lambda values, scale: [reference(values, scale)][1:] or None, "type", "does it `return` something?"),
        (lambda values, scale: reference(values, scale)[None], "shape", "(3, 5), but came as (1, 3, 5)"),
        (lambda values, scale: reference(values, scale).double(), "dtype", "torch.float32, but came as torch.float64"),
        (lambda values, scale: reference(values, scale) / 0, "non_finite", "infinite"),
        (lambda values, scale: reference(values, scale) * 1.01, "differs", "differs by up to"),
        (lambda values, scale: (reference(values, scale) + 0.5).abs(), "differs", "No check passes yet."),
    ],
)
def test_the_generic_sentences(answer, hint_id: str, words: str) -> None:
    result = judge(EXERCISE, answer)
    assert (result.hint_id, result.passed) == (hint_id, False)
    assert words in result.message


def test_one_case_after_the_other_is_looked_at_and_within_a_case_the_sentences_have_an_order() -> None:
    faults = {"shape", "changes", "nan", "values"}

    def answer(values, scale):
        result = reference(values, scale)
        if "changes" in faults:
            values.zero_()
        if "values" in faults:
            result = result - 3 * torch.rand_like(result)
        if "nan" in faults:
            result = result * float("nan")
        return result[None] if "shape" in faults else result

    exercise = specimen(properties=[])
    order = {"shape": "shape", "changes": "input_changed", "nan": "non_finite", "values": "differs"}
    for fault, hint_id in order.items():
        assert said(answer, exercise) == hint_id
        faults.remove(fault)
    assert said(answer, exercise) is None


def test_what_is_wrong_with_a_plain_case_is_said_before_a_crash_on_a_special_one() -> None:
    def answer(values, scale):
        if scale == 0:
            raise ValueError("zero")
        return values * scale + 0.25

    assert said(answer) == "rows_differ"
    assert said(answer, specimen(properties=[])) == "raises"  # which says more than how far the other is off


def test_changed_inputs_are_named() -> None:
    def answer(values, scale):
        values.mul_(scale)
        return values + 1.5

    message = judge(EXERCISE, answer).message
    assert message.startswith("`values` changed while your code ran")
    assert "Your result is right" not in message


def test_a_property_speaks_to_a_mistake_that_stands_in_no_list_and_draws_its_map() -> None:
    result = judge(EXERCISE, lambda values, scale: values * scale + 0.25)
    assert result.hint_id == "rows_differ"
    assert result.message == "With a scale of 2: All rows get the same. Rows should differ."
    assert "█··     ·██" in str(result)
    assert "<svg" in result._repr_html_()


def test_a_property_that_is_always_tried_fails_what_is_otherwise_right() -> None:
    def answer(values, scale):
        return reference(values.detach() if scale else values, scale)

    result = judge(specimen(mistakes=[]), answer)
    assert (result.hint_id, result.points) == ("gradient", 1)
    assert "Nothing comes back." in result.message


def test_two_mistakes_at_once_are_told_by_the_one_that_shows_alone_on_a_case() -> None:
    def answer(values, scale):
        return one.cut_off(values, scale) if scale else reference(values, scale) - 4

    result = judge(EXERCISE, answer)
    assert result.hint_id == "cut_off"
    assert result.message.startswith("With large values: this shows")


def test_a_crash_on_every_case_is_a_known_mistake_only_where_the_exception_says_the_same() -> None:
    def crashes(values, scale):
        return values @ values

    def crashes_elsewhere(values, scale):
        raise RuntimeError("something else")

    def crashes_alike(values, scale):
        product = torch.matmul(values, values)
        return product + scale

    exercise = specimen(mistakes=[Mistake(id="crashes", says="It crashes.", answers=(crashes,))])
    assert said(crashes_alike, exercise) == "crashes"
    assert said(crashes_elsewhere, exercise) == "raises"


def test_a_mistake_may_raise_another_exception_where_it_gives_the_same_wrong_value_elsewhere() -> None:
    def divides(values, scale):
        return values * scale + 0 / scale

    def answer(values, scale):
        if scale == 0:
            raise LookupError("another one")
        return values * scale if is_wrong else reference(values, scale)

    exercise = specimen(mistakes=[Mistake(id="divides", says="Do not divide.", answers=(divides,))])
    is_wrong = True
    assert said(answer, exercise) == "divides"
    is_wrong = False
    assert said(answer, exercise) == "raises"


def test_a_crash_inside_a_property_is_the_students() -> None:
    def answer(values, scale):
        if values.requires_grad:
            raise ValueError("no gradients here")
        return reference(values, scale)

    result = judge(EXERCISE, answer)
    assert result.hint_id == "gradient"
    assert "no gradients here" in result.message


def test_all_is_not_well_while_hidden_cases_remain() -> None:
    first, *rest = EXERCISE.cases
    exercise = specimen(cases=(first, *(replace(case, hidden=True) for case in rest)))
    result = judge(exercise, reference)
    assert (result.points, result.points_possible, result.n_hidden) == (2, 4, 2)
    assert result.message == "So far so good: it passes the check that runs here; 2 more run at grading."
    assert "Right" not in str(result)
    assert ">so far so good<" in result._repr_html_()
    assert judge(exercise, reference, hidden=True).message == "Right: it passes all 3 checks."
    assert said(one.cut_off, exercise) is None
    assert said(one.cut_off, exercise, hidden=True) == "cut_off"


def test_the_expected_numbers_are_never_shown() -> None:
    for case in EXERCISE.cases:
        exercise = specimen(cases=(case,), mistakes=[], properties=[])
        result = judge(exercise, lambda values, scale: values * scale + 0.123)
        text = f"{result!s}{result._repr_html_()}"
        for number in expectation(exercise, case, 0).flatten().tolist():
            assert abs(number) < 10 or f"{number:.3f}"[:6] not in text
        assert "tensor(" not in text


def drawn() -> tuple[float, float, float]:
    return torch.rand(1).item(), random.random(), np.random.rand()  # noqa: NPY002


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def test_random_states_and_defaults_are_as_before(as_readers_run_it) -> None:
    def answer(values, scale):
        seed_all(1)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return reference(values, scale)

    seed_all(0)
    expected = drawn()
    seed_all(0)
    try:
        judge(EXERCISE, answer)
        assert (torch.is_grad_enabled(), torch.get_default_dtype()) == (True, torch.float32)
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    assert drawn() == expected


def test_the_readers_default_dtype_makes_no_difference() -> None:
    def answer(values, scale):
        return values * scale + torch.zeros(1) + torch.arange(len(values))[:, None]

    torch.set_default_dtype(torch.float64)
    try:
        assert judge(EXERCISE, answer).passed
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_readers_default_device_makes_no_difference(as_readers_run_it) -> None:
    with torch.device("meta"):
        assert judge(EXERCISE, reference).passed
        assert torch.empty(0).is_meta


def test_answers_that_draw_get_the_same_numbers_in_every_run() -> None:
    numbers = []

    def answer(values, scale):
        numbers.append(drawn())
        return reference(values, scale)

    for _ in range(2):
        judge(specimen(properties=[]), answer)
    assert numbers[:3] == numbers[3:]
    assert len(set(numbers)) == 3


def test_what_an_answer_draws_is_not_its_input_once_more() -> None:
    case = Case(name="drawn numbers", inputs=lambda random: (torch.rand(3, 5, generator=random), 1.0))
    exercise = specimen(reference=lambda values, scale: values, cases=(case,), mistakes=[], properties=[])
    assert not judge(exercise, lambda values, scale: torch.rand(3, 5) * scale).passed


def test_another_seed_gives_other_inputs() -> None:
    seen = []
    exercise = specimen(properties=[], cases=EXERCISE.cases[:1])
    for seed in (0, 1):
        judge(exercise, lambda values, scale: seen.append(values.clone()) or reference(values, scale), seed=seed)
    assert not torch.equal(*seen)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id": "cookery.soup"}, "id must be 'chapter.name'"),
        ({"hints": ("one",)}, "three hints"),
        ({"difficulty": 4}, "difficulty must be 1, 2 or 3, but came as 4"),
        (
            {
                "properties": [
                    Property(id="cut_off", says="", broken=lambda trial: None),
                ]
            },
            "each hint id must be given once, but twice came cut_off",
        ),
    ],
)
def test_an_exercise_checks_itself(changes: dict, words: str, as_readers_run_it) -> None:
    with pytest.raises(ValueError, match=words):
        specimen(**changes)
