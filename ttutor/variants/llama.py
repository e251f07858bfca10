"""Llama, the modern decoder with nothing but its defaults: `Llama` and `LlamaConfig` are other names for it.

Touvron et al. (2023a, LLaMA; 2023b, Llama 2), Grattafiori et al. (2024, Llama 3). Against GPT-2: RMSNorm for
LayerNorm, rotary positions for a learned table, SwiGLU for GELU, fewer key/value heads than query heads, and no bias.

Example:
    >>> import torch
    >>> model = Llama(LlamaConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=32))
    >>> model(torch.tensor([[7, 8, 9]])).shape
    torch.Size([1, 3, 50])
"""

from ttutor.variants.modern_decoder import ModernDecoder as Llama
from ttutor.variants.modern_decoder import ModernDecoderConfig as LlamaConfig

__all__ = ["Llama", "LlamaConfig"]
