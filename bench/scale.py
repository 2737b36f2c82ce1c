"""What many H200s would do, computed from what one did and from the bytes that a step moves: `python -m bench.scale`.

Nothing here was measured but the step of one GPU. With P parameters, E of them embeddings and R in what FSDP gathers
first (embeddings and the decoder's attentions), n GPUs in m = n / 8 machines, every GPU working on as many rows as the
one that was measured:

    half(b)  = 7/8 · b / NVLink + (m - 1)/m · b/8 / InfiniBand     gathering or scattering b bytes: inside a machine,
                                                                   then an eighth of them through each adapter
    ddp      = 2 half(2 P), of which 2 half(2 E) in the open       gradients in bfloat16: 2 bytes a parameter
    fsdp     = 2 half(2 P) + half(4 P),                            weights in bfloat16 twice, gradients in float32 once
               of which half(2 R) + half(4 R) in the open
    compute  = measured · 1.02                                     steps of several processes are not one CUDA graph
    apart    = compute + exchange                                  if nothing overlapped
    overlap  = compute + open + max(0, exchange - open - 2/3 compute)

Two thirds of a step are the backward pass, which the exchange can hide behind. In the open is what comes before all
computing or after it: the gradient of the embeddings, to which the encoder's first layer adds, is whole only at the
end. Latency, stragglers and a network shared with others are left out: these are the best that can be hoped for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from qkv.models.build import count_parameters
from qkv.recipes import recipe

NVLINK = 450e9
"""Bytes a second in each direction: an H200's 900 GB/s are both together."""
INFINIBAND = 50e9
"""Bytes a second in each direction through each GPU's adapter of 400 Gbit/s."""
MACHINE = 8
UNCAPTURED = 1.02
"""66.3 ms against 65.0 ms as one graph, measured (docs/results.md)."""
BACKWARD = 2 / 3
FILL = 129_544 / (2 * 65_536)
"""Tokens a position, of both sides together: those of the steps that were measured."""
VOCABULARY = 37_120


@dataclass(frozen=True)
class Measured:
    """A step on one H200."""

    recipe: str
    seconds: float
    positions: int
    """Target positions of a step; there are as many of the source's."""

    @property
    def parameters(self) -> int:
        return count_parameters(recipe(self.recipe).model, VOCABULARY)

    @property
    def embeddings(self) -> int:
        return VOCABULARY * recipe(self.recipe).model.width

    @property
    def gathered_first(self) -> int:
        """With FSDP: what is not in a unit of its own, which are the embeddings and the decoder's attentions."""
        model = recipe(self.recipe).model
        return self.embeddings + model.decoder_layers * 8 * model.width**2


MEASURED = (Measured("base", 0.0622, 65_536), Measured("big", 0.0855, 32_768))


@dataclass(frozen=True)
class Expected:
    """A step on many, in seconds."""

    exchange: float
    apart: float
    overlap: float

    def tokens_per_second(self, one: Measured, count: int) -> float:
        """Of source and target, with overlap."""
        return count * 2 * one.positions * FILL / self.overlap


def half(count: float, gpus: int) -> float:
    """Seconds to gather or scatter so many bytes."""
    inside, machines = min(gpus, MACHINE), max(1, gpus // MACHINE)
    return (inside - 1) / inside * count / NVLINK + (machines - 1) / machines * count / inside / INFINIBAND


class Exchange(NamedTuple):
    """Seconds that a step's exchange takes, and how many of them nothing can hide."""

    all: float
    in_the_open: float


def ddp(one: Measured, gpus: int) -> Exchange:
    """Gradients are averaged in bfloat16."""
    return Exchange(2 * half(2 * one.parameters, gpus), 2 * half(2 * one.embeddings, gpus))


def fsdp(one: Measured, gpus: int) -> Exchange:
    """Weights are gathered for both passes, and gradients scattered."""
    return Exchange(
        2 * half(2 * one.parameters, gpus) + half(4 * one.parameters, gpus),
        half(2 * one.gathered_first, gpus) + half(4 * one.gathered_first, gpus),
    )


WAYS = {"ddp": ddp, "fsdp": fsdp}


def expected(one: Measured, way: str, gpus: int) -> Expected:
    """A step on so many GPUs."""
    compute = one.seconds * (UNCAPTURED if gpus > 1 else 1)
    exchange = WAYS[way](one, gpus)
    too_much = max(0.0, exchange.all - exchange.in_the_open - BACKWARD * compute)
    return Expected(exchange.all, compute + exchange.all, compute + exchange.in_the_open + too_much)


def table() -> str:
    """Every model, way and number of GPUs, as Markdown."""
    lines = [
        "| recipe | way | H200s | batch | exchange | step apart | step overlapped | tokens/s | of n times one |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in MEASURED:
        alone = expected(one, "ddp", 1).tokens_per_second(one, 1)
        for way, gpus in [("ddp", 1), *((way, gpus) for way in WAYS for gpus in (8, 64, 512))]:
            step = expected(one, way, gpus)
            speed = step.tokens_per_second(one, gpus)
            lines.append(
                f"| {one.recipe} | {'one process' if gpus == 1 else way} | {gpus} | {gpus * one.positions:,} "
                f"| {step.exchange * 1e3:.1f} ms | {step.apart * 1e3:.1f} ms | {step.overlap * 1e3:.1f} ms "
                f"| {speed / 1e6:,.2f} M | {speed / alone / gpus:.0%} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
