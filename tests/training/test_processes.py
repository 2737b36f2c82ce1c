"""What a process does by itself, and what several are refused."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import Any

import pytest
import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from qkv.config import Config, TrainingConfig
from qkv.errors import ConfigError
from qkv.models.build import build
from qkv.training import processes, replicated
from qkv.training.objective import Goal
from qkv.training.parallel import require_rows, trained
from qkv.training.processes import Processes, joined
from qkv.training.replicated import Replicated
from qkv.training.step import Alone, Step
from tests.models.families import FAMILIES, VOCABULARY
from tests.training.steps import batch, stepping


def test_one_process_is_the_first_and_does_all_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as processes:
        assert (processes.rank, processes.count, processes.first) == (0, 1, True)
        answer = object()
        assert processes.by_first(lambda: answer) is answer
        assert processes.summed(torch.tensor([3.0])).item() == 3.0


@pytest.mark.parametrize(("name", "used"), [("cuda:1", [1]), ("cuda", []), ("cpu", [])])
def test_one_process_uses_the_gpu_it_was_told(monkeypatch: pytest.MonkeyPatch, name: str, used: list[int]) -> None:
    """Kernels start on the one in use, which is the first unless somebody says otherwise."""
    told: list[int | None] = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: told.append(device.index))
    assert Processes().own_device(torch.device(name)) == torch.device(name)
    assert told == used


def refused(**settings: Any) -> str:
    options = TrainingConfig(**settings)
    with pytest.raises(ConfigError) as error:
        trained(options, build(FAMILIES["paper"], VOCABULARY, seed=1), torch.float32, Processes(0, 2))
    return str(error.value)


def test_several_processes_are_refused_where_one_was_asked_for() -> None:
    assert refused(parallel="none") == "training.parallel=none is for one process, and 2 were started; try auto"


def test_every_process_needs_a_row_for_each_part() -> None:
    require_rows(6, TrainingConfig(accumulate=3), 2)
    with pytest.raises(ConfigError, match="a step has 5 rows, too few for 2 processes with 3 parts each"):
        require_rows(5, TrainingConfig(accumulate=3), 2)


def test_what_torchrun_would_have_set_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=re.escape("start the processes with torchrun")), joined():
        pass


@pytest.mark.parametrize("count", [1, 2])
def test_whoever_is_started_again_has_the_time_of_those_before(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """torchrun keeps what they meet at, and tells them how often they were started."""
    kept, begun = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False), time.monotonic()
    variables = {"WORLD_SIZE": count, "RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": kept.port}
    for name, value in {**variables, "TORCHELASTIC_USE_AGENT_STORE": True}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(processes, "TCPStore", partial(TCPStore, wait_for_workers=False))
    for attempt, (own, told) in enumerate([(100.0, 100.0), (900.0, 100.0)]):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(attempt))
        with joined() as those:
            assert those.lasting(begun + own) == pytest.approx(begun + told, abs=60)
            assert those.lasting(None) is None


def test_every_process_draws_random_numbers_of_its_own_at_every_step() -> None:
    """A generator of the CPU takes 32 bits of a seed."""
    seeds = []
    for rank in range(4):
        ours = stepping()
        processes = Processes(rank)
        gradients = Alone(ours.model, ours.weights, Goal(0.1), processes)
        step = Step(
            Config(model=FAMILIES["paper"]), gradients, ours.weights, ours.optimizers, ours.averaging, captured=False
        )
        for number in (1, 2, 3):
            step.begin(batch(1), number)()
            seeds.append(torch.initial_seed() % 2**32)
            if rank == 0:
                assert seeds[-1] == 1_000_003 + number
    assert len({*seeds}) == len(seeds) == 12


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_parts_of_a_step_add_up_in_several_processes_as_in_one(
    precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's share in it left out, which is to take the mean over processes."""
    monkeypatch.setattr(replicated, "DistributedDataParallel", lambda objective: objective)
    some, sums = batch(1), []
    for kind in (Alone, Replicated):
        ours = stepping(precision=precision)
        gradients = kind(ours.model, ours.weights, Goal(0.1), Processes())
        # Whatever there was before.
        for seed in (2, 1):
            for number, part in enumerate(batch(seed).split(3)):
                gradients.learn(part, torch.tensor(float(some.target_tokens)), first=number == 0)
        sums.append(ours.weights.gradients())
    for one, other in zip(*sums, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
