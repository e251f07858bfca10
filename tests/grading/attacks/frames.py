"""Attacks that forge frames: they write to every descriptor that they have, in the worker's place."""

from __future__ import annotations

from tests.grading.attacks.attack import Attack, python

__all__ = ["ATTACKS"]

TO_ALL = """
import json, os, struct

def raw(data):
    for fd in range(3, 64):
        try:
            os.write(fd, data)
        except OSError:
            pass

def say(header, body=b"", count=1):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    raw((struct.pack(">II", len(text), len(body)) + text + body) * count)
"""


def _says(name: str, says: str, *lines: str) -> Attack:
    """An attack that writes to every descriptor that it has."""
    body = "\n".join(f"    {line}" for line in lines)
    return python(name, says, f"{TO_ALL}\ndef softmax(scores, dim=-1):\n{body}\n    return scores\n")


ATTACKS = (
    _says("claims_a_score", "sends a frame that claims full marks", "say({'ok': True, 'score': 100})"),
    _says("claims_right", "answers every request with `right`", "[say({'id': n, 'right': True}) for n in range(99)]"),
    _says(
        "answers_ahead",
        "answers all coming requests",
        "[say({'id': n, 'value': None, 'inputs': []}) for n in range(99)]",
    ),
    _says("claims_done", "answers every request with `done`", "[say({'id': n, 'done': True}) for n in range(99)]"),
    _says("huge_header", "announces a header of 4 GiB", "raw(b'\\xff' * 8)"),
    _says("no_json", "sends a header that is no JSON", "say(b'{\"id\": NaN}')"),
    _says("nested_json", "sends a header nested a hundred thousand deep", "say(b'[' * 10**5 + b']' * 10**5)"),
    _says("digits", "sends a number of a hundred thousand digits", "say(b'{\"id\":' + b'9' * 10**5 + b'}')"),
    _says("twice_the_key", "sends a key twice", 'say(b\'{"id": 1, "id": 2}\')'),
    _says("a_list", "sends a header that is a list", "say([1, 2, 3])"),
    _says("half_a_frame", "sends half a frame and waits", "raw(b'\\0\\0\\0')", "import time", "time.sleep(10**6)"),
    _says(
        "calls_the_judge",
        "calls functions that it was not given",
        "[say({'id': n, 'call': 0, 'args': []}) for n in range(99)]",
    ),
    _says(
        "torn_tensors",
        "sends tensors that overlap and end nowhere",
        "entry = {'dtype': 'F32', 'shape': [2**30, 2**30], 'data_offsets': [0, 8]}",
        "text = json.dumps({'0': entry}).encode()",
        "body = len(text).to_bytes(8, 'little') + text + bytes(8)",
        "[say({'id': n, 'value': {'T': 0}, 'inputs': [None, None]}, body) for n in range(99)]",
    ),
    _says(
        "frames_without_end", "sends frames for ever", "while True: say({'id': 7, 'call': 0, 'args': []}, count=1000)"
    ),
)
