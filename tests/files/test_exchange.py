"""XLIFF and TMX: targets are added, codes stay, and what was there is still there."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import TextError
from qkv.files import translate_file
from tests.files.effort import LINEAR, growth
from tests.files.translations import loud, same, shuffled

OLD = '<?xml version="1.0"?>\n<xliff version="1.2"><file source-language="en"{}><body>{}</body></file></xliff>\n'
NEW = '<xliff version="2.0" srcLang="en"{}><file id="f"><unit id="u">{}</unit></file></xliff>'
STATED = '<target state="translated" state-qualifier="leveraged-mt">'


def in_capitals(text: str, name: str, *, target: str | None = None, again: bool = False) -> str:
    made = translate_file(text.encode(), name, loud, target=target, again=again).decode()
    ElementTree.fromstring(made)
    return made


@pytest.mark.parametrize(
    ("unit", "translation"),
    [
        (
            '<trans-unit id="1">\n  <source>a &amp; b</source>\n</trans-unit>',
            f'<trans-unit id="1">\n  <source>a &amp; b</source>\n  {STATED}A &amp; B</target>\n</trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a <g id="1">b</g> <x id="2"/>c</source>'
            "<target></target><note>d</note></trans-unit>",
            '<trans-unit id="1"><source>a <g id="1">b</g> <x id="2"/>c</source>'
            f'{STATED}A <g id="1">B</g> <x id="2"/>C</target><note>d</note></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a</source><target>kept</target></trans-unit>',
            '<trans-unit id="1"><source>a</source><target>kept</target></trans-unit>',
        ),
        (
            '<trans-unit id="1" translate="no"><source>a</source></trans-unit>',
            '<trans-unit id="1" translate="no"><source>a</source></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a <ph id="1">&lt;br&gt;</ph> b</source></trans-unit>',
            '<trans-unit id="1"><source>a <ph id="1">&lt;br&gt;</ph> b</source>'
            f'{STATED}A <ph id="1">&lt;br&gt;</ph> B</target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a</source><!-- b --> <?c?><target>kept</target></trans-unit>',
            '<trans-unit id="1"><source>a</source><!-- b --> <?c?><target>kept</target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a</source><!-- b --><target/><note>d</note></trans-unit>',
            f'<trans-unit id="1"><source>a</source><!-- b -->{STATED}A</target><note>d</note></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a</source><note>d</note><target>kept</target></trans-unit>',
            '<trans-unit id="1"><source>a</source><note>d</note><target>kept</target></trans-unit>',
        ),
        (
            '<trans-unit id="1">\n <source>a</source>\n <!-- b -->\n <seg-source>a</seg-source>\n</trans-unit>',
            '<trans-unit id="1">\n <source>a</source>\n <!-- b -->\n <seg-source>a</seg-source>'
            f"\n {STATED}A</target>\n</trans-unit>",
        ),
        (
            '<trans-unit id="1"><source>a</source><alt-trans><target>b</target></alt-trans></trans-unit>',
            f'<trans-unit id="1"><source>a</source>{STATED}A</target>'
            "<alt-trans><target>b</target></alt-trans></trans-unit>",
        ),
    ],
)
def test_xliff_1_gets_targets(unit: str, translation: str) -> None:
    made = in_capitals(OLD.format("", unit), "a.xlf", target="fr")
    assert made == OLD.format(' target-language="fr"', translation)


@pytest.mark.parametrize(
    ("unit", "translation"),
    [
        (
            '<segment state="initial"><source>a <pc id="1">b</pc> c</source></segment>',
            '<segment state="translated"><source>a <pc id="1">b</pc> c</source>'
            '<target>A <pc id="1">B</pc> C</target></segment>',
        ),
        (
            "<segment><source>a</source><target>kept</target></segment>",
            "<segment><source>a</source><target>kept</target></segment>",
        ),
        (
            '<segment><source>a <mrk id="1" translate="no">b</mrk> c</source><target/></segment>',
            '<segment state="translated"><source>a <mrk id="1" translate="no">b</mrk> c</source>'
            '<target>A <mrk id="1" translate="no">b</mrk> C</target></segment>',
        ),
        ("<ignorable><source> </source></ignorable>", "<ignorable><source> </source></ignorable>"),
    ],
)
def test_xliff_2_gets_targets_and_states(unit: str, translation: str) -> None:
    assert in_capitals(NEW.format("", unit), "a.xliff", target="fr") == NEW.format(' trgLang="fr"', translation)


def test_targets_are_translated_again_where_that_is_wanted() -> None:
    unit = "<segment><source>a</source><target>old</target></segment>"
    assert "<target>A</target>" in in_capitals(NEW.format("", unit), "a.xliff", again=True)


TMX = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>'


@pytest.mark.parametrize(
    ("unit", "translation"),
    [
        (
            '<tu>\n <tuv xml:lang="en"><seg>a <bpt i="1">{</bpt>b<ept i="1">}</ept> c</seg></tuv>\n</tu>',
            '<tu>\n <tuv xml:lang="en"><seg>a <bpt i="1">{</bpt>b<ept i="1">}</ept> c</seg></tuv>\n '
            '<tuv xml:lang="fr"><seg>A <bpt i="1">{</bpt>B<ept i="1">}</ept> C</seg></tuv>\n</tu>',
        ),
        (
            '<tu><tuv xml:lang="en-US"><seg>a</seg></tuv><tuv xml:lang="fr-FR"><seg>b</seg></tuv></tu>',
            '<tu><tuv xml:lang="en-US"><seg>a</seg></tuv><tuv xml:lang="fr-FR"><seg>b</seg></tuv></tu>',
        ),
        ("<tu></tu>", "<tu></tu>"),
        (
            '<tu> <tuv xml:lang="en"><seg>a</seg></tuv> <tuv xml:lang="en"><seg>a</seg></tuv></tu>',
            '<tu> <tuv xml:lang="en"><seg>a</seg></tuv> <tuv xml:lang="en"><seg>a</seg></tuv> '
            '<tuv xml:lang="fr"><seg>A</seg></tuv></tu>',
        ),
    ],
)
def test_a_memory_gets_one_more_language(unit: str, translation: str) -> None:
    assert in_capitals(TMX.format(unit), "a.tmx", target="fr") == TMX.format(translation)


def test_a_variant_is_made_anew_where_that_is_wanted() -> None:
    unit = '<tu><tuv xml:lang="fr"><prop>p</prop><seg>old</seg></tuv><tuv xml:lang="en"><seg>a</seg></tuv></tu>'
    made = in_capitals(TMX.format(unit), "a.tmx", target="fr", again=True)
    assert made == TMX.format(unit.replace("old", "A"))


def test_a_variant_without_text_is_made_anew_where_it_has_a_place_for_it() -> None:
    unit = '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="fr">{}</tuv></tu>'
    for old, new in (("<seg/>", "<seg>A</seg>"), ("<seg></seg>", "<seg>A</seg>"), ("<note>n</note>", "<note>n</note>")):
        made = in_capitals(TMX.format(unit.format(old)), "a.tmx", target="fr", again=True)
        assert made == TMX.format(unit.format(new))


@pytest.mark.parametrize(
    ("name", "form", "size"),
    [
        ("a.tmx", TMX.format('<tu>{}<tuv xml:lang="en"><seg>a</seg></tuv></tu>'), 1_000),
        ("a.xlf", OLD.format("", "<trans-unit>{}<source>a</source></trans-unit>"), 200),
        ("a.xlf", OLD.format("", "<trans-unit><source>a</source>{}<target/></trans-unit>"), 200),
        ("a.xlf", NEW.format("", "<segment><source>a{}</source></segment>"), 200),
    ],
)
def test_time_grows_with_the_number_of_elements(name: str, form: str, size: int) -> None:
    # Long ones: what is copied again and again shows sooner.
    element = f"<prop>{'p' * 2_000}</prop>"
    assert growth(lambda count: form.replace("{}", element * count).encode(), name, size) < LINEAR


INLINE = [
    *('<g id="1">two words</g>', '<x id="2"/>', '<ph id="3">code</ph>', '<bx id="4"/>', '<ex id="4"/>', "plain words "),
    *('<mrk mtype="protected">Name</mrk>', "&amp;", "&lt;", "<!-- c -->", '<bpt id="5">c</bpt>', '<ept id="5">c</ept>'),
    *('<g id="6"><g id="7">deep</g></g>', " ", "<![CDATA[<raw>]]>", "\n", "&#233;"),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(INLINE), max_size=8).map("".join), st.integers(0, 99))
def test_codes_are_never_lost_and_never_invented(source: str, seed: int) -> None:
    text = OLD.format("", f"<trans-unit><source>{source}</source><target/></trans-unit>")
    made = translate_file(text.encode(), "a.xlf", shuffled(seed)).decode()
    (target,) = ElementTree.fromstring(made).iter("target")
    if list(target) or target.text:
        inside = made[made.index("<target") : made.index("</target>")]
        tags = re.compile(r"</?(?:g|x|ph|bx|ex|mrk|bpt|ept)\b[^>]*>")
        assert Counter(tags.findall(inside)) == Counter(tags.findall(source))


@settings(deadline=None)
@given(st.lists(st.sampled_from(INLINE), max_size=8).map("".join))
def test_nothing_changes_where_all_is_translated(source: str) -> None:
    unit = f"<trans-unit><source>{source}</source><target>done</target></trans-unit>"
    text = OLD.format("", unit).encode()
    assert translate_file(text, "a.xlf", loud) == text


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.xlf", "<tmx/>", "it is no XLIFF"),
        ("a.tmx", "<xliff/>", "it is no TMX"),
        ("a.tmx", "<tmx><body/></tmx>", "say which one to translate to"),
        ("a.xlf", '<!DOCTYPE a [<!ENTITY b "c">]><xliff>&b;</xliff>', "it declares entities"),
        ("a.xlf", "<xliff>", "line 1 is not well-formed XML: no element found"),
        ("a.xlf", "<xliff>" + "<b/>" * 500_000 + "</xliff>", "it has more than 500,000 elements"),
        ("a.xlf", "<xliff>&nbsp;</xliff>", "undefined entity"),
    ],
)
def test_what_is_broken_is_refused(name: str, text: str, told: str) -> None:
    with pytest.raises(TextError, match=f"{re.escape(name)}.*{told}"):
        translate_file(text.encode(), name, same)
