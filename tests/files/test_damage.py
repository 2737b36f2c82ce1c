"""Whatever a file is damaged or made into, it is translated or refused by name: no other error comes out."""

from __future__ import annotations

import encodings
import io
import pkgutil
import random
import zipfile
from contextlib import suppress

import pytest

from qkv.errors import TextError
from qkv.files import translate_file
from tests.files.test_docx import ODDITIES, document, docx
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


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_file_is_translated_or_refused(name: str) -> None:
    drawn = random.Random(name)
    for _ in range(300):
        data = damaged(damaged(SAMPLES[name], drawn), drawn)
        with suppress(TextError):
            translate_file(data, name, loud, target="fr", again=True)


def test_a_document_with_damaged_text_is_translated_or_refused() -> None:
    drawn = random.Random(0)
    text = document(f"<w:p>{''.join(ODDITIES.values())}</w:p>").encode()
    for _ in range(300):
        with suppress(TextError):
            translate_file(packed(zipfile.ZIP_STORED, {"word/document.xml": damaged(text, drawn)}), "a.docx", loud)


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
