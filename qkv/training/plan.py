"""What a run will need, told before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from qkv.config import Config
from qkv.devices import choose_device, choose_kernels
from qkv.prepare import Prepared
from qkv.prepare.check import check_request
from qkv.prepare.directory import Request, existing, require_space, space_needed
from qkv.prepare.mix import Mix
from qkv.run import RunDirectory
from qkv.settings import settings
from qkv.storage import readable_size
from qkv.training.adapting import known_of, require_adaptable, require_named, tagged_alike, to_adapt
from qkv.training.averaging import FINAL
from qkv.training.checkpoints import require_same_data
from qkv.training.fitting import fitted
from qkv.training.footprint import FLOAT, Footprint
from qkv.training.processes import Processes, joined
from qkv.training.reports import require_tensorboard


@dataclass(frozen=True)
class Plan:
    """Sizes of a run; bytes of memory, in each process, and of disk are estimates."""

    parameters: int
    processes: int
    rows_a_step: int
    memory: int
    checkpoint: int
    checkpoint_disk: int
    data_disk: int
    precision: torch.dtype

    @classmethod
    def of(cls, config: Config, *, data_disk: int, processes: int = 1) -> Plan:
        options = config.training
        footprint = Footprint.of(config, processes=processes)
        checkpoints = max(options.keep_checkpoints, options.average_checkpoints)
        # That of the best validation is kept beside the newest; with patience, all that its weights are made of.
        checkpoints += 1 if options.patience is None else FINAL[options.final].count(options)
        return cls(
            parameters=footprint.parameters,
            processes=processes,
            rows_a_step=config.rows_a_step,
            memory=footprint.memory(-(-config.rows_a_step // processes), options.accumulate),
            precision=footprint.precision,
            checkpoint=footprint.checkpoint,
            # One more checkpoint is written before the oldest goes; the final weights are one copy.
            checkpoint_disk=footprint.checkpoint * (checkpoints + 1) + footprint.parameters * FLOAT,
            data_disk=data_disk,
        )

    def text(self, config: Config) -> str:
        """The settings and the plan, for a person."""
        lines = [f"{name} = {'none' if value is None else value}" for name, value in settings(config)]
        positions = self.rows_a_step * config.row_width
        each = f" in each of {self.processes} processes" if self.processes > 1 else ""
        lines += [
            "",
            f"parameters        {self.parameters:,}",
            f"a step            {self.rows_a_step:,} rows of {config.row_width} positions: up to "
            f"{positions:,} source and {positions:,} target tokens",
            f"memory            about {readable_size(self.memory)}{each} while training in "
            f"{str(self.precision).removeprefix('torch.')}, and {readable_size(self.checkpoint)} of the host's while a "
            "checkpoint is written",
            f"disk              about {readable_size(self.checkpoint_disk + self.data_disk)}: "
            f"{readable_size(self.checkpoint_disk)} for checkpoints and weights, {readable_size(self.data_disk)} for "
            "preparing the data",
        ]
        return "\n".join(lines)


def plan_training(
    files: Sequence[Path],
    output: Path | None,
    config: Config,
    *,
    valid: Sequence[Path],
    test: Sequence[Path],
    tokenizer: Path | None,
    adapt: Path | None = None,
) -> str:
    """What `train` would need, told without writing anything; refuses what that would, where it is quickly known."""
    run = None if output is None else RunDirectory(output)
    before = to_adapt(adapt, run)
    if before is not None:
        require_named(files, before)
    if adapt is not None:
        known = known_of(adapt, run)
        config, tokenizer = tagged_alike(files, config, known), known.tokenizer_file
    mix = Mix.of(files, config.text)
    config, files = mix.applied_to(config), mix.files
    with joined() as processes:
        processes.by_first(lambda: require_ready(config, run, adapt))
        roles = {"training": files, "validation": valid, "test": test}
        check_request(config, roles, tokenizer)
        data_disk = space_needed(files)
        there = None
        if run is not None and run.data.exists():
            given = {**roles, "tokenizer": [tokenizer] if tokenizer else []}
            there = existing(run.data, Request.of(config, given, mix))
        if run is not None and there is not None:
            require_same_data(run, there)
            data_disk = 0
        if run is not None:
            require_space(run.data, data_disk)
        return _plan(config, run, there, processes, data_disk)


def plan_prepared_training(data: Path, output: Path | None, config: Config, adapt: Path | None = None) -> str:
    """What `train_prepared` would need, likewise."""
    with joined() as processes:
        prepared = Prepared.open(data)
        config = prepared.applied_to(config)
        run = None if output is None else RunDirectory(output)
        vocabulary = prepared.tokenizer().fingerprint
        processes.by_first(lambda: require_ready(config, run, adapt, vocabulary))
        if run is not None:
            require_same_data(run, prepared)
        return _plan(config, run, prepared, processes, 0)


def _plan(
    config: Config, run: RunDirectory | None, prepared: Prepared | None, processes: Processes, data_disk: int
) -> str:
    config = fitted(config if run is None else run.settled(config), processes, prepared)
    return Plan.of(config, data_disk=data_disk, processes=processes.count).text(config)


def require_ready(
    config: Config, run: RunDirectory | None, adapt: Path | None = None, vocabulary: str | None = None
) -> None:
    """Refuses settings that this machine, a run already begun or one that is adapted cannot go with.

    A plan need not name the run.
    """
    require_adaptable(adapt, run, config, vocabulary)
    if run is not None:
        run.check(run.settled(config))
        run.require_free()
    choose_kernels(config.training.kernels, choose_device(config.training.device))
    if config.training.tensorboard:
        require_tensorboard()
