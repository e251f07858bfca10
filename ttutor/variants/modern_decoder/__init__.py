"""The decoder-only model as it is built since 2023, in parts that a config names.

Llama is the plain case: norms before the sublayers, rotary positions, a gated feed-forward network, grouped queries, no
bias. The families since then differ from it in a part or two, and which ones a config says. Published weights load by
`ttutor.interop.from_huggingface`, and which families fit is in the table there.
"""

from ttutor.variants.modern_decoder.config import ExpertsConfig, ModernDecoderConfig
from ttutor.variants.modern_decoder.model import DecoderBlock, ModernDecoder, NormAcrossHeads

__all__ = ["DecoderBlock", "ExpertsConfig", "ModernDecoder", "ModernDecoderConfig", "NormAcrossHeads"]
