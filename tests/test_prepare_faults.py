"""Preparing when something is wrong: one clear error, nothing half done left, no process left running."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qkv.config import Config
from qkv.data.corpus import CorpusWriter
from qkv.errors import ConfigError, FullDiskError, QkvError, StorageError, TextError
from qkv.prepare import Prepared, directory, pipeline, prepare
from qkv.prepare.workers import Workers, run_apart
from qkv.storage import sync
from tests.test_prepare import CONFIG, leftovers, sentences, write_tsv


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "corpus.tsv", sentences(300))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no training pairs are left of 0; its files are empty"),
        (b"\t\n\tb\n", "no training pairs are left of 2; left out: empty 2"),
        (b"a\ta\nno tab\n", "left out: copy of the source 1, missing column 1"),
        ("a\tb\n".encode("utf-16"), "is UTF-16"),
    ],
)
def test_an_empty_corpus_is_told_why(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "corpus.tsv").write_bytes(content)
    with pytest.raises(TextError, match=told):
        prepare([tmp_path / "corpus.tsv"], tmp_path / "out", CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.tsv"]


@pytest.mark.parametrize("harm", ["a link", "a pipe"])
def test_the_lock_is_a_file_of_its_own(tmp_path: Path, corpus: Path, harm: str) -> None:
    """In a directory that was handed over it may be a link to a file that is precious, or a pipe that nobody reads."""
    notes, lock = tmp_path / "notes.txt", tmp_path / ".out.lock"
    notes.write_bytes(b"precious\n")
    if harm == "a link":
        lock.symlink_to(notes)
    else:
        os.mkfifo(lock)
    with pytest.raises(StorageError, match=r"cannot write .*\.out\.lock"):
        prepare([corpus], tmp_path / "out", CONFIG)
    assert notes.read_bytes() == b"precious\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_unequal_files_leave_nothing_behind(tmp_path: Path, workers: int) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text("one\n" * 20_000)
    target.write_text("un\n" * 20_001)
    with pytest.raises(TextError, match="has 20,000 lines"):
        prepare([source, target], tmp_path / "out", CONFIG, workers=workers)
    assert {path.name for path in tmp_path.iterdir()} == {"a.en", "a.fr"}


def test_a_vocabulary_too_large_is_told(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(TextError, match=r"is too large for this corpus.*--set text\.vocabulary="):
        prepare([corpus], tmp_path / "out", Config())
    assert leftovers(tmp_path) == []


def test_a_row_too_narrow_is_told(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(TextError, match=r"no pair of the train set fits data\.row_width 4"):
        prepare([corpus], tmp_path / "out", CONFIG.with_changes(data={"row_width": 4}))


def test_no_files_at_all_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no files to prepare"):
        prepare([], tmp_path / "out", CONFIG)


def test_what_a_look_can_tell_is_told_before_the_corpus_is_read(tmp_path: Path, corpus: Path) -> None:
    """The files are unequal, which shows at their end."""
    tokenizer = prepare([corpus], tmp_path / "data", CONFIG).directory / "tokenizer.model"
    (tmp_path / "a.en").write_text("one\n" * 2)
    (tmp_path / "a.fr").write_text("un\n")
    (tmp_path / "empty.tsv").touch()
    files, other = [tmp_path / "a.en", tmp_path / "a.fr"], CONFIG.with_changes(text={"vocabulary": 390})
    with pytest.raises(ConfigError, match=r"text\.vocabulary is 390"):
        prepare(files, tmp_path / "out", other, tokenizer=tokenizer)
    with pytest.raises(TextError, match="is too small"):
        prepare(files, tmp_path / "out", CONFIG.with_changes(text={"vocabulary": 200}))
    with pytest.raises(ConfigError, match="cannot be a language's tag"):
        prepare(files, tmp_path / "out", CONFIG.with_changes(text={"target_language": "?"}))
    with pytest.raises(TextError, match="no validation pairs are left of 0; its files are empty"):
        prepare(files, tmp_path / "out", CONFIG, valid=[tmp_path / "empty.tsv"])


def test_names_that_are_not_utf_8_are_told_before_the_corpus_is_read(tmp_path: Path, corpus: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    with pytest.raises(ConfigError, match=r"caf\\xe9 is not UTF-8"):
        prepare([corpus], tmp_path / name, CONFIG)
    (tmp_path / name).mkdir()
    moved = corpus.rename(tmp_path / name / "corpus.tsv")
    with pytest.raises(ConfigError, match=r"caf\\xe9/corpus\.tsv is not UTF-8"):
        prepare([moved], tmp_path / "out", CONFIG)
    # The way out that the message names.
    (tmp_path / "link").symlink_to(tmp_path / name)
    prepare([tmp_path / "link" / "corpus.tsv"], tmp_path / "link" / "out", CONFIG).verify()


def test_no_workers_at_all_are_told(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(ConfigError, match="0 workers cannot"):
        prepare([corpus], tmp_path / "out", CONFIG, workers=0)


def test_a_full_disk_is_one_line_and_leaves_nothing(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(CorpusWriter, "extend", full)
    with pytest.raises(StorageError, match="the disk is full"):
        prepare([corpus], tmp_path / "out", CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.tsv"]


@contextlib.contextmanager
def small_disk(place: Path, options: str) -> Iterator[Path]:
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("only root may mount a small disk; the simulated one is tested above")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_really_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_tsv(tmp_path / "corpus.tsv", sentences(3000))
    with small_disk(tmp_path / "disk", "size=256k") as disk:
        with pytest.raises(FullDiskError, match=r"needs about \d+\.\d kB, and only \d+\.\d kB are free there; make"):
            prepare([corpus], disk / "out", CONFIG)
        monkeypatch.setattr("qkv.prepare.directory._SPACE", 0.0)
        with pytest.raises(FullDiskError, match="the disk is full"):
            prepare([corpus], disk / "out", CONFIG)
        assert list(disk.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, corpus: Path) -> None:
    # Permission bits do not stop root; a read-only file system does.
    refused = pytest.raises(StorageError, match=r"cannot write .*out: Read-only file system")
    with small_disk(tmp_path / "disk", "ro") as disk, refused:
        prepare([corpus], disk / "out", CONFIG)


def test_a_parent_that_is_a_file_is_told(corpus: Path) -> None:
    with pytest.raises(QkvError, match=r"corpus\.tsv"):
        prepare([corpus], corpus / "out", CONFIG)


SCRIPT = """
import sys, time
from pathlib import Path
from qkv.prepare import encode, prepare
from tests.test_prepare import CONFIG

def stay(*arguments):
    print("busy", flush=True)
    time.sleep(60)

if __name__ == "__main__":
    encode._QUICK_BYTES = 0
    setattr(encode, sys.argv[2], stay)
    try:
        prepare([Path(sys.argv[1])], Path(sys.argv[1]).parent / "out", CONFIG, workers=2)
    except KeyboardInterrupt:
        sys.exit(130)
"""


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pids: list[int]) -> bool:
    end = time.monotonic() + 60
    while any(map(alive, pids)):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(params=["_write_sample", "_learn"])
def busy(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A prepare with two workers that stays where it draws lines for the vocabulary, or where these are learned."""
    corpus = write_tsv(tmp_path / "corpus.tsv", sentences(2000))
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), str(corpus), request.param],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_interrupted_it_ends_its_workers_and_leaves_nothing(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    workers = children(busy.pid)
    assert workers
    # As a terminal does: the whole group gets the interrupt.
    os.killpg(busy.pid, signal.SIGINT)
    _, told = busy.communicate(timeout=60)
    assert busy.returncode == 130
    assert "Traceback" not in told
    assert len(told.splitlines()) <= 1
    assert gone(workers)
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.tsv", "script.py"}


def test_killed_its_workers_go_and_the_next_prepare_cleans_up(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    workers = children(busy.pid)
    with pytest.raises(ConfigError, match="another process is preparing"):
        prepare([tmp_path / "corpus.tsv"], tmp_path / "out", CONFIG)
    busy.kill()
    busy.wait()
    assert gone(workers)
    assert sorted(leftovers(tmp_path)) == [".out.lock", ".out.partial"]
    assert not (tmp_path / "out").exists()
    prepare([tmp_path / "corpus.tsv"], tmp_path / "out", CONFIG).verify()
    assert leftovers(tmp_path) == []


def test_finished_work_is_safe_from_a_second_process_until_it_is_in_its_place(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one comes when all is written and is only to be synced and moved."""
    refused: list[str] = []

    def come_between(path: Path) -> None:
        monkeypatch.setattr(directory, "sync", sync)
        with pytest.raises(ConfigError, match="another process is preparing") as raised:
            prepare([corpus], tmp_path / "out", CONFIG)
        refused.append(str(raised.value))
        sync(path)

    monkeypatch.setattr(directory, "sync", come_between)
    prepare([corpus], tmp_path / "out", CONFIG).verify()
    assert len(refused) == 1
    assert leftovers(tmp_path) == []


def test_what_another_process_finished_just_before_is_used(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_too_early(output: Path, request: directory.Request) -> Prepared | None:
        monkeypatch.setattr(pipeline, "existing", directory.existing)
        assert directory.existing(output, request) is None
        prepare([corpus], output, CONFIG)
        return None

    monkeypatch.setattr(pipeline, "existing", look_too_early)
    assert prepare([corpus], tmp_path / "out", CONFIG).reused
    assert leftovers(tmp_path) == []


def test_only_one_at_a_time_holds_a_place(tmp_path: Path) -> None:
    """Many take and remove the lock in turn, so that some open a file that is gone when they lock it."""

    def hold(_: int) -> bool:
        try:
            with directory.held(tmp_path / "out"):
                # Fails where another is inside.
                (tmp_path / "inside").mkdir()
                (tmp_path / "inside").rmdir()
        except ConfigError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        held = [*threads.map(hold, range(4000))]
    assert any(held)
    assert [*tmp_path.iterdir()] == []


def die(_: int) -> None:
    os._exit(9)


def test_a_killed_worker_is_told_instead_of_waited_for() -> None:
    with pytest.raises(StorageError, match="a worker process was killed"), Workers(2) as workers:
        list(workers.map(die, range(4)))
    with pytest.raises(StorageError, match="a worker process was killed"):
        run_apart(die, 1)


def fail(number: int) -> None:
    raise TextError(f"wrong with {number}")


def test_what_goes_wrong_in_a_worker_is_raised_here() -> None:
    with pytest.raises(TextError, match="wrong with 3"), Workers(2) as workers:
        list(workers.map(fail, [3, 4]))
    with pytest.raises(TextError, match="wrong with 5"):
        run_apart(fail, 5)


def test_tasks_are_taken_no_faster_than_they_are_done() -> None:
    taken: list[int] = []
    with Workers(2) as workers:
        results = workers.map(abs, (taken.append(number) or number for number in range(100)))  # type: ignore[func-returns-value]
        assert next(results) == 0
        assert len(taken) < 10
        assert list(results) == list(range(1, 100))
