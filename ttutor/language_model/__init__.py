"""A language model of your own: a GPT trained on one text, from the tokenizer to its samples.

`TextTraining` is what ``ttutor gpt my.txt`` runs; ``ttutor gpt --prompt`` reads its folder by `load_language_model` and
writes by `continue_text`. Everything is loaded on first use, so that the command answers at once.
"""

from ttutor.names import front_door

_HOMES = {
    "LanguageModel": "model_folder",
    "SIZES": "text_training",
    "Standing": "text_training",
    "TextTraining": "text_training",
    "check_settings": "text_training",
    "continue_text": "model_folder",
    "load_language_model": "model_folder",
    "save_language_model": "model_folder",
    "vocabulary_for": "text_training",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
