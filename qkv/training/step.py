"""One step of training: the gradient of a batch, and what the optimizers make of it (section 5.3).

All that a step reads and writes lies at the same place each time, and nothing in it looks at a number: so a GPU can be
given the whole of it as one piece, and the next one before it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.devices import Captured
from qkv.layers.dropout import Dropout
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.averaging import Averaging
from qkv.training.objective import Goal, translation_loss
from qkv.training.optimizer import learning_rate
from qkv.training.processes import Processes
from qkv.training.queue import AtOnce, GpuQueue, Queue
from qkv.training.weights import KeptWeights, Weights

_APART = 2_654_435_761
"""Between the seeds of two processes: their multiples are spread evenly over the 32 bits that a CPU's generator takes,
so no process draws what another draws within millions of steps."""


class Settings(NamedTuple):
    """What changes from step to step beside the batch: a small tensor, in this order."""

    target_tokens: float
    rate: float
    rest_rate: float
    follow: float
    """How far the mean of the weights follows."""
    stop: float
    """Above 0 where this process has been asked to stop."""


class Outcome(NamedTuple):
    """What came of a step."""

    total: float
    surprise: float
    gradient_norm: float
    """Of the whole gradient, before it was clipped."""
    finite: bool
    """Whether loss and gradient were; otherwise the step was left out."""
    stop: float
    """The sum of what all processes gave: all learn at the same step that one of them is to stop."""
    idle: float
    """Seconds that the device had nothing to do before it."""


class Gradients(Protocol):
    """How a step comes by its gradients, which end up on the exact weights."""

    processes: Processes

    def learn(self, part: PairBatch, tokens: Tensor, *, first: bool) -> tuple[Tensor, Tensor]:
        """Adds the gradient of a part's loss divided by `tokens`; both sums of this process's loss."""

    def norm(self) -> Tensor:
        """Of the whole gradient."""


class Alone:
    """The gradients of a process that computes with whole batches."""

    def __init__(self, model: EncoderDecoder, weights: Weights, goal: Goal, processes: Processes) -> None:
        self.processes = processes
        self._model = model
        self._weights = weights
        self._goal = goal

    def learn(self, part: PairBatch, tokens: Tensor, *, first: bool) -> tuple[Tensor, Tensor]:
        loss = translation_loss(self._model, part, self._goal)
        # Not `backward`, which would leave the gradients on the weights: at another place each time.
        self._weights.add_gradients(torch.autograd.grad(loss.total / tokens, self._weights.used), first=first)
        return loss.total.detach(), loss.surprise

    def norm(self) -> Tensor:
        return nn.utils.get_total_norm(self._weights.gradients())


class Step:
    """Takes a step at a time: `begin` starts one and returns a call that waits for its outcome."""

    def __init__(
        self,
        config: Config,
        gradients: Gradients,
        weights: KeptWeights,
        optimizers: Sequence[torch.optim.Optimizer],
        averaging: Averaging,
        *,
        captured: bool,
        dropouts: Sequence[Dropout] = (),
    ) -> None:
        self._config = config
        self._gradients = gradients
        self._weights = weights
        self._optimizers = optimizers
        self._averaging = averaging
        self._device = next(iter(weights.exact.values())).device
        self.queue: Queue = GpuQueue(self._device) if self._device.type == "cuda" else AtOnce()
        self._captured = captured
        self._dropouts = dropouts
        self._drops = False
        self._work: Callable[[], None] = self._compute
        self._batch: PairBatch | None = None
        self._settings = torch.zeros(len(Settings._fields), device=self._device)
        self._outcome = torch.zeros(len(Outcome._fields) - 1, device=self._device)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                # A place that is written to before each step: a captured one reads what is there, not a number of then.
                group["lr"] = self._setting(group["rate"])

    def begin(
        self, batch: PairBatch, number: int, *, rate_factor: float = 1.0, stop: float = 0.0
    ) -> Callable[[], Outcome]:
        """Starts step `number`, counted from 1, with so many times its learning rate.

        `stop` tells the other processes that this one is to stop.
        """
        options = self._config.training
        rate = learning_rate(options, self._config.model.width, number) * rate_factor
        follow = self._averaging.share_at(number)
        settings = torch.tensor(Settings(batch.target_tokens, rate, rate * options.rest_rate, follow, stop))
        place = [*self._room_for(batch, drops=number > options.dropout_after).tensors(), self._settings]
        # A step's random numbers are its own: a resumed run needs to know nothing of those before.
        torch.manual_seed(options.seed * 1_000_003 + number + self._gradients.processes.rank * _APART)
        answer = self.queue.put([*batch.tensors(), settings], place, self._work, self._outcome)

        def outcome() -> Outcome:
            (total, surprise, norm, finite, stopping), idle = answer()
            return Outcome(total, surprise, norm, bool(finite), stopping, idle)

        return outcome

    def _room_for(self, batch: PairBatch, *, drops: bool) -> PairBatch:
        """Where a batch of this shape lies on the device; batches only grow, so that no shape comes back.

        What the device is given for a step is made anew for another shape, and when dropout begins.
        """
        # Whoever tried the model meanwhile has told all its parts that it learns again.
        for dropout in self._dropouts:
            dropout.train(drops)
        if self._batch is None or self._batch.label_RW.shape != batch.label_RW.shape or drops != self._drops:
            # What is still being computed needs its batch, and its graph.
            self.queue.wait()
            self._drops = drops
            self._batch = batch.to(self._device, copy=True)
            self._work = Captured(self._compute) if self._captured else self._compute
        return self._batch

    def _compute(self) -> None:
        """The step itself; what is not finite is left out by the device, without asking."""
        options = self._config.training
        assert self._batch is not None
        total, surprise = torch.zeros(2, device=self._device)
        for number, part in enumerate(self._batch.split(options.accumulate)):
            own = self._gradients.learn(part, self._setting("target_tokens"), first=number == 0)
            total, surprise = total + own[0], surprise + own[1]
        sums = torch.stack([total, surprise, self._setting("stop")])
        total, surprise, stop = self._gradients.processes.summed(sums)
        norm = self._gradients.norm()
        finite = torch.isfinite(total) & torch.isfinite(norm)
        self._averaging.before(self._weights.exact)
        for optimizer in self._optimizers:
            # As a scaler of gradients tells an optimizer to divide them, and to pass over those that are not finite.
            optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
            if options.clip is not None:
                optimizer.grad_scale = (norm / options.clip).clamp_min(1.0)  # type: ignore[attr-defined]
            optimizer.step()
        self._averaging.after(self._weights.exact, self._setting("follow") * finite)
        self._weights.publish()
        self._outcome.copy_(torch.stack([total, surprise, norm, finite.float(), stop]))

    def _setting(self, name: str) -> torch.Tensor:
        return self._settings[Settings._fields.index(name)]
