"""Positions: attention sees a set of tokens, so their order must be told.

There are four places to tell it, and a scheme for each:

- add a vector to each token's embedding: waves of many lengths (`SinusoidalPositions`) or a learned table
  (`LearnedPositions`);
- turn queries and keys by an angle that grows with their position (`RotaryPositions`);
- add a number to each score that depends on the distance: a fixed slope (`AlibiPositions`) or a learned table over
  buckets of distances (`RelativePositions`);
- nowhere (`NoPositions`): under a causal mask the order leaks in all the same.

Positions count the real tokens of a row from 0, as `ttutor.cache.real_positions` does, so that padding moves nothing.
"""

from ttutor.names import answer_other_names
from ttutor.positions.absent import NoPositions
from ttutor.positions.alibi import AlibiPositions, alibi_slopes
from ttutor.positions.grid import RotaryGrid
from ttutor.positions.learned import LearnedPositions
from ttutor.positions.relative import RelativePositions, relative_bucket
from ttutor.positions.rotary import (
    RotaryPositions,
    RotaryScaling,
    Rotation,
    half_to_interleaved,
    rotary_frequencies,
)
from ttutor.positions.scaling import YarnScaling, ntk_base, partial_frequencies
from ttutor.positions.sinusoidal import SinusoidalPositions, shift_matrix, sinusoidal_encoding

__all__ = [
    "AlibiPositions",
    "LearnedPositions",
    "NoPositions",
    "RelativePositions",
    "RotaryGrid",
    "RotaryPositions",
    "RotaryScaling",
    "Rotation",
    "SinusoidalPositions",
    "YarnScaling",
    "alibi_slopes",
    "half_to_interleaved",
    "ntk_base",
    "partial_frequencies",
    "relative_bucket",
    "rotary_frequencies",
    "shift_matrix",
    "sinusoidal_encoding",
]

answer_other_names(__name__)
