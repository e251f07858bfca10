"""What the families are trained to do before they are given a task: text goes in, inputs and labels come out.

Each objective is a transformation of data or a mask; no model is needed to make one. What keeps the length works on
batches, tensors of `batch tokens`; what changes the length works on one sequence, a list of token ids, to be padded
afterwards. Chance always comes from a generator that is given, on the device of the tensors.

- Other orders than one token after another: `permutation_masks` (XLNet).
- Tokens hidden in place: `mask_tokens` (BERT); `replace_tokens` (ELECTRA).
- Text damaged, to be written anew: `span_corruption` (T5); `text_infilling` (BART).
- Two sentences: `next_sentence_pairs` (BERT), `sentence_order_pairs` (ALBERT).

And one trick of ALBERT's that is no objective: `repeat_layer`, which shares the parameters of all layers.
"""

from ttutor.variants.objectives.masked import IGNORE_ID, MaskedTokens, ReplacedTokens, mask_tokens, replace_tokens
from ttutor.variants.objectives.noise import text_infilling
from ttutor.variants.objectives.orders import PermutationMasks, factorisation_order, permutation_masks
from ttutor.variants.objectives.pairs import (
    SentencePair,
    join_sentences,
    next_sentence_pairs,
    sentence_order_pairs,
)
from ttutor.variants.objectives.sharing import repeat_layer
from ttutor.variants.objectives.spans import CorruptedSpans, restore_spans, span_corruption

__all__ = [
    "IGNORE_ID",
    "CorruptedSpans",
    "MaskedTokens",
    "PermutationMasks",
    "ReplacedTokens",
    "SentencePair",
    "factorisation_order",
    "join_sentences",
    "mask_tokens",
    "next_sentence_pairs",
    "permutation_masks",
    "repeat_layer",
    "replace_tokens",
    "restore_spans",
    "sentence_order_pairs",
    "span_corruption",
    "text_infilling",
]
