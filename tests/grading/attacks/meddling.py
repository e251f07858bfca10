"""Attacks on what runs beside them: signals, tracing, other users, mounts, processes that stay."""

from __future__ import annotations

from tests.grading.attacks.attack import prize, python

__all__ = ["ATTACKS"]

ATTACKS = (
    prize(
        "kills_the_parent",
        "sends every signal to everybody",
        """
        import os, signal
        done = False
        for pid in (os.getppid(), 1):
            for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
                try:
                    os.kill(pid, number)
                    done |= pid not in (0, 1, os.getpid())
                except OSError:
                    pass
        return done
        """,
        needs="hides_files",
    ),
    python(
        "kills_everybody",
        "sends the last signal to all that it may",
        """
        import os, signal

        def softmax(scores, dim=-1):
            os.kill(-1, signal.SIGKILL)
            os.killpg(0, signal.SIGKILL)
            return scores
        """,
    ),
    prize(
        "traces_the_parent",
        "attaches itself to other processes as a debugger",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long] * 4
        for pid in {os.getppid(), 1} - {0, os.getpid()}:
            if libc.ptrace(16, pid, 0, 0) == 0 or libc.ptrace(16902, pid, 0, 0) == 0:
                return True
        """,
        needs="hides_files",
    ),
    prize(
        "becomes_root",
        "tries to become another user",
        """
        import os, subprocess
        for attempt in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0])):
            try:
                attempt()
                return True
            except OSError:
                pass
        for command in (["sudo", "-n", "true"], ["su", "-c", "true"]):
            try:
                if subprocess.run(command, stdin=subprocess.DEVNULL, timeout=1).returncode == 0:
                    return True
            except (OSError, subprocess.SubprocessError):
                pass
        """,
    ),
    prize(
        "mounts",
        "takes namespaces and mounts the machine's files",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        libc.unshare(0x10000000 | 0x20000)
        libc.umount2(b"/tmp", 2)
        libc.umount2(b"/proc", 2)
        libc.mount(b"proc", b"/proc", b"proc", 0, None)
        others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
        for place in ("/etc/passwd", "/proc/1/root/etc/passwd", "/tmp/../etc/passwd"):
            try:
                return open(place).read()
            except OSError:
                pass
        return any(os.access(f"/proc/{pid}/mem", os.W_OK) for pid in others)
        """,
        needs="hides_files",
    ),
    python(
        "daemon",
        "leaves a process that outlives it",
        """
        import os, time, torch

        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for fd in range(3, 256):
                    try:
                        os.close(fd)
                    except OSError:
                        pass
                time.sleep(600)
            os._exit(0)

        def softmax(scores, dim=-1):
            return scores * 0 + 0.5
        """,
    ),
    python(
        "lies_in_wait",
        "leaves processes that hunt whoever comes next",
        """
        import os, signal, time, torch

        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                end = time.time() + 20
                while time.time() < end:
                    try:
                        names = os.listdir("/proc")
                    except OSError:
                        names = map(str, range(2, 200))
                    for name in names:
                        if name.isdigit() and int(name) not in (1, os.getpid(), os.getppid()):
                            try:
                                os.kill(int(name), signal.SIGKILL)
                            except OSError:
                                pass
                os._exit(0)

        def softmax(scores, dim=-1):
            return scores * 0 + 0.5
        """,
    ),
)
