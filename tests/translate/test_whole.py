"""Where a device searches by itself, translators ask it for all that has no rules, and find what they always did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from qkv import Translator
from qkv.engines.gpu.search import GpuSearch
from qkv.engines.load import read_run
from qkv.errors import ConfigError
from qkv.export import export
from qkv.search.hypothesis import Hypothesis, Limits
from qkv.translate import Controls, Terms
from tests import toy

SOURCES = [*(source for source, _ in toy.held_out()[:8]), ""]


class Heard:
    """A search that remembers how many sentences it was asked for."""

    def __init__(self, search: GpuSearch) -> None:
        self._search = search
        self.counts: list[int] = []

    def find(self, sources: Sequence[Sequence[int]], limits: Limits, **options: Any) -> list[list[Hypothesis]]:
        self.counts.append(len(sources))
        return self._search.find(sources, limits, **options)


@pytest.fixture
def heard(toy_run: Path) -> Heard:
    return Heard(GpuSearch(read_run(toy_run).model))


@pytest.fixture
def translator(toy_run: Path, heard: Heard) -> Translator:
    return Translator.of(*read_run(toy_run), whole=heard)


@pytest.fixture(scope="module")
def plain(toy_run: Path) -> Translator:
    return Translator.load(toy_run, device="cpu")


def same(translator: Translator, plain: Translator, **options: Any) -> None:
    found, expected = translator.translate(SOURCES, **options), plain.translate(SOURCES, **options)
    assert [one.text for one in found] == [one.text for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-4)
    for one, other in zip(found, expected, strict=True):
        assert [each.text for each in one.alternatives] == [each.text for each in other.alternatives]


@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"beam": 3, "alternatives": 2}, {"length_penalty": 1.0}])
def test_it_is_asked_for_all_texts_at_once(
    translator: Translator, plain: Translator, heard: Heard, options: dict[str, Any]
) -> None:
    same(translator, plain, **options)
    assert heard.counts == [8]


@pytest.mark.parametrize(
    "options", [{"controls": Controls(coverage_penalty=0.2)}, {"controls": Controls(least_tokens=4)}]
)
def test_it_is_not_asked_for_what_it_cannot_do(
    translator: Translator, plain: Translator, heard: Heard, options: dict[str, Any]
) -> None:
    same(translator, plain, **options)
    assert heard.counts == []


def test_only_sentences_without_a_rule_are_its_own(translator: Translator, plain: Translator, heard: Heard) -> None:
    prefixes = ["", "", "ud", "", "as", "", "", "", ""]
    same(translator, plain, prefixes=prefixes)
    assert heard.counts == [6]


def test_terms_are_looked_for_where_it_did_not_write_them(
    translator: Translator, plain: Translator, heard: Heard
) -> None:
    same(translator, plain, terms=[Terms(required=(("udok",),)), *[None] * 8])
    assert heard.counts == [8]


def test_other_numbers_are_refused_where_no_device_searches_in_them(toy_run: Path, tmp_path: Path) -> None:
    export(toy_run, tmp_path / "exported", precision="float32")
    for path in (toy_run, tmp_path / "exported"):
        with pytest.raises(ConfigError, match="bfloat16 is for translating with a run on a GPU"):
            Translator.load(path, device="cpu", precision="bfloat16")
