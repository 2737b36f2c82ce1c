"""How a benchmark ends."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from bench.options import told


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
