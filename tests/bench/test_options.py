"""What benchmarks make of options that cannot be, and how they end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import prepare_speed, student_speed, translate_gpu, translate_speed
from bench.options import told
from bench.translate_speed import compare
from bench.translators import LENGTH, Ids, Process, Timed
from qkv.errors import ConfigError, Stopped
from tests.bench.refusing import refused


@pytest.mark.parametrize("printed", [1, 100_000])
def test_a_reader_that_has_gone_is_nothing_to_speak_of(printed: int) -> None:
    """Whether Python still holds back what was printed, or not."""
    code = f"from bench.options import told; raise SystemExit(told('bench', lambda: print('fast\\n' * {printed})))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "trials.jsonl"), "trials.jsonl: No such file or directory"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (TimeoutError("nobody answered"), "nobody answered"),
    ],
)
def test_what_storage_refuses_is_told_in_a_line(error: OSError, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    def failing(*_: Any) -> int:
        raise error

    assert told("bench", failing) == 3
    assert capsys.readouterr().err == f"bench: {words}\n"


@pytest.mark.parametrize("named", [True, False])
def test_a_signal_is_told_in_a_line_whatever_a_library_makes_of_it(
    named: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def signalled() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except Stopped as error:
            raise RuntimeError(repr(error)) from (error if named else None)

    def deeper() -> None:
        try:
            signalled()
        except RuntimeError as error:
            raise ValueError("no kernel") from error

    for work in (signalled, deeper):
        assert told("bench", work) == 143
        assert capsys.readouterr().err == "bench: stopped by SIGTERM\n"


def test_an_error_that_nobody_asked_for_keeps_its_traceback() -> None:
    def failing() -> None:
        try:
            raise ConfigError("no such thing")
        except ConfigError as error:
            raise RuntimeError("while that was told") from error

    with pytest.raises(RuntimeError, match="while that was told"):
        told("bench", failing)


@pytest.mark.parametrize(
    ("benchmark", "command", "words"),
    [
        (translate_gpu, "", "device 'cuda' is not there: torch sees 0 GPUs"),
        (translate_gpu, "--device gpu", "no device is called 'gpu'"),
        (translate_gpu, "--sentences 0", "argument --sentences: '0' is not a whole number from 1 on"),
        (translate_gpu, "--rounds 0", "argument --rounds: '0' is not a whole number from 1 on"),
        (translate_gpu, "--vocabulary 4", "argument --vocabulary: '4' has no words: the first 4 ids are marks"),
        (translate_gpu, "--device cpu --recipe bas", "no recipe is called 'bas'; did you mean 'base'?"),
        (translate_gpu, "--run run", "--run and --source go together"),
        (translate_gpu, "--source test.en", "--run and --source go together"),
        (prepare_speed, "--pairs 0", "argument --pairs: '0' is not a whole number from 1 on"),
        (prepare_speed, "--pairs 1000 99", "--pairs 99 have no 8,000 subwords; give 100 or more"),
        (prepare_speed, "--workers 0", "argument --workers: '0' is not a whole number from 1 on"),
        (translate_speed, "--batches 1 0", "argument --batches: '0' is not a whole number from 1 on"),
        (translate_speed, "--beams -4", "argument --beams: '-4' is not a whole number from 1 on"),
        (translate_speed, "--rounds few", "argument --rounds: 'few' is not a whole number from 1 on"),
        (translate_speed, "--vocabulary 4", "argument --vocabulary: '4' has no words: the first 4 ids are marks"),
        (translate_speed, "--recipe bas", "no recipe is called 'bas'; did you mean 'base'?"),
        (student_speed, "--batches 0", "argument --batches: '0' is not a whole number from 1 on"),
        (student_speed, "--rounds 0", "argument --rounds: '0' is not a whole number from 1 on"),
        (student_speed, "--vocabulary 4", "argument --vocabulary: '4' has no words: the first 4 ids are marks"),
        (student_speed, "--recipes bas student", "no recipe is called 'bas'; did you mean 'base'?"),
        (student_speed, "--runs base student", "--runs and --test go together"),
        (student_speed, "--test test.tsv", "--runs and --test go together"),
    ],
)
def test_what_cannot_be_measured_is_told_at_once(
    benchmark: ModuleType,
    command: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    refused(benchmark.main, command, monkeypatch)
    assert words in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("benchmark", "command"),
    [
        (translate_gpu, "--device cpu --run base --source {empty}"),
        (student_speed, "--runs base student --test {empty}"),
    ],
)
def test_a_file_without_sentences_is_nothing_to_measure_with(
    benchmark: ModuleType,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    refused(benchmark.main, command.format(empty=empty), monkeypatch)
    assert capsys.readouterr().err.endswith(f"{empty} is empty: there is nothing to translate\n")


def test_a_few_pairs_are_enough_to_measure_preparing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--pairs", "100", "--workers", "1"])
    assert prepare_speed.main() == 0
    assert "100 pairs, 1 workers: " in capfd.readouterr().out


def test_a_system_that_ends_early_is_not_compared() -> None:
    """It would have written fewer tokens than were counted."""
    sources = [[5, 7], [6, 4]]

    class EndingIfItMay:
        def translate(self, sources: Ids, width: int) -> Timed:
            return Timed(1.0, 1.0, [[5] * (LENGTH - (width > 1))] * len(sources))

    system: Any = EndingIfItMay()
    assert len(compare({"brief": system}, sources, 1, rounds=3)["brief"]) == 3
    with pytest.raises(ConfigError, match="brief ended before 30 tokens"):
        compare({"brief": system}, sources, 2, rounds=3)


@pytest.mark.parametrize("sentences", [1, 10_000])
def test_a_system_that_dies_is_told_in_a_line(
    sentences: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether what it is asked fits into a pipe that nobody reads, or not."""
    dying = tmp_path / "dying"
    dying.write_text("#!/bin/sh\nexit 9\n")
    dying.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(dying))
    system = Process("qkv int8", "base", 400, tmp_path)

    def work() -> None:
        try:
            compare({"qkv int8": system}, [[5] * LENGTH] * sentences, 4, rounds=1)
        finally:
            system.close()

    assert told("bench", work) == 2
    assert capsys.readouterr().err == "bench: qkv int8 ended with code 9 before it had translated\n"
