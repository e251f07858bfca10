"""Exercise: learning from a teacher that must not learn in turn."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.exercises.facts import gradients, traced


def observe(answer, student_logits, teacher_logits, temperature):
    """Return the loss, and the gradients that it sends to student and teacher; zeros where none arrives."""
    with traced(student_logits, teacher_logits) as (leaves, handed):
        loss = answer(*handed, temperature)
    if isinstance(loss, float):
        loss = torch.tensor(loss)
    student, teacher = gradients(loss, leaves, handed)
    return {"the loss": loss, "the student's gradient": student, "the teacher's gradient": teacher}


def distillation_loss(
    student_logits: Float[Tensor, "batch tokens vocab_size"],
    teacher_logits: Float[Tensor, "batch tokens vocab_size"],
    temperature: float,
) -> Float[Tensor, ""]:
    """Return how far the student's distributions are from the teacher's, with gradients for the student alone."""
    student = (student_logits / temperature).log_softmax(dim=-1)
    teacher = (teacher_logits.detach() / temperature).log_softmax(dim=-1)
    divergence = (teacher.exp() * (teacher - student)).sum(dim=-1)
    return temperature**2 * divergence.mean()


def reference(student_logits, teacher_logits, temperature):
    student = (student_logits / temperature).log_softmax(dim=-1).flatten(0, 1)
    teacher = (teacher_logits.detach() / temperature).log_softmax(dim=-1).flatten(0, 1)
    return temperature**2 * functional.kl_div(student, teacher, reduction="batchmean", log_target=True)


def _ordinary(generator):
    student, teacher = 2 * torch.randn(2, 2, 3, drawn(generator, 5, 7), generator=generator)
    return student, teacher, drawn(generator, 5, 8) / 2


def _hundreds(generator):
    student, teacher = 100.0 * torch.rand(2, drawn(generator, 2, 3), 4, 7, generator=generator).argsort(dim=-1)
    return student, teacher, 0.5


exercise = Exercise(
    id="training.distillation_loss",
    title="A teacher that must not learn",
    statement="""
A small model, the student, can be trained to say what a large one, the teacher, says (Hinton et al. 2015). With
$p$ the teacher's and $q$ the student's distribution over the vocabulary, both from logits divided by `temperature`
$T$, return

$$T^2 \\cdot \\frac{1}{n} \\sum_{\\mathrm{positions}} \\sum_v p_v \\, (\\ln p_v - \\ln q_v),$$

the mean over all $n$ positions of the batch. Logits may lie in the hundreds. The gradient reaches the student's logits
and **not** the teacher's, although the logits that you are handed ask for one.
""".strip(),
    reference=reference,
    solution=distillation_loss,
    cases=(
        Case(name="ordinary logits and a temperature above 1", inputs=_ordinary, points=2),
        Case(name="logits in the hundreds and a temperature below 1", inputs=_hundreds),
    ),
    hints="""
Which of the two models is trained? What would happen to the teacher if the loss could move it too?

Take log-probabilities of both in one safe step, after dividing by T. The teacher's leave the graph by `detach()`, and
only the teacher's.

`log_softmax` of both over the vocabulary; the teacher's probabilities times the difference of the logs; sum over the
vocabulary, mean over positions, times T squared.
""",
    observe=observe,
    difficulty=3,
    minutes=20,
    section="08-training",
)

exercise.mutations(r"""
teacher_learns: ".detach()" -> ""
    The loss is right, but its gradient reaches the teacher too, which would move towards its pupil. Take its logits out
    of the graph.
student_detached: ".detach()" -> "", "(student_logits /" -> "(student_logits.detach() /"
    The loss is right, but you have detached the wrong one: the gradient reaches the teacher, and the student learns
    nothing.
reversed: "teacher.exp() * (teacher - student)" -> "student.exp() * (student - teacher)"
    That is the divergence the other way round: you weight by the student's probabilities. What the teacher holds for
    likely should count.
temperature_squared: "temperature**2 * " -> ""
    The factor before the mean should be T squared. Without it the gradients shrink as the temperature grows.
temperature_ignored: "student = " -> "temperature = 1.0\n    student = "
    The distributions do not depend on the temperature. It divides the logits, before the softmax.
temperature_on_one: "(student_logits / temperature)" -> "student_logits"
    Only one of the two distributions is taken at the temperature, so that equal logits give different distributions.
    Divide both.
summed: "mean()" -> "sum()"
    Your loss is the sum over all positions, and grows with the batch.
hard_targets: "divergence.mean()" -> "-student.gather(-1, teacher.argmax(dim=-1, keepdim=True)).mean()"
    You keep the teacher's favourite only. What it thinks of the other tokens is what the student is to learn from it.
probabilities_for_logs: "(teacher - student)" -> "(teacher - student.exp())"
    The student's probabilities stand where their logarithms should. `kl_div` wants them so too: its first argument is
    logarithmic.
not_negated: "return temp" -> "return -temp"
    Your loss is negative, and a divergence never is. Which of the two logarithms is subtracted?
unstable: "(student_logits / temperature).log_softmax(dim=-1)" ->
  "(student_logits / temperature).softmax(dim=-1).log()",
  "temperature).log_softmax(dim=-1)" -> "temperature).softmax(dim=-1).log()"
    Right for small logits, NaN or infinite for large ones: a probability that is stored as 0 has no logarithm. There is
    one function that gives the logarithm safely.
inplace: "teacher_logits.detach() / temperature" -> "teacher_logits.detach().div_(temperature)"
    Your loss is right, but the teacher's logits have changed: the next use finds them divided. `/=` edits the caller's
    tensor.
""")


@exercise.must_hold("The teacher is finished and must not move towards its pupil: no gradient should reach it.")
def teacher_stays(trial: Trial) -> str | None:
    """Look whether a gradient reaches the teacher."""
    return "A gradient reaches the teacher's logits." if trial.value["the teacher's gradient"].any() else None


@exercise.must_hold("The student is what is trained: the loss should send it a gradient.")
def student_learns(trial: Trial) -> str | None:
    """Look whether a gradient reaches the student."""
    return None if trial.value["the student's gradient"].any() else "No gradient reaches the student's logits."


@exercise.must_hold("Two equal distributions have a divergence of 0: which of your terms remains?")
def zero_for_equals(trial: Trial) -> str | None:
    """Let the student say what the teacher says."""
    _, teacher_logits, temperature = trial.inputs
    logits = teacher_logits.clamp(-20, 20)
    loss = trial.run(logits.clone(), logits.clone(), temperature)["the loss"].item()
    return None if abs(loss) < 1e-4 else f"For a student that says what the teacher says your loss is {loss:.4g}."


@exercise.must_hold(
    "A constant added to all logits of a position changes no probability, so it should not change the loss."
)
def ignores_a_constant(trial: Trial) -> str | None:
    """Add one constant to the student's logits."""
    student_logits, teacher_logits, temperature = trial.inputs
    before = trial.value["the loss"].item()
    moved = student_logits + 1
    after = trial.run(moved, teacher_logits, temperature)["the loss"].item()
    if abs(after - before) <= 1e-3 * max(1.0, abs(before)):
        return None
    return f"Adding 1 to all of the student's logits takes your loss from {before:.4g} to {after:.4g}."
