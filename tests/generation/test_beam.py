"""Beam search of decoder-only models against enumeration, and against a beam written with lists and no cache."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from tests.generation.tiny import PROMPTS, beam_by_hand, gpt, padded
from ttutor.generation import beam_search


def ranked_after(model, prompt: Sequence[int]):
    """One prompt, no cache, no batch of others: what may follow each of some continuations."""
    return lambda news: model(torch.tensor([[*prompt, *new] for new in news]))[:, -1].log_softmax(dim=-1)


@pytest.mark.parametrize("eos_ids", [(), (3,), (3, 0, 8)])
@pytest.mark.parametrize(("beam_size", "alpha"), [(1, 0.0), (2, 0.6), (2, 0.0)])
def test_every_hypothesis_of_every_prompt_is_the_one_found_by_hand(beam_size, alpha, eos_ids):
    model = gpt(seed=1)
    token_ids, is_real = padded(PROMPTS, "strewn")
    found = beam_search(
        model, token_ids, is_real=is_real, eos_id=eos_ids, max_new_tokens=5, beam_size=beam_size, alpha=alpha
    )
    for beam, prompt in zip(found, PROMPTS, strict=True):
        expected = beam_by_hand(ranked_after(model, prompt), 5, beam_size, alpha, eos_ids)
        assert [(one.token_ids, one.is_finished) for one in beam] == [one[:2] for one in expected]
        assert [one.score for one in beam] == pytest.approx([one[2] for one in expected], abs=1e-9)
        assert {one.ended_by for one in beam} <= {"eos_id", "max_new_tokens"}
        assert all((one.ended_by == "eos_id") == one.is_finished for one in beam)
