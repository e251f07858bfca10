"""`check`: what a reader calls, what it never does, and how its verdict looks."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import pytest
import torch

from tests.exercises.specimen import cut_off, reference, specimen
from ttutor.exercises import Case, WrongAnswer, check, exercises, find
from ttutor.exercises.judge import judge

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def unstable(scores, dim=-1):
    return scores.exp() / scores.exp().sum(dim, keepdim=True)


def test_the_verdict_is_for_programs_too() -> None:
    result = check("attention.softmax", unstable)
    assert (result.passed, result.hint_id) == (False, "unstable")
    assert 0 < result.points < result.points_possible == find("attention.softmax").points
    assert "overflows" in result.message


def test_without_an_answer_it_is_not_started() -> None:
    assert check("attention.softmax").hint_id == "not_started"


def test_it_raises_only_where_it_is_asked_to() -> None:
    with pytest.raises(WrongAnswer, match="overflows"):
        check("attention.softmax", unstable, strict=True)
    solution = find("attention.softmax").solution
    assert check("attention.softmax", solution, strict=True).passed


@pytest.mark.parametrize("exercise_id", ["attention.sofmax", "nonsense", "", None, 3])
def test_an_unknown_exercise_raises_nothing_either(exercise_id) -> None:
    result = check(exercise_id, unstable)
    assert (result.passed, result.hint_id) == (False, "unknown_exercise")
    with pytest.raises(WrongAnswer):
        check(exercise_id, unstable, strict=True)


def test_a_chapter_or_the_answer_in_the_place_of_the_name_is_said() -> None:
    assert (
        "There is no exercise 'attention', which is a chapter; its exercises are attention."
        in check("attention", unstable).message
    )
    assert 'check("attention.softmax", mine)' in check(unstable).message


def endless(scores, dim=-1):
    while True:
        scores = scores - 1


def test_an_endless_loop_is_ended_and_the_line_is_named() -> None:
    result = check("attention.softmax", endless, seconds=0.2)
    assert (result.passed, result.hint_id) == (False, "still_running")
    assert "after 0.2 seconds" in result.message
    assert "`scores = scores - 1`" in result.message or "`while True:`" in result.message


def test_a_right_answer_is_not_called_endless_where_the_machine_has_much_else_to_do() -> None:
    def slow(scores, dim=-1):
        time.sleep(0.3)  # of which the processor is busy with others
        return scores.softmax(dim)

    started = time.monotonic()
    result = check("attention.softmax", slow, seconds=1.2)
    assert time.monotonic() - started > 1.2
    assert result.hint_id != "still_running", result.message


def test_an_answer_that_waits_for_ever_is_ended_too() -> None:
    def waiting(scores, dim=-1):
        while True:
            time.sleep(0.01)

    result = check("attention.softmax", waiting, seconds=0.1)
    assert result.hint_id == "still_running"


def test_an_endless_loop_is_ended_where_interrupts_are_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert check("attention.softmax", endless, seconds=0.2).hint_id == "still_running"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def stubborn(scores, dim=-1):
    try:
        while True:
            scores = scores - 1
    except KeyboardInterrupt:
        while True:
            scores = scores + 1


def test_an_endless_loop_that_swallows_the_first_interrupt_is_ended_by_the_next() -> None:
    result = check("attention.softmax", stubborn, seconds=0.2)
    assert result.hint_id == "still_running"
    assert "`scores = scores + 1`" in result.message or "`while True:`" in result.message


def test_an_interrupt_names_the_exercise_and_shows_the_students_line_and_not_ours() -> None:
    def interrupts(scores, dim=-1):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        check("attention.softmax", interrupts)
    frames = [entry.name for entry in stopped.traceback if entry.name != "wrapped_fn"]  # of our tests' type checks
    assert frames[1:] == ["check", "interrupts"]
    assert "attention.softmax" in "".join(stopped.value.__notes__)


def test_a_script_has_a_verdict_that_it_drops_printed_and_loads_nothing_heavy(tmp_path) -> None:
    script = tmp_path / "my.py"
    script.write_text(
        "from ttutor.exercises import check, exercises\n"
        'check("attention.softmax", abs)\n'
        'print(check("attention.softmax", sum).hint_id)\n'
        "def mine():\n    return check('attention.softmax')\nmine()\n"
        "import sys\nexercises()\nprint(*{name.split('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert ran.stdout.count("(attention.softmax): 0 of") == 1
    heavy = {
        "matplotlib",
        "ipywidgets",
        "anywidget",
        "IPython",
        "triton",
        "tokenizers",
        "typer",
        "transformers",
        "sympy",
    }
    assert set(ran.stdout.split()) & heavy == set()


def test_what_an_answer_prints_is_shown_up_to_a_page_and_the_rest_is_counted(capsys) -> None:
    def prints(text):
        def answer(x, dim=-1):
            runs.append(text)
            print(text)
            powers = (x - x.amax(dim, keepdim=True)).exp()
            return powers / powers.sum(dim, keepdim=True)

        runs = []
        assert check("attention.softmax", answer).passed
        return len(runs), capsys.readouterr().out

    n_runs, shown = prints(".")
    assert shown == ".\n" * n_runs
    assert 3 < n_runs < 1000
    n_runs, shown = prints("x" * 999)
    few, said = shown.split("\n… and ")
    assert few == ("x" * 999 + "\n") * 2
    assert said.startswith(f"{1000 * n_runs - 2000:,} more characters: ")


def test_a_mistake_of_our_own_is_shown_and_does_not_stop_the_notebook(monkeypatch) -> None:
    broken = specimen(cases=(Case(name="nothing", inputs=lambda random: 1 / 0),))
    monkeypatch.setattr("ttutor.exercises.checking.find", lambda name: broken)
    result = check("attention.numbered_double", reference)
    assert (result.passed, result.hint_id) == (False, "check_failed")
    assert "our mistake: ZeroDivisionError" in result.message


def test_hints_come_as_far_as_they_are_asked_for() -> None:
    hints = find("attention.softmax").hints
    assert check("attention.softmax", unstable).hints == ()
    assert check("attention.softmax", unstable, hint=2).hints == hints[:2]
    assert check("attention.softmax", unstable, hint=9).hints == hints


def test_text_and_card_say_the_same() -> None:
    result = judge(specimen(), cut_off).with_hints(("Think of `a < b`.",))
    text, card = str(result), result._repr_html_()
    assert text.splitlines() == [
        "✗ Scale & number (attention.numbered_double): 3 of 4 points",
        "  Large values are cut off.",
        "  ✓ with a scale of 2",
        "  ✓ with a scale of 0",
        "  ✗ with large values",
        "  Hint 1: Think of a < b.",
    ]
    for words in (
        "Scale &amp; number",
        "3 of 4 points",
        "Large values are cut off.",
        "✗ with large values",
        ">not yet<",
    ):
        assert words in card
    assert "<code>a &lt; b</code>" in card
    assert re.findall(r"<(?!/?(?:div|p|strong|span|ul|li|details|summary|code)\b)[^>]*>", card) == []


def test_what_a_student_writes_cannot_break_the_card() -> None:
    def answer(values, scale):
        raise ValueError("<script>alert(1)</script>")

    assert "<script>" not in judge(specimen(), answer)._repr_html_()


def test_the_card_is_the_same_in_every_run() -> None:
    def answer(values, scale):
        raise ValueError("no")

    cards = {judge(specimen(), one)._repr_html_() for one in (answer, answer)}
    assert len(cards) == 1
    assert not re.search(r"0x[0-9a-f]{6}", cards.pop())


def test_the_registry_is_in_the_order_of_the_book() -> None:
    from ttutor.exercises.exercise import CHAPTERS

    chapters = [exercise.chapter for exercise in exercises()]
    assert chapters == sorted(chapters, key=CHAPTERS.index)
    assert exercises("attention") == tuple(one for one in exercises() if one.chapter == "attention")


def test_a_model_is_judged_through_what_can_be_observed() -> None:
    class Doubler(torch.nn.Module):
        def forward(self, values):
            return 2 * values

    class Tripler(torch.nn.Module):
        def forward(self, values):
            return 3 * values

    class Stub(torch.nn.Module):
        def forward(self, values): ...

    def observe(answer, values):
        model = answer()
        return {"output": model(values), "parameters": len(list(model.parameters()))}

    case = Case(name="a vector", inputs=lambda random: (torch.randn(4, generator=random),))
    exercise = specimen(stub=Stub, reference=Doubler, observe=observe, cases=(case,), mistakes=[], properties=[])
    assert judge(exercise, Doubler).passed
    assert judge(exercise, Stub).hint_id == "not_started"
    result = judge(exercise, Tripler)
    assert result.hint_id == "differs"
    assert "(output)" in result.message
