"""Subtitles, SRT and WebVTT: times, settings and tags stay; a sentence over several cues is translated whole."""

from __future__ import annotations

import bisect
import html
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from qkv.files.encodings import decoded
from qkv.files.reading import Asked
from qkv.files.segments import Marking, Part, Piece, plain_segment, translated

_BLOCKS = re.compile(r"((?>\r\n|\r|\n)[ \t]*+(?>\r\n|\r|\n)\s*+)")
_TIMES = re.compile(r"(?:\A|(?<=[\r\n]))[^\r\n]*-->[^\r\n]*(?:\r\n|\r|\n|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")
# Tags of both formats, and the position of a cue as some players have it.
_TAG = re.compile(r"(<(/?)([A-Za-z]*+)[^<>]*+>|\{\\[^{}]*+\})")
# A tag at the beginning that is about the whole of a cue.
_AROUND = re.compile(r"<([A-Za-z]++)[^<>]*+>(?=[^<>]*+</\1>\Z)|\{\\[^{}]*+\}|<v[ .][^<>]*+>")
_SPACE = re.compile(r"\s*+")
_ENDS = tuple(".!?…。！？:♪")
_BRACKETS = ")]"
_CLOSERS = f"'\"”’»{_BRACKETS}"
_DIALOGUE = re.compile(r"\s*[-–—]\s?\S")
_MOST_CUES = 4
_GOOD_ENDS = tuple(".!?…,;:")
# A tag with spaces in it is not cut.
_WORD = re.compile(r"(?:<[^<>]{0,200}>|[^ ])++")
_NEAR = 8
"""Words that are looked at on either side of where a cut should be."""


class _Cue(NamedTuple):
    """A cue that is only text, with what stays before and behind it."""

    before: str
    text: str
    behind: str

    @property
    def lines(self) -> list[str]:
        return _LINE_END.split(self.text)


def translate_srt(data: bytes, asked: Asked) -> bytes:
    """SubRip: text is to the letter."""
    return _translated(data, asked, str, str)


def translate_vtt(data: bytes, asked: Asked) -> bytes:
    """WebVTT: text has entities as HTML has."""
    return _translated(data, asked, html.unescape, partial(html.escape, quote=False))


def _translated(data: bytes, asked: Asked, read: Callable[[str], str], write: Callable[[str], str]) -> bytes:
    source = decoded(data, asked.name)
    text = translated([*_parts(source.text, read, write)], asked.translate)
    return source.encoded(text, asked.name)


def _parts(text: str, read: Callable[[str], str], write: Callable[[str], str]) -> Iterator[Part]:
    waiting: list[_Cue] = []
    # Every second one is the blank lines between two cues.
    for place, block in enumerate(_BLOCKS.split(text)):
        times = _TIMES.search(block) if place % 2 == 0 else None
        if times is None:
            # A note, a style, or blank lines, of which those between two cues go with the first.
            if place % 2 and waiting:
                waiting[-1] = waiting[-1]._replace(behind=waiting[-1].behind + block)
            else:
                yield from _together(waiting, read, write)
                waiting = []
                yield block
            continue
        cue = _peeled(block[: times.end()], block[times.end() :])
        if waiting and not (_goes_on(waiting[-1], cue) and len(waiting) < _MOST_CUES):
            yield from _together(waiting, read, write)
            waiting = []
        waiting.append(cue)
    yield from _together(waiting, read, write)


def _peeled(before: str, text: str) -> _Cue:
    """A cue whose tags around the whole of it stay outside."""
    start, end = _trimmed(text, 0, len(text))
    while (match := _AROUND.match(text, start, end)) is not None:
        closing = f"</{match[1]}>" if match[1] else ""
        start, end = _trimmed(text, match.end(), end - len(closing))
    return _Cue(before + text[:start], text[start:end], text[end:])


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A part of a text without the white space around it; nothing is copied, for tags may be many."""
    space = _SPACE.match(text, start, end)
    start = space.end() if space else start
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _goes_on(cue: _Cue, following: _Cue) -> bool:
    """Whether a sentence goes on in the next cue."""
    marked = any(_TAG.search(one.text) or _DIALOGUE.match(one.text) for one in (cue, following))
    return not _is_ended(cue.text) and not marked and following.text[:1].islower()


def _is_ended(text: str) -> bool:
    """Whether there is nothing, or a sentence that ends, maybe within quotation marks or brackets."""
    bare = text.rstrip(_CLOSERS)
    return not text or bare.endswith(_ENDS) or any(one in _BRACKETS for one in text[len(bare) :])


def _together(cues: Sequence[_Cue], read: Callable[[str], str], write: Callable[[str], str]) -> Iterator[Part]:
    """The cues of one sentence as a segment."""
    if not cues:
        return
    if len(cues) > 1:
        raw = "".join(cue.before + cue.text + cue.behind for cue in cues)
        yield plain_segment(raw, read(" ".join(" ".join(cue.lines) for cue in cues)), partial(_spread, cues, write))
        return
    (cue,) = cues
    yield cue.before
    marking = Marking()
    # Two people who speak have a line each; one who speaks has lines only because they are short.
    dialogue = sum(_DIALOGUE.match(line) is not None for line in cue.lines) > 1
    for place, line in enumerate([cue.text] if not dialogue else re.split(r"(\r\n|\r|\n)", cue.text)):
        if dialogue and place % 2:
            yield from marking.parts(partial(_wrapped, cue, write, lines=1))
            yield line
            marking = Marking()
        else:
            _mark(marking, line, read)
    yield from marking.parts(partial(_wrapped, cue, write, lines=1 if dialogue else len(cue.lines)))
    yield cue.behind


def _mark(marking: Marking, text: str, read: Callable[[str], str]) -> None:
    position = 0
    for match in _TAG.finditer(text):
        if position < match.start():
            _add(marking, text[position : match.start()], read)
        position = match.end()
        if not match[3]:
            marking.single(match[0])
        elif match[2]:
            marking.closing(match[3], match[0])
        else:
            marking.opening(match[3], match[0])
    if position < len(text):
        _add(marking, text[position:], read)


def _add(marking: Marking, raw: str, read: Callable[[str], str]) -> None:
    marking.text(raw, read(_LINE_END.sub(" ", raw)))


def _wrapped(cue: _Cue, write: Callable[[str], str], pieces: Sequence[Piece], *, lines: int) -> str:
    """A translation on as many lines as its source; a tag takes no room, and is not broken."""
    text = "".join(piece.content if piece.mark else write(_one_line(piece.content)) for piece in pieces)
    if lines == 1:
        return text
    line_end = _LINE_END.search(cue.text)
    return (line_end[0] if line_end else "\n").join(_cut(text, [1] * lines))


def _spread(cues: Sequence[_Cue], write: Callable[[str], str], translation: str) -> str:
    """A translation over the cues of its source, as much of it in each as was there."""
    shares = _cut(write(_one_line(translation)), [len(cue.text) for cue in cues])
    result = ""
    for cue, share in zip(cues, shares, strict=True):
        line_end = _LINE_END.search(cue.text)
        lines = _cut(share, [1] * len(cue.lines))
        result += cue.before + (line_end[0] if line_end else "\n").join(lines) + cue.behind
    return result


def _one_line(text: str) -> str:
    return _LINE_END.sub(" ", text)


def _cut(text: str, shares: Sequence[int]) -> list[str]:
    """The text in so many parts, about as long as their shares, cut between words and best behind punctuation."""
    words = _WORD.findall(text) or [text]
    ends = [*itertools.accumulate(len(_TAG.sub("", word)) + 1 for word in words)]
    parts = []
    start = 0
    whole = sum(shares)
    for share in itertools.accumulate(shares[:-1]):
        aim = ends[-1] * share / whole
        near = bisect.bisect_left(ends, aim)
        places = range(max(start, near - _NEAR), min(len(words), near + _NEAR))
        cut = min(places, key=partial(_cost, words, ends, aim), default=len(words) - 1) + 1
        parts.append(" ".join(words[start:cut]))
        start = cut
    return [*parts, " ".join(words[start:])]


def _cost(words: Sequence[str], ends: Sequence[int], aim: float, place: int) -> float:
    """What is wrong with a cut behind a word: how far it is from where it should be."""
    return abs(ends[place] - aim) * (0.5 if words[place].endswith(_GOOD_ENDS) else 1.0)
