"""The weights of a model that learns: those the optimizer keeps in float32, and those the model computes with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from qkv.training.muon import UNCUT, Matrices


class KeptWeights(Protocol):
    """The weights of a model that learns, as far as a process keeps them."""

    exact: dict[str, nn.Parameter]
    """What the optimizers work on, in float32: all of each weight, or this process's part of it."""

    matrices: Matrices
    """How Muon finds the whole of a matrix."""

    def name(self, parameter: Tensor) -> str:
        """Of one of the exact weights."""

    def publish(self) -> None:
        """Gives the model what the optimizer made of the exact weights."""

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes whole weights of the same names and shapes; raises KeyError or RuntimeError where they are not."""

    def share(self, name: str, tensor: Tensor) -> Tensor:
        """This process's part of something that belongs to the weight of this name."""

    def whole(self, name: str, tensor: Tensor) -> Tensor:
        """What `share` gave a part of; all processes ask for the same at the same time."""

    def replaced_by(self, tensors: Mapping[str, Tensor]) -> AbstractContextManager[None]:
        """Inside, the model that translates has these weights, of which each process gives its part."""


class Weights:
    """In float32 both are the same tensors; in a narrower precision the model's are a copy, made anew each step."""

    matrices: Matrices = UNCUT

    def __init__(self, model: nn.Module, precision: torch.dtype) -> None:
        self.narrow = precision != torch.float32
        own = dict(model.named_parameters())
        self.exact: dict[str, nn.Parameter] = (
            {name: nn.Parameter(one.detach().clone()) for name, one in own.items()} if self.narrow else own
        )
        self._names: dict[Tensor, str] = {parameter: name for name, parameter in self.exact.items()}
        model.to(precision)
        self.used: list[Tensor] = list(model.parameters())
        if self.narrow:
            for parameter in self.exact.values():
                parameter.grad = torch.zeros_like(parameter)

    def name(self, parameter: Tensor) -> str:
        """Of one of the exact weights."""
        return self._names[parameter]

    def add_gradients(self, gradients: tuple[Tensor, ...], *, first: bool) -> None:
        """Takes the gradients of the model's weights as those of the exact ones, or adds to them."""
        if not first:
            torch._foreach_add_(self.gradients(), [gradient.float() for gradient in gradients])
        elif self.narrow:
            torch._foreach_copy_(self.gradients(), list(gradients))
        else:
            for parameter, gradient in zip(self.exact.values(), gradients, strict=True):
                parameter.grad = gradient

    def gradients(self) -> list[Tensor]:
        """Those of the exact weights."""
        return [one.grad for one in self.exact.values() if one.grad is not None]

    @torch.no_grad()
    def publish(self) -> None:
        """Gives the model what the optimizer made of the exact weights."""
        if self.narrow:
            torch._foreach_copy_(self.used, list(self.exact.values()))

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes weights of the same names and shapes; raises KeyError or RuntimeError where they are not."""
        if tensors.keys() != self.exact.keys():
            raise KeyError(f"not the weights of this model: {sorted(tensors.keys() ^ self.exact.keys())}")
        for name, parameter in self.exact.items():
            if tensors[name].shape != parameter.shape:
                raise RuntimeError(f"{name} has another shape")
            parameter.copy_(tensors[name])
        self.publish()

    def share(self, name: str, tensor: Tensor) -> Tensor:  # noqa: ARG002
        """This process's part of what belongs to a weight: all of it."""
        return tensor

    def whole(self, name: str, tensor: Tensor) -> Tensor:  # noqa: ARG002
        """What `share` was a part of."""
        return tensor

    @contextmanager
    def replaced_by(self, tensors: Mapping[str, Tensor]) -> Iterator[None]:
        """Inside, the model computes with these weights."""
        saved = [parameter.data for parameter in self.used]
        for parameter, name in zip(self.used, self.exact, strict=True):
            parameter.data = tensors[name].detach().to(parameter.dtype)
        try:
            yield
        finally:
            # The very tensors of before: a captured step knows them by their address.
            for parameter, data in zip(self.used, saved, strict=True):
                parameter.data = data
