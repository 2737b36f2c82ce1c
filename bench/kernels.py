"""Every part that a GPU does in one go, beside its plain twin, and beside what torch's compiler makes of that twin.

    python -m bench.kernels                                     # on a GPU, at the sizes of base and fast
    TRITON_INTERPRET=1 python -m bench.kernels --device cpu --rows 2 --width 16 --vocabulary 40 --uncompiled

Milliseconds of a call in bfloat16 with dropout 0.1, its gradients included, as a step takes it: replayed as a graph,
the median of several. Words are drawn as text has them, few of them often. On a CPU Triton's interpreter does our
parts: that shows that all of this runs, and no speed.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from bench.options import one_or_more, told
from qkv.errors import ConfigError
from qkv.layers import attention, feed_forward, inputs, kernels, loss, residual
from qkv.layers.dropout import Dropout
from qkv.layers.feed_forward import FeedForward, GatedFeedForward
from qkv.layers.visibility import within_sentences
from qkv.models.choices import NORMS, POSITIONS, PROJECTIONS, QUERY_KEY_NORMS, TURNS
from qkv.recipes import recipe

Way = Callable[..., Tensor | tuple[Tensor, ...]]

M = TypeVar("M", bound=nn.Module)

BASE, FAST = recipe("base").model, recipe("fast").model
WIDEST_ROW = 128
"""The longest that `layers.gpu.attention` takes into its hands; not asked of it, since it needs Triton."""
_SENTENCE = 28
"""Positions of a sentence in a row."""
_REPLAYS, _ROUNDS = 20, 7


class Part(NamedTuple):
    """A piece of a model's work in two ways that compute the same."""

    name: str
    quick: Way
    plain: Way
    given: tuple[Any, ...]
    """What both are called with."""
    learned: tuple[Tensor, ...]
    """What gradients are asked for."""
    together: bool = True
    """Whether the gradients of parts of one product come beside one another, so that none is copied to join them."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=one_or_more, default=512, help="rows of a batch (default: 512)")
    parser.add_argument("--width", type=one_or_more, default=128, help="positions of a row (default: 128)")
    parser.add_argument("--vocabulary", type=one_or_more, default=37_000, help="subwords (default: 37000)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--uncompiled", action="store_true", help="leave the compiler out, which takes a minute")
    options = parser.parse_args()
    # Lanes that nobody stores may overflow, of which a GPU says nothing; the interpreter computes with numpy.
    with np.errstate(all="ignore"):
        return told("bench.kernels", lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("there is no GPU here; TRITON_INTERPRET=1, --device cpu and small sizes show that it runs")
    if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ConfigError("on a CPU our parts have to be interpreted: set TRITON_INTERPRET=1")
    if options.rows < 2:
        raise ConfigError("--rows 1 cannot be read twice; give 2 or more")
    if options.width > WIDEST_ROW:
        raise ConfigError(
            f"in rows wider than {WIDEST_ROW} attention is torch's own; give --width {WIDEST_ROW} at most"
        )
    # Triton's interpreter has no products in bfloat16.
    precision = torch.bfloat16 if device.type == "cuda" else torch.float32
    named = torch.cuda.get_device_name(device) if device.type == "cuda" else "a CPU, where our parts are interpreted"
    print(f"{options.rows} rows of {options.width} positions in {str(precision).removeprefix('torch.')} on {named}\n")
    print("| milliseconds, gradients included | ours | plain | compiled |\n|---|---|---|---|")
    for part in parts(Sizes(options.rows, options.width, options.vocabulary, device, precision)):
        ours = milliseconds(part, part.quick, device)
        others = [milliseconds(part, part.plain, device)]
        if not options.uncompiled:
            torch.compiler.reset()
            others.append(milliseconds(part, torch.compile(part.plain, dynamic=False), device))
        times = " | ".join(f"{other:.3f}, {other / ours:.2f} times" for other in others)
        print(f"| {part.name} | {ours:.3f} | {times} |{' |' * (2 - len(others))}", flush=True)


@dataclass
class Sizes:
    """Of a batch, and the random numbers in it."""

    rows: int
    width: int
    vocabulary: int
    device: torch.device
    precision: torch.dtype

    def __post_init__(self) -> None:
        self._generator = torch.Generator(self.device).manual_seed(1)
        place = torch.arange(self.width, device=self.device).expand(self.rows, self.width)
        self.positions, self.sentences = place % _SENTENCE, place // _SENTENCE + 1
        # Zipf's law: gradients of the few words that make up half of a text go to the same places.
        often = 1 / torch.arange(3, 3 + self.vocabulary, device=self.device)
        drawn = torch.multinomial(often, place.numel(), replacement=True, generator=self._generator)
        self.ids = drawn.view(place.shape)

    def numbers(self, *shape: int) -> Tensor:
        """That learn."""
        some = torch.randn(*shape, generator=self._generator, device=self.device)
        return some.to(self.precision).requires_grad_()

    def vectors(self) -> Tensor:
        return self.numbers(self.rows, self.width, BASE.width)

    def heads(self) -> Tensor:
        """As a projection leaves them: the heads of a position side by side."""
        some = self.numbers(self.rows, self.width, BASE.heads, BASE.head_key_width)
        # Nothing before them is asked for a gradient: what was not captured has no place in a graph.
        return some.detach().transpose(1, 2).requires_grad_()

    def here(self, module: M) -> M:
        return module.to(self.device, self.precision)


def parts(sizes: Sizes) -> Iterator[Part]:
    """Each with numbers of its own, made when it is its turn."""
    for some in (_joins, _networks, _products, _looks, _ends):
        yield from some(sizes)


def _joins(sizes: Sizes) -> Iterator[Part]:
    from qkv.layers.gpu.residual import norm_of_sum, sum_and_norm

    for name, config, quick, plain in (
        ("norm(x + dropout(y)), a layer norm", BASE, norm_of_sum, residual.norm_of_sum),
        ("x + dropout(y), and its RMS norm", FAST, sum_and_norm, residual.sum_and_norm),
    ):
        x, y = sizes.vectors(), sizes.vectors()
        norm = sizes.here(NORMS[config.norm](config.width))
        yield Part(name, quick, plain, (x, y, norm, Dropout(config.dropout)), (x, y, *norm.parameters()))


def _networks(sizes: Sizes) -> Iterator[Part]:
    from qkv.layers.gpu.feed_forward import gated_network, relu_network

    x = sizes.vectors()
    cut = sizes.here(FeedForward(BASE.width, BASE.hidden))
    given: tuple[Any, ...] = (x, cut.widen, cut.narrow)
    yield Part("feed-forward, ReLU", relu_network, feed_forward.relu_network, given, (x, *cut.parameters()))
    gated = sizes.here(GatedFeedForward(FAST.width, FAST.hidden))
    given = (x, gated.gate, gated.widen, gated.narrow)
    yield Part("feed-forward, gated", gated_network, feed_forward.gated_network, given, (x, *gated.parameters()))


def _products(sizes: Sizes) -> Iterator[Part]:
    from qkv.layers.gpu.projection import together

    # A self-attention makes the gradients of all its three; of the others each makes those of its own two.
    for name, count, beside in (
        ("queries, keys and values", 3, True),
        ("keys and values of all layers", 2 * BASE.decoder_layers, False),
    ):
        x = sizes.vectors()
        projections = [sizes.here(PROJECTIONS[BASE.projection](BASE.width, BASE.width)) for _ in range(count)]
        learned = [parameter for one in projections for parameter in one.parameters()]
        yield Part(name, together, attention.apart, (x, projections), (x, *learned), beside)


def _looks(sizes: Sizes) -> Iterator[Part]:
    from qkv.layers.gpu.attention import tiled
    from qkv.layers.gpu.turn import normed_and_turned

    query, key, value = sizes.heads(), sizes.heads(), sizes.heads()
    for name, later in (("attention", True), ("attention, nothing later seen", False)):
        visible = within_sentences(sizes.sentences, sizes.sentences, later=later)
        yield Part(name, tiled, kernels.fused, (query, key, value, visible), (query, key, value))
    norm = sizes.here(QUERY_KEY_NORMS[FAST.query_key_norm](FAST.head_key_width))
    given = (query, sizes.positions, norm, TURNS[FAST.positions]())
    learned = (query, *norm.parameters())
    yield Part("norm and turn of queries", normed_and_turned, attention.normed_and_turned, given, learned)


def _ends(sizes: Sizes) -> Iterator[Part]:
    from qkv.layers.gpu.inputs import embed
    from qkv.layers.gpu.loss import loss_and_gradient, loss_and_gradient_of_two_readings

    weight = sizes.numbers(sizes.vocabulary, BASE.width)
    waves = POSITIONS[BASE.positions](BASE.width, BASE.longest)
    given = (sizes.ids, sizes.positions, weight, waves, Dropout(BASE.dropout))
    yield Part("embedding", embed, inputs.embed, given, (weight,))
    # A chunk of the output's, whose gradient is made along with it.
    label = sizes.ids.flatten()[: loss.GPU_POSITIONS]
    with torch.no_grad():
        x = sizes.vectors().flatten(0, 1)[: label.numel()] / math.sqrt(BASE.width)
        logits = loss.aligned_logits(x, weight)
    name = f"loss and its gradient, {label.numel():,} positions"
    plain = _in_its_precision(loss.loss_and_gradient)
    yield Part(name, loss_and_gradient, plain, (logits, label, 0.1), ())
    # A row's labels are those of both its readings.
    pairs = label.numel() // (2 * sizes.width)
    rows = label[: pairs * sizes.width].view(pairs, sizes.width).repeat_interleave(2, 0).flatten()
    name = f"the same of rows read twice, {rows.numel():,} positions"
    read = (logits[: rows.numel()], rows, 0.1, 5.0, sizes.width)
    plain = _in_its_precision(loss.loss_and_gradient_of_two_readings)
    yield Part(name, loss_and_gradient_of_two_readings, plain, read, ())


def _in_its_precision(plain: Callable[..., tuple[Tensor, Tensor, Tensor]]) -> Way:
    """A plain loss with its gradient as the products that come next need it."""

    def of_logits(logits: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
        total, surprise, gradient = plain(logits, *rest)
        return total, surprise, gradient.to(logits.dtype)

    return of_logits


def milliseconds(part: Part, way: Way, device: torch.device) -> float:
    """Of a call and its gradients, the median of several."""
    asked: list[Tensor] = []

    def call() -> Sequence[Tensor]:
        made = way(*part.given)
        outputs = (made,) if isinstance(made, Tensor) else made
        if not part.learned:
            return outputs
        if not asked:
            asked.extend(_gradients_of(outputs) if part.together else map(torch.randn_like, outputs))
        return torch.autograd.grad(outputs, part.learned, asked)

    if device.type == "cuda":
        return _replayed(call)
    spent = []
    for _ in range(3):
        begun = time.perf_counter()
        call()
        spent.append(1000 * (time.perf_counter() - begun))
    return statistics.median(spent)


def _gradients_of(outputs: Sequence[Tensor]) -> Iterator[Tensor]:
    """Some that lie as these do, parts of one product beside one another: so do those that training makes."""
    places: dict[int, Tensor] = {}
    for one in outputs:
        storage = one.untyped_storage()
        if (begins := storage.data_ptr()) not in places:
            places[begins] = torch.randn(storage.nbytes() // one.element_size(), dtype=one.dtype, device=one.device)
        yield places[begins].as_strided(one.shape, one.stride(), one.storage_offset())


def _replayed(call: Callable[[], Sequence[Tensor]]) -> float:
    """One call captured as a graph, as a training step is: what the host does for each kernel is not counted."""
    beside: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    graph.replay()
    spent = []
    for _ in range(_ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        for _ in range(_REPLAYS):
            graph.replay()
        end.record()
        end.synchronize()
        spent.append(float(begin.elapsed_time(end)) / _REPLAYS)
    return statistics.median(spent)


if __name__ == "__main__":
    raise SystemExit(main())
