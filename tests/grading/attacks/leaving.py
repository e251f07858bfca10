"""Attacks that leave: every way to end a process, or to keep it for ever."""

from __future__ import annotations

from tests.grading.attacks.attack import Attack, python

__all__ = ["ATTACKS"]


def _at_import(name: str, says: str, line: str) -> Attack:
    return python(name, says, f"import os, sys, signal\n{line}\ndef softmax(scores, dim=-1):\n    return 1\n")


def _in_call(name: str, says: str, *lines: str) -> Attack:
    body = "\n".join(f"    {line}" for line in lines)
    return python(name, says, f"import os, sys, signal, torch\ndef softmax(scores, dim=-1):\n{body}\n")


ATTACKS = (
    _at_import("exit_at_import", "ends its process while it is loaded", "os._exit(0)"),
    _at_import("sys_exit_at_import", "asks Python to end while it is loaded", "sys.exit(0)"),
    _at_import("loops_at_import", "never finishes loading", "while True: pass"),
    _in_call("exit_in_call", "ends its process with success in the middle of a call", "os._exit(0)"),
    _in_call("sys_exit_in_call", "asks Python to end with success", "sys.exit(0)"),
    _in_call("kills_itself", "kills its own process", "os.kill(os.getpid(), signal.SIGKILL)"),
    _in_call("aborts", "aborts", "os.abort()"),
    _in_call("stops_itself", "stops, and never answers", "os.kill(os.getpid(), signal.SIGSTOP)"),
    _in_call("segfaults", "reads memory that is not there", "import ctypes", "return ctypes.string_at(0)"),
    _in_call("interrupts", "raises what ends programs", "raise KeyboardInterrupt"),
    _in_call("generator_exit", "raises what ends generators", "raise GeneratorExit"),
    _in_call(
        "overflows_the_stack",
        "recurses until the stack is full",
        "sys.setrecursionlimit(10**8)",
        "return (lambda f: f(f))(lambda f: f(f))",
    ),
    _in_call("becomes_another", "becomes another program", "os.execv('/bin/sh', ['sh', '-c', 'echo score: 100'])"),
    _in_call("closes_everything", "closes its pipes", "os.closerange(0, 4096)", "return scores"),
    _in_call("loops", "loops in Python", "while True: pass"),
    _in_call("loops_in_c", "loops in C, where no alarm reaches", "return sum(range(10**13))"),
    _in_call(
        "backtracks", "loops in the matching of a pattern", "import re", "return re.match('(a+)+$', 'a' * 60 + 'b')"
    ),
    _in_call(
        "sleeps_deaf",
        "sleeps with all signals blocked",
        "import time",
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
        "time.sleep(10**6)",
    ),
    python(
        "never_ends_its_list",
        "returns a list that never ends",
        """
        class Endless(list):
            def __iter__(self):
                while True:
                    yield 1.0

        def softmax(scores, dim=-1):
            return Endless([1.0])
        """,
    ),
    python(
        "says_nothing_at_exit",
        "leaves a thread that ends the process later",
        """
        import os, threading, time

        def end():
            time.sleep(0.2)
            os._exit(0)

        threading.Thread(target=end, daemon=True).start()

        def softmax(scores, dim=-1):
            time.sleep(1.0)
            return scores
        """,
    ),
)
