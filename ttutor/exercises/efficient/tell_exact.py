"""Exercise: a test that tells right online softmaxes from planted mistakes."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Bool
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Trial

BLOCK = 16


def tell_exact(suspects: Sequence[Callable[[Tensor, Tensor, Tensor], Tensor]]) -> Bool[Tensor, " suspects"]:
    """For each suspect: is it softmax attention, whatever it is given?"""
    verdicts = []
    for attend in suspects:
        is_exact = True
        for place in (0.0, 3000.0, -3000.0):  # where the scores lie
            query, key, value = torch.randn(3, 41, 4, dtype=torch.float64)
            key = 4 * torch.arange(1, 42, dtype=torch.float64)[:, None] / 41 * key  # the largest come late
            query[:, 0], key[:, 0] = 2.0, place + key[:, 0]
            expected = (query @ key.T / 2).softmax(dim=-1) @ value
            is_exact = is_exact and torch.allclose(attend(query, key, value), expected, rtol=0, atol=1e-6)
        verdicts.append(is_exact)
    return torch.tensor(verdicts)


def _tiles(
    query, key, value, *, blend_corrected=True, total_corrected=True, whole_blocks=False, most=math.inf, start="least"
):
    """Online softmax in blocks of 16 keys, right unless told otherwise."""
    scale = 1 / math.sqrt(query.shape[-1])
    first = {"least": -math.inf, "zero": 0.0, "never": 0.0}[start]
    largest = torch.full_like(query[:, :1], first)
    total, blend = torch.zeros_like(largest), torch.zeros(len(query), value.shape[-1], dtype=query.dtype)
    for begin in range(0, len(key), BLOCK):
        block = slice(begin, begin + BLOCK)
        if whole_blocks and begin and begin + BLOCK > len(key):
            continue
        scores = (scale * query @ key[block].T).clamp(max=most)
        new = largest if start == "never" else torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        correction, exponentials = (largest - new).exp(), (scores - new).exp()
        if begin == 0:
            correction = torch.zeros_like(correction)
        total = total * (correction if total_corrected else 1.0) + exponentials.sum(dim=-1, keepdim=True)
        blend = blend * (correction if blend_corrected else 1.0) + exponentials @ value[block]
        largest = new
    return blend / total


def _plain(query, key, value):
    return torch.nn.functional.scaled_dot_product_attention(query[None], key[None], value[None])[0]


SUSPECTS = (
    (_tiles, True),
    (_plain, True),
    (partial(_tiles, blend_corrected=False), False),
    (partial(_tiles, total_corrected=False), False),
    (partial(_tiles, blend_corrected=False, total_corrected=False), False),
    (partial(_tiles, whole_blocks=True), False),
    (partial(_tiles, start="never"), False),
    (partial(_tiles, start="zero"), False),
    (partial(_tiles, most=500.0), False),
)


def _inputs(n_keys, place=0.0, *, order="late", values=None):
    random = torch.Generator().manual_seed(17)
    query, key, value = torch.randn(3, n_keys, 4, generator=random, dtype=torch.float64)
    grow = torch.arange(1, n_keys + 1, dtype=torch.float64)[:, None] / n_keys
    key = 4 * key * (grow if order == "late" else grow.flip(0))
    query[:, 0], key[:, 0] = 2.0, key[:, 0] + place
    if order == "early":  # in every row of scores the largest comes first
        query[:, 1:] = 0.0
        key = key[key[:, 0].argsort(descending=True)]
    return query, key, value if values is None else torch.full_like(value, values)


def _all_near(attend, trials, tolerance=1e-6):
    for query, key, value in trials:
        found, expected = attend(query, key, value), _plain(query, key, value)
        if not torch.allclose(found, expected, rtol=0, atol=tolerance):
            return False
    return True


EVERYWHERE = tuple((41, place) for place in (0.0, 3000.0, -3000.0))


def _tell(suspects, trials, tolerance=1e-6):
    return torch.tensor([_all_near(attend, [_inputs(*t) for t in trials], tolerance) for attend in suspects])


def reference(suspects):
    return _tell(suspects, EVERYWHERE)


def whole_blocks(suspects):
    return _tell(suspects, ((48, 0.0), (48, 3000.0), (48, -3000.0)))


def _mean_of_values(query, key, value):
    return value.mean(dim=0, keepdim=True).expand_as(query)


def _shuffled(random):
    order = torch.randperm(len(SUSPECTS), generator=random).tolist()
    return ([SUSPECTS[place][0] for place in order],)


exercise = Exercise(
    id="efficient.tell_exact",
    title="The test that caught nothing",
    statement="""
Somebody forgot to correct the blend when a larger score came, and all tests passed. Write the test that would have
caught it. `suspects` are functions of query, key and value (each `tokens d_head`, float64, no mask, scale
$1/\\sqrt{d_\\text{head}}$, any number of tokens). All say that they are softmax attention and work on 16 keys at a
time. Return a bool for each: True if it is right up to rounding ($10^{-6}$), for every input that one might meet:
texts of any length, scores of any size. Do not look inside. Several different mistakes are among them.
""".strip(),
    reference=reference,
    solution=tell_exact,
    explanation="""
Five things are needed at once. More than one block, or no correction ever happens. A length that blocks do not divide,
or a dropped remainder is not seen. Large scores *late*, or the correction is one. Values that differ, or a blend and a
sum that are wrong alike cancel. And scores far above and far below zero, where an exponential overflows or everything
becomes zero. The comparison must fail on what is not a number: `allclose` does, while `difference > tolerance` is False
for it. It must not ask for equal bits.
""".strip(),
    cases=(Case(name="nine suspects", inputs=_shuffled, points=3),),
    hints="""
Which inputs make the correction equal to one? Such inputs cannot show that it is missing.

Try several inputs for each suspect: their lengths, the order in which large scores come, and where the scores lie as a
whole are three different things.

Use 41 tokens, let the keys grow along the text, and repeat it with thousands added to and taken from every score.
Compare with a plain softmax by `torch.allclose`.
""",
    difficulty=3,
    minutes=40,
    section="11-efficient",
)


@exercise.mistake(
    "You let everybody pass. In texts of one block, with small scores, nothing has to be corrected: what have you "
    "tried beyond them?"
)
def one_block(suspects):
    return _tell(suspects, ((16, 0.0),))


@exercise.like("one_block")
def all_right(suspects):
    return torch.ones(len(suspects), dtype=torch.bool)


@exercise.mistake("You try scores of all sizes, in texts of one block. Corrections happen between blocks.")
def one_block_everywhere(suspects):
    return _tell(suspects, ((16, 0.0), (16, 3000.0), (16, -3000.0)))


exercise.mistake(
    "One mistake escapes you: it concerns the last block, where that is not a whole one.",
    id="whole_blocks",
)(whole_blocks)


@exercise.mistake("Several mistakes escape you that show with extreme scores alone, far above zero or far below.")
def small_scores(suspects):
    return _tell(suspects, ((41, 0.0),))


@exercise.mistake("What escapes you gives results that are no number. Is a comparison with one of those ever true?")
def not_a_number_passes(suspects):
    verdicts = []
    for attend in suspects:
        gaps = [(attend(*i) - _plain(*i)).abs().amax() for i in (_inputs(*t) for t in EVERYWHERE)]
        verdicts.append(not any(bool(gap > 1e-6) for gap in gaps))
    return torch.tensor(verdicts)


@exercise.mistake("One mistake escapes you. What if all scores are far below zero?")
def never_very_low(suspects):
    return _tell(suspects, ((41, 0.0), (41, 3000.0)))


@exercise.mistake("One mistake escapes you. What if scores are far above zero?")
def never_very_high(suspects):
    return _tell(suspects, ((41, 0.0), (41, -3000.0)))


@exercise.mistake("You ask for equal bits. Right code that sums in another order does not give them.")
def bit_by_bit(suspects):
    return torch.tensor([all(torch.equal(a(*_inputs(*t)), _plain(*_inputs(*t))) for t in EVERYWHERE) for a in suspects])


@exercise.mistake("In your texts the largest score stands in the first block. What is the correction then?")
def largest_first(suspects):
    trials = [_inputs(41, place, order="early") for place in (0.0, 3000.0, -3000.0)]
    return torch.tensor([_all_near(attend, trials) for attend in suspects])


@exercise.mistake("All your values are the same, so that sum and blend can be wrong alike without being seen.")
def equal_values(suspects):
    trials = [_inputs(*t, values=1.0) for t in EVERYWHERE]
    return torch.tensor([_all_near(attend, trials) for attend in suspects])


@exercise.mistake("Every verdict is the opposite of the right one: True means exact.")
def other_way_round(suspects):
    return ~reference(suspects)


@exercise.mistake("You let nobody pass. Two of them are right.")
def none_right(suspects):
    return torch.zeros(len(suspects), dtype=torch.bool)


@exercise.must_hold("A right function should pass.")
def accuses(trial: Trial) -> str | None:
    verdict = trial.run([_tiles, _plain])
    return None if bool(verdict.all()) else "I handed in two right ones, and one of them did not pass."


@exercise.must_hold("A function that ignores the keys should not pass.")
def misses(trial: Trial) -> str | None:
    verdict = trial.run([_mean_of_values])
    return "I handed in one that gives everybody the mean of the values, and it passed." if bool(verdict[0]) else None
