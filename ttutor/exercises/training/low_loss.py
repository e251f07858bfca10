"""Exercise: find the bug in a training whose loss goes to zero while the model writes one word for ever."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Property, Trial


def low_loss(
    decoder: Callable[[Tensor], Tensor], token_ids: Int[Tensor, "batch tokens"], pad_id: int
) -> Float[Tensor, ""]:
    """A colleague's loss: nats per token that was to be predicted; the decoder gives logits for each token it reads."""
    read, wanted = token_ids, token_ids
    logits = decoder(read)
    losses = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
    is_real = (wanted != pad_id).flatten()
    return losses[is_real].sum() / is_real.sum()


def solution(
    decoder: Callable[[Tensor], Tensor], token_ids: Int[Tensor, "batch tokens"], pad_id: int
) -> Float[Tensor, ""]:
    """The loss of guessing what comes next: nats per token that was to be predicted."""
    read, wanted = token_ids[:, :-1], token_ids[:, 1:]
    logits = decoder(read)
    losses = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
    is_real = (wanted != pad_id).flatten()
    return losses[is_real].sum() / is_real.sum()


def reference(decoder, token_ids, pad_id):
    surprises = []
    for row in token_ids:
        sentence = row[row != pad_id]
        for length in range(1, len(sentence)):
            logits = decoder(sentence[None, :length])[0, -1]
            surprises.append(-logits.log_softmax(dim=-1)[sentence[length]])
    return torch.stack(surprises).mean()


def _decoder(table, token_ids):
    """A small causal decoder: its logits are a running sum over what it has read, older tokens less and less."""
    read, state, logits = table[token_ids], 0.0, []
    for token in range(token_ids.shape[1]):
        state = 0.5 * state + read[:, token]
        logits.append(state)
    return torch.stack(logits, dim=1)


def _sentences(random):
    vocab_size, pad_id = drawn(random, 8, 10), drawn(random, 3, 5)
    n_tokens = drawn(random, 6, 8)
    lengths = torch.tensor([n_tokens, 4, *[2] * drawn(random, 1, 3)])
    token_ids = (torch.randint(1, vocab_size, (len(lengths), n_tokens), generator=random) + pad_id) % vocab_size
    table = 2 * torch.randn(vocab_size, vocab_size, generator=random, dtype=torch.float64)
    return partial(_decoder, table), token_ids.where(torch.arange(n_tokens) < lengths[:, None], pad_id), pad_id


def _padding_that_matters(trial: Trial) -> str | None:
    """Add a column of padding: the loss may not change."""
    decoder, token_ids, pad_id = trial.inputs
    longer = F.pad(token_ids, (0, 1), value=pad_id)
    before, after = trial.value.item(), trial.run(decoder, longer, pad_id).item()
    return (
        None
        if abs(after - before) < 1e-6
        else f"With a column of padding more it goes from {before:.2f} to {after:.2f}."
    )


exercise = Exercise(
    id="training.low_loss",
    title="Too good to be true",
    statement="A colleague trains a decoder with this loss. After a hundred steps it is 0.02 nats per token, on new "
    "sentences too. What the model writes is one word for ever. Its causal mask is right, the optimiser is that of "
    "this chapter, and padding is left out, at the end of each row. Find the line, and mend it: the loss should be "
    "the mean over all real tokens that can be predicted from those before them.",
    stub=low_loss,
    reference=reference,
    solution=solution,
    explanation="The decoder is asked for the token that it has just read, so the answer stands in the question. A "
    "causal mask does not hide it: each token may see itself. Copying is learned in a few steps, on every text, and "
    "in use the model copies its last word. The target is what is read, shifted by one.",
    cases=(Case(name="sentences of unequal lengths", inputs=_sentences),),
    hints="""
A loss near zero on text that was never seen: no model can know the next word that well. What is it asked for?

Write down, for the sentence `<s> the goat ate </s>`, what the decoder reads at each place and what it should say there.

What is read lacks the last token of each row, and what is wanted lacks the first. Padding is judged by what is wanted.
""",
    properties=[
        Property(
            id="padding_does_not_count",
            says="Padding is nothing that could be predicted: more of it must not change the loss.",
            broken=_padding_that_matters,
        )
    ],
    difficulty=1,
    minutes=10,
    section="08-training",
)

exercise.mutations(r"""
still_copying: "token_ids[:, :-1], token_ids[:, 1:]" -> "token_ids[:, 1:], token_ids[:, 1:]"
    Still the colleague's loss: what is wanted at a place is what is read there, so copying is enough.
backwards: "token_ids[:, :-1], token_ids[:, 1:]" -> "token_ids[:, 1:], token_ids[:, :-1]"
    Shifted the other way: the model is asked for the token before, which it has read.
two_ahead: "token_ids[:, :-1], token_ids[:, 1:]" -> "token_ids[:, :-2], token_ids[:, 2:]"
    You ask for the token after the next one, and nobody learns the next. Shift by one.
along_the_batch: "token_ids[:, :-1], token_ids[:, 1:]" -> "token_ids[:-1], token_ids[1:]"
    You shifted the sentences, not their tokens: each is asked for the next sentence. Which axis are the tokens?
judged_by_what_is_read: "(wanted != pad_id)" -> "(read != pad_id)"
    The padding that follows a sentence's last token counts as a thing to predict. Judge by what is wanted.
padding_counts: "(wanted != pad_id)" -> "(wanted == wanted)"
or: "!= pad_id" -> "!= 0"
    The shift is right, and padding counts. Which token it is comes as an argument.
divided_by_all: "/ is_real.sum()" -> "/ len(is_real)"
    The sum is right. You divide by all places, those of the padding too: the more padding, the better the loss looks.
summed: " / is_real.sum()" -> ""
    A sum over all tokens grows with the batch. The loss is a mean per token.
mean_of_means: "losses[is_real].sum() / is_real.sum()" ->
  "((losses * is_real).view(wanted.shape).sum(1) / is_real.view(wanted.shape).sum(1)).mean()"
    You average each sentence and then the sentences, so that a token of a short one weighs more. Take one mean of all.
softmax_twice: "logits.flatten(0, 1)" -> "logits.flatten(0, 1).softmax(dim=-1)"
    `cross_entropy` takes logits and does the softmax itself. Yours is done twice, and the loss can no longer fall far.
""")
