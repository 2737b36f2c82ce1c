"""Where the time of a training step on a GPU goes, by kind of work."""

from __future__ import annotations

from torch.profiler import ProfilerActivity, profile

from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.training.learner import Learner
from qkv.training.processes import Processes

KINDS = {
    "matrix products": ("nvjet", "gemm", "cutlass", "splitK"),
    "attention": ("_attend",),
    "sum, dropout and norm": ("_add_and_norm",),
    "loss and its gradient": ("_loss_and_gradient",),
    "feed-forward's ReLU or gate": ("_cut_off", "_gate"),
    "norm and turn of queries and keys": ("_turn",),
    "embeddings": ("_embed", "_keep", "compute_grad_weight", "sum_and_scatter", "RadixSort", "krn_partial"),
    "optimizer, norm of the gradient, copies of weights": ("multi_tensor_apply", "Lpnorm"),
    "joining and copying": ("CatArray", "copy"),
    "sums": ("reduce_kernel",),
}
"""What the names of kernels contain, by kind; the first that fits counts."""
_STEPS = 3


def profile_step(config: Config, batch: PairBatch, vocabulary: int) -> None:
    """Prints each kind's milliseconds a step and its share."""
    step = Learner.begin(config, vocabulary, Processes()).take_step
    for number in range(1, 6):
        step.begin(batch, number)()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for number in range(6, 6 + _STEPS):
            step.begin(batch, number)()
    spent: dict[str, float] = {}
    for event in profiled.key_averages():
        kind = next((kind for kind, names in KINDS.items() if any(one in event.key for one in names)), "all else")
        spent[kind] = spent.get(kind, 0.0) + event.self_device_time_total / 1000 / _STEPS
    total = sum(spent.values())
    for kind, milliseconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"{milliseconds:8.2f} ms {milliseconds / total:6.1%}  {kind}")
    print(f"{total:8.2f} ms a step on the device")
