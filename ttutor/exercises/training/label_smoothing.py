"""Exercise: targets that ask for less than certainty."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def label_smoothing(
    targets: Int[Tensor, " positions"], vocab_size: int, pad_id: int, smoothing: float
) -> Float[Tensor, "positions vocab_size"]:
    """Return for each position how the probability of 1 is shared among the tokens of the vocabulary."""
    shares = torch.full((len(targets), vocab_size), smoothing / (vocab_size - 2))
    shares[torch.arange(len(targets)), targets] = 1 - smoothing
    shares[:, pad_id] = 0
    shares[targets == pad_id] = 0
    return shares


def reference(targets, vocab_size, pad_id, smoothing):
    classes = torch.arange(vocab_size)
    right, padding = classes == targets[:, None], classes == pad_id
    shares = torch.where(right, 1 - smoothing, smoothing / (vocab_size - 2)).float()
    return shares.masked_fill(padding | (targets == pad_id)[:, None], 0.0)


def _padding_among_words(generator):
    vocab_size, pad_id = drawn(generator, 7, 10), drawn(generator, 2, 5)
    words = torch.randperm(vocab_size, generator=generator)
    targets = torch.cat([words, torch.tensor([pad_id, pad_id]), words[:2]])
    return targets, vocab_size, pad_id, drawn(generator, 2, 4) / 10


def _no_smoothing(generator):
    return torch.cat([torch.randperm(5, generator=generator), torch.tensor([1, 4, 0])]), 5, 1, 0.0


exercise = Exercise(
    id="training.label_smoothing",
    title="Targets that ask for less than certainty",
    statement="""
Instead of asking for the right token with probability 1, ask for $1 - \\epsilon$ and share $\\epsilon$ (`smoothing`)
equally among the others. In the version to write, padding takes no part at all:

- the token `pad_id` gets nothing, so $\\epsilon$ is shared by all tokens but the right one and padding;
- a position whose target *is* padding asks for nothing: its row is all zeros.

This is the version of the Annotated Transformer. PyTorch's own spreads $\\epsilon$ over the whole vocabulary, the right
token and padding included. Give float32.
""".strip(),
    reference=reference,
    solution=label_smoothing,
    cases=(
        Case(name="padding among the words", inputs=_padding_among_words, points=2),
        Case(name="a smoothing of 0", inputs=_no_smoothing),
    ),
    hints="""
Take a vocabulary of five tokens, one of them padding, and write one row on paper. How many tokens share the smoothing?

Begin with a table in which every entry is the share of a wrong token. Which entries have to be overwritten, and in
which order, so that the last one wins?

Fill with `smoothing / (vocab_size - 2)`; write `1 - smoothing` at each row's target; then zeros into the column of
padding, then zeros into the rows whose target is padding.
""",
    difficulty=2,
    minutes=15,
    section="08-training",
)

exercise.mutations(r"""
pad_col_gets_mass: "    shares[:, pad_id] = 0\n" -> ""
    The padding class receives probability, as the column of `pad_id` shows. A model trained on this learns to say
    padding now and then.
pad_rows_kept: "    shares[targets == pad_id] = 0\n" -> ""
    Rows whose target is padding should be all zeros, and yours still share something out. Where do you treat these
    positions?
div_v: "(vocab_size - 2)" -> "vocab_size"
    Your rows sum to less than 1: you share the smoothing among more tokens than there are. How many are left when the
    right one and padding get none of it?
all_to_each: " / (vocab_size - 2)" -> ""
    Every wrong token gets the whole of the smoothing. It is one amount, to be shared.
eps_swapped: "smoothing / (" -> "(1 - smoothing) / (", "= 1 - smoothing" -> "= smoothing"
    The right token gets the smoothing, and the others share the rest: the two amounts are exchanged.
uniform_torch: "(vocab_size - 2)" -> "vocab_size", "= 1 - smoothing" -> "= 1 - smoothing + smoothing / vocab_size",
  "    shares[:, pad_id] = 0\n" -> ""
    This is PyTorch's convention, the smoothing spread over all tokens. Here it goes to the wrong words only: compare
    the column of padding, and the right token's share.
none: "smoothing / (vocab_size - 2)" -> "0.0", "= 1 - smoothing" -> "= 1"
    No smoothing is applied: the rows are one-hot, whatever `smoothing` is.
hard_coded_smoothing: "shares = " -> "smoothing = 0.1\n    shares = "
    The amount of smoothing is always 0.1. It comes as an argument.
falsy_smoothing: "shares = " -> "smoothing = smoothing or 0.1\n    shares = "
    Right but for a smoothing of 0, where yours is 0.1: Python takes 0 for false, so `smoothing or 0.1` replaces it.
transposed: "return shares" -> "return shares.mT"
    The table lies on its side: one row for each position, one column for each token.
inplace: "return shares" -> "targets[targets == pad_id] = 0\n    return shares"
    Your table is right, but the targets you were given have changed: their padding is now token 0. Assigning into a
    tensor edits the caller's data.
""")


@exercise.must_hold("No position asks for padding: look at the column of `pad_id`.")
def padding_gets_nothing(trial: Trial) -> str | None:
    _, _, pad_id, _ = trial.inputs
    most = trial.value[:, pad_id].abs().max().item()
    return None if most == 0 else f"Column {pad_id} is the padding's, and it holds up to {most:.3g}."


@exercise.must_hold("A row is a distribution and sums to 1, unless its target is padding: then it sums to 0.")
def rows_sum_to_one(trial: Trial) -> str | None:
    targets, _, pad_id, _ = trial.inputs
    sums = trial.value.sum(dim=1)
    expected = (targets != pad_id).float()
    worst = (sums - expected).abs().argmax().item()
    if abs(sums[worst] - expected[worst]) < 1e-4:
        return None
    what = "real" if expected[worst] else "padding"
    return f"The target at position {worst} is {what}, and its row sums to {sums[worst].item():.4g}."


@exercise.must_hold("The smoothing does not favour any wrong word: all of them get the same.")
def equal_shares(trial: Trial) -> str | None:
    targets, vocab_size, pad_id, _ = trial.inputs
    for position, (target, row) in enumerate(zip(targets.tolist(), trial.value, strict=True)):
        others = row[[token for token in range(vocab_size) if token not in (target, pad_id)]]
        if target != pad_id and (others.max() - others.min()).item() > 1e-6:
            return f"At position {position} the wrong tokens get from {others.min():.3g} to {others.max():.3g}."
    return None
