"""The sandbox: what a worker cannot do, whatever its code is, and what it cannot see, wherever the class lies."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.grading.bench import session_of
from ttutor.grading import sandbox as sandbox_module
from ttutor.grading.sandbox import BUBBLEWRAP, CONTAINED, KINDS, TRUSTED, Sandbox, SandboxError, bytecode
from ttutor.grading.session import check_sandbox
from ttutor.grading.worker.confine import filters_calls

DEEDS = {
    "fork": "os.fork()",
    "program": "os.execv(sys.executable, ['python'])",
    "subprocess": "subprocess.run(['true'])",
    "thread": "threading.Thread(target=print).start()",
    "socket": "socket.socket()",
    "socketpair": "socket.socketpair()",
    "memfd": "os.memfd_create('x')",
    "shared memory of System V": "libc.shmget(0, 1 << 30, 0o1600) < 0 and no()",
    "shared memory of POSIX": "open('/dev/shm/x', 'w')",
    "file in /tmp": "open('/tmp/x', 'w')",
    "file here": "open('x', 'w')",
    "bytecode": "open(socket.__cached__, 'ab')",
    "folder": "os.mkdir('/tmp/x')",
    "link": "os.symlink('/', '/tmp/x')",
    "another user": "os.setuid(0)",
    "kill": "os.kill(1, 9)",
    "signal to the group": "os.killpg(0, 9)",
    "another's memory": "open('/proc/self/mem', 'r+b')",
    "namespace": "libc.unshare(0x10000000) and no()",
    "mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) and no()",
    "trace": "libc.ptrace(0, 0, 0, 0) and no()",
    "key": "libc.syscall(248, b'user', b'x', b'y', 1, -4) < 0 and no()",
    "ring of calls": "libc.syscall(425, 8, 0) < 0 and no()",
    "setting of the kernel": "open('/proc/sys/kernel/hostname', 'w')",
    "20 GB": "bytearray(20 << 30)",
    "3 GB shared": "mmap.mmap(-1, 3 << 30)",
    "many files": "[open('/dev/null') for _ in range(1000)]",
}
LOOKS = textwrap.dedent(
    """
    def looks(paths):
        found = []
        for path in paths:
            try:
                found.append(bool(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)))
            except OSError:
                found.append(False)
        return found

    def about(nothing):
        return [sorted(os.environ), os.getpid(), [name for name in sys.modules if "ttutor" in name], socket.__cached__]

    def no():
        raise OSError(ctypes.get_errno())
    """
)


def code() -> list[str]:
    """Definitions that do each deed, and look around."""
    lines = ["import ctypes, mmap, os, socket, subprocess, sys, threading", "libc = ctypes.CDLL(None, use_errno=True)"]
    lines += [f"def deed_{number}(x):\n    return repr({deed})" for number, deed in enumerate(DEEDS.values())]
    return [*lines, *LOOKS.strip().split("\n\n")]


def asked(session, name, given):
    header = {"do": "observe", "file": 0, "name": name, "observe": None, "seed": 0, "grad": True}
    session.enter(None, session.definition(name))
    return session.run(header, (given,), ("value", "inputs"))["value"]


def done(session) -> list[str]:
    """The deeds that succeed in a session."""
    through = []
    assert asked(session, "looks", []) == [], "the session works"
    for number, name in enumerate(DEEDS):
        try:
            asked(session, f"deed_{number}", 1)
        except Exception:
            continue
        through.append(name)
    return through


@pytest.fixture(scope="module")
def session(sandbox):
    """A worker in bubblewrap."""
    with session_of(sandbox, code()) as opened:
        yield opened


def test_a_worker_can_compute_and_nothing_else(session):
    assert done(session) == []


@pytest.mark.skipif(not filters_calls(), reason="system calls can be filtered on Linux on two kinds of machine alone")
def test_its_own_limits_hold_without_bubblewrap_too():
    with session_of(Sandbox(TRUSTED), code()) as opened:
        assert done(opened) == []


def test_a_worker_sees_nothing_of_this_machine(session, tmp_path):
    secret = tmp_path / "submission.py"
    secret.write_text("x = 1")
    package = Path(sandbox_module.__file__).parents[1]
    hidden = ["/etc/passwd", "/home", "/usr/src", "/usr/share", str(secret), str(tmp_path), str(package)]
    assert asked(session, "looks", hidden) == [False] * len(hidden)
    names, pid, modules, _ = asked(session, "about", 1)
    assert set(names) == {"HOME", "OMP_NUM_THREADS"}
    assert pid < 10  # in a world of its own
    of_exercises = {name for name in modules if name.count(".") == 2}
    assert of_exercises <= {f"ttutor.exercises.{name}" for name in ("forbidden", "running", "student_code")}


def test_a_worker_reads_the_bytecode_of_its_packages(session):
    *_, cached = asked(session, "about", 1)
    assert asked(session, "looks", [cached, os.path.dirname(cached)]) == [True, True]


def test_bytecode_is_made_only_where_none_stands_beside_the_packages(tmp_path, monkeypatch):
    beside = tmp_path / "__pycache__" / f"__init__.{sys.implementation.cache_tag}.pyc"
    monkeypatch.setattr(sandbox_module, "find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    monkeypatch.setattr(sandbox_module, "IMPORTS", "import json")
    with bytecode() as made:
        assert list(made.rglob("json/__init__.*.pyc"))
    assert not made.exists()
    beside.parent.mkdir()
    beside.touch()
    with bytecode() as made:
        assert made is None


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_class_below_a_folder_that_is_mounted_is_covered(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox_module, "LIBRARIES", (*sandbox_module.LIBRARIES, str(tmp_path)))
    place = tmp_path / "class"
    place.mkdir() if kind == "folder" else place.write_text("x")
    command = Sandbox(BUBBLEWRAP, (place,)).started(0).command
    mask = ["--tmpfs", str(place)] if kind == "folder" else ["--ro-bind", "/dev/null", str(place)]
    at = command.index(str(place)) - len(mask) + 1
    assert command[at : at + len(mask)] == mask
    assert at > command.index(str(tmp_path))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may write below /usr")
@pytest.mark.parametrize("place", ["/usr/src/class-of-a-test", "/usr/lib/class-of-a-test"])
def test_a_class_below_usr_cannot_be_read(sandbox, place):
    folder = Path(place)
    folder.mkdir(parents=True)
    try:
        (folder / "ada.py").write_text("x = 1")
        with session_of(Sandbox(BUBBLEWRAP, (folder,)), code()) as opened:
            assert asked(opened, "looks", [str(folder), str(folder / "ada.py")]) == [False, False]
    finally:
        shutil.rmtree(folder)


def test_a_kind_that_does_not_exist_or_work_is_named(monkeypatch):
    with pytest.raises(SandboxError, match="expected a sandbox of bubblewrap, contained, trusted"):
        Sandbox("docker")
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name: None)
    with pytest.raises(SandboxError, match=r"install the package `bubblewrap`.*--trusted"):
        check_sandbox(Sandbox(BUBBLEWRAP))
    monkeypatch.setattr(sandbox_module, "filters_calls", lambda: False)
    assert "Linux alone" in Sandbox(CONTAINED).problem()
    assert Sandbox(TRUSTED).problem() is None


def test_what_is_trusted_is_told_honestly():
    assert "read your files, seed and solutions" in KINDS[TRUSTED]


def test_in_a_container_workers_run_as_nobody(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    started = Sandbox(CONTAINED).started(0)
    assert (started.user["user"], started.user["extra_groups"]) == (65534, [])
    assert started.command[0] == os.path.realpath(sys.executable)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "has to be root" in Sandbox(CONTAINED).problem()
