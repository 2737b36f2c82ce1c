"""Word documents: the text is translated, and everything else is still there."""

from __future__ import annotations

import io
import re
import time
import zipfile
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import TextError
from qkv.files import translate_file
from tests.files.effort import LINEAR, growth
from tests.files.translations import loud, same, shuffled

SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def archive(**files: str | bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(
                zipfile.ZipInfo(name.replace("__", "/").replace("_xml", ".xml")), content, zipfile.ZIP_DEFLATED
            )
    return buffer.getvalue()


def document(body: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<w:document xmlns:w="{SPACE}"><w:body>{body}</w:body></w:document>'


def docx(body: str) -> bytes:
    return archive(word__document_xml=document(body))


def read(data: bytes, name: str = "word/document.xml") -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        text = opened.read(name).decode()
    ElementTree.fromstring(text)
    return text


def body(data: bytes) -> str:
    text = read(data)
    return text[text.index("<w:body>") + 8 : text.index("</w:body>")]


def run(text: str, looks: str = "") -> str:
    return f'<w:r>{looks and f"<w:rPr>{looks}</w:rPr>"}<w:t xml:space="preserve">{text}</w:t></w:r>'


def test_runs_that_look_alike_are_one_text() -> None:
    asked: list[str] = []

    def translate(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return loud(texts)

    runs = run("Hel", '<w:i/><w:lang w:val="en"/>') + '<w:proofErr w:type="x"/>' + run("lo ", "<w:i/>")
    runs += run("big", "<w:b/>") + run(" &amp; c", "<w:i/>")
    made = translate_file(docx(f"<w:p><w:pPr><w:jc/></w:pPr>{runs}</w:p>"), "a.docx", translate)
    assert asked == ["Hello <x1>big</x1> &amp; c"]
    runs = run("HELLO ", "<w:i/>") + run("BIG", "<w:b/>") + run(" &amp; C", "<w:i/>")
    assert body(made) == f"<w:p><w:pPr><w:jc/></w:pPr>{runs}</w:p>"


ODDITIES = {
    "link": '<w:hyperlink r:id="1" xmlns:r="x">' + run("here", '<w:rStyle w:val="L"/>') + "</w:hyperlink>",
    "note": '<w:r><w:footnoteReference w:id="2"/></w:r>',
    "tab": "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t></w:r>",
    "bookmark": '<w:bookmarkStart w:id="0" w:name="m"/>' + run("marked") + '<w:bookmarkEnd w:id="0"/>',
    "field": '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r>' + run("three") + '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
    "control": "<w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent>" + run("chosen") + "</w:sdtContent></w:sdt>",
    "box": "<w:r><w:pict><w:txbxContent><w:p>" + run("inside the box") + "</w:p></w:txbxContent></w:pict></w:r>",
    "deleted": '<w:del w:id="5"><w:r><w:delText>gone</w:delText></w:r></w:del>',
    "bold": run("bold words", "<w:b/>"),
    "plain": run("some plain words "),
    "comment": "<!-- c -->",
    "empty": "<w:r></w:r><w:r/>",
    "broken field": '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
}
KEPT = re.compile(r"<w:(?!r[ />]|rPr|t[ >]|b/|rStyle|proofErr)[a-zA-Z]+")


@settings(deadline=None)
@given(st.lists(st.sampled_from([*ODDITIES]), max_size=7), st.integers(0, 99))
def test_nothing_is_lost_and_nothing_is_invented(names: list[str], seed: int) -> None:
    paragraphs = f"<w:p>{''.join(ODDITIES[name] for name in names)}</w:p><w:sectPr/>"
    made = body(translate_file(docx(paragraphs), "a.docx", shuffled(seed)))
    assert things(made) == things(paragraphs)
    assert letters(made) == letters(paragraphs)


def things(text: str) -> Counter[str]:
    """Everything but runs, which may be cut."""
    return Counter(KEPT.findall(text))


def letters(text: str) -> Counter[str]:
    return Counter("".join("".join(re.findall(r"<w:t(?: [^>]*)?>([^<]*)", text)).lower().split()))


@settings(deadline=None)
@given(st.lists(st.sampled_from([*ODDITIES]), max_size=7))
def test_nothing_changes_where_no_text_does(names: list[str]) -> None:
    data = docx(f"<w:p>{''.join(ODDITIES[name] for name in names)}</w:p>")
    assert translate_file(data, "a.docx", same) == data


def test_headers_notes_and_text_boxes_are_translated_and_styles_are_not() -> None:
    paragraph = f'<w:hdr xmlns:w="{SPACE}"><w:p>{run("top")}</w:p></w:hdr>'
    data = archive(
        word__styles_xml=paragraph,
        word__document_xml=document(f"<w:tbl><w:tr><w:tc><w:p>{ODDITIES['box']}</w:p></w:tc></w:tr></w:tbl>"),
        word__header1_xml=paragraph,
        word__footnotes_xml=paragraph,
        media__a=b"\0\1",
    )
    made = translate_file(data, "a.docx", loud)
    assert "INSIDE THE BOX" in read(made)
    assert all("TOP" in read(made, f"word/{name}.xml") for name in ("header1", "footnotes"))
    assert "top" in read(made, "word/styles.xml")
    assert made == translate_file(data, "a.docx", loud)
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(io.BytesIO(made)) as after:
        assert before.namelist() == after.namelist()
        assert after.read("media/a") == b"\0\1"


def boxes(depth: int) -> str:
    """A paragraph with a text box, whose paragraph has another."""
    inner = run("the last")
    for place in range(depth):
        inner = f"<w:p>{run(f'number {place} ')}<w:r><w:pict>{inner}</w:pict></w:r></w:p>"
    return inner


def test_every_paragraph_inside_others_is_translated() -> None:
    made = body(translate_file(docx(boxes(16)), "a.docx", loud))
    assert re.findall(r">(NUMBER \d+) <", made) == [f"NUMBER {place}" for place in reversed(range(16))]
    assert made.count("<w:pict>") == made.count("</w:pict>") == 16


@pytest.mark.parametrize("looks_alike", [True, False])
def test_paragraphs_inside_others_are_read_once(*, looks_alike: bool) -> None:
    # Read twice at each depth, they take a quarter of a minute and more.
    some = [boxes(12) if looks_alike else boxes(12).replace("number", f"number {place}") for place in range(50)]
    begin = time.process_time()
    translate_file(docx(f"<w:p>{''.join(some)}</w:p>"), "a.docx", loud)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("unit", ["<w:p>{}</w:p>", "{}", "<w:r><w:tab/></w:r>", "{}<w:p>{}</w:p>", "<!-- c -->"])
def test_time_grows_with_the_document(unit: str) -> None:
    def made(count: int) -> bytes:
        return docx(f"<w:p>{run('some')}{unit.format(run('a'), run('b')) * count}{run('more')}</w:p>")

    assert growth(made, "a.docx", 300) < LINEAR


def bomb() -> bytes:
    return archive(word__document_xml=document("<w:p/>"), big=b"\0" * (20 << 20))


ENTITIES = '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;&b;">]>'


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"no archive", "it is no archive that can be read"),
        (archive(a="b"), "there is no word/document.xml in it"),
        (bomb(), "'big' in it unpacks to far too much"),
        (archive(word__document_xml=f"{ENTITIES}<a>&d;</a>"), "it declares entities"),
        (archive(word__document_xml='<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'), "it declares"),
        (archive(word__document_xml="<a>" * 300 + "</a>" * 300), "nested more than 256 deep"),
        (docx(boxes(17)), "word/document.xml: its paragraphs are nested more than 16 deep"),
        (archive(word__document_xml="<a>\n<b></a>"), "line 2 is not well-formed XML: mismatched tag"),
        (docx("<w:p/>")[:-30], "it is no archive that can be read"),
    ],
)
def test_what_is_broken_or_made_to_do_harm_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(TextError, match=re.escape("bad.docx") + ".*" + re.escape(told)):
        translate_file(data, "bad.docx", same)
