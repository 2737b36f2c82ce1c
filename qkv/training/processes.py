"""The processes that train one model together: who they are, what the first tells the others, and how all end as one.

They are started by torchrun, or by anything that sets the same variables: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
MASTER_PORT. Only the first process writes to the run directory; all of them read it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn

import torch
from torch import Tensor, distributed
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from qkv.errors import ConfigError, QkvError, TrainingError
from qkv.progress import tell

_TOLD = "told"
"""The key under which the process that tells what went wrong leaves its exit code."""
_DEADLINE = "qkv ends at"
"""The key under which the first attempt leaves when all have to be done."""
_SOONEST, _LATEST = 0.001, 0.25
"""Seconds between two looks at what the first process has to tell."""
_MEETING = timedelta(minutes=10)
"""How long processes wait for one another to come up: other machines may still be starting."""
_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


class _Told(QkvError):  # noqa: N818 - it is no error of its own
    """Another process has told what went wrong, or why all stop."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("another process has told why all end")
        self.exit_code = exit_code


class Processes:
    """One process among those that train together, or the only one."""

    def __init__(
        self, rank: int = 0, count: int = 1, store: Store | None = None, *, outliving: Store | None = None
    ) -> None:
        self.rank = rank
        self.count = count
        self._store = store
        self._outliving = outliving
        """What those find who are started again when one of these was lost."""
        self._questions = 0

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def by_first(self, work: Callable[[], Any]) -> Any:
        """Does this in the first process alone; all wait for it, and get what it returns, which JSON must hold."""
        if self._store is None:
            return work()
        self._questions += 1
        key = f"answer {self._questions}"
        if self.first:
            answer = work()
            self._store.set(key, json.dumps(answer))
            return answer
        # Not the store's own way to wait: that answers no signal, and knows nothing of a first process that failed.
        pause = _SOONEST
        while not self._store.check([key]):
            if self._store.check([_TOLD]):
                raise _Told(int(self._store.get(_TOLD)))
            time.sleep(pause)
            pause = min(2 * pause, _LATEST)
        return json.loads(self._store.get(key))

    def lasting(self, deadline: float | None) -> float | None:
        """The time to end by: whoever is started again has no more of it than those who were lost."""
        if deadline is None or self._outliving is None:
            return deadline
        # Told by the clocks of the world, on which machines agree.
        apart = time.time() - time.monotonic()
        if _attempt() == 0:
            if self.first:
                self._outliving.set(_DEADLINE, str(deadline + apart))
            return deadline
        return float(self._outliving.get(_DEADLINE)) - apart if self._outliving.check([_DEADLINE]) else deadline

    def own_device(self, device: torch.device) -> torch.device:
        """Where this process computes: on a machine with several GPUs, each of its processes takes another one."""
        if device.type != "cuda":
            return device
        if self.count == 1:
            if device.index is not None:
                # Kernels start on the GPU that is in use, whatever their numbers lie on.
                torch.cuda.set_device(device)
            return device
        place, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if place >= there:
            raise ConfigError(f"more processes than GPUs on this machine: start {there} of them at most")
        torch.cuda.set_device(place)
        return torch.device("cuda", place)

    def connect(self, device: torch.device) -> None:
        """From here on, the processes can add up what lies on their devices."""
        if self._store is not None and not distributed.is_initialized():
            distributed.init_process_group(
                _BACKENDS[device.type], store=self._store, rank=self.rank, world_size=self.count
            )

    def summed(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, the same to the last bit in each."""
        if self.count > 1:
            distributed.all_reduce(tensor)
        return tensor

    def least(self, number: int, device: torch.device) -> int:
        """The smallest of what they give, each its own."""
        if self.count == 1:
            return number
        tensor = torch.tensor(number, device=device)
        distributed.all_reduce(tensor, distributed.ReduceOp.MIN)
        return int(tensor)

    def sharing(self, device: torch.device) -> int:
        """How many of them share the memory of this process's device; where nobody has told, it may be all."""
        if self.count == 1 or device.type != "cpu":
            return 1
        return int(os.environ.get("LOCAL_WORLD_SIZE", self.count))

    def end(self, error: QkvError) -> NoReturn:
        """Ends this process; the one in which something went wrong first tells what it was."""
        if threading.current_thread() is threading.main_thread():
            # When one process ends, torchrun asks the others to, which would only spoil their exit codes.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self._tells(error.exit_code):
            if self.first:
                raise error
            # The command line of any other process is silent: it would mostly repeat what the first one says.
            tell(f"qkv: error: {error}")
        raise SystemExit(error.exit_code)

    def _tells(self, exit_code: int) -> bool:
        assert self._store is not None
        try:
            if self._store.add("complaints", 1) > 1:
                return False
            self._store.set(_TOLD, str(exit_code))
        except RuntimeError:
            # The store went with the first process, which has told it.
            return False
        return True


@contextmanager
def joined() -> Iterator[Processes]:
    """The processes that were started together; what goes wrong in any of them ends all, and is told once."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(outliving=_store(count) if _kept_by_torchrun() else None)
        return
    store = _store(count)
    outliving = store if _kept_by_torchrun() else None
    # Each attempt has a part of its own. torchrun keeps one store for all of them: processes that were started again
    # would find the addresses of the dead ones there, and wait for them in vain.
    part = PrefixStore(f"attempt {_attempt()}", store)
    processes = Processes(int(os.environ["RANK"]), count, part, outliving=outliving)
    try:
        yield processes
    except QkvError as error:
        processes.end(error)
    except RuntimeError as error:
        if not _lost_another(error):
            raise
        processes.end(
            TrainingError(
                "another process of this training was lost; the same command goes on from the last checkpoint, and "
                "torchrun --max-restarts=3 gives it by itself"
            )
        )
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _store(count: int) -> Store:
    """What processes meet at."""
    try:
        address, port, rank = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), int(os.environ["RANK"])
    except KeyError as error:
        raise ConfigError(
            f"WORLD_SIZE is {count}, but {error.args[0]} is not set: start the processes with torchrun"
        ) from error
    try:
        return TCPStore(address, port, count, rank == 0 and not _kept_by_torchrun(), _MEETING)
    except RuntimeError as error:
        raise ConfigError(f"cannot reach the first process at {address}:{port}: {error}") from error


def _kept_by_torchrun() -> bool:
    """Whether what processes meet at is there before they are, and after."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _attempt() -> int:
    """How often torchrun has started all processes again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def _lost_another(error: RuntimeError) -> bool:
    """Whether this is what a collective operation raises in those who are left."""
    return isinstance(error, distributed.DistError) or "gloo" in str(error) or "Connection" in str(error)
