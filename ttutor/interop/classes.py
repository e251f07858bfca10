"""How many classes a published classifier knows: its config names each of them, ours counts them."""

from collections.abc import Mapping
from typing import Any


def n_classes(config: Mapping[str, Any]) -> int:
    """How many classes a config of theirs names, or else counts; they leave both out where there are two."""
    names, count = config.get("id2label"), config.get("num_labels")
    return len(names) if names else 2 if count is None else count


def class_names(count: int) -> dict[str, Any]:
    """The entries of a config of theirs for so many classes, with the names that they give where there are none."""
    names = [f"LABEL_{i}" for i in range(count)]
    return {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
