"""The translator: answers, alignments, evaluation, the commands around it, and the one that ships with the package.

from ttutor.translation import load_default

print(load_default()("A man rides a horse.").text)

Everything is loaded on first use, so that a command's help stays quick.
"""

from ttutor.names import front_door

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

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
