"""The ladder of sandboxes: what each keeps a submission from, and which of them works on this machine.

A forged mark is impossible at every level, since workers give values and no verdicts. What the levels differ in is what
a submission can see and leave behind.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ttutor.grading.apart import confine

__all__ = [
    "APART",
    "INSIDE",
    "LEVELS",
    "Level",
    "SandboxError",
    "bubblewrap_command",
    "environment",
    "is_private",
    "landlock_places",
    "landlock_problem",
    "python_command",
    "worker_user",
]

APART = Path(__file__).parent / "apart"
INSIDE = "/grader"
PACKAGES = ("torch", "numpy", "einops", "jaxtyping")
SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
FIRST_USER, NOBODY = 1_000_000, 65534


class SandboxError(RuntimeError):
    """A sandbox that was asked for cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class Level:
    """One rung of the ladder.

    Args:
        name: what results call it.
        says: what it keeps a submission from, for people.
        hides_files: whether a submission cannot read this machine's files: other submissions, tests, the package.
        cuts_network: whether it reaches nobody.
        ends_strays: whether nothing that it has started can outlive it.
    """

    name: str
    says: str
    hides_files: bool
    cuts_network: bool
    ends_strays: bool


LEVELS = (
    Level("bubblewrap", "own files, network and processes: sees and leaves nothing", True, True, True),
    Level("landlock", "sees the interpreter's files and one folder of its own; no TCP", True, True, False),
    Level("rlimits", "limits on memory, files and processes; can read this machine's files", False, False, False),
    Level("clock", "a deadline and nothing else; can read and write this user's files", False, False, False),
)
"""From the strongest to the weakest."""


def worker_user(number: int) -> int | None:
    """Return the user whom workers become where the judge is root: one of their own that nobody else has, else None."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    wanted = FIRST_USER + os.getpid() % (1 << 22) * 16 + number % 16
    return wanted if _is_mapped(wanted) else NOBODY


def _is_mapped(user: int) -> bool:
    """Whether a user exists in this user namespace; containers may have few."""
    try:
        rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except OSError:  # no Linux: every user exists
        return True
    return any(int(first) <= user < int(first) + int(count) for first, _, count in rows)


def python_command(module: str, settings: str, folder: str) -> list[str]:
    """Return the command that runs one of the modules in ``apart`` with nothing of this project in reach.

    Args:
        module: ``zygote`` or ``alone``.
        settings: JSON for its ``main``.
        folder: where the folder ``apart`` stands.
    """
    start = (
        f"import sys, json; sys.path += {[*map(str, _site_folders())]!r}; sys.path.insert(0, {folder!r}); "
        f"from apart.{module} import main; del sys.path[0]; main(json.loads(sys.argv[1]))"
    )
    return [os.path.realpath(sys.executable), "-s", "-S", "-P", "-B", "-c", start, settings]


def environment(home: str) -> dict[str, str]:
    """Return all that a worker's environment has."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    needed = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # Windows cannot do without
    return {"PATH": "/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"} | one_thread | needed


def places_to_read() -> list[Path]:
    """The folders that Python and PyTorch need."""
    places = [Path(sys.base_prefix), *_site_folders(), Path(os.path.realpath(sys.executable)).parent]
    outside = [place for place in dict.fromkeys(places) if not place.is_relative_to("/usr")]
    return [place for place in outside if not any(place != other and place.is_relative_to(other) for other in outside)]


def _site_folders() -> list[Path]:
    """Where the packages stand that answers may use."""
    found = [Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")]
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parents[1])
    return list(dict.fromkeys(found))


def bubblewrap_command(inner: list[str]) -> list[str]:
    """Return the command that runs another in bubblewrap, with the interpreter's files and nothing else."""
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxError("bubblewrap is not installed; install the package `bubblewrap`")
    if os.geteuid() == 0:  # the process becomes another user by itself, once it has read its interpreter
        rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        rights = ["--unshare-user"]
    names = ("pid", "net", "ipc", "uts", "cgroup-try")
    command = [program, *(f"--unshare-{name}" for name in names), "--die-with-parent", "--new-session", "--as-pid-1"]
    command += [*rights, "--perms", "1777", "--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev", *_mounts()]
    command += ["--ro-bind", str(APART), f"{INSIDE}/apart", "--remount-ro", "/dev", "--remount-ro", "/"]
    command += ["--clearenv", *(part for pair in environment("/tmp").items() for part in ("--setenv", *pair))]
    return [*command, "--chdir", "/tmp", "--", *inner]


def _mounts() -> Iterator[str]:
    for place in SYSTEM:
        if os.path.islink(place):
            yield from ("--symlink", os.readlink(place), place)
        elif os.path.exists(place):
            yield from ("--ro-bind", place, place)
    places = places_to_read()
    around = {folder for place in (*places, Path(INSIDE, "apart")) for folder in place.parents[:-1]}
    for folder in sorted(around):  # else only root could pass through them
        yield from ("--perms", "0755", "--dir", str(folder))
    for place in places:
        yield from ("--ro-bind", str(place), str(place))
    package = Path(__file__).resolve().parents[1]
    if any(package.is_relative_to(place) for place in [Path("/usr"), *places_to_read()]):
        yield from ("--tmpfs", str(package))


def landlock_places() -> list[str]:
    """What a worker may read under Landlock: the interpreter, its packages, the worker; not this project."""
    package, places = Path(__file__).resolve().parents[1], [*map(Path, SYSTEM), *places_to_read()]
    apart = [place for place in places if not package.is_relative_to(place)]
    around = [place for place in places if package.is_relative_to(place)]
    beside = [one for place in around for one in _beside(place, package)]
    return [*map(str, (*apart, *beside, APART)), *DEVICES]


def _beside(place: Path, package: Path) -> Iterator[Path]:
    """Everything below a place but a package that stands in it."""
    for child in place.iterdir():
        if child == package:
            continue
        if package.is_relative_to(child):
            yield from _beside(child, package)
        else:
            yield child


def is_private() -> bool:
    """Whether another user cannot read this interpreter, as when it stands in root's home."""
    folders = [folder for place in places_to_read() for folder in (place, *place.parents)]
    return any(not folder.stat().st_mode & 0o001 for folder in folders)


def landlock_problem() -> str | None:
    """Why Landlock cannot be used here, or None."""
    return None if confine.landlock_version() else "this kernel has no Landlock (Linux 5.13 or newer has)"
