"""The attacks: each earns nothing, leaves nothing behind, and changes the marks of nobody."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.require import missing
from ttutor.grading.attacks import ATTACKS, PAIRS
from ttutor.grading.attacks.attack import PORT
from ttutor.grading.ladder import choose_level
from ttutor.grading.sandbox import LEVELS
from ttutor.grading.siege import besieged, siege

ALL = [*ATTACKS, *(one for pair in PAIRS for one in pair)]
QUICK = (
    "exit_at_import exit_in_call sys_exit_in_call closes_everything claims_a_score answers_ahead torn_tensors "
    "always_equal pickle_bomb patches_comparisons patches_the_worker hostile_exception takes_memory thread_bomb "
    "returns_too_much imports_the_reference reads_the_parent calls_home writes_outside kills_everybody daemon "
    "lies_in_wait names null_bytes minuses hostile_metadata shell_cells leaves_files finds_files leaves_shared_memory "
    "finds_shared_memory patches_everything finds_patches"
).split()
WEAK = "claims_a_score daemon".split()


@pytest.fixture
def listener():
    """Somebody who would hear an attack that gets through to the network."""
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", PORT), reuse_port=True)
    server.settimeout(0.1)
    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            try:
                heard.append(server.accept()[0].recv(100))
            except TimeoutError:
                continue

    thread = threading.Thread(target=listen)
    thread.start()
    yield heard
    over.set()
    thread.join()
    server.close()


def test_there_are_many_and_each_has_its_name():
    names = [one.name for one in ALL]
    assert len(names) == len(set(names)) >= 100
    assert set(QUICK) <= set(names)
    assert set(WEAK) <= set(names)


def test_attacks_are_repulsed(listener):
    level = choose_level()
    if not level.hides_files:
        missing("sandbox", f"the strongest level that works here is {level.name}")
    with besieged(level.name, n_cases=2) as grader:
        outcomes = list(siege(grader, [one for one in ALL if one.name in QUICK], honest_every=3))
    assert [one.attack.name for one in outcomes if one.mark is not None] == [
        one.name for one in ALL if one.name in QUICK
    ]
    assert {one.attack.name: one.problems for one in outcomes if one.problems} == {}
    assert listener == []


def test_attacks_are_repulsed_at_the_weakest_level():
    with besieged("clock", n_cases=1) as grader:
        outcomes = list(siege(grader, [one for one in ALL if one.name in WEAK], honest_every=3))
    assert len(outcomes) == len(WEAK)
    assert {one.attack.name: one.problems for one in outcomes if one.problems} == {}


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("level", [one.name for one in LEVELS], indirect=True)
def test_all_attacks_are_repulsed(level, listener):
    with besieged(level, n_cases=None if level == "bubblewrap" else 1) as grader:
        outcomes = list(siege(grader, honest_every=1 if level == "bubblewrap" else 10))
    assert len(outcomes) == len(ALL)
    assert {one.attack.name: one.problems for one in outcomes if one.problems} == {}
    tried = [one for one in outcomes if not one.not_tried]
    assert len(tried) == len(ALL) if choose_level(level).ends_strays else len(tried) > 90
    assert listener == []
