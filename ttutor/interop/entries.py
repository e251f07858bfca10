"""A published config as it stands: what it leaves out is its family's default, and what nobody here knows is refused.

Three lists say what an entry is. `ttutor.interop.defaults` has those that decide what a model computes. `UNUSED` has
those that decide nothing of that: how weights began, how text is generated, what is dropped in training. `OTHER_NAMES`
has what older configs call them. Whatever stands in none of them might change the computation, so it is refused.
"""

from collections.abc import Mapping
from typing import Any

from ttutor.errors import SettingError
from ttutor.interop.defaults import DEFAULTS

GENERAL = frozenset(
    """
    _attn_implementation _attn_implementation_autoset _commit_hash _experts_implementation _name_or_path architectures
    attn_implementation auto_map bad_words_ids begin_suppress_tokens bos_token_id cache_implementation
    chunk_size_feed_forward cls_token_id decoder_start_token_id diversity_penalty do_sample dtype early_stopping
    encoder_no_repeat_ngram_size eos_token_id experts_implementation exponential_decay_length_penalty finetuning_task
    forced_bos_token_id forced_decoder_ids forced_eos_token_id gradient_checkpointing id2label initializer_factor
    initializer_range is_encoder_decoder label2id length_penalty mask_token_id max_length max_new_tokens min_length
    model_type no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences output_attentions
    output_hidden_states output_past output_scores pad_token_id prefix problem_type remove_invalid_values
    repetition_penalty return_dict return_dict_in_generate sep_token_id suppress_tokens task_specific_params temperature
    tf_legacy_loss tokenizer_class top_k top_p torch_dtype torchscript transformers_version typical_p unsloth_fixed
    unsloth_version use_bfloat16 use_cache use_return_dict
    """.split()
)
"""Entries of every family that change nothing of what a model computes; some are read for other purposes."""

ABSENT: Mapping[str, Any] = {
    "add_cross_attention": False,
    "pruned_heads": {},
    "quantization_config": None,
    "tie_encoder_decoder": False,
}
"""Entries of every family that ours have not, with the value that says so."""

DECODER_UNUSED = """
    attention_dropout aux_loss_alpha ep_size initial_context_length is_decoder max_window_layers num_mtp_layers
    num_nextn_predict_layers output_router_logits pretraining_tp router_aux_loss_coef router_jitter_noise seq_aux
    _sliding_window_pattern
"""
VISION_UNUSED = """
    _out_features _out_indices apply_layernorm attention_probs_dropout_prob encoder_stride out_features out_indices
    reshape_hidden_states stage_names use_mask_token
"""
SEQ2SEQ_UNUSED = """
    activation_dropout add_bias_logits attention_dropout classif_dropout classifier_dropout decoder_layerdrop
    encoder_layerdrop extra_pos_embeddings force_bos_token_to_be_generated init_std save_step
"""
UNUSED: Mapping[str, frozenset[str]] = {
    "decoder": frozenset(DECODER_UNUSED.split()),
    "vision": frozenset(VISION_UNUSED.split()),
    "seq2seq": frozenset(SEQ2SEQ_UNUSED.split()),
    "bert": frozenset(
        """
        attention_probs_dropout_prob directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
        pooler_size_per_head pooler_type
        """.split()
    ),
    "gpt2": frozenset(
        """
        attn_pdrop embd_pdrop n_ctx reorder_and_upcast_attn summary_activation summary_first_dropout
        summary_proj_to_labels summary_type summary_use_proj
        """.split()
    ),
    "t5": frozenset("classifier_dropout is_decoder n_positions".split()),
    "modernbert": frozenset(
        """
        attention_dropout classifier_dropout classifier_pooling deterministic_flash_attn embedding_dropout
        initializer_cutoff_factor layer_norm_eps mlp_dropout reference_compile repad_logits_with_grad
        sparse_pred_ignore_index sparse_prediction
        """.split()
    ),
    "clip": frozenset(["logit_scale_init_value"]),
    "tower": frozenset("attention_dropout dropout projection_dim".split()),
}
"""Entries of single kinds of model that change nothing of what they compute."""

KINDS = {
    **dict.fromkeys(("vit", "deit", "dinov2", "dinov2_with_registers"), "vision"),
    **dict.fromkeys(("marian", "pegasus"), "seq2seq"),
    **dict.fromkeys(("bert", "gpt2", "t5", "modernbert", "clip")),
    **dict.fromkeys(("clip_text_model", "clip_vision_model"), "tower"),
}
ROTARY = {"rope_theta": None, "rope_scaling": None}
OLDER: Mapping[str, Mapping[str, Any]] = {
    "bert": {"position_embedding_type": "absolute"},
    "qwen3": {"sliding_window": None},
    "qwen3_moe": {"sliding_window": None},
    "gemma2": {"hidden_act": None},
    "gemma3_text": {"hidden_act": None, "sliding_window_pattern": 6, "rope_local_base_freq": None},
    "deepseek_v3": {
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "moe_layer_freq": 1,
        "head_dim": None,
        "qk_head_dim": None,
    },
    "marian": {
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
    },
    "pegasus": {
        "normalize_before": True,
        "normalize_embedding": False,
        "add_final_layer_norm": True,
        "static_position_embeddings": True,
    },
    "t5": {"tie_word_embeddings": True, "scale_decoder_outputs": None, "dense_act_fn": None, "is_gated_act": None},
    "modernbert": {
        "position_embedding_type": "absolute",
        "global_attn_every_n_layers": 3,
        "global_rope_theta": None,
        "local_rope_theta": None,
    },
    "clip": {"text_config_dict": None, "vision_config_dict": None},
}
"""Entries that configs have, or had, besides those of the family today, and what it means to leave them out."""

OTHER_NAMES: Mapping[str, Mapping[str, str]] = {
    "gpt2": {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    **dict.fromkeys(
        ("marian", "pegasus"),
        {
            "hidden_size": "d_model",
            "num_attention_heads": "encoder_attention_heads",
            "num_hidden_layers": "encoder_layers",
        },
    ),
    "t5": {
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    },
    "mixtral": {"num_experts": "num_local_experts"},
    "gpt_oss": {"num_experts": "num_local_experts", "experts_per_token": "num_experts_per_tok"},
    "qwen3_moe": {"num_local_experts": "num_experts"},
    "deepseek_v3": {"num_local_experts": "n_routed_experts", "num_experts": "n_routed_experts"},
}
"""Names that `transformers` takes for others, by family."""

EMPTY = {
    "num_key_value_heads": ("llama", "mistral", "mixtral", "qwen3", "qwen3_moe", "olmo2", "deepseek_v3", "gpt_oss"),
    "head_dim": ("llama", "mistral", "mixtral", "qwen3_moe", "gpt_oss"),
    "sliding_window": ("mistral", "mixtral"),
    "final_logit_softcapping": ("gemma2", "gemma3_text"),
    "attn_logit_softcapping": ("gemma2", "gemma3_text"),
    "q_lora_rank": ("deepseek_v3",),
}
"""Entries whose null says something of its own, though their default is another."""


def completed(config: Mapping[str, Any], model_type: str | None = None) -> dict[str, Any]:
    """A config of theirs with all that its family leaves to defaults.

    Args:
        config: as it stands in the file.
        model_type: the family, where the config is a part of another that names it.

    Raises:
        SettingError: an entry is not known here, or is null where that says nothing.
    """
    family = config["model_type"] if model_type is None else model_type
    names, defaults = OTHER_NAMES.get(family, {}), DEFAULTS[family]
    given = {name: value for name, value in config.items() if name not in names}
    given |= {names[name]: value for name, value in config.items() if name in names}
    known = {**ABSENT, **OLDER.get(family, {}), **(ROTARY if "rope_parameters" in defaults else {}), **defaults}
    unused = GENERAL | UNUSED[_kind(family)]
    strangers = sorted(given.keys() - known.keys() - unused)
    if strangers:
        raise SettingError(
            f"this {family} config has entries that are not known here and may change what the model computes: "
            f"{', '.join(strangers)}; take out what changes nothing"
        )
    empty = [name for name in defaults if given.get(name, 0) is None and not _may_be_null(family, name)]
    if empty:
        raise SettingError(f"this {family} config says null for {', '.join(empty)}, which has to have a value")
    return {**known, **given}


def _kind(family: str) -> str:
    return KINDS.get(family, "decoder") or family


def _may_be_null(family: str, name: str) -> bool:
    return DEFAULTS[family][name] is None or family in EMPTY.get(name, ())
