"""Errors that a reader can act on; the commands print their message alone and leave with code 2."""


class TranslationError(Exception):
    """Something about the files, the settings or the machine, said in one message: what was expected, what came."""


class CorpusError(TranslationError):
    """The text to learn from, or to translate, cannot be used as it is."""


class RecipeError(TranslationError, ValueError):
    """A setting of the training is impossible."""


class SearchError(TranslationError, ValueError):
    """A setting of the search for a translation is impossible."""


class CheckpointError(TranslationError):
    """A checkpoint is missing, damaged, of another kind, or cannot be written."""


class TrainingError(TranslationError):
    """The training cannot go on."""


class ProcessLost(TrainingError):
    """Another process of the training has ended, or cannot be reached any more."""


class CurveError(TranslationError):
    """A picture of a training cannot be drawn."""


class FetchError(TranslationError):
    """A file cannot be got from where it is published, or not be kept here."""


class ExportError(TranslationError):
    """A translator cannot be written for, or run by, another program."""
