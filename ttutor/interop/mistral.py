"""Mistral in Hugging Face's form: Llama's tensors, and a config with a sliding window."""

from dataclasses import replace

from ttutor.interop.llama import FAMILY as LLAMA

FAMILY = replace(LLAMA, model_type="mistral")
