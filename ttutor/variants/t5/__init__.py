"""T5: an encoder-decoder for which every task is "text in, text out".

Raffel et al. (2020). Against the Transformer of 2017: RMSNorm before each sublayer, no bias in any linear map, scores
that are not divided by the root of the head's width, and no positions but a learned number for each distance.
"""

from ttutor.variants.t5.blocks import T5Block, T5Stack
from ttutor.variants.t5.config import T5Config
from ttutor.variants.t5.model import T5

__all__ = ["T5", "T5Block", "T5Config", "T5Stack"]
