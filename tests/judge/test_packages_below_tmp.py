"""Packages that stand below a folder which the sandbox hides, as in a checkout below /tmp, are still there for answers.

Before code of a student runs, an empty /tmp is mounted over the one of the sandbox; what the sandbox has mounted inside
it for Python to read must be kept.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path

import pytest

from tests.judge.bench import handed_in, homework
from tests.require import missing
from ttutor.grading import ladder, sandbox
from ttutor.grading.apart.confine import mounts_below
from ttutor.grading.judging import Grader
from ttutor.grading.marks import State

PACKAGE = "ttutor_stands_below_tmp"
ANSWER = f"""
def softmax(scores, dim=-1):
    import {PACKAGE}
    powers = {PACKAGE}.powers(scores, dim)
    return powers / powers.sum(dim, keepdim=True)
"""
CODE = "def powers(scores, dim):\n    return (scores - scores.amax(dim, keepdim=True)).exp()\n"


def mountinfo(*places: bytes) -> bytes:
    """What proc(5) says of mounts at these places, written as it writes them."""
    return b"".join(b"%d 1 0:2 / %s ro,nosuid - tmpfs tmpfs rw\n" % row for row in enumerate(places, 30))


@pytest.mark.parametrize(
    ("mounted", "found"),
    [
        ((b"/", b"/proc", b"/tmp"), []),
        ((b"/tmp", b"/tmp/venv", b"/usr"), ["/tmp/venv"]),
        ((b"/tmpfs", b"/tmp2/venv", b"/home/tmp/venv", b"/var/tmp"), []),
        ((b"/tmp/b", b"/tmp/a/lib", b"/tmp/a"), ["/tmp/a", "/tmp/b"]),  # what is inside one comes with it
        ((b"/tmp/a", b"/tmp/ab", b"/tmp/a/c/d"), ["/tmp/a", "/tmp/ab"]),
        ((b"/tmp/a", b"/tmp/a"), ["/tmp/a"]),  # one over the other
        ((rb"/tmp/two\040words", rb"/tmp/back\134slash", rb"/tmp/a\011tab"), None),
        (("/tmp/Übung".encode(),), ["/tmp/Übung"]),
        ((b"/tmp/\xff",), ["/tmp/\udcff"]),
    ],
)
def test_the_mounts_inside_a_folder(mounted: tuple[bytes, ...], found: list[str] | None) -> None:
    expected = ["/tmp/a\ttab", "/tmp/back\\slash", "/tmp/two words"] if found is None else found
    assert mounts_below("/tmp", mountinfo(*mounted)) == expected


@pytest.fixture
def below_tmp(monkeypatch):
    """A folder below /tmp, with a blank and an umlaut in its name, from which answers may import a package."""
    if not os.access("/tmp", os.W_OK):
        missing("sandbox", "there is no folder /tmp to write")
    with tempfile.TemporaryDirectory(prefix="Übung 1 ", dir="/tmp") as folder:
        Path(folder, PACKAGE).mkdir()
        Path(folder, PACKAGE, "__init__.py").write_text(CODE, encoding="utf-8")
        Path(folder).chmod(0o755)
        monkeypatch.syspath_prepend(folder)
        importlib.invalidate_caches()
        monkeypatch.setattr(sandbox, "PACKAGES", (*sandbox.PACKAGES, PACKAGE))
        yield folder


def test_the_folder_is_among_the_places_to_read(below_tmp) -> None:
    assert Path(below_tmp) in sandbox.places_to_read()


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"], indirect=True)
def test_answers_import_packages_from_below_tmp(below_tmp, level) -> None:
    with Grader(homework("attention.softmax"), sandbox=level) as grader:
        mark = grader.grade(handed_in(ANSWER))
        # The fast way, a process forked from a warm one, is where /tmp is hidden once more.
        assert level != "bubblewrap" or not ladder._forks() or grader._lane.forked > 0
    (softmax,) = mark.exercises
    assert (softmax.state, softmax.earned) == (State.OK, 10.0), (softmax.message, mark.notes)
