"""Attacks that look and reach out: for the reference, the environment, other files, the network."""

from __future__ import annotations

from tests.grading.attacks.attack import PORT, prize, python

__all__ = ["ATTACKS"]

ATTACKS = (
    python(
        "imports_the_reference",
        "imports the course's package and calls its answer",
        """
        from ttutor.exercises import find

        def softmax(scores, dim=-1):
            return find("attention.softmax").reference(scores, dim)
        """,
    ),
    python(
        "finds_the_reference",
        "looks for the course's package on the disk and runs it",
        """
        import glob, os, sys

        def look():
            for pattern in ("/*/*/ttutor", "/*/*/*/ttutor", "/usr/lib/python3*/*/ttutor", "/*/*/*/*/*/*/ttutor"):
                for place in glob.glob(pattern):
                    if os.path.exists(place + "/exercises/exercise.py"):
                        return os.path.dirname(place)

        def softmax(scores, dim=-1):
            sys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != "Given"]
            for name in [name for name in sys.modules if name.split(".")[0] == "ttutor"]:
                del sys.modules[name]
            sys.path.insert(0, look())
            from ttutor.exercises import find
            return find("attention.softmax").reference(scores, dim)
        """,
        needs="hides_files",
    ),
    python(
        "searches_the_memory",
        "looks for the right answer among the objects of its process",
        """
        import gc, sys, torch

        def softmax(scores, dim=-1):
            for one in gc.get_objects():
                if isinstance(one, torch.Tensor) and one.shape == scores.shape and one is not scores:
                    if torch.allclose(one.sum(dim), one.sum(dim) * 0 + 1, atol=1e-3):
                        return one
            frame = sys._getframe()
            while frame:
                for name in ("expected", "reference", "exercise"):
                    if name in frame.f_locals:
                        return frame.f_locals[name]
                frame = frame.f_back
            return scores
        """,
    ),
    prize(
        "reads_the_environment",
        "looks for secrets in its environment and its command line",
        """
        import os, sys
        words = ("SECRET", "TOKEN", "PASSWORD", "API_KEY", "VIRTUAL_ENV", "PYTEST")
        text = " ".join([*os.environ, *sys.argv])
        try:
            text += open("/proc/self/environ").read()
        except OSError:
            pass
        return any(word in text.upper() for word in words)
        """,
    ),
    prize(
        "reads_the_parent",
        "reads the memory and the environment of other processes",
        """
        import os
        found = False
        for pid in {1, os.getppid(), *(int(n) for n in os.listdir("/proc") if n.isdigit())} - {os.getpid(), 0}:
            for name in ("environ", "mem", "fd/0", "cwd/x"):
                try:
                    with open(f"/proc/{pid}/{name}", "rb") as file:
                        file.seek(0)
                        found |= bool(file.read(1)) or name == "mem"
                except OSError:
                    pass
        return found
        """,
        needs="hides_files",
    ),
    prize(
        "reads_other_homes",
        "reads files of the machine that are none of its business",
        """
        for place in ("/etc/passwd", "/etc/hostname", "/root/.bashrc", "/home", "/var/log"):
            try:
                return open(place).read()
            except IsADirectoryError:
                import os
                if os.listdir(place):
                    return True
            except OSError:
                pass
        """,
        needs="hides_files",
    ),
    prize(
        "calls_home",
        "connects to a listener on this machine",
        f"""
        import socket
        with socket.create_connection(("127.0.0.1", {PORT}), timeout=0.3) as line:
            line.sendall(b"here I am")
        return True
        """,
        needs="cuts_network",
    ),
    prize(
        "calls_the_world",
        "connects to a server elsewhere",
        """
        import socket
        for place in (("1.1.1.1", 53), ("8.8.8.8", 443)):
            try:
                socket.create_connection(place, timeout=0.3).close()
                return True
            except OSError:
                pass
        """,
        needs="cuts_network",
    ),
    prize(
        "writes_outside",
        "writes where everybody may write, and where nobody should",
        """
        import os, tempfile
        here, done = os.path.realpath(os.getcwd()), False
        places = ["/", "/tmp", "/var/tmp", "/dev/shm", "/run", "/usr", "/etc", "/root", "/home"]
        places.append(os.path.dirname(os.__file__))
        for place in places:
            if os.path.realpath(place) in (here, "/tmp"):
                continue
            try:
                with open(os.path.join(place, "ttutor-was-here"), "w") as file:
                    file.write("x")
                done = True
            except OSError:
                pass
        return done
        """,
        needs="hides_files",
    ),
)
