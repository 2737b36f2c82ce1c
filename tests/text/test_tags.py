"""Tags: each comes out once, inside what it was inside, around the words that its words became."""

from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qkv.text.placing import by_words, put_tags
from qkv.text.sentences import split
from qkv.text.tags import take_html_tags, take_tags, write_html
from qkv.text.words import Span, words

TAG = re.compile(r"<[^<>]*>")
PIECES = st.sampled_from(["a", "b", "cd", " ", " ", "  ", "\n", "\n\n", ".", "<i/>", "<br>", "<br/>", "<!-- c -->"])
OPENING = st.sampled_from(["<b>", "<i>", "<p>", "<0>"])


def wrapped(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(OPENING, inside).map(lambda two: f"{two[0]}{two[1]}{two[0].replace('<', '</')}")
    return st.lists(st.one_of(inside, pair), max_size=5).map("".join)


NESTED = st.recursive(st.one_of(PIECES, st.sampled_from(["a", "b c"])), wrapped, max_leaves=20)
BROKEN = st.lists(st.one_of(PIECES, OPENING, st.sampled_from(["</b>", "</i>", "</p>", "</0>", "<a"]))).map("".join)
TRANSLATIONS = st.lists(st.sampled_from(["x", "yz", "a", "cd", " ", " ", "\n", ",", "¿", "<"])).map("".join)
SPANS = st.tuples(st.integers(-2, 12), st.integers(-2, 12)).map(lambda pair: Span(*pair))
ALIGNMENTS = st.lists(st.tuples(SPANS, SPANS), max_size=12)


def in_order(edges: list[tuple[int, int]]) -> list[tuple[Span, Span]]:
    """Sentences one behind the other, as many as there is room for in a text and its translation."""
    sides = [sorted(side) for side in zip(*edges, strict=True)] or [[], []]
    return [*zip(*([Span(*pair) for pair in itertools.pairwise(side)] for side in sides), strict=True)]


SENTENCES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=5).map(in_order)


def numbered(text: str) -> str:
    """The text with a number in each tag, so that every tag is known again."""
    numbers = iter(range(10**6))
    return TAG.sub(lambda match: re.sub(r"^(</?[^\s/>]+)", rf"\1 n{next(numbers)}", match[0]), text)


def families(text: str) -> dict[str, str | None]:
    """Each tag of a text and the opening tag of the pair that it is inside of."""
    tags = take_tags(text).tags
    result: dict[str, str | None] = {}
    path: list[str] = []
    for number, tag in enumerate(tags):
        if tag.partner is not None and tag.partner < number:
            path.pop()
        result[tag.text.strip()] = path[-1] if path else None
        if tag.partner is not None and tag.partner > number:
            path.append(tag.text.strip())
    return result


@pytest.mark.parametrize(
    ("text", "translation", "pairs", "expected"),
    [
        ("The <b>red</b> house", "La maison rouge", [(0, 0), (1, 2), (2, 1)], "La maison <b>rouge</b>"),
        ("The <b>red</b> house", "La maison rouge", [], "La <b>maison</b> rouge"),
        ("<p>The red house</p>", "La maison rouge", [], "<p>La maison rouge</p>"),
        ("<b>Hello</b>, world!", "Hallo, Welt!", [(0, 0), (1, 1)], "<b>Hallo,</b> Welt!"),
        ("a <i><b>b</b> c</i>", "C B A", [(0, 2), (1, 1), (2, 0)], "<i>C <b>B</b></i> A"),
        ("<b>a</b> <i>b</i>", "B A", [(0, 1), (1, 0)], "<i>B</i> <b>A</b>"),
        ("<b>a</b> <i>b</i>", "A1 B A2", [(0, 0), (0, 2), (1, 1)], "<b>A1</b> <i>B</i> A2"),
        ("one<br/>two", "eins zwei", [(0, 0), (1, 1)], "eins<br/>zwei"),
        ("one <br/> two", "eins zwei", [(0, 0), (1, 1)], "eins <br/> zwei"),
        ("one<br> two", "zwei drei eins", [(0, 2), (1, 0)], "zwei drei eins<br>"),
        ("see <x/>this", "das hier sieh", [(0, 2), (1, 0)], "<x/>das hier sieh"),
        ("H<sub>2</sub>O boils", "Es kocht H2O", [(0, 2), (1, 1)], "Es kocht H<sub>2</sub>O"),
        ("H<sub>2</sub>O boils", "Es kocht Wasser", [(0, 2), (1, 1)], "Es kocht <sub>Wasser</sub>"),
        ("click <b> here </b> now", "jetzt hier klicken", [(0, 2), (1, 1), (2, 0)], "jetzt <b> hier </b> klicken"),
        ("a <b></b> b", "A B", [(0, 0), (1, 1)], "A <b></b> B"),
        ("</b> a <b>", "A", [(0, 0)], "</b> A <b>"),
        ("<0>a</0> and <1>b</1>", "B und A", [(0, 2), (1, 1), (2, 0)], "<1>B</1> und <0>A</0>"),
        ("<b>a</b>", "", [], "<b></b>"),
        ("no tags", "keine", [(0, 0)], "keine"),
    ],
)
def test_tags_go_with_their_words(text: str, translation: str, pairs: list[tuple[int, int]], expected: str) -> None:
    tagged = take_tags(text)
    assert put_tags(translation, tagged, by_words(tagged.plain, translation, pairs)) == expected


@pytest.mark.parametrize(
    ("text", "translations", "pairs", "expected"),
    [
        ("<b>The old.</b> It is.", ["La vieille.", "Elle est."], [(1, 1)], "<b>La vieille.</b> Elle est."),
        ("<p>The old. It is.</p>\nNo.", ["La vieille.", "Elle est.", "Non."], [], "<p>La vieille. Elle est.</p>\nNon."),
        (
            "It <i>is. It was.</i> No.",
            ["Elle est.", "Elle était.", "Non."],
            [(1, 1)],
            "Elle <i>est. Elle était.</i> Non.",
        ),
        ("<b>The old</b> house.", ["La vieille maison."], [(1, 1), (2, 2)], "<b>La vieille</b> maison."),
        ("<b>The old</b> house.", ["La maison vieille."], [(1, 2), (2, 1)], "La maison <b>vieille.</b>"),
        ("It is <b>the house</b>", ["C'est la maison-ci"], [(3, 2)], "C'est la <b>maison-ci</b>"),
        ("No.<br/>The old.", ["Non.", "La vieille."], [(0, 0), (2, 2)], "Non.<br/>La vieille."),
    ],
)
def test_what_is_around_a_sentence_is_around_its_translation(
    text: str, translations: list[str], pairs: list[tuple[int, int]], expected: str
) -> None:
    tagged = take_tags(text)
    pieces = split(tagged.plain, "en")
    translation = pieces.join(translations)
    sentences = [*zip(pieces.spans(pieces.sentences), pieces.spans(translations), strict=True)]
    alignment = by_words(tagged.plain, translation, pairs)
    assert put_tags(translation, tagged, alignment, sentences=sentences) == expected


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a <b>b</b> c", "a b c"),
        ("a <b> b </b> c", "a b c"),
        ("<b> a </b>", "a"),
        ("a<br>b", "a b"),
        ("a</li><li>b", "a b"),
        ("a<sub>b</sub>", "ab"),
        ("<p>\na\n</p>\n", "\na\n\n"),
        ("a <br/>\nb", "a\nb"),
        ("x < y", "x < y"),
    ],
)
def test_plain_text_reads_as_if_there_had_been_no_tags(text: str, plain: str) -> None:
    assert take_tags(text).plain == plain


@given(st.one_of(NESTED, BROKEN))
@example("a<p><b>\n")
def test_a_translation_that_changes_nothing_gives_the_text_back(text: str) -> None:
    tagged = take_tags(text)
    assert put_tags(tagged.plain, tagged, [(word, word) for word in words(tagged.plain)]) == text


@given(st.one_of(NESTED, BROKEN).map(numbered), TRANSLATIONS, ALIGNMENTS, SENTENCES)
@settings(max_examples=300)
def test_every_tag_comes_out_once_and_no_word_is_touched(
    text: str, translation: str, alignment: list[tuple[Span, Span]], sentences: list[tuple[Span, Span]]
) -> None:
    tagged = take_tags(text)
    result = put_tags(translation, tagged, alignment, sentences=sentences)
    taken = [tag.text.strip() for tag in tagged.tags]
    assert sorted(TAG.findall(result)) == sorted(taken + TAG.findall(translation))
    assert "".join(TAG.sub("", result).split()) == "".join(translation.split())


@given(
    st.one_of(NESTED, BROKEN).map(numbered), TRANSLATIONS.filter(lambda text: "<" not in text), ALIGNMENTS, SENTENCES
)
@settings(max_examples=300)
def test_what_was_inside_what_stays_so(
    text: str, translation: str, alignment: list[tuple[Span, Span]], sentences: list[tuple[Span, Span]]
) -> None:
    tagged = take_tags(text)
    assert families(put_tags(translation, tagged, alignment, sentences=sentences)) == families(text)


@given(NESTED, TRANSLATIONS, st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9))))
@example("a <b>b</b>", "x yz", [(0, 1), (-1, 0), (2, 0), (1, 2), (0, -1), (1, 0)])
def test_numbers_of_words_that_do_not_exist_are_passed_over(
    text: str, translation: str, pairs: list[tuple[int, int]]
) -> None:
    tagged = take_tags(text)
    sides = tagged.plain.split(), translation.split()
    existing = [pair for pair in pairs if all(0 <= word < len(side) for word, side in zip(pair, sides, strict=True))]
    alignment = by_words(tagged.plain, translation, pairs)
    assert alignment == by_words(tagged.plain, translation, existing)
    aligned = [(tagged.plain[one.start : one.end], translation[other.start : other.end]) for one, other in alignment]
    assert aligned == [(sides[0][one], sides[1][other]) for one, other in existing]


@pytest.mark.parametrize(
    "part", ["<b>", "</b>", "<b>a</b> ", "<i/>", "<b>a ", "a</b> ", "<a", " <br> ", "a<br>", "<b></i>"]
)
def test_time_is_linear_whatever_the_tags(part: str) -> None:
    text = part * 5_000
    started = time.process_time()
    tagged = take_tags(text)
    spans = words(tagged.plain)
    assert put_tags(tagged.plain, tagged, [(span, span) for span in spans]) == text
    put_tags("x " * 5_000, tagged, [])
    assert time.process_time() - started < 30


def test_entities_of_html_are_read_as_characters_and_written_as_entities() -> None:
    tagged = take_html_tags("Fish &amp; <b>&lt;script&gt;</b> caf&eacute;")
    assert tagged.plain == "Fish & <script> café"
    assert [(tag.text, tag.position) for tag in tagged.tags] == [("<b>", 7), ("</b>", 15)]
    same = [(span, span) for span in words(tagged.plain)]
    assert put_tags(tagged.plain, tagged, same, write=write_html) == "Fish &amp; <b>&lt;script&gt;</b> café"
    assert put_tags("a < b", take_html_tags("x"), [], write=write_html) == "a &lt; b"


def test_an_element_that_is_taken_whole_is_one_tag() -> None:
    tagged = take_tags('Keep <x id="1">no <b>words</b></x> of <x/> it.', whole=["X"])
    assert tagged.plain == "Keep of it."
    assert [tag.text.strip() for tag in tagged.tags] == ['<x id="1">no <b>words</b></x>', "<x/>"]
    assert [tag.partner for tag in tagged.tags] == [None, None]
    assert take_html_tags("a<script>b < c</script>d").plain == "ad"


def test_tags_that_end_a_sentence_tell_where() -> None:
    tagged = take_html_tags("<p>One &amp; <b>two</b></p><P>three</P>", ending=["p"])
    assert (tagged.plain, tagged.breaks) == ("One & two three", [0, 9, 10, 15])
    assert take_tags("a<par>b", ending=["par"]).plain == "a b"
    assert take_tags("a<par>b").plain == "ab"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('Say <b translate="no">good <b>old</b> day</b> now', "Say now"),
        ("Say <b translate=no>good day</b> now", "Say now"),
        ("Say <b class='red notranslate big'>good day</b> now", "Say now"),
        ("Say <b class=notranslate>good day</b> now", "Say now"),
        ('Say <b class="notranslated" translate="yes">good day</b> now', "Say good day now"),
        ("Say <br class=notranslate>good day", "Say good day"),
        ("Use <code>x = <code>y</code></code> now", "Use now"),
        ("Use <codes>this</codes> now", "Use this now"),
        ("a <script>'<script>'</script> b", "a b"),
        ("<pre>Dear friends</pre>", "Dear friends"),
    ],
)
def test_what_is_not_to_be_translated_is_taken_whole(text: str, plain: str) -> None:
    tagged = take_html_tags(text)
    assert " ".join(tagged.plain.split()) == plain
    assert put_tags(tagged.plain, tagged, []) == text


def test_a_single_tag_is_parted_from_the_word_before_it_and_not_from_a_comma() -> None:
    tagged = take_tags('Press <x id="1"/> to see')
    translation = "Drückt, um zu sehen"
    alignment = [(Span(0, 5), Span(0, 6)), (Span(6, 8), Span(6, 10)), (Span(9, 12), Span(14, 19))]
    assert put_tags(translation, tagged, alignment) == 'Drückt <x id="1"/>, um zu sehen'


def test_elements_of_many_names_that_never_end_take_no_time() -> None:
    text = "".join(f"<a{number} translate=no>" for number in range(20_000))
    begun = time.process_time()
    assert take_html_tags(text).plain == ""
    assert time.process_time() - begun < 10


def test_elements_that_never_end_take_no_time() -> None:
    begun = time.process_time()
    assert take_tags("<x>" * 100_000, whole=["x"]).plain == ""
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("kept", ["{name}", "%(user)s", "https://a.org/b?c=d", "you@example.org", "{{a.b}}", "__x__"])
def test_no_tag_comes_to_stand_inside_a_placeholder_or_an_address(kept: str) -> None:
    tagged = take_tags(f"a <b>b</b> c {kept} d")
    translation = f"x {kept} y"
    length = len(translation)
    for start in range(length):
        for end in range(start + 1, length + 1):
            placed = put_tags(translation, tagged, [(Span(2, 3), Span(start, end))])
            assert kept in placed
            assert placed.replace("<b>", "").replace("</b>", "") == translation


def placed(text: str, translation: str, pairs: list[tuple[int, int]]) -> str:
    """The tags of a text in its translation, by pairs of numbers of words and signs."""
    tagged = take_tags(text)
    sides = words(tagged.plain), words(translation)
    return put_tags(translation, tagged, [(sides[0][one], sides[1][other]) for one, other in pairs])


@pytest.mark.parametrize(
    ("text", "translation", "pairs", "expected"),
    [
        (
            "the <b>help</b> button.",
            "die Hilfeschaltfläche.",
            [(0, 0), (2, 1), (3, 2)],
            "die <b>Hilfeschaltfläche</b>.",
        ),
        ("The <b>train</b> station", "La gare", [(0, 0), (2, 1)], "La <b>gare</b>"),
        (
            "assurance <b>maladie</b> paie",
            "Krankenversicherung zahlt",
            [(0, 0), (2, 1)],
            "<b>Krankenversicherung</b> zahlt",
        ),
        ("I <b>see</b>, he said", "Ich, sagte er", [(0, 0), (2, 1), (3, 3), (4, 2)], "<b>Ich</b>, sagte er"),
        (
            "the <i>climate</i> change <b>conference</b>",
            "die Klimakonferenz",
            [(0, 0), (3, 1)],
            "<i>die</i> <b>Klimakonferenz</b>",
        ),
        ("the <b>red</b> house", "das rote Haus", [(0, 0), (2, 2)], "das <b>rote</b> Haus"),
    ],
)
def test_a_pair_whose_words_became_nothing_goes_around_what_a_neighbour_became(
    text: str, translation: str, pairs: list[tuple[int, int]], expected: str
) -> None:
    assert placed(text, translation, pairs) == expected


@pytest.mark.parametrize(
    ("text", "translation", "pairs", "expected"),
    [
        (
            "Install <x/> first, then",
            "Installez d'abord, puis",
            [(0, 0), (1, 3), (2, 4)],
            "Installez <x/> d'abord, puis",
        ),
        ("is larger than <x/>, stop", "größer ist, halt", [(0, 1), (1, 0), (3, 2), (4, 3)], "größer ist <x/>, halt"),
        ("is larger than <x/>?", "größer ist?", [(0, 1), (1, 0), (3, 2)], "größer ist <x/>?"),
        ("The <x/> folder", "Der Netz-Ordner", [(0, 0), (1, 3)], "Der <x/> Netz-Ordner"),
        ("(<x/> is red)", "(rot ist)", [(0, 0), (1, 2), (2, 1), (3, 3)], "(<x/> rot ist)"),
        ("<x/> is red", "rot ist", [(0, 1), (1, 0)], "<x/> rot ist"),
        ("red is <x/>", "rot ist", [(0, 1), (1, 0)], "rot ist <x/>"),
        ("a note<x/> of mine", "meine Notiz, ja", [(1, 1), (3, 0)], "meine Notiz<x/>, ja"),
        ("d<x/>'abord oui", "d'abord ja", [(0, 0), (1, 1), (2, 2), (3, 3)], "d<x/>'abord ja"),
    ],
)
def test_a_single_tag_stands_between_words_unless_it_stood_inside_one(
    text: str, translation: str, pairs: list[tuple[int, int]], expected: str
) -> None:
    assert placed(text, translation, pairs) == expected


@pytest.mark.parametrize(
    ("text", "translation", "pairs", "expected"),
    [
        ("the <i>user</i> here", "l'utilisateur ici", [(0, 0), (1, 1), (1, 2)], "l'<i>utilisateur</i> ici"),
        ("<i>the</i> user", "l'utilisateur", [(0, 0), (1, 2)], "<i>l'</i>utilisateur"),
        ("le mot de <i>Anne</i>", "Anne's word", [(1, 3), (3, 0)], "<i>Anne</i>'s word"),
        ("je <i>ne</i> peux", "I can't", [(0, 0), (1, 3)], "I <i>can't</i>"),
        ("<i>L</i>'Oréal", "L'Oréal", [(0, 0), (1, 1), (2, 2)], "<i>L</i>'Oréal"),
    ],
)
def test_no_pair_parts_an_apostrophe_from_what_it_belongs_to(
    text: str, translation: str, pairs: list[tuple[int, int]], expected: str
) -> None:
    assert placed(text, translation, pairs) == expected


@given(TRANSLATIONS.filter(lambda text: "<" not in text), ALIGNMENTS, SENTENCES)
@example("l'a-b'c", [], [])
def test_a_tag_that_stood_between_words_does_so_in_every_translation(
    translation: str, alignment: list[tuple[Span, Span]], sentences: list[tuple[Span, Span]]
) -> None:
    tagged = take_tags("one <x/> two, three <x/> four")
    result = put_tags(translation, tagged, alignment, sentences=sentences)
    assert not re.search(r"\w<x/>|<x/>\w|><", result)
