"""Which device the work is done on, in which numbers, how it gets it, and how much memory it has."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from qkv.errors import ConfigError

_WARM_UP = 2
"""Calls before a graph is captured: libraries and kernels set themselves up in their first calls."""
_SYSTEM = Path("/")
_GROUPS = {
    "": ("", "memory.max", "memory.current"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}
"""For both versions of Linux's control groups: the folder, and the files that tell the limit and what is used of it."""


def choose_device(name: str) -> torch.device:
    """The device of this name; `auto` is the first GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"no device is called {name!r}; try auto, cpu, cuda or cuda:1") from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r} is not one that qkv works on; try auto, cpu, cuda or cuda:1")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device {name!r} is not there: torch sees {torch.cuda.device_count()} GPUs on this machine")
    return device


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The numbers that products are computed in; `auto` is bfloat16 on GPUs that have it, else float32."""
    if name == "auto":
        fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if fast else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def choose_kernels(name: str, device: torch.device) -> bool:
    """Whether a GPU's own twins of the plain parts are used; `auto` uses them where they can be."""
    if name == "plain":
        return False
    can = device.type == "cuda" and importlib.util.find_spec("triton") is not None
    if name == "fast" and not can:
        raise ConfigError("training.kernels=fast needs a GPU and Triton, which comes with torch for GPUs; try auto")
    return can


class Captured:
    """Work that reads and writes the same memory each time, given to a GPU as one graph instead of in a thousand
    pieces, each of which the CPU would have to launch."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._calls = 0
        self._graph = torch.cuda.CUDAGraph()

    def __call__(self) -> None:
        self._calls += 1
        if self._calls <= _WARM_UP:
            self._work()
            return
        if self._calls == _WARM_UP + 1:
            stream = torch.cuda.current_stream()
            stream.synchronize()
            # The graph keeps memory of its own: what the first calls have left over is not needed any more.
            torch.cuda.empty_cache()
            # Meanwhile another thread may ask for memory, for the next batches: that is none of the graph's.
            capturing = torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local")
            with nothing_collected(), capturing:
                self._work()
        self._graph.replay()


@contextmanager
def nothing_collected() -> Iterator[None]:
    """What nobody knows of any more stays until after: an older graph that goes in the middle of a capture ends it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def free_memory(device: torch.device) -> int:
    """Bytes that are free on a device; on a CPU, those that this process may still take."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min((_free_on_machine(), *_free_in_groups(), *_free_by_limits()))


def release_memory(device: torch.device) -> None:
    """Gives back what belonged to things that nobody knows of any more, and forgets how much that was."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


@contextmanager
def memory_limited(device: torch.device, most: int) -> Iterator[None]:
    """Meanwhile this process can have no more than so many bytes of a GPU's memory."""
    # One without a number is the one in use, which torch wants to be told here.
    number = torch.cuda.current_device() if device.index is None else device.index
    share = most / torch.cuda.mem_get_info(number)[1]
    torch.cuda.set_per_process_memory_fraction(min(1.0, max(0.0, share)), number)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, number)


def _free_by_limits() -> Iterator[int]:
    """What the limits of this process, which a shell's `ulimit -v` sets, let it take."""
    sizes = (_SYSTEM / "proc/self/statm").read_text().split() if (_SYSTEM / "proc/self/statm").exists() else []
    for limit, place in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY and sizes:
            yield max(0, most - int(sizes[place]) * resource.getpagesize())


def _free_on_machine() -> int:
    told = _SYSTEM / "proc/meminfo"
    if not told.exists():
        # Not on Linux: all there is.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found = re.search(r"MemAvailable: +([0-9]+) kB", told.read_text())
    assert found is not None
    return int(found[1]) * 1024


def _free_in_groups() -> Iterator[int]:
    """What the control groups of this process let it take: a container's or a queue's limits."""
    groups = _SYSTEM / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.exists() else ():
        _, kinds, place = line.split(":", 2)
        for folder, most, used in (_GROUPS[kind] for kind in kinds.split(",") if kind in _GROUPS):
            root = _SYSTEM / "sys/fs/cgroup" / folder
            group = root / place.strip("/")
            for one in (group, *(parent for parent in group.parents if parent.is_relative_to(root))):
                if (one / most).exists() and (limit := (one / most).read_text().strip()) != "max":
                    yield max(0, int(limit) - int((one / used).read_text()) + _cached(one))


def _cached(group: Path) -> int:
    """Bytes of files that a group keeps in memory and would give back."""
    found = re.search(r"^(?:total_)?inactive_file ([0-9]+)", (group / "memory.stat").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
