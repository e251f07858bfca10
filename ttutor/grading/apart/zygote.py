"""The zygote: holds PyTorch ready, and forks a confined process for each submission; it never meets a student's code.

It takes orders over a socket, one JSON object a line, each answered by one line: to fork a worker or a reader, whose
pipe ends come along, and to end one. A forked process gets its own namespaces of every kind, in which it is process 1:
when it ends, all that it has started ends with it, and its folder for files vanishes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any, NoReturn

from . import confine
from .reader import serve_reader

__all__ = ["above", "main", "serve_apart"]

SCRATCH, SCRATCH_SIZE = "/tmp", 64 << 20


def main(settings: dict[str, Any]) -> None:
    """Get ready, say so, and serve until the judge hangs up.

    Args:
        settings: ``socket`` the descriptor for orders, ``user`` whom to become or None, ``torch`` whether to load it.
    """
    if settings["user"] is not None:
        confine.become(settings["user"])
    if settings["torch"]:
        from .worker import preload

        preload(all_of_torch=True)
    confine.hide_from_tracing()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    orders = socket.socket(fileno=settings["socket"])
    _say(orders, {"ready": True, "threads": len(os.listdir("/proc/self/task"))})
    while (order := _hear(orders)) is not None:
        _say(orders, _obey(orders, *order))


def _hear(orders: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    text, fds, _, _ = socket.recv_fds(orders, 65536, 2)
    return (json.loads(text), list(fds)) if text else None


def _say(orders: socket.socket, message: dict[str, Any]) -> None:
    orders.sendall(json.dumps(message).encode() + b"\n")


def _obey(orders: socket.socket, order: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    try:
        return _end(order["end"]) if "end" in order else _fork(orders, order, fds)
    except OSError as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    finally:
        for fd in fds:
            os.close(fd)


def _fork(orders: socket.socket, order: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Fork a helper that takes new namespaces, and in them forks the process itself; return that one's number."""
    told, tell = os.pipe()
    helper = os.fork()
    if helper == 0:
        _be_helper(orders, order, fds, told, tell)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        said = pipe.read()
    os.waitpid(helper, 0)
    return json.loads(said) if said else {"failed": "the helper died"}


def _be_helper(orders: socket.socket, order: dict[str, Any], fds: list[int], told: int, tell: int) -> NoReturn:
    orders.close()
    os.close(told)
    try:
        confine.unshare_worker()
        child = os.fork()
        if child == 0:
            os.close(tell)
            _be_confined(order, *fds)
        said: dict[str, Any] = {"pid": child}
    except BaseException as error:  # nothing may leave this function: what follows belongs to the zygote
        said = {"failed": f"{type(error).__name__}: {error}"}
    os.write(tell, json.dumps(said).encode())
    os._exit(0)


def _be_confined(order: dict[str, Any], reads: int, writes: int) -> NoReturn:
    """Give up all that can be given up, then serve; the first word says whether that worked."""
    try:
        order = order | {"memory": above(order["memory"])}
        confine.mount_empty_around(SCRATCH, f"size={SCRATCH_SIZE},mode=700,nr_inodes=4096")
        os.chdir(SCRATCH)  # into the new folder: the old one, below it, is everybody's
        confine.mount_empty("/proc", "size=4096,nr_inodes=2", read_only=True)
        confine.no_new_rights()
        serve_apart(order, reads, writes)
    finally:
        os._exit(1)


def serve_apart(order: dict[str, Any], reads: int, writes: int) -> None:
    """Serve as a worker or a reader, with limits and nothing of the judge's at hand.

    Args:
        order: ``role``, ``memory`` in bytes of address space, ``processes``, each None where unlimited.
        reads: where requests come from.
        writes: where replies go.
    """
    reads, writes = _take_descriptors(reads, writes)
    os.environ.clear()
    os.environ |= {"HOME": os.getcwd(), "OMP_NUM_THREADS": "1"}
    if confine.resource is not None:
        confine.limit(memory=order["memory"], processes=order["processes"])
    if order["role"] == "reader":
        serve_reader(reads, writes)
    else:
        from .worker import Worker

        sys.setrecursionlimit(1000)
        Worker(reads, writes).serve()
    os._exit(0)


def _take_descriptors(reads: int, writes: int) -> tuple[int, int]:
    """Keep the two pipes alone; a student's print goes nowhere."""
    empty = os.open(os.devnull, os.O_RDWR)
    reads, writes = os.dup(reads), os.dup(writes)
    for standard in (0, 1, 2):
        os.dup2(empty, standard)
    if os.name == "posix":
        keep = sorted((reads, writes))
        os.closerange(3, keep[0])
        os.closerange(keep[0] + 1, keep[1])
        os.closerange(keep[1] + 1, 4096)
    return reads, writes


def above(memory: int | None) -> int | None:
    """Return how much address space this process has with so many bytes on top; None where that cannot be told."""
    if memory is None:
        return None
    try:
        with open("/proc/self/statm") as file:
            return memory + int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # no Linux
        return None


def _end(pid: int) -> dict[str, Any]:
    """End a process and with it all that it started; say what it used and whether anything is left."""
    os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    while True:  # whoever was orphaned and handed to us
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                break
        except ChildProcessError:
            break
    left = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return {"gone": pid, "memory": usage.ru_maxrss * 1024, "left": len(left)}
