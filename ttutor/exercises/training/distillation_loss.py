"""Exercise: learning from a teacher that must not learn in turn."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.exercise import Case, Exercise, Mistake
from ttutor.exercises.training import distillation_loss_mistakes as wrong
from ttutor.exercises.training.distillation_loss_probes import PROPERTIES, observe


def distillation_loss(
    student_logits: Float[Tensor, "batch tokens vocab_size"],
    teacher_logits: Float[Tensor, "batch tokens vocab_size"],
    temperature: float,
) -> Float[Tensor, ""]:
    """Return how far the student's distributions are from the teacher's, with gradients for the student alone."""
    ...


def solution(
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
    return (
        2 * torch.randn(2, 3, 5, generator=generator),
        2 * torch.randn(2, 3, 5, generator=generator),
        3.0,
    )


def _hundreds(generator):
    return (
        300 * torch.randn(2, 4, 7, generator=generator),
        300 * torch.randn(2, 4, 7, generator=generator),
        0.5,
    )


EXERCISES = (
    Exercise(
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
        stub=distillation_loss,
        reference=reference,
        solution=solution,
        cases=(
            Case(name="ordinary logits and a temperature of 3", inputs=_ordinary, points=2),
            Case(name="logits in the hundreds and a temperature of 0.5", inputs=_hundreds),
        ),
        hints=(
            "Which of the two models is trained? What would happen to the teacher if the loss could move it too?",
            (
                "Take log-probabilities of both in one safe step, after dividing by T. The teacher's leave the graph "
                "by `detach()`, and only the teacher's."
            ),
            (
                "`log_softmax` of both over the vocabulary; the teacher's probabilities times the difference of the "
                "logs; sum over the vocabulary, mean over positions, times T squared."
            ),
        ),
        mistakes=(
            Mistake(
                id="teacher_learns",
                says="The loss is right, but its gradient reaches the teacher too, which would move towards its pupil. "
                "Take its logits out of the graph.",
                answers=(wrong.teacher_learns,),
            ),
            Mistake(
                id="student_detached",
                says="The loss is right, but you have detached the wrong one: the gradient reaches the teacher, and "
                "the student learns nothing.",
                answers=(wrong.student_detached,),
            ),
            Mistake(
                id="nobody_learns",
                says="The loss is right, but no gradient reaches the student: `.item()`, `.detach()` or `no_grad` "
                "covers more than the teacher.",
                answers=(wrong.nobody_learns, wrong.as_a_number),
            ),
            Mistake(
                id="reversed",
                says="That is the divergence the other way round: you weight by the student's probabilities. What the "
                "teacher holds for likely should count.",
                answers=(wrong.reversed_divergence,),
            ),
            Mistake(
                id="temperature_squared",
                says="The factor before the mean should be T squared. Without it the gradients shrink as the "
                "temperature grows.",
                answers=(wrong.no_square, wrong.times_temperature),
            ),
            Mistake(
                id="temperature_ignored",
                says="The distributions do not depend on the temperature. It divides the logits, before the softmax.",
                answers=(
                    wrong.temperature_ignored,
                    wrong.temperature_only_outside,
                    wrong.temperature_after_the_softmax,
                ),
            ),
            Mistake(
                id="temperature_multiplies",
                says="You multiply the logits by the temperature, so a higher one sharpens. It should flatten.",
                answers=(wrong.temperature_multiplies,),
            ),
            Mistake(
                id="temperature_on_one",
                says="Only one of the two distributions is taken at the temperature, so that equal logits give "
                "different distributions. Divide both.",
                answers=(wrong.temperature_on_the_teacher, wrong.temperature_on_the_student),
            ),
            Mistake(
                id="mean_over_classes",
                says="Your loss is too small by the size of the vocabulary: you average over the tokens of the "
                "vocabulary, as `kl_div` does by default. Sum over them; average over positions.",
                answers=(wrong.mean_over_classes,),
            ),
            Mistake(
                id="per_sentence",
                says="You divide by the number of sentences, not of positions, as `batchmean` does with three axes. "
                "Long sentences then have large losses.",
                answers=(wrong.per_sentence,),
            ),
            Mistake(
                id="summed",
                says="Your loss is the sum over all positions, and grows with the batch.",
                answers=(wrong.summed,),
            ),
            Mistake(
                id="cross_entropy",
                says="The gradient is right, but the value is the cross-entropy: it does not go to 0 when the student "
                "says what the teacher says. The teacher's own entropy is missing.",
                answers=(wrong.cross_entropy,),
            ),
            Mistake(
                id="hard_targets",
                says="You keep the teacher's favourite only. What it thinks of the other tokens is what the student "
                "is to learn from it.",
                answers=(wrong.hard_targets,),
            ),
            Mistake(
                id="squares",
                says="You compare by squared differences. That is another loss, without logarithms.",
                answers=(wrong.squares_of_logits, wrong.squares_of_probabilities),
            ),
            Mistake(
                id="probabilities_for_logs",
                says="The student's probabilities stand where their logarithms should. `kl_div` wants them so too: "
                "its first argument is logarithmic.",
                answers=(wrong.probabilities_for_logs,),
            ),
            Mistake(
                id="over_the_tokens",
                says="Your softmax runs along the sentence. At each position the tokens of the vocabulary compete.",
                answers=(wrong.over_the_tokens,),
            ),
            Mistake(
                id="not_negated",
                says="Your loss is negative, and a divergence never is. Which of the two logarithms is subtracted?",
                answers=(wrong.not_negated,),
            ),
            Mistake(
                id="one_for_each_position",
                says="There is still one number for every position. Average them.",
                answers=(wrong.one_for_each_position,),
            ),
            Mistake(
                id="unstable",
                says="Right for small logits, NaN or infinite for large ones: a probability that is stored as 0 has "
                "no logarithm. There is one function that gives the logarithm safely.",
                answers=(wrong.logarithm_by_hand,),
            ),
            Mistake(
                id="inplace",
                says="Your loss is right, but the teacher's logits have changed: the next use finds them divided. "
                "`/=` edits the caller's tensor.",
                answers=(wrong.inplace,),
            ),
        ),
        properties=PROPERTIES,
        observe=observe,
        difficulty=3,
        minutes=20,
        section="08-training",
    ),
)
