"""Exercise: the mean loss over real target tokens."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.exercises.facts import gradients, traced


def observe_loss(answer, logits, *others):
    """Return the loss and its gradient with respect to the logits; zeros where none arrives."""
    with traced(logits) as (leaves, handed):
        loss = answer(*handed, *others)
    if isinstance(loss, float):
        loss = torch.tensor(loss)
    (gradient,) = gradients(loss, leaves, handed)
    return {"the loss": loss, "the gradient": gradient}


def masked_loss(
    logits: Float[Tensor, "batch target vocab_size"], targets: Int[Tensor, "batch target"], pad_id: int
) -> Float[Tensor, ""]:
    """Return the mean loss per real target token, in nats: one number, through which gradients flow."""
    log_probabilities = logits.log_softmax(dim=-1)
    surprise = -log_probabilities.gather(-1, targets[..., None])[..., 0]
    real = targets != pad_id
    return surprise[real].sum() / real.sum()


def reference(logits, targets, pad_id):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id)


def _targets(generator, pad_id, vocab_size, lengths):
    """Real tokens of any id but the padding's, then padding."""
    tokens = torch.randint(1, vocab_size, (len(lengths), max(lengths)), generator=generator) + pad_id
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.where(real, tokens % vocab_size, pad_id)


def _unequal_lengths(generator):
    vocab_size, pad_id = drawn(generator, 7, 9), drawn(generator, 3, 5)
    lengths = (drawn(generator, 5, 6), 1, 4)
    logits = 2 * torch.randn(3, max(lengths), vocab_size, generator=generator)
    return logits, _targets(generator, pad_id, vocab_size, lengths), pad_id


def _hundreds_apart(generator):
    """Logits in steps of a hundred, the padding's always the lowest."""
    levels = torch.rand(2, 5, 8, generator=generator).argsort(dim=-1) * 100.0
    levels[..., 3] = -100.0
    return levels, _targets(generator, 3, 8, (2, 5)), 3


def _never_padding(generator):
    logits = 2 * torch.randn(2, 4, 5, generator=generator)
    logits[..., 2] = -torch.inf
    return logits, _targets(generator, 2, 5, (4, 2)), 2


exercise = Exercise(
    id="training.masked_loss",
    title="A loss that padding cannot touch",
    statement="""
Write the training loss: for every real target token minus the natural logarithm of the probability that the model gives
it, and of these the mean over **all real tokens of the batch**, so that every token weighs the same.

A place whose target is `pad_id` counts neither in the sum nor in the number by which it is divided, whatever the logits
there. Logits may lie in the hundreds, and a model may rule a token out by the logit $-\\infty$. The result is a tensor
with one number and without axes, and gradients reach the logits.""".strip(),
    reference=reference,
    solution=masked_loss,
    cases=(
        Case(name="sentences of unequal lengths", inputs=_unequal_lengths, points=2),
        Case(name="logits hundreds apart", inputs=_hundreds_apart),
        Case(name="a model that never predicts padding", inputs=_never_padding),
    ),
    hints="""
Two questions: which number does each place contribute, and how many places are there to divide by?

Turn the logits into log-probabilities in one step that is safe for large logits. `gather` picks, at each place, the
entry of the target. Then leave out padding before you add up.

Log-softmax over the vocabulary; `gather` with the targets as a last axis of size one; minus; select where the target is
not `pad_id`, and take the mean of what is selected. Selecting is safer than multiplying by zero: zero times infinity is
no number.
""",
    observe=observe_loss,
    forbids=("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "smoothed_cross_entropy"),
    difficulty=2,
    minutes=15,
    section="08-training",
)

exercise.mutations(r"""
counts_pads: "surprise[real].sum() / real.sum()" -> "surprise.mean()"
    Changing the logits at padding changes your loss: the model is trained to predict padding. Which places should take
    part?
mean_over_all: "/ real.sum()" -> "/ real.numel()"
    The sum is right, but you divide it by all places: the more padding a batch has, the lower your loss. Count what you
    have added up.
mean_of_means: "surprise[real].sum() / real.sum()" ->
  "(surprise.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1)).mean()"
    You average within each sentence first, so that a token of a short sentence weighs more than one of a long. That is
    a choice one can make, but not the one asked for here.
summed: " / real.sum()" -> ""
    Your loss is the sum, not the mean: it grows with the batch, and with it every gradient.
ignores_class: "logits.log_softmax" -> "logits.index_fill(-1, torch.tensor([pad_id]), -torch.inf).log_softmax"
    You take the padding's class out of the softmax. Leave out *places* whose target is padding; at a real place the
    model may err towards padding, and should pay for it.
hard_coded_pad: "!= pad_id" -> "!= 0"
    You take id 0 for padding. Here it is a word, and padding has the id that comes as an argument.
unstable: "log_softmax" -> "softmax", "surprise[real].sum()" -> "-(-surprise[real]).log().sum()"
    Right for small logits, infinite or NaN for large ones: a probability of 1e-50 is stored as 0, and exp(300)
    overflows. There is one function that goes from logits to log-probabilities safely.
over_the_tokens: "dim=-1" -> "dim=1"
or: "dim=-1" -> "dim=0"
    Your softmax runs along the sentence, or along the batch. At each place the tokens of the vocabulary compete: which
    axis is theirs?
not_negated: "-log_prob" -> "log_prob"
    Your loss is negative: it is the log-likelihood, which should become large. A loss should become small.
detached: "surprise[real]" -> "surprise.detach()[real]"
    The value is right, but no gradient reaches the logits, and the model would learn nothing. `.detach()`, `.item()`,
    `.data` and a new `torch.tensor(...)` leave the graph.
shifts_again: "log_probabilities = " -> "logits, targets = logits[:, :-1], targets[:, 1:]\n    log_probabilities = "
    You shift logits against targets once more. The targets are already those of each place: the shift was made when the
    batch was.
multiplies_by_zero: "surprise[real].sum()" -> "(surprise * real).sum()"
    Right with ordinary logits, NaN where a model rules padding out: you multiply the loss there, which is infinite, by
    zero. Select the real places instead of weighting them.
reshaped: "log_probabilities = " ->
  "logits = logits.reshape(len(logits), -1, logits.shape[1]).mT\n    log_probabilities = "
or: "log_probabilities = " -> "logits = logits.transpose(0, 1).reshape(logits.shape)\n    log_probabilities = "
or: "-log_probabilities" -> "-log_probabilities.reshape(logits.shape[-1], -1).T.reshape(logits.shape)"
    You reshape logits whose axes have to be swapped: a reshape cuts the same row of numbers anew, so that a place gets
    those of others. Swap axes with `.mT` or `rearrange`, and targets alike.
inplace: "log_probabilities = " -> "logits.masked_fill_((targets == pad_id)[..., None], 0.0)\n    log_probabilities = "
    Your loss is right, but the logits you were given have changed at padding. An underscore at the end of a method
    edits the caller's data.
perplexity: "surprise[real].sum() / real.sum()" -> "(surprise[real].sum() / real.sum()).exp()"
    That is the perplexity, e to the power of the loss. The loss itself is asked for.
bits: "/ real.sum()" -> "/ real.sum() / torch.tensor(2.0).log()"
    Your loss is larger by the factor 1.44: you count in bits, with the logarithm to base 2. Count in nats.
""")


@exercise.must_hold("What the logits are at padding should not matter: where do these places enter?")
def padding_does_not_matter(trial: Trial) -> str | None:
    """Replace the logits at padding and look whether the loss moves."""
    logits, targets, pad_id = trial.inputs
    other = torch.where((targets == pad_id)[..., None], logits + torch.arange(logits.shape[-1]), logits)
    before, after = trial.value["the loss"].item(), trial.run(other.detach(), targets, pad_id)["the loss"].item()
    if abs(after - before) <= 1e-4 * abs(before):
        return None
    return f"With other logits at padding your loss goes from {before:.4g} to {after:.4g}."


@exercise.must_hold(
    "A constant added to all logits of a place changes no probability, so it should not change the loss. Do you "
    "normalise over the vocabulary?"
)
def ignores_a_constant(trial: Trial) -> str | None:
    """Add one constant to the logits of every place: the probabilities stay as they are."""
    logits, targets, pad_id = trial.inputs
    before = trial.value["the loss"].item()
    after = trial.run(logits + 1, targets, pad_id)["the loss"].item()
    return (
        None
        if abs(after - before) < 1e-3
        else f"Adding 1 to every logit takes your loss from {before:.4g} to {after:.4g}."
    )


@exercise.must_hold(
    "A model that holds all tokens for equally likely has a loss of ln(vocab_size), however long the sentences are: "
    "what do you divide by, and which logarithm do you take?"
)
def uniform_guess(trial: Trial) -> str | None:
    """Try logits of zeros, whose loss is the logarithm of the vocabulary's size."""
    logits, targets, pad_id = trial.inputs
    came = trial.run(torch.zeros_like(logits), targets, pad_id)["the loss"].item()
    expected = torch.tensor(float(logits.shape[-1])).log().item()
    if abs(came - expected) < 1e-3:
        return None
    return f"With all logits equal and {logits.shape[-1]} tokens to choose from your loss is {came:.4g}."


@exercise.must_hold(
    "The loss asks how probable the target is, not the likeliest token or always the same one: how do you pick, at "
    "each place, the log-probability of its target?"
)
def asks_for_the_target(trial: Trial) -> str | None:
    """Ask for another word at every real place."""
    logits, targets, pad_id = trial.inputs
    words = torch.tensor([word for word in range(logits.shape[-1]) if word != pad_id])
    other = torch.where(targets == pad_id, pad_id, words[(torch.searchsorted(words, targets) + 1) % len(words)])
    before, after = trial.value["the loss"].item(), trial.run(logits, other, pad_id)["the loss"].item()
    return f"With other words as targets your loss is still {before:.4g}." if before == after else None
