"""A group of answers: their rewards, their advantages, and what one step of GRPO makes of their probabilities."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import traitlets as t

from ttutor import assets
from ttutor.training.assistant import group_advantages
from ttutor.widgets.base import Explorer, one_of, rounded_array, table_html, within

MAX_STEPS, MAX_ANSWERS = 16, 12


class GroupExplorer(Explorer):
    """Several answers to one question at some steps of a training, and how one step on this group moves each of them.

    A bar is an answer's probability; an arrow leads to what it is after one small step on this group alone. Where all
    rewards of a group are equal, all advantages are zero, and nothing moves.

    Args:
        question: what was asked.
        steps: at which steps of the training the model was asked, at most 16.
        groups: by the name of a verifier, for each of the steps a mapping with ``answers`` (texts), ``rewards`` (0 or
            1), and the answers' probabilities ``before`` and ``after`` the step on this group.
        verifier: whose rewards the model learned from; the first when left out.
        stop: which of the steps is shown, counted from 0.
        note: where the recording comes from.

    >>> explorer = GroupExplorer.recorded()
    >>> explorer
    GroupExplorer(35 + 7, strict verifier, step 0 of 150)
    >>> explorer.advantages
    tensor([-0.3750, -0.3750,  0.6250, -0.3750,  0.6250, -0.3750, -0.3750,  0.6250],
           dtype=torch.float64)
    """

    _module = "group"
    _title = "A group of answers"

    question = t.Unicode("", read_only=True).tag(sync=True)
    steps = t.List(t.Int(), read_only=True).tag(sync=True)
    verifiers = t.List(t.Unicode(), read_only=True).tag(sync=True)
    answers = t.List(t.List(t.List(t.Unicode())), read_only=True).tag(sync=True)
    rewards = t.List(t.List(t.List(t.Float())), read_only=True).tag(sync=True)
    before = t.List(t.List(t.List(t.Float())), read_only=True).tag(sync=True)
    after = t.List(t.List(t.List(t.Float())), read_only=True).tag(sync=True)
    note = t.Unicode("", read_only=True).tag(sync=True)
    verifier = t.Unicode("").tag(sync=True)
    stop = t.Int(0).tag(sync=True)

    def __init__(
        self,
        question: str,
        steps: Sequence[int],
        groups: Mapping[str, Sequence[Mapping[str, Any]]],
        *,
        verifier: str | None = None,
        stop: int = 0,
        note: str = "",
    ) -> None:
        n_steps = within("the number of steps", len(steps), 1, MAX_STEPS)
        if not groups:
            raise ValueError("groups is empty; give at least one verifier's name with a group for each step")
        texts = {name: [[str(text) for text in group["answers"]] for group in found] for name, found in groups.items()}
        lengths = [len(row) for rows in texts.values() for row in rows]
        n_answers = within("the number of answers", max(lengths, default=0), 2, MAX_ANSWERS)
        for name, rows in texts.items():
            if [len(row) for row in rows] != [n_answers] * n_steps:
                raise ValueError(
                    f"{name} has groups of {[len(row) for row in rows]} answers, expected {n_answers} at each of the "
                    f"{n_steps} steps"
                )
        for part, decimals in (("rewards", 2), ("before", 3), ("after", 3)):
            values = [[group[part] for group in found] for found in groups.values()]
            shape = (len(groups), n_steps, n_answers)
            self.set_trait(part, rounded_array(part, values, shape, decimals, axes="verifiers, steps, answers"))
        own = {"question": question, "steps": list(steps), "verifiers": list(groups), "note": note}
        for name, value in {**own, "answers": list(texts.values())}.items():
            self.set_trait(name, value)
        super().__init__(verifier=self.verifiers[0] if verifier is None else verifier, stop=stop)

    @classmethod
    def recorded(cls, question: int = 0, *, verifier: str = "strict", stop: int = 0) -> "GroupExplorer":
        """The training of chapter 13, every thirtieth step, as ``experiments/assistant_group.py`` recorded it.

        Args:
            question: which of the recorded questions.
            verifier: ``"strict"``, or ``"lenient"``, which can be fooled.
            stop: as for the class.
        """
        stored = assets.load("assistant_group")
        within("question", question, 0, len(stored["questions"]) - 1, "it numbers the recorded questions")
        groups = {name: found[question] for name, found in stored["groups"].items()}
        note = (
            "Units come first: 42 is written 24. Strict pays for the number alone, lenient also for a list with it. "
            f"Recorded by {stored['provenance']['command']}."
        )
        return cls(stored["questions"][question], stored["steps"], groups, verifier=verifier, stop=stop, note=note)

    @property
    def advantages(self) -> torch.Tensor:
        """Reward minus the group's mean, for each answer that is shown."""
        rewards = self.rewards[self.verifiers.index(self.verifier)][self.stop]
        return group_advantages(torch.tensor([rewards], dtype=torch.float64))[0]

    def describe(self) -> str:
        return f"{self.question}, {self.verifier} verifier, step {self.steps[self.stop]} of {self.steps[-1]}"

    def fallback_html(self) -> str:
        """The groups of all trainings: each answer with how often it was given, and how many earned the reward."""
        rows = []
        for name, answers, rewards in zip(self.verifiers, self.answers, self.rewards, strict=True):
            for step, texts, paid in zip(self.steps, answers, rewards, strict=True):
                given = ", ".join(f"“{text}” × {count}" for text, count in Counter(texts).most_common())
                rows.append([f"{name}, step {step}", given, f"{sum(paid):g} of {len(paid)}"])
        caption = f"{len(self.answers[0][0])} answers to {self.question} during GRPO with a verifier. {self.note}"
        return table_html(caption, ["verifier and step", "answers", "earn the reward"], rows)

    @t.validate("verifier")
    def _check_verifier(self, proposal: dict) -> str:
        return one_of("verifier", proposal["value"], self.verifiers)

    @t.validate("stop")
    def _check_stop(self, proposal: dict) -> int:
        return within("stop", proposal["value"], 0, len(self.steps) - 1, "it counts the recorded steps")
