"""The scores of one or more systems, as a page for people and as a dictionary for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qkv.evaluate.scores import Score, check, score
from qkv.evaluate.significance import RESAMPLES, Comparison, Estimate, compare


@dataclass(frozen=True)
class Report:
    """Each system's scores, and every later system compared with the first."""

    sentences: int
    scores: dict[str, dict[str, Score]]
    comparisons: list[dict[str, Comparison]]

    @property
    def text(self) -> str:
        """The report as lines to print."""
        return "\n".join([*self._score_lines(), *self._comparison_lines()]) + "\n"

    @property
    def values(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "sentences": self.sentences,
            "systems": {
                system: {metric: dataclasses.asdict(one) for metric, one in scores.items()}
                for system, scores in self.scores.items()
            },
            "comparisons": [
                {metric: _comparison_values(one) for metric, one in comparisons.items()}
                for comparisons in self.comparisons
            ],
        }

    def _score_lines(self) -> list[str]:
        widths = {system: max(len("100.00"), len(system)) for system in self.scores}
        lines = [f"{self.sentences:,} sentences", ""]
        lines.append("  ".join(f"{system:>{width}}" for system, width in widths.items()))
        first, *_ = self.scores.values()
        for metric, one in first.items():
            row = "  ".join(f"{self.scores[system][metric].value:{width}.2f}" for system, width in widths.items())
            lines += [f"{row}  {one.name}", f"{' ' * len(row)}  {one.signature}"]
        return lines

    def _comparison_lines(self) -> list[str]:
        lines = []
        for comparisons in self.comparisons:
            for one in comparisons.values():
                lines += [
                    "",
                    f"{one.name}: {one.verdict}",
                    *_interval_lines(one.baseline, one.system),
                    f"  paired bootstrap, {RESAMPLES:,} resamples, 95 % intervals; {one.signature}",
                ]
        return lines


def evaluate(systems: Mapping[str, Sequence[str]], references: Sequence[str], *, language: str | None = "en") -> Report:
    """Scores each system's translations, and compares every later system with the first."""
    for name, hypotheses in systems.items():
        check(hypotheses, references, name)
    baseline, *others = systems.items()
    return Report(
        sentences=len(references),
        scores={name: score(hypotheses, references, language=language) for name, hypotheses in systems.items()},
        comparisons=[compare(baseline, other, references) for other in others],
    )


def _interval_lines(*estimates: Estimate) -> list[str]:
    width = max(len(one.system) for one in estimates)
    return [f"  {one.system:<{width}}  {one.score:6.2f}  ({one.mean:.2f} ± {one.margin:.2f})" for one in estimates]


def _comparison_values(comparison: Comparison) -> dict[str, Any]:
    verdict = {"better": comparison.better, "significant": comparison.significant}
    return {**dataclasses.asdict(comparison), **verdict}
