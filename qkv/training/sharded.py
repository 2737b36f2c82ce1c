"""Training in several processes that each keep a part of every weight: torch's FSDP2.

Weights and what belongs to them are gathered for checkpoints, which so are the same whatever wrote them.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from qkv.data.batch import PairBatch
from qkv.layers.block import Block
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.muon import Matrices
from qkv.training.objective import Goal, Objective
from qkv.training.processes import Processes


def shard(
    model: EncoderDecoder, precision: torch.dtype, goal: Goal, processes: Processes
) -> tuple[EncoderDecoder, ShardedWeights, Sharded]:
    """Cuts the model's weights into parts; a whole model for translating, the parts, and how they learn."""
    device = model.inputs.weight_VD.device
    whole = copy.deepcopy(model).to("cpu", precision).requires_grad_(False)
    objective = Objective(model, goal)
    narrow = None if precision == torch.float32 else precision
    policy = MixedPrecisionPolicy(param_dtype=narrow, reduce_dtype=torch.float32)
    mesh = init_device_mesh(device.type, (processes.count,))
    # What is gathered together: a block of the encoder; of the decoder's only the network, for the keys and values of
    # all its blocks are made before the first of them is called.
    for block in model.encoder.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    for block in model.decoder.blocks:
        assert isinstance(block, Block)
        fully_shard(block.feed_forward, mesh=mesh, mp_policy=policy)
    fully_shard(objective, mesh=mesh, mp_policy=policy)
    objective.train()
    weights = ShardedWeights(model, whole)
    return whole, weights, Sharded(objective, weights, processes)


class Sharded:
    """FSDP2: every process keeps a part of each weight, of its gradient and of what the optimizer remembers of it."""

    def __init__(self, objective: Objective, weights: ShardedWeights, processes: Processes) -> None:
        self.processes = processes
        self._objective = objective
        self._weights = weights

    def learn(self, part: PairBatch, tokens: Tensor, *, first: bool) -> tuple[Tensor, Tensor]:
        if first:
            self._weights.forget_gradients()
        with warnings.catch_warnings():
            # It warns of views that somebody might change in place, which nobody does here.
            warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view", UserWarning)
            total, surprise = self._objective(part)
        # The library divides by the number of processes.
        torch.autograd.backward(total / tokens * self.processes.count)
        self._weights.take_gradients()
        return total.detach(), surprise

    def norm(self) -> Tensor:
        # The square of a large norm is beyond float32.
        own = nn.utils.get_total_norm(self._weights.gradients()).double()
        return self.processes.summed(own.square()).sqrt().float()


class ShardedWeights:
    """What `Weights` is to a whole model: `exact` are the parts that this process keeps, in float32."""

    def __init__(self, model: EncoderDecoder, whole: EncoderDecoder) -> None:
        self._whole = whole
        self._parameters: dict[str, DTensor] = {}
        self.exact: dict[str, nn.Parameter] = {}
        for name, parameter in model.named_parameters():
            assert isinstance(parameter, DTensor)
            self._parameters[name] = parameter
            with torch.no_grad():
                self.exact[name] = nn.Parameter(parameter.to_local())
        self._names: dict[Tensor, str] = {parameter: name for name, parameter in self.exact.items()}
        self.matrices: Matrices = _Cut(self)

    def name(self, parameter: Tensor) -> str:
        """Of one of the exact weights."""
        return self._names[parameter]

    def shape(self, name: str) -> torch.Size:
        """Of a whole weight."""
        return self._parameters[name].shape

    def forget_gradients(self) -> None:
        for parameter in self._parameters.values():
            parameter.grad = None

    def take_gradients(self) -> None:
        """Gives the exact weights the gradients that the library has left on the model's."""
        for name, parameter in self._parameters.items():
            gradient = parameter.grad
            assert isinstance(gradient, DTensor)
            self.exact[name].grad = gradient.to_local()

    def gradients(self) -> list[Tensor]:
        """Those of the exact weights."""
        return [one.grad for one in self.exact.values() if one.grad is not None]

    def publish(self) -> None:
        """The library makes the model's copy anew each time."""

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes whole weights of the same names and shapes; raises KeyError or RuntimeError where they are not."""
        if tensors.keys() != self.exact.keys():
            raise KeyError(f"not the weights of this model: {sorted(tensors.keys() ^ self.exact.keys())}")
        for name, parameter in self.exact.items():
            if tensors[name].shape != self._parameters[name].shape:
                raise RuntimeError(f"{name} has another shape")
            parameter.copy_(self.share(name, tensors[name]))

    @torch.no_grad()
    def share(self, name: str, tensor: Tensor) -> Tensor:
        """This process's part of what belongs to a weight, where it has the weight's shape."""
        whole = self._parameters[name]
        if tensor.shape != whole.shape:
            return tensor
        on_device = tensor.to(whole.device)
        return distribute_tensor(on_device, whole.device_mesh, whole.placements, src_data_rank=None).to_local().clone()

    @torch.no_grad()
    def whole(self, name: str, tensor: Tensor) -> Tensor:
        """What `share` was a part of; all processes ask for the same at the same time."""
        own, whole = self.exact[name], self._parameters[name]
        if tensor.shape != own.shape:
            return tensor
        return DTensor.from_local(
            tensor.detach(), whole.device_mesh, whole.placements, shape=whole.shape, stride=whole.stride()
        ).full_tensor()

    @contextmanager
    def replaced_by(self, tensors: Mapping[str, Tensor]) -> Iterator[None]:
        """Inside, the whole model has these weights, of which each process keeps a part."""
        for name, parameter in self._whole.named_parameters():
            parameter.data.copy_(self.whole(name, tensors[name]))
        device = next(iter(self.exact.values())).device
        self._whole.to(device)
        try:
            yield
        finally:
            self._whole.to("cpu")


class _Cut:
    """Matrices of which this process keeps some rows: all compute with the whole, and each takes its rows of that."""

    def __init__(self, weights: ShardedWeights) -> None:
        self._weights = weights

    def shape(self, parameter: Tensor) -> torch.Size:
        return self._weights.shape(self._weights.name(parameter))

    def whole(self, parameters: Sequence[Tensor], part_NDF: Tensor) -> Tensor:
        weights, parts = self._weights, zip(parameters, part_NDF, strict=True)
        return torch.stack([weights.whole(weights.name(parameter), part_DF) for parameter, part_DF in parts])

    def share(self, parameters: Sequence[Tensor], whole_NDF: Tensor) -> Sequence[Tensor]:
        weights, wholes = self._weights, zip(parameters, whole_NDF, strict=True)
        return [weights.share(weights.name(parameter), whole_DF) for parameter, whole_DF in wholes]
