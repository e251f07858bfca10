"""Exercise: batches that fill a budget of tokens."""

import math

import torch

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def plan_batches(lengths: list[int], budget: int) -> list[list[int]]:
    """Lists of sentence numbers: in each, the number of sentences times the longest length is at most ``budget``."""
    batches, current = [], []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        if current and (len(current) + 1) * lengths[index] > budget:
            batches.append(current)
            current = []
        current.append(index)
    return [*batches, current]


def reference(lengths, budget):
    """The same from the longest sentence down: the first of a batch says how many it can hold."""
    left = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches = []
    while left:
        n_sentences = budget // lengths[left[0]]
        batches.append(left[:n_sentences])
        left = left[n_sentences:]
    return batches


def _plan(answer, lengths, budget):
    return [[int(index) for index in batch] for batch in answer(list(lengths), budget)]


def _rules(batches, lengths, budget):
    """Which rules a plan keeps. Many plans are right, so that plans are not compared themselves."""
    known = [[index for index in batch if 0 <= index < len(lengths)] for batch in batches]
    placed = [index for batch in known for index in batch]
    cells = [len(batch) * max(lengths[index] for index in batch) for batch in known if batch]
    left_out = sorted(lengths[index] for index in set(range(len(lengths))) - set(placed))
    between = [lengths[index] for index in placed if left_out and left_out[0] < lengths[index] < left_out[-1]]
    return {
        "every sentence has a place": not left_out,
        "those left out are alike in length": not between,
        "no sentence has two places": len(placed) == len(set(placed)),
        "all numbers are those of sentences": sum(map(len, batches)) == len(placed),
        "no batch is over the budget": max(cells, default=0) <= budget,
        "no batch is empty": all(batches),
        "at least 95 % of the cells are real": sum(lengths[index] for index in placed) >= 0.95 * sum(cells),
        "at most a fifth more batches than needed": len(cells) <= math.ceil(1.2 * sum(lengths) / budget),
        "there is more than one batch": len(batches) > 1,
    }


def _sentences(random):
    """Lengths from 3 to 30, in no order, mostly short."""
    drawn = 3 + 27 * torch.rand(1600, generator=random).square()
    return drawn.int().tolist(), 240


def _sorted_to_the_brim(random):
    """Sentences sorted already, downwards, of which the first fills the budget alone."""
    wide, middle = drawn(random, 2, 4), 2 * drawn(random, 2, 4)
    return [12] * wide + [6] * middle + [4, 4, 4, 3, 3, 3, 3], 12


exercise = Exercise(
    id="training.plan_batches",
    title="Plan batches by tokens",
    statement="""Write a plan of batches: lists of sentence numbers such that in each batch (number of sentences) ×
(longest length) is at most `budget`, every sentence stands in exactly one batch, at least 95 % of the cells are real,
and there are at most a fifth more batches than the real tokens need. No sentence is longer than the budget. Many plans
are right.""",
    reference=reference,
    solution=plan_batches,
    explanation="Sort by length and fill until the budget is full. `BucketedBatches._make_plan`, shown above, "
    "is the same with two shuffles.",
    observe=_plan,
    view=_rules,
    cases=(
        Case(name="1,600 sentences of 3 to 30 tokens", inputs=_sentences),
        Case(name="a sentence as long as the budget", inputs=_sorted_to_the_brim),
    ),
    hints="""
Sort first, then cut.

Sorted upwards, the sentence at hand is always the longest so far: the batch would hold `(len(batch) + 1) * length`
cells with it.

Start a new batch when that product exceeds the budget; do not forget the last batch.
""",
    difficulty=2,
    minutes=25,
    section="08-training",
)

exercise.mutations(r"""
not_sorted: "sorted(range(len(lengths)), key=lambda index: lengths[index])" -> "range(len(lengths))",
  "lengths[index] > budget" -> "max(lengths[other] for other in [*current, index]) > budget"
    All rules of the budget are kept, and too many cells are padding: short and long sentences stand in one batch. Which
    order puts equals beside equals?
last_batch_forgotten: "[*batches, current]" -> "batches"
    Some sentences stand in no batch, and all others are placed well: the last batch is never full, so nothing closes
    it.
tokens_for_cells: "(len(current) + 1) * lengths[index]" -> "sum(lengths[other] for other in [*current, index])"
    Your batches hold too many cells: you add the lengths up, and padding takes room, too. A batch is a rectangle.
lost_at_the_cut: "        current.append(index)" -> "        else:\n            current.append(index)"
    At each cut one sentence is lost: the one that did not fit. It begins the next batch.
twice_at_the_cut: "append(current)" ->
  "append([*current, index] if (len(current) + 1) * lengths[index] <= budget + 20 else current)"
    At a cut a sentence goes into the old batch and into the new one.
empty_batch: "if current and" -> "if", "lengths[index] > budget" -> "lengths[[*current, index][0]] >= budget",
  "lambda index: " -> "lambda index: -"
    A sentence that fills the budget alone is refused, and an empty batch comes out. It may be at most the budget: is
    equal too much?
not_sentence_numbers: "current.append(index)" -> "current.append(lengths[index])"
    Your batches hold lengths, and many of them more than once. The exercise asks for the numbers of the sentences, from
    0.
places_after_sorting: "current.append(index)" -> "current.append(sum(map(len, batches)) + len(current))"
    Your numbers are places in the sorted list. Each sentence keeps the number that it had before.
no_budget: "[*batches, current]" -> "[list(range(len(lengths)))]"
    Everything stands in one batch; the budget has no effect.
""")


def _upwards(lengths):
    return sorted(range(len(lengths)), key=lambda index: lengths[index])


@exercise.mistake(
    "Each batch is over the budget by one sentence: you look after you have put it in.",
    id="looked_too_late",
)
def looked_after_adding(lengths, budget):
    """The batch is closed when it is over the budget already."""
    batches, current = [], []
    for index in _upwards(lengths):
        current.append(index)
        if len(current) * lengths[index] > budget:
            batches.append(current)
            current = []
    return [*batches, current] if current else batches


@exercise.mistake(
    "No padding and no batch over the budget, since your batches are all but empty. A budget is there to be used: how "
    "many sentences of that length fit in?",
    id="too_many_batches",
)
def each_alone(lengths, budget):
    return [[index] for index in range(len(lengths))]


@exercise.like("too_many_batches")
def always_the_same_number(lengths, budget):
    n_sentences = budget // max(lengths)
    order = _upwards(lengths)
    return [order[start : start + n_sentences] for start in range(0, len(order), n_sentences)]


@exercise.must_hold("A plan places every sentence once, keeps to the budget, and wastes little.")
def plan_is_not_right(trial: Trial) -> str | None:
    broken = [rule for rule, holds in trial.value.items() if not holds]
    return f"Not so in your plan: {'; '.join(broken)}." if broken else None
