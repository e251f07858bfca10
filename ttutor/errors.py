"""Errors that a reader can act on; the commands print their message alone and leave with code 2.

Whatever is wrong with a text, a file, a submission, a setting or the machine is refused with a `TtutorError`, so one
`except` is enough; the kinds below say where to look. A function that is called with an impossible number or a wrong
type raises Python's own ValueError, TypeError or IndexError.
"""

SYMPTOMS_PAGE = 'the book\'s page "What went wrong?" (book/symptoms.md) has the usual causes'
"""What is added to an error that many readers meet, and whose cause lies elsewhere."""


class TtutorError(Exception):
    """What the user can mend, said in one message: what was expected, what came, what to do."""


class InputError(TtutorError, ValueError):
    """A text, a data set or a submission cannot be used as it is."""


class SettingError(TtutorError, ValueError):
    """A setting is impossible, or not one that this model, file format or backend has."""


class ShapeError(TtutorError, ValueError):
    """Tensors whose axes do not fit together; the message names the axis, the tensors and the sizes."""


class FileError(TtutorError):
    """A file or folder is missing, damaged or of another kind, or cannot be written."""


class RunError(TtutorError):
    """The work cannot go on: a training has diverged, or a package, a program or another process is missing."""


class ProcessLost(RunError):
    """Another process of the training has ended, or cannot be reached any more."""
