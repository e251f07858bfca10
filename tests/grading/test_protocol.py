"""Frames and pipes: what comes from a worker is a frame, or an error that the judge expects."""

from __future__ import annotations

import json
import os
import struct
import sys
import time

import pytest

from ttutor.grading.sandbox import Sandbox, Started
from ttutor.grading.worker.framing import BODY_CAP, HEADER_CAP, Malformed, frame, parse_json, read_frame, write_all
from ttutor.grading.worker_process import Ended, Process, TimedOut

REPLY = frame({"id": 1, "value": None}, b"\0" * 1000)


class Plain(Sandbox):
    """Starts a few lines of Python in the place of a worker."""

    def started(self, memory):
        return Started([sys.executable, "-S", "-c", self.code], dict(os.environ), "/")


@pytest.fixture
def process():
    """Returns a process that runs some code instead of a worker's."""
    opened = []

    def start(code):
        sandbox = Plain("trusted")
        object.__setattr__(sandbox, "code", f"import os, time\n{code}\ntime.sleep(600)")
        opened.append(Process(sandbox, 0))
        return opened[-1]

    yield start
    for one in opened:
        one.end()


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


def test_frames_go_both_ways(process):
    echo = f"os.read(0, 1 << 16)\nos.write(1, {REPLY!r})"
    assert process(echo).ask({"id": 1}, b"body", soon()) == ({"id": 1, "value": None}, b"\0" * 1000)
    reads, writes = os.pipe()
    write_all(writes, frame({"id": 1, "do": "it"}, b"body"))
    assert read_frame(reads) == ({"id": 1, "do": "it"}, b"body")
    os.close(reads)
    os.close(writes)


def test_who_does_not_listen_or_answer_costs_a_deadline_and_no_more(process):
    started = time.monotonic()
    with pytest.raises(TimedOut):
        process("").ask({"id": 1}, b"x" * 5_000_000, soon(0.2))
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("sent", [b"\0\0", struct.pack(">II", 20, 0), struct.pack(">II", 2, 10) + b"{}abc"])
def test_half_a_frame_is_waited_for_until_the_deadline(process, sent):
    with pytest.raises(TimedOut):
        process(f"os.write(1, {sent!r})").ask({"id": 1}, b"", soon(1.0))


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack(">II", 2, 10) + b"{}abc"])
def test_who_is_gone_is_gone(process, sent):
    with pytest.raises(Ended):
        process(f"os.write(1, {sent!r})\nos._exit(0)").ask({"id": 1}, b"x" * 5_000_000, soon())


def test_a_flood_stays_where_it_comes_from(process):
    one = process(f"while True: os.write(1, {REPLY!r})")
    assert one.ask({"id": 1}, b"", soon())[0] == {"id": 1, "value": None}
    time.sleep(0.5)
    assert one._frames.qsize() <= 2


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 8,
        struct.pack(">II", HEADER_CAP + 1, 0),
        struct.pack(">II", 1, 0) + b"7",
        struct.pack(">II", 2, BODY_CAP + 1),
        struct.pack(">II", 2, 0) + b"[]",
        struct.pack(">II", 4, 0) + b"\xff\xfe{}",
        struct.pack(">II", 11, 0) + b'{"id": NaN}',
        struct.pack(">II", 14, 0) + b'{"a":1,"a":2} ',
        struct.pack(">II", 100_000, 0) + b"[" * 50_000 + b"]" * 50_000,
        struct.pack(">II", 10_000, 0) + b"9" * 10_000,
    ],
)
def test_what_is_no_frame_is_malformed(process, sent):
    with pytest.raises(Malformed):
        process(f"os.write(1, {sent!r})").ask({"id": 1}, b"", soon())


def test_a_header_that_would_not_be_taken_is_not_sent():
    with pytest.raises(Malformed, match="at most"):
        frame({"text": "x" * HEADER_CAP})


def test_plain_json_is_read_as_it_is():
    value = {"a": [1, -2, "x", None, True, {"b": 1.5}]}
    assert parse_json(json.dumps(value).encode()) == value
