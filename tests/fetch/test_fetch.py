"""From the name of a corpus to prepared data, over a real server with small stand-ins of every archive."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qkv.errors import ConfigError, DownloadError, FullDiskError, TextError
from qkv.fetch import CORPORA, corpus, fetch
from qkv.fetch.corpora import Download
from qkv.prepare import Prepared
from qkv.prepare.directory import held
from qkv.settings import override_all
from qkv.storage import file_digest
from qkv.text.files import read_lines
from tests.fetch.mirror import Mirror, lines_of, serving, stand_in
from tests.toy import Command

SMALL = {"text.vocabulary": "320", "data.row_width": "64", "data.held_out": "10"}
PAIRS = 60


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    served = tmp_path / "served"
    served.mkdir()
    for name, found in [*CORPORA.items()]:
        (served / name).mkdir()
        monkeypatch.setitem(CORPORA, name, stand_in(found, served / name, PAIRS))
    with serving(served) as running:
        yield running


def contents(directory: Path) -> dict[Path, tuple[bytes, int]]:
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(directory.rglob("*")) if path.is_file()
    }


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_is_fetched_and_prepared_from_archives_laid_out_as_the_real_ones(
    name: str, tmp_path: Path, mirror: Mirror
) -> None:
    fetched = fetch(name, tmp_path / "corpora", mirror=f"{mirror.url}/{name}")
    found = corpus(name)
    for text, source, target in zip(found.training, fetched.training[::2], fetched.training[1::2], strict=True):
        assert (source.suffix, target.suffix) == (f".{found.source}", f".{found.target}")
        assert [*zip(read_lines(source), read_lines(target), strict=True)] == lines_of(text, found, PAIRS)
    for text, source, target in zip(found.test, fetched.test[::2], fetched.test[1::2], strict=True):
        # What the form escapes is text again.
        ending = " &" if text.form == "segments" else ""
        assert [*read_lines(source)] == [said + ending for said, _ in lines_of(text, found, PAIRS)]
        assert [*read_lines(target)] == [said + ending for _, said in lines_of(text, found, PAIRS)]
    config = override_all(found.config(), SMALL)
    prepared = fetched.prepare(config, workers=1)
    assert prepared.report["training"]["read"] == PAIRS * len(found.training)
    assert prepared.report["test"]["read"] == PAIRS * len(found.test)
    assert (config.text.source_language, config.text.target_language) == (found.source, found.target)


def test_a_second_call_asks_for_nothing_and_changes_nothing(command: Command, tmp_path: Path, mirror: Mirror) -> None:
    asked = [f"{name}={value}" for name, value in SMALL.items()]
    arguments = [
        "fetch",
        "wmt14-en-de",
        "--output",
        tmp_path / "c",
        "--from",
        f"{mirror.url}/wmt14-en-de",
        "--workers",
        "1",
    ]
    arguments += [word for change in asked for word in ("--set", change)]
    ran = command(*arguments)
    assert (ran.code, ran.lines) == (0, [str(tmp_path / "c" / "wmt14-en-de" / "data")])
    assert "wmt14-dev.tgz: from" in ran.err
    assert "wmt14-dev.tgz: its sha256 is noted in checksums.json, and holds from here on" in ran.err
    assert "no checksum is published" in ran.err
    assert "training-parallel-europarl-v7.tgz: from" in ran.err
    assert "its sha256 is the published one" in ran.err
    before, requests = contents(tmp_path / "c"), len(mirror.asked)
    again = command(*arguments)
    assert (again.code, again.lines) == (0, ran.lines)
    assert contents(tmp_path / "c") == before
    assert len(mirror.asked) == requests
    assert Prepared.open(tmp_path / "c" / "wmt14-en-de" / "data").report["training"]["read"] == 3 * PAIRS


def test_corpora_share_their_downloads(tmp_path: Path, mirror: Mirror) -> None:
    fetch("wmt14-en-de", tmp_path, mirror=f"{mirror.url}/wmt14-en-de")
    files = {path.name for path in (tmp_path / "downloads").iterdir()}
    assert files == {download.name for download in corpus("wmt14-en-de").downloads()} | {"checksums.json"}
    names = [name for name, _ in mirror.asked]
    assert sorted(names) == sorted(files - {"checksums.json"})


def test_a_second_fetch_at_once_is_told_what_the_first_is_doing(tmp_path: Path, mirror: Mirror) -> None:
    with held(tmp_path / "downloads"), pytest.raises(ConfigError) as raised:
        fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")
    told = f"another process is fetching into {tmp_path} right now, and corpora share their downloads; wait for it"
    assert str(raised.value) == told


def test_text_that_is_there_needs_its_archives_no_more(tmp_path: Path, mirror: Mirror) -> None:
    fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")
    for path in (tmp_path / "downloads").iterdir():
        path.unlink()
    fetch("multi30k-en-de", tmp_path, mirror="http://127.0.0.1:9")


def test_a_file_that_was_lost_cut_or_changed_is_written_again(tmp_path: Path, mirror: Mirror) -> None:
    fetched = fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")
    before = {path: path.read_bytes() for path in (*fetched.training, *fetched.valid)}
    fetched.training[0].write_bytes(b"half\n")
    fetched.training[1].unlink()
    fetched.valid[0].write_bytes(b"?" + before[fetched.valid[0]][1:])
    fetch("multi30k-en-de", tmp_path, mirror="http://127.0.0.1:9")
    assert {path: path.read_bytes() for path in before} == before


def test_text_that_is_there_is_read_once_to_see_that_it_is_whole(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = fetch("iwslt14-de-en", tmp_path, mirror=f"{mirror.url}/iwslt14-de-en")
    read: list[Path] = []

    def counted(path: Path) -> str:
        read.append(path)
        return file_digest(path)

    monkeypatch.setattr("qkv.fetch.fetching.file_digest", counted)
    fetch("iwslt14-de-en", tmp_path, mirror="http://127.0.0.1:9")
    assert sorted(read) == sorted([*fetched.training, *fetched.valid, *fetched.test])


def test_text_of_an_older_version_is_held_to_its_sizes_alone(tmp_path: Path, mirror: Mirror) -> None:
    fetched = fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")
    noted = fetched.directory / "text" / "fetched.json"
    rows = json.loads(noted.read_text())
    for row in rows.values():
        del row["sha256"]
    noted.write_text(json.dumps(rows))
    before = contents(fetched.directory)
    fetch("multi30k-en-de", tmp_path, mirror="http://127.0.0.1:9")
    assert contents(fetched.directory) == before


@pytest.mark.parametrize("row", ["5", "null", "[]", "{}", '{"sha256": 5}'])
def test_a_checksum_that_cannot_be_read_is_told_and_not_taken_as_none(tmp_path: Path, mirror: Mirror, row: str) -> None:
    ledger = tmp_path / "downloads" / "checksums.json"
    ledger.parent.mkdir()
    ledger.write_text(f'{{"iwslt14-de-en.tgz": {row}}}')
    with pytest.raises(
        TextError, match=r"checksums\.json is damaged: .* iwslt14-de-en\.tgz .*; mend that, or remove it"
    ):
        fetch("iwslt14-de-en", tmp_path, mirror=f"{mirror.url}/iwslt14-de-en")
    # Where others have published one, nothing is held to what was noted, and it is noted anew.
    ledger.write_text(f'{{"multi30k-train.en.gz": {row}}}')
    fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")
    assert len(json.loads(ledger.read_text())["multi30k-train.en.gz"]["sha256"]) == 64


def test_checksums_without_an_end_are_told(tmp_path: Path, mirror: Mirror) -> None:
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "checksums.json").write_text(100_000 * "[")
    with pytest.raises(TextError, match=r"checksums\.json cannot be read"):
        fetch("iwslt14-de-en", tmp_path, mirror=f"{mirror.url}/iwslt14-de-en")


@pytest.mark.parametrize("row", [5, None, [], {}, {"lines": "all"}, {"names": None}, {"bytes": "some"}, {"sha256": 5}])
def test_text_whose_note_is_damaged_is_written_again(tmp_path: Path, mirror: Mirror, row: Any) -> None:
    fetched = fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")
    noted = fetched.directory / "text" / "fetched.json"
    before, rows = noted.read_text(), json.loads(noted.read_text())
    rows["train.en"] = {**rows["train.en"], **row} if isinstance(row, dict) and row else row
    noted.write_text(json.dumps(rows))
    fetch("multi30k-en-de", tmp_path, mirror="http://127.0.0.1:9")
    assert noted.read_text() == before
    noted.write_text(100_000 * "[")
    fetch("multi30k-en-de", tmp_path, mirror="http://127.0.0.1:9")
    assert noted.read_text() == before


def test_the_environment_names_a_mirror_too(tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QKV_MIRROR", f"{mirror.url}/multi30k-en-de/")
    fetch("multi30k-en-de", tmp_path)
    assert len(mirror.asked) == 6
    for wrong in ("/some/folder", "http://[of-no-use"):
        with pytest.raises(ConfigError, match="named by a URL"):
            fetch("multi30k-en-de", tmp_path, mirror=wrong)


def test_a_wrong_checksum_is_told_and_the_file_removed(tmp_path: Path, mirror: Mirror) -> None:
    (mirror.directory / "multi30k-en-de" / "multi30k-train.en.gz").write_bytes(b"something else")
    with pytest.raises(DownloadError, match=r"is not what it should be: its sha256 is .* was published; it is removed"):
        fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")
    assert not [*(tmp_path / "downloads").glob("multi30k-train*")]


def test_what_is_brought_is_bounded_by_twice_its_size_in_the_table(tmp_path: Path, mirror: Mirror) -> None:
    small = Download("a.tgz", "http://a/a.tgz", 20_000)
    assert small.most_bytes == 40_000 + (1 << 20)
    talks = mirror.directory / "iwslt14-de-en" / "iwslt14-de-en.tgz"
    (listed,) = corpus("iwslt14-de-en").downloads()
    with talks.open("ab") as file:
        file.truncate(listed.most_bytes + 1)
    with pytest.raises(DownloadError, match=r"sends more than the 41,048,576 bytes that iwslt14-de-en\.tgz can have"):
        fetch("iwslt14-de-en", tmp_path, mirror=f"{mirror.url}/iwslt14-de-en")
    assert not [*(tmp_path / "downloads").glob("iwslt14*")]


def test_what_nobody_has_published_is_held_to_its_first_download(tmp_path: Path, mirror: Mirror) -> None:
    fetch("iwslt14-de-en", tmp_path, mirror=f"{mirror.url}/iwslt14-de-en")
    archive = tmp_path / "downloads" / "iwslt14-de-en.tgz"
    archive.write_bytes(archive.read_bytes() + b"\n")
    for path in (tmp_path / "iwslt14-de-en" / "text").iterdir():
        path.unlink()
    with pytest.raises(DownloadError, match=r"the first time; remove it and give the same command again"):
        fetch("iwslt14-de-en", tmp_path, mirror=f"{mirror.url}/iwslt14-de-en")


def test_a_checksum_is_noted_with_where_its_file_came_from(tmp_path: Path, mirror: Mirror) -> None:
    def noted(place: Path) -> object:
        fetch("iwslt14-de-en", place, mirror=f"{mirror.url}/iwslt14-de-en")
        return json.loads((place / "downloads" / "checksums.json").read_text())["iwslt14-de-en.tgz"]["url"]

    url = f"{mirror.url}/iwslt14-de-en/iwslt14-de-en.tgz"
    assert noted(tmp_path / "brought") == url
    # What is still here is what was brought, also when it is read again.
    shutil.rmtree(tmp_path / "brought" / "iwslt14-de-en")
    assert noted(tmp_path / "brought") == url
    # Nobody knows where a file came from that somebody put here.
    (tmp_path / "found" / "downloads").mkdir(parents=True)
    shutil.copy(tmp_path / "brought" / "downloads" / "iwslt14-de-en.tgz", tmp_path / "found" / "downloads")
    assert noted(tmp_path / "found") is None
    (tmp_path / "found" / "downloads" / "iwslt14-de-en.tgz").unlink()
    shutil.rmtree(tmp_path / "found" / "iwslt14-de-en")
    assert noted(tmp_path / "found") == url


def test_what_is_no_archive_is_not_held_to(tmp_path: Path, mirror: Mirror) -> None:
    served = mirror.directory / "iwslt14-de-en" / "iwslt14-de-en.tgz"
    archive = served.read_bytes()
    ledger = tmp_path / "downloads" / "checksums.json"
    said: list[str] = []

    def say(words: str) -> None:
        # It is said when it is so, and not before.
        assert ledger.exists() or "noted" not in words
        said.append(words)

    for content, told in (
        (b"\n<!DOCTYPE html><title>Sign in to this network</title>", "is a page of HTML and no corpus"),
        (b"<html>Sign in to this network</html>", "is a page of HTML and no corpus"),
        (b"half of something", "is damaged: .*; remove it"),
    ):
        served.write_bytes(content)
        with pytest.raises(TextError, match=rf"iwslt14-de-en\.tgz {told}"):
            fetch("iwslt14-de-en", tmp_path, mirror=f"{mirror.url}/iwslt14-de-en", say=say)
        (tmp_path / "downloads" / "iwslt14-de-en.tgz").unlink()
    served.write_bytes(archive)
    fetch("iwslt14-de-en", tmp_path, mirror=f"{mirror.url}/iwslt14-de-en", say=say)
    assert [words for words in said if "noted" in words] == [
        "iwslt14-de-en.tgz: its sha256 is noted in checksums.json, and holds from here on"
    ]


def test_a_disk_that_fills_up_with_text_is_told_and_leaves_no_half_file(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")
    text = tmp_path / "multi30k-en-de" / "text"
    (text / "train.en").unlink()
    monkeypatch.setattr("qkv.storage.free_bytes", lambda _: 7)
    with pytest.raises(FullDiskError, match=r"train\.en needs [\d,]+ bytes, and 7 are free"):
        fetch("multi30k-en-de", tmp_path, mirror="http://127.0.0.1:9")
    assert not [*text.glob("train.en*")]


def test_sides_that_are_not_of_one_another_are_refused(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = CORPORA["multi30k-en-de"]
    (train,) = found.training
    monkeypatch.setitem(vars(found), "training", (train._replace(target=found.valid[0].target),))
    monkeypatch.setitem(vars(found), "valid", ())
    shorter = stand_in(found, mirror.directory / "multi30k-en-de", PAIRS // 2)
    monkeypatch.setitem(CORPORA, "multi30k-en-de", shorter)
    path = mirror.directory / "multi30k-en-de" / "multi30k-train.en.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"one more\n"))
    source = shorter.training[0].source
    checksum = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    mended = shorter.training[0]._replace(source=source._replace(download=source.download._replace(checksum=checksum)))
    monkeypatch.setitem(vars(shorter), "training", (mended,))
    with pytest.raises(TextError, match=r"31 lines of en and 30 of de are not those of one another"):
        fetch("multi30k-en-de", tmp_path, mirror=f"{mirror.url}/multi30k-en-de")


def test_the_list_tells_sizes_and_terms(command: Command) -> None:
    told = command("fetch").out.decode()
    for name in CORPORA:
        assert re.search(rf"^{name} +[\d.]+ [GM]B  ", told, re.MULTILINE)
    assert told.count("not for commerce") == 2


def test_an_unknown_corpus_gets_a_suggestion(command: Command) -> None:
    ran = command("fetch", "wmt14-en-dee")
    assert (ran.code, ran.err) == (2, "qkv: error: no corpus is called 'wmt14-en-dee'; did you mean 'wmt14-en-de'?\n")


def test_the_papers_corpora_are_prepared_as_the_paper_did() -> None:
    german, french = (corpus(name).config() for name in ("wmt14-en-de", "wmt14-en-fr"))
    assert (german.text.vocabulary, french.text.vocabulary) == (37_000, 32_000)
    for config in (german, french):
        assert config.text.algorithm == "bpe"
        assert config.data.keep_copies
        assert config.data.keep_duplicates
        # No line that is kept at all can have a larger ratio.
        assert config.data.max_ratio >= config.data.max_bytes
