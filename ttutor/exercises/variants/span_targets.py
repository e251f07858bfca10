"""Exercise: T5's two texts, made from spans that were already chosen."""

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial
from ttutor.variants.objectives import restore_spans


def span_targets(
    token_ids: list[int], spans: list[tuple[int, int]], sentinel_ids: list[int]
) -> tuple[list[int], list[int]]:
    """The text with a sentinel for each span, and the spans with their sentinels."""
    ...


def solution(
    token_ids: list[int], spans: list[tuple[int, int]], sentinel_ids: list[int]
) -> tuple[list[int], list[int]]:
    """The text with a sentinel for each span, and the spans with their sentinels."""
    inputs, targets, place = [], [], 0
    for (start, end), sentinel in zip(spans, sentinel_ids, strict=False):
        inputs += [*token_ids[place:start], sentinel]
        targets += [sentinel, *token_ids[start:end]]
        place = end
    return inputs + token_ids[place:], [*targets, sentinel_ids[len(spans)]]


def reference(token_ids, spans, sentinel_ids):
    number = {place: i for i, (start, end) in enumerate(spans) for place in range(start, end)}
    inputs, targets, last = [], [], None
    for place, token_id in enumerate(token_ids):
        mine = number.get(place)
        if mine is None:
            inputs.append(token_id)
        elif mine != last:
            inputs.append(sentinel_ids[mine])
            targets.append(sentinel_ids[mine])
        if mine is not None:
            targets.append(token_id)
        last = mine
    return inputs, [*targets, sentinel_ids[len(spans)]]


def no_last_sentinel(token_ids, spans, sentinel_ids):
    inputs, targets = reference(token_ids, spans, sentinel_ids)
    return inputs, targets[:-1]


def no_last_sentinel_at_the_end(token_ids, spans, sentinel_ids):
    inputs, targets = reference(token_ids, spans, sentinel_ids)
    return inputs, targets[:-1] if spans[-1][1] == len(token_ids) else targets


def one_for_all(token_ids, spans, sentinel_ids):
    made = reference(token_ids, spans, sentinel_ids)
    mine = set(sentinel_ids)
    return tuple([sentinel_ids[0] if token_id in mine else token_id for token_id in half] for half in made)


def one_for_each_token(token_ids, spans, sentinel_ids):
    _, targets = reference(token_ids, spans, sentinel_ids)
    inputs = list(token_ids)
    for (start, end), sentinel in zip(spans, sentinel_ids, strict=False):
        inputs[start:end] = [sentinel] * (end - start)
    return inputs, targets


def end_included(token_ids, spans, sentinel_ids):
    return reference(token_ids, [(start, end + 1) for start, end in spans], sentinel_ids)


def tail_lost(token_ids, spans, sentinel_ids):
    inputs, targets = reference(token_ids, spans, sentinel_ids)
    tail = len(token_ids) - spans[-1][1]
    return inputs[: len(inputs) - tail], targets


def whole_text_as_target(token_ids, spans, sentinel_ids):
    return reference(token_ids, spans, sentinel_ids)[0], list(token_ids)


def sentinel_after_its_span(token_ids, spans, sentinel_ids):
    inputs, _ = reference(token_ids, spans, sentinel_ids)
    pieces = zip(spans, sentinel_ids, strict=False)
    targets = [one for (start, end), sentinel in pieces for one in [*token_ids[start:end], sentinel]]
    return inputs, [*targets, sentinel_ids[len(spans)]]


def no_sentinels_in_target(token_ids, spans, sentinel_ids):
    inputs, targets = reference(token_ids, spans, sentinel_ids)
    return inputs, [token_id for token_id in targets if token_id not in sentinel_ids]


def no_sentinels_in_text(token_ids, spans, sentinel_ids):
    inputs, targets = reference(token_ids, spans, sentinel_ids)
    return [token_id for token_id in inputs if token_id not in sentinel_ids], targets


def _round_trip(trial: Trial) -> str | None:
    """The two halves give the text again."""
    token_ids, _, sentinel_ids = trial.inputs
    try:
        restored = restore_spans(*trial.value, sentinel_ids=sentinel_ids)
    except ValueError as fault:
        return f"The halves do not fit: {fault}."
    return None if restored == list(token_ids) else f"Put together, the halves give {restored}."


def _each_once(trial: Trial) -> str | None:
    """Every token stands in one half."""
    token_ids, _, sentinel_ids = trial.inputs
    n = sum(len([one for one in half if one not in sentinel_ids]) for half in trial.value)
    return None if n == len(token_ids) else f"The halves hold {n} tokens of the text, which has {len(token_ids)}."


def _inner(random):
    return list(range(10, 21)), [(1, 3), (5, 6)], [90, 91, 92, 93]


def _at_the_ends(random):
    return list(range(10, 19)), [(0, 2), (4, 6), (7, 9)], [90, 91, 92, 93]


EXERCISES = (
    Exercise(
        id="variants.span_targets",
        title="Cut out and numbered",
        statement="""
T5 takes spans out of a text. `spans` are given as pairs (start, end), the end not included; they are in order and do
not touch. In the input each span is replaced by one sentinel, the first by `sentinel_ids[0]`, the second by
`sentinel_ids[1]`, and so on. The target is each sentinel followed by the tokens of its span, and the next unused
sentinel at the end.
""".strip(),
        stub=span_targets,
        reference=reference,
        solution=solution,
        explanation="""
Input and target together hold every token once. Of a text of $n$ tokens from which $k$ are taken in $s$ spans, the
encoder reads $n - k + s$ and the decoder writes $k + s + 1$: with 15 % taken and spans of three it writes about a fifth
of what it would write to copy the whole. The sentinel at the end says that no span follows.
""".strip(),
        cases=(
            Case(name="two spans inside a text", inputs=_inner),
            Case(name="spans at both ends", inputs=_at_the_ends),
        ),
        hints=(
            "Do it on paper for `the old cat slept`, with `old cat` taken out. Which tokens stand in which half?",
            "Walk over the spans and remember where the last one ended.",
            (
                "For each span, the input gets the text since the last span and a sentinel; the target gets the "
                "sentinel and the span. What is left over afterwards?"
            ),
        ),
        mistakes=(
            Mistake(
                id="no_last_sentinel",
                says="The target lacks its last sentinel, the one that says that nothing follows.",
                answers=(no_last_sentinel,),
            ),
            Mistake(
                id="no_last_sentinel_at_the_end",
                says="Right where text follows the last span. The closing sentinel stands in every target, also where "
                "the last span ends the text.",
                answers=(no_last_sentinel_at_the_end,),
            ),
            Mistake(
                id="one_for_all",
                says="All your spans have the same sentinel. How should the target say which span it means?",
                answers=(one_for_all,),
            ),
            Mistake(
                id="one_for_each_token",
                says="Your input shows how long each span was. A span is replaced by one sentinel, however long it is.",
                answers=(one_for_each_token,),
            ),
            Mistake(
                id="end_included",
                says="Your spans are one token too long: the end is not included.",
                answers=(end_included,),
            ),
            Mistake(
                id="tail_lost",
                says="Right where a span ends the text. What stands after the last span has been lost.",
                answers=(tail_lost,),
            ),
            Mistake(
                id="whole_text",
                says="Your target is the whole text, as BART has it. T5 writes the missing spans only.",
                answers=(whole_text_as_target,),
            ),
            Mistake(
                id="sentinel_after",
                says="In your target each sentinel follows its span; it should come before it.",
                answers=(sentinel_after_its_span,),
            ),
            Mistake(
                id="no_sentinels_in_target",
                says="Your target holds the missing tokens without sentinels: nobody can tell which belong where.",
                answers=(no_sentinels_in_target,),
            ),
            Mistake(
                id="no_sentinels_in_text",
                says="Your input does not show where something is missing.",
                answers=(no_sentinels_in_text,),
            ),
        ),
        properties=(
            Property(
                id="each_token_once",
                says="Every token of the text stands in the input or in the target, once.",
                broken=_each_once,
            ),
            Property(
                id="halves_fit",
                says="With the spans put where their sentinels stand, the text should come back.",
                broken=_round_trip,
            ),
        ),
        forbids=("span_corruption",),
        difficulty=2,
        minutes=20,
        section="09-variants",
    ),
)
