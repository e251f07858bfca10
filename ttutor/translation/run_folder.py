"""A training run on disk: the recipe, the tokenizer, the facts about its text, the metrics and the checkpoints."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ttutor.translation.errors import CheckpointError
from ttutor.translation.files import cannot_write, make_folder, remove_leftovers, write_file
from ttutor.translation.recipe import TrainingRecipe
from ttutor.translation.text_style import TextStyle
from ttutor.translation.tokenizer import SubwordTokenizer

FORMAT = "ttutor-translation-run-1"


@dataclass(frozen=True)
class RunFacts:
    """What a run must remember besides its recipe: of which text it is, and how its arithmetic was set.

    `files` holds the paths the text was read from (none: the embedded grammar); `precision` and `threads` decide the
    rounding, so that a resumed run can use the same.
    """

    corpus: str
    fingerprint: str
    files: dict[str, str | None]
    style: TextStyle
    precision: str
    threads: int


class RunFolder:
    """The files of one run.

    | file | what it holds |
    |---|---|
    | `recipe.toml` | the settings |
    | `tokenizer.json` | the subword vocabulary |
    | `run.json` | `RunFacts` |
    | `metrics.jsonl` | one line of JSON for each validation |
    | `checkpoints/` | the last two checkpoints |
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / "metrics.jsonl"

    @property
    def exists(self) -> bool:
        """Whether a run was begun here: `run.json` is written last."""
        return (self.path / "run.json").is_file()

    @property
    def has_checkpoint(self) -> bool:
        return any(self.checkpoints.glob("step-*"))

    def create(self, recipe: TrainingRecipe, tokenizer: SubwordTokenizer, facts: RunFacts) -> None:
        """Write everything that stands before the first step.

        Raises:
            CheckpointError: a run stands here already, or the folder cannot be written.
        """
        if self.exists:
            raise CheckpointError(
                f"{self.path} holds a training run already; go on with it by --resume, "
                "or choose another folder by --out"
            )
        make_folder(self.path)
        remove_leftovers(self.path)
        write_file(self.path / "recipe.toml", recipe.to_toml().encode())
        write_file(self.path / "tokenizer.json", tokenizer.to_json().encode())
        write_file(self.metrics, b"")
        body = {"format": FORMAT, **asdict(facts)}
        write_file(self.path / "run.json", json.dumps(body, indent=1).encode())

    def facts(self) -> RunFacts:
        """Read `run.json`.

        Raises:
            CheckpointError: there is no run here, or the file is of another format or damaged.
        """
        path = self.path / "run.json"
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
        except OSError:
            raise CheckpointError(
                f"there is no trained model in {self.path}; train one with `ttutor train --out {self.path}`"
            ) from None
        except ValueError:
            raise CheckpointError(f"{path} is damaged: it is not JSON") from None
        found = body.pop("format", None) if isinstance(body, dict) else None
        if found != FORMAT:
            raise CheckpointError(f"{path} has the format {found!r}, expected {FORMAT!r}: another program wrote it")
        try:
            return RunFacts(**(body | {"style": TextStyle(**body["style"])}))
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is damaged: {error}") from None

    def recipe(self) -> TrainingRecipe:
        return TrainingRecipe.load(self.path / "recipe.toml")

    def tokenizer(self) -> SubwordTokenizer:
        return SubwordTokenizer.load(self.path / "tokenizer.json")

    def add_metrics(self, record: dict) -> None:
        """Append one line to `metrics.jsonl`.

        Raises:
            CheckpointError: the disk is full or the like.
        """
        try:
            with self.metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise CheckpointError(cannot_write(self.metrics, error)) from None

    def read_metrics(self) -> Iterator[dict]:
        """The records so far; a last line that a crash cut off is left out."""
        if not self.metrics.is_file():
            return
        for line in self.metrics.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("}\n"):
                yield json.loads(line)

    def cut_metrics(self, step: int) -> None:
        """Forget what was recorded after this step, from where a resumed run goes on."""
        kept = [json.dumps(record) + "\n" for record in self.read_metrics() if record["step"] <= step]
        write_file(self.metrics, "".join(kept).encode())
