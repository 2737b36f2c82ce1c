"""A translation as it grows."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from qkv import Translation, Translator
from qkv.errors import ConfigError
from qkv.translate import Controls
from tests import toy
from tests.translate.made import untrained

SOURCES = [source for source, _ in toy.held_out()[:8]]


def all_of(stream: Generator[str, None, Translation]) -> tuple[list[str], Translation]:
    said = []
    while True:
        try:
            said.append(next(stream))
        except StopIteration as end:
            return said, end.value


def test_what_is_said_is_the_greedy_translation_in_parts(toy_run: Path) -> None:
    translator = Translator.load(toy_run)
    for source, expected in zip(SOURCES, translator.translate(SOURCES, beam=1), strict=True):
        said, whole = all_of(translator.stream(source))
        assert "".join(said) == whole.text == expected.text
        assert len(said) > 1
        assert all(said)
        assert (whole.complete, whole.tokens) == (expected.complete, expected.tokens)
        assert whole.score == pytest.approx(expected.score, abs=1e-5)


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("controls", [None, Controls(no_repeats_of=1), Controls(coverage_penalty=0.2, least_tokens=9)])
def test_nonsense_is_streamed_to_its_last_byte(toy_data: Path, seed: int, controls: Controls | None) -> None:
    """A model that was never trained writes bytes that are no text, and stops at the limit."""
    nonsense = untrained(toy_data, seed=seed, extra_length=20)
    for source in SOURCES[:3]:
        said, whole = all_of(nonsense.stream(source, controls=controls))
        (expected,) = nonsense.translate([source], beam=1, controls=controls)
        assert "".join(said) == whole.text == expected.text
        assert whole.complete == expected.complete
        assert whole.score == pytest.approx(expected.score, abs=1e-4)


def test_a_stream_begins_with_its_prefix(toy_run: Path) -> None:
    translator = Translator.load(toy_run)
    said, _ = all_of(translator.stream("basa kodu", prefix="omul"))
    (expected,) = translator.translate(["basa kodu"], beam=1, prefixes=["omul"])
    assert "".join(said) == expected.text
    assert expected.text.startswith("omul")


def test_nothing_is_said_of_an_empty_text(toy_data: Path) -> None:
    assert all_of(untrained(toy_data).stream(" \t")) == ([], Translation("", 0.0, complete=True))


def test_what_cannot_be_streamed_is_told_at_once(toy_data: Path) -> None:
    with pytest.raises(ConfigError, match="writes the last word first"):
        untrained(toy_data, right_to_left=True).stream("basa")
    with pytest.raises(TypeError, match=r"texts\[0\] is 3"):
        untrained(toy_data).stream(3)  # type: ignore[arg-type]
