"""How long a run is that follows its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv.config import TextConfig
from qkv.prepare import Prepared
from qkv.prepare.mix import Mix
from qkv.text.subwords import Tokenizer
from qkv.training.lengths import target_tokens
from tests.toy import QUICK, pairs, write_tsv


def test_prepared_text_is_counted_to_the_last_token(toy_data: Path) -> None:
    prepared = Prepared.open(toy_data)
    tokens = target_tokens(prepared, Path("nowhere"), QUICK)
    assert tokens == len(prepared.corpus("train").target_ids)


@pytest.mark.parametrize("count", [40, 3000])
def test_files_are_counted_by_their_lines_or_by_some_of_many(tmp_path: Path, toy_run: Path, count: int) -> None:
    """Also where the first ones are shorter than the others."""
    some = sorted(pairs(count, seed=8), key=lambda pair: len(pair[0]))
    tokenizer = toy_run / "tokenizer.model"
    exact = sum(len(Tokenizer.load(tokenizer).encode(target)) + 1 for _, target in some)
    mix = Mix.of([write_tsv(tmp_path / "new.tsv", some)], TextConfig())
    assert target_tokens(mix, tokenizer, QUICK) == pytest.approx(exact, rel=0.03)


def test_each_pair_counts_in_every_direction_and_as_often_as_it_is_repeated(tmp_path: Path, toy_run: Path) -> None:
    tokenizer = toy_run / "tokenizer.model"
    corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(40, seed=8))
    mix = _mix(tmp_path / "mix.toml")
    once, mixed = (target_tokens(Mix.of([path], TextConfig()), tokenizer, QUICK) for path in (corpus, mix))
    assert mixed == pytest.approx(2 * 2.5 * once, rel=0.01)


def _mix(path: Path) -> Path:
    path.write_text('directions = ["en-de", "de-en"]\n[[corpus]]\nfiles = ["new.en-de.tsv"]\nrepetitions = 2.5\n')
    return path
