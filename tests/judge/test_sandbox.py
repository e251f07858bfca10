"""The ladder of sandboxes: probed, refused, and what each keeps from a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.judge.bench import MEMORY, eventually
from tests.require import missing
from ttutor.grading import ladder, sandbox
from ttutor.grading.apart import confine
from ttutor.grading.ladder import choose_level, open_lane, problem_with
from ttutor.grading.reading import FileRead, Piece
from ttutor.grading.sandbox import LEVELS, SandboxError
from ttutor.grading.session import Limits, Session, Target
from ttutor.grading.zygotes import WarmLane, below

NAMES = [level.name for level in LEVELS]


def test_levels_go_from_strong_to_weak():
    assert NAMES == ["bubblewrap", "landlock", "rlimits", "clock"]
    strengths = [(one.ends_strays, one.hides_files, one.cuts_network) for one in LEVELS]
    assert strengths == sorted(strengths, reverse=True)


def test_the_strongest_that_works_is_chosen():
    assert choose_level() == next(level for level in LEVELS if problem_with(level) is None)


def test_a_level_can_be_asked_for_by_name():
    assert choose_level("clock").name == "clock"
    with pytest.raises(SandboxError, match="expected a level of bubblewrap, landlock"):
        choose_level("docker")


def test_weak_levels_can_be_refused():
    with pytest.raises(SandboxError, match="does not hide"):
        choose_level("rlimits", require_sandbox=True)
    with pytest.raises(SandboxError, match="does not hide"):
        choose_level("clock", require_sandbox=True)


def test_what_does_not_work_is_passed_over_with_its_reason(monkeypatch):
    monkeypatch.setattr(ladder, "problem_with", lambda level: None if level.name == "clock" else "not here")
    assert choose_level().name == "clock"
    with pytest.raises(SandboxError, match=r"bubblewrap: not here; landlock: not here; rlimits: does not hide"):
        choose_level(require_sandbox=True)


def test_without_bubblewrap_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    with pytest.raises(SandboxError, match="install the package `bubblewrap`"):
        sandbox.bubblewrap_command([])


@pytest.mark.parametrize("level", NAMES, indirect=True)
def test_a_reader_answers_at_every_level_that_works(level):
    """Probing is reading: what `problem_with` says is what happens."""
    assert ladder._complaint(open_lane(choose_level(level))) is None


LOOKS = """
import os

def looks(paths):
    found = []
    for path in paths:
        try:
            found.append(bool(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)))
        except OSError:
            found.append(False)
    return found

def about(nothing):
    import socket, sys
    return [sorted(os.environ), os.getpid(), os.getuid(), [name for name in sys.modules if "ttutor" in name]]
"""


@pytest.fixture
def look(lane):
    """A session at the strongest level that looks around."""
    opened = Session(lane, [FileRead(pieces=(Piece("a.py", LOOKS, 1),))], {}, Limits(10.0, 60.0, MEMORY))
    yield lambda name, given: opened.observe(Target(0, name, None), (given,))[0]
    opened.close()


def test_a_worker_sees_nothing_of_this_machine(lane, look, tmp_path):
    if not lane.level.hides_files:
        missing("sandbox", f"the strongest level that works here is {lane.level.name}, which hides no files")
    secret = tmp_path / "submission.py"
    secret.write_text("x = 1")
    package = os.path.dirname(os.path.abspath(sandbox.__file__))
    hidden = ["/etc/passwd", "/home", str(secret), str(tmp_path), package, os.path.dirname(package)]
    assert look("looks", hidden) == [False] * len(hidden)
    names, pid, user, modules = look("about", 1)
    assert set(names) == {"HOME", "OMP_NUM_THREADS"}
    assert user != 0
    assert modules == []
    if isinstance(lane, WarmLane):
        assert pid == 1


def test_a_lane_ends_with_all_that_it_holds():
    if problem_with(LEVELS[0]) is not None or not ladder._forks():
        missing("sandbox", f"bubblewrap does not work here: {problem_with(LEVELS[0])}")
    lane = WarmLane(LEVELS[0], sandbox.worker_user(7), torch=False)
    before = set(below(os.getpid()))
    process = lane.open("reader", MEMORY)
    held = set(below(os.getpid())) - before
    assert len(held) == 3  # bubblewrap, the zygote, the reader
    assert len(lane.strays()) == 1
    assert process.end() > 0
    assert lane.strays() == []
    lane.close()
    assert eventually(lambda: not held & set(below(os.getpid())))
    again = lane.open("reader", MEMORY)
    again.end()
    assert lane.started == 2
    lane.close()


def test_a_dead_zygote_is_replaced():
    if problem_with(LEVELS[0]) is not None or not ladder._forks():
        missing("sandbox", f"bubblewrap does not work here: {problem_with(LEVELS[0])}")
    lane = WarmLane(LEVELS[0], sandbox.worker_user(8), torch=False)
    lane.open("reader", MEMORY).end()
    (zygote,) = below(lane._zygote.pid)
    os.kill(zygote, signal.SIGKILL)
    assert eventually(lambda: not below(lane._zygote.pid))
    lane.open("reader", MEMORY).end()
    assert lane.started == 2
    lane.close()


@pytest.mark.parametrize("level", ["landlock", "rlimits", "clock"], indirect=True)
def test_weaker_levels_leave_nothing_behind(level):
    lane = open_lane(choose_level(level))
    process = lane.open("reader", MEMORY)
    home = process.home
    assert os.path.isdir(home)
    process.end()
    assert not os.path.exists(home)
    assert lane.strays() == []


def run_here(script: str) -> str:
    """What a Python process prints that gives rights up."""
    start = f"import sys; sys.path.insert(0, {str(sandbox.APART.parent)!r}); from apart import confine\n"
    done = subprocess.run([sys.executable, "-c", start + script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_landlock_leaves_the_folders_that_were_named(tmp_path):
    if not confine.landlock_version():
        missing("sandbox", "this kernel has no Landlock")
    (tmp_path / "read").mkdir()
    (tmp_path / "write").mkdir()
    (tmp_path / "other").write_text("x")
    (tmp_path / "read" / "x").write_text("x")
    script = f"""
import os
os.chdir({str(tmp_path)!r})
confine.landlock(["read"], ["write"])
def tries(path, mode):
    try:
        open(path, mode).close()
        return "y"
    except OSError:
        return "n"
places = ("read/x", "r"), ("read/x", "w"), ("write/x", "w"), ("other", "r"), ("/etc/passwd", "r")
print(*[tries(*one) for one in places])
"""
    assert run_here(script) == "y n y n n"


def test_limits_hold():
    script = """
import resource
confine.limit(memory=1 << 40, processes=50, file_size=1000, files=40)
kinds = (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)
print(*[resource.getrlimit(kind)[1] for kind in kinds])
"""
    if os.name != "posix":
        missing("sandbox", "there are no resource limits on this system")
    assert run_here(script) == f"{1 << 40} 50 1000 40 0"


def test_the_environment_holds_no_secret(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert not [name for name in sandbox.environment("/tmp") if "SECRET" in name]


def test_what_may_be_read_leaves_the_package_out():
    package = os.path.dirname(os.path.dirname(os.path.abspath(sandbox.__file__)))
    places = sandbox.landlock_places()
    assert not [place for place in places if package == place or package.startswith(place.rstrip("/") + "/")]
    assert str(sandbox.APART) in places
