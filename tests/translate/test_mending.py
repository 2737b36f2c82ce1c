"""What is seen to be wrong in a translation is looked for once more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from qkv import Translator
from qkv.config import SearchConfig
from qkv.search.engine import Floats, Integers, Known
from qkv.text.subwords import Tokenizer
from qkv.translate import Relay, Terms, terms_of
from qkv.translate.faults import faults
from qkv.translate.making import Makings
from tests.search.made_up import Prefixes

UNLIKELY = -12.0


class Speaker:
    """A model that knows what may be said of each source, what comes first being likelier."""

    looks_when_read = False

    def __init__(self, tokenizer: Tokenizer, known: Mapping[str, Sequence[str]]) -> None:
        self._tokenizer = tokenizer
        self._sources = [*known]
        self._known = [[[*tokenizer.encode(text), tokenizer.end] for text in texts] for texts in known.values()]
        self.asked: list[int] = []
        """How many sources it was given at a time."""

    def start(
        self,
        sources: Sequence[Sequence[int]],
        *,
        wanted: Sequence[Collection[int]] = (),  # noqa: ARG002
        looks: bool = False,  # noqa: ARG002
    ) -> Prefixes:
        self.asked.append(len(sources))
        return Prefixes.of(*(self._sources.index(self._tokenizer.decode(source)) for source in sources))

    def step(self, token_R: Integers, state: Prefixes) -> tuple[Known, Prefixes]:
        state = state.after(token_R, self._tokenizer.begin)
        return Known(np.stack([self._gains(*one) for one in state.each()])), state

    def _gains(self, sentence: int, prefix: tuple[int, ...]) -> Floats:
        gain_V = np.full(self._tokenizer.size, UNLIKELY, np.float32)
        gain_V[self._tokenizer.end] = UNLIKELY / 2
        for rank, ids in reversed([*enumerate(self._known[sentence])]):
            if (*ids[: len(prefix)],) == prefix and len(prefix) < len(ids):
                gain_V[ids[len(prefix)]] = -0.5 - rank
        return gain_V


@pytest.fixture(scope="module")
def tokenizer(toy_data: Path) -> Tokenizer:
    return Tokenizer.load(toy_data / "tokenizer.model")


def speaking(
    tokenizer: Tokenizer,
    known: Mapping[str, Sequence[str]],
    languages: tuple[str | None, str | None] = (None, None),
) -> tuple[Translator, Speaker]:
    speaker = Speaker(tokenizer, known)
    source, target = languages
    search = SearchConfig(extra_length=9)
    makings = Makings.of(
        speaker, tokenizer, search, right_to_left=False, source_language=source, target_language=target
    )
    return Translator(makings), speaker


def test_a_number_that_became_another_is_put_right(tokenizer: Tokenizer) -> None:
    translator, speaker = speaking(tokenizer, {"a 63": ["b 33", "b 63"], "a 7": ["b 7", "b 8"], "a": ["b"]})
    sources = ["a 63", "a 7", "a"]
    free = [one.text for one in translator.translate(sources)]
    assert free == ["b 33", "b 7", "b"]
    speaker.asked.clear()
    found = translator.translate(sources, terms=[terms_of(one, keep=["amounts"]) for one in sources])
    assert [one.text for one in found] == ["b 63", "b 7", "b"]
    # Only what is at fault is looked for again.
    assert speaker.asked == [3, 1]


def test_a_number_is_written_as_its_language_does_or_in_words(tokenizer: Tokenizer) -> None:
    known = {"1,234.5": ["1.243,5", "1.234,5"], "3 of 15": ["drei von 15"], "1,000": ["1 000"]}
    translator, _ = speaking(tokenizer, known)
    found = translator.translate([*known], terms=[terms_of(one, keep=["amounts"]) for one in known])
    assert [one.text for one in found] == ["1.234,5", "drei von 15", "1 000"]


def test_thousands_are_written_as_the_language_does_that_is_written(tokenizer: Tokenizer) -> None:
    known = {"1,250": ["1,250", "1.250"]}
    for source, target, right in (("en", "de", "1.250"), ("en", "en", "1,250"), (None, None, "1,250")):
        translator, _ = speaking(tokenizer, known, (source, target))
        assert translator.translate([*known], terms=[Terms(amounts=True)])[0].text == right


def test_a_number_is_not_put_right_by_a_part_of_another(tokenizer: Tokenizer) -> None:
    translator, _ = speaking(tokenizer, {"a 205": ["b 15", "b 5 205", "b 205", "c 205"]})
    (found,) = translator.translate(["a 205"], terms=[Terms(amounts=True)])
    assert found.text == "b 205"


def test_what_cannot_be_mended_stays_as_it_was_found(tokenizer: Tokenizer) -> None:
    translator, _ = speaking(tokenizer, {"63": ["33"], "a": ["b"]})
    terms = [Terms(forbidden=("63",), amounts=True), Terms(amounts=True)]
    assert [one.text for one in translator.translate(["63", "a"], terms=terms)] == ["33", "b"]


def test_what_is_mended_keeps_to_its_terms(tokenizer: Tokenizer) -> None:
    translator, _ = speaking(tokenizer, {"a 63 x": ["b 33 x", "b 63", "b 63 x"]})
    (found,) = translator.translate(["a 63 x"], terms=[Terms(once=("x",), amounts=True)])
    assert found.text == "b 63 x"


def test_what_says_something_is_not_translated_by_nothing(tokenizer: Tokenizer) -> None:
    translator, _ = speaking(tokenizer, {"may": ["", "b"], "a": ["b"]})
    assert [one.text for one in translator.translate(["may", "a"])] == ["b", "b"]


def test_a_word_of_letters_that_nobody_knows_stays_as_it_is(tokenizer: Tokenizer) -> None:
    source = "a (Đo)."
    assert any(tokenizer.byte(token) is not None for token in tokenizer.encode("Đ"))
    half = "b \ufffd"
    assert faults(source, half, tokenizer, amounts=False) == (Terms(once=("Đo",)), 1)
    assert faults(source, "b", tokenizer, amounts=True) is None
    assert faults("\ufffd", half, tokenizer, amounts=True) is None
    assert faults("a", half, tokenizer, amounts=True) is None
    assert faults(" ".join(["Đo"] * 6), half, tokenizer, amounts=True) is None


def test_what_stays_as_it_is_does_so_by_way_of_another_language(tokenizer: Tokenizer) -> None:
    first, _ = speaking(tokenizer, {"a {x} 63": ["b {y} 33", "b {x} 63"]})
    second, _ = speaking(tokenizer, {"b {x} 63": ["c {y} 33", "c {x} 63"]})
    terms = [terms_of("a {x} 63", keep=["placeholders", "amounts"])]
    (found,) = Relay(first, second).translate(["a {x} 63"], terms=terms)
    assert found.text == "c {x} 63"


def test_a_table_of_numbers_is_left_as_it_was_found(tokenizer: Tokenizer) -> None:
    source, wrong = ("a " + " ".join(str(one + more) for one in range(11, 17)) for more in (0, 50))
    translator, speaker = speaking(tokenizer, {source: [wrong, source]})
    assert translator.translate([source], terms=[Terms(amounts=True)])[0].text == wrong
    assert speaker.asked == [1]


def test_a_word_in_capitals_is_put_right_as_it_is_read(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def watched(source: str, *_: object, **__: object) -> None:
        seen.append(source)

    monkeypatch.setattr("qkv.translate.wording.faults", watched)
    translator, _ = speaking(tokenizer, {"Basa kodu": ["b"]})
    (found,) = translator.translate(["BASA KODU"])
    assert (found.text, seen) == ("B", ["Basa kodu"])


def test_a_lone_surrogate_is_no_obstacle(tokenizer: Tokenizer) -> None:
    translator, _ = speaking(tokenizer, {"a \ufffd": ["b \ufffd"]})
    assert translator.translate(["a \ud800"])[0].text == "b \ufffd"


def test_a_currency_that_became_another_is_put_right(tokenizer: Tokenizer) -> None:
    source, wrong, right = "a $20 b €30", "a 20 € b 30 €", "a 20 $ b 30 €"
    translator, _ = speaking(tokenizer, {source: [wrong, right]}, ("en", "de"))
    assert translator.translate([source])[0].text == wrong
    assert translator.translate([source], terms=[Terms(amounts=True)])[0].text == right


def test_a_number_that_comes_with_its_currency_is_not_asked_for_twice(tokenizer: Tokenizer) -> None:
    found = faults("a $20", "a 30", tokenizer, amounts=True, languages=("en", "de"))
    assert found == (Terms(required=(("20 $", "20 Dollar"),)), 2)


def test_who_is_held_to_one_amount_keeps_the_currency_of_the_other(tokenizer: Tokenizer) -> None:
    found = faults("a $20 b €1,500", "a 20 $ b 1,500 €", tokenizer, amounts=True, languages=("en", "de"))
    assert found is not None
    assert [some[0] for some in found.terms.required] == ["20 $", "1.500 €"]
    assert found.number == 1


def test_what_has_fewer_faults_is_taken_though_it_has_some(tokenizer: Tokenizer) -> None:
    translator, _ = speaking(tokenizer, {"a 205 b 63": ["a 15 b 33", "a 5 205 b 63"]})
    terms = Terms(amounts=True, forbidden=("a 205",))
    assert translator.translate(["a 205 b 63"], terms=[terms])[0].text == "a 5 205 b 63"


def test_a_date_that_was_lost_is_looked_for_again(tokenizer: Tokenizer) -> None:
    source, right = "a 12/05/2024 b", "c 12/05/2024 d"
    for wrong in ("c d", "c 12./05/2024 d", "c 11/05/2024 d"):
        translator, _ = speaking(tokenizer, {source: [wrong, right]}, ("en", "de"))
        assert translator.translate([source])[0].text == wrong
        assert translator.translate([source], terms=[Terms(amounts=True)])[0].text == right


def test_a_time_that_became_another_is_put_right(tokenizer: Tokenizer) -> None:
    source, wrong, right = "a 8:30 p.m.", "b 18.30 Uhr", "b 20.30 Uhr"
    translator, _ = speaking(tokenizer, {source: [wrong, right]}, ("en", "de"))
    assert translator.translate([source])[0].text == wrong
    assert translator.translate([source], terms=[Terms(amounts=True)])[0].text == right


def test_a_number_that_nobody_reads_is_not_looked_for_again(tokenizer: Tokenizer) -> None:
    assert faults("1" * 40, "2" * 40, tokenizer, amounts=True) is not None
    assert faults("1" * 41, "2" * 41, tokenizer, amounts=True) is None
