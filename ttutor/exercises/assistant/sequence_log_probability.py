"""Exercise: the log-probability of a whole answer."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def sequence_log_probability(
    logits: Float[Tensor, "batch tokens vocab_size"],
    token_ids: Int[Tensor, "batch tokens"],
    is_answer: Bool[Tensor, "batch tokens"],
) -> Float[Tensor, " batch"]:
    """How probable each row's answer is, given its prompt, as a logarithm."""
    log_p = logits[:, :-1].log_softmax(dim=-1)
    chosen = log_p.gather(-1, token_ids[:, 1:, None])[..., 0]
    return torch.where(is_answer[:, 1:], chosen, 0.0).sum(dim=1)


def reference(logits, token_ids, is_answer):
    total = torch.zeros(len(logits), dtype=logits.dtype)
    for row, token in is_answer.nonzero().tolist():
        before = logits[row, token - 1]
        total[row] += before[token_ids[row, token]] - before.logsumexp(0)
    return total


def _answers(generator):
    """Answers of unequal length after prompts of unequal length; what follows them counts for nothing."""
    batch, n_tokens, vocab_size = drawn(generator, 4, 7), drawn(generator, 12, 14), drawn(generator, 5, 8)
    logits = 2 * torch.randn(batch, n_tokens, vocab_size, generator=generator)
    token_ids = torch.randint(vocab_size, (batch, n_tokens), generator=generator)
    is_answer = torch.zeros(batch, n_tokens, dtype=torch.bool)
    for row, length in enumerate((1 + torch.randperm(batch, generator=generator)).tolist()):
        start = drawn(generator, 2, 4)
        is_answer[row, start : start + length] = True
    return logits, token_ids, is_answer


exercise = Exercise(
    id="assistant.sequence_log_probability",
    title="How probable is a whole answer?",
    statement="""
DPO and the policy gradient both ask how probable a model finds a *whole answer*, given its prompt. `logits[:, t]` are
the model's for the token after `t`; `is_answer` is True at the tokens of the answer. Return one logarithm for each row.
""".strip(),
    reference=reference,
    solution=sequence_log_probability,
    explanation="""
With the prompt in the sum nothing seems wrong: in DPO both answers of a pair have the same prompt, and its
log-probability cancels from the margin as long as both models agree on it. In the policy gradient nothing cancels, and
the model is trained to write questions like those whose answers earned a reward.
""".strip(),
    cases=(Case(name="answers of unequal lengths", inputs=_answers),),
    hints="""
The probability of a sequence is a product of one probability for each token. What becomes of a product under a
logarithm?

Which logits speak about token 5? Cut one end off the logits and the other end off the tokens, and off the mask.

Log-softmax over the vocabulary, `gather` at the tokens, zero where the mask is False, and a sum over each row.
""",
    forbids=("answer_log_probabilities",),
    difficulty=2,
    minutes=15,
    section="13-assistant",
)

exercise.mutations(r"""
with_the_prompt: "torch.where(is_answer[:, 1:], chosen, 0.0)" -> "chosen"
    Everything counts, prompt and filling too. How probable the *answer* is, was the question: which tokens belong to
    it?
mean_over_tokens: "0.0).sum(dim=1)" -> "0.0).sum(dim=1) / is_answer.sum(dim=1)"
    That is the mean for each token, and the probability of an answer is a product: long answers are less probable, and
    your number hides it.
not_shifted: "logits[:, :-1]" -> "logits[:, 1:]"
    You ask the logits *at* a token how probable it was. They have seen it already; they speak about the next one.
mask_too_early: "is_answer[:, 1:]" -> "is_answer[:, :-1]"
    Your mask is one place off: it leaves out the first token of an answer and takes one that follows it. The mask
    describes tokens, so it is cut as the tokens are.
probabilities: "log_softmax" -> "softmax"
    You add up probabilities. The probability of the whole is their product, and you want its logarithm.
raw_logits: ".log_softmax(dim=-1)" -> ""
    Logits are no log-probabilities: what is missing is the sum over the vocabulary by which they are normalised.
one_number: ".sum(dim=1)" -> ".sum().expand(len(logits))"
    You have added up the rows, too. Each answer has a probability of its own.
negated: "return torch" -> "return -torch"
    That is the surprise. A log-probability is at most zero.
likeliest: "log_p.gather(-1, token_ids[:, 1:, None])[..., 0]" -> "log_p.amax(dim=-1)"
    You take the likeliest token at each place, not the one that stands there.
""")


@exercise.must_hold("The logarithm of a probability is never above zero.")
def at_most_zero(trial: Trial) -> str | None:
    largest = trial.value.max().item()
    return None if largest <= 1e-6 else f"Yours reaches {largest:.3g}."


@exercise.must_hold(
    "What the logits are in the prompt, before its last token, does not change the answer's probability."
)
def prompt_does_not_count(trial: Trial) -> str | None:
    logits, token_ids, is_answer = trial.inputs
    other = logits.clone()
    other[:, 0] += torch.arange(logits.shape[-1])
    change = (trial.run(other, token_ids, is_answer) - trial.value).abs().max().item()
    return None if change < 1e-5 else f"Other logits at the first token move your result by {change:.3g}."


@exercise.must_hold(
    "A model that holds all tokens for equally likely finds an answer of n tokens n times as surprising."
)
def even_model(trial: Trial) -> str | None:
    logits, token_ids, is_answer = trial.inputs
    came = trial.run(torch.zeros_like(logits), token_ids, is_answer)
    expected = -is_answer.sum(dim=1) * torch.tensor(float(logits.shape[-1])).log()
    row = int((came - expected).abs().argmax())
    if (came - expected).abs().max() < 1e-4:
        return None
    return f"For the answer of {int(is_answer[row].sum())} tokens it is {expected[row]:.3g}, and yours {came[row]:.3g}."
