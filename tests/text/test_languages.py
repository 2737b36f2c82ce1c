"""Languages are found however they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv.errors import ConfigError
from qkv.text.languages import NAMES, Direction, closest, language, named_pair, parse_directions


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        *((one, "de") for one in ("de", "DE", "ger", "deu", "German", " german ")),
        ("pt-br", "pt_BR"),
        ("zh-hant", "zh_Hant"),
        ("es-419", "es_419"),
        ("tlh", "tlh"),
    ],
)
def test_a_language_has_one_code(given: str, meant: str) -> None:
    assert language(given) == meant


@pytest.mark.parametrize("given", ["", "<b>", "en de", "1"])
def test_what_is_no_language_is_told(given: str) -> None:
    with pytest.raises(ConfigError, match="is no language"):
        language(given)


def test_a_region_matters_only_where_there_is_a_choice() -> None:
    assert closest("de-AT", ["de", "en"]) == "de"
    assert closest("pt", ["pt_BR"]) == "pt_BR"
    assert closest("pt", ["pt_BR", "pt_PT"]) is None
    assert closest("it", ["de", "en"]) is None


def test_directions_are_lists_without_repeats() -> None:
    assert parse_directions("en-de, de-en,en-de") == (Direction("en", "de"), Direction("de", "en"))
    assert parse_directions("en-pt_BR") == (Direction("en", "pt_BR"),)
    assert parse_directions(None) == ()
    for wrong in ("en", "en-", "en-de-fr"):
        with pytest.raises(ConfigError, match="is no direction"):
            Direction.parse(wrong)


def test_names_of_files_tell_languages_only_where_they_are_languages() -> None:
    assert named_pair([Path("news.2014.en-de.tsv.xz")]) == Direction("en", "de")
    assert named_pair([Path("a/train.en"), Path("a/train.fr.gz")]) == Direction("en", "fr")
    assert named_pair([Path("en-fr.tsv")]) == Direction("en", "fr")
    for files in (["corpus.tsv"], ["a.src", "a.tgt"], ["a.en", "b.en"], ["source.txt", "target.txt"], ["x-y.tsv"]):
        assert named_pair([Path(file) for file in files]) is None


def test_every_language_of_the_table_has_one_row() -> None:
    assert all(language(code) == code and language(name) == code for code, name in NAMES.items())
    assert language("Bokmål") == language("nob") == language("norwegian bokmål") == "nb"
