"""How a worker is shut in: by bubblewrap, in a container that was made for one submission, or only by itself.

Marks do not hang on it: workers give values and no verdicts. What the three differ in is what a submission can read,
and what stops it where the worker's own limits (`ttutor.grading.worker.confine`) have a hole.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ttutor.errors import RunError
from ttutor.grading.worker.confine import filters_calls

BUBBLEWRAP, CONTAINED, TRUSTED = "bubblewrap", "contained", "trusted"
KINDS = {
    BUBBLEWRAP: "it sees Python and PyTorch and nothing else, reaches nobody, writes nothing, leaves nothing",
    CONTAINED: "it runs as nobody, reaches nobody, writes nothing; it can read what everybody may read here",
    TRUSTED: "nothing holds it but a deadline and, on Linux, its own limits: it can read your files, seed and "
    "solutions, and elsewhere than on Linux write them, use the network and leave processes behind",
}
"""The kinds of sandbox, and what each means, for people."""

INSIDE, BYTECODE = "/grader", "/grader/bytecode"
PACKAGES = ("torch", "numpy", "einops", "jaxtyping", "safetensors")
LIBRARIES = tuple("/lib /lib64 /lib32 /usr/lib /usr/lib64 /usr/lib32 /etc/ld.so.cache /etc/alternatives".split())
NOBODY = 65534


class SandboxError(RunError):
    """A sandbox that was asked for cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class Started:
    """What starts a worker."""

    command: list[str]
    environment: dict[str, str]
    folder: str
    user: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sandbox:
    """How workers are shut in.

    Args:
        kind: one of `KINDS`.
        hidden: places of the class, which no submission may read wherever they lie.
        bytecode: a folder with the bytecode of a worker's packages, or None where it stands beside them.
    """

    kind: str = BUBBLEWRAP
    hidden: tuple[Path, ...] = ()
    bytecode: Path | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SandboxError(f"expected a sandbox of {', '.join(KINDS)}, but {self.kind!r} came")

    def problem(self) -> str | None:
        """Return why it cannot work here, as far as that shows without trying, or None."""
        if self.kind == TRUSTED:
            return None
        if not filters_calls():
            return "system calls can be filtered on Linux alone, on x86-64 and ARM64"
        if self.kind == CONTAINED:
            return None if os.geteuid() == 0 else "in a container the judge has to be root, so that workers are not"
        return None if shutil.which("bwrap") else "bubblewrap is not installed; install the package `bubblewrap`"

    def started(self, memory: int) -> Started:
        """Return what starts a worker.

        Args:
            memory: how much a student's code may use, in bytes.
        """
        serves = f"from worker.serve import main; del sys.path[0]; main({memory})"
        if self.kind == BUBBLEWRAP:
            command = _bubblewrap(python(Path(INSIDE), serves, "-B"), self.hidden, self.bytecode)
            return Started(command, environment(), "/")
        folder = "/" if os.name == "posix" else tempfile.gettempdir()
        command = python(worker_folder().parent, serves, "-B")
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.kind == CONTAINED else {}
        return Started(command, environment(self.bytecode), folder, user)


def worker_folder() -> Path:
    """Where the code of a worker stands: all of this package that it gets."""
    return Path(__file__).resolve().parent / "worker"


def python(folder: Path, code: str, *flags: str) -> list[str]:
    """Return the command that runs code with nothing of this project in reach but the worker's folder, in `folder`."""
    paths = f"import sys; sys.path += {[*map(str, _site_folders())]!r}; sys.path.insert(0, {str(folder)!r}); "
    return [os.path.realpath(sys.executable), "-s", "-S", "-P", *flags, "-c", paths + code]


def environment(bytecode: Path | None = None) -> dict[str, str]:
    """Return all that a worker's environment has."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
        "CUDA_VISIBLE_DEVICES": ""
    }
    needed = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # Windows cannot do without
    needed |= {} if bytecode is None else {"PYTHONPYCACHEPREFIX": str(bytecode)}
    return {"PATH": "/usr/bin:/bin", "HOME": "/", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"} | one_thread | needed


def _site_folders() -> list[Path]:
    """Where the packages stand that answers may use."""
    found = [Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")]
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parents[1])
    return list(dict.fromkeys(found))


def _bubblewrap(inner: list[str], hidden: Sequence[Path], bytecode: Path | None) -> list[str]:
    """The command that runs another with the interpreter's files and nothing else."""
    command = ["bwrap", "--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    command += [f"--unshare-{name}" for name in ("pid", "net", "ipc", "uts", "cgroup-try")]
    command += ["--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--proc", "/proc"]
    command += ["--dev", "/dev", *_mounts(), "--ro-bind", str(worker_folder()), f"{INSIDE}/worker", *_masks(hidden)]
    command += [] if bytecode is None else ["--ro-bind", str(bytecode), BYTECODE]
    variables = environment(None if bytecode is None else Path(BYTECODE))
    command += ["--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/", "--clearenv"]
    command += [part for pair in variables.items() for part in ("--setenv", *pair)]
    return [*command, "--chdir", "/", "--", *inner]


def _mounts() -> Iterator[str]:
    places = [place for place in LIBRARIES if os.path.lexists(place)]
    for library in places:
        link = os.path.islink(library)
        yield from ("--symlink", os.readlink(library), library) if link else ("--ro-bind", library, library)
    outside = [place for place in _needed() if not any(place.is_relative_to(other) for other in places)]
    for folder in sorted({folder for place in (*outside, Path(INSIDE, "worker")) for folder in place.parents[:-1]}):
        yield from ("--dir", str(folder))
    for place in outside:
        yield from ("--ro-bind", str(place), str(place))


def _needed() -> list[Path]:
    """What Python and PyTorch need beside the system's libraries: of a whole prefix its libraries alone."""
    base = Path(sys.base_prefix)
    found = [base / "lib", base / "lib64", Path(os.path.realpath(sys.executable)), *_site_folders()]
    found += [Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib")]
    there = [place for place in dict.fromkeys(found) if place.exists()]
    return [place for place in there if not any(place != other and place.is_relative_to(other) for other in there)]


def _masks(hidden: Sequence[Path]) -> Iterator[str]:
    """Cover whatever must not be read and lies below a place that is mounted: this package, and the class."""
    package = Path(__file__).resolve().parents[1]
    mounted = [Path(os.path.realpath(place)) for place in (*map(Path, LIBRARIES), *_needed())]
    for place in (package, *(Path(os.path.realpath(one)) for one in hidden)):
        if place.exists() and any(place.is_relative_to(other) for other in mounted):
            yield from ("--tmpfs", str(place)) if place.is_dir() else ("--ro-bind", "/dev/null", str(place))


IMPORTS = "from worker.serve import preload; preload()"


@contextmanager
def bytecode() -> Iterator[Path | None]:
    """Yield a folder with the bytecode of all that a worker imports, None where it stands beside the packages."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    if Path(spec.origin).with_name("__pycache__").joinpath(f"__init__.{sys.implementation.cache_tag}.pyc").exists():
        yield None
        return
    with TemporaryDirectory(prefix="ttutor-bytecode-") as folder:
        place = Path(folder)
        place.chmod(0o755)  # a worker in a container is somebody else
        # Where this fails, a worker does not start either, and its own message says so.
        subprocess.run(python(worker_folder().parent, IMPORTS), env=environment(place), cwd=place, check=False)
        yield place
