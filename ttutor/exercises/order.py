"""The order in which exercises stand in the book, which numbers them; a test holds it to the chapters."""

ORDER = {
    "recurrence": "read_words lstm_gates forget_bias - look_back_weights scan_rounds -",
    "attention": (
        "weights_by_hand softmax causal_mask padding_mask scaled_dot_product_attention causal_attention "
        "query_jacobian train_head - invisible_part outgrown_mask -"
    ),
    "multihead": (
        "split_heads multi_head_attention loaded_heads head_contributions - grouped_attention subspace_overlap -"
    ),
    "positions": "position_table sinusoidal_encoding alibi_bias rotary shift_matrix rotary_scores - -",
    "encoder": "layer_norm folded_norm layer_stack dropout lost_stream encoder_layer batch_mates - -",
    "decoder": "decoder_pair cross_attention top_p greedy_decode future_leaks - key_value_cache accepted_drafts -",
    "transformer": "embedding_scale systematic_split next_merge count_parameters tied_embeddings three_masks - -",
    "training": (
        "sentence_perplexity teacher_forcing smoothed_gradient label_smoothing masked_loss low_loss "
        "accumulated_gradient smoothing_for_floor adam_steps warmup_rate training_step validation_loss "
        "plan_batches distillation_loss -"
    ),
    "variants": (
        "cache_bytes replaced_labels gated_network expert_shares merged_low_rank masked_labels span_targets - -"
    ),
    "vit": "patchify class_token receptive_field - class_rollout resized_positions deletion_curve -",
    "efficient": "crossover window_entries merge_blocks linear_step tell_exact rolling_slots - block_gradients -",
    "inside": "without_head lens_readings twin_score honest_probe written_fact - -",
    "assistant": (
        "answer_targets sequence_log_probability preference_steps advantages answer_loss_of_parts lost_labels "
        "solved_in_k -"
    ),
}
"""Names by chapter; a dash is an exercise on paper, which `check` does not judge."""


def number(exercise_id: str) -> str:
    """Return the number of an exercise in the book, or nothing for one that does not stand there.

    >>> number("attention.softmax"), number("attention.of_my_own")
    ('2.2', '')
    """
    chapter, _, name = exercise_id.partition(".")
    names = ORDER.get(chapter, "").split()
    return f"{list(ORDER).index(chapter) + 1}.{names.index(name) + 1}" if name in names else ""
