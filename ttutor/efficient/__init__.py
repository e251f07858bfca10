"""Efficient attention: one call that runs the fastest exact backend for its device, number format, sizes and mask.

`efficient_attention` follows the protocol of `ttutor.attention.scaled_dot_product_attention`, and its results agree
with that reference to rounding. `choose_backend` says what it would run and why.

Beside the backends stand functions that are not softmax attention over all keys, and whose cost does not grow with the
square of the length: `sparse_attention`, `linear_attention`, and `SelectiveStateSpace`. And `count_operations` counts
what any of them computes.
"""

from ttutor.efficient.attention_call import AttentionCall
from ttutor.efficient.call import efficient_attention
from ttutor.efficient.choice import BACKENDS, Choice, choose, choose_backend
from ttutor.efficient.eager import eager_attention
from ttutor.efficient.features import FavorFeatures, FeatureMap, Features, elu_features
from ttutor.efficient.flex import flex_attention
from ttutor.efficient.linear import linear_attention
from ttutor.efficient.linear_state import LinearState, linear_attention_recurrent
from ttutor.efficient.mamba import SelectiveStateSpace, StateSpaceState
from ttutor.efficient.operations import Operations, attention_operations, count_operations, decoding_cost
from ttutor.efficient.sdpa import sdpa_attention
from ttutor.efficient.sparse import sparse_attention
from ttutor.efficient.sparse_masks import draw_random_blocks, sparse_mask
from ttutor.efficient.state_space import Selection, discretise, selective_loop, selective_matrix, selective_scan
from ttutor.efficient.tiled import tiled_attention
from ttutor.efficient.window import window_attention
from ttutor.names import answer_other_names

__all__ = [
    "BACKENDS",
    "AttentionCall",
    "Choice",
    "FavorFeatures",
    "FeatureMap",
    "Features",
    "LinearState",
    "Operations",
    "Selection",
    "SelectiveStateSpace",
    "StateSpaceState",
    "attention_operations",
    "choose",
    "choose_backend",
    "count_operations",
    "decoding_cost",
    "discretise",
    "draw_random_blocks",
    "eager_attention",
    "efficient_attention",
    "elu_features",
    "flex_attention",
    "linear_attention",
    "linear_attention_recurrent",
    "sdpa_attention",
    "selective_loop",
    "selective_matrix",
    "selective_scan",
    "sparse_attention",
    "sparse_mask",
    "tiled_attention",
    "window_attention",
]

answer_other_names(__name__)
