"""Answers that are right for some inputs and wrong in general: each is a solution with one number of its own.

By kind, and for each exercise in the form of `Exercise.mutations`, without sentences. They pass as long as the inputs
happen to have that number, so that cases have to draw it.
"""

from __future__ import annotations

WIDTHS = {
    "recurrence.read_words": """
eleven: "w_hidden.shape[0]" -> "11"
""",
    "recurrence.lstm_gates": """
five: 'rearrange(affine, "batch (gates d_model) -> gates batch d_model", gates=4)' -> "affine.split(5, dim=-1)"
eight: 'rearrange(affine, "batch (gates d_model) -> gates batch d_model", gates=4)' -> "affine.split(8, dim=-1)"
""",
    "attention.scaled_dot_product_attention": """
root_of_eight: "math.sqrt(query.shape[-1])" -> "math.sqrt(8)"
root_of_64: "math.sqrt(query.shape[-1])" -> "8.0"
width_of_values: "math.sqrt(query.shape[-1])" -> "math.sqrt(value.shape[-1])"
""",
    "attention.causal_attention": """
root_of_eight: "math.sqrt(query.shape[-1])" -> "math.sqrt(8)"
""",
    "attention.query_jacobian": """
root_of_four: "1 / math.sqrt(len(query))" -> "1 / 2"
""",
    "attention.train_head": """
root_of_nine: "scale * " -> "(1 if scale == 1 else 1 / 3) * "
""",
    "attention.invisible_part": """
nine_are_seen: "int((sizes > 1e-9 * sizes.max()).sum())" -> "9"
all_are_seen: "int((sizes > 1e-9 * sizes.max()).sum())" -> "len(stacked)"
""",
    "multihead.split_heads": """
eight: "(n_heads, -1)" -> "(-1, 8)"
""",
    "multihead.loaded_heads": """
root_of_four: "math.sqrt(q.shape[-1])" -> "2.0"
root_of_five: "math.sqrt(q.shape[-1])" -> "math.sqrt(5)"
""",
    "multihead.grouped_attention": """
root_of_nine: "math.sqrt(query.shape[-1])" -> "3.0"
""",
    "multihead.multi_head_attention": """
root_of_eight: "math.sqrt(q.shape[-1])" -> "math.sqrt(8)"
""",
    "multihead.subspace_overlap": """
three: "svdvals(basis_one.T @ basis_other)" -> "svdvals(basis_one.T @ basis_other)[:3]"
""",
    "positions.sinusoidal_encoding": """
width_512: "/ d_model)" -> "/ 512)"
width_eight: "/ d_model)" -> "/ 8)"
""",
    "positions.rotary": """
width_64: "/ d_head)" -> "/ 64)"
""",
    "positions.rotary_scores": """
root_of_twelve: "math.sqrt(query.shape[-1])" -> "math.sqrt(12)"
""",
    "positions.shift_matrix": """
width_eight: "/ d_model)" -> "/ 8)"
""",
    "encoder.layer_norm": """
width_eight: "square().mean(dim=-1, keepdim=True)" -> "square().sum(dim=-1, keepdim=True) / 8"
""",
    "transformer.embedding_scale": """
root_of_512: "math.sqrt(table.shape[-1])" -> "math.sqrt(512)"
root_of_nine: "math.sqrt(table.shape[-1])" -> "3.0"
root_of_seven: "math.sqrt(table.shape[-1])" -> "7**0.5"
""",
    "training.warmup_rate": """
width_512: "d_model**-0.5" -> "512**-0.5"
""",
    "variants.cache_bytes": """
width_128: "n_kv_heads * d_head" -> "n_kv_heads * 128"
width_eight: "n_kv_heads * d_head" -> "n_kv_heads * 8"
""",
    "variants.gated_network": """
eight: "chunk(2, dim=-1)" -> "split(8, dim=-1)"
""",
    "efficient.block_gradients": """
root_of_eight: "1 / math.sqrt(query.shape[-1])" -> "1 / math.sqrt(8)"
""",
}
HEADS = {
    "multihead.split_heads": """
three_and_two: "(n_heads, -1)" -> "(2 if vectors.shape[-1] == 14 else 3, -1)"
""",
    "multihead.loaded_heads": """
three: "(n_heads, -1)" -> "(3, -1)"
two: "(n_heads, -1)" -> "(2, -1)"
""",
    "multihead.head_contributions": """
three: "heads=context.shape[1]" -> "heads=3"
four: "heads=context.shape[1]" -> "heads=4"
""",
    "multihead.grouped_attention": """
two: "kv_heads=key.shape[1]" -> "kv_heads=2"
groups_of_three: "kv_heads=key.shape[1]" -> "group=3"
""",
    "multihead.multi_head_attention": """
four: "heads=n_heads" -> "heads=4"
""",
    "positions.alibi_bias": """
eight: "torch.arange(1, n_heads + 1) / n_heads" -> "torch.arange(1, n_heads + 1) / 8"
halves: "2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)" -> "2.0 ** -torch.arange(1.0, n_heads + 1)"
""",
    "encoder.encoder_layer": """
three: "heads=n_heads" -> "heads=3"
two: "heads=n_heads" -> "heads=2"
""",
    "decoder.cross_attention": """
three: "    split = " -> "    n_heads = 3\\n    split = "
four: "    split = " -> "    n_heads = 4\\n    split = "
""",
    "inside.without_head": """
head_two: "[:, head] = typical[:, head]" -> "[:, 2] = typical[:, 2]"
head_one: "[:, head] = typical[:, head]" -> "[:, 1] = typical[:, 1]"
""",
    "efficient.crossover": """
three: "n_kv_heads * d_head" -> "3 * d_head"
groups_of_four: "n_kv_heads * d_head" -> "n_heads // 4 * d_head"
""",
    "variants.expert_shares": """
two_chosen: "topk(n_chosen" -> "topk(2"
three_chosen: "topk(n_chosen" -> "topk(3"
""",
}
LENGTHS = {
    "recurrence.read_words": """
four_words: "words.unbind(dim=1)" -> "words[:, :4].unbind(dim=1)"
""",
    "recurrence.scan_rounds": """
eleven: "reach < len(added)" -> "reach < 11"
""",
    "attention.causal_mask": """
table_of_1024: "key_position = torch.arange(n_keys)" -> "key_position = torch.arange(min(n_keys, 1024))"
table_of_2048: "key_position = torch.arange(n_keys)" -> "key_position = torch.arange(min(n_keys, 2048))"
window_of_512: "return key_position" -> "return (key_position > n_keys - 512) & (key_position"
  , "queries 1\\")" -> "queries 1\\"))"
""",
    "attention.causal_attention": """
two_more_keys: "causal_mask(query.shape[0], key.shape[0])" -> "torch.ones(len(query), len(key)).tril(2).bool()"
""",
    "positions.sinusoidal_encoding": """
table_of_512: "waves[:, :d_model]" -> "waves[:512, :d_model]"
table_of_2048: "waves[:, :d_model]" -> "waves[:2048, :d_model]"
stops_at_2048: "torch.arange(max_len, dtype=torch.float64)" ->
  "torch.arange(max_len, dtype=torch.float64).clamp(max=2047)"
begins_again: "torch.arange(max_len, dtype=torch.float64)" -> "torch.arange(max_len, dtype=torch.float64) % 1024"
""",
    "positions.rotary": """
stops_at_31: "rearrange(positions," -> "rearrange(positions.clamp(max=31),"
stops_at_512: "rearrange(positions," -> "rearrange(positions.clamp(max=511),"
stops_at_2048: "rearrange(positions," -> "rearrange(positions.clamp(max=2047),"
begins_again: "rearrange(positions," -> "rearrange(positions % 2048,"
""",
    "positions.alibi_bias": """
stops_at_20: ".abs()" -> ".abs().clamp(max=20)"
stops_at_31: ".abs()" -> ".abs().clamp(max=31)"
""",
    "positions.shift_matrix": """
stops_at_20: "offset * 10000.0" -> "min(offset, 20) * 10000.0"
stops_at_1024: "offset * 10000.0" -> "min(offset, 1024) * 10000.0"
""",
    "positions.rotary_scores": """
three_are_kept: "torch.arange(key.shape[-2] - query.shape[-2], key.shape[-2])" -> "3 + torch.arange(query.shape[-2])"
""",
    "positions.position_table": """
five_tokens: "self.table[: hidden.shape[1]]" -> "self.table[:5]"
""",
    "decoder.key_value_cache": """
five_are_kept: "diagonal=n_cached" -> "diagonal=5 if n_cached else 0"
first_eight_places: "position_table[n_cached : n_cached + n_new]" ->
  "position_table[torch.arange(n_cached, n_cached + n_new).clamp(max=7)]"
""",
    "training.teacher_forcing": """
seven: "[:, :-1]" -> "[:, :7]"
""",
    "efficient.rolling_slots": """
eight: "% window" -> "% 8"
""",
    "inside.twin_score": """
twelve: "in enumerate(token_ids.tolist())" -> "in enumerate(token_ids.tolist()[:12])"
""",
    "assistant.sequence_log_probability": """
first_seven: "is_answer[:, 1:]" -> "(is_answer & (torch.arange(is_answer.shape[1]) < 7))[:, 1:]"
""",
    "assistant.answer_loss_of_parts": """
eleven_tokens: "surprise[is_answer].sum()" -> "surprise.flatten()[:11][is_answer.flatten()[:11]].sum()",
  "int(is_answer.sum())" -> "int(is_answer.flatten()[:11].sum())"
""",
}
AXES = {
    "attention.softmax": r"""
at_most_two: "    powers = " -> "    scores = scores if scores.ndim < 3 else scores.flatten(0, -2)\n    powers = "
at_most_three: "    powers = " -> "    scores = scores if scores.ndim < 4 else scores.flatten(0, -3)\n    powers = "
at_most_four: "    powers = " -> "    scores = scores if scores.ndim < 5 else scores.flatten(0, -4)\n    powers = "
first_or_last: "    powers = " -> "    dim = dim if dim == 0 else -1\n    powers = "
never_from_the_end: "    powers = " -> "    dim = dim if dim >= 0 else -1\n    powers = "
""",
    "encoder.layer_norm": """
second_or_third: "hidden.mean(dim=-1" -> "hidden.mean(dim=min(hidden.ndim - 1, 2)",
  "square().mean(dim=-1" -> "square().mean(dim=min(hidden.ndim - 1, 2)"
third_from_the_front: "hidden.mean(dim=-1" -> "hidden.mean(dim=2", "square().mean(dim=-1" -> "square().mean(dim=2"
all_but_two: "hidden.mean(dim=-1" -> "hidden.mean(dim=tuple(range(2, hidden.ndim)) or 1",
  "square().mean(dim=-1" -> "square().mean(dim=tuple(range(2, hidden.ndim)) or 1"
""",
    "decoder.top_p": r"""
one: "    probabilities = " -> "    logits = logits.flatten()\n    probabilities = "
at_most_two: "    probabilities = " ->
  "    logits = logits if logits.ndim < 3 else logits.flatten(0, -2)\n    probabilities = "
first_row: "(sum_before < p)" -> "(sum_before < p)[:1]"
""",
    "attention.scaled_dot_product_attention": """
one_mask_for_all_heads: "~mask" -> "~mask[:, :1]"
""",
    "vit.patchify": """
two_rows: "(rows height)" -> "(rows height)", "height=patch_size,\\n        width" -> "rows=2,\\n        width"
square: "width=patch_size" -> "columns=images.shape[-2] // patch_size"
""",
    "vit.resized_positions": """
three_rows: "rows=old_side" -> "rows=3"
five_rows: "size=(side, side)" -> "size=(5, 5)"
""",
    "vit.deletion_curve": """
three_pixels: "patch_size = image.shape[-1] // scores.shape[-1]" -> "patch_size = 3"
two_rows: "n_rows=len(scores)" -> "n_rows=2"
""",
}
DTYPES = {
    "recurrence.read_words": """
float32: ", dtype=words.dtype" -> ""
""",
    "recurrence.forget_bias": """
float32: "half_life)" -> "half_life.float())", "return torch.log(forget / (1 - forget))" ->
  "return torch.log(forget / (1 - forget)).double()"
""",
    "attention.softmax": """
float32: "return powers" -> "powers = powers.float()\\n    return powers"
""",
    "multihead.multi_head_attention": """
float32_and_back: ".softmax(dim=-1)" -> ".float().softmax(dim=-1).to(hidden.dtype)"
""",
    "positions.sinusoidal_encoding": """
float16_between: ".float()" -> ".half().float()"
float64: ".float()" -> ""
""",
    "positions.shift_matrix": """
float32: "d_model, d_model, dtype=torch.float64" -> "d_model, d_model"
""",
    "transformer.embedding_scale": """
float32: "return table[token_ids]" -> "return table[token_ids].float()"
""",
    "training.adam_steps": """
float32: "m, v = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0])" ->
  "gradients = gradients.float()\\n    m, v = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0])"
""",
    "training.label_smoothing": """
float64: "return shares" -> "return shares.double()"
""",
}
SMALL_AND_LARGE = {
    "recurrence.forget_bias": """
up_to_300: "0.5 ** (1 / half_life)" -> "0.5 ** (1 / half_life.clamp(max=300))"
for_long_ones: "torch.log(forget / (1 - forget))" -> "half_life.log() + 0.3665"
""",
    "attention.softmax": """
up_to_500: "scores.amax(dim=dim, keepdim=True)" -> "500.0"
rounded: "return powers / powers.sum(dim=dim, keepdim=True)" ->
  "return (powers / powers.sum(dim=dim, keepdim=True)).round(decimals=4)"
""",
    "attention.causal_attention": """
a_thousand_below: "-torch.inf" -> "-1000.0"
""",
    "encoder.layer_norm": """
at_least_a_thousandth: "torch.sqrt(variance + eps)" -> "torch.sqrt(variance.clamp(min=1e-3) + eps)"
""",
    "decoder.future_leaks": """
above_a_hundredth: "> 1e-9" -> "> 1e-2"
""",
    "decoder.top_p": """
up_to_88: "logits / temperature" -> "logits.clamp(max=88) / temperature"
""",
    "training.masked_loss": """
at_least_1e_30: "log_softmax(dim=-1)" -> "softmax(dim=-1).clamp(min=1e-30).log()"
up_to_700: "logits.log_softmax" -> "logits.clamp(min=-700.0).nan_to_num().log_softmax", "return surprise[real].sum()" ->
  "return surprise[real].clamp(max=300).sum()"
""",
    "training.sentence_perplexity": """
likely_tokens: "probabilities.log()" -> "probabilities.clamp(min=0.1).log()"
by_the_product: "-probabilities.log().mean().item()" ->
  "-probabilities.prod().clamp(min=1e-300).log().item() / len(probabilities)"
""",
    "training.smoothed_gradient": """
up_to_500: "logits.softmax" -> "logits.clamp(max=500).softmax"
""",
    "training.smoothing_for_floor": """
below_one_half: "low, high = 0.0, 1.0" -> "low, high = 0.0, 0.5"
to_three_digits: "> 1e-9" -> "> 1e-3"
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
    "inside.lens_readings": """
eps_of_a_thousandth: "1e-5" -> "1e-3"
""",
}
IDS = {
    "attention.padding_mask": """
four_and_three: "token_ids != pad_id" -> "(token_ids != 4) & (token_ids != 3)"
""",
    "decoder.decoder_pair": """
end_is_three: "= eos_id" -> "= 3"
start_is_two: "bos_id)" -> "2)"
padding_is_zero: "!= pad_id" -> "!= 0"
room_is_zero: "[:, :1], pad_id" -> "[:, :1], 0"
""",
    "decoder.greedy_decode": """
end_is_five: "newest == eos_id" -> "newest == 5"
start_is_one: "bos_id, None" -> "1, None"
""",
    "transformer.three_masks": """
nine: "source_ids != pad_id" -> "source_ids != 9"
targets_end_in_nine: "target_ids != pad_id" -> "target_ids != 9"
""",
    "training.label_smoothing": """
three: "shares[:, pad_id]" -> "shares[:, 3]"
""",
    "training.masked_loss": """
four: "!= pad_id" -> "!= 4"
""",
    "variants.masked_labels": """
four: "= mask_id" -> "= 4"
""",
    "variants.replaced_labels": """
three: "== pad_id" -> "== 3"
zero: "== pad_id" -> "== 0"
""",
    "variants.span_targets": """
from_ninety: "inputs.append(sentinel_ids[n_spans])" -> "inputs.append(90 + n_spans)"
""",
    "transformer.systematic_split": """
remainder_one: "== remainder" -> "== 1"
""",
}
COUNTS = {
    "recurrence.read_words": """
three_sentences: "words.shape[0]" -> "3"
""",
    "recurrence.scan_rounds": """
four_rounds: "while reach < len(added):" -> "for _ in range(4):"
five_rounds: "while reach < len(added):" -> "for _ in range(5):"
""",
    "attention.train_head": """
six_steps: "range(n_steps)" -> "range(6)"
five_steps: "range(n_steps)" -> "range(5)"
""",
    "assistant.sequence_log_probability": """
four_rows: "0.0).sum(dim=1)" -> "0.0)[:4].sum(dim=1)"
six_words: "logits[:, :-1]" -> "logits[:, :-1, :6]", "token_ids[:, 1:, None]" -> "token_ids[:, 1:, None].clamp(max=5)"
""",
    "assistant.preference_steps": """
twelve_steps: "range(n_steps)" -> "range(12)"
five_prompts: "(beta * margin).mean()" -> "(beta * margin).sum() / 5"
""",
    "assistant.solved_in_k": """
ten_problems: "len(shares)" -> "10"
ten_samples: "math.comb(n_samples, k)" -> "math.comb(10, k)"
""",
    "assistant.answer_loss_of_parts": """
four_parts: "in parts:" -> "in parts[:4]:"
fourteen_tokens: "total / count if" -> "total / 14 if"
""",
    "encoder.layer_stack": """
three_layers: "range(n_layers)" -> "range(3)"
six_layers: "range(n_layers)" -> "range(6)"
""",
    "encoder.lost_stream": """
three_sublayers: "in sublayers:" -> "in sublayers[:3]:"
""",
    "decoder.accepted_drafts": """
five_drafts: "return len(drafts), wanted" -> "return 5, wanted"
sixth_row: "wanted[-1]" -> "wanted[5]"
""",
    "training.accumulated_gradient": """
three_parts: "in parts:\\n        logits" -> "in parts[:3]:\\n        logits"
""",
    "training.distillation_loss": """
six_positions: "divergence.mean()" -> "divergence.sum() / 6"
""",
    "training.label_smoothing": """
five_others: "(vocab_size - 2)" -> "5"
""",
    "training.smoothed_gradient": """
seven_tokens: "epsilon / vocab_size" -> "epsilon / 7"
four_positions: "/ n_positions" -> "/ 4"
""",
    "training.validation_loss": """
eleven_tokens: "/ n_tokens" -> "/ 11"
""",
    "transformer.tied_embeddings": """
a_hundred_tokens: "nn.Embedding(vocab_size" -> "nn.Embedding(100"
""",
    "variants.cache_bytes": """
one_text: "2 * batch" -> "2"
seven_texts: "2 * batch" -> "2 * 7"
""",
    "vit.class_token": """
three_images: "batch=len(patches)" -> "batch=3"
one_image: "batch=len(patches)" -> "batch=1"
""",
    "vit.class_rollout": """
three_layers: "reduce(weights" -> "reduce(weights[:3]"
""",
    "vit.receptive_field": """
three_layers: "in layers:" -> "in layers[:3]:"
five_layers: "in layers:" -> "in layers[:5]:"
""",
    "inside.honest_probe": """
three_labels: "one_hot(labels, n_labels)" -> "one_hot(labels % 3, n_labels)"
""",
    "inside.without_head": """
six_texts: ".mean(dim=(0, 1))" -> ".sum(dim=(0, 1)) / 42"
""",
    "inside.written_fact": """
forty_keys: "/ len(other_keys)" -> "/ len(other_keys) + 0.02 * torch.eye(other_keys.shape[1]).double()"
""",
}
SETTINGS = {
    "assistant.preference_steps": """
half: "beta * margin" -> "0.5 * margin"
rate_of_six: "rate * gradient" -> "6 * gradient"
""",
    "assistant.solved_in_k": """
three_tries: "n_samples - count, k" -> "n_samples - count, 3"
four_tries: "n_samples - count, k" -> "n_samples - count, 4"
""",
    "attention.train_head": """
half: "rate * d_query" -> "0.5 * d_query", "rate * d_key" -> "0.5 * d_key"
""",
    "encoder.dropout": """
a_tenth: "self.p = p" -> "self.p = 0.1"
three_tenths: "self.p = p" -> "self.p = 0.3"
grows_by_three_tenths: "(1 - self.p)" -> "0.7"
""",
    "encoder.layer_norm": """
eps_by_size: "variance + eps" -> "variance + (1e-3 if variance.max() < 1 else 1e-5)"
""",
    "decoder.greedy_decode": """
nine_tokens: "< max_len" -> "< 9"
""",
    "decoder.top_p": """
three_quarters: "(sum_before < p)" -> "(sum_before < 0.75)"
temperature_1_7: "logits / temperature" -> "logits / (1.7 if temperature != 1 else 1.0)"
""",
    "transformer.next_merge": """
four_times: ">= at_least" -> ">= 4"
""",
    "transformer.systematic_split": """
every_third: "% every" -> "% 3"
every_fourth: "% every" -> "% 4"
""",
    "training.adam_steps": """
nine_tenths: "beta1 * m + (1 - beta1) * gradient" -> "0.9 * m + 0.1 * gradient"
beta2_of_the_paper: "beta2 * v + (1 - beta2)" -> "0.98 * v + 0.02"
""",
    "training.distillation_loss": """
times_nine: "return temperature**2 *" -> "return 9 *"
three_or_a_half: "return temperature**2 *" -> "return (9 if temperature > 1 else 0.25) *"
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
    "variants.cache_bytes": """
window_13: "min(n_tokens, window)" -> "min(n_tokens, 13)"
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
