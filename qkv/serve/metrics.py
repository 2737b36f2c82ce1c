"""Figures for Prometheus, in its text format: how much was asked for, how it went and how long it took.

Labels are protocols, statuses and directions: nothing that tells who asked, or what.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator

from qkv.serve.desk import Desk

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: answers are counted by which of these they took no longer than."""


class Metrics:
    """Counts answers."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._characters: dict[str, int] = {}
        self.disconnected = 0

    def answered(self, protocol: str, status: int, seconds: float) -> None:
        key = (protocol, status)
        self._answers[key] = self._answers.get(key, 0) + 1
        buckets = self._buckets.setdefault(protocol, [0] * (len(_BOUNDS) + 1))
        buckets[bisect.bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[protocol] = self._seconds.get(protocol, 0.0) + seconds

    def translated(self, protocol: str, characters: int) -> None:
        self._characters[protocol] = self._characters.get(protocol, 0) + characters

    def text(self, desk: Desk) -> str:
        """All figures, as Prometheus reads them."""
        pace = desk.engine.pace
        lines = [
            *_metric("requests_total", "counter", "Answers by protocol and status.", self._answer_rows()),
            *_metric("request_seconds", "histogram", "How long answers took.", self._duration_rows()),
            *_metric("characters_total", "counter", "Characters translated, by protocol.", (
                (f'{{protocol="{name}"}}', count) for name, count in self._characters.items()
            )),
            *_metric("disconnects_total", "counter", "Requests whose client left before the answer.",
                     [("", self.disconnected)]),
            *_metric("given_up_total", "counter", "Requests that took longer than the deadline.",
                     [("", desk.given_up)]),
            *_metric("orders", "gauge", "Requests accepted and not yet answered.", [("", desk.orders)]),
            *_metric("queued_tokens", "gauge", "Tokens accepted and not yet translated.", [("", desk.queued_tokens)]),
            *_metric("batches_total", "counter", "Batches translated.", [("", pace.batches)]),
            *_metric("sentences_total", "counter", "Sentences done.", [("", pace.sentences)]),
            *_metric("tokens_total", "counter", "Source tokens translated.", [("", pace.tokens)]),
            *_metric("engine_seconds_total", "counter", "Seconds that models worked.",
                     [("", pace.seconds)]),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def _answer_rows(self) -> Iterator[tuple[str, float]]:
        for (protocol, status), count in sorted(self._answers.items()):
            yield f'{{protocol="{protocol}",status="{status}"}}', count

    def _duration_rows(self) -> Iterator[tuple[str, float]]:
        for protocol, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, _BOUNDS), "+Inf"), buckets, strict=True):
                total += count
                yield f'_bucket{{protocol="{protocol}",le="{bound}"}}', total
            yield f'_sum{{protocol="{protocol}"}}', self._seconds[protocol]
            yield f'_count{{protocol="{protocol}"}}', total


def _metric(name: str, kind: str, told: str, rows: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP qkv_{name} {told}"
    yield f"# TYPE qkv_{name} {kind}"
    for rest, value in rows:
        yield f"qkv_{name}{rest} {value}"
