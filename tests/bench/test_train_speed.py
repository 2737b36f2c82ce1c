"""The training benchmark: it takes the steps of the recipe that it names."""

from __future__ import annotations

import pytest

from bench import train_speed


def test_made_up_sentences_show_a_speed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command = "--recipe tiny --vocabulary 400 --tokens 512 --steps 1 --alone"
    monkeypatch.setattr("sys.argv", ["train_speed", *command.split()])
    train_speed.main()
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("qkv ") and "qkv is 1.00 times that" in first


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--recipe bas", "no recipe 'bas'; there are base, "),
        ("--recipe tiny --tokens 10", "--tokens 10 is less than a row of "),
        ("--recipe tiny --profile", "are for a GPU, and there is none"),
        ("--recipe tiny --data nowhere", "are for a GPU, and there is none"),
    ],
)
def test_what_cannot_be_measured_is_told_at_once(
    command: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["train_speed", *command.split()])
    with pytest.raises(SystemExit, match="2"):
        train_speed.main()
    assert words in capsys.readouterr().err
