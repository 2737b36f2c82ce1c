"""Faults 6, 7 and 8: several processes that are told to stop, lose one of them, change in number or see no number."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path

from qkv.checkpoint import step_of
from qkv.config import Config
from qkv.run import RunDirectory
from tests import toy
from tests.forked import run as run_child
from tests.torture.trials import Tally, train
from tests.training.many import Ended, arguments, forked, record_sentences, sentences, torchrun

CONFIG = toy.QUICK.with_changes(
    model={"dropout": 0.2},
    training={
        "steps": 16, "save_every": 4, "report_every": 1, "validate_every": 8, "tokens_per_batch": 288,
        "keep_checkpoints": 2, "average_checkpoints": 2, "final": "checkpoints",
    },
)  # fmt: skip
WAYS = ("ddp", "fsdp")


def faulty(
    data: Path,
    run: Path,
    config: Config,
    fault: str = "none",
    *,
    rank: int = 1,
    steps: str = "0",
    restarts: int = 0,
    by: Callable[..., Ended] = forked,
) -> Ended:
    """How torchrun ended where one process had this fault at these steps, and what was said."""
    return by("tests.training.faulty", fault, str(rank), steps, *arguments(data, run, config), restarts=restarts)


def ended(said: str) -> list[tuple[int, str]]:
    """The rank and the exit code of every process that could still tell."""
    return sorted((int(rank), code) for rank, code in re.findall(r"process (\d) ended with (\w+)", said))


def _parallel(config: Config, way: str) -> Config:
    return config.with_changes(training={"parallel": way})


def _whole(folder: Path, data: Path, config: Config) -> Path:
    """What two processes make of it that nothing happens to; made once."""
    run = folder / f"whole-{config.training.parallel}"
    if not run.exists():
        code, said = faulty(data, run, config)
        assert code == 0, said
    return run


def _same(one: Path, other: Path) -> bool:
    return toy.equal(toy.weights(one), toy.weights(other)) and toy.reports(one) == toy.reports(other)


def signals(folder: Path, data: Path, count: int, seed: int = 1) -> Tally:
    """SIGTERM to torchrun at a random step: all save the same one and end with 143; the run ends as if it had not."""
    tally = Tally("SIGTERM to torchrun with 2 processes: same step saved, each exits 143, goes on bit-equal")
    # Long enough that torchrun, which looks around ten times a second, is heard before the end.
    config = CONFIG.with_changes(training={"steps": 240, "save_every": 60, "report_every": 30, "validate_every": 120})
    whole = _whole(folder, data, config)
    generator = random.Random(seed)
    after: list[int] = []
    for number in range(count):
        run, step = folder / f"{number}", generator.randint(1, 60)
        _, said = faulty(data, run, config, "asked all", rank=generator.randint(0, 1), steps=str(step), by=torchrun)
        stopped = re.findall(r"qkv: stopped by SIGTERM after step (\d+), which is saved", said)
        saved = [step_of(one) for one in RunDirectory(run).checkpoints()][-1:]
        right = ended(said) == [(0, "143"), (1, "143")] and len(stopped) == 1 and saved == [*map(int, stopped)]
        after += [one - step for one in saved]
        code, again = faulty(data, run, config)
        same = code == 0 and f"going on after step {saved[0]}" in again and _same(run, whole)
        tally.count(right and same, f"asked at step {step}: {ended(said)}, {stopped}, {saved} saved; {said}{again}")
    tally.notes = {"steps until all had stopped, torchrun's part included, at most": max(after, default=0)}
    return tally


def lost(folder: Path, data: Path, count: int, seed: int = 1) -> Tally:
    """SIGKILL to one process at a random step: torchrun starts all again, and the run ends as if it had not been."""
    tally = Tally("one of 2 processes killed (SIGKILL) at a random step: started again, bit-equal weights and log")
    generator = random.Random(seed)
    for number, way in zip(range(count), itertools.cycle(WAYS), strict=False):
        run, rank, step = folder / f"{number}", generator.randint(0, 1), generator.randint(1, CONFIG.training.steps)
        config = _parallel(CONFIG, way)
        code, said = faulty(data, run, config, "lost", rank=rank, steps=str(step), restarts=1, by=torchrun)
        held = code == 0 and _same(run, _whole(folder, data, config))
        tally.count(held, f"{way}, process {rank} lost before step {step}: exit {code}; {said}")
    tally.notes = {"ways": " and ".join(WAYS)}
    return tally


def _alone(data: Path, output: Path, config: Config, order: Path) -> None:
    record_sentences(order)
    train(data, output, config)


def world_sizes(folder: Path, data: Path, count: int, seed: int = 1) -> Tally:
    """1, then 2, then 1 process: the same sentences at every step, and losses equal to the digits of float32."""
    tally = Tally("1, then 2, then 1 process, changed at random steps: same sentences at every step, losses to 1e-5")
    config = CONFIG.with_changes(model={"dropout": 0.0})
    told = folder / "told"

    def trained(run: Path, config: Config, processes: int) -> int:
        order = run.with_name(run.name + "-order")
        order.mkdir(exist_ok=True)
        if processes == 1:
            return run_child(_alone, data, run, config, order, told=told)
        code, said = faulty(data, run, config, steps=str(order))
        told.write_text(said)
        return code

    assert trained(folder / "whole", config, 1) == 0, told.read_text()
    expected = [report["loss"] for report in toy.reports(folder / "whole", "train")]
    generator = random.Random(seed)
    most = 0.0
    for number, way in zip(range(count), itertools.cycle(WAYS), strict=False):
        first, second = sorted(generator.sample(range(1, config.training.steps), 2))
        run, ours = folder / f"{number}", _parallel(config, way)
        stages = {first: 1, second: 2, config.training.steps: 1}
        codes = [trained(run, ours.with_changes(training={"steps": steps}), stages[steps]) for steps in stages]
        losses = [report["loss"] for report in toy.reports(run, "train")]
        apart = max(abs(one / other - 1) for one, other in zip(losses, expected, strict=False))
        most = max(most, apart)
        same = sentences(folder / f"{number}-order") == sentences(folder / "whole-order")
        held = codes == [0, 0, 0] and len(losses) == len(expected) and apart < 1e-5 and same
        tally.count(held, f"{way}, 2 processes after step {first} to {second}: {codes}, {apart}; {told.read_text()}")
    tally.notes = {"ways": " and ".join(WAYS), "losses apart at most": f"{most:.0e}"}
    return tally


def not_finite(folder: Path, data: Path, count: int, *, ways: tuple[str, ...] = WAYS, seed: int = 1) -> Tally:
    """A loss that is no number in one process: the step is left out by all; three in a row roll back, or end all."""
    tally = Tally(
        "NaN in one of 2 processes: left out by all and counted; 3 in a row: all roll back, or stop with lines"
    )
    generator = random.Random(seed)
    for number, way in zip(range(count), itertools.cycle(WAYS), strict=False):
        run, rank, step = folder / f"{number}", generator.randint(0, 1), generator.randint(1, CONFIG.training.steps)
        code, said = faulty(data, run, _parallel(CONFIG, way), "no number", rank=rank, steps=str(step))
        skipped = [report["step"] for report in toy.reports(run, "skipped")]
        told = said.count(f"step {step} left out: loss nan") == 1 and "1 steps were left out" in said
        finite = all(math.isfinite(report["loss"]) for report in toy.reports(run, "train"))
        held = code == 0 and skipped == [step] and told and finite
        tally.count(held, f"{way}, process {rank}, step {step}: exit {code}, {skipped} left out; {said}")
    for way in ways:
        run, first = folder / f"back-{way}", generator.randint(6, 8)
        steps = ",".join(str(first + more) for more in range(3))
        # The same steps are taken again after the rollback, and are bad again: half the learning rate mends no memory.
        once = _parallel(CONFIG, way).with_changes(training={"rollbacks": 1})
        code, said = faulty(data, run, once, "no number", steps=steps)
        back = said.count("back to step 4 with 0.5 of the learning rate (rollback 1 of 1)") == 1
        stopped = said.count("qkv: error: 3 steps in a row had a loss or gradient that is not finite") == 1
        lines = json.loads((run / f"bad-step-{first + 2}.json").read_text())["lines of each step"]
        named = [*map(int, lines)] == [first, first + 1, first + 2] and all(lines.values())
        held = code == 1 and ended(said) == [(0, "4"), (1, "4")] and back and stopped and named
        tally.count(held, f"{way}, steps {steps} twice: exit {code}, {ended(said)}; {said}")
        # The same command goes on from before; nothing is wrong any more.
        code = run_child(train, data, run, once, told=folder / "told")
        said = (folder / "told").read_text()
        tally.count(code == 0 and "going on after step 4" in said, f"{way}, after that: exit {code}; {said}")
    tally.notes = {"ways": " and ".join(WAYS)}
    return tally
