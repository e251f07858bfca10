"""A pytest plugin: the kernels of notebooks are forks of one process that has imported PyTorch already.

Importing PyTorch and matplotlib takes five seconds of a processor; forty notebooks would each do it again. A fork has
names, folder and environment of its own, as a new kernel has. ``tests/run.py`` uses this on Linux, where forking is
safe; ``make notebooks`` executes with new kernels everywhere.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
from typing import TYPE_CHECKING

from jupyter_client.provisioning import local_provisioner

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    import pytest

SERVER = multiprocessing.get_context("forkserver")
PRELOADED = ["torch", "torch._dynamo", "matplotlib.pyplot", "ipywidgets", "ipykernel.kernelapp"]
"""With what the first step of an optimizer imports, `torch._dynamo`: that alone takes a second."""
INLINE = "module://matplotlib_inline.backend_inline"  # where a kernel draws; matplotlib asks for it when imported


def run_kernel(started: Connection, arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Become an IPython kernel: what ``python -m ipykernel_launcher`` with these arguments does."""
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # Jupyter ends a kernel by a signal to its group, which must not be that of pytest
    started.send(None)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    IPKernelApp.launch_instance(arguments)


class WarmKernel:
    """What Jupyter expects of a `subprocess.Popen`, for a process of the fork server."""

    stdin = stdout = stderr = None

    def __init__(self, process: ForkServerProcess) -> None:
        self.process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        """Return the exit status, or None while the kernel runs."""
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the kernel's end and return its exit status."""
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired("kernel", timeout or 0)
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        """Send the kernel a signal, if it still runs."""
        if self.pid is not None and self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the kernel to end."""
        self.process.terminate()

    def kill(self) -> None:
        """End the kernel."""
        self.process.kill()


def launch_kernel(command: list[str], *, env: dict[str, str], cwd: str, **_: object) -> WarmKernel:
    """Start a kernel as Jupyter's function of this name does, ready in a fraction of the time."""
    arguments = command[command.index("ipykernel_launcher") + 1 :]
    ours, theirs = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=run_kernel, args=(theirs, arguments, dict(env), str(cwd)))
    process.start()
    ours.recv()
    return WarmKernel(process)


def pytest_configure(config: pytest.Config) -> None:
    """Let nbval's kernels start here."""
    os.environ["MPLBACKEND"] = INLINE
    SERVER.set_forkserver_preload(PRELOADED)
    local_provisioner.launch_kernel = launch_kernel
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        # A kernel's ports are chosen before it starts. Were the server still importing then, for many seconds, another
        # program could take one of them, and the kernel would die.
        first = SERVER.Process(target=os.getpid)
        first.start()
        first.join()
