"""A training run on disk: the recipe, the tokenizer, the facts about its text, the metrics and the checkpoints."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError
from ttutor.files import make_folder, remove_leftovers, write_file
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.checkpoint import checkpoint_paths, remove_checkpoints
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.records import cut_records, read_records

FORMAT = "ttutor-translation-run-1"
FACTS, RECIPE, TOKENIZER, METRICS = "run.json", "recipe.toml", "tokenizer.json", "metrics.jsonl"
SAMPLES, CURVE = "samples.jsonl", "curve.svg"
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

    @classmethod
    def from_dict(cls, body: Mapping) -> "RunFacts":
        """Read what `asdict` made."""
        return cls(**{**body, "style": TextStyle(**body["style"])})


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
    | `checkpoints/` | the last two checkpoints |
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

    def check_free(self) -> None:
        """Make sure that a run may begin here."""
        if self.exists:
            raise FileError(
                f"{self.path} holds a training run already; go on with it by --resume, replace it by --overwrite, "
                "or choose another folder by --out"
            )
        found = [name for name in FILES if (self.path / name).exists()]
        if found or self.has_checkpoint:
            raise FileError(
                f"{self.path} holds {', '.join(found or ['checkpoints'])} but no training run, and a run would write "
                "over them; choose another folder by --out, move them, or replace them by --overwrite"
            )

    def create(self, recipe: TrainingRecipe, tokenizer: SubwordTokenizer, facts: RunFacts) -> None:
        """Write everything that stands before the first step. If anything fails, what was written goes again."""
        self.check_free()
        make_folder(self.path)
        try:
            write_file(self.path / RECIPE, recipe.to_toml().encode())
            write_file(self.path / TOKENIZER, tokenizer.to_json().encode())
            write_file(self.metrics, b"")
            write_file(self.path / FACTS, json.dumps({"format": FORMAT, **asdict(facts)}, indent=1).encode())
        except FileError:
            with suppress(FileError):
                self.remove()
            raise

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
        """Remove the files of a run, `run.json` first, and nothing else that may stand in the folder."""
        try:
            for name in FILES:
                (self.path / name).unlink(missing_ok=True)
            remove_checkpoints(self.checkpoints)
        except OSError as error:
            raise FileError(f"cannot remove the old run in {self.path}: {error.strerror or error}") from None
        remove_leftovers(self.path)

    def facts(self) -> RunFacts:
        """Read `run.json`."""
        path = self.path / FACTS
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
        except NotADirectoryError:
            raise FileError(f"{self.path} is a file; expected the folder of a training, as `--out` named it") from None
        except FileNotFoundError:
            raise FileError(
                f"there is no trained model in {self.path}; train one with `ttutor train --out {self.path}`"
            ) from None
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
        except ValueError:
            raise FileError(f"{path} is damaged: it is not JSON") from None
        found = body.pop("format", None) if isinstance(body, dict) else None
        if found != FORMAT:
            raise FileError(f"{path} has the format {found!r}, expected {FORMAT!r}: another program wrote it")
        try:
            return RunFacts.from_dict(body)
        except (KeyError, TypeError) as error:
            raise FileError(f"{path} is damaged: {error}; copy the run's folder again or train anew") from None

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
