"""Training, as chapter 8 teaches it: batches, loss, optimisers, schedule, precision, processes, the trainer.

All but `fit` is loaded on first use.
"""

from typing import Any

from ttutor.names import hand_out
from ttutor.training.fit import fit  # a function in a module of its own name: loaded now, it is the function

_HOMES = {
    "AveragedWeights": "averaging",
    "Batch": "batching",
    "BucketedBatches": "batching",
    "Checkpoint": "checkpoint",
    "LowRank": "low_rank",
    "Optimizers": "optimizer",
    "PRECISIONS": "precision",
    "ParallelBatches": "parallel_batches",
    "Processes": "processes",
    "StateFile": "checkpoint",
    "Trainer": "trainer",
    "TrainingRecipe": "recipe",
    "answer_log_probabilities": "assistant",
    "attach_low_rank": "low_rank",
    "batch_loss": "loss",
    "check_belongs": "checkpoint",
    "check_memory": "memory",
    "check_restarts": "processes",
    "check_tensors": "checkpoint",
    "checkpoint_paths": "checkpoint",
    "checksum": "processes",
    "chunked_linear_cross_entropy": "loss",
    "column": "curve",
    "copy_into": "checkpoint",
    "digest": "processes",
    "draw": "curve",
    "drawn_records": "curve",
    "group_advantages": "assistant",
    "installed_memory": "memory",
    "load_checkpoint": "checkpoint",
    "load_low_rank": "low_rank",
    "loss_by_frequency": "batching",
    "low_rank_tensors": "low_rank",
    "make_batch": "batching",
    "masked_answer_loss": "assistant",
    "matrices_of_layers": "optimizer",
    "may_be_restarted": "processes",
    "merge_low_rank": "low_rank",
    "noam_rate": "schedule",
    "pad": "batching",
    "pass_at_k": "assistant",
    "place": "precision",
    "policy_gradient_loss": "assistant",
    "preference_loss": "assistant",
    "products_in": "precision",
    "read_checkpoint": "checkpoint",
    "remove_checkpoints": "checkpoint",
    "resolve_precision": "precision",
    "save_checkpoint": "checkpoint",
    "signature": "checkpoint",
    "smoothed_cross_entropy": "loss",
    "smoothing_floor": "loss",
    "step_of": "checkpoint",
    "training_device": "precision",
    "warmup_hold_decline": "schedule",
    "warmup_then_decline": "schedule",
    "write_curve": "curve",
}

__all__ = ["fit", *_HOMES]


def __getattr__(name: str) -> Any:
    return hand_out(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return __all__
