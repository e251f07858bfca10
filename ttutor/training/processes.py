r"""One training in many processes: each computes some batches of a step, then all add up their gradients.

Of the batches of a step, process $r$ of $R$ takes those numbered $r, r + R, r + 2R, \dots$, the set $B_r$. The loss is
the mean over the real target tokens of all of them: with $n_b$ tokens of mean loss $L_b$ in batch $b$, and
$N = \sum_b n_b$ over the batches of all processes,

$$L = \sum_b \frac{n_b}{N} L_b, \qquad \nabla L = \sum_{r=0}^{R-1} \; \sum_{b \in B_r} \frac{n_b}{N} \nabla L_b$$

The mean of the processes' own means would be another number: it counts a token for more where a process has fewer of
them. $N$ needs no message, since every process knows all batches: their order follows from seed and epoch. The inner
sum is gradient accumulation, the outer one an all-reduce, after which each process holds $\nabla L$. All hold all
weights, take the same step, and so stay equal bit for bit; a checksum makes sure at each checkpoint.

Written with torch.distributed alone. DistributedDataParallel, and accelerate on top of it, take the mean of means and
begin to send while the backward pass still runs, through hooks on parameters. That pays where gradients take long to
send; a small translator's are a few megabytes, sent in one piece after the pass, where one can read it.
"""

import hashlib
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as distributed
from torch import Tensor

from ttutor.errors import ProcessLost, RunError, TtutorError

Item = TypeVar("Item")
Result = TypeVar("Result")

LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells each process that it starts, in its environment."""

PATIENCE = timedelta(minutes=10)
"""So long a process waits for the others. One that dies is noticed at once; only a machine that falls silent is not."""


def may_be_restarted() -> bool:
    """Whether torchrun, told so by ``--max-restarts``, starts all processes again when one has died.

    Which of them did, and how often, only the machine knows on which it happened: a start and a restart look alike.
    """
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


def check_restarts() -> None:
    """Refuse a torchrun whose restarted processes would look for those that died.

    Since PyTorch 2.5 the agent keeps one store of addresses for all attempts (pytorch/pytorch, issue 135712).
    """
    if may_be_restarted() and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        if os.environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") == "1":  # which the static rendezvous does not heed
            raise RunError(
                "torchrun --max-restarts needs another rendezvous than the static one, which keeps the addresses of "
                "processes that died: add --standalone, or on several machines --rdzv-backend c10d"
            )
        raise RunError(
            "torchrun --max-restarts keeps the addresses of processes that died: start it with the variable "
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in its environment, on every machine"
        )


class Processes:
    """The processes of a training, as one of them sees them; without arguments it is the only one.

    The numbers that they must agree on travel in `merged`, the gradients in `add_up`, and nothing in any other way.
    Each method that sends must be called in every process, in the same order. One alone sends nothing.

    Args:
        rank: the number of this process, from 0.
        count: how many there are, on all machines.
        local_rank, local_count: the same among those on this machine.

    >>> alone = Processes()
    >>> alone.is_first, alone.shard(["batch 0", "batch 1"]), alone.merged([0.5, 0.25], n_items=2)
    (True, ['batch 0', 'batch 1'], [0.5, 0.25])
    >>> Processes(rank=1, count=2).shard(["batch 0", "batch 1", "batch 2", "batch 3"])
    ['batch 1', 'batch 3']
    """

    def __init__(self, rank: int = 0, count: int = 1, local_rank: int = 0, local_count: int = 1):
        self.rank, self.count, self.local_rank, self.local_count = rank, count, local_rank, local_count
        self._gradients_group: distributed.ProcessGroup | None = None

    @classmethod
    def launched(cls) -> "Processes":
        """Those that torchrun or the like started, joined; the only one where nothing started more."""
        if not all(name in os.environ for name in LAUNCHED) or os.environ["WORLD_SIZE"] == "1":
            return cls()
        check_restarts()
        distributed.init_process_group("gloo", timeout=PATIENCE)
        rank, count, local_rank, local_count = (int(os.environ[name]) for name in LAUNCHED[:4])
        return cls(rank, count, local_rank, local_count)

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.count} on {socket.gethostname()}"

    def command(self, arguments: str) -> str:
        """The command that starts as many processes again.

        >>> Processes(count=2, local_count=2).command("train --resume")
        'torchrun --nproc-per-node 2 -m ttutor train --resume'
        """
        if self.count == 1:
            return f"ttutor {arguments}"
        machines = "" if self.count == self.local_count else "(the options as before, on each machine) "
        return f"torchrun {machines}--nproc-per-node {self.local_count} -m ttutor {arguments}"

    def shard(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items that this process works on."""
        return items[self.rank :: self.count]

    def merged(self, mine: Sequence[float], n_items: int) -> list[float]:
        """One number for each item, of which each process gives those of `mine` of the items."""
        return (
            self.merged_rows(torch.tensor(mine, dtype=torch.float64), n_items).tolist() if self.count > 1 else [*mine]
        )

    def merged_rows(self, mine: Tensor, n_items: int) -> Tensor:
        """The same for one row of numbers each: every process fills its rows of a table of zeros; all are added up."""
        if self.count == 1:
            return mine
        table = torch.zeros(n_items, *mine.shape[1:], dtype=mine.dtype)
        table[self.rank :: self.count] = mine
        self._sum(table)
        return table

    def agree(self, seconds: float, stop: bool) -> tuple[float, bool]:
        """The first process's clock, and whether anyone asked any of them to stop."""
        table = self.merged_rows(torch.tensor([[seconds, stop]], dtype=torch.float64), self.count)
        return table[0, 0].item(), bool(table[:, 1].any())

    def use(self, device: torch.device) -> None:
        """Send gradients from GPU to GPU (NCCL) where they are; all else goes between CPUs (gloo)."""
        if self.count > 1 and device.type == "cuda":
            torch.cuda.set_device(device)
            self._gradients_group = distributed.new_group(backend="nccl", timeout=PATIENCE)

    def add_up(self, gradients: Sequence[Tensor]) -> None:
        """Replace each gradient by its sum over all processes: one all-reduce of all numbers in a row."""
        if self.count == 1:
            return
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self._sum(flat, self._gradients_group)
        for gradient, part in zip(gradients, flat.split([one.numel() for one in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def _sum(self, tensor: Tensor, group: "distributed.ProcessGroup | None" = None) -> None:
        try:
            distributed.all_reduce(tensor, group=group)
        except RuntimeError as error:
            raise ProcessLost(
                f"{self} lost the others: one of them has ended, or was silent for {PATIENCE} ({error})"
            ) from error

    def check_equal(self, facts: Mapping[str, str | int], advice: str) -> None:
        """Make sure that all processes have the same of each fact.

        Raises:
            RunError: in all processes, if one differs; it names the fact and gives the advice.
        """
        if self.count == 1:
            return
        mine = torch.tensor([[one if isinstance(one, int) else digest(one) for one in facts.values()]])
        table = self.merged_rows(mine, self.count)
        different = [name for name, same in zip(facts, (table == table[0]).all(dim=0), strict=True) if not same]
        if different:
            raise RunError(f"the processes differ in {', '.join(different[:3])}: {advice}")

    def run_on_first(self, work: Callable[[], Result]) -> Result:
        """Do something that may fail in some processes alone, as reading a file may; then it ends in all of them.

        Raises:
            TtutorError: what `work` raised in this process.
            RunError: the same, where a process of lower rank raises it too; or another process failed, not this.
        """
        result, error = None, None
        try:
            result = work()
        except TtutorError as raised:
            if self.count == 1 or isinstance(raised, ProcessLost):
                raise
            error = raised
        complaints = self.merged_rows(torch.tensor([digest(str(error)) if error else 0]), self.count).tolist()
        if self.count == 1 or not any(complaints):
            return result  # type: ignore[return-value]
        if error is None:
            raise RunError("another process could not go on, and says why")
        if complaints.index(complaints[self.rank]) < self.rank:
            raise RunError(str(error)) from error
        raise error if self.is_first else type(error)(f"{self}: {error}")

    def wait_for_an_end(self) -> None:
        """Wait until another process has ended: the launcher ends all as soon as one has, even one about to speak."""
        with suppress(RuntimeError):
            distributed.barrier()

    def close(self) -> None:
        """Part, at the end of a training; the launcher waits for the last."""
        if self.count > 1:
            distributed.destroy_process_group()


def digest(text: str) -> int:
    """A number for a text, such that other texts have others."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)


def checksum(tensor: Tensor) -> int:
    """The sum of a tensor's bits, read as whole numbers: two tensors that differ anywhere have, as good as surely, two.

    >>> checksum(torch.tensor([1.0, 2.0])) == checksum(torch.tensor([1.0, 2.0000002]))
    False
    """
    return int(tensor.detach().contiguous().view(torch.int32).sum(dtype=torch.int64))
