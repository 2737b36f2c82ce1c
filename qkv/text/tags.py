"""Inline tags are taken out before translating: `take_tags("The <b>red</b> house").plain` is "The red house"."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from qkv.text.protect import TAG
from qkv.text.words import LINE_BREAKS


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


_TAG = re.compile(TAG)
_NAME = re.compile(r"</?([A-Za-z0-9][^\s/>]*)")
_LINE_BREAK = re.compile(f"[{LINE_BREAKS}]")
# These part the words that they stand between; others, such as those of H<sub>2</sub>O, do not.
_PARTING = re.compile(r"br|p|div|[uod]l|li|d[td]|t[dhr]|table|hr|h[1-6]|option|section|article")
LEFT_ALONE = names("script style code pre kbd samp var tt svg math textarea xmp iframe noembed noframes")
"""Elements of HTML whose content is no language."""
# What is preformatted may be a letter as well as a program; in that case it mostly says that it is code.
_NO_TEXT = LEFT_ALONE - {"pre"}
_RAW = names("script style")
"""Elements whose content ends with the first tag that looks like their end."""
_NOT_TO_BE_TRANSLATED = re.compile(
    r"""\s(?:translate\s*+=\s*+(["']?)no\1|class\s*+=\s*+(?:"[^"]*?|'[^']*?)?(?<![\w-])notranslate(?![\w-])[^>]*+)(?=[\s/>])""",
    re.IGNORECASE,
)
BLOCKS = names(
    "address article aside audio base blockquote body button canvas caption center col colgroup datalist dd details "
    "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup "
    "hr html iframe legend li link main map menu meta nav noframes noscript object ol optgroup option p param pre "
    "script search section select source style summary table tbody td template textarea tfoot th thead title tr "
    "track ul video"
)
"""Elements of HTML that stand in no sentence; all others, unknown ones too, may stand inside one."""

_MOST_UNCLOSED = 32
"""Names of elements without an end: in a text that has more, no other is looked for."""
_OUTSIDE = " "
"""What is outside the text is as good as white space."""


class Tag(NamedTuple):
    """A tag with the white space that went with it, and where it stood in the plain text."""

    text: str
    position: int
    partner: int | None
    """The number of the tag that closes this one or that it closes."""
    stands_for_space: bool
    """Whether the plain text has a space only because this tag parted two words."""
    ends_sentence: bool
    """Whether what is before it and what is behind it are in no sentence together."""


class Tagged(NamedTuple):
    """A text without its tags, and the tags."""

    plain: str
    tags: tuple[Tag, ...]

    @property
    def breaks(self) -> list[int]:
        """The places in the plain text at which tags end a sentence."""
        return [tag.position for tag in self.tags if tag.ends_sentence]


def take_tags(text: str, *, whole: Collection[str] = (), ending: Collection[str] = ()) -> Tagged:
    """The text without its tags; of white space on both sides of one, that on one side goes with it.

    Elements with one of the names in `whole`, or that say they are not to be translated, are like a single tag, with
    all that is in them. Those with one of the names in `ending` end the sentence that is before them, and so do their
    ends.
    """
    found, between = _found(text, {name.lower() for name in whole})
    ends = {name.lower() for name in ending}
    partners = _partners(found)
    tags: list[Tag] = []
    position = 0
    before, behind = _OUTSIDE, _characters_behind(between)
    for number, tag in enumerate(found):
        left, right = between[number], between[number + 1]
        is_parted = (left or before)[-1].isspace()
        trail = lead = ""
        if is_parted and (right or behind[number])[0].isspace():
            trail, lead = left[len(left.rstrip()) :], right[: len(right) - len(right.lstrip())]
            trail, lead = _taken_along(tag, trail, lead)
        name = _name(tag)
        is_parting = name in ends or _PARTING.fullmatch(name) is not None
        stands_for_space = is_parting and not is_parted and not behind[number].isspace()
        between[number] = left[: len(left) - len(trail)]
        between[number + 1] = " " * stands_for_space + right[len(lead) :]
        position += len(between[number])
        before = (before + between[number])[-1]
        tags.append(Tag(trail + tag + lead, position, partners[number], stands_for_space, name in ends))
    return Tagged("".join(between), tuple(tags))


def take_html_tags(text: str, *, whole: Collection[str] = (), ending: Collection[str] = ()) -> Tagged:
    """The same of HTML: between tags, the plain text has the characters that entities stand for."""
    taken = take_tags(text, whole={*whole, *_NO_TEXT}, ending=ending)
    plain = ""
    tags = []
    position = 0
    for tag in taken.tags:
        plain += html.unescape(taken.plain[position : tag.position])
        position = tag.position
        tags.append(tag._replace(position=len(plain)))
    return Tagged(plain + html.unescape(taken.plain[position:]), tuple(tags))


def write_html(text: str) -> str:
    """Text as it stands between the tags of HTML: what could be read as a tag or an entity is written as one."""
    return html.escape(text, quote=False)


def _found(text: str, whole: Collection[str]) -> tuple[list[str], list[str]]:
    """The tags, and what stands before, between and after them."""
    found: list[str] = []
    between: list[str] = []
    position = 0
    unclosed: set[str] = set()
    for match in _TAG.finditer(text):
        start, end = match.span()
        if start < position:
            continue
        name = _name(match[0])
        if name not in unclosed and _opens(match[0]) and (name in whole or _says_no(match[0])):
            closed = _end(text, name, end) if len(unclosed) < _MOST_UNCLOSED else None
            if closed is None:
                # Nobody looks for it again: a text full of such tags would take for ever.
                unclosed.add(name)
            else:
                end = closed
        between.append(text[position:start])
        found.append(text[start:end])
        position = end
    return found, [*between, text[position:]]


def _end(text: str, name: str, position: int) -> int | None:
    """Where an element ends that began before this position, with those of the same name that are in it."""
    depth = 1
    for tag in re.compile(rf"<(/?){re.escape(name)}(?=[\s/>])[^<>]*+>", re.IGNORECASE).finditer(text, position):
        if tag[1]:
            depth -= 1
        elif name not in _RAW and _opens(tag[0]):
            depth += 1
        if not depth:
            return tag.end()
    return None


def _says_no(tag: str) -> bool:
    return "translate" in tag.lower() and _NOT_TO_BE_TRANSLATED.search(tag) is not None


def _opens(tag: str) -> bool:
    return not tag.startswith("</") and not tag.endswith("/>")


def _characters_behind(parts: Sequence[str]) -> list[str]:
    """For each tag between the parts, the next character that is no tag."""
    result = [_OUTSIDE]
    for part in reversed(parts[1:]):
        result.append(part[:1] or result[-1])
    return result[:0:-1]


def _taken_along(tag: str, trail: str, lead: str) -> tuple[str, str]:
    """Which white space before and behind a tag goes with it: never a line break, for it ends a sentence."""
    may_trail, may_lead = (bool(space) and _LINE_BREAK.search(space) is None for space in (trail, lead))
    if may_trail and (tag.startswith("</") or not may_lead):
        return trail, ""
    return "", lead if may_lead else ""


def _name(tag: str) -> str:
    match = _NAME.match(tag)
    return match[1].lower() if match else ""


def _partners(tags: Sequence[str]) -> list[int | None]:
    """For each tag the number of its partner; an opening tag that is still open where its parent closes has none."""
    partners: list[int | None] = [None] * len(tags)
    names = [_name(tag) for tag in tags]
    open_tags: list[int] = []
    waiting: Counter[str] = Counter()
    for number, (tag, name) in enumerate(zip(tags, names, strict=True)):
        if not _may_have_partner(tag):
            continue
        if not tag.startswith("</"):
            open_tags.append(number)
            waiting[name] += 1
        elif waiting[name]:
            while names[opened := open_tags.pop()] != name:
                waiting[names[opened]] -= 1
            waiting[name] -= 1
            partners[opened], partners[number] = number, opened
    return partners


def is_stray(tag: Tag) -> bool:
    """Whether a tag should have a partner and has none."""
    return tag.partner is None and _may_have_partner(tag.text.strip())


def _may_have_partner(tag: str) -> bool:
    # An element that was taken whole has its end in it.
    return bool(_name(tag)) and not tag.endswith("/>") and "</" not in tag[1:]
