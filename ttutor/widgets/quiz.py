"""Questions whose every choice is explained."""

from dataclasses import dataclass
from typing import Any

import traitlets as t

from ttutor.widgets.base import Explorer, within
from ttutor.widgets.rich_text import rich_html, rich_text

_LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Choice:
    """A possible answer, and what there is to say for and against it; use `Right` or `Wrong`."""

    text: str
    why: str
    right: bool


class Right(Choice):
    """A right answer and its reason.

    >>> Right("5 32", "One row for each query, made of values.").right
    True
    """

    def __init__(self, text: str, why: str) -> None:
        super().__init__(text, why, True)


class Wrong(Choice):
    """A wrong answer, with the reason why, or why one might think so.

    >>> Wrong("9 32", "Keys and values are summed over.").right
    False
    """

    def __init__(self, text: str, why: str) -> None:
        super().__init__(text, why, False)


class Question:
    """A question with its choices, in the order in which they are offered.

    Args:
        prompt: what is asked.
        *choices: two to eight of `Right` and `Wrong`, at least one of them right.

    >>> Question("What is 1 + 1?", Right("2", "Count."), Wrong("11", "That joins the digits."))
    Question('What is 1 + 1?')
    """

    def __init__(self, prompt: Any, *choices: Any) -> None:
        stray = next((choice for choice in choices if not isinstance(choice, Choice)), None)
        if stray is not None:
            raise TypeError(f"{prompt!r}: every choice has to be Right(...) or Wrong(...), not {stray!r}")
        if not 2 <= len(choices) <= len(_LETTERS):
            raise ValueError(f"{prompt!r} has {len(choices)} choices, expected 2 to {len(_LETTERS)}")
        n_right = sum(choice.right for choice in choices)
        if n_right in (0, len(choices)):
            raise ValueError(
                f"{prompt!r}: {'no' if not n_right else 'every'} choice is right; some have to be, not all"
            )
        if len({choice.text for choice in choices}) < len(choices):
            raise ValueError(f"{prompt!r}: two choices read the same")
        self.prompt, self.choices = prompt, choices

    def __repr__(self) -> str:
        return f"Question({self.prompt!r})"

    def as_state(self) -> dict[str, Any]:
        """The question as data, its texts as nodes of `ttutor.widgets.rich_text`."""
        choices = [
            {"text": rich_text(choice.text), "why": rich_text(choice.why), "right": choice.right}
            for choice in self.choices
        ]
        return {"prompt": rich_text(self.prompt), "choices": choices}


class Quiz(Explorer):
    """Questions to answer for oneself: choosing an answer shows what there is to say about it, right or wrong.

    In Jupyter ``opened`` holds, for each question, the numbers of the choices in the order in which they were chosen.
    Where scripts are off and in print the explanations stand together at the end.

    Args:
        *questions: at least one `Question`. Texts may have ```code```, ``*emphasis*`` and ``$formulas$``.

    >>> quiz = Quiz(Question("What is 1 + 1?", Right("2", "Count."), Wrong("11", "That joins the digits.")))
    >>> quiz
    Quiz(1 question, 0 answered)
    >>> quiz.opened = [[1, 0]]
    >>> quiz
    Quiz(1 question, 1 answered)
    """

    _module = "quiz"
    _title = "Check yourself"

    questions = t.List(t.Dict()).tag(sync=True)
    opened = t.List(t.List(t.Int())).tag(sync=True)

    def __init__(self, *questions: Any) -> None:
        stray = next((one for one in questions if not isinstance(one, Question)), None)
        if stray is not None:
            raise TypeError(f"expected Question(...) objects, got {type(stray).__name__}")
        if not questions:
            raise ValueError("a quiz needs at least one Question")
        super().__init__(questions=[one.as_state() for one in questions], opened=[[] for _ in questions])

    def describe(self) -> str:
        n = len(self.questions)
        return f"{n} question{'s' if n > 1 else ''}, {sum(map(bool, self.opened))} answered"

    def fallback_html(self) -> str:
        """The questions with their choices, and all explanations at the end."""
        asked, answered = "", ""
        for one in self.questions:
            choices = "".join(f"<li>{rich_html(choice['text'])}</li>" for choice in one["choices"])
            verdicts = "".join(
                f"<li><strong>{'Right' if choice['right'] else 'No'}.</strong> {rich_html(choice['why'])}</li>"
                for choice in one["choices"]
            )
            asked += f'<li>{rich_html(one["prompt"])}<ol type="a">{choices}</ol></li>'
            answered += f'<li><ol type="a">{verdicts}</ol></li>'
        return f"<ol>{asked}</ol><p><strong>Answers</strong></p><ol>{answered}</ol>"

    @t.validate("opened")
    def _check_opened(self, proposal: dict) -> list[list[int]]:
        opened = proposal["value"]
        if len(opened) != len(self.questions):
            raise ValueError(
                f"opened has {len(opened)} lists, expected one for each of {len(self.questions)} questions"
            )
        for one, chosen in zip(self.questions, opened, strict=True):
            for choice in chosen:
                within("a choice", choice, 0, len(one["choices"]) - 1)
        return opened
