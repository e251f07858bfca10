"""The families that grew out of the Transformer, each composed of the same parts; each is loaded on first use."""

from typing import Any

from ttutor.names import hand_out

_HOMES = {
    "AttentionSinks": "scores",
    "BERT": "bert",
    "BERTConfig": "bert",
    "BERTForMaskedLM": "bert",
    "BERTForPreTraining": "bert",
    "BiasedRouter": "experts",
    "CLIP": "clip",
    "CLIPConfig": "clip",
    "CorruptedSpans": "objectives",
    "DecoderBlock": "modern_decoder",
    "DistilledViT": "vit",
    "ExpertsConfig": "modern_decoder",
    "GPT": "gpt",
    "GPTConfig": "gpt",
    "IGNORE_ID": "objectives",
    "LatentAttention": "latent",
    "Llama": "llama",
    "LlamaConfig": "llama",
    "MaskedTokenHead": "heads",
    "MaskedTokens": "objectives",
    "MixtureOfExperts": "experts",
    "ModernBERT": "modern_bert",
    "ModernBERTConfig": "modern_bert",
    "ModernBERTForMaskedLM": "modern_bert",
    "ModernDecoder": "modern_decoder",
    "ModernDecoderConfig": "modern_decoder",
    "NormAcrossHeads": "modern_decoder",
    "OneText": "modern_decoder.one_text",
    "PermutationMasks": "objectives",
    "Pooler": "heads",
    "PreTrainingLogits": "bert",
    "Quantised": "quantised",
    "ReplacedTokens": "objectives",
    "Router": "experts",
    "Routing": "experts",
    "SentencePair": "objectives",
    "SoftCap": "scores",
    "T5": "t5",
    "T5Block": "t5",
    "T5Config": "t5",
    "T5Stack": "t5",
    "TransformerForSequenceClassification": "heads",
    "TransformerForTokenClassification": "heads",
    "ViT": "vit",
    "ViTConfig": "vit",
    "VisionEncoder": "vit",
    "balance_loss": "experts",
    "can_be_fast": "modern_decoder.one_text",
    "contrastive_loss": "clip",
    "factorisation_order": "objectives",
    "first_token": "heads",
    "grad_cam": "gradcam",
    "has_eight_bits": "modern_decoder.one_text",
    "initialise_normal": "heads",
    "interpolate_positions": "patches",
    "join_sentences": "objectives",
    "mask_tokens": "objectives",
    "mean_over_tokens": "heads",
    "n_active_parameters": "experts",
    "next_sentence_pairs": "objectives",
    "patchify": "patches",
    "permutation_masks": "objectives",
    "prepared": "modern_decoder.one_text",
    "quantise": "quantised",
    "record_routing": "experts",
    "repeat_layer": "objectives",
    "replace_tokens": "objectives",
    "restore_spans": "objectives",
    "sentence_order_pairs": "objectives",
    "soft_cap": "scores",
    "span_corruption": "objectives",
    "text_infilling": "objectives",
    "unpatchify": "patches",
    "with_image_size": "vit",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return hand_out(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return __all__
