"""Exercise: writing a text token by token, with a cache."""

from collections.abc import Callable

import torch
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Property
from ttutor.exercises.facts import fact
from ttutor.exercises.values import describe

A_LIST = "a list of whole numbers"


def observe(answer, table, bos_id, eos_id, ends_after, max_len):
    """Let an answer write with a small model; return its text and what it fed the model."""
    fed, handed_back, given, traces = [], [], [], []

    def step(token_ids, cache=None):
        """Logits that follow from all tokens so far and their order; the cache holds their trace."""
        fed.append(torch.flatten(token_ids).tolist())
        is_last = cache is given[-1] and torch.equal(cache[0], traces[-1]) if given else cache is None
        handed_back.append(is_last)
        trace, n_seen = (torch.zeros(len(table)), 0) if cache is None else cache
        logits = []
        for token in fed[-1]:
            trace, n_seen = 0.7 * trace + table[token], n_seen + 1
            here = trace.clone()
            here[eos_id] = 100.0 if n_seen > ends_after else here.median()  # neither the first nor the last
            logits.append(here)
        given.append((trace, n_seen))
        traces.append(trace.clone())
        return torch.stack(logits)[None], given[-1]

    text = answer(step, bos_id, eos_id, max_len)
    is_text = isinstance(text, (list, tuple)) and all(_is_token(token) for token in text)
    return {
        "what is returned": A_LIST if is_text else describe(text),
        "the text": _in_words(text) if is_text else "",
        "what the calls of the model were fed": " | ".join(map(_in_words, fed)),
        "tokens fed in one call": max(map(len, fed), default=0),
        "calls of the model": len(fed),
        "every call got the cache of the call before": all(handed_back),
    }


def _is_token(token):
    """A whole number, be it Python's or torch's."""
    return isinstance(token, int) or (isinstance(token, torch.Tensor) and token.numel() == 1)


def _in_words(tokens):
    return " ".join(str(int(token)) for token in tokens)


def _more_or_fewer_calls(trial):
    """Count the calls of the model."""
    *_, ends_after, max_len = trial.inputs
    n_calls, needed = trial.value["calls of the model"], min(ends_after + 1, max_len)
    return None if n_calls == needed else f"You call the model {n_calls} times, and {needed} calls are needed."


PROPERTIES = [
    fact(
        "what is returned",
        A_LIST,
        "The text is a plain list, one whole number for each token.",
        id="returns_a_list",
    ),
    fact(
        "every call got the cache of the call before",
        True,
        "What the model remembers stands in the cache: hand each call the one that the call before gave back.",
        id="cache_is_handed_on",
    ),
    fact(
        "tokens fed in one call",
        1,
        "Only the newest token is new to the model: feed one in each call.",
        id="fed_one_by_one",
    ),
    Property(
        id="as_many_calls_as_needed",
        says="Each token takes one call of the model, and the end mark one more.",
        broken=_more_or_fewer_calls,
    ),
]


def greedy_decode(
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


def _model(generator):
    """What each token leaves behind, and two of them as marks."""
    vocab_size = drawn(generator, 9, 12)
    bos_id, eos_id = torch.randperm(vocab_size, generator=generator)[:2].tolist()
    return 0.5 * torch.randn(vocab_size, vocab_size, generator=generator), bos_id, eos_id


def _ends_by_itself(generator):
    return *_model(generator), drawn(generator, 3, 6), drawn(generator, 8, 10)


def _goes_on(generator):
    return *_model(generator), 50, drawn(generator, 5, 8)


exercise = Exercise(
    id="decoder.greedy_decode",
    title="A text, token by token",
    statement="""
Write a text with a model that has a cache. `step(token_ids, cache)` takes the tokens that are **new** to the model, of
shape (1, tokens), and the cache of the call before (`None` in the first call). It returns logits of shape
(1, tokens, vocab_size) and a new cache; what was fed before is remembered there and nowhere else.

Begin with `bos_id`, always take the likeliest token, and stop when it is `eos_id` or when there are `max_len` tokens.
Return the tokens of the text as a list of whole numbers, without the marks.
""".strip(),
    reference=reference,
    solution=greedy_decode,
    explanation="""
The token that is fed is always the one just chosen. Feeding the whole text again, with a cache, would count the old
tokens twice: the cache remembers them already.
""".strip(),
    cases=(
        Case(name="a text that ends by itself", inputs=_ends_by_itself, points=2),
        Case(name="a text that has to be cut off", inputs=_goes_on),
    ),
    hints="""
What does the model know before the second call, and from where? What is new to it?

A loop with three variables: the newest token, the cache, the text so far. Which of them goes into `step`, and what
comes back?

Feed the newest token alone, as a tensor of shape (1, 1), with the latest cache; take the argmax of the last position;
leave the loop if it is the end mark, else append it. At most `max_len` passes.
""",
    properties=PROPERTIES,
    observe=observe,
    forbids=("generate", "greedy", "greedy_search"),
    difficulty=2,
    minutes=20,
    section="06-decoder",
)

exercise.mutations(r"""
feeds_all_with_cache: "[[newest]]" -> "[[bos_id, *text]]"
    You use the cache and feed all tokens again: the model sees each of them many times, at wrong positions. With a
    cache feed only what is new.
feeds_all_without_cache: "[[newest]]), cache" -> "[[bos_id, *text]]), None"
    The text is right, but every call starts from nothing and reads all tokens again: the work grows with the square of
    the length. What is the cache for?
first_position: "[[newest]]), cache" -> "[[bos_id, *text]]), None", "[0, -1]" -> "[0, 0]"
    Your text repeats itself: you take the logits of the first position, which predict the first token. Which position
    predicts the next one?
forgets_the_cache: "), cache)" -> "), None)"
    You feed the newest token alone, but no cache: the model remembers nothing of what it wrote.
feeds_the_start_mark: "[[newest]]" -> "[[bos_id]]"
    You feed the start mark in every call. What the model has just said is what it must read next.
no_stop: "newest == eos_id" -> "newest is None"
    The model says that the text is over, and you go on to the limit. Where do you compare with the end mark you are
    given?
keeps_the_end_mark: "            break" -> "            text.append(newest)\n            break"
    The end mark stands at the end of your text. It says that the text is over; it is no part of it.
one_too_many: "< max_len" -> "<= max_len"
    A text that does not end by itself gets one token too many. Count before you call the model.
one_too_few: "< max_len" -> "< max_len - 1"
    A text that does not end by itself is one token too short. Does the start mark count?
no_limit: "< max_len" -> "< 1000"
    A text that does not end by itself grows far beyond `max_len`, which has no effect.
""")
