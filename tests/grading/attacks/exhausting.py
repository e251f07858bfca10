"""Attacks that use up: memory, processes, threads, disk, output, and everything that the judge would have to read."""

from __future__ import annotations

from tests.grading.attacks.attack import WRONG, Attack, python

__all__ = ["ATTACKS"]


def _in_call(name: str, says: str, *lines: str) -> Attack:
    body = "\n".join(f"    {line}" for line in lines)
    return python(name, says, f"import os, sys, torch\ndef softmax(scores, dim=-1):\n{body}\n")


ATTACKS = (
    _in_call("takes_memory", "asks for 20 GB", "return bytearray(20 * 10**9)"),
    _in_call("takes_memory_in_tensors", "asks for a tensor of 40 GB", "return torch.ones(10**10)"),
    _in_call("hoards", "asks for memory bit by bit", "kept = []", "while True: kept.append(bytearray(10**7))"),
    python(
        "fork_bomb",
        "forks without end",
        """
        import os

        def softmax(scores, dim=-1):
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        """,
    ),
    python(
        "forks_and_hoards",
        "forks forty processes that take half a gigabyte each",
        """
        import os, time

        def softmax(scores, dim=-1):
            for number in range(40):
                if os.fork() == 0:
                    kept = []
                    for _ in range(64):
                        kept.append(bytearray(os.urandom(8)) * (1 << 20))
                        time.sleep(0.02)
                    time.sleep(600)
            time.sleep(600)
        """,
    ),
    python(
        "thread_bomb",
        "starts threads without end",
        """
        import threading, time

        def softmax(scores, dim=-1):
            while True:
                threading.Thread(target=time.sleep, args=(10**6,), daemon=True).start()
        """,
    ),
    _in_call("floods_output", "prints a gigabyte", "print('100 points ' * 10**8)", "return scores"),
    _in_call(
        "floods_errors",
        "writes to every stream it can name",
        "for name in ('/dev/stdout', '/dev/stderr', '/dev/tty'):",
        "    try: open(name, 'w').write('passed' * 10**6)",
        "    except OSError: pass",
        "return scores",
    ),
    python(
        "fills_the_disk",
        "writes files until nothing fits",
        """
        import os

        def softmax(scores, dim=-1):
            for number in range(10**4):
                with open(f"filler-{number}", "wb") as file:
                    file.write(bytes(10**7))
            return scores
        """,
    ),
    python(
        "a_large_file",
        "writes one file of 100 GB",
        """
        import os

        def softmax(scores, dim=-1):
            file = os.open("large", os.O_CREAT | os.O_RDWR)
            os.posix_fallocate(file, 0, 10**11)
            return scores
        """,
    ),
    _in_call("opens_files", "opens files until there are no more", "kept = [open('/dev/null') for _ in range(10**6)]"),
    _in_call("returns_too_much", "returns a tensor of a trillion numbers", "return torch.ones(1).expand(10**12)"),
    _in_call("returns_many", "returns a million values", "return [1.0] * 10**6"),
    _in_call("returns_long_text", "returns a text of 100 MB", "return 'right' * 2 * 10**7"),
    _in_call("returns_a_huge_number", "returns a number of a million digits", "return 10**10**6"),
    _in_call("nests", "returns lists in lists", "v = []", "for _ in range(10**5): v = [v]", "return v"),
    _in_call("returns_itself", "returns a list that holds itself", "v = []", "v.append(v)", "return v"),
    python(
        "many_definitions", "defines a hundred thousand names", WRONG + "\n".join(f"x{n} = {n}" for n in range(100_000))
    ),
    python(
        "slow_to_define",
        "defines slowly, a thousand times",
        "import time\n" + "time.sleep(0.9)\n" * 1000 + WRONG,
    ),
)
