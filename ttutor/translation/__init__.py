"""The translator: answers, alignments, evaluation, the commands around it, and the one that ships with the package.

from ttutor.translation import load_default

print(load_default()("A man rides a horse.").text)

Everything is loaded on first use, so that a command's help stays quick.
"""

from typing import Any

from ttutor.names import hand_out

_HOMES = {
    "CrossAttention": "alignment",
    "DecoderGraph": "export.onnx",
    "EncoderGraph": "export.onnx",
    "Engine": "engine",
    "EngineTranslator": "translator",
    "Evaluation": "evaluation",
    "FORMS": "export",
    "Form": "export.exporting",
    "Link": "alignment",
    "OnnxModel": "export.onnx",
    "OwnEngine": "engine",
    "PackedTranslator": "packed",
    "Samples": "samples",
    "Step": "what_if",
    "Translation": "answer",
    "Translator": "translator",
    "WhatIf": "what_if",
    "cross_attention": "alignment",
    "evaluate": "evaluation",
    "exact_match": "evaluation",
    "export_translator": "export.exporting",
    "head_means": "packed",
    "is_exported": "export",
    "known_words": "packed",
    "load_default": "packed",
    "load_exported": "export.exporting",
    "load_packed": "packed",
    "rank": "engine",
    "score_tokenizer": "evaluation",
    "sentence_chrf": "evaluation",
    "shown": "samples",
    "spread_by_length": "samples",
    "switch_names": "what_if",
    "switched_off": "what_if",
    "train_translator": "own_text",
    "word_number": "packed",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return hand_out(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return __all__
