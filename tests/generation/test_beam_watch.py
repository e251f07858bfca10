"""What a beam search tells of itself while it runs."""

from __future__ import annotations

import torch

from tests.generation.tiny import EOS, translator
from ttutor.generation import BeamStep, beam_search

SOURCE = torch.tensor([[5, 6, 7], [8, 9, 4]])
OPTIONS = {"bos_id": 2, "eos_id": EOS, "max_new_tokens": 6, "beam_size": 3}


def watched() -> tuple[list, list[BeamStep]]:
    steps: list[BeamStep] = []
    return beam_search(translator(), SOURCE, watch=steps.append, **OPTIONS), steps


def test_watching_changes_nothing() -> None:
    assert watched()[0] == beam_search(translator(), SOURCE, **OPTIONS)


def test_every_step_ranks_the_extensions_of_the_partial_hypotheses() -> None:
    _, steps = watched()
    for n_tokens, step in enumerate(steps):
        assert step.tokens.shape == (3 * len(step.sentences), n_tokens)
        totals = step.totals.flatten()[step.rows] + step.log_probabilities[step.rows, step.new_tokens]
        assert torch.allclose(step.candidates, totals)
        assert (step.candidates.diff(dim=-1) <= 0).all()
    assert steps[0].totals.tolist() == [[0.0, -torch.inf, -torch.inf]] * 2


def test_partial_hypotheses_are_candidates_of_the_step_before_and_results_too() -> None:
    found, steps = watched()
    extended = [set() for _ in SOURCE]
    for step in steps:
        for group, sentence in enumerate(step.sentences):
            for row, token in zip(step.rows[group].tolist(), step.new_tokens[group].tolist(), strict=True):
                extended[sentence].add((*step.tokens[row].tolist(), token))
    for sentence, hypotheses in enumerate(found):
        for one in hypotheses:
            assert (*one.token_ids, *([EOS] if one.is_finished else [])) in extended[sentence]
