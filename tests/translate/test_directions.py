"""A model of several directions is asked for one of them by its languages."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from qkv.config import TextConfig
from qkv.errors import ConfigError
from qkv.evaluate import score
from qkv.text.languages import Direction
from qkv.training import train
from qkv.translate import Catalogue, Rerank, Translator, translate_document
from qkv.translate.directions import chosen, directions_of
from tests.toy import QUICK, Command, one_thread, pairs, reports, write_tsv

ALL = (Direction("en", "de"), Direction("de", "en"), Direction("en", "fr"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three directions that has learned next to nothing."""
    folder = tmp_path_factory.mktemp("directions")
    some = pairs(260)
    files = [write_tsv(folder / "a.en-de.tsv", some[:130]), write_tsv(folder / "b.en-fr.tsv", some[130:])]
    with one_thread():
        train(files, folder / "run", QUICK.with_changes(text={"directions": "en-de,de-en,en-fr", "vocabulary": 340}))
    return folder / "run"


def test_the_tag_of_the_target_is_read_before_the_source(run: Path) -> None:
    translator = Translator.load(run)
    assert translator.directions == ALL
    found = {
        direction: translator.between(*direction).translate(["ba ko"])[0].token_scores
        for direction in (Direction("en", "de"), Direction("en", "fr"))
    }
    assert found[ALL[0]] != found[ALL[2]]
    german = translator.between("en", "de")
    assert (german.source_language, german.target_language) == ("en", "de")
    assert german.longest_source == translator.longest_source - 1
    # Where only one direction fits, one language is enough.
    assert translator.between(None, "fr").translate(["ba ko"])[0].token_scores == found[ALL[2]]
    assert translator.between("DE-at", None).target_language == "en"


def test_a_model_of_several_directions_asks_which_in_words_of_its_surface(run: Path, command: Command) -> None:
    translator = Translator.load(run)
    several = "there are several directions, en-de, de-en, en-fr; "
    for ask in (partial(translator.translate, ["ba"]), partial(translator.between, None, None)):
        with pytest.raises(ConfigError, match=re.escape(several + 'say which: .between("en", "de")')):
            ask()
    with pytest.raises(ConfigError, match=re.escape('say which: .translator("en", "de")')):
        Catalogue.open([run]).translator("en", None)
    for named in ([run], ["--model", run]):
        ran = command("translate", *named, given=b"ba\n")
        assert "several directions" in ran.err and "say which: --from en --to de" in ran.err
    ran = command("evaluate", run, "--test", write_tsv(run.parent / "test.tsv", pairs(2)))
    assert (ran.code, f"{run}: {several}give --tests" in ran.err) == (2, True), ran.err


def test_what_a_model_does_not_know_is_told_with_what_it_does(run: Path) -> None:
    translator = Translator.load(run)
    with pytest.raises(
        ConfigError, match=r"does not translate from fr into en; there is en-de, .*Catalogue goes through"
    ):
        translator.between("fr", "en")
    with pytest.raises(ConfigError, match="no tag for the domain 'docs'"):
        translator.between("en", "de", domain="docs")


def test_a_model_can_be_asked_for_a_direction_that_it_has_not_learned(run: Path, command: Command) -> None:
    translator = Translator.load(run).in_every_direction()
    assert translator.directions == (*ALL, Direction("de", "fr"))
    french = translator.between("de", "fr")
    # Which language is read, no tag tells: only what the text is.
    assert french.translate(["ba ko"]) == translator.between("en", "fr").translate(["ba ko"])
    test = write_tsv(run.parent / "news.de-fr.tsv", pairs(4))
    asked = ["evaluate", run, "--tests", test, "--json"]
    through, direct = (json.loads(command(*asked, *more).out) for more in ([], ["--direct"]))
    assert [(row["direction"], row["through"]) for row in (*through, *direct)] == [("de-fr", "en"), ("de-fr", None)]
    hypotheses = [one.text for one in french.translate([source for source, _ in pairs(4)])]
    assert direct[0]["scores"]["chrf"]["value"] == score(hypotheses, [target for _, target in pairs(4)])["chrf"].value
    for arguments in ([run, run, "--tests", test], ["--tests", test], [run, "--test", test]):
        assert command("evaluate", *arguments, "--direct").code == 2


def test_words_and_documents_are_aligned_without_the_tag(run: Path) -> None:
    translator = Translator.load(run).between("en", "de")
    (found,) = translator.translate(["ba ko"], align=True)
    assert found.alignment is not None
    assert found.alignment.source_text == "ba ko"
    assert len(translate_document(translator, "Ba ko. Ri ne.").translations) == 2


def test_validation_translates_every_direction(run: Path) -> None:
    assert [*reports(run, "validation")[-1]].count("bleu") == 1


@pytest.mark.parametrize("backward", [False, True])
def test_a_second_model_of_several_directions_scores_in_that_of_the_first(run: Path, backward: bool) -> None:
    both = Translator.load(run)
    ends = ("de", "en") if backward else ("en", "de")
    first = both.between("en", "de")
    (found,) = first.translate(["ba ko"], rerank=Rerank(both, 1.0, backward=backward))
    pair = (["ba ko"], [found.text])
    (scored,) = both.between(*ends).score(*(pair[::-1] if backward else pair))
    assert found.score == pytest.approx(scored.score, abs=1e-3)


def test_ensembles_and_scores_keep_to_the_direction(run: Path) -> None:
    both = Translator.load(run, run).between("en", "fr")
    alone = Translator.load(run).between("en", "fr")
    one, other = (each.score(["ba ko"], ["ok ab"])[0].score for each in (both, alone))
    assert one == pytest.approx(other, abs=1e-4)


def test_languages_of_a_run_are_those_of_its_settings() -> None:
    assert directions_of(TextConfig()) == ()
    assert directions_of(TextConfig(source_language="en", target_language="fr")) == (Direction("en", "fr"),)
    assert directions_of(TextConfig(directions="en-de,de-en")) == ALL[:2]
    # Where nobody said what the languages are, who translates may say so.
    assert chosen((), "german", None) == ("de", None)
