"""Exercise: T5's two texts, made from a row that says which tokens are taken out."""

import torch

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.variants.objectives import restore_spans


def span_targets(token_ids: list[int], taken: list[bool], sentinel_ids: list[int]) -> tuple[list[int], list[int]]:
    """The text with a sentinel for each span, and the spans with their sentinels."""
    inputs, targets, n_spans, inside = [], [], 0, False
    for token_id, gone in zip(token_ids, taken, strict=True):
        if gone and not inside:  # a span begins here
            inputs.append(sentinel_ids[n_spans])
            targets.append(sentinel_ids[n_spans])
            n_spans += 1
        (targets if gone else inputs).append(token_id)
        inside = gone
    return inputs, [*targets, sentinel_ids[n_spans]]


def _spans(taken):
    """Pairs (start, end), the end not included."""
    edges = [0, *map(int, taken), 0]
    starts = [place for place in range(len(taken)) if edges[place] < edges[place + 1]]
    ends = [place + 1 for place in range(len(taken)) if edges[place + 1] > edges[place + 2]]
    return list(zip(starts, ends, strict=True))


def _cut(token_ids, spans, sentinel_ids):
    inputs, targets, place = [], [], 0
    for (start, end), sentinel in zip(spans, sentinel_ids, strict=False):
        inputs += [*token_ids[place:start], sentinel]
        targets += [sentinel, *token_ids[start:end]]
        place = end
    return inputs + list(token_ids[place:]), [*targets, sentinel_ids[len(spans)]]


def reference(token_ids, taken, sentinel_ids):
    return _cut(token_ids, _spans(taken), sentinel_ids)


def _text(random, lengths, gone_first):
    """Tokens drawn anew, in stretches of these lengths that are taken out and kept by turns."""
    taken = [gone_first ^ bool(i % 2) for i, length in enumerate(lengths) for _ in range(length)]
    first = drawn(random, 85, 110)
    return (
        (10 + torch.randperm(70, generator=random)[: len(taken)]).tolist(),
        taken,
        list(range(first, first + drawn(random, 6, 9))),
    )


def _inner(random):
    return _text(random, [1, 2, 2, 1, drawn(random, 4, 6)], False)


def _at_the_ends(random):
    return _text(random, [2, drawn(random, 1, 4), 3, 1, 2], True)


exercise = Exercise(
    id="variants.span_targets",
    title="Cut out and numbered",
    statement="""
T5 reads a text with spans cut out of it. Here a draw for each token has decided: `taken` is a row of True and False,
True where a token is taken out, and nobody has counted the spans yet. Neighbours that are taken out
together make *one* span. In the input each span is replaced by one sentinel, the first by `sentinel_ids[0]`, the second
by `sentinel_ids[1]`, and so on. The target is each sentinel followed by the tokens of its span, and the next unused
sentinel at the end.
""".strip(),
    reference=reference,
    solution=span_targets,
    explanation="""
Input and target together hold every token once. Of a text of $n$ tokens from which $k$ are taken in $s$ spans, the
encoder reads $n - k + s$ and the decoder writes $k + s + 1$: with 15 % taken and spans of three it writes about a fifth
of what it would write to copy the whole. The sentinel at the end says that no span follows.
""".strip(),
    cases=(
        Case(name="two spans inside a text", inputs=_inner),
        Case(name="spans at both ends", inputs=_at_the_ends),
    ),
    hints="""
By what two neighbouring values of `taken` do you see that a span begins?

Walk over tokens and row together, and remember whether the token before was taken out.

Each token goes into one half, by its value in the row. Where a span begins, both halves get the next sentinel first.
What does the target still lack after the last token?
""",
    forbids=("span_corruption",),
    difficulty=2,
    minutes=20,
    section="09-variants",
)

exercise.mutations(r"""
no_last_sentinel: "[*targets, sentinel_ids[n_spans]]" -> "targets"
    The target lacks its last sentinel, the one that says that nothing follows.
no_last_sentinel_at_the_end: "[*targets, sentinel_ids[n_spans]]" ->
  "targets if gone else [*targets, sentinel_ids[n_spans]]"
    Right where text follows the last span. The closing sentinel stands in every target, also where the last span ends
    the text.
one_for_all: "n_spans += 1" -> "n_spans += 0"
    All your spans have the same sentinel. How should the target say which span it means?
every_token_a_span: "gone and not inside" -> "gone"
    Every token taken out has a sentinel of its own in both halves. Neighbours make one span.
one_for_each_token: "        inside = gone" ->
  "        if gone and inside:\n            inputs.append(sentinel_ids[n_spans - 1])\n        inside = gone"
    Your input shows how long each span was. A span is replaced by one sentinel, however long it is.
kept_taken_out: "zip(token_ids, taken" -> "zip(token_ids, [not gone for gone in taken]"
    You take out what should stay: True means that a token is taken out.
tail_lost: "return inputs" -> "return inputs[: len(inputs) - taken[::-1].index(True)]"
    Right where a span ends the text. What stands after the last span has been lost.
whole_text: "[*targets, sentinel_ids[n_spans]]" -> "list(token_ids)"
    Your target is the whole text, as BART has it. T5 writes the missing spans only.
no_sentinels_in_target: "            targets.append(sentinel_ids[n_spans])\n" -> "",
  "[*targets, sentinel_ids[n_spans]]" -> "targets"
    Your target holds the missing tokens without sentinels: nobody can tell which belong where.
no_sentinels_in_text: "            inputs.append(sentinel_ids[n_spans])\n" -> ""
    Your input does not show where something is missing.
""")


@exercise.mistake("Your spans are one token too long: the first token that is kept goes with them.")
def end_included(token_ids, taken, sentinel_ids):
    return _cut(token_ids, [(start, end + 1) for start, end in _spans(taken)], sentinel_ids)


@exercise.mistake(
    "In your target each sentinel follows its span; it should come before it.",
    id="sentinel_after",
)
def sentinel_after_its_span(token_ids, taken, sentinel_ids):
    inputs, _ = reference(token_ids, taken, sentinel_ids)
    spans = _spans(taken)
    pieces = zip(spans, sentinel_ids, strict=False)
    targets = [one for (start, end), sentinel in pieces for one in [*token_ids[start:end], sentinel]]
    return inputs, [*targets, sentinel_ids[len(spans)]]


@exercise.must_hold("Every token of the text stands in the input or in the target, once.")
def each_token_once(trial: Trial) -> str | None:
    token_ids, _, sentinel_ids = trial.inputs
    n = sum(len([one for one in half if one not in sentinel_ids]) for half in trial.value)
    return None if n == len(token_ids) else f"The halves hold {n} tokens of the text, which has {len(token_ids)}."


@exercise.must_hold("With the spans put where their sentinels stand, the text should come back.")
def halves_fit(trial: Trial) -> str | None:
    token_ids, _, sentinel_ids = trial.inputs
    try:
        restored = restore_spans(*trial.value, sentinel_ids=sentinel_ids)
    except ValueError as fault:
        return f"The halves do not fit: {fault}."
    return None if restored == list(token_ids) else f"Put together, the halves give {restored}."
