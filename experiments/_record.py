"""Write the result of an experiment together with where it came from.

A script ``experiments/<stem>_<name>.py`` ends with::

    from experiments import _record

    started = _record.start()
    ...
    _record.write("<stem>_<name>", {"bleu": 39.6}, seeds=[1, 2, 3], started=started)

which writes ``ttutor/assets/<stem>_<name>.json`` and, where ``weights`` are given, ``<stem>_<name>.safetensors`` beside
it. The tests hold script and result together: the recorded hash must be that of the script as it stands, and so must
that of the embedded corpus where one was used.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttutor.doctor import processor_name
from ttutor.files import write_file

if TYPE_CHECKING:
    from torch import Tensor

EXPERIMENTS = Path(__file__).resolve().parent
ASSETS = EXPERIMENTS.parent / "ttutor" / "assets"
LARGEST_BYTES = 1_000_000
PACKAGES = ("torch", "numpy", "tokenizers", "sacrebleu")


def start() -> float:
    """Return the moment an experiment starts, to be handed to `write` (seconds of a clock that never jumps)."""
    return time.monotonic()


def syntax(node: object, names: dict[str, str]) -> object:
    """Return a syntax tree as nested lists: no positions, no docstrings, no imports, and numbers for imported names."""
    if isinstance(node, list):
        return [syntax(entry, names) for entry in node if not isinstance(entry, (ast.Import, ast.ImportFrom))]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Name) and node.id in names:
        names[node.id] = names[node.id] or f"import {sum(map(bool, names.values()))}"
        return names[node.id]
    fields = dict(ast.iter_fields(node))
    if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
        fields["body"] = fields["body"][1:]
    return [
        type(node).__name__,
        *([name, syntax(value, names)] for name, value in fields.items() if value not in (None, [])),
    ]


def source_hash(script: Path) -> str:
    """Return the sha256 of what a script does: of its syntax tree, without docstrings and the names of its imports.

    So a comment, a line broken elsewhere, or a function of ttutor under another name or in another room asks for no new
    run; imported names are numbered in the order in which they are first used.
    """
    tree = ast.parse(script.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {(alias.asname or alias.name).split(".")[0]: "" for node in imports for alias in node.names}
    return hashlib.sha256(json.dumps(syntax(tree, names)).encode("utf-8")).hexdigest()


def corpus_hash() -> str:
    """Return the sha256 of the code that generates the embedded corpus: a change of it changes what is learned."""
    folder = EXPERIMENTS.parent / "ttutor" / "corpora"
    parts = [source_hash(folder / f"{room}.py") for room in ("lexicon", "morphology", "grammar", "embedded")]
    return hashlib.sha256(" ".join(parts).encode("ascii")).hexdigest()


def command_line(name: str, arguments: Sequence[str]) -> str:
    """Return the command that was run, without the folders of the machine it ran on."""
    short = [Path(argument).name if os.path.isabs(argument) else argument for argument in arguments]
    return " ".join(["python", f"experiments/{name}.py", *short])


def machine() -> dict[str, Any]:
    """Return what a reader needs to judge a timing: processor, cores, threads, system, accelerator."""
    import torch

    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.system(),
        "device": device,
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages a result may depend on, as far as installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write(
    name: str,
    results: Mapping[str, Any],
    *,
    seeds: Sequence[int],
    started: float,
    embedded_corpus: bool = False,
    weights: Mapping[str, Tensor] | bytes | None = None,
    largest: int = LARGEST_BYTES,
) -> Path:
    """Write ``results`` and their provenance to ``ttutor/assets/<name>.json``, whole or not at all.

    Args:
        name: the script's file name without ending.
        results: figures that JSON can hold; floats are kept as they come, so round them where they are made.
        seeds: every seed that was run.
        started: what `start` returned when the script began.
        embedded_corpus: whether the embedded corpus was used; the tests then ask for a new run when it changes.
        weights: tensors to store beside the results, in ``<name>.safetensors``; or that file, made already.
        largest: how many bytes the weights may take.

    Raises:
        FileNotFoundError: no script has this name.
        ValueError: ``results`` holds the key ``provenance``, holds a number that is not finite, or is too large.
    """
    script = EXPERIMENTS / f"{name}.py"
    if not script.exists():
        raise FileNotFoundError(f"a result is named after its script, but experiments/{name}.py does not exist")
    if "provenance" in results:
        raise ValueError("the key 'provenance' is written by this function; call the result something else")
    provenance = {
        "command": command_line(name, sys.argv[1:]),
        "machine": machine(),
        "minutes": round((time.monotonic() - started) / 60, 1),
        "script_sha256": source_hash(script),
        "seeds": list(seeds),
        "versions": versions(),
    }
    if embedded_corpus:
        provenance["corpus_sha256"] = corpus_hash()
    packed = None
    if weights:
        import safetensors.torch

        packed = weights if isinstance(weights, bytes) else safetensors.torch.save(dict(weights))
        provenance["weights_sha256"] = hashlib.sha256(packed).hexdigest()
        if len(packed) > largest:
            raise ValueError(f"{name}.safetensors would hold {len(packed):,} bytes; store at most {largest:,}")
    text = json.dumps({"provenance": provenance, **results}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if len(text.encode("utf-8")) > LARGEST_BYTES:
        raise ValueError(f"{name}.json would hold {len(text):,} characters; store less than {LARGEST_BYTES:,} bytes")
    if packed is not None:
        write_file(ASSETS / f"{name}.safetensors", packed)
    target = ASSETS / f"{name}.json"
    write_file(target, text.encode("utf-8"))
    return target
