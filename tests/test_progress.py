"""Progress: a line that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.progress import Progress, clear, duration, write_line

ERASE = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("qkv.progress.time", clock)
    monkeypatch.setenv("COLUMNS", "200")
    return clock


def work(clock: Clock, stream: io.StringIO, *, steps: int, seconds: float, total: int | None = None) -> None:
    with Progress("encoding", total=total, unit="pairs", stream=stream) as progress:
        for _ in range(steps):
            clock.now += seconds
            progress.advance(100)


def test_off_a_terminal_there_is_a_plain_line_every_ten_seconds(clock: Clock) -> None:
    stream = io.StringIO()
    work(clock, stream, steps=25, seconds=1, total=10_000)
    assert stream.getvalue() == (
        "encoding: 1,000 of 10,000 pairs · 100 pairs/s · 1 min 30 s left\n"
        "encoding: 2,000 of 10,000 pairs · 100 pairs/s · 1 min 20 s left\n"
    )


def test_on_a_terminal_one_line_is_redrawn_and_taken_away_at_the_end(clock: Clock) -> None:
    stream = Terminal()
    work(clock, stream, steps=2, seconds=0.5, total=1000)
    assert stream.getvalue() == (
        f"{ERASE}encoding: 100 of 1,000 pairs · 200 pairs/s · 4 s left"
        f"{ERASE}encoding: 200 of 1,000 pairs · 200 pairs/s · 4 s left"
        f"{ERASE}"
    )


def test_a_terminal_is_not_redrawn_more_often_than_an_eye_can_follow(clock: Clock) -> None:
    stream = Terminal()
    work(clock, stream, steps=1000, seconds=0.001)
    assert stream.getvalue().count("encoding") <= 10


def test_short_work_off_a_terminal_says_nothing(clock: Clock) -> None:
    stream = io.StringIO()
    work(clock, stream, steps=3, seconds=1)
    assert stream.getvalue() == ""


def test_without_a_total_no_end_is_foretold(clock: Clock) -> None:
    stream = io.StringIO()
    work(clock, stream, steps=10, seconds=1)
    assert stream.getvalue() == "encoding: 1,000 pairs · 100 pairs/s\n"


def test_what_was_done_before_counts_for_the_place_and_not_for_the_speed(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress("training", total=1000, unit="steps", stream=stream, done=800) as progress:
        clock.now += 10
        progress.advance(100, note="loss 2.31")
    assert stream.getvalue() == "training: 900 of 1,000 steps · 10 steps/s · 10 s left · loss 2.31\n"


def test_work_that_does_not_move_foretells_no_end(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress("training", total=1000, unit="steps", stream=stream) as progress:
        clock.now += 10
        progress.advance(0)
    assert stream.getvalue() == "training: 0 of 1,000 steps · 0 steps/s\n"


@pytest.mark.parametrize(("total", "told"), [(None, "1 line"), (1, "1 of 1 line"), (2, "1 of 2 lines")])
def test_one_is_not_several_and_slow_work_does_move(clock: Clock, total: int | None, told: str) -> None:
    stream = io.StringIO()
    with Progress("translating", total=total, unit="lines", stream=stream) as progress:
        clock.now += 12.5
        progress.advance(1)
    assert stream.getvalue().startswith(f"translating: {told} · 0.08 lines/s")


def test_more_work_than_was_expected_is_not_finished_in_the_past(clock: Clock) -> None:
    stream = io.StringIO()
    work(clock, stream, steps=10, seconds=1, total=900)
    assert stream.getvalue() == "encoding: 1,000 of 900 pairs · 100 pairs/s · 0 s left\n"


def test_the_line_is_taken_away_when_the_work_fails(clock: Clock) -> None:
    stream = Terminal()
    with pytest.raises(KeyError), Progress("training", total=None, unit="steps", stream=stream) as progress:
        clock.now += 1
        progress.advance(1)
        raise KeyError
    assert stream.getvalue().endswith(ERASE)


def test_progress_is_told_on_standard_error(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("encoding", total=None, unit="pairs") as progress:
        clock.now += 10
        progress.advance(50)
    assert capsys.readouterr() == ("", "encoding: 50 pairs · 5 pairs/s\n")


def test_standard_error_is_looked_up_when_the_work_begins(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("encoding", total=None, unit="pairs") as progress:
        clock.now += 10
        progress.advance(50)
    assert stream.getvalue() != ""


def test_a_live_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    write_line(stream, "x" * 50, live=True)
    assert stream.getvalue() == ERASE + "x" * 19


def test_a_plain_line_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    write_line(stream, "x" * 50, live=False)
    assert stream.getvalue() == "x" * 50 + "\n"


def test_clearing_leaves_an_empty_line() -> None:
    stream = Terminal()
    clear(stream)
    assert stream.getvalue() == ERASE


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (45, "45 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
        (360_000, "100 h 0 min"),
    ],
)
def test_durations_read_as_a_person_says_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@given(st.integers(0, 10**7))
def test_a_duration_loses_less_than_a_minute(seconds: int) -> None:
    words = duration(seconds).split()
    units = {"h": 3600, "min": 60, "s": 1}
    told = sum(int(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))
    assert 0 <= seconds - told < 60
