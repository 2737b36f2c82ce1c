"""Reading text: what a line is, what a corpus is, and what is said when a file is not one."""

from __future__ import annotations

import gzip
import lzma
import tracemalloc
from pathlib import Path

import pytest

from qkv.errors import ConfigError, StorageError, TextError
from qkv.text.files import Fault, RawPair, pair_files, read_lines

LONGEST = 1000


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def pairs(*paths: Path) -> list[RawPair]:
    return [pair for part in pair_files(paths) for pair in part.pairs(LONGEST)]


@pytest.mark.parametrize("compress", [lambda data: data, gzip.compress, lzma.compress])
def test_two_files_are_pairs_plain_or_compressed(tmp_path: Path, compress: object) -> None:
    assert callable(compress)
    ending = {gzip.compress: ".gz", lzma.compress: ".xz"}.get(compress, "")  # type: ignore[call-overload]
    source = write(tmp_path / f"a.en{ending}", compress(b"one\ntwo\n"))
    target = write(tmp_path / f"a.fr{ending}", compress(b"un\ndeux"))
    assert pairs(source, target) == [RawPair(b"one", b"un"), RawPair(b"two", b"deux")]


def test_a_tsv_holds_pairs_and_further_columns_are_told(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", b"one\tun\ntwo\tdeux\tx\ty\nthree\nfour\tquatre\t\n")
    assert pairs(table) == [
        RawPair(b"one", b"un"),
        RawPair(b"two", b"deux", None, b"x\ty"),
        RawPair(b"three", b"", Fault("missing column", None)),
        RawPair(b"four", b"quatre", None, b""),
    ]


def test_tsv_files_and_twos_mix(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv.gz", gzip.compress(b"b\tB\n"))
    source, target = write(tmp_path / "x", b"a\n"), write(tmp_path / "y", b"A\n")
    assert [pair.source for pair in pairs(source, table, target)] == [b"b", b"a"]


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\x0bc\x0cd\x85e\rf"
    source, target = write(tmp_path / "x", f"{text}\n".encode()), write(tmp_path / "y", b"A\n")
    assert pairs(source, target) == [RawPair(text.encode(), b"A")]
    assert list(read_lines(source)) == [text]


def test_a_file_without_partner_is_named(tmp_path: Path) -> None:
    one, other, odd = (write(tmp_path / name, b"") for name in "xyz")
    with pytest.raises(ConfigError, match="z has no partner"):
        pair_files([one, other, odd])


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file: .*nothing"):
        pair_files([tmp_path / "nothing"])
    with pytest.raises(ConfigError, match="is a directory"):
        pair_files([tmp_path])
    with pytest.raises(ConfigError, match="not a regular file"):
        pair_files([Path("/dev/null")])


def test_unequal_line_counts_are_told_with_both_counts(tmp_path: Path) -> None:
    source, target = write(tmp_path / "x", b"a\nb\nc\n"), write(tmp_path / "y", b"A\n")
    with pytest.raises(TextError, match=r"x has 3 lines and .*y has 1"):
        pairs(source, target)
    with pytest.raises(TextError, match=r"y has 1 lines and .*x has 3"):
        pairs(target, source)


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
def test_utf_16_is_told_how_to_convert(tmp_path: Path, encoding: str) -> None:
    source = write(tmp_path / "x", "a\nb\n".encode(encoding))
    target = write(tmp_path / "y", b"A\nB\n")
    with pytest.raises(TextError, match=f"is {encoding}, not UTF-8; convert it: iconv"):
        pairs(source, target)
    with pytest.raises(TextError, match=f"is {encoding}"):
        list(read_lines(source))


@pytest.mark.parametrize(("ending", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_damaged_archives_are_named(tmp_path: Path, ending: str, compress: object) -> None:
    assert callable(compress)
    whole = compress(b"some text\n" * 1000)
    target = write(tmp_path / "y", b"A\n" * 1000)
    for number, broken in enumerate([whole[:-9], b"no archive", whole[:20] + b"\xff\xff\xff" + whole[23:]]):
        source = write(tmp_path / f"x{number}{ending}", broken)
        with pytest.raises(TextError, match=f"x{number}{ending} is damaged"):
            pairs(source, target)


def test_an_unreadable_file_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root reads everything, so the refusal is made up.
    source = write(tmp_path / "x", b"a\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(StorageError, match=r"cannot read .*x: Permission denied"):
        list(read_lines(source))


def test_a_monstrous_line_is_told_and_takes_no_memory(tmp_path: Path) -> None:
    source = write(tmp_path / "x", b"a\n" + b"m" * (1 << 25) + b"\nb\n")
    target = write(tmp_path / "y", b"A\nM\nB\n")
    tracemalloc.start()
    found = pairs(source, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [pair.fault for pair in found] == [None, Fault("too long", "source"), None]
    assert pairs(target, source)[1].fault == Fault("too long", "target")
    assert found[2] == RawPair(b"b", b"B")
    assert peak < 1 << 23


def test_strict_lines_name_the_broken_one(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"fine\r\nbro\xffken\n")
    lines = read_lines(path)
    assert next(lines) == "fine"
    with pytest.raises(TextError, match=r"x, line 2: not UTF-8 at byte 4"):
        next(lines)


def test_strict_lines_lose_the_byte_order_mark(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path / "x", b"\xef\xbb\xbfa\n\nb"))) == ["a", "", "b"]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path / "x", b""))) == []
