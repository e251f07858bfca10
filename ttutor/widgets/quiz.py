"""Questions whose every choice is explained."""

from dataclasses import dataclass
from typing import Any

import traitlets as t

from ttutor.widgets.base import Explorer, within
from ttutor.widgets.rich_text import rich_html, rich_text

_LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Choice:
    """A possible answer, and what there is to say for and against it."""

    text: str
    why: str
    right: bool


@dataclass(frozen=True)
class Question:
    """A question with its choices, in the order in which they are offered."""

    prompt: str
    choices: tuple[Choice, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.choices) <= len(_LETTERS):
            raise ValueError(f"{self.prompt!r} has {len(self.choices)} choices, expected 2 to {len(_LETTERS)}")
        n_right = sum(choice.right for choice in self.choices)
        if n_right in (0, len(self.choices)):
            raise ValueError(
                f"{self.prompt!r}: {'no' if not n_right else 'every'} choice is right; some have to be, not all"
            )
        if len({choice.text for choice in self.choices}) < len(self.choices):
            raise ValueError(f"{self.prompt!r}: two choices read the same")

    def as_state(self) -> dict[str, Any]:
        """The question as data, its texts as nodes of `ttutor.widgets.rich_text`."""
        choices = [
            {"text": rich_text(choice.text), "why": rich_text(choice.why), "right": choice.right}
            for choice in self.choices
        ]
        return {"prompt": rich_text(self.prompt), "choices": choices}


def read_questions(text: str) -> list[Question]:
    """Read the text of a quiz, a line for each question and for each of its choices.

    Raises:
        ValueError: a choice without a question or without its reason, or choices that make no question.

    >>> read_questions("What is 1 + 1?\\n+ 2 :: Count.\\n- 11 :: That joins the digits.")[0].choices[0].right
    True
    """
    found: list[tuple[str, list[Choice]]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line[:2] not in ("+ ", "- "):
            found.append((line, []))
            continue
        answer, between, why = line[2:].partition(" :: ")
        if not between:
            raise ValueError(f"the choice {answer!r} has no reason; write it as '{line[0]} {answer} :: why'")
        if not found:
            raise ValueError(f"the choice {answer!r} stands before any question")
        found[-1][1].append(Choice(answer, why, line[0] == "+"))
    return [Question(prompt, tuple(choices)) for prompt, choices in found]


class Quiz(Explorer):
    """Questions to answer for oneself: choosing an answer shows what there is to say about it, right or wrong.

    In Jupyter ``opened`` holds, for each question, the numbers of the choices in the order in which they were chosen.
    Where scripts are off and in print the explanations stand together at the end.

    Args:
        text: a line for each question, and below it one for each choice: ``+ right :: why``, ``- wrong :: why``. Texts
            may have ```code```, ``*emphasis*`` and ``$formulas$``.

    Raises:
        ValueError: there is no question; one has fewer than two choices, none that is right or none that is wrong; a
            choice has no reason.

    >>> quiz = Quiz("What is 1 + 1?\\n+ 2 :: Count.\\n- 11 :: That joins the digits.")
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

    def __init__(self, text: Any) -> None:
        if not isinstance(text, str):
            raise TypeError(f"expected the questions as one text, got {type(text).__name__}")
        questions = read_questions(text)
        if not questions:
            raise ValueError("a quiz needs at least one question")
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
