"""Downloads, over a server that breaks off, lies, or is not there."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import qkv
from qkv.errors import DownloadError, FullDiskError
from qkv.fetch.download import PAUSES, download
from tests.fetch.mirror import (
    Fault,
    Mirror,
    cut_after,
    leading_to,
    promising,
    saying,
    serving,
    status,
    without_a_length,
    without_an_end,
)

CONTENT = bytes(range(256)) * 300
AT_ONCE = (0.0, 0.0)
MOST = 100_000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nless"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    served = tmp_path / "served"
    served.mkdir()
    (served / "file").write_bytes(CONTENT)
    with serving(served) as running:
        yield running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "here" / "file"


def left(path: Path) -> set[str]:
    return {one.name for one in path.parent.iterdir()}


def test_a_file_is_whole_or_not_there(mirror: Mirror, path: Path) -> None:
    assert not download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert path.read_bytes() == CONTENT
    assert left(path) == {"file"}


def test_what_broke_off_goes_on_where_it_was(mirror: Mirror, path: Path) -> None:
    mirror.faults = [cut_after(1000)]
    download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert path.read_bytes() == CONTENT
    assert mirror.asked == [("file", None), ("file", "bytes=1000-")]


def test_another_call_goes_on_with_what_the_last_one_left(mirror: Mirror, path: Path) -> None:
    mirror.faults = [cut_after(1000), status(503)]
    for told in ("broke off", "503"):
        with pytest.raises(DownloadError, match=told):
            download(f"{mirror.url}/file", path, MOST, pauses=())
    assert left(path) == {"file.part", "file.part.json"}
    mirror.faults = []
    assert download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert path.read_bytes() == CONTENT
    assert mirror.asked[-1] == ("file", "bytes=1000-")


def test_a_file_that_has_changed_meanwhile_is_begun_anew(mirror: Mirror, path: Path) -> None:
    mirror.faults = [cut_after(1000)]
    with pytest.raises(DownloadError, match="broke off after 1,000 of 76,800 bytes"):
        download(f"{mirror.url}/file", path, MOST, pauses=())
    (mirror.directory / "file").write_bytes(CONTENT[::-1])
    download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert path.read_bytes() == CONTENT[::-1]


def test_a_file_that_was_whole_but_not_renamed_is_taken(mirror: Mirror, path: Path) -> None:
    download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    mirror.faults = [cut_after(1000)]
    with pytest.raises(DownloadError):
        download(f"{mirror.url}/file", path.with_name("other"), MOST, pauses=())
    path.with_name("other.part").write_bytes(CONTENT)
    download(f"{mirror.url}/file", path.with_name("other"), MOST, pauses=())
    assert path.with_name("other").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "note", ["5", '{"validator": {}}', '{"validator": "a\\nb"}', '{"validator": "ł"}', 100_000 * "["]
)
def test_what_was_begun_with_a_damaged_note_is_begun_anew(mirror: Mirror, path: Path, note: str) -> None:
    path.parent.mkdir()
    path.with_name("file.part").write_bytes(b"of nobody knows what")
    path.with_name("file.part.json").write_text(note)
    assert download(f"{mirror.url}/file", path, MOST, pauses=())
    assert path.read_bytes() == CONTENT
    assert mirror.asked == [("file", None)]


def test_a_server_that_promises_more_than_it_has_is_not_asked_for_ever(mirror: Mirror, path: Path) -> None:
    mirror.faults = [promising(len(CONTENT) + 10)] * 9
    with pytest.raises(DownloadError, match="broke off after 76,800 of 76,810 bytes"):
        download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert len(mirror.asked) < 9


@pytest.mark.parametrize("fault", [without_an_end, promising(MOST + 1), promising(10**18)])
def test_what_is_far_larger_than_its_file_is_given_up_and_removed(mirror: Mirror, path: Path, fault: Fault) -> None:
    mirror.faults = [cut_after(1000), fault]
    with pytest.raises(
        DownloadError,
        match=r"sends more than the 100,000 bytes that file can have, .* removed; .* put the file at .*file your",
    ):
        download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert left(path) == set()
    assert len(mirror.asked) == 2
    download(f"{mirror.url}/file", path, len(CONTENT), pauses=())
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("told", [None, "²", "-1", "many", "9" * 5000])
def test_a_file_whose_length_nobody_can_read_ends_with_its_connection(
    mirror: Mirror, path: Path, told: str | None
) -> None:
    mirror.faults = [without_a_length(told)]
    download(f"{mirror.url}/file", path, MOST, pauses=())
    assert path.read_bytes() == CONTENT


def test_a_server_that_is_busy_is_asked_again(mirror: Mirror, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mirror.faults = [status(503), status(429)]
    download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert path.read_bytes() == CONTENT
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(" answers ")[2] for line in told] == [
        "503 Service Unavailable; trying again in 0 s", "429 Too Many Requests; trying again in 0 s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (status(401), "answers 401 Unauthorized: it lets in only whom it knows; "),
        (status(403), "answers 403 Forbidden: it lets in only whom it knows; "),
        (status(404), "answers 404 Not Found: it may have moved; "),
        (status(416), "answers 416 Requested Range Not Satisfiable; "),
        (status(501), "answers 501 Not Implemented; "),
        (leading_to("/file"), "answers 302 Found: it leads on without an end, or nowhere; "),
        (leading_to("file:///etc/hostname"), "answers 302 Found: it leads on without an end, or nowhere; "),
        (leading_to("http://a..b/file"), "leads to what is no address: "),
        (leading_to("http://127.0.0.1:many/file"), "leads to what is no address: "),
        (saying(b"HTTP/1.0 404 \x1b[2Jgone\r\n\r\n"), "answers 404 Not Found: it may have moved; "),
        (saying(b"HTTP/1.0 499 \x1b[2Jgone\r\n\r\n"), "answers 499; "),
    ],
)
def test_what_a_server_refuses_is_told_at_once_in_one_line(
    mirror: Mirror, path: Path, fault: Fault, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.faults = 20 * [fault]
    with pytest.raises(DownloadError) as raised:
        download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert "trying again" not in capsys.readouterr().err
    said = str(raised.value)
    assert said.startswith(f"{mirror.url}/file {told}")
    assert said.endswith(f"; name a mirror by --from or QKV_MIRROR, or put the file at {path} yourself")
    assert said.isprintable()
    # Whoever answers is no missing network.
    assert "network" not in said


@pytest.mark.parametrize("words", [b"\x1b[31mSSH-2.0\r\nmore\r\n", b"\xe2\x80\xae" * 9000, b"HTTP/9.\x07\r\n"])
def test_what_is_no_answer_is_told_in_one_line(
    mirror: Mirror, path: Path, words: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.faults = 9 * [saying(words)]
    with pytest.raises(
        DownloadError, match=r"127\.0\.0\.1:\d+ answers, but not by HTTP: .*; try again later"
    ) as raised:
        download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    told = capsys.readouterr().err.split("\n")[:-1]
    assert len(told) == len(AT_ONCE)
    for line in (*told, str(raised.value)):
        assert line.isprintable()
        assert len(line) < 700
        assert "network" not in line


@pytest.mark.parametrize("fault", [status(503), cut_after(0), saying(CHUNKED)])
def test_a_server_that_answers_and_gives_nothing_is_no_missing_network(
    mirror: Mirror, path: Path, fault: Fault
) -> None:
    mirror.faults = 9 * [fault]
    with pytest.raises(DownloadError, match=r"(503|broke off) .*; try again later. What was brought stays") as raised:
        download(f"{mirror.url}/file", path, MOST, pauses=())
    assert "network" not in str(raised.value)


def test_without_a_network_it_is_told_what_to_do(path: Path) -> None:
    with pytest.raises(
        DownloadError, match=r"cannot reach 127\.0\.0\.1:9: Connection refused; is there a network"
    ) as raised:
        download("http://127.0.0.1:9/file", path, MOST, pauses=AT_ONCE)
    assert raised.value.exit_code == 3


def test_it_is_tried_again_once_after_each_pause(mirror: Mirror, path: Path) -> None:
    mirror.faults += 9 * [status(503)]
    with pytest.raises(DownloadError, match="503 Service Unavailable"):
        download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert len(mirror.asked) == 1 + len(AT_ONCE)
    # One that brought something begins the count anew.
    mirror.asked.clear()
    mirror.faults[:] = [status(503), cut_after(100), *(9 * [status(503)])]
    with pytest.raises(DownloadError, match="503 Service Unavailable"):
        download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert len(mirror.asked) == 2 + len(AT_ONCE)


def test_the_documents_tell_how_often() -> None:
    *first, last = (f"{pause:g}" for pause in PAUSES)
    told = (Path(qkv.__file__).parents[1] / "docs" / "reproducing.md").read_text(encoding="utf-8")
    assert f"tried again after {', '.join(first)} and {last} seconds" in " ".join(told.split())


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_disk_without_room_is_told_before_anything_is_brought(
    mirror: Mirror, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: _Usage(10, 9, 100))
    with pytest.raises(FullDiskError, match=r"needs 76,800 bytes, and 100 are free") as raised:
        download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    assert raised.value.exit_code == 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_disk_that_fills_up_on_the_way_has_its_own_exit_code(mirror: Mirror, path: Path) -> None:
    path.parent.mkdir()
    path.with_name("file.part").symlink_to("/dev/full")
    with pytest.raises(FullDiskError) as raised:
        download(f"{mirror.url}/file", path, MOST, pauses=AT_ONCE)
    cause = raised.value.__cause__
    assert isinstance(cause, OSError)
    assert cause.errno == errno.ENOSPC
