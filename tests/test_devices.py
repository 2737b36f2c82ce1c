"""Which device, which numbers, which kernels."""

from __future__ import annotations

import gc
import resource
import sys
import weakref
from pathlib import Path

import pytest
import torch

from qkv import devices
from qkv.devices import choose_device, choose_kernels, choose_precision, free_memory, nothing_collected
from qkv.errors import ConfigError
from tests.forked import run

CPU = torch.device("cpu")


def test_a_cpu_has_plain_kernels_and_says_so_when_asked_for_others() -> None:
    assert choose_kernels("auto", CPU) is False
    assert choose_kernels("plain", CPU) is False
    with pytest.raises(ConfigError, match=r"training\.kernels=fast needs a GPU and Triton, .*; try auto"):
        choose_kernels("fast", CPU)


def test_a_gpu_has_fast_kernels_where_triton_is(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda")
    for there in (True, False):
        monkeypatch.setattr("importlib.util.find_spec", lambda _, there=there: object() if there else None)
        assert choose_kernels("auto", gpu) is there
        assert choose_kernels("plain", gpu) is False
    with pytest.raises(ConfigError, match="needs a GPU and Triton"):
        choose_kernels("fast", gpu)


def test_a_cpu_computes_in_float32_unless_told_otherwise() -> None:
    assert choose_device("cpu") == CPU
    assert choose_precision("auto", CPU) == torch.float32
    assert choose_precision("bfloat16", CPU) == torch.bfloat16


def test_free_memory_is_what_the_machine_has_left() -> None:
    told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total = int(told["MemTotal"].split()[0]) * 1024
    assert 0 < free_memory(CPU) <= total


@pytest.mark.parametrize(
    ("groups", "files", "free"),
    [
        # Nothing but the machine limits.
        ("0::/\n", {}, 8000 * 1024),
        # A container sees its own group as the first; what it keeps of files it would give back.
        (
            "0::/\n",
            {"memory.max": "5000000", "memory.current": "3000000", "memory.stat": "anon 7\ninactive_file 500000\n"},
            2_500_000,
        ),
        ("0::/\n", {"memory.max": "max", "memory.current": "3000000", "memory.stat": ""}, 8000 * 1024),
        # A queue's job has a group inside others, any of which may be the tightest.
        (
            "0::/queue/job\n",
            {
                "queue/memory.max": "4000000", "queue/memory.current": "3900000", "queue/memory.stat": "",
                "queue/job/memory.max": "5000000", "queue/job/memory.current": "0", "queue/job/memory.stat": "",
            },
            100_000,
        ),
        # The older version has a tree for each kind of thing that is limited.
        (
            "5:cpu:/other\n4:memory:/job\n0::/\n",
            {
                "memory/job/memory.limit_in_bytes": "5000000", "memory/job/memory.usage_in_bytes": "1000000",
                "memory/job/memory.stat": "inactive_file 1\ntotal_inactive_file 9\n",
            },
            4_000_001,
        ),
        ("0::/\n", {"memory.max": "5000", "memory.current": "6000", "memory.stat": ""}, 0),
    ],
)  # fmt: skip
def test_free_memory_ends_where_the_limits_of_a_container_or_a_queue_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, files: dict[str, str], free: int
) -> None:
    tree = {
        "proc/meminfo": "MemTotal:  99999 kB\nMemAvailable:    8000 kB\n",
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{name}": text for name, text in files.items()},
    }
    for name, text in tree.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(devices, "_SYSTEM", tmp_path)
    assert free_memory(CPU) == free


def tell_free_memory(limit: int | None) -> None:
    """What is free where the process may have so much, or little more than it has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = limit or used + (1 << 28)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    sys.stdout.write(str(free_memory(CPU)))


@pytest.mark.parametrize(("limit", "most"), [(1 << 36, (1 << 36) - 1), (None, 1 << 28)])
def test_a_limit_of_the_process_is_a_limit_of_its_memory(tmp_path: Path, limit: int | None, most: int) -> None:
    """As `ulimit -v` sets it."""
    assert run(tell_free_memory, limit, told=tmp_path / "told") == 0
    assert 0 < int((tmp_path / "told").read_text()) <= most


class Circle:
    """Goes only when it is looked for."""

    def __init__(self) -> None:
        self.own = self


@pytest.mark.parametrize("collecting", [True, False])
def test_nothing_is_collected_meanwhile(collecting: bool) -> None:
    was = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        with nothing_collected():
            meanwhile = weakref.ref(Circle())
            some: list[list[int]] = [[] for _ in range(20 * gc.get_threshold()[0])]
            assert meanwhile() is not None, f"gone after {len(some):,} things were made"
        assert gc.isenabled() is collecting
        with pytest.raises(KeyError), nothing_collected():
            raise KeyError
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if was else gc.disable)()
