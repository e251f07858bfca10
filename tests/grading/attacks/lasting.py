"""Attacks in two parts: one submission leaves something behind, and the next one looks for it."""

from __future__ import annotations

from tests.grading.attacks.attack import Attack, prize, python

__all__ = ["PAIRS"]

LEFT = """
def softmax(scores, dim=-1):
    return scores * 0 + 0.5
"""

PAIRS: tuple[tuple[Attack, Attack], ...] = (
    (
        python(
            "leaves_files",
            "leaves files in every folder that it can write",
            "import os\nfor place in ('/tmp', '.', '/dev/shm', '/var/tmp', '/run', '/dev/mqueue'):\n"
            "    try:\n        open(os.path.join(place, 'ttutor-left'), 'w').write('answer')\n"
            "    except OSError:\n        pass\n" + LEFT,
        ),
        prize(
            "finds_files",
            "looks for files that another submission left",
            """
            import os
            places = ("/tmp", ".", "/dev/shm", "/var/tmp", "/run", "/dev/mqueue")
            return any(os.path.exists(os.path.join(place, "ttutor-left")) for place in places)
            """,
        ),
    ),
    (
        python(
            "leaves_shared_memory",
            "leaves shared memory in the kernel",
            "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.shmat.restype = ctypes.c_void_p\n"
            "number = libc.shmget(0x7774, 4096, 0o1666)\n"
            "if number >= 0:\n    ctypes.memmove(libc.shmat(number, None, 0), b'answer', 6)\n" + LEFT,
        ),
        prize(
            "finds_shared_memory",
            "looks for shared memory that another submission left",
            """
            import ctypes
            return ctypes.CDLL(None).shmget(0x7774, 4096, 0) >= 0
            """,
            needs="ends_strays",
        ),
    ),
    (
        python(
            "leaves_a_key",
            "leaves a key in the kernel's keyring",
            "import ctypes\nlibc = ctypes.CDLL(None)\n"
            "libc.syscall(248, b'user', b'ttutor-left', b'answer', 6, -4)\n"
            "libc.syscall(248, b'user', b'ttutor-left', b'answer', 6, -5)\n" + LEFT,
        ),
        prize(
            "finds_a_key",
            "looks for a key that another submission left",
            """
            import ctypes
            libc = ctypes.CDLL(None)
            return any(libc.syscall(250, 10, ring, b"user", b"ttutor-left", 0) > 0 for ring in (-4, -5))
            """,
            needs="ends_strays",
        ),
    ),
    (
        python(
            "leaves_a_server",
            "leaves a process that listens on an abstract socket",
            """
            import os, socket, time

            if os.fork() == 0:
                os.setsid()
                server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                server.bind("\\0ttutor-left")
                server.listen()
                time.sleep(600)
                os._exit(0)
            time.sleep(0.3)

            def softmax(scores, dim=-1):
                return scores * 0 + 0.5
            """,
        ),
        prize(
            "finds_a_server",
            "connects to a process that another submission left",
            """
            import socket
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect("\\0ttutor-left")
            return True
            """,
        ),
    ),
    (
        python(
            "patches_everything",
            "replaces functions of torch, of Python and of the worker",
            """
            import builtins, sys, torch

            builtins.ttutor_left = sys.ttutor_left = torch.ttutor_left = True
            torch.Tensor.exp = lambda self: self
            torch.Tensor.sum = lambda self, *args, **kwargs: self
            sys.settrace(lambda *args: None)

            def softmax(scores, dim=-1):
                return scores * 0 + 0.5
            """,
        ),
        prize(
            "finds_patches",
            "looks for what another submission has replaced",
            """
            import builtins, sys, torch
            return any(hasattr(one, "ttutor_left") for one in (builtins, sys, torch))
            """,
        ),
    ),
)
