"""Archives of the web, honest ones and others; and the forms of text in them."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
from pathlib import Path

import pytest

from qkv.errors import TextError
from qkv.fetch.archives import members
from qkv.fetch.forms import FORMS
from tests.fetch.mirror import add


def archive(path: Path, *contents: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as written:
        for one in contents:
            if isinstance(one, tarfile.TarInfo):
                written.addfile(one)
            else:
                add(written, *one)
    return path


def read(path: Path, *names: str) -> dict[str, bytes]:
    return {member.name: member.stream.read() for member in members(path, names)}


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.tgz", ("x/one", b"1\n"), ("../two", b"2\n"), ("./three", b"3\n"), ("x/four", b"4\n"))
    assert read(made, "x/four", "three") == {"x/four": b"4\n", "three": b"3\n"}
    assert [*tmp_path.iterdir()] == [made]


def test_what_an_archive_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"a\.tgz has no x/two: it is not laid out as it was"):
        read(archive(tmp_path / "a.tgz", ("x/one", b"1\n")), "x/one", "x/two")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("x/one")
    link.type, link.linkname = kind, "/etc/passwd"
    with pytest.raises(TextError, match=r"x/one in .* is no plain file"):
        read(archive(tmp_path / "a.tgz", link), "x/one")


def test_what_unpacks_to_far_too_much_is_refused(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.tgz", ("x/one", bytes(20_000_000)))
    with pytest.raises(TextError, match="unpacks to more than 50 times its size"):
        read(made, "x/one")
    # Also where it is not what is wanted, and inside an archive that is not packed itself.
    with pytest.raises(TextError, match="unpacks to more than 50 times its size"):
        read(archive(tmp_path / "b.tgz", ("x/one", bytes(20_000_000)), ("two", b"2")), "two")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as written:
        add(written, "one.gz", gzip.compress(bytes(20_000_000)))
    (tmp_path / "c.tar").write_bytes(packed.getvalue())
    with pytest.raises(TextError, match="unpacks to more than 50 times its size"):
        read(tmp_path / "c.tar", "one.gz")


def test_what_is_cut_or_no_archive_is_told(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.tgz", ("x/one", b"text\n" * 100))
    made.write_bytes(made.read_bytes()[:-40])
    with pytest.raises(TextError, match=r"a\.tgz is damaged: .*; remove it"):
        read(made, "x/one")
    made.write_bytes(b"<html>Sign in to this network</html>")
    with pytest.raises(TextError, match=r"a\.tgz is a page of HTML and no corpus"):
        read(made, "x/one")


def lines(form: str, text: str) -> list[tuple[str, str]]:
    return [(line.text.decode(), line.name) for line in FORMS[form](io.BytesIO(text.encode()))]


def test_segments_are_read_as_the_tests_of_wmt_write_them() -> None:
    text = """<?xml version="1.0" encoding="UTF-8"?>
<srcset setid="newstest2014" srclang="any">
<doc sysid="ref" docid="1-bbc" genre="news" origlang="en">
<p>
<seg id="1">Gutach: S&amp;P &lt;b&gt; &#8211; AT&T &copy x</seg>
</p>
<SEG ID='2' > two
lines </SEG></doc>
<DOC docid="2"><seg id="1"></seg></DOC>
"""
    assert lines("segments", text) == [
        ("Gutach: S&P <b> – AT&T &copy x", "1-bbc/1"), ("two lines", "1-bbc/2"), ("", "2/1"),
    ]  # fmt: skip


def test_documents_that_never_begin_are_passed_over_at_once() -> None:
    begin = time.process_time()
    assert lines("segments", '<seg id="1">a</seg>' + "<doc " * 30_000) == [("a", "/1")]
    assert time.process_time() - begin < 2


def test_a_segment_without_an_end_is_refused() -> None:
    with pytest.raises(TextError, match="a <seg> of document 'a' has no end"):
        lines("segments", '<doc docid="a"><seg id="1">one</seg><seg id="2">two')


def test_of_talks_titles_and_descriptions_are_text_and_other_markup_is_not() -> None:
    text = """<url>http://www.ted.com/talks/1</url>
<keywords>talks, ideas</keywords>
<speaker>Somebody</speaker>
<talkid>1</talkid>
<title>Somebody: <i>An</i> idea</title>
<description>TED Talk: an idea.</description>
 It can be < a very complicated thing.
<b>
<reviewer href="x">R</reviewer>
"""
    assert [said for said, _ in lines("talks", text)] == [
        "Somebody: <i>An</i> idea", "TED Talk: an idea.", "It can be < a very complicated thing.",
    ]  # fmt: skip
