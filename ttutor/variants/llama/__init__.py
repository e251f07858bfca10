"""Llama: the decoder-only model as it is built since 2023.

Touvron et al. (2023a, LLaMA; 2023b, Llama 2), Grattafiori et al. (2024, Llama 3). Against GPT-2: `RMSNorm` for
LayerNorm, rotary positions for a learned table, SwiGLU for GELU, fewer key/value heads than query heads, and no bias.
"""

from ttutor.variants.llama.config import LlamaConfig
from ttutor.variants.llama.model import Llama, LlamaBlock

__all__ = ["Llama", "LlamaBlock", "LlamaConfig"]
