"""How a loss is run, for its value and its gradient, and what is true of every right one."""

import torch

from ttutor.exercises.exercise import Property, Trial
from ttutor.exercises.facts import gradients, traced


def observe_loss(answer, logits, *others):
    """Return the loss and its gradient with respect to the logits; zeros where none arrives."""
    with traced(logits) as (leaves, handed):
        loss = answer(*handed, *others)
    if isinstance(loss, float):
        loss = torch.tensor(loss)
    (gradient,) = gradients(loss, leaves, handed)
    return {"the loss": loss, "the gradient": gradient}


def _padding_that_counts(trial: Trial) -> str | None:
    """Replace the logits at padding and look whether the loss moves."""
    logits, targets, pad_id = trial.inputs
    other = torch.where((targets == pad_id)[..., None], logits + torch.arange(logits.shape[-1]), logits)
    before, after = trial.value["the loss"].item(), trial.run(other.detach(), targets, pad_id)["the loss"].item()
    if abs(after - before) <= 1e-4 * abs(before):
        return None
    return f"With other logits at padding your loss goes from {before:.4g} to {after:.4g}."


def _level_that_matters(trial: Trial) -> str | None:
    """Add one constant to the logits of every place: the probabilities stay as they are."""
    logits, targets, pad_id = trial.inputs
    before = trial.value["the loss"].item()
    after = trial.run(logits + 1, targets, pad_id)["the loss"].item()
    return (
        None
        if abs(after - before) < 1e-3
        else f"Adding 1 to every logit takes your loss from {before:.4g} to {after:.4g}."
    )


def _uniform_guess(trial: Trial) -> str | None:
    """Try logits of zeros, whose loss is the logarithm of the vocabulary's size."""
    logits, targets, pad_id = trial.inputs
    came = trial.run(torch.zeros_like(logits), targets, pad_id)["the loss"].item()
    expected = torch.tensor(float(logits.shape[-1])).log().item()
    if abs(came - expected) < 1e-3:
        return None
    return f"With all logits equal and {logits.shape[-1]} tokens to choose from your loss is {came:.4g}."


def _targets_that_do_not_matter(trial: Trial) -> str | None:
    """Ask for another word at every real place."""
    logits, targets, pad_id = trial.inputs
    words = torch.tensor([word for word in range(logits.shape[-1]) if word != pad_id])
    other = torch.where(targets == pad_id, pad_id, words[(torch.searchsorted(words, targets) + 1) % len(words)])
    before, after = trial.value["the loss"].item(), trial.run(logits, other, pad_id)["the loss"].item()
    return f"With other words as targets your loss is still {before:.4g}." if before == after else None


PROPERTIES = (
    Property(
        id="padding_does_not_matter",
        says="What the logits are at padding should not matter: where do these places enter?",
        broken=_padding_that_counts,
    ),
    Property(
        id="ignores_a_constant",
        says="A constant added to all logits of a place changes no probability, so it should not change the "
        "loss. Do you normalise over the vocabulary?",
        broken=_level_that_matters,
    ),
    Property(
        id="uniform_guess",
        says="A model that holds all tokens for equally likely has a loss of ln(vocab_size), however long the "
        "sentences are: what do you divide by, and which logarithm do you take?",
        broken=_uniform_guess,
    ),
    Property(
        id="asks_for_the_target",
        says="The loss asks how probable the target is, not the likeliest token or always the same one: how do you "
        "pick, at each place, the log-probability of its target?",
        broken=_targets_that_do_not_matter,
    ),
)
