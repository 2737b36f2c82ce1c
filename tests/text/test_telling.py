"""Languages are told apart by the words that a corpus itself has."""

from __future__ import annotations

from qkv.text.telling import Telling

ENGLISH = ["the cat is in the house", "this is the end of it", "it is what it is", "the dog and the cat"]
GERMAN = ["die Katze ist im Haus", "das ist das Ende davon", "es ist wie es ist", "der Hund und die Katze"]

TELLING = Telling.learn({"en": ENGLISH * 50, "de": GERMAN * 50})


def test_a_text_in_another_language_is_foreign() -> None:
    assert TELLING.is_foreign("the cat and the dog", "de")
    assert not TELLING.is_foreign("the cat and the dog", "en")
    assert TELLING.is_foreign("Der Hund ist im Haus", "en")


def test_names_and_quotations_are_not_foreign() -> None:
    assert not TELLING.is_foreign("die Katze ist the Cat", "de")
    assert not TELLING.is_foreign("Windows 7, Azure", "de")
    assert not TELLING.is_foreign("", "de")


def test_wrong_lines_among_those_learned_from_do_no_harm() -> None:
    spoiled = Telling.learn({"en": ENGLISH * 50, "de": GERMAN * 50 + ENGLISH})
    assert spoiled.is_foreign("the cat and the dog", "de")
