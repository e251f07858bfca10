"""Weights of published models in our models, and of ours in theirs.

``from_huggingface`` reads a folder that `transformers` saved, or a live model of it, and gives our model with the same
weights; ``to_huggingface`` and ``save_huggingface`` go back. Folders need `safetensors` alone; no pickle is ever read.
``from_gguf`` reads the files of llama.cpp, by the package `gguf`. ``from_torch`` takes PyTorch's own layers.
"""

from ttutor.interop.gguf_files import from_gguf
from ttutor.interop.huggingface import from_huggingface, save_huggingface, to_huggingface
from ttutor.interop.torch_layers import from_torch
from ttutor.names import answer_other_names

__all__ = ["from_gguf", "from_huggingface", "from_torch", "save_huggingface", "to_huggingface"]

answer_other_names(__name__)
