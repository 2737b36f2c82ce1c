"""The picture shows what the log says, and a log that cannot be read is named with its fault."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qkv.errors import CheckpointError, ConfigError, MissingExtraError, StorageError
from qkv.plot import draw, plot, read_log


def train(step: int, loss: float) -> dict[str, Any]:
    return {
        "kind": "train", "step": step, "loss": loss, "nll": loss - 0.5, "learning_rate": step / 1e6,
        "tokens_per_second": 9000.0 + step, "gradient_norm": 1.2, "seconds": 12.3, "epoch": 0.4,
    }  # fmt: skip


def validation(step: int, loss: float, **more: Any) -> dict[str, Any]:
    return {"kind": "validation", "step": step, "loss": loss, "nll": 3.2, "perplexity": 24.5, "seconds": 70.1, **more}


def write_run(run: Path, *reports: Mapping[str, Any], tail: str = "") -> Path:
    run.mkdir(parents=True)
    (run / "log.jsonl").write_text("".join(json.dumps(report) + "\n" for report in reports) + tail)
    return run


def curves(runs: list[Path]) -> list[list[list[list[float]]]]:
    """The points of each line of each panel."""
    return [[np.asarray(line.get_xydata()).tolist() for line in axes.get_lines()] for axes in draw(runs).axes]


def titles(runs: list[Path]) -> list[str]:
    return [axes.get_title(loc="left") for axes in draw(runs).axes]


def test_a_run_becomes_a_png(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.1), train(200, 4.2), validation(200, 4.5, bleu=12.3))
    plot([run], tmp_path / "picture.png")
    picture = (tmp_path / "picture.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert (int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")) == (1560, 1040)


def test_the_panels_show_what_was_reported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.1), train(200, 4.2), validation(200, 4.5, bleu=12.3))
    assert titles([run]) == ["Loss", "Validation BLEU", "Learning rate", "Speed"]
    assert curves([run]) == [
        [[[100, 5.1], [200, 4.2]], [[200, 4.5]]],
        [[[200, 12.3]]],
        [[[100, 1e-4], [200, 2e-4]]],
        [[[100, 9100], [200, 9200]]],
    ]


@pytest.mark.parametrize(
    ("only", "title"),
    [("loss", "Loss"), ("quality", "Validation BLEU"), ("rate", "Learning rate"), ("speed", "Speed")],
)
def test_one_panel_can_be_all(tmp_path: Path, only: str, title: str) -> None:
    runs = [
        write_run(tmp_path / name, train(100, 5.1), train(200, 4.2), validation(200, 4.5, bleu=12.3))
        for name in ("one", "other")
    ]
    figure = draw(runs, only=only)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [title]
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["one", "other"]
    command = [
        sys.executable,
        "-m",
        "qkv",
        "plot",
        *map(str, runs),
        "--only",
        only,
        "--output",
        str(tmp_path / "a.png"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    picture = (tmp_path / "a.png").read_bytes()
    assert (int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")) == (1040, 650)


def test_the_scale_of_the_speed_begins_at_nothing_and_holds_all_of_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.1), train(200, 4.2))
    for speed in (draw([run]).axes[3], draw([run], only="speed").axes[0]):
        bottom, top = speed.get_ylim()
        assert bottom == 0
        assert 9200 < top < 10_500


def test_runs_of_other_batches_are_compared_over_minutes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.1), validation(100, 4.5, bleu=12.3))
    loss, bleu, *_ = draw([run], over="minutes").axes
    assert (loss.get_xlabel(), bleu.get_xlabel()) == ("minutes of steps", "minutes of steps")
    assert np.asarray(loss.get_lines()[0].get_xydata()).tolist() == [[pytest.approx(12.3 / 60), 5.1]]
    assert np.asarray(bleu.get_lines()[0].get_xydata()).tolist() == [[pytest.approx(70.1 / 60), 12.3]]


@pytest.mark.parametrize(
    ("over", "last"), [("minutes", 1_107), ("minutes", 31), ("steps", 15_300), ("steps", 2_000_000)]
)
def test_the_labels_of_a_scale_say_where_they_stand(over: str, last: int, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {**train(last if over == "steps" else 7, 5.1), "seconds": last})
    figure = draw([run], over=over, only="loss")
    figure.draw_without_rendering()
    axis = figure.axes[0].xaxis
    labels = [float(label.get_text().replace(",", "")) for label in axis.get_ticklabels()]
    assert len(labels) > 2
    assert labels == pytest.approx(axis.get_ticklocs())


def test_perplexity_stands_in_where_a_run_has_no_bleu(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "with", train(100, 5.1), validation(100, 4.5, bleu=12.3)),
        write_run(tmp_path / "without", train(100, 5.2), validation(100, 4.6)),
    ]
    assert titles(runs)[1] == "Validation perplexity"
    assert curves(runs)[1] == [[[100, 24.5]], [[100, 24.5]]]


def test_several_runs_are_told_apart_and_named(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"run{number}", train(100, 5.0 + number)) for number in range(9)]
    figure = draw(runs)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [run.name for run in runs]
    speed = figure.axes[3].get_lines()
    assert len({(line.get_color(), line.get_linestyle()) for line in speed}) == len(runs)


def test_runs_of_one_name_are_named_by_their_paths(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / folder / "run", train(100, 5.0)) for folder in ("a", "b")]
    assert [text.get_text() for text in draw(runs).legends[0].get_texts()] == [str(run) for run in runs]


def test_one_run_needs_no_legend_but_its_name(tmp_path: Path) -> None:
    figure = draw([write_run(tmp_path / "base", train(100, 5.0))])
    assert figure.legends == []
    assert figure.get_suptitle() == "base"


def test_before_the_first_validation_there_is_a_picture_too(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(1, 5.1))
    plot([run], tmp_path / "run.png")
    assert [text.get_text() for text in draw([run]).axes[1].texts] == ["not reported yet"]


def test_what_is_not_a_number_leaves_a_gap(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.1), train(200, float("nan")), train(300, 4.0))
    drawn = [np.asarray(line.get_ydata()) for line in draw([run]).axes[0].lines]
    assert any(np.array_equal(one, [5.1, np.nan, 4.0], equal_nan=True) for one in drawn)
    plot([run], tmp_path / "run.png")


def test_after_a_resume_the_later_report_of_a_step_stands(tmp_path: Path) -> None:
    before = [train(100, 5.0), train(200, 4.0), train(300, 3.0)]
    run = write_run(tmp_path / "run", *before, validation(200, 3.9), train(200, 4.4), train(300, 3.3), train(400, 2.2))
    assert [(report["kind"], report["step"], report["loss"]) for report in read_log(run)] == [
        ("train", 100, 5.0), ("train", 200, 4.4), ("validation", 200, 3.9), ("train", 300, 3.3), ("train", 400, 2.2),
    ]  # fmt: skip


def test_other_kinds_of_lines_are_passed_over(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"kind": "begin"}, train(100, 5.0), {"kind": "save", "step": 100})
    assert read_log(run) == [train(100, 5.0)]


@pytest.mark.parametrize("tail", ['{"kind": "train", "st', '{"kind": "train", "text": "\udcc3', "{"])
def test_the_unfinished_report_of_a_killed_run_is_passed_over(tail: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.0))
    with (run / "log.jsonl").open("ab") as log:
        log.write(tail.encode("utf-8", "surrogateescape"))
    assert read_log(run) == [train(100, 5.0)]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"kind": "tra', "line 2 is damaged"),
        ("", "line 2 is damaged"),
        ("[1]", "line 2 is not a report: it says no kind"),
        ('{"kind": "train"}', "line 2 is not a report: it says no step"),
    ],
)
def test_a_broken_line_elsewhere_is_named(line: str, fault: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.0), tail=f"{line}\n{json.dumps(train(200, 4.0))}\n")
    with pytest.raises(CheckpointError, match=rf"log\.jsonl, {fault}"):
        read_log(run)


def test_a_picture_that_is_called_something_else_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.1))
    with pytest.raises(ConfigError, match=r"plots are PNG files, .* try .*curves\.png"):
        plot([run], tmp_path / "curves.jpg")
    assert not (tmp_path / "curves.jpg").exists()


def test_what_is_not_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere is not a run directory"):
        plot([tmp_path / "nowhere"], tmp_path / "run.png")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty has no log\.jsonl"):
        plot([tmp_path / "empty"], tmp_path / "run.png")
    run = write_run(tmp_path / "young", {"kind": "begin"})
    with pytest.raises(CheckpointError, match=r"log\.jsonl holds no reports yet"):
        plot([run], tmp_path / "run.png")
    assert not (tmp_path / "run.png").exists()


def test_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", train(100, 5.0))
    output = tmp_path / "missing" / "run.png"
    with pytest.raises(StorageError, match=f"cannot be written to {output}: No such file or directory"):
        plot([run], output)


def test_without_matplotlib_the_cure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", train(100, 5.0))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"plots need matplotlib.*pip install '\.\[plot\]'"):
        plot([run], tmp_path / "run.png")


def test_matplotlib_is_imported_only_to_draw() -> None:
    program = "import sys, qkv.plot; print({'torch', 'matplotlib', 'numpy'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"
