"""What the exercises on training take as right meets the package and torch."""

import math

import torch
from torch import nn
from torch.nn import functional

from ttutor.corpora.tokenizer import BOS_ID, EOS_ID, PAD_ID
from ttutor.exercises import find
from ttutor.exercises.training import teacher_forcing
from ttutor.training.batching import make_batch, pad
from ttutor.training.fit import fit
from ttutor.training.loss import smoothed_cross_entropy


def inputs_of(exercise_id, case=0):
    """A case's inputs, those with fractions in float64."""
    inputs = find(exercise_id).cases[case].inputs(torch.Generator().manual_seed(5))
    return tuple(
        part.double() if isinstance(part, torch.Tensor) and part.is_floating_point() else part for part in inputs
    )


def test_the_marks_are_the_packages():
    assert (teacher_forcing.PAD_ID, teacher_forcing.BOS_ID, teacher_forcing.EOS_ID) == (PAD_ID, BOS_ID, EOS_ID)


def test_teacher_forcing_gives_the_packages_batches():
    targets = [[7, 8, 9], [10], [11, 12]]
    batch = make_batch([([5], target) for target in targets])
    exercise = find("training.teacher_forcing")
    whole = pad([[BOS_ID, *target, EOS_ID] for target in targets])
    decoder_input, predicted = exercise.observe(exercise.reference, whole)
    assert torch.equal(predicted, batch.target_out)
    assert torch.equal(decoder_input, batch.target_in)


def test_masked_loss_is_the_packages_without_smoothing():
    for case in range(2):  # in the third a logit is infinite, and the package's smoothing asks for finite ones
        logits, targets, pad_id = inputs_of("training.masked_loss", case)
        expected = smoothed_cross_entropy(logits.flatten(0, 1), targets.flatten(), smoothing=0.0, pad_id=pad_id)
        torch.testing.assert_close(find("training.masked_loss").reference(logits, targets, pad_id), expected)


def test_masked_loss_does_not_see_a_class_that_is_ruled_out():
    logits, targets, pad_id = inputs_of("training.masked_loss", 2)
    others = [token for token in range(logits.shape[-1]) if token != pad_id]
    real = targets != pad_id
    renumbered = targets[real] - (targets[real] > pad_id).long()
    expected = functional.cross_entropy(logits[real][:, others], renumbered)
    torch.testing.assert_close(find("training.masked_loss").reference(logits, targets, pad_id), expected)


def test_label_smoothing_is_what_its_sentence_says():
    targets, vocab_size, pad_id, smoothing = inputs_of("training.label_smoothing")
    rows = find("training.label_smoothing").reference(targets, vocab_size, pad_id, smoothing)
    for target, row in zip(targets.tolist(), rows.tolist(), strict=True):
        for token, share in enumerate(row):
            nothing = pad_id in (target, token)
            expected = 0 if nothing else 1 - smoothing if token == target else smoothing / (vocab_size - 2)
            assert math.isclose(share, expected, rel_tol=1e-6)


def test_label_smoothing_over_the_words_alone_is_torchs():
    """With n words torch gives each wrong one eps / n; the exercise gives it eps / (n - 1), as another eps would."""
    n_words, smoothing = 6, 0.3
    log_probabilities = torch.randn(n_words, n_words, dtype=torch.float64).log_softmax(dim=-1)
    rows = find("training.label_smoothing").reference(torch.arange(n_words), n_words + 1, n_words, smoothing)
    ours = -(rows[:, :n_words].double() * log_probabilities).sum(dim=-1).mean()
    torchs = functional.cross_entropy(
        log_probabilities, torch.arange(n_words), label_smoothing=smoothing * n_words / (n_words - 1)
    )
    torch.testing.assert_close(ours, torchs, rtol=1e-6, atol=0)


def test_training_steps_make_the_packages_loop():
    exercise, max_norm, steps = find("training.training_step"), 0.3, 4
    batch = torch.randn(6, 3, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)

    def loss(model, batch):
        return (model(batch[0]) - batch[1]).square().mean()

    ours, theirs = nn.Linear(3, 2).double(), nn.Linear(3, 2).double()
    theirs.load_state_dict(ours.state_dict())
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.05)
    losses = [exercise.reference(ours, optimizer, loss, batch, max_norm) for _ in range(steps)]
    expected = fit(theirs, [batch], loss, steps=steps, learning_rate=0.05, clip_norm=max_norm)
    torch.testing.assert_close(losses, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-5, atol=0)


def test_the_two_cases_of_a_step_lie_on_both_sides_of_the_limit():
    for case, is_long in enumerate((True, False)):
        inputs = find("training.training_step").cases[case].inputs(torch.Generator().manual_seed(5))
        weights, batches, max_norm = inputs
        for inputs, targets in batches:
            leaf = weights.clone().requires_grad_()
            (gradient,) = torch.autograd.grad((inputs @ leaf.T - targets).square().mean(), leaf)
            assert (gradient.norm() > max_norm) == is_long


def test_a_validation_is_the_mean_over_all_tokens():
    model = nn.Linear(3, 2)
    batches = torch.randn(9, 3).split([4, 2, 3])

    def loss(model, batch):
        return model(batch).exp().sum(), len(batch)

    came = find("training.validation_loss").reference(model, iter(batches), loss)
    assert math.isclose(came, model(torch.cat(batches)).exp().sum().item() / 9, rel_tol=1e-5)
    assert model.training


def test_distillation_is_a_divergence_times_the_square_of_the_temperature():
    student, teacher, temperature = inputs_of("training.distillation_loss")
    p, q = (torch.distributions.Categorical(logits=logits / temperature) for logits in (teacher, student))
    expected = temperature**2 * torch.distributions.kl_divergence(p, q).mean()
    torch.testing.assert_close(find("training.distillation_loss").reference(student, teacher, temperature), expected)
