"""Exercise: find the bug in sentence vectors that depend on what else is in the batch."""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def batch_mates(
    hidden: Float[Tensor, "batch tokens d_model"],
    is_word: Bool[Tensor, "batch tokens"],
    w_query: Float[Tensor, "d_model d_head"],
    w_key: Float[Tensor, "d_model d_head"],
) -> Float[Tensor, "batch d_model"]:
    """A colleague's sentence vectors: one look at the whole sentence, then the mean over its words."""
    scores = einsum(hidden @ w_query, hidden @ w_key, "batch queries d, batch keys d -> batch queries keys")
    may_attend = rearrange(is_word, "batch tokens -> batch tokens 1")
    weights = (scores / math.sqrt(w_key.shape[-1])).masked_fill(~may_attend, -1e9).softmax(dim=-1)
    context = weights @ hidden
    words = rearrange(is_word, "batch tokens -> batch tokens 1")
    return (context * words).sum(dim=1) / words.sum(dim=1)


def solution(
    hidden: Float[Tensor, "batch tokens d_model"],
    is_word: Bool[Tensor, "batch tokens"],
    w_query: Float[Tensor, "d_model d_head"],
    w_key: Float[Tensor, "d_model d_head"],
) -> Float[Tensor, "batch d_model"]:
    """Sentence vectors in which padding is no key."""
    scores = einsum(hidden @ w_query, hidden @ w_key, "batch queries d, batch keys d -> batch queries keys")
    may_attend = rearrange(is_word, "batch tokens -> batch 1 tokens")
    weights = (scores / math.sqrt(w_key.shape[-1])).masked_fill(~may_attend, -1e9).softmax(dim=-1)
    context = weights @ hidden
    words = rearrange(is_word, "batch tokens -> batch tokens 1")
    return (context * words).sum(dim=1) / words.sum(dim=1)


def reference(hidden, is_word, w_query, w_key):
    vectors = []
    for sentence, seen in zip(hidden, is_word, strict=True):
        words = sentence[seen]
        scores = (words @ w_query) @ (words @ w_key).T / w_key.shape[-1] ** 0.5
        vectors.append((scores.softmax(dim=-1) @ words).mean(dim=0))
    return torch.stack(vectors)


def _batch(random):
    d_model, d_head = drawn(random, 6, 8), drawn(random, 3, 5)
    n_tokens = drawn(random, 6, 8)
    lengths = torch.tensor([drawn(random, 2, 3), n_tokens, *[drawn(random, 4, 5)] * drawn(random, 1, 2)])
    hidden = torch.randn(len(lengths), n_tokens, d_model, generator=random, dtype=torch.float64)
    w_query, w_key = torch.randn(2, d_model, d_head, generator=random, dtype=torch.float64)
    return hidden, torch.arange(n_tokens) < lengths[:, None], w_query, w_key


exercise = Exercise(
    id="encoder.batch_mates",
    title="The company it keeps",
    statement="A colleague searches texts by these sentence vectors. No error, no NaN, and the longest sentence of "
    "each batch is right. But the same short sentence gets another vector when a longer one stands in its batch, "
    "and the search finds something else. Find the line, and mend it. (`is_word` is False at padding. The vectors "
    "are their own values, so that there is one matrix less.)",
    stub=batch_mates,
    reference=reference,
    solution=solution,
    explanation="The mask stands on the axis of the queries. A padded query then looks everywhere alike, which nobody "
    "reads; but words go on looking at padding, as much of it as the longest sentence of the batch asks for. "
    "Padding has to be hidden as a *key*. With $-\\infty$ the padded rows would have been NaN, and the bug found on "
    "its first day.",
    cases=(Case(name="sentences of unequal lengths", inputs=_batch),),
    hints="""
Give it one short sentence alone, then the same with two columns of padding. Which of the five lines is the first whose
numbers for its words change?

Print the weights of the padded sentence. Which rows did the mask touch? Which columns should it have touched?

Rows are queries and columns are keys. Where padding is a key it must not be looked at: `batch 1 tokens`.
""",
    difficulty=1,
    minutes=10,
    section="05-encoder",
)

exercise.mutations(r"""
no_mask: ".masked_fill(~may_attend, -1e9)" -> ""
    Now nothing is hidden, and words look at padding as before. On which axis do keys stand?
turned_round: "~may_attend" -> "may_attend"
    It is the other way round: you hide the words, and padding is all that can be seen.
share_of_nothing: ".masked_fill(~may_attend, -1e9).softmax(dim=-1)" -> ".softmax(dim=-1) * may_attend"
or: "weights @ hidden" -> "weights @ (hidden * rearrange(is_word, 'batch tokens -> batch tokens 1'))",
  ".masked_fill(~may_attend, -1e9)" -> ""
    Padding brings nothing any more, but it still takes its share of each word's weight. Hide it before the softmax.
zeroed_scores: "-1e9" -> "0.0"
    A score of zero is an ordinary score: padding still gets weight.
mean_of_all: "(context * words).sum(dim=1) / words.sum(dim=1)" -> "context.mean(dim=1)"
    The mask is mended, but the mean counts padded places as words.
divided_by_all: "/ words.sum(dim=1)" -> "/ words.shape[1]"
    The mask is mended, and the sum is divided by the length of the batch instead of the sentence's.
first_sentence: "rearrange(is_word, \"batch tokens -> batch 1 tokens\")" -> "is_word[:1, None]"
    Every sentence is hidden by the first one's mask.
summed: " / words.sum(dim=1)" -> ""
    A sum grows with the sentence. The mean over its words was asked for.
""")


@exercise.must_hold("A sentence alone, without its padding, has the same vector as in the batch.")
def company_does_not_matter(trial: Trial) -> str | None:
    hidden, is_word, w_query, w_key = trial.inputs
    n_words = int(is_word[0].sum())
    alone = trial.run(hidden[:1, :n_words], is_word[:1, :n_words], w_query, w_key)
    off = (alone[0] - trial.value[0]).abs().max().item()
    return None if off < 1e-6 else f"The first sentence alone has a vector that differs by up to {off:.2g}."
