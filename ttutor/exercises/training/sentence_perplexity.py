"""Exercise: from the probabilities of a sentence's tokens to its probability, its loss and its perplexity."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.exercise import Case, Exercise, Trial


def sentence_perplexity(probabilities: Float[Tensor, " target"]) -> tuple[float, float, float]:
    """The probability of a sentence, its mean loss in nats, and its perplexity, from those of its target tokens."""
    loss = -probabilities.log().mean().item()
    return probabilities.prod().item(), loss, math.exp(loss)


def reference(probabilities):
    two_tokens = torch.stack([probabilities, 1 - probabilities], dim=1).log()
    loss = functional.cross_entropy(two_tokens, torch.zeros(len(probabilities), dtype=torch.long)).item()
    return math.prod(probabilities.tolist()), loss, math.exp(loss)


def _few(random):
    return (0.05 + 0.9 * torch.rand(7, generator=random, dtype=torch.float64),)


def _many(random):
    return (0.05 + 0.5 * torch.rand(1500, generator=random, dtype=torch.float64),)


exercise = Exercise(
    id="training.sentence_perplexity",
    title="A loss by hand",
    statement="""A model gives the three target tokens of a sentence the probabilities 1/2, 1/4 and 1/8. What are
the probability of the sentence, the mean loss per token in nats, and the perplexity? How does the perplexity relate to
the sentence's probability?

Then write a function that gives the three numbers for any sentence, also a very long one. (There the first may
come out as 0, the other two must not.)""",
    reference=reference,
    solution=sentence_perplexity,
    explanation=r"The sentence has probability $1/64$. The loss is $(1 + 2 + 3) \ln 2 / 3 = 2 \ln 2 = 1.386$ "
    r"nats, the perplexity $e^{2 \ln 2} = 4$. In general the perplexity is the sentence's probability to the "
    r"power $-1/T$, here $64^{1/3} = 4$: the geometric mean of the inverse probabilities. On paper either way "
    r"will do; in floating point the product of many probabilities becomes 0, and the sum of their logarithms "
    r"does not.",
    cases=(
        Case(name="a sentence of seven tokens", inputs=_few),
        Case(name="a text of 1,500 tokens", inputs=_many),
    ),
    hints=r"""
The chain rule multiplies.

The logarithm of a product is a sum; every factor of the three is a power of 2.

The mean of $\ln 2$, $2 \ln 2$ and $3 \ln 2$. Take $e$ to that mean, and compare it with $64^{1/3}$. In code: which is
safe for 1,500 factors, the product or the sum of their logarithms?
""",
    forbids=("cross_entropy", "nll_loss"),
    difficulty=1,
    minutes=10,
    section="08-training",
)

exercise.mutations("""
log_of_mean: "log().mean" -> "mean().log"
    You take the logarithm of the mean probability. The loss is the mean of the logarithms, so one token with a tiny
    probability can ruin it.
sign: "-probabilities" -> "probabilities"
    Your loss is negative: the logarithm of a probability is. The better the model, the smaller the loss, and 0 is the
    best.
first_token_left_out: ".prod" -> "[1:].prod"
    Loss and perplexity are right. The probability leaves out the first token, which the model has to predict as well:
    that is what the start mark is for.
not_multiplied: "prod" -> "mean"
    Loss and perplexity are right. The sentence's probability is that of the first token and of the second after it and
    so on; how are these put together?
perplexity_from_product: "math.exp(loss)" -> "(probabilities.prod() ** (-1 / len(probabilities))).item()"
or: "math.exp(loss)" -> "probabilities.prod().item() ** (-1 / len(probabilities))"
    Right for seven tokens. The probability of 1,500 is too small for a floating-point number and becomes 0, and your
    perplexity infinite. From which other number does it follow?
log_of_product: "log().mean().item()" -> "prod().log().item() / len(probabilities)"
or: "probabilities.log().mean().item()" -> "math.log(math.prod(probabilities.tolist())) / len(probabilities)"
    Right for seven tokens. The product of 1,500 probabilities becomes 0 before you take its logarithm. Which can be
    done first?
summed: "mean().item()" -> "sum()", "loss, math.exp(loss)" -> "loss.item(), loss.exp().item()"
or: "mean()" -> "sum()"
    Your loss grows with the length of the sentence: it is a sum. The loss is counted per token.
perplexity_of_sum: "math.exp(loss)" -> "(-probabilities.log().sum()).exp().item()"
    Your loss is a mean, and your perplexity was made from the sum. It is the exponential of the loss per token.
bits: "log()" -> "log2()", "math.exp(loss)" -> "2**loss"
    Your loss is in bits: the logarithm has base 2. A nat is larger than a bit; which base has it?
base_mixed: "math.exp(loss)" -> "2**loss"
    Your loss is in nats, and you take it as the power of 2. The exponential has the base that the logarithm had.
arithmetic_mean: "math.exp(loss)" -> "(1 / probabilities).mean().item()"
    You take the plain mean of the inverse probabilities. The perplexity is their geometric mean: the mean is taken of
    the logarithms.
""")


@exercise.must_hold("The perplexity is e to the power of the loss: the two numbers say the same thing.")
def perplexity_is_exp_of_loss(trial: Trial) -> str | None:
    _, loss, perplexity = (float(number) for number in trial.value)
    if math.isclose(math.log(perplexity), loss, rel_tol=1e-4) if perplexity > 0 else False:
        return None
    return f"Your loss is {loss:.4g} and your perplexity {perplexity:.4g}."
