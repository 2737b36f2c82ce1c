"""What a run will need, told before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from qkv.checkpoint import RunDirectory
from qkv.config import Config, settings
from qkv.data.batch import Packed
from qkv.devices import choose_device, choose_kernels, choose_precision
from qkv.layers.loss import CHUNKS
from qkv.models.build import assemble, count_parameters
from qkv.prepare import Prepared
from qkv.prepare.check import check_request
from qkv.prepare.directory import Request, existing, require_space, space_needed
from qkv.storage import readable_size
from qkv.training.averaging import FINAL
from qkv.training.checkpoints import require_same_data
from qkv.training.reports import require_tensorboard

_FLOAT = 4
_GPU_CHUNK = 8192
"""Positions of a chunk of the loss on a GPU, which is not there to be asked where there is no GPU."""


@dataclass(frozen=True)
class Plan:
    """Sizes of a run; bytes of memory and disk are estimates."""

    parameters: int
    rows_a_step: int
    positions_a_step: int
    memory: int
    checkpoint: int
    checkpoint_disk: int
    data_disk: int
    precision: torch.dtype

    @classmethod
    def of(cls, config: Config, *, data_disk: int) -> Plan:
        options = config.training
        vocabulary = config.text.vocabulary
        parameters = count_parameters(config.model, vocabulary)
        rows = options.tokens_per_batch // config.data.row_width
        copies = 3 + (options.final == "moving")
        precision = choose_precision(options.precision, choose_device(options.device))
        rows_at_once = -(-rows // options.accumulate)
        # Counted in float32, kept in the precision of the model.
        activations = rows_at_once * _bytes_saved_for_a_row(config) * precision.itemsize // _FLOAT
        working = _working_bytes(parameters, vocabulary, precision)
        checkpoints = max(options.keep_checkpoints, options.average_checkpoints)
        # That of the best validation is kept beside the newest; with patience, all that its weights are made of.
        checkpoints += 1 if options.patience is None else FINAL[options.final].count(options)
        return cls(
            parameters=parameters,
            rows_a_step=rows,
            positions_a_step=rows * config.data.row_width,
            memory=parameters * copies * _FLOAT + working + activations,
            precision=precision,
            checkpoint=parameters * copies * _FLOAT,
            # One more checkpoint is written before the oldest goes; the final weights are one copy.
            checkpoint_disk=parameters * _FLOAT * (copies * (checkpoints + 1) + 1),
            data_disk=data_disk,
        )

    def text(self, config: Config) -> str:
        """The settings and the plan, for a person."""
        lines = [f"{name} = {'none' if value is None else value}" for name, value in settings(config)]
        lines += [
            "",
            f"parameters        {self.parameters:,}",
            f"a step            {self.rows_a_step:,} rows of {config.data.row_width} positions: up to "
            f"{self.positions_a_step:,} source and {self.positions_a_step:,} target tokens",
            f"memory            about {readable_size(self.memory)} while training in "
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
) -> str:
    """What `train` would need, told without writing anything; refuses what that would, where it is quickly known."""
    run = None if output is None else RunDirectory(output)
    require_ready(config, run)
    roles = {"training": files, "validation": valid, "test": test}
    check_request(config, roles, tokenizer)
    data_disk = space_needed(files)
    if run is not None and run.data.exists():
        there = existing(run.data, Request.of(config, {**roles, "tokenizer": [tokenizer] if tokenizer else []}))
        if there is not None:
            require_same_data(run, there)
            data_disk = 0
    if run is not None:
        require_space(run.data, data_disk)
    return Plan.of(config, data_disk=data_disk).text(config)


def plan_prepared_training(data: Path, output: Path | None, config: Config) -> str:
    """What `train_prepared` would need, likewise."""
    prepared = Prepared.open(data)
    config = prepared.applied_to(config)
    run = None if output is None else RunDirectory(output)
    require_ready(config, run)
    if run is not None:
        require_same_data(run, prepared)
    return Plan.of(config, data_disk=0).text(config)


def require_ready(config: Config, run: RunDirectory | None) -> None:
    """Refuses settings that this machine or a run already begun cannot go with; a plan need not name the run."""
    if run is not None:
        run.check(config)
        run.require_free()
    choose_kernels(config.training.kernels, choose_device(config.training.device))
    if config.training.tensorboard:
        require_tensorboard()


def _working_bytes(parameters: int, vocabulary: int, precision: torch.dtype) -> int:
    """Gradients of the parameters, and the logits of one chunk of the loss with what is made of them."""
    if precision == torch.float32:
        return parameters * _FLOAT + 3 * CHUNKS.positions * vocabulary * _FLOAT
    # The model's own weights and gradients are narrow, beside exact ones; the gradient is written over the logits.
    return parameters * (_FLOAT + 2 * precision.itemsize) + _GPU_CHUNK * vocabulary * precision.itemsize


def _bytes_saved_for_a_row(config: Config) -> int:
    """What one row's forward pass keeps for the backward pass, counted by running it once."""
    with torch.device("meta"):
        model = assemble(config.model, config.text.vocabulary)
    # Weights that nobody has written to take no memory, and what they are does not matter here.
    model.to_empty(device="cpu")
    ids_RW = torch.zeros(1, config.data.row_width, dtype=torch.long)
    side = Packed(ids_RW, ids_RW, torch.ones_like(ids_RW))
    kept: dict[int, torch.UntypedStorage] = {}

    def count(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        model.read(side, model.start(side))
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    return sum(storage.nbytes() for address, storage in kept.items() if address not in weights)
