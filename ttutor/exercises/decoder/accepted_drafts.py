"""Exercise: which drafted tokens a large model keeps, and what it draws instead of the first that it refuses."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.generation.speculative import leftover


def accepted_drafts(
    drafts: Int[Tensor, " drafts"],
    drafted: Float[Tensor, "drafts vocab_size"],
    wanted: Float[Tensor, "drafts_and_one vocab_size"],
    draws: Float[Tensor, " drafts"],
) -> tuple[int, Float[Tensor, " vocab_size"]]:
    """How many drafts are kept, and the distribution from which the next token is drawn."""
    for place, token in enumerate(drafts):
        p, q = wanted[place], drafted[place]
        if draws[place] >= p[token] / q[token]:
            missing = (p - q).clamp(min=0)
            return place, missing / missing.sum()
    return len(drafts), wanted[-1]


def reference(drafts, drafted, wanted, draws):
    p, q = (table[range(len(drafts)), drafts] for table in (wanted, drafted))
    refused = (draws * q >= p).nonzero().flatten().tolist()
    place = refused[0] if refused else len(drafts)
    return place, leftover(wanted[place], drafted[place]) if refused else wanted[-1]


def _guesses(generator):
    """Five guesses or more, by turns wanted less and more than drafted, and the ratios of the two probabilities."""
    n_drafts, vocab_size = drawn(generator, 5, 9), drawn(generator, 9, 11)
    drafted = torch.randn(n_drafts, vocab_size, generator=generator, dtype=torch.float64).softmax(dim=-1)
    wanted = torch.randn(n_drafts + 1, vocab_size, generator=generator, dtype=torch.float64).softmax(dim=-1)
    gaps = wanted[:-1] - drafted
    drafts = gaps.argmin(dim=-1)
    drafts[1::2] = gaps[1::2].argmax(dim=-1)
    places = range(n_drafts)
    return drafts, drafted, wanted, wanted[places, drafts] / drafted[places, drafts]


def _third_refused(generator):
    """The first is kept although it is wanted less than it was drafted, the third refused, the fourth would be kept."""
    drafts, drafted, wanted, ratios = _guesses(generator)
    shares = torch.rand(len(drafts), generator=generator, dtype=torch.float64)
    draws = torch.where(ratios < 1, ratios * shares, 0.9 * shares)
    # Below what the large model wants, with and without the draft's part; and a draw that would keep the third.
    draws[0] = shares[0] * min(wanted[0, drafts[0]], ratios[2])
    draws[2] = ratios[2] + (1 - ratios[2]) * (0.1 + 0.8 * shares[2])
    return drafts, drafted, wanted, draws


def _all_kept(generator):
    drafts, drafted, wanted, ratios = _guesses(generator)
    shares = torch.rand(len(drafts), generator=generator, dtype=torch.float64)
    draws, least = ratios.clamp(max=1) * shares, wanted[0, drafts[0]]
    draws[0] = least + (ratios[0] - least) * shares[0]  # kept for its ratio, and not for its probability alone
    return drafts, drafted, wanted, draws


exercise = Exercise(
    id="decoder.accepted_drafts",
    title="Which guesses are kept?",
    statement="""
Speculative decoding: a small model has drafted some tokens in a row, each drawn from its distribution $q$ (`drafted`,
one row a draft). The large model has read them all in one call and says with its distribution $p$ what it would have
drawn at each place, and after the last one (`wanted`, one row more). Go from left to right. A draft $x$ is kept if its
number from `draws`, drawn evenly between 0 and 1, lies below $p(x) / q(x)$. At the first one that is not kept the next
token comes from what $p$ has and $q$ lacks, $\\max(0, p - q)$, made to sum to one. If all are kept, it comes from the
last row of `wanted`. Return how many drafts are kept, and the distribution of the next token.
""".strip(),
    reference=reference,
    solution=accepted_drafts,
    explanation="""
A token $x$ comes out in two ways. It is drafted and kept, with probability $q(x) \\min(1, p(x) / q(x))$, which is
$\\min(p(x), q(x))$; or it is drawn after a refusal, which gives each token just the $\\max(0, p(x) - q(x))$ that is
missing. The two add up to $p(x)$: the text is the large model's, whatever the small one guesses.
""".strip(),
    cases=(
        Case(name="a third draft that is refused", inputs=_third_refused),
        Case(name="drafts that are all kept", inputs=_all_kept),
    ),
    hints="""
When should a draft always be kept? What happens to those that come after a refused one?

Stop at the first refusal. What does the large model want there more than the small one has offered?

Compare `draws[place]` with `p[token] / q[token]`; on refusal clamp `p - q` at 0 and divide by the sum.
""",
    forbids=("leftover",),
    difficulty=2,
    minutes=20,
    section="06-decoder",
)

exercise.mutations("""
only_the_more_wanted: "draws[place] >= p[token] / q[token]" -> "p[token] < q[token]"
    You keep a draft only where the large model wants it more than the small one. The others may be kept, too: how
    often, and which argument decides it?
ratio_upside_down: "p[token] / q[token]" -> "q[token] / p[token]"
    Your ratio is upside down. A token that the large model wants more should always be kept: which probability stands
    above the fraction?
probability_without_the_draft: "p[token] / q[token]" -> "p[token]"
    You compare the draw with the large model's probability alone. The token has already been drawn once, by the small
    model: by how often must you divide?
first_draw_for_all: "draws[place]" -> "draws[0]"
    Every draft has a draw of its own. Which place do you read?
wanted_after_a_refusal: "missing / missing.sum()" -> "p"
    After a refusal you draw from the large model's distribution as it is. What the small model has offered already
    would then come too often: which part of `wanted` is still missing?
not_normalised: "missing / missing.sum()" -> "missing"
    What is missing is right, but it sums to less than one. By what do you divide?
both_signs: ".clamp(min=0)" -> ".abs()"
    Where the small model offered too much, you take the surplus as if it were missing. Which differences count?
surplus: "(p - q)" -> "(q - p)"
    You draw from what the small model offered too often. Turn the difference round.
last_row_forgotten: "wanted[-1]" -> "wanted[-2]"
    If all drafts are kept, the next token comes after the last of them. Which row of `wanted` says what should stand
    there?
""")


@exercise.mistake(
    "You count the drafts that would be kept one by one, also behind a refusal. Those were drafted for a text that no "
    "longer stands: where do you stop?"
)
def goes_on(drafts, drafted, wanted, draws):
    place, distribution = accepted_drafts(drafts, drafted, wanted, draws)
    p, q = (table[range(len(drafts)), drafts] for table in (wanted, drafted))
    return int((draws < p / q).sum()), distribution


@exercise.must_hold("What you return second is a distribution: no number below 0, and the sum is 1.")
def sums_to_one(trial: Trial) -> str | None:
    total, least = trial.value[1].sum().item(), trial.value[1].min().item()
    return (
        None if abs(total - 1) < 1e-6 and least >= 0 else f"Yours sums to {total:.3g}; its least number is {least:.3g}."
    )


@exercise.must_hold("After a refusal only tokens may come that the large model wants more than the small one offered.")
def only_what_is_missing(trial: Trial) -> str | None:
    kept, distribution = trial.value
    _, drafted, wanted, _ = trial.inputs
    if kept not in range(len(drafted)):
        return None
    off = (distribution > 0) & (wanted[kept] <= drafted[kept])
    return f"{int(off.sum())} tokens may come that were offered often enough." if off.any() else None
