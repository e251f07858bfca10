"""A language model of your own: a GPT trained on one text, from the tokenizer to its samples.

`TextTraining` is what ``ttutor gpt my.txt`` runs; ``ttutor gpt --prompt`` reads its folder by `load_language_model` and
writes by `continue_text`. Everything is loaded on first use, so that the command answers at once.
"""

from ttutor.names import hand_out

_HOMES = {
    "LanguageModel": "model_folder",
    "SIZES": "text_training",
    "Standing": "text_training",
    "TextTraining": "text_training",
    "continue_text": "model_folder",
    "load_language_model": "model_folder",
    "save_language_model": "model_folder",
    "vocabulary_for": "text_training",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    return hand_out(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return __all__
