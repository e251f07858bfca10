"""A training run on disk: the recipe, the tokenizer, the facts about its text, the metrics and the checkpoints."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from shlex import quote

from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError
from ttutor.files import sole_writer, unfinished_folder, write_file
from ttutor.schemas import read_as
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.checkpoint import checkpoint_paths, remove_checkpoints
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.records import cut_records, read_records

FORMAT = "ttutor-translation-run-1"
FACTS, RECIPE, TOKENIZER, METRICS = "run.json", "recipe.toml", "tokenizer.json", "metrics.jsonl"
SAMPLES, CURVE, LOCK = "samples.jsonl", "curve.svg", "writer.lock"
EXPORT = "ttutor.json"
"""What an exported translator has and a run has not."""
FILES = (FACTS, RECIPE, TOKENIZER, METRICS, SAMPLES, CURVE)


@dataclass(frozen=True)
class RunFacts:
    """What a run must remember besides its recipe: of which text it is, and how its arithmetic was set.

    `files` holds the paths the text was read from (none: the embedded grammar). The rest decides the rounding:
    `precision`, in which a resumed run goes on, and `threads` (of each process), `processes` and `device`, which may
    then be others.
    """

    corpus: str
    fingerprint: str
    files: dict[str, str | None]
    style: TextStyle
    precision: str
    threads: int
    processes: int = 1
    device: str = "cpu"


@dataclass(frozen=True)
class RunFile(RunFacts):
    """What stands in `run.json`."""

    __pydantic_config__ = {"extra": "forbid"}
    format: str = ""

    def facts(self) -> RunFacts:
        """All but the format."""
        return RunFacts(**{one.name: getattr(self, one.name) for one in fields(RunFacts)})


class RunFolder:
    """The files of one run.

    | file | what it holds |
    |---|---|
    | `recipe.toml` | the settings |
    | `tokenizer.json` | the subword vocabulary |
    | `run.json` | `RunFacts` |
    | `metrics.jsonl` | one line of JSON for each validation |
    | `samples.jsonl` | what the model made of a few validation sentences, a line for each validation |
    | `curve.svg` | the metrics, drawn at the end |
    | `checkpoints/` | the last two checkpoints; may be a link to another disk |
    | `writer.lock` | which process trains here, or did so last |
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / METRICS
        self.samples = self.path / SAMPLES
        self.curve = self.path / CURVE

    @property
    def exists(self) -> bool:
        """Whether a run was begun here: `run.json` is written last."""
        return (self.path / FACTS).is_file()

    @property
    def has_checkpoint(self) -> bool:
        """Whether a training can go on from here."""
        return bool(checkpoint_paths(self.checkpoints))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep every other process from writing here while the block runs; those that read are let in.

        Raises:
            FileError: another process trains here.
        """
        with sole_writer(self.path / LOCK):
            yield

    def check_free(self, *, overwrite: bool = False) -> None:
        """Make sure that a run may begin here, before any work is done for it.

        Args:
            overwrite: whether a run that stands here may be replaced, if no process trains in it.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FileError(f"{self.path} is a file; choose a folder by --out")
        if overwrite:
            if self.path.is_dir():
                with self.writing():
                    self._check_link()
            return
        if self.exists:
            raise FileError(
                f"{self.path} holds a training run already; go on with it by --resume, replace it by --overwrite, "
                "or choose another folder by --out"
            )
        found = self._found()
        if found or self.has_checkpoint:
            raise FileError(
                f"{self.path} holds {', '.join(found or ['checkpoints'])} but no training run, and a run would write "
                "over them; choose another folder by --out, move them, or replace them by --overwrite"
            )

    def create(
        self, recipe: TrainingRecipe, tokenizer: SubwordTokenizer, facts: RunFacts, *, overwrite: bool = False
    ) -> None:
        """Write everything that stands before the first step, whole or not at all.

        Args:
            recipe, tokenizer, facts: of the run.
            overwrite: remove the run that stands here, once everything of the new one is on the disk.
        """
        self.check_free(overwrite=overwrite)
        with self.writing(), unfinished_folder(self.path / "run") as begun:
            write_file(begun / RECIPE, recipe.to_toml().encode())
            write_file(begun / TOKENIZER, tokenizer.to_json().encode())
            write_file(begun / METRICS, b"")
            write_file(begun / FACTS, json.dumps({"format": FORMAT, **asdict(facts)}, indent=1).encode())
            if overwrite:
                self.remove()
            for name in (RECIPE, TOKENIZER, METRICS, FACTS):  # the last makes it a run
                os.replace(begun / name, self.path / name)

    def begin(self, recipe: TrainingRecipe, tokenizer: SubwordTokenizer, facts: RunFacts) -> None:
        """Write what stands in the folder before the first step, unless it stands there already."""
        if not self.exists:
            self.create(recipe, tokenizer, facts)
        elif self.has_checkpoint:
            raise FileError(
                f"{self.path} holds a training run already; go on with it by Trainer.resume() or "
                "`ttutor train --resume`, or choose another folder"
            )

    def remove(self) -> None:
        """Remove the files of a run, `run.json` first, and nothing else that may stand in the folder.

        Where `checkpoints` is a link, the checkpoints behind it go and the link stays.
        """
        self._check_link()
        try:
            for name in FILES:
                (self.path / name).unlink(missing_ok=True)
            remove_checkpoints(self.checkpoints)
        except OSError as error:
            raise FileError(f"cannot remove the old run in {self.path}: {error.strerror or error}") from None

    def _check_link(self) -> None:
        if self.checkpoints.is_symlink() and not self.checkpoints.is_dir():
            raise FileError(
                f"{self.checkpoints} is a link to {os.readlink(self.checkpoints)}, where there is no folder: make that "
                "folder, or remove the link"
            )

    def _found(self) -> list[str]:
        return [name for name in FILES if (self.path / name).exists()]

    def facts(self) -> RunFacts:
        """Read `run.json`."""
        path = self.path / FACTS
        try:
            data = path.read_bytes()
        except NotADirectoryError:
            raise FileError(f"{self.path} is a file; expected the folder of a training, as `--out` named it") from None
        except FileNotFoundError:
            if (self.path / EXPORT).exists():
                raise FileError(
                    f"{self.path} holds an exported translator, which `ttutor translate --run` runs; this needs the "
                    "run that it was made of"
                ) from None
            overwrite = " --overwrite" if (self.path / RECIPE).exists() else ""  # what a killed process began
            raise FileError(
                f"there is no trained model in {self.path}, nor an exported one: check the path, or train one with "
                f"`ttutor train --out {quote(str(self.path))}{overwrite}`"
            ) from None
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
        return read_as(RunFile, data, path, "copy the run's folder again or train anew", format_=FORMAT).facts()

    def recipe(self) -> TrainingRecipe:
        """The recipe of the run."""
        return TrainingRecipe.load(self.path / RECIPE)

    def tokenizer(self) -> SubwordTokenizer:
        """The tokenizer of the run."""
        return SubwordTokenizer.load(self.path / TOKENIZER)

    def read_metrics(self) -> Iterator[dict]:
        """The records so far; lines that a crash cut off or damaged are left out."""
        return read_records(self.metrics)

    def cut_metrics(self, step: int) -> None:
        """Forget what was recorded after this step, from where a resumed run goes on: metrics and samples."""
        for path in (self.metrics, self.samples):
            cut_records(path, step)
