"""Exercise: writing a text token by token, with a cache."""

from collections.abc import Callable

import torch
from torch import Tensor

from ttutor.exercises.decoder import greedy_decode_mistakes as wrong
from ttutor.exercises.decoder.greedy_decode_probes import PROPERTIES, VOCAB_SIZE, observe
from ttutor.exercises.exercise import Case, Exercise, Mistake


def greedy_decode(
    step: Callable[[Tensor, object], tuple[Tensor, object]], bos_id: int, eos_id: int, max_len: int
) -> list[int]:
    """Write at most `max_len` tokens, always the likeliest, and stop where the model says `eos_id`."""
    ...


def solution(
    step: Callable[[Tensor, object], tuple[Tensor, object]], bos_id: int, eos_id: int, max_len: int
) -> list[int]:
    """Write at most `max_len` tokens, always the likeliest, and stop where the model says `eos_id`."""
    newest, cache, text = bos_id, None, []
    while len(text) < max_len:
        logits, cache = step(torch.tensor([[newest]]), cache)
        newest = int(logits[0, -1].argmax())
        if newest == eos_id:
            break
        text.append(newest)
    return text


def reference(step, bos_id, eos_id, max_len):
    text, newest, cache = [], torch.tensor([[bos_id]]), None
    for _ in range(max_len):
        logits, cache = step(newest, cache)
        newest = logits[:, -1:].argmax(dim=-1)
        if newest == eos_id:
            return text
        text.append(newest.item())
    return text


def _table(generator):
    return 0.5 * torch.randn(VOCAB_SIZE, VOCAB_SIZE, generator=generator)


def _ends_by_itself(generator):
    return _table(generator), 4, 9


def _goes_on(generator):
    return _table(generator), 50, 6


EXERCISES = (
    Exercise(
        id="decoder.greedy_decode",
        title="A text, token by token",
        statement="""
Write a text with a model that has a cache. `step(token_ids, cache)` takes the tokens that are **new** to the model, of
shape (1, tokens), and the cache of the call before (`None` in the first call). It returns logits of shape
(1, tokens, vocab_size) and a new cache; what was fed before is remembered there and nowhere else.

Begin with `bos_id`, always take the likeliest token, and stop when it is `eos_id` or when there are `max_len` tokens.
Return the tokens of the text as a list of whole numbers, without the marks.
""".strip(),
        stub=greedy_decode,
        reference=reference,
        solution=solution,
        explanation="""
The token that is fed is always the one just chosen. Feeding the whole text again, with a cache, would count the old
tokens twice: the cache remembers them already.
""".strip(),
        cases=(
            Case(name="a text that ends by itself", inputs=_ends_by_itself, points=2),
            Case(name="a text that has to be cut off", inputs=_goes_on),
        ),
        hints=(
            "What does the model know before the second call, and from where? What is new to it?",
            (
                "A loop with three variables: the newest token, the cache, the text so far. Which of them goes into "
                "`step`, and what comes back?"
            ),
            (
                "Feed the newest token alone, as a tensor of shape (1, 1), with the latest cache; take the argmax of "
                "the last position; leave the loop if it is the end mark, else append it. At most `max_len` passes."
            ),
        ),
        mistakes=(
            Mistake(
                id="feeds_all_with_cache",
                says="You use the cache and feed all tokens again: the model sees each of them many times, at wrong "
                "positions. With a cache feed only what is new.",
                answers=(wrong.feeds_all_with_cache,),
            ),
            Mistake(
                id="feeds_all_without_cache",
                says="The text is right, but every call starts from nothing and reads all tokens again: the work grows "
                "with the square of the length. What is the cache for?",
                answers=(wrong.feeds_all_without_cache,),
            ),
            Mistake(
                id="first_position",
                says="Your text repeats itself: you take the logits of the first position, which predict the first "
                "token. Which position predicts the next one?",
                answers=(wrong.first_position,),
            ),
            Mistake(
                id="forgets_the_cache",
                says="You feed the newest token alone, but no cache: the model remembers nothing of what it wrote.",
                answers=(wrong.forgets_the_cache,),
            ),
            Mistake(
                id="keeps_the_first_cache",
                says="Every call gets the cache of the first call, so the model remembers the start mark only. "
                "`step` returns a new one each time.",
                answers=(wrong.keeps_the_first_cache,),
            ),
            Mistake(
                id="feeds_the_start_mark",
                says="You feed the start mark in every call. What the model has just said is what it must read next.",
                answers=(wrong.feeds_the_start_mark,),
            ),
            Mistake(
                id="no_stop",
                says="The model says that the text is over, and you go on to the limit. Where do you compare with the "
                "end mark you are given?",
                answers=(wrong.no_stop, wrong.hard_coded_end),
            ),
            Mistake(
                id="stops_after_one",
                says="You stop after one token: does a `return` or a `break` stand where every pass meets it?",
                answers=(wrong.stops_after_one,),
            ),
            Mistake(
                id="keeps_the_end_mark",
                says="The end mark stands at the end of your text. It says that the text is over; it is no part of it.",
                answers=(wrong.keeps_the_end_mark,),
            ),
            Mistake(
                id="adds_an_end_mark",
                says="You add an end mark in any case, even to a text that was cut off and had not ended.",
                answers=(wrong.adds_an_end_mark,),
            ),
            Mistake(
                id="keeps_the_start_mark",
                says="Your text begins with the start mark, which the model was given and did not write.",
                answers=(wrong.keeps_the_start_mark,),
            ),
            Mistake(
                id="one_too_many",
                says="A text that does not end by itself gets one token too many. Count before you call the model.",
                answers=(wrong.one_too_many,),
            ),
            Mistake(
                id="one_too_few",
                says="A text that does not end by itself is one token too short. Does the start mark count?",
                answers=(wrong.one_too_few,),
            ),
            Mistake(
                id="no_limit",
                says="A text that does not end by itself grows far beyond `max_len`, which has no effect.",
                answers=(wrong.until_the_end,),
            ),
            Mistake(
                id="least_likely",
                says="You take the token with the lowest logit. Which one does the model hold for likeliest?",
                answers=(wrong.least_likely,),
            ),
            Mistake(
                id="draws",
                says="You draw the next token at random. That is sampling; greedy decoding takes the likeliest.",
                answers=(wrong.draws,),
            ),
            Mistake(
                id="second_best",
                says="You take the second likeliest token: torch counts from 0.",
                answers=(wrong.second_best,),
            ),
        ),
        properties=PROPERTIES,
        observe=observe,
        forbids=("generate", "greedy", "greedy_search"),
        difficulty=2,
        minutes=20,
        section="06-decoder",
    ),
)
