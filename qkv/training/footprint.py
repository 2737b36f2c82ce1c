"""The memory that training takes, estimated without a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from qkv.config import Config
from qkv.data.batch import Packed
from qkv.devices import choose_device, choose_precision
from qkv.layers.loss import CHUNKS, GPU_POSITIONS
from qkv.models.build import assemble, count_parameters

FLOAT = 4
"""Bytes of an exact number."""


@dataclass(frozen=True)
class Footprint:
    """Bytes of each process: always, and for every row that it computes with at once."""

    parameters: int
    precision: torch.dtype
    fixed: int
    row: int
    checkpoint: int
    """What a checkpoint takes, on disk and in the first process's host memory while it is written."""

    @classmethod
    def of(cls, config: Config, *, processes: int = 1) -> Footprint:
        options, vocabulary = config.training, config.text.vocabulary
        parameters = count_parameters(config.model, vocabulary)
        precision = choose_precision(options.precision, choose_device(options.device))
        free = options.schedule == "free"
        kept = parameters * (3 + (options.final == "moving" or free)) * FLOAT
        working = _working_bytes(parameters, vocabulary, precision)
        way = "none" if processes == 1 else options.parallel
        return cls(
            parameters=parameters,
            precision=precision,
            # Free of a schedule, the weights in use can be made of the two that a checkpoint has.
            fixed=FIXED[way](kept + free * parameters * FLOAT + working, parameters * precision.itemsize, processes),
            # Counted in float32, kept in the precision of the model; for two readings, twice.
            row=_bytes_saved_for_a_row(config) * (1 + (options.agreement > 0)) * precision.itemsize // FLOAT,
            checkpoint=kept,
        )

    def memory(self, rows: int, accumulate: int) -> int:
        """For a step of so many rows in so many parts."""
        return self.fixed + -(-rows // accumulate) * self.row


FIXED: dict[str, Callable[[int, int, int], int]] = {
    "none": lambda alone, _weights, _count: alone,
    # Gradients are exchanged in buckets, which hold all of them once more.
    "auto": lambda alone, weights, _count: alone + weights,
    "ddp": lambda alone, weights, _count: alone + weights,
    # A part of everything; at the worst moment all weights are gathered, and their gradients not yet scattered.
    "fsdp": lambda alone, weights, count: alone // count + 2 * weights,
}
"""Every row of `training.parallel`: the bytes that do not depend on the rows, from those of one process by itself."""


def _working_bytes(parameters: int, vocabulary: int, precision: torch.dtype) -> int:
    """Gradients of the parameters, and the logits of one chunk of the loss with what is made of them."""
    if precision == torch.float32:
        return parameters * FLOAT + 3 * CHUNKS.positions * vocabulary * FLOAT
    # The model's own weights and gradients are narrow, beside exact ones; the gradient is written over the logits.
    return parameters * (FLOAT + 2 * precision.itemsize) + GPU_POSITIONS * vocabulary * precision.itemsize


def _bytes_saved_for_a_row(config: Config) -> int:
    """What one row's forward pass keeps for the backward pass, counted by running it once."""
    with torch.device("meta"):
        model = assemble(config.model, config.text.vocabulary)
    # Weights that nobody has written to take no memory, and what they are does not matter here.
    model.to_empty(device="cpu")
    ids_RW = torch.zeros(1, config.row_width, dtype=torch.long)
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
