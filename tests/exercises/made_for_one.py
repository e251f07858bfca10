"""Answers that are right for some inputs and wrong in general: each is a solution with one number of its own.

By kind, and for each exercise in the form of `Exercise.mutations`, without sentences. They pass as long as the inputs
happen to have that number, so that cases have to draw it.
"""

from __future__ import annotations

WIDTHS = {
    "attention.scaled_dot_product_attention": """
root_of_eight: "math.sqrt(query.shape[-1])" -> "math.sqrt(8)"
root_of_64: "math.sqrt(query.shape[-1])" -> "8.0"
width_of_values: "math.sqrt(query.shape[-1])" -> "math.sqrt(value.shape[-1])"
""",
    "attention.invisible_part": """
nine_are_seen: "int((sizes > 1e-9 * sizes.max()).sum())" -> "9"
all_are_seen: "int((sizes > 1e-9 * sizes.max()).sum())" -> "len(stacked)"
""",
    "training.warmup_rate": """
width_512: "d_model**-0.5" -> "512**-0.5"
""",
    "variants.gated_network": """
eight: "chunk(2, dim=-1)" -> "split(8, dim=-1)"
""",
}
HEADS = {
    "encoder.encoder_layer": """
three: "heads=n_heads" -> "heads=3"
two: "heads=n_heads" -> "heads=2"
""",
    "decoder.cross_attention": """
three: "    split = " -> "    n_heads = 3\\n    split = "
four: "    split = " -> "    n_heads = 4\\n    split = "
""",
    "efficient.crossover": """
three: "n_kv_heads * d_head" -> "3 * d_head"
groups_of_four: "n_kv_heads * d_head" -> "n_heads // 4 * d_head"
""",
}
LENGTHS = {}
AXES = {
    "attention.scaled_dot_product_attention": """
one_mask_for_all_heads: "~mask" -> "~mask[:, :1]"
""",
    "vit.patchify": """
two_rows: "(rows height)" -> "(rows height)", "height=patch_size,\\n        width" -> "rows=2,\\n        width"
square: "width=patch_size" -> "columns=images.shape[-2] // patch_size"
""",
}
DTYPES = {
    "training.adam_steps": """
float32: "m, v = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0])" ->
  "gradients = gradients.float()\\n    m, v = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0])"
""",
    "training.label_smoothing": """
float64: "return shares" -> "return shares.double()"
""",
}
SMALL_AND_LARGE = {
    "training.masked_loss": """
at_least_1e_30: "log_softmax(dim=-1)" -> "softmax(dim=-1).clamp(min=1e-30).log()"
up_to_700: "logits.log_softmax" -> "logits.clamp(min=-700.0).nan_to_num().log_softmax", "return surprise[real].sum()" ->
  "return surprise[real].clamp(max=300).sum()"
""",
    "training.warmup_rate": """
zero_when_small: "return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)" ->
  "return round(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), 5)"
at_least_a_millionth: "return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)" ->
  "return max(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), 1e-4)"
""",
    "training.adam_steps": """
eps_of_pytorch: "+ eps" -> "+ 1e-8"
""",
    "efficient.merge_blocks": """
up_to_700: "torch.maximum(log_sum_a, log_sum_b)" -> "torch.tensor(700.0, dtype=torch.float64)"
""",
}
IDS = {
    "attention.padding_mask": """
four_and_three: "token_ids != pad_id" -> "(token_ids != 4) & (token_ids != 3)"
""",
    "decoder.greedy_decode": """
end_is_five: "newest == eos_id" -> "newest == 5"
start_is_one: "bos_id, None" -> "1, None"
""",
    "training.label_smoothing": """
three: "shares[:, pad_id]" -> "shares[:, 3]"
""",
    "training.masked_loss": """
four: "!= pad_id" -> "!= 4"
""",
    "variants.span_targets": """
from_ninety: "inputs.append(sentinel_ids[n_spans])" -> "inputs.append(90 + n_spans)"
""",
}
COUNTS = {
    "training.label_smoothing": """
five_others: "(vocab_size - 2)" -> "5"
""",
    "training.validation_loss": """
eleven_tokens: "/ n_tokens" -> "/ 11"
""",
    "vit.receptive_field": """
three_layers: "in layers:" -> "in layers[:3]:"
five_layers: "in layers:" -> "in layers[:5]:"
""",
}
SETTINGS = {
    "decoder.greedy_decode": """
nine_tokens: "< max_len" -> "< 9"
""",
    "transformer.next_merge": """
four_times: ">= at_least" -> ">= 4"
""",
    "training.adam_steps": """
nine_tenths: "beta1 * m + (1 - beta1) * gradient" -> "0.9 * m + 0.1 * gradient"
beta2_of_the_paper: "beta2 * v + (1 - beta2)" -> "0.98 * v + 0.02"
""",
    "training.label_smoothing": """
three_tenths: "1 - smoothing" -> "1 - 0.3"
""",
    "training.training_step": """
norm_of_one: "max_norm)" -> "1.0)"
""",
    "training.warmup_rate": """
warmup_4000: "warmup**-1.5" -> "4000**-1.5"
""",
    "variants.merged_low_rank": """
alpha_16: "alpha / rank" -> "16 / rank"
rank_two: "alpha / rank" -> "alpha / 2"
rank_three: "alpha / rank" -> "alpha / 3"
""",
}
KINDS = {
    "one width": WIDTHS,
    "one number of heads": HEADS,
    "one length": LENGTHS,
    "one number of axes": AXES,
    "one dtype": DTYPES,
    "numbers of one size": SMALL_AND_LARGE,
    "one id": IDS,
    "one count": COUNTS,
    "one setting": SETTINGS,
}
