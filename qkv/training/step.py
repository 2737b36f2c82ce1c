"""One step of training: the gradient of a batch, and what the optimizers make of it (section 5.3).

All that a step reads and writes lies at the same place each time, and nothing in it looks at a number: so a GPU can be
given the whole of it as one piece, and the next one before it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import nn

from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.devices import Captured
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.averaging import MovingAverage
from qkv.training.objective import translation_loss
from qkv.training.optimizer import learning_rate
from qkv.training.queue import AtOnce, GpuQueue, Queue
from qkv.training.weights import Weights


class Settings(NamedTuple):
    """What changes from step to step beside the batch: a small tensor, in this order."""

    target_tokens: float
    rate: float
    rest_rate: float
    follow: float
    """How far the moving average follows."""


class Outcome(NamedTuple):
    """What came of a step."""

    total: float
    surprise: float
    gradient_norm: float
    """Of the whole gradient, before it was clipped."""
    finite: bool
    """Whether loss and gradient were; otherwise the step was left out."""
    idle: float
    """Seconds that the device had nothing to do before it."""


class Step:
    """Takes a step at a time: `begin` starts one and returns a call that waits for its outcome."""

    def __init__(
        self,
        config: Config,
        model: EncoderDecoder,
        weights: Weights,
        optimizers: Sequence[torch.optim.Optimizer],
        moving: MovingAverage | None,
        *,
        captured: bool,
    ) -> None:
        self._config = config
        self._model = model
        self._weights = weights
        self._optimizers = optimizers
        self._moving = moving
        self._device = model.inputs.weight_VD.device
        self.queue: Queue = GpuQueue(self._device) if self._device.type == "cuda" else AtOnce()
        self._work: Callable[[], None] = Captured(self._compute) if captured else self._compute
        self._batch: PairBatch | None = None
        self._settings = torch.zeros(len(Settings._fields), device=self._device)
        self._outcome = torch.zeros(len(Outcome._fields) - 1, device=self._device)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self._setting(group["rate"])

    def begin(self, batch: PairBatch, number: int, *, rate_factor: float = 1.0) -> Callable[[], Outcome]:
        """Starts step `number`, counted from 1, with so many times its learning rate."""
        options = self._config.training
        rate = learning_rate(options, self._config.model.width, number) * rate_factor
        follow = 0.0 if self._moving is None else 1 - self._moving.decay_at(number)
        settings = torch.tensor(Settings(batch.target_tokens, rate, rate * options.rest_rate, follow))
        if self._batch is None:
            self._batch = batch.to(self._device, copy=True)
        given, place = [*batch.tensors(), settings], [*self._batch.tensors(), self._settings]
        # A step's random numbers are its own: a resumed run needs to know nothing of those before.
        torch.manual_seed(options.seed * 1_000_003 + number)
        answer = self.queue.put(given, place, self._work, self._outcome)

        def outcome() -> Outcome:
            (total, surprise, norm, finite), idle = answer()
            return Outcome(total, surprise, norm, bool(finite), idle)

        return outcome

    def _compute(self) -> None:
        """The step itself; what is not finite is left out by the device, without asking."""
        options = self._config.training
        assert self._batch is not None
        total, surprise = torch.zeros(2, device=self._device)
        for number, part in enumerate(self._batch.split(options.accumulate)):
            loss = translation_loss(self._model, part, smoothing=options.label_smoothing)
            # Not `backward`, which would leave the gradients on the weights: at another place each time.
            mean = loss.total / self._setting("target_tokens")
            self._weights.add_gradients(torch.autograd.grad(mean, self._weights.used), first=number == 0)
            total, surprise = total + loss.total.detach(), surprise + loss.surprise
        norm = nn.utils.get_total_norm(self._weights.gradients())
        finite = torch.isfinite(total) & torch.isfinite(norm)
        for optimizer in self._optimizers:
            # As a scaler of gradients tells an optimizer to divide them, and to pass over those that are not finite.
            optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
            if options.clip is not None:
                optimizer.grad_scale = (norm / options.clip).clamp_min(1.0)  # type: ignore[attr-defined]
            optimizer.step()
        if self._moving is not None:
            self._moving.follow(self._weights.exact, self._setting("follow") * finite)
        self._weights.publish()
        self._outcome.copy_(torch.stack([total, surprise, norm, finite.float()]))

    def _setting(self, name: str) -> torch.Tensor:
        return self._settings[Settings._fields.index(name)]
