"""Inside a trained model: see any intermediate, change it, and measure what it does.

`capture` and `patch` reach everything by name and leave the models as they are; the rest is arithmetic on what they
find. One idea a file: `taps` (what the names mean), `capture`, `comparing`, `patching`, `tracing`, `heads`, `circuits`,
`rollout`, `lens`, `memories`, `editing`, `probing`.
"""

from ttutor.inside.capture import Captured, capture
from ttutor.inside.circuits import head_writes, ov_circuit, qk_circuit
from ttutor.inside.comparing import Comparison, Place, compare
from ttutor.inside.editing import edited, find_value, key_covariance, rank_one_edit
from ttutor.inside.heads import (
    attention_distance,
    attention_entropy,
    first_token_score,
    induction_score,
    previous_token_score,
    weight_on,
)
from ttutor.inside.lens import logit_lens, read_out, residual_stream, residual_writes, stack_of
from ttutor.inside.memories import Activation, memory_coefficients, memory_keys, memory_values, top_inputs
from ttutor.inside.patching import ablate, ablation_effects, patch
from ttutor.inside.probing import LinearProbe, ProbeResult, control_labels, fit_probe, probe
from ttutor.inside.rollout import attention_rollout
from ttutor.inside.taps import intermediates
from ttutor.inside.tracing import Trace, activation_patching, causal_trace
from ttutor.names import answer_other_names

__all__ = [
    "Activation",
    "Captured",
    "Comparison",
    "LinearProbe",
    "Place",
    "ProbeResult",
    "Trace",
    "ablate",
    "ablation_effects",
    "activation_patching",
    "attention_distance",
    "attention_entropy",
    "attention_rollout",
    "capture",
    "causal_trace",
    "compare",
    "control_labels",
    "edited",
    "find_value",
    "first_token_score",
    "fit_probe",
    "head_writes",
    "induction_score",
    "intermediates",
    "key_covariance",
    "logit_lens",
    "memory_coefficients",
    "memory_keys",
    "memory_values",
    "ov_circuit",
    "patch",
    "previous_token_score",
    "probe",
    "qk_circuit",
    "rank_one_edit",
    "read_out",
    "residual_stream",
    "residual_writes",
    "stack_of",
    "top_inputs",
    "weight_on",
]

answer_other_names(__name__)
