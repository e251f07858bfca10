"""Workers that cost little: forks of one process that has PyTorch loaded, with a worker's limits but no bubblewrap.

For tests of what is asked and answered. What shuts a submission in is tested with workers as they are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ttutor.grading.sandbox import TRUSTED, Sandbox, Started

FORKS = """
import multiprocessing.connection, os, signal, socket, sys
import torch
from worker import serve
backward, torch.Tensor.backward = torch.Tensor.backward, lambda self: None  # its threads would not survive a fork
serve.preload()
torch.Tensor.backward = backward
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
children = {}
while True:
    for ready in multiprocessing.connection.wait([server, *children]):
        if ready is not server:  # whoever asked for it is gone
            os.kill(children[ready], signal.SIGKILL)
            os.waitpid(children.pop(ready), 0)
            ready.close()
            continue
        asked, _ = server.accept()
        data, pipes, _, _ = socket.recv_fds(asked, 100, 2)
        child = os.fork()
        if child == 0:
            os.dup2(pipes[0], 0), os.dup2(pipes[1], 1)
            serve.main(int(data))
        for pipe in pipes:
            os.close(pipe)
        children[asked] = child
"""
ASKS = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
socket.send_fds(line, [sys.argv[2].encode()], [0, 1])
os.closerange(0, 2)
line.recv(1)
"""


class ForkedSandbox(Sandbox):
    """Starts workers by asking one process to fork; a context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__(TRUSTED)
        object.__setattr__(self, "place", str(folder / "forks"))

    def __enter__(self) -> ForkedSandbox:
        whole = super().started(0)
        *flags, code = whole.command
        begins = code.partition("from worker.serve")[0]
        self.__dict__["process"] = subprocess.Popen(
            [*flags, begins + FORKS, self.place], env=whole.environment, stdout=subprocess.DEVNULL
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def started(self, memory: int) -> Started:
        """Return what asks for a fork, waiting for the process that forks."""
        wait = "import os, time\nwhile not os.path.exists(__import__('sys').argv[1]): time.sleep(0.05)\n"
        command = [os.path.realpath(sys.executable), "-S", "-E", "-c", wait + ASKS, self.place, str(memory)]
        return Started(command, {}, "/")
