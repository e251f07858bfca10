"""What goes wrong when a small model learns from a large one."""

from torch.nn import functional


def logs(logits, temperature):
    return (logits / temperature).log_softmax(dim=-1)


def divergence(student, teacher):
    """From log-probabilities: the divergence of each position."""
    return (teacher.exp() * (teacher - student)).sum(dim=-1)


def teacher_learns(student_logits, teacher_logits, temperature):
    student, teacher = logs(student_logits, temperature), logs(teacher_logits, temperature)
    return temperature**2 * divergence(student, teacher).mean()


def student_detached(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits.detach(), teacher_logits, temperature)


def nobody_learns(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits.detach(), teacher_logits.detach(), temperature)


def as_a_number(student_logits, teacher_logits, temperature):
    return nobody_learns(student_logits, teacher_logits, temperature).item()


def reversed_divergence(student_logits, teacher_logits, temperature):
    student, teacher = logs(student_logits, temperature), logs(teacher_logits.detach(), temperature)
    return temperature**2 * divergence(teacher, student).mean()


def no_square(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits, teacher_logits.detach(), temperature) / temperature**2


def times_temperature(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits, teacher_logits.detach(), temperature) / temperature


def temperature_ignored(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits, teacher_logits.detach(), 1.0)


def temperature_only_outside(student_logits, teacher_logits, temperature):
    return temperature**2 * teacher_learns(student_logits, teacher_logits.detach(), 1.0)


def temperature_multiplies(student_logits, teacher_logits, temperature):
    return temperature**4 * teacher_learns(student_logits, teacher_logits.detach(), 1 / temperature)


def temperature_on_the_teacher(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits * temperature, teacher_logits.detach(), temperature)


def temperature_on_the_student(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits, teacher_logits.detach() * temperature, temperature)


def temperature_after_the_softmax(student_logits, teacher_logits, temperature):
    student = (student_logits.softmax(dim=-1) / temperature).log()
    teacher = (teacher_logits.detach().softmax(dim=-1) / temperature).log()
    return temperature**2 * divergence(student, teacher).mean()


def mean_over_classes(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits, teacher_logits.detach(), temperature) / student_logits.shape[-1]


def per_sentence(student_logits, teacher_logits, temperature):
    return teacher_learns(student_logits, teacher_logits.detach(), temperature) * student_logits.shape[1]


def summed(student_logits, teacher_logits, temperature):
    return per_sentence(student_logits, teacher_logits, temperature) * len(student_logits)


def cross_entropy(student_logits, teacher_logits, temperature):
    student, teacher = logs(student_logits, temperature), logs(teacher_logits.detach(), temperature)
    return -(temperature**2) * (teacher.exp() * student).sum(dim=-1).mean()


def hard_targets(student_logits, teacher_logits, temperature):
    student = logs(student_logits, temperature).flatten(0, 1)
    return temperature**2 * functional.cross_entropy(student, teacher_logits.argmax(dim=-1).flatten())


def squares_of_logits(student_logits, teacher_logits, temperature):
    return (student_logits - teacher_logits.detach()).square().mean()


def squares_of_probabilities(student_logits, teacher_logits, temperature):
    student, teacher = logs(student_logits, temperature).exp(), logs(teacher_logits.detach(), temperature).exp()
    return temperature**2 * (student - teacher).square().sum(dim=-1).mean()


def probabilities_for_logs(student_logits, teacher_logits, temperature):
    student, teacher = logs(student_logits, temperature).exp(), logs(teacher_logits.detach(), temperature)
    return temperature**2 * divergence(student, teacher).mean()


def over_the_tokens(student_logits, teacher_logits, temperature):
    student = (student_logits / temperature).log_softmax(dim=1)
    teacher = (teacher_logits.detach() / temperature).log_softmax(dim=1)
    return temperature**2 * divergence(student, teacher).mean()


def not_negated(student_logits, teacher_logits, temperature):
    return -teacher_learns(student_logits, teacher_logits.detach(), temperature)


def one_for_each_position(student_logits, teacher_logits, temperature):
    student, teacher = logs(student_logits, temperature), logs(teacher_logits.detach(), temperature)
    return temperature**2 * divergence(student, teacher)


def logarithm_by_hand(student_logits, teacher_logits, temperature):
    student = (student_logits / temperature).softmax(dim=-1).log()
    teacher = (teacher_logits.detach() / temperature).softmax(dim=-1).log()
    return temperature**2 * divergence(student, teacher).mean()


def inplace(student_logits, teacher_logits, temperature):
    teacher_logits /= temperature
    return teacher_learns(student_logits, teacher_logits.detach() * temperature, temperature)
