"""Text to learn from: a small grammar, data sets and files; how they are fetched and read."""

from ttutor.names import front_door

_HOMES = {
    "Corpus": "corpus",
    "DataSet": "datasets",
    "KnownLanguage": "known_language",
    "MULTI30K": "datasets",
    "animal_sentences": "animals",
    "data_root": "datasets",
    "draw_sentence": "embedded",
    "embedded_corpus": "corpus",
    "embedded_sentences": "embedded",
    "fetch_dataset": "fetch",
    "file_corpus": "corpus",
    "find_dataset": "datasets",
    "held_out_pairs": "embedded",
    "hold_out": "corpus",
    "known_dataset": "datasets",
    "pairs_corpus": "corpus",
    "pairs_of": "embedded",
    "read_aligned": "corpus",
    "read_lines": "corpus",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
