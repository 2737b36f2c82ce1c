"""A benchmark that is given what cannot be."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def refused(main: Callable[[], int], command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the code for a wrong command, by its parser or by itself."""
    monkeypatch.setattr("sys.argv", ["bench", *command.split()])
    try:
        code = main()
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 2
