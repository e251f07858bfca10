"""How a text is written in an exercise: a model that counts what it is fed, and remembers in its cache only."""

import torch

from ttutor.exercises.exercise import Property
from ttutor.exercises.facts import fact
from ttutor.exercises.values import describe

VOCAB_SIZE, EOS_ID = 9, 5
A_LIST = "a list of whole numbers"


def observe(answer, table, ends_after, max_len):
    """Let an answer write with a small model; return its text and what it fed the model."""
    fed, handed_back, given = [], [], []

    def step(token_ids, cache=None):
        """Logits that follow from all tokens so far and their order; the cache holds their trace."""
        fed.append(token_ids.flatten().tolist())
        handed_back.append(cache is given[-1] if given else cache is None)
        trace, n_seen = (torch.zeros(VOCAB_SIZE), 0) if cache is None else cache
        logits = []
        for token in fed[-1]:
            trace, n_seen = 0.7 * trace + table[token], n_seen + 1
            here = trace.clone()
            here[EOS_ID] = 100.0 if n_seen > ends_after else here.median()  # neither the first nor the last
            logits.append(here)
        given.append((trace, n_seen))
        return torch.stack(logits)[None], given[-1]

    text = answer(step, 1, EOS_ID, max_len)
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
    _, ends_after, max_len = trial.inputs
    n_calls, needed = trial.value["calls of the model"], min(ends_after + 1, max_len)
    return None if n_calls == needed else f"You call the model {n_calls} times, and {needed} calls are needed."


PROPERTIES = (
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
)
