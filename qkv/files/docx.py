"""Word documents: paragraphs are translated, and each run of formatted text goes where its words went.

Most of a paragraph looks alike: that is its plain text. What looks otherwise is a pair of marks, and everything that is
no text, such as a picture or the number of a footnote, is a mark of its own.
"""

from __future__ import annotations

import itertools
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

from qkv.files.archives import packed, unpacked
from qkv.files.reading import Asked
from qkv.files.segments import Marking, Part, Piece, Segment, refused, translated
from qkv.files.xml import Document, Token, element, raw, read, write

_PARTS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml")
_MAIN = "word/document.xml"
_NAMESPACE = re.compile(
    r'xmlns:([\w.-]+)="http://(?:schemas\.openxmlformats\.org/wordprocessingml/2006/main'
    r'|purl\.oclc\.org/ooxml/wordprocessingml/main)"'
)
_SIGNS = {"noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
_PARTING = ("tab", "br", "cr", "ptab")
# They say where a program found mistakes in the source, and where its pages ended.
_DROPPED = ("proofErr", "lastRenderedPageBreak")
_AROUND = ("hyperlink", "ins", "moveTo", "smartTag", "sdt", "customXml", "fldSimple", "dir", "bdo")
"""Elements of a paragraph that have runs in them."""
_RANGE = re.compile(r"(\w+?)(Start|End)")
_OF_THE_SOURCE = re.compile(r"<[\w.-]+:(?:lang|noProof)(?:\s[^>]*)?/>")
"""What is said about the text of a run that is not true of its translation: its language, mostly."""
_DEEPEST = 16
"""Paragraphs inside one another: that of a text box is in the one that has the box."""


def translate_docx(data: bytes, asked: Asked) -> bytes:
    """A document with the same pictures, tables, notes and styles."""
    files = unpacked(data, asked.name)
    if _MAIN not in {info.filename for info in files}:
        raise refused(asked.name, f"there is no {_MAIN} in it", "save it anew as a Word document (.docx)")
    documents: dict[zipfile.ZipInfo, Document] = {
        info: read(content, f"{asked.name}, {info.filename}")
        for info, content in files.items()
        if _PARTS.fullmatch(info.filename)
    }
    # All are one call, and are told apart again by a character that no XML has.
    parts: list[Part] = []
    for info, document in documents.items():
        reader = _Reader(document)
        reader.require_shallow(f"{asked.name}, {info.filename}")
        parts += [*reader.parts(document.tokens), "\0"]
    texts = translated(parts, asked.translate).split("\0")[:-1]
    changed = {
        info: document.decoded.encoded(text, asked.name, references=True)
        for (info, document), text in zip(documents.items(), texts, strict=True)
    }
    return packed(files | changed) if any(files[info] != content for info, content in changed.items()) else data


class _Reader:
    def __init__(self, document: Document) -> None:
        found = _NAMESPACE.search(document.decoded.text)
        self.prefix = f"{found[1]}:" if found else "w:"
        self._document = document
        self._read: dict[int, list[Part]] = {}
        """Paragraphs by the identity of their first token, which the document keeps."""

    def require_shallow(self, name: str) -> None:
        """Refuses paragraphs that are nested as in no document: each is read with all that are in it."""
        depth = 0
        for token in self._document.tokens:
            if token.name == f"{self.prefix}p":
                depth += (token.kind == "opening") - (token.kind == "closing")
            if depth > _DEEPEST:
                told = f"its paragraphs are nested more than {_DEEPEST} deep"
                raise refused(name, told, "take text boxes out of one another")

    def parts(self, tokens: Sequence[Token]) -> Iterator[Part]:
        """What is outside of paragraphs stays; paragraphs are segments, those in a text box too."""
        waiting = [*tokens][::-1]
        while waiting:
            token = waiting[-1]
            if token.kind == "opening" and token.name == f"{self.prefix}p":
                yield from self._paragraph(element(waiting))
            else:
                yield waiting.pop().raw

    def _paragraph(self, tokens: list[Token]) -> list[Part]:
        # The paragraph around asks twice, for what is kept and for what is written anew; so would the one around that.
        if id(tokens[0]) not in self._read:
            inside = _Paragraph(self, tokens[1:-1]).parts()
            self._read[id(tokens[0])] = [tokens[0].raw, *inside, tokens[-1].raw]
        return self._read[id(tokens[0])]


class _Event(NamedTuple):
    """Text that looks so, or something that is no text."""

    kind: Literal["text", "opening", "closing", "single"]
    name: str
    """Of text: how it looks."""
    text: str
    content: Sequence[Part]


class _Paragraph:
    """A paragraph on its way to a segment."""

    def __init__(self, reader: _Reader, tokens: list[Token]) -> None:
        self._reader = reader
        self._tokens = tokens
        self._field: list[Part] = []
        """What was read of a field whose text has not begun."""
        self._field_depth = 0

    def parts(self) -> list[Part]:
        waiting = self._tokens[::-1]
        properties = []
        while waiting and (self._name(waiting[-1]) == "pPr" or waiting[-1].kind == "text"):
            properties += element(waiting)
        inside = waiting[::-1]
        events = [*self._events(waiting)]
        if self._field:
            events.append(_Event("single", "field", "", self._field))
        kept = [*self._reader.parts(inside)]
        if not any(event.text.strip() for event in events):
            return [raw(properties), *kept]
        return [raw(properties), self._segment(kept, events)]

    def _segment(self, kept: list[Part], events: list[_Event]) -> Segment:
        lengths: Counter[str] = Counter()
        for event in events:
            if event.kind == "text":
                lengths[event.name] += len(event.text.strip())
        ((usual, _),) = lengths.most_common(1)
        marking = Marking()
        looks: dict[str, str | None] = {}
        for is_text, group in itertools.groupby(events, key=lambda one: one.name if one.kind == "text" else None):
            some = [*group]
            if is_text is None:
                for event in some:
                    _add(marking, event)
                continue
            if is_text != usual:
                looks[marking.opening("run")] = is_text
            marking.text("", "".join(event.text for event in some))
            if is_text != usual:
                looks[marking.closing("run")] = None
        return marking.whole(kept, partial(self._composed, usual, looks))

    def _composed(self, usual: str, looks: Mapping[str, str | None], pieces: Sequence[Piece]) -> str:
        """Every text in a run that looks as the marks around it say."""
        now = [usual]
        result = []
        for mark, content in pieces:
            if mark is None:
                prefix = self._reader.prefix
                text = f'<{prefix}t xml:space="preserve">{write(content)}</{prefix}t>'
                result.append(f"<{prefix}r>{now[-1]}{text}</{prefix}r>")
            elif mark not in looks:
                result.append(content)
            elif (own := looks[mark]) is not None:
                now.append(own)
            else:
                now.pop()
        return "".join(result)

    def _name(self, token: Token) -> str:
        """The name of one of Word's own tags."""
        return token.name.removeprefix(self._reader.prefix) if token.name.startswith(self._reader.prefix) else ""

    def _events(self, waiting: list[Token]) -> Iterator[_Event]:
        while waiting:
            token = waiting[-1]
            name = self._name(token)
            if name == "r" and token.kind == "opening":
                yield from self._run(element(waiting))
            elif name in _AROUND and token.kind == "opening":
                yield _Event("opening", name, "", [raw([*_opening(waiting)])])
            elif name == "sdtContent" and token.kind == "closing":
                yield _Event("closing", "sdt", "", [raw([*_closing(waiting)])])
            elif token.kind == "closing":
                yield _Event("closing", name, "", [waiting.pop().raw])
            elif (match := _RANGE.fullmatch(name)) is not None:
                identity = token.attributes().get(f"{self._reader.prefix}id", "")
                kind: Literal["opening", "closing"] = "opening" if match[2] == "Start" else "closing"
                yield _Event(kind, f"{match[1]} {identity}", "", [raw(element(waiting))])
            elif token.kind == "text" or name in _DROPPED:
                element(waiting)
            else:
                yield _Event("single", name, "", [*self._reader.parts(element(waiting))])

    def _run(self, tokens: list[Token]) -> Iterator[_Event]:
        waiting = tokens[-2:0:-1]
        looks = ""
        while waiting:
            token = waiting[-1]
            name = self._name(token)
            child = element(waiting)
            if name == "rPr":
                looks = _OF_THE_SOURCE.sub("", raw(child))
            elif name == "fldChar" or self._field:
                yield from self._in_field(looks, token, child)
            elif name == "t":
                yield _Event("text", looks, "".join(one.text for one in child if one.kind == "text"), [])
            elif name in _SIGNS:
                yield _Event("text", looks, _SIGNS[name], [])
            elif token.kind != "text" and name not in _DROPPED:
                yield _Event("single", name, "", self._in_run(looks, child))

    def _in_run(self, looks: str, child: list[Token]) -> list[Part]:
        prefix = self._reader.prefix
        return [f"<{prefix}r>{looks}", *self._reader.parts(child), f"</{prefix}r>"]

    def _in_field(self, looks: str, token: Token, child: list[Token]) -> Iterator[_Event]:
        """A field is something to compute, and then the text that came of it, which is translated."""
        kind = token.attributes().get(f"{self._reader.prefix}fldCharType", "")
        content = self._in_run(looks, child)
        if not self._field and kind != "begin":
            # The text of a field has ended; or that of a field that another paragraph began.
            yield _Event("closing" if kind == "end" else "single", "field", "", content)
            return
        self._field += content
        self._field_depth += (kind == "begin") - (kind == "end")
        is_text_next = kind == "separate" and self._field_depth == 1
        if is_text_next or not self._field_depth:
            yield _Event("opening" if is_text_next else "single", "field", "", self._field)
            self._field = []
            self._field_depth = 0


def _add(marking: Marking, event: _Event) -> None:
    if event.kind == "opening":
        marking.opening(event.name, *event.content)
    elif event.kind == "closing":
        marking.closing(event.name, *event.content)
    else:
        marking.single(*event.content, parting=event.name in _PARTING)


def _opening(waiting: list[Token]) -> Iterator[Token]:
    """An opening tag, with what says how the element is."""
    yield waiting.pop()
    while waiting and (waiting[-1].kind == "text" or waiting[-1].local.endswith(("Pr", "fldData"))):
        yield from element(waiting)
    if waiting and waiting[-1].local == "sdtContent" and waiting[-1].kind == "opening":
        yield waiting.pop()


def _closing(waiting: list[Token]) -> Iterator[Token]:
    yield waiting.pop()
    while waiting and (waiting[-1].kind == "text" or waiting[-1].local == "sdtEndPr"):
        yield from element(waiting)
    if waiting and waiting[-1].local == "sdt":
        yield waiting.pop()
