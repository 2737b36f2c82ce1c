"""The curves of one or more runs, drawn from their logs to a PNG."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qkv.directories import LOG
from qkv.errors import CheckpointError, ConfigError, MissingExtraError, StorageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot(runs: Sequence[Path], output: Path, *, over: str = "steps", only: str | None = None) -> None:
    """Writes the picture of the runs that `draw` draws."""
    if output.suffix.lower() != ".png":
        raise ConfigError(f"plots are PNG files, and {output} is not called one; try {output.with_suffix('.png')}")
    figure = draw(runs, over=over, only=only)
    try:
        figure.savefig(output, format="png", dpi=130)
    except OSError as error:
        raise StorageError(f"the plot cannot be written to {output}: {error.strerror}") from error


def draw(runs: Sequence[Path], *, over: str = "steps", only: str | None = None) -> Figure:
    """Loss, quality, learning rate and speed of the runs, or one of these, over their steps or minutes, as a figure of
    Matplotlib."""
    histories = [_History(name, read_log(run), OVER[over]) for name, run in zip(_names(runs), runs, strict=True)]
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ModuleNotFoundError as error:
        raise MissingExtraError("plots need", str(error.name), "plot") from error
    panels = [panel for name, panel in _panels(histories).items() if only in (None, name)]
    side = 2 if only is None else 1
    figure = Figure(figsize=(12, 8) if only is None else (8, 5))
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.12))
    grid = figure.subplots(side, side, sharex=True, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=True):
        _frame(axes, panel, OVER[over])
        _fill(axes, panel, histories)
        axes.set_xlim(left=0)
        if panel.from_nothing:
            # Only now: an axis that was told where it ends does not grow with what is drawn.
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(_WHOLE_OR_NOT)
    _explain(figure, histories)
    return figure


def read_log(run: Path) -> list[dict[str, Any]]:
    """A run's reports by step, training before validation; of two for one step, as after a resume, the later one."""
    path = run / LOG
    if not run.is_dir():
        raise ConfigError(f"{run} is not a run directory")
    if not path.is_file():
        raise ConfigError(f"{run} has no {LOG}: it is not a run directory, or its training has not begun")
    if not (found := reports_of(path)):
        raise CheckpointError(f"{path} holds no reports yet; let the run train a little longer")
    return found


def reports_of(path: Path) -> list[dict[str, Any]]:
    """The same of a log, which may hold none yet."""
    latest = {(report["kind"], report["step"]): report for report in _reports(path)}
    return [latest[key] for key in sorted(latest, key=lambda key: (key[1], key[0]))]


def _reports(path: Path) -> Iterator[dict[str, Any]]:
    # A report ends in a line break: what stands after the last one is a report that a killed run did not finish.
    *lines, _ = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            report = json.loads(line)
        except ValueError as error:
            raise CheckpointError(f"{path}, line {number} is damaged: {error}") from error
        if not isinstance(report, dict) or "kind" not in report:
            raise CheckpointError(f"{path}, line {number} is not a report: it says no kind")
        if report["kind"] in _KINDS:
            if not isinstance(report.get("step"), int):
                raise CheckpointError(f"{path}, line {number} is not a report: it says no step")
            yield report


def _names(runs: Sequence[Path]) -> list[str]:
    names = [run.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


class _Along(NamedTuple):
    """What curves go along."""

    unit: str
    value: str
    """Of a report."""
    share: float = 1.0


OVER = {"steps": _Along("step", "step"), "minutes": _Along("minutes of steps", "seconds", 1 / 60)}


@dataclass(frozen=True)
class _History:
    """A run's name and what it reported."""

    name: str
    reports: list[dict[str, Any]]
    along: _Along

    def curve(self, kind: str, value: str) -> list[tuple[float, float]]:
        """(how far the run was, value) of the reports of this kind that hold this value."""
        place = self.along.value
        return [
            (one[place] * self.along.share, one[value])
            for one in self.reports
            if one["kind"] == kind and one.get(place) is not None and one.get(value) is not None
        ]


@dataclass(frozen=True)
class _Panel:
    """One value over the course of a run, from one or more kinds of report."""

    title: str
    unit: str
    value: str
    kinds: tuple[str, ...]
    logarithmic: bool = False
    from_nothing: bool = False
    """Whether its scale begins at zero."""


_LOSS = _Panel("Loss", "nats per target token, logarithmic", "loss", ("train", "validation"), logarithmic=True)
_BLEU = _Panel("Validation BLEU", "sacreBLEU", "bleu", ("validation",))
_PERPLEXITY = _Panel(
    "Validation perplexity", "per target token, logarithmic", "perplexity", ("validation",), logarithmic=True
)
_RATE = _Panel("Learning rate", "", "learning_rate", ("train",))
_SPEED = _Panel("Speed", "tokens per second", "tokens_per_second", ("train",), from_nothing=True)

_MARKS: dict[str, dict[str, Any]] = {
    "train": {"linewidth": 1.2, "alpha": 0.75},
    "validation": {"linewidth": 1.6, "marker": "o", "markersize": 4.5, "markeredgecolor": "white"},
}
_KINDS = (*_MARKS, "rollback", "stopped")
"""Reports that mean something to a reader; others may be there."""
# Okabe and Ito's palette less its yellow, too pale for a line: every kind of eye can tell these apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", ":", "-.")
_GREY = "#666666"
_WHOLE_OR_NOT = "{x:,.10g}"
"""A label says where its tick is: 2.5 minutes are neither 2 nor 3."""


def _panels(histories: Sequence[_History]) -> dict[str, _Panel]:
    # BLEU may be left out of validations; runs are compared by what all of them know.
    quality = _BLEU if all(history.curve("validation", "bleu") for history in histories) else _PERPLEXITY
    return {"loss": _LOSS, "quality": quality, "rate": _RATE, "speed": _SPEED}


def _frame(axes: Axes, panel: _Panel, along: _Along) -> None:
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.set_ylabel(panel.unit, color=_GREY)
    axes.set_xlabel(along.unit, color=_GREY)
    if panel.logarithmic:
        _use_logarithm(axes)
    axes.xaxis.set_major_formatter(_WHOLE_OR_NOT)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.tick_params(which="both", colors=_GREY, labelbottom=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#bbbbbb")


def _use_logarithm(axes: Axes) -> None:
    from matplotlib.ticker import LogFormatter

    axes.set_yscale("log")
    # Plain numbers, and where there are few powers of ten, between them too.
    for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        set_formatter(LogFormatter(minor_thresholds=(2, 0.7)))


def _fill(axes: Axes, panel: _Panel, histories: Sequence[_History]) -> None:
    empty = True
    for number, history in enumerate(histories):
        again, colour = divmod(number, len(_COLOURS))
        for kind in panel.kinds:
            points = history.curve(kind, panel.value)
            places, values = [place for place, _ in points], [value for _, value in points]
            axes.plot(places, values, color=_COLOURS[colour], linestyle=_DASHES[again % len(_DASHES)], **_MARKS[kind])
            empty = empty and not points
    if empty:
        axes.text(0.5, 0.5, "not reported yet", transform=axes.transAxes, ha="center", color=_GREY)


def _explain(figure: Figure, histories: Sequence[_History]) -> None:
    """Names the kinds of curves where there are two, and the runs above all panels."""
    from matplotlib.lines import Line2D

    names = {"train": "training", "validation": "validation"}
    kinds = [Line2D([], [], color=_GREY, label=names[kind], **marks) for kind, marks in _MARKS.items()]
    for axes in figure.axes:
        if len(axes.get_lines()) > len(histories):
            axes.legend(handles=kinds, frameon=False)
    if len(histories) == 1:
        figure.suptitle(histories[0].name, fontsize="x-large")
        return
    drawn = figure.axes[-1].get_lines()
    lines = drawn[:: len(drawn) // len(histories)]
    figure.legend(
        lines, [history.name for history in histories], loc="outside upper center", ncols=min(4, len(lines)),
        frameon=False, fontsize="large",
    )  # fmt: skip
