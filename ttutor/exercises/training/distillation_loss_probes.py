"""How a loss between two models is run, and what is true of every right one."""

import torch

from ttutor.exercises.exercise import Property, Trial
from ttutor.exercises.facts import gradients, traced


def observe(answer, student_logits, teacher_logits, temperature):
    """Return the loss, and the gradients that it sends to student and teacher; zeros where none arrives."""
    with traced(student_logits, teacher_logits) as (leaves, handed):
        loss = answer(*handed, temperature)
    if isinstance(loss, float):
        loss = torch.tensor(loss)
    student, teacher = gradients(loss, leaves, handed)
    return {"the loss": loss, "the student's gradient": student, "a gradient reaches the teacher": bool(teacher.any())}


def _teacher_that_learns(trial: Trial) -> str | None:
    """Look whether a gradient reaches the teacher."""
    return "A gradient reaches the teacher's logits." if trial.value["a gradient reaches the teacher"] else None


def _student_that_does_not(trial: Trial) -> str | None:
    """Look whether a gradient reaches the student."""
    return None if trial.value["the student's gradient"].any() else "No gradient reaches the student's logits."


def _equal_models(trial: Trial) -> str | None:
    """Let the student say what the teacher says."""
    _, teacher_logits, temperature = trial.inputs
    logits = teacher_logits.clamp(-20, 20)
    loss = trial.run(logits.clone(), logits.clone(), temperature)["the loss"].item()
    return None if abs(loss) < 1e-4 else f"For a student that says what the teacher says your loss is {loss:.4g}."


def _levels(trial: Trial) -> str | None:
    """Add one constant to the student's logits."""
    student_logits, teacher_logits, temperature = trial.inputs
    before = trial.value["the loss"].item()
    moved = student_logits + 1
    after = trial.run(moved, teacher_logits, temperature)["the loss"].item()
    if abs(after - before) <= 1e-3 * max(1.0, abs(before)):
        return None
    return f"Adding 1 to all of the student's logits takes your loss from {before:.4g} to {after:.4g}."


PROPERTIES = (
    Property(
        id="teacher_stays",
        says="The teacher is finished and shall not move towards its pupil: no gradient should reach it.",
        broken=_teacher_that_learns,
    ),
    Property(
        id="student_learns",
        says="The student is what is trained: the loss should send it a gradient.",
        broken=_student_that_does_not,
    ),
    Property(
        id="zero_for_equals",
        says="Two equal distributions have a divergence of 0: which of your terms remains?",
        broken=_equal_models,
    ),
    Property(
        id="ignores_a_constant",
        says="A constant added to all logits of a position changes no probability, so it should not change the loss.",
        broken=_levels,
    ),
)
