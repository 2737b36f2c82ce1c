"""Whatever a file is damaged or made into, it is translated or refused by name: no other error comes out."""

from __future__ import annotations

import codecs
import encodings
import io
import pkgutil
import random
import re
import zipfile
from contextlib import suppress
from xml.parsers import expat

import pytest

from qkv.errors import TextError
from qkv.files import translate_file
from tests.files.test_docx import ODDITIES, archive, document, docx, read
from tests.files.test_exchange import INLINE, NEW, OLD, TMX
from tests.files.test_html import PIECES
from tests.files.translations import loud, same

CATALOGUE = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\n#: a\nmsgid "a %s cat {}"\nmsgstr ""\n'
SAMPLES = {
    "a.docx": docx(f"<w:p>{''.join(ODDITIES.values())}</w:p>"),
    "a.xlf": OLD.format("", f"<trans-unit><source>{''.join(INLINE)}</source><target/></trans-unit>").encode(),
    "a.xliff": NEW.format("", "<segment><source>a <pc id='1'>b</pc></source></segment>").encode("utf-16"),
    "a.tmx": TMX.format('<tu><tuv xml:lang="en"><seg>a <ph>b</ph> c</seg></tuv><tuv lang="de"/></tu>').encode(),
    "a.html": f'<meta charset="utf-8">{"".join(PIECES)}'.encode(),
    "a.po": CATALOGUE.format("utf-8", r"\x41\101").encode(),
    "a.md": b"---\na: b\n---\n# a\n\n*b* [c](d 'e') <b>f</b> `g`\n\n| a | b \\| c |\n|---|---|\n| d | e |\n\n- [ ] f\n",
    "a.srt": b"1\r\n0 --> 1\r\n{\\an8}<i>going</i>\r\n\r\n2\r\n1 --> 2\r\n- on?\r\n- <b>No</b>!\r\n",
    "a.vtt": b"WEBVTT\n\nNOTE a\n\n00:01.000 --> 00:02.000 align:start\n<v Ann>Fish &amp; <c.big>chips</c>\n",
    "a.txt": b"\xef\xbb\xbfa caf\xc3\xa9\r\n\r\nb\n",
}
SCRAPS = [
    *(
        b"<",
        b">",
        b"</b>",
        b"<!--",
        b"-->",
        b"]]>",
        b'"',
        b"'",
        b"&",
        b"&#0;",
        b"&#55296;",
        b"\0",
        b"\xff\xfe",
        b"\r",
        b"\n\n",
    ),
    *(
        b"charset=idna",
        b'encoding="hz"',
        b"PK\1\2",
        b"PK\5\6",
        b"\xff\xff\xff\x7f",
        b"\\",
        b"{\\",
        b"|",
        b"```",
        b'msgid "',
    ),
    *(b"<seg/>", b"<source/>", b"<target/>", b"<w:p>", b"</w:p>", b'<!DOCTYPE a SYSTEM "><tu><trans-unit>">'),
]

BETWEEN_TAGS = re.compile("(?<=>)[^<>]*(?=</?[a-z])")
WORDING = [
    # What looks like the marks that stand for tags, and is text.
    *("&lt;x1&gt;", "&lt;/x1&gt;", "&lt;x2/&gt;", "&lt;br 1/&gt;", "&amp;lt;x1&amp;gt;", "<![CDATA[<x1>]]>"),
    *("&amp;", "&", ";", "]]", "&#233;", "&#x1F600;", "&#0;", "<!-- c -->", "<?c d?>", "<!--"),
    *("\u2028", "\u200b", "\u202e", "\xa0", "\t\n", "\r", "e\u0301", "ß", "שלום", "猫", "%s", "{0}", ".", "a" * 2000),
]


def damaged(data: bytes, drawn: random.Random) -> bytes:
    """The same with a bit flipped, a part cut off, taken out, written twice, or something else written over it."""
    start = drawn.randrange(len(data))
    end = start + drawn.choice([1, 2, 8, 64])
    return drawn.choice(
        [
            data[:start] + bytes([data[start] ^ 1 << drawn.randrange(8)]) + data[start + 1 :],
            data[:start] + bytes([drawn.randrange(256)]) + data[start + 1 :],
            data[: start + 1],
            data[:start] + data[end:] + b" ",
            data[:end] + data[start:],
            data[:start] + drawn.choice(SCRAPS) + data[start:],
            data[:start] + drawn.choice(SCRAPS) + data[end:],
        ]
    )


class Trying:
    """Translates damaged files, and counts those of which something was translated."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.translated = 0

    def __call__(self, data: bytes) -> bytes | None:
        """What comes of a file; None where it is refused."""
        asked = False

        def translate(texts: list[str]) -> list[str]:
            nonlocal asked
            asked = True
            return loud(texts)

        try:
            made = translate_file(data, self._name, translate, target="fr", again=True)
        except TextError:
            return None
        self.translated += asked
        return made


LEAST = {
    # Hardly anything comes of a damaged archive, nor of damaged tags.
    "a.docx": 0, "a.xlf": 1, "a.xliff": 1, "a.tmx": 1, "a.po": 20,
    "a.html": 200, "a.md": 200, "a.srt": 200, "a.vtt": 100, "a.txt": 100,
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_file_is_translated_or_refused(name: str) -> None:
    drawn, tried = random.Random(name), Trying(name)
    for _ in range(300):
        tried(damaged(damaged(SAMPLES[name], drawn), drawn))
    assert tried.translated >= LEAST[name]


def test_a_document_with_damaged_text_is_translated_or_refused() -> None:
    drawn, tried = random.Random(0), Trying("a.docx")
    text = document(f"<w:p>{''.join(ODDITIES.values())}</w:p>").encode()
    for _ in range(300):
        tried(packed(zipfile.ZIP_STORED, {"word/document.xml": damaged(text, drawn)}))
    assert tried.translated >= 40


@pytest.mark.parametrize("name", ["a.docx", "a.xlf", "a.xliff", "a.tmx"])
def test_a_file_is_translated_whatever_stands_between_its_tags(name: str) -> None:
    drawn, tried = random.Random(name), Trying(name)
    for _ in range(300):
        text = damaged_between_tags(damaged_between_tags(unpacked(SAMPLES[name]), drawn), drawn)
        made = tried(archive(word__document_xml=text) if name == "a.docx" else text.encode(ENCODED.get(name, "utf-8")))
        if made is not None:
            # Of a document with a DTD elsewhere, this one knows that its entities may be there.
            expat.ParserCreate().Parse(unpacked(made), True)
    assert tried.translated >= 200


ENCODED = {"a.xliff": "utf-16"}


def unpacked(data: bytes) -> str:
    """The text of a file, of an archive that of its document."""
    if data.startswith(b"PK"):
        return read(data)
    return data.decode("utf-16" if data.startswith(codecs.BOM_UTF16) else "utf-8")


def damaged_between_tags(text: str, drawn: random.Random) -> str:
    """The same with a part of what is no tag cut out, written twice, or something else written there."""
    place = drawn.choice([*BETWEEN_TAGS.finditer(text)])
    start, end = sorted(drawn.randint(*place.span()) for _ in range(2))
    said = drawn.choice([text[start:end] * 2, "", *WORDING])
    return text[:start] + said + text[end:]


def packed(way: int, files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", way) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


WORDS = {"word/document.xml": document("<w:p/>").encode()}


def with_bytes(data: bytes, place: int, content: bytes) -> bytes:
    return data[:place] + content + data[place + len(content) :]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (packed(zipfile.ZIP_LZMA, WORDS), "is packed or named as in no document"),
        (packed(zipfile.ZIP_BZIP2, WORDS), "is packed or named as in no document"),
        (packed(zipfile.ZIP_STORED, {"a" * 2_000: b""}), "is packed or named as in no document"),
        # The end of an archive says where its list of files begins: before all, or far behind.
        (with_bytes(packed(zipfile.ZIP_STORED, WORDS), -6, b"\xff\xff\xff\x7f"), "it is no archive that can be read"),
        (with_bytes(packed(zipfile.ZIP_STORED, WORDS), -10, b"\xff\0\0\0"), "it is no archive that can be read"),
        (packed(zipfile.ZIP_STORED, {"wörd": b""}).replace("ö".encode(), b"\xff\xfa"), "it is no archive that can be"),
        (with_bytes(packed(zipfile.ZIP_DEFLATED, WORDS), 50, b"\xff" * 20), "it is no archive that can be read"),
    ],
)
def test_an_archive_that_lies_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(TextError, match=rf"bad\.docx: .*{told}"):
        translate_file(data, "bad.docx", same)


def test_an_archive_is_not_believed_about_the_size_of_what_is_packed() -> None:
    data = packed(zipfile.ZIP_DEFLATED, WORDS | {"big": b"\0" * (20 << 20)})
    size = data.rindex(b"PK\1\2") + 20
    with pytest.raises(TextError, match=r"unpacks to far too much|no archive"):
        translate_file(with_bytes(data, size, b"\xff\xff\xff\x03"), "bad.docx", same)


NAMES = sorted({module.name for module in pkgutil.iter_modules(encodings.__path__)} | {"a" * 300, "none", "utf-16le"})


@pytest.mark.parametrize("name", ["a.po", "a.html", "a.xlf"])
def test_whatever_encoding_a_file_says_it_has_it_is_translated_or_refused(name: str) -> None:
    form = {
        "a.po": CATALOGUE.format("{0}", "x" * 80),
        "a.html": "<meta charset={0}><p>a cat {1}</p>",
        "a.xlf": '<?xml version="1.0" encoding="{0}"?><xliff><trans-unit><source>a</source></trans-unit></xliff>',
    }[name]
    for encoding in NAMES:
        with suppress(TextError):
            translate_file(
                form.format(encoding, "a" * 80).encode(), name, lambda texts: [f"{text} é€" for text in texts]
            )


@pytest.mark.parametrize("encoding", ["idna", "punycode", "unicode_escape", "rot13", "cp037", "utf-7", "nonsense"])
def test_what_is_no_encoding_of_a_file_is_refused(encoding: str) -> None:
    for form, name in (("<meta charset={}>a", "a.html"), ("<?xml version='1.0' encoding='{}'?><xliff/>", "a.xlf")):
        with pytest.raises(
            TextError, match=f"it says that its encoding is '{encoding}', which is none that files are in"
        ):
            translate_file(form.format(encoding).encode(), name, same)


def test_xml_may_be_in_any_encoding_of_files() -> None:
    text = f'<?xml version="1.0" encoding="shift_jis"?>{OLD.partition("?>")[2]}'
    unit = "<trans-unit><source>猫 a</source>{}</trans-unit>"
    made = translate_file(text.format("", unit.format("")).encode("shift_jis"), "a.xlf", loud).decode("shift_jis")
    assert "猫 A</target>" in made


@pytest.mark.parametrize(
    "declaration", ["[<!-- > <tu> -->]", '[<!ATTLIST tmx a CDATA "b">]', '[<!ENTITY a "b">]', "[]"]
)
def test_a_document_that_declares_things_of_its_own_is_refused(declaration: str) -> None:
    with pytest.raises(TextError, match=r"a\.tmx: it declares entities or attributes"):
        translate_file(f"<!DOCTYPE tmx {declaration}><tmx/>".encode(), "a.tmx", same, target="fr")


def test_the_address_of_a_declaration_is_no_markup() -> None:
    text = b'<!DOCTYPE tmx SYSTEM "a><tu>"><tmx/>'
    assert translate_file(text, "a.tmx", same, target="fr") == text
