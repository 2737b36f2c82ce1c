"""XML as tokens that together are the document, once it is known to be well-formed and harmless."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple
from xml.parsers import expat

from qkv.files.encodings import Decoded, decoded
from qkv.files.reading import MOST_TAGS
from qkv.files.segments import escaped, refused

ENCODING = re.compile(rb"""\A\s*<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)""")
_MARKUP = re.compile(
    r"""(?s:(<!--.*?-->|<\?.*?\?>|<![^\[>](?:[^"'>]++|"[^"]*+"|'[^']*+')*+>)|<!\[CDATA\[(.*?)\]\]>)"""
    r"""|<(/?)([^\s/>]++)((?:[^"'/>]++|"[^"]*+"|'[^']*+'|/(?!>))*+)(/?)>"""
)
_ATTRIBUTE = re.compile(r"""([^\s=]++)\s*+=\s*+("[^"]*+"|'[^']*+')""")
_DEEPEST = 256


class Token(NamedTuple):
    """A part of a document."""

    kind: Literal["text", "other", "opening", "closing", "alone"]
    raw: str
    name: str = ""
    """Of a tag, with its prefix."""
    text: str = ""
    """Of text, what a reader sees."""

    @property
    def local(self) -> str:
        """The name without its prefix."""
        return self.name.rpartition(":")[2]

    def attributes(self) -> dict[str, str]:
        return {match[1]: html.unescape(match[2][1:-1]) for match in _ATTRIBUTE.finditer(self.raw, len(self.name) + 1)}


class Document(NamedTuple):
    """A document that may be read."""

    decoded: Decoded
    tokens: list[Token]


def read(data: bytes, name: str) -> Document:
    """The document; whatever is not well-formed, declares entities or is nested too deeply is refused."""
    source = decoded(data, name, declared=ENCODING)
    _require_harmless(source.text, name)
    return Document(source, [*tokens(source.text)])


def tokens(text: str) -> Iterator[Token]:
    """The parts of well-formed XML, in order."""
    position = 0
    for match in _MARKUP.finditer(text):
        if position < match.start():
            yield _text(text[position : match.start()])
        position = match.end()
        if match[1] is not None:
            yield Token("other", match[0])
        elif match[4] is None:
            yield Token("text", match[0], text=match[2])
        else:
            yield Token("closing" if match[3] else "alone" if match[6] else "opening", match[0], match[4])
    if position < len(text):
        yield _text(text[position:])


def element(waiting: list[Token]) -> list[Token]:
    """Takes a whole element off the end of a reversed list that begins with its opening tag."""
    taken = [waiting.pop()]
    depth = int(taken[0].kind == "opening")
    while depth:
        taken.append(waiting.pop())
        depth += (taken[-1].kind == "opening") - (taken[-1].kind == "closing")
    return taken


def raw(some: list[Token]) -> str:
    return "".join(token.raw for token in some)


def write(text: str) -> str:
    """Text as it stands between tags; what XML has no place for is left out."""
    return escaped("".join(character for character in text if character >= " " or character in "\t\n\r"))


def _text(raw: str) -> Token:
    return Token("text", raw, text=html.unescape(raw))


def _require_harmless(text: str, name: str) -> None:
    depth = count = 0

    def opened(tag: str, attributes: dict[str, str]) -> None:  # noqa: ARG001
        nonlocal depth, count
        depth += 1
        count += 1
        if count > MOST_TAGS:
            raise refused(name, f"it has more than {MOST_TAGS:,} elements", "split it")
        if depth > _DEEPEST:
            raise refused(name, f"its elements are nested more than {_DEEPEST} deep", "no program writes such files")

    def closed(tag: str) -> None:  # noqa: ARG001
        nonlocal depth
        depth -= 1

    def declared(root: str, system: str | None, public: str | None, has_declarations: bool) -> None:  # noqa: ARG001
        if has_declarations:
            what = "it declares entities or attributes, which could make it grow without end"
            raise refused(name, what, "take out what stands between [ and ] of its <!DOCTYPE>, and replace entities")

    # The very text that is cut into tokens, whatever its encoding: what is well-formed there is so here.
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.StartDoctypeDeclHandler = declared
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        told = expat.errors.messages[error.code]
        raise refused(
            name, f"line {error.lineno:,} is not well-formed XML: {told}", "mend it, or save it anew"
        ) from error
