"""Frames and pipes: what comes from a worker is a frame, or an error that the judge expects."""

from __future__ import annotations

import json
import os
import struct
import threading
import time

import pytest

from tests.judge.bench import eventually
from ttutor.grading.apart.framing import BODY_CAP, HEADER_CAP, Malformed, frame, parse_json, read_frame, write_all
from ttutor.grading.channel import Channel, Ended, TimedOut


@pytest.fixture
def line():
    """A channel, and the two ends of the worker."""
    reads, theirs_out = os.pipe()
    theirs_in, writes = os.pipe()
    channel = Channel(reads, writes)
    yield channel, theirs_in, theirs_out
    for fd in (theirs_in, theirs_out):
        try:
            os.close(fd)
        except OSError:  # the test has closed it
            continue
    channel.close()


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def flood(fd: int) -> int:
    """Write to a pipe whatever it takes within a moment; return how much that was."""
    os.set_blocking(fd, False)
    written, until = 0, time.monotonic() + 0.5
    while time.monotonic() < until:
        try:
            written += os.write(fd, bytes(1 << 16))
        except BlockingIOError:
            time.sleep(0.01)
    return written


def test_frames_go_both_ways(line):
    channel, theirs_in, theirs_out = line
    channel.send({"id": 1, "do": "it"}, b"body", soon())
    assert read_frame(theirs_in) == ({"id": 1, "do": "it"}, b"body")
    write_all(theirs_out, frame({"id": 1, "value": None}, b"\0" * 1000))
    assert channel.receive(soon()) == ({"id": 1, "value": None}, b"\0" * 1000)


def test_large_frames_go_through_small_pipes(line):
    channel, theirs_in, _ = line
    came = []
    reader = threading.Thread(target=lambda: came.append(read_frame(theirs_in)))
    reader.start()
    channel.send({"id": 1}, b"x" * 5_000_000, soon())
    reader.join()
    assert len(came[0][1]) == 5_000_000


def test_who_does_not_listen_costs_a_deadline_and_no_more(line):
    channel, _, _ = line
    started = time.monotonic()
    with pytest.raises(TimedOut):
        channel.send({"id": 1}, b"x" * 5_000_000, soon(0.2))
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack(">II", 20, 0), struct.pack(">II", 2, 10) + b"{}abc"])
def test_half_a_frame_is_waited_for_until_the_deadline(line, sent):
    channel, _, theirs_out = line
    os.write(theirs_out, sent)
    with pytest.raises(TimedOut):
        channel.receive(soon(0.1))


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack(">II", 2, 10) + b"{}abc"])
def test_who_is_gone_is_gone(line, sent):
    channel, theirs_in, theirs_out = line
    os.write(theirs_out, sent)
    os.close(theirs_out)
    os.close(theirs_in)
    with pytest.raises(Ended):
        channel.receive(soon())
    with pytest.raises(Ended):
        channel.send({"id": 1}, b"x" * 5_000_000, soon())


def test_who_is_gone_stays_gone(line):
    channel, _, theirs_out = line
    write_all(theirs_out, frame({"id": 1}) + b"\0")
    os.close(theirs_out)
    assert channel.receive(soon()) == ({"id": 1}, b"")
    for _ in range(3):
        with pytest.raises(Ended):
            channel.receive(soon())


def test_a_flood_stays_where_it_comes_from(line):
    _, _, theirs_out = line
    assert 1 << 16 < flood(theirs_out) < 4 << 20


def test_what_is_used_is_asked_for_while_nothing_comes():
    reads, theirs_out = os.pipe()
    theirs_in, writes = os.pipe()
    channel = Channel(reads, writes, lambda: True)
    with pytest.raises(Ended, match="too much memory"):
        channel.receive(soon())
    channel.close()
    os.close(theirs_in)
    os.close(theirs_out)


@pytest.mark.parametrize("is_flood", [False, True])
def test_closing_waits_for_nobody_and_leaves_nothing(is_flood):
    """A process that was left behind may hold the other ends for longer than anybody listens."""
    before = threading.active_count()
    reads, theirs_out = os.pipe()
    theirs_in, writes = os.pipe()
    channel = Channel(reads, writes)
    if is_flood:
        flood(theirs_out)
    with pytest.raises(TimedOut):
        channel.send({"id": 1}, b"x" * 1_000_000, soon(0.1))
    channel.close()
    assert threading.active_count() > before  # who writes is stuck, and nobody waits for it
    os.close(theirs_in)
    os.close(theirs_out)
    assert eventually(lambda: threading.active_count() == before)
    for fd in (reads, writes):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


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
def test_what_is_no_frame_is_malformed(line, sent):
    channel, _, theirs_out = line
    threading.Thread(target=write_all, args=(theirs_out, sent)).start()
    with pytest.raises(Malformed):
        channel.receive(soon())


def test_a_header_that_would_not_be_taken_is_not_sent():
    with pytest.raises(Malformed, match="at most"):
        frame({"text": "x" * HEADER_CAP})


def test_plain_json_is_read_as_it_is():
    value = {"a": [1, -2, "x", None, True, {"b": 1.5}]}
    assert parse_json(json.dumps(value).encode()) == value
