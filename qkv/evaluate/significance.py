"""Whether one system is better than another or only luckier: paired bootstrap resampling (Koehn, 2004)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qkv.evaluate.scores import check, sacrebleu_bleu, sacrebleu_chrf, scoring_packages

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.significance import Result

RESAMPLES = 1000
LEVEL = 0.05


@dataclass(frozen=True)
class Estimate:
    """A system's score, and the interval `mean` ± `margin` that holds 95 % of the scores of resampled test sets."""

    system: str
    score: float
    mean: float
    margin: float


@dataclass(frozen=True)
class Comparison:
    """Two systems by one measure, and the probability that chance alone makes a difference as large."""

    name: str
    baseline: Estimate
    system: Estimate
    p_value: float
    signature: str

    @property
    def better(self) -> str | None:
        """The system with the higher score."""
        if self.baseline.score == self.system.score:
            return None
        return max(self.baseline, self.system, key=lambda estimate: estimate.score).system

    @property
    def significant(self) -> bool:
        return self.p_value < LEVEL

    @property
    def verdict(self) -> str:
        """Who is better, in a sentence."""
        if self.better is None:
            return "no difference"
        if self.significant:
            return f"{self.better} is better (p = {self.p_value:.3f}, below {LEVEL})"
        return f"{self.better} scores higher, but not significantly (p = {self.p_value:.3f}, not below {LEVEL})"


def compare(
    baseline: tuple[str, Sequence[str]],
    system: tuple[str, Sequence[str]],
    references: Sequence[str],
) -> dict[str, Comparison]:
    """A system against a baseline, each given as (name, translations), by every measure that is resampled."""
    for name, hypotheses in (baseline, system):
        check(hypotheses, references, name)
    return {key: _compare(name, make(), baseline, system, references) for key, (name, make) in _PAIRED.items()}


_PAIRED: dict[str, tuple[str, Callable[[], Metric]]] = {
    "bleu": ("sacreBLEU", sacrebleu_bleu),
    "chrf": ("chrF2", sacrebleu_chrf),
}


def _compare(
    name: str,
    metric: Metric,
    baseline: tuple[str, Sequence[str]],
    system: tuple[str, Sequence[str]],
    references: Sequence[str],
) -> Comparison:
    with scoring_packages():
        from sacrebleu.significance import PairedTest
    test = PairedTest([baseline, system], {name: metric}, [references], test_type="bs", n_samples=RESAMPLES)
    signatures, columns = test()
    ((measure, signature),) = signatures.items()
    results = [result for result in columns[measure] if not isinstance(result, str)]
    first, second = (_estimate(one, result) for (one, _), result in zip((baseline, system), results, strict=True))
    p_value = results[1].p_value
    assert p_value is not None
    # To sacreBLEU no difference at all is the most significant one, p = 1 / 1001.
    return Comparison(name, first, second, 1.0 if first.score == second.score else p_value, str(signature))


def _estimate(system: str, result: Result) -> Estimate:
    assert result.mean is not None
    assert result.ci is not None
    return Estimate(system, float(result.score), float(result.mean), float(result.ci))
