"""A lane: what starts the processes in which a submission is read and run, one submission after the other.

At the strongest level a lane holds a zygote in a sandbox, which has PyTorch ready and forks a process for each
submission. At the others, and where such a fork cannot be isolated, each process is started anew.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from typing import Any, Protocol, runtime_checkable

from ttutor.grading.channel import Channel
from ttutor.grading.sandbox import INSIDE, Level, SandboxError, bubblewrap_command, environment, python_command

__all__ = ["Lane", "Process", "WarmLane", "below", "memory_of", "together"]

START_SECONDS, ORDER_SECONDS = 180.0, 30.0
MOST_PROCESSES = 64


@runtime_checkable
class Process(Protocol):
    """A process that reads or runs a submission."""

    channel: Channel

    def end(self) -> int:
        """End it and all that it has started; return how much memory it used at most, in bytes, or 0."""
        ...


@runtime_checkable
class Lane(Protocol):
    """What starts processes of one level."""

    level: Level
    user: int | None

    def strays(self) -> list[int]:
        """The numbers of processes of submissions that should have ended."""
        ...

    def open(self, role: str, memory: int) -> Process:
        """Start a ``worker`` or a ``reader`` that may use so many bytes of memory.

        Raises:
            SandboxError: it does not start.
        """
        ...

    def close(self) -> None:
        """End all that it holds."""
        ...


class WarmLane:
    """A zygote in bubblewrap that forks isolated processes; started when first needed, and anew when in doubt.

    Args:
        level: what results call it.
        user: whom the zygote becomes, where the judge is root.
        torch: whether workers are wanted; readers do without PyTorch.
    """

    def __init__(self, level: Level, user: int | None, *, torch: bool = True) -> None:
        self.level, self.user, self.torch = level, user, torch
        self._zygote: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self.forked = self.started = 0

    def open(self, role: str, memory: int) -> Process:
        """Fork a process; where the zygote does not do it, start another zygote and try once more."""
        for is_last in (False, True):
            try:
                return self._fork(role, memory)
            except SandboxError:
                self.close()
                if is_last:
                    raise
        raise AssertionError("one of the two attempts returns or raises")

    def close(self) -> None:
        """End the zygote; with it ends everything in its sandbox."""
        if self._zygote is not None:
            self._zygote.kill()
            self._zygote.wait()
            self._zygote.stderr.close()
        if self._orders is not None:
            self._orders.close()
        self._zygote = self._orders = None

    def strays(self) -> list[int]:
        """Whatever stands below the zygote although no submission is being graded."""
        if self._zygote is None:
            return []
        inside = below(self._zygote.pid)
        return inside[1:]  # the first is the zygote itself

    def end(self, pid: int) -> int:
        """End one process; a zygote that does not do it properly is replaced."""
        try:
            told = self._order({"end": pid}, [], ORDER_SECONDS)
        except SandboxError:
            self.close()
            return 0
        if told.get("left") != 0:
            self.close()
        return int(told.get("memory", 0))

    def _fork(self, role: str, memory: int) -> Process:
        if self._zygote is None:
            self._start()
        reads, their_writes = os.pipe()
        their_reads, writes = os.pipe()
        try:
            order = {"role": role, "memory": memory, "processes": MOST_PROCESSES}
            told = self._order(order, [their_reads, their_writes], ORDER_SECONDS)
            if "pid" not in told:
                raise SandboxError(f"the sandbox did not start a process: {told.get('failed')}")
        except SandboxError:
            os.close(reads)
            os.close(writes)
            raise
        finally:
            os.close(their_reads)
            os.close(their_writes)
        self.forked += 1
        return _Forked(self, told["pid"], Channel(reads, writes, lambda: memory_of(self.strays()) > together(memory)))

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        settings = json.dumps({"socket": theirs.fileno(), "user": self.user, "torch": self.torch})
        command = bubblewrap_command(python_command("zygote", settings, INSIDE))
        self._orders, self.started = ours, self.started + 1
        with theirs:
            self._zygote = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=environment("/tmp"),
            )
        told = self._hear(START_SECONDS)
        if told.get("threads") != 1:
            raise SandboxError(f"a process with {told.get('threads')} threads cannot be forked safely")

    def _order(self, order: dict[str, Any], fds: list[int], seconds: float) -> dict[str, Any]:
        if self._orders is None:
            raise SandboxError("the sandbox is not running")
        try:
            socket.send_fds(self._orders, [json.dumps(order).encode()], fds)
        except OSError as error:
            raise SandboxError(f"the sandbox is gone: {error}") from error
        return self._hear(seconds)

    def _hear(self, seconds: float) -> dict[str, Any]:
        deadline, said = time.monotonic() + seconds, b""
        while not said.endswith(b"\n"):
            self._orders.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                part = self._orders.recv(65536)
            except TimeoutError:
                raise SandboxError(f"the sandbox did not answer within {seconds:.0f} s") from None
            if not part:
                raise SandboxError(f"the sandbox did not start or has ended: {self._complaint()}")
            said += part
        return json.loads(said)

    def _complaint(self) -> str:
        self._zygote.kill()
        text = self._zygote.stderr.read(4000).decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else "it said nothing"


def below(pid: int) -> list[int]:
    """The numbers of all processes that descend from one, as far as this system tells."""
    parents = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError):  # no process, or none any more
            continue
    found, queue = [], [pid]
    while queue:
        queue = [child for child, parent in parents.items() if parent in queue]
        found += queue
    return found


def together(memory: int) -> int:
    """How much all processes of a submission may use together, in bytes, where each may use so much."""
    return memory + memory // 2 + (1 << 29)


def memory_of(pids: list[int]) -> int:
    """How much memory processes use together, in bytes, shared parts counted once; 0 where that cannot be told."""
    kibibytes = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                kibibytes += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:  # it has ended, or belongs to somebody else
            continue
    return kibibytes * 1024


class _Forked:
    """A process that a zygote has forked."""

    def __init__(self, lane: WarmLane, pid: int, channel: Channel) -> None:
        self.lane, self.pid, self.channel = lane, pid, channel

    def end(self) -> int:
        """End it, and with it its namespaces."""
        self.channel.close()
        return self.lane.end(self.pid)
