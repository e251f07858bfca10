"""Exercise: which token lies in which slot of a cache that is written round and round."""

import torch
from jaxtyping import Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def rolling_slots(n_seen: int, window: int) -> Int[Tensor, " window"]:
    """For each slot of the cache the position of the token that lies in it, or -1 where none does."""
    newest = n_seen - 1
    positions = newest - (newest - torch.arange(window)) % window
    return positions.clamp(min=-1)


def reference(n_seen, window):
    slots = torch.full((window,), -1)
    for position in range(n_seen):
        slots[position % window] = position
    return slots


def _wrapped(generator):
    window = drawn(generator, 5, 8)
    return window * drawn(generator, 2, 4) + drawn(generator, 2, window - 2), window


def _half_empty(generator):
    window = drawn(generator, 7, 11)
    return drawn(generator, 2, window - 3), window


exercise = Exercise(
    id="efficient.rolling_slots",
    title="A cache that is written round and round",
    statement="""
A layer whose queries see only the last `window` tokens needs a cache of only `window` slots. The token at position $p$
is written into slot $p \\bmod \\text{window}$, over the one that lay there. After `n_seen` tokens (positions 0 to
`n_seen - 1`), which token lies in which slot? Return the positions, slot by slot, and -1 for a slot that is still
empty. A mask for the next query is made of them, so they must be right: the slots are not in the order of the text.
""".strip(),
    reference=reference,
    solution=rolling_slots,
    explanation="""
The token in a slot is `(newest - slot) % window` older than the newest one: the remainder is 0 for the newest token's
own slot, and grows backwards around the ring. Below 0 stands a slot to which the ring has not come yet. Keys may lie in
any order, since attention is a sum over them; only the mask must know where each one stood in the text.
""".strip(),
    cases=(
        Case(name="a text that has gone round several times", inputs=_wrapped),
        Case(name="a text that has not filled the cache", inputs=_half_empty),
    ),
    hints="""
Write down the slots for a window of 4 after 6 tokens, token by token. Which slot holds the newest?

How many tokens ago was slot $i$ written last? Count backwards from the newest token's slot, round the ring.

`(newest - slot) % window` tokens ago. Subtract that from the newest position; below 0 means never written.
""",
    difficulty=2,
    minutes=15,
    section="11-efficient",
)

exercise.mutations("""
newest_is_n_seen: "n_seen - 1" -> "n_seen"
    Your positions are one ahead: after `n_seen` tokens, counted from 0, what is the newest position?
wrong_way_round: "(newest - torch.arange(window))" -> "(torch.arange(window) - newest)"
    You walk the ring the wrong way: the slot behind the newest one holds the oldest token, not the second newest. What
    do you subtract from what?
empty_is_not_said: ".clamp(min=-1)" -> ""
    Slots that are still empty get positions below -1. What should stand there?
empty_as_zero: "clamp(min=-1)" -> "clamp(min=0)"
    An empty slot gets position 0, as if the first token lay there, and the mask would let it be seen.
first_round: "positions.clamp(min=-1)" -> "torch.where(torch.arange(window) < n_seen, torch.arange(window), -1)"
    These are the tokens of the first round: later ones are written over them.
newest_in_the_last: "positions.clamp(min=-1)" -> "torch.arange(n_seen - window, n_seen).clamp(min=-1)"
    The newest token should lie in slot `(n_seen - 1) % window`; yours always lies in the last one.
""")


@exercise.mistake(
    "Your tokens stand in the order of the text. In the ring the newest ones are written over the oldest, wherever "
    "those lie: in which slot does a token at position p go?"
)
def in_order(n_seen, window):
    positions = torch.arange(n_seen - window, n_seen)
    return torch.cat([positions[positions >= 0], positions[positions < 0].clamp(min=-1, max=-1)])


@exercise.mistake(
    "You give every slot a token of the current round. Slots that this round has not reached still hold the round "
    "before."
)
def current_round(n_seen, window):
    slots = torch.arange(window)
    positions = (n_seen - 1) // window * window + slots
    return torch.where(positions < n_seen, positions, -1)


@exercise.must_hold("The token at position p lies in slot p modulo the window.")
def own_slot(trial: Trial) -> str | None:
    window, value = trial.inputs[1], trial.value
    off = ((value >= 0) & (value % window != torch.arange(len(value)))).nonzero().flatten().tolist()
    return f"Slot {off[0]} holds position {int(value[off[0]])}." if off else None


@exercise.must_hold("The cache should hold the newest tokens, each once.")
def newest_tokens(trial: Trial) -> str | None:
    n_seen, window = trial.inputs
    expected = list(range(max(0, n_seen - window), n_seen))
    found = sorted(position for position in trial.value.tolist() if position >= 0)
    return None if found == expected else f"It holds {found}, and should hold {expected}."
