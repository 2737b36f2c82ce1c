"""What is kept: found where a reader would, whole, and quickly in any text."""

from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import ConfigError
from qkv.text.protect import KINDS, SIGNS, find
from qkv.text.words import Terms

ODD = st.text(alphabet="<>/&;{}%$_`@.:\\'\"!-?#()~1a0sbA \n\u00e9")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {name}, {0} {} {x!r} {n:,.2f}", ["{name}", "{0}", "{}", "{x!r}", "{n:,.2f}"]),
        ("{{ user.name }} and {{x}}", ["{{ user.name }}", "{{x}}"]),
        ("%s of %d, %(count)d %1$s %5.2f %ld %@ %%", ["%s", "%d", "%(count)d", "%1$s", "%5.2f", "%ld", "%@", "%%"]),
        ("50% of it, 50 % des", []),
        ("100%discount", []),
        ("${HOME} costs $5", ["${HOME}"]),
        ("<0>bold</0> <1/>", ["<0>", "</0>", "<1/>"]),
        ("__NAME__ and __FIRST_NAME__ but __init", ["__NAME__", "__FIRST_NAME__"]),
        ('<a href="x>y">b</a><br/>', ['<a href="x>y">', "</a>", "<br/>"]),
        ("x < y and y > z, 1<2 but 3>2", []),
        (
            "a <!-- note - it --> b <!DOCTYPE html> <?xml version='1'?>",
            ["<!-- note - it -->", "<!DOCTYPE html>", "<?xml version='1'?>"],
        ),
        ("R&amp;D &#228; &#xE4; AT&T; Q&A", ["&amp;", "&#228;", "&#xE4;"]),
        ("See https://a.org/b?c=d#e.", ["https://a.org/b?c=d#e"]),
        ("(see http://a.org/b_(c)), www.b.de!", ["http://a.org/b_(c)", "www.b.de"]),
        ("请看https://a.org。谢谢", ["https://a.org"]),
        ("邮件a@b.com吧", ["a@b.com"]),
        ("Mail a.b+c@d-e.co.uk. Or not@home", ["a.b+c@d-e.co.uk"]),
        ("in /usr/lib/x.so. Or ~/x, ./y/z and ../a", ["/usr/lib/x.so", "~/x", "./y/z", "../a"]),
        ("see src/main.py, and/or, km/h, 1/2", ["src/main.py"]),
        (r"C:\Temp\a.txt and \\server\share$", [r"C:\Temp\a.txt", r"\\server\share$"]),
        ("run `rm -rf {x}` or ``a b``", ["`rm -rf {x}`", "``a b``"]),
        ("it`s a lone ` tick\n`", ["`s a lone `"]),
    ],
)
def test_what_is_no_language_is_found(text: str, expected: list[str]) -> None:
    kept = find(text)
    assert [one.text for one in kept] == expected
    assert all(text[one.span.start : one.span.end] == one.text for one in kept)


def test_numbers_are_kept_only_where_asked_for() -> None:
    text = "In 1999, 3.5 of 1,000.50 and -7; not 3rd or x86"
    assert find(text) == []
    assert [one.text for one in find(text, kinds=["number"])] == ["1999", "3.5", "1,000.50", "-7"]


def test_terms_are_kept_but_inside_other_things() -> None:
    text = "Acme at https://acme.org/Acme/ and <b title='Acme'>acme</b>"
    kept = find(text, terms=Terms(["acme"]))
    assert [(one.kind, one.text) for one in kept] == [
        ("term", "Acme"),
        ("url", "https://acme.org/Acme/"),
        ("tag", "<b title='Acme'>"),
        ("term", "acme"),
        ("tag", "</b>"),
    ]
    assert [one.text for one in find(text, kinds=[], terms=Terms(["acme"]))] == ["Acme", "acme", "Acme", "Acme", "acme"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="called 'colour'; there is: code, tag"):
        find("", kinds=["colour"])


@given(st.one_of(st.text(), ODD), st.sets(st.sampled_from([*KINDS])), st.lists(st.sampled_from(["a", "1", "b a"])))
def test_spans_are_in_order_and_apart(text: str, kinds: set[str], terms: list[str]) -> None:
    kept = find(text, kinds=kinds, terms=Terms(terms))
    assert all(one.text and text[one.span.start : one.span.end] == one.text for one in kept)
    assert all(one.span.end <= other.span.start for one, other in itertools.pairwise(kept))


@pytest.mark.parametrize(
    "hostile",
    [
        *'<{%$_`@./&-("a1 \\',
        *[
            "<a",
            "<!--",
            "<!-- -",
            '<a "',
            "<a '",
            "<?",
            "</",
            "{{",
            "${",
            "%(",
            "%0",
            "%d",
            "&a",
            "&#",
            "__",
            "__a",
            "_a",
        ],
        *["a@", "a@b.", "a.", "http://", "http://a)", "www.", "/a", "a/", "./", "C:\\", "\\\\a", "1,", ",1", "`a\n"],
    ],
)
def test_time_is_linear_whatever_the_text(hostile: str) -> None:
    text = hostile * (300_000 // len(hostile))
    started = time.process_time()
    find(text, kinds=[*KINDS])
    assert time.process_time() - started < 30


@pytest.mark.parametrize("group", ["1'", "1’", "1\u00a0", "1\u202f", "1,"])
def test_a_long_number_that_is_none_takes_no_longer_than_others(group: str) -> None:
    started = time.process_time()
    assert not find(f"{group * 40_000}1x", kinds=["number"])
    assert time.process_time() - started < 3


@given(ODD)
def test_what_is_found_is_found_by_itself_too(text: str) -> None:
    kept = [one.text for one in find(text, kinds=KINDS)]
    assert [[one.text for one in find(alone, kinds=KINDS)] for alone in kept] == [[alone] for alone in kept]
    assert [one.text for one in find(" ".join(kept), kinds=KINDS)] == kept


@given(ODD)
def test_what_is_found_has_the_signs_of_its_kind(text: str) -> None:
    assert all(re.search(SIGNS[one.kind], one.text) for one in find(text, kinds=KINDS))
