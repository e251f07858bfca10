"""Generation: from next-token probabilities to sequences, by greedy choice, by sampling or by beam search.

All of them feed a model one token of each sequence at a time and keep the decoder's cache, so that a step costs one
token of work. They write with any `Writer`, a model that can ``start`` from token ids and ``step`` from token to token:

- an `EncoderDecoder` reads a source and begins its target with a start token;
- a `DecoderOnly` model goes on from a prompt.

`greedy_search` and `sample` collect what `stream` yields token by token; `beam_search` keeps several partial hypotheses
at once; `speculative_sample` lets a small model draft what a large one checks. The filters (`top_p_only` and its like)
are functions from distribution to distribution, the stop conditions functions from tokens to yes or no; both can be
tried by hand, without a model.
"""

from ttutor.generation.beam import BeamStep, beam_search, length_penalty
from ttutor.generation.filters import min_p_only, top_k_only, top_p_only, with_temperature
from ttutor.generation.hypothesis import Hypothesis, NewToken
from ttutor.generation.next_token import next_log_probabilities, read_prompt
from ttutor.generation.ranking import most_probable
from ttutor.generation.repetition import with_repetition_penalty, without_repeated_ngrams
from ttutor.generation.search import Sampler, greedy_search, sample
from ttutor.generation.speculative import Speculation, accepted_share, leftover, speculative_batch, speculative_sample
from ttutor.generation.stopping import ends_with
from ttutor.generation.streaming import stream
from ttutor.generation.writer import DecoderOnly, EncoderDecoder, Prompt, Writer, WritingState
from ttutor.names import answer_other_names

__all__ = [
    "BeamStep",
    "DecoderOnly",
    "EncoderDecoder",
    "Hypothesis",
    "NewToken",
    "Prompt",
    "Sampler",
    "Speculation",
    "Writer",
    "WritingState",
    "accepted_share",
    "beam_search",
    "ends_with",
    "greedy_search",
    "leftover",
    "length_penalty",
    "min_p_only",
    "most_probable",
    "next_log_probabilities",
    "read_prompt",
    "sample",
    "speculative_batch",
    "speculative_sample",
    "stream",
    "top_k_only",
    "top_p_only",
    "with_repetition_penalty",
    "with_temperature",
    "without_repeated_ngrams",
]

answer_other_names(__name__)
