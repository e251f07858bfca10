"""Exercise: the loop of a plain recurrent network."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def read_words(
    words: Float[Tensor, "batch tokens d_input"],
    w_input: Float[Tensor, "d_input d_model"],
    w_hidden: Float[Tensor, "d_model d_model"],
    bias: Float[Tensor, " d_model"],
) -> Float[Tensor, "batch tokens d_model"]:
    """The hidden state after every word, beginning with a page of zeros."""
    hidden = torch.zeros(words.shape[0], w_hidden.shape[0], dtype=words.dtype)
    pages = []
    for word in words.unbind(dim=1):
        hidden = torch.tanh(word @ w_input + hidden @ w_hidden + bias)
        pages.append(hidden)
    return torch.stack(pages, dim=1)


def _inputs(random):
    d_input, d_model = drawn(random, 9, 10), drawn(random, 11, 14)
    words = (drawn(random, 1, 3), drawn(random, 4, 8), d_input)
    shapes = (words, (d_input, d_model), (d_model, d_model), (d_model,))
    return tuple(torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)


exercise = Exercise(
    id="recurrence.read_words",
    title="Read a sentence",
    statement="Write the loop of a plain recurrent network, $h_t = \\tanh(x_t W + h_{t-1} U + b)$: "
    "the hidden state after *every* word of every sentence. The first page, before any word, is zeros. Vectors "
    "are rows, so that a word $x$ is written as $xW$ and the old page $h$ carried over as $hU$. The check uses "
    "inputs of its own dtype.",
    reference=read_words,
    solution=read_words,
    explanation="One cell, used at every word. The loop cannot be exchanged for one big matrix product over all "
    "words, because each turn needs the result of the one before. What *can* be done for all words at once is "
    "`words @ w_input`, and fast implementations do it.",
    cases=(Case(name="a few sentences", inputs=_inputs, points=2),),
    hints="""
What has to be known before the third page can be written?

Begin with `words.new_zeros(batch, d_model)`: it takes the dtype of the words. `words.unbind(dim=1)` gives the words one
by one. Keep each new page in a list.

In the loop, `hidden` becomes the tanh of three summands. Then `torch.stack` the list along the axis of tokens, which is
axis 1.
""",
    forbids=("RNN", "RNNCell", "unroll"),
    difficulty=1,
    minutes=15,
    section="01-recurrence",
)

exercise.mutations("""
no_tanh: "torch.tanh(" -> "("
    Your pages are sums without a bound. What keeps each number between −1 and 1?
tanh_inside: "word @ w_input + hidden @ w_hidden + bias)" -> "word @ w_input + bias) + hidden @ w_hidden"
    Your tanh holds the new word and not the old page, so that the page can grow without a bound. What belongs inside?
no_bias: " + bias" -> ""
    One of the three summands is missing: the bias.
sigmoid: "torch.tanh" -> "torch.sigmoid"
    All your numbers are positive: that is a sigmoid. The plain cell has a tanh.
transposed: "hidden @ w_hidden" -> "hidden @ w_hidden.T"
    The first page is right and the second is not: the old page meets the matrix from the wrong side. Vectors are rows
    here.
no_memory: "hidden @ w_hidden + " -> ""
    Every page knows its own word only: the old page takes no part. Where should it come in?
backwards: "words.unbind" -> "words.flip(1).unbind", "pages, dim" -> "pages[::-1], dim"
    The last page is made from the last word alone: you read from the end to the beginning.
starts_with_ones: "torch.zeros" -> "torch.ones"
    You begin with a page that is written on. Before the first word it is empty.
one_late: "pages, dim" -> "[torch.zeros_like(hidden), *pages[:-1]], dim"
    Your first page is the empty one, and the last is missing: you keep a page before the word is read. Keep it
    afterwards.
tokens_first: "pages, dim=1" -> "pages, dim=0"
    Numbers right, axes exchanged: tokens stand first and sentences second. Along which axis do you stack?
last_only: "torch.stack(pages, dim=1)" -> "hidden"
    That is the page after the last word. The exercise asks for all of them.
""")


@exercise.must_hold("A word should change its own page and all later ones, and no earlier one.")
def reach(trial: Trial) -> str | None:
    words, *rest = trial.inputs
    nudged = words.clone()
    nudged[:, 2] += 1
    moved = (trial.run(nudged, *rest) - trial.value).abs().amax(dim=(0, 2)) > 1e-9
    expected = [t >= 2 for t in range(words.shape[1])]
    if moved.tolist() == expected:
        return None
    return f"I changed word 2 (counted from 0), and these of your pages moved: {moved.nonzero().flatten().tolist()}."


@exercise.must_hold("The first page should be the tanh of the first word's projection and the bias.")
def first_page(trial: Trial) -> str | None:
    words, w_input, _, bias = trial.inputs
    gap = (trial.value[:, 0] - torch.tanh(words[:, 0] @ w_input + bias)).abs().max().item()
    return None if gap < 1e-6 else f"Your first page is off by up to {gap:.2g}."
