"""Whether a training fits into the machine, said before anything of it is made."""

import os

import torch

from ttutor.errors import SettingError
from ttutor.training.recipe import TrainingRecipe
from ttutor.transformer import TransformerConfig, account

COPIES = 6
"""Numbers kept of each parameter: itself, its gradient, AdamW's two moments, its average, and that at its best."""
BYTES_PER_NUMBER = 4
IDS_PER_TOKEN = 3
"""Of each token of a batch: in the source, before and behind the decoder."""


def check_memory(config: TransformerConfig, recipe: TrainingRecipe, device: torch.device) -> None:
    """Refuse a training that cannot fit: a lower bound of what it needs is more than all the memory there is.

    The bound counts the parameters' copies, what each layer writes into the stream for one batch, and the token ids of
    one step.

    Raises:
        SettingError: it cannot fit; the message says how much is needed and how much there is.
    """
    n_parameters = account(config).n_parameters
    written = recipe.tokens_per_batch * config.n_layers * 2 * (config.d_model + config.d_ff)
    ids = recipe.batches_per_step * recipe.tokens_per_batch * IDS_PER_TOKEN * 2
    needed = BYTES_PER_NUMBER * (COPIES * n_parameters + written + ids)
    there = installed_memory(device)
    if there is not None and needed > there:
        raise SettingError(
            f"this training needs at least {_in_gigabytes(needed)} of memory ({n_parameters:,} parameters with "
            f"gradients and averages, {recipe.batches_per_step:,} batches a step), and this machine has "
            f"{_in_gigabytes(there)}: make d_model, d_ff, n_layers, tokens_per_batch or batches_per_step smaller"
        )


def installed_memory(device: torch.device) -> int | None:
    """All bytes of the GPU, or of the machine; None where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    names = getattr(os, "sysconf_names", {})
    if {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(names):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _in_gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"
