"""Exercise: the mean loss over real target tokens."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Mistake
from ttutor.exercises.training import masked_loss_mistakes as wrong
from ttutor.exercises.training.masked_loss_probes import PROPERTIES, observe_loss


def masked_loss(
    logits: Float[Tensor, "batch target vocab_size"], targets: Int[Tensor, "batch target"], pad_id: int
) -> Float[Tensor, ""]:
    """Return the mean loss per real target token, in nats: one number, through which gradients flow."""
    ...


def solution(
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
    return 2 * torch.randn(3, 6, 7, generator=generator), _targets(generator, 4, 7, (6, 1, 4)), 4


def _hundreds_apart(generator):
    """Logits in steps of a hundred, the padding's always the lowest."""
    levels = torch.rand(2, 5, 8, generator=generator).argsort(dim=-1) * 100.0
    levels[..., 3] = -100.0
    return levels, _targets(generator, 3, 8, (2, 5)), 3


def _never_padding(generator):
    logits = 2 * torch.randn(2, 4, 5, generator=generator)
    logits[..., 2] = -torch.inf
    return logits, _targets(generator, 2, 5, (4, 2)), 2


EXERCISES = (
    Exercise(
        id="training.masked_loss",
        title="A loss that padding cannot touch",
        statement="""
Write the training loss: for every real target token minus the natural logarithm of the probability that the model gives
it, and of these the mean over **all real tokens of the batch**, so that every token weighs the same.

A place whose target is `pad_id` counts neither in the sum nor in the number by which it is divided, whatever the logits
there. Logits may lie in the hundreds, and a model may rule a token out by the logit $-\\infty$. The result is a tensor
with one number and without axes, and gradients reach the logits.""".strip(),
        stub=masked_loss,
        reference=reference,
        solution=solution,
        cases=(
            Case(name="sentences of unequal lengths", inputs=_unequal_lengths, points=2),
            Case(name="logits hundreds apart", inputs=_hundreds_apart),
            Case(name="a model that never predicts padding", inputs=_never_padding),
        ),
        hints=(
            "Two questions: which number does each place contribute, and how many places are there to divide by?",
            (
                "Turn the logits into log-probabilities in one step that is safe for large logits. `gather` picks, at "
                "each place, the entry of the target. Then leave out padding before you add up."
            ),
            (
                "Log-softmax over the vocabulary; `gather` with the targets as a last axis of size one; minus; select "
                "where the target is not `pad_id`, and take the mean of what is selected. Selecting is safer than "
                "multiplying by zero: zero times infinity is no number."
            ),
        ),
        mistakes=(
            Mistake(
                id="counts_pads",
                says="Changing the logits at padding changes your loss: the model is trained to predict padding. "
                "Which places should take part?",
                answers=(wrong.counts_pads,),
            ),
            Mistake(
                id="mean_over_all",
                says="The sum is right, but you divide it by all places: the more padding a batch has, the lower your "
                "loss. Count what you have added up.",
                answers=(wrong.mean_over_all,),
            ),
            Mistake(
                id="mean_of_means",
                says="You average within each sentence first, so that a token of a short sentence weighs more than one "
                "of a long. That is a choice one can make, but not the one asked for here.",
                answers=(wrong.mean_of_means,),
            ),
            Mistake(
                id="summed",
                says="Your loss is the sum, not the mean: it grows with the batch, and with it every gradient.",
                answers=(wrong.summed,),
            ),
            Mistake(
                id="per_sentence",
                says="You divide the sum by the number of sentences. Long sentences then have larger losses than "
                "short ones of the same quality: how many tokens are there?",
                answers=(wrong.per_sentence,),
            ),
            Mistake(
                id="perplexity",
                says="That is the perplexity, e to the power of the loss. The loss itself is asked for.",
                answers=(wrong.perplexity,),
            ),
            Mistake(
                id="bits",
                says="Your loss is larger by the factor 1.44: you count in bits, with the logarithm to base 2. Count "
                "in nats.",
                answers=(wrong.bits,),
            ),
            Mistake(
                id="ignores_class",
                says="You take the padding's class out of the softmax. Leave out *places* whose target is padding; at "
                "a real place the model may err towards padding, and should pay for it.",
                answers=(wrong.ignores_class,),
            ),
            Mistake(
                id="mean_probability",
                says="That is minus the mean probability, which never leaves the range from -1 to 0. The loss is the "
                "negative *logarithm* of each probability.",
                answers=(wrong.mean_probability,),
            ),
            Mistake(
                id="log_of_mean",
                says="You average the probabilities and take the logarithm afterwards. Each token has its own "
                "logarithm; the mean comes last.",
                answers=(wrong.log_of_mean,),
            ),
            Mistake(
                id="hard_coded_pad",
                says="You take id 0 for padding. Here it is a word, and padding has the id that comes as an argument.",
                answers=(wrong.hard_coded_pad,),
            ),
            Mistake(
                id="unstable",
                says="Right for small logits, infinite or NaN for large ones: a probability of 1e-50 is stored as 0, "
                "and exp(300) overflows. There is one function that goes from logits to log-probabilities safely.",
                answers=(wrong.log_after_softmax, wrong.exponentials_by_hand),
            ),
            Mistake(
                id="largest_logit",
                says="Right where one logit stands far above all others, too small elsewhere: you compare with the "
                "largest logit only. The softmax's denominator has a term for every token.",
                answers=(wrong.largest_logit,),
            ),
            Mistake(
                id="over_the_tokens",
                says="Your softmax runs along the sentence, or along the batch. At each place the tokens of the "
                "vocabulary compete: which axis is theirs?",
                answers=(wrong.over_the_tokens, wrong.over_the_batch),
            ),
            Mistake(
                id="raw_logits",
                says="You average the logits of the right tokens. A logit is no log-probability: adding 1 to all of "
                "them changes nothing for the model, but changes your loss.",
                answers=(wrong.raw_logits,),
            ),
            Mistake(
                id="softmax_twice",
                says="The softmax is applied twice, so your loss can hardly tell a good model from a bad one. A "
                "log-softmax expects logits, not probabilities.",
                answers=(wrong.softmax_twice,),
            ),
            Mistake(
                id="not_negated",
                says="Your loss is negative: it is the log-likelihood, which should become large. A loss should "
                "become small.",
                answers=(wrong.not_negated,),
            ),
            Mistake(
                id="one_for_each_token",
                says="There is still one number for every place. A training step needs a single one: what is left to "
                "do?",
                answers=(wrong.one_for_each_token,),
            ),
            Mistake(
                id="detached",
                says="The value is right, but no gradient reaches the logits, and the model would learn nothing. "
                "`.detach()`, `.item()`, `.data` and a new `torch.tensor(...)` leave the graph.",
                answers=(wrong.detached, wrong.as_a_number),
            ),
            Mistake(
                id="smoothed",
                says="Your loss contains label smoothing, a share for every token of the vocabulary. Here the right "
                "token gets all of it.",
                answers=(wrong.smoothed,),
            ),
            Mistake(
                id="shifts_again",
                says="You shift logits against targets once more. The targets are already those of each place: the "
                "shift was made when the batch was.",
                answers=(wrong.shifts_again,),
            ),
            Mistake(
                id="multiplies_by_zero",
                says="Right with ordinary logits, NaN where a model rules padding out: you multiply the loss there, "
                "which is infinite, by zero. Select the real places instead of weighting them.",
                answers=(wrong.multiplies_by_zero,),
            ),
            Mistake(
                id="all_classes",
                says="The log-probabilities of all tokens of the vocabulary stand in your loss. Only that of the "
                "target belongs there: how do you pick it?",
                answers=(wrong.all_classes, wrong.all_classes_summed),
            ),
            Mistake(
                id="reshaped",
                says="You reshape logits whose axes have to be swapped: a reshape cuts the same row of numbers anew, "
                "so that a place gets those of others. Swap axes with `.mT` or `rearrange`, and targets alike.",
                answers=(wrong.reshaped, wrong.flattened_apart, wrong.classes_in_front),
            ),
            Mistake(
                id="inplace",
                says="Your loss is right, but the logits you were given have changed at padding. An underscore at the "
                "end of a method edits the caller's data.",
                answers=(wrong.writes_into_logits,),
            ),
        ),
        properties=PROPERTIES,
        observe=observe_loss,
        forbids=("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "smoothed_cross_entropy"),
        difficulty=2,
        minutes=15,
        section="08-training",
    ),
)
