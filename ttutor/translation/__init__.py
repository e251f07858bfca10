"""The translator: answers, alignments, evaluation, the commands around it, and the one that ships with the package.

from ttutor.translation import load_default

print(load_default()("A man rides a horse.").text)
"""

from typing import Any

__all__ = ["load_default"]


def __getattr__(name: str) -> Any:
    """Load the model's room on first use, so that a command's help stays quick."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    from ttutor.translation import packed

    return getattr(packed, name)
