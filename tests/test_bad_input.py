"""A user's mistake is one line on standard error and an exit code, and blocks no second try."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

import qkv
from qkv.engines.sessions import working
from qkv.prepare import prepare
from qkv.run import RunDirectory
from tests import toy
from tests.test_cli import QUICKLY, SMALL
from tests.test_prepare_faults import small_disk
from tests.toy import Command, Ran

ROOT = Path(qkv.__file__).parents[1]


def one_line(ran: Ran, code: int, *told: str) -> None:
    """The command ended with this code and one line, the last, that says all of this."""
    assert ran.code == code, ran.err
    errors = [line for line in ran.err.splitlines() if line.startswith("qkv: error: ")]
    assert len(errors) == 1, ran.err
    assert ran.err.splitlines()[-1] == errors[0]
    assert "Traceback" not in ran.err
    for words in told:
        assert words in errors[0]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))


@pytest.fixture
def run(toy_run: Path, tmp_path: Path) -> Path:
    """A copy of a run, to be spoilt."""
    shutil.copytree(toy_run, tmp_path / "spoilt")
    return tmp_path / "spoilt"


# What is typed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["transalte"], "there is no command 'transalte' (did you mean translate?); see qkv --help"),
        (["translate", "--domian", "docs"], "--domian (did you mean --domain?); see qkv translate --help"),
        (["average"], "the following arguments are required: RUN; see qkv average --help"),
        (["score"], "there are several directions"),
        (["translate", "--model", "nowhere"], "no such directory: nowhere; name a model of `qkv export`"),
        (["translate", "--model", "."], "there is no model in .; name a model of `qkv export`"),
        (["serve", "--port", "0", "--model", "nowhere"], "no such directory: nowhere; name a model of `qkv export`"),
        (["evaluate", "nowhere", "--tests", "a.en-de.tsv"], "no such directory: nowhere; name a model of"),
        (["export", "nowhere", "--output", "model"], "no such run directory: nowhere; name one that `qkv train`"),
        (["pack", "nowhere", "--output", "parcel"], "no such run directory: nowhere; name one that `qkv train`"),
        (
            ["translate", "Hello world.", "--to", "fr"],
            "no such run directory: Hello world.; text is given on standard input: "
            "echo 'Hello world.' | qkv translate --from en --to fr",
        ),
        (["translate", "Don't stop", "--to", "fr"], """echo 'Don'"'"'t stop' | qkv translate"""),
        (["translate", 99 * "Much text.\n", "--to", "fr"], "Much text. …' | qkv translate --from en"),
        (["translate", "Why?"], "echo 'Why?' | qkv translate --from en --to de"),
        (["train", "a", "b", "--foo"], "unrecognized arguments: --foo"),
        (["translate", "run", "--beam", "four"], "invalid int value: 'four'"),
        (["train", "a.en", "b.fr"], "train needs --output"),
        (["train", "--output", "run"], "either files of parallel text or --data"),
        (["train", "a.tsv", "--data", "data", "--output", "run"], "either files of parallel text or --data"),
        (["train", "a.tsv", "--recipe", "bse", "--output", "run"], "no recipe is called 'bse'; did you mean 'base'?"),
        (["recipes", "basis"], "did you mean 'base'?"),
        (["train", "a.tsv", "--set", "training.setps=5", "--output", "run"], "did you mean 'training.steps'?"),
        (["train", "a.tsv", "--set", "training.steps", "--output", "run"], "--set takes NAME=VALUE"),
        (["train", "a.tsv", "--set", "training.steps=many", "--output", "run"], "takes a whole number, not 'many'"),
        (["train", "a.tsv", "--set", "training.steps=0", "--output", "run"], "it must be at least 1"),
        (["train", "a.tsv", "--set", "training.seed=99999999999999999999", "--output", "run"], "training.seed is"),
        (
            ["train", "--data", "data", "--set", "text.vocabulary=9", "--output", "run"],
            "data is not prepared data",
        ),
        (["train", "--data", "data", "--to", "fr", "--output", "run"], "--to: settled when data was prepared"),
        (["train", "nowhere.en", "nowhere.fr", "--output", "run"], "no such file: nowhere.en"),
        (["prepare", "nowhere.tsv", "--output", "data"], "no such file: nowhere.tsv"),
        (["prepare", ".", "x", "--output", "data"], "is a directory; give a file of text"),
        (["train", "--data", "nowhere", "--output", "run"], "nowhere is not prepared data"),
        (["translate", "nowhere"], "no such run directory: nowhere; name one that `qkv train` has made, or a model of"),
        (["translate", "."], ". is not a run directory: it has no config.json"),
        (["translate", "nowhere", "--n-best", "0"], "--n-best is 0"),
        (["translate", "nowhere", "--sample", "--temperature", "0"], "temperature is 0"),
        (["translate", "nowhere", "--sample", "--temperature", "nan"], "temperature is nan"),
        (["translate", "nowhere", "--sample", "--top-p", "2"], "top_p is 2"),
        (["translate", "nowhere", "--input", "missing.txt"], "no such file: missing.txt"),
        (["average", "nowhere"], "no such run directory: nowhere"),
        (["evaluate", "nowhere.txt", "--reference", "missing.txt"], "no such file: missing.txt"),
        (["evaluate", "nowhere.txt"], "needs --reference, or --test"),
        (["evaluate", "x", "--test", "y", "--reference", "z"], "leave out --source and --reference"),
    ],
)
def test_what_was_typed_wrong_is_told(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    one_line(command(*arguments), 2, told)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["prepare", "NAME/train.tsv", "--output", "data"],
        ["prepare", "train.tsv", "--output", "NAME"],
        ["train", "train.tsv", "--output=NAME"],
        ["train", "--data", "NAME", "--dry-run"],
        ["translate", "NAME"],
        ["evaluate", "NAME", "--reference", "reference.txt"],
        ["plot", "run", "--output", "NAME"],
        ["average", "NAME"],
    ],
)
def test_a_name_that_is_not_utf_8_is_told(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [argument.replace("NAME", os.fsdecode(b"caf\xe9")) for argument in arguments]
    one_line(command(*given), 2, r"caf\xe9", "is not UTF-8; rename it")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("device", ["cuda:77", "gpu", "meta", ""])
def test_a_device_that_is_not_there_is_told(command: Command, toy_run: Path, device: str) -> None:
    one_line(command("translate", toy_run, "--device", device, given=b"a\n"), 2, "device")


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda:", ""])
def test_what_is_no_device_is_none_of_an_exported_model_either(command: Command, exported: Path, device: str) -> None:
    one_line(command("translate", exported, "--device", device, given=b"a\n"), 2, f"no device is called {device!r}")


@pytest.mark.parametrize(("device", "warned"), [("auto", False), ("cpu", False), ("cuda", True), ("cuda:1", True)])
def test_an_exported_model_is_on_the_cpu_and_says_so(
    command: Command, exported: Path, device: str, warned: bool
) -> None:
    ran = command("translate", exported, "--device", device, given=b"basa\n")
    assert (ran.code, ran.lines, f"for CPUs: {device} is of no use" in ran.err) == (0, ["asab"], warned)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--beam", "0"], "search.beam is 0"),
        (["--beam", "2", "--n-best", "3"], "the 3 best need a beam of at least 3, not 2"),
        (["--length-penalty", "-1"], "search.length_penalty is -1"),
        (["--sample", "--seed", "-1"], "the seed is -1"),
    ],
)
def test_a_search_that_cannot_be_is_told(command: Command, toy_run: Path, options: list[str], told: str) -> None:
    one_line(command("translate", toy_run, *options, given=b"basa\n"), 2, told)


# What is in the files


def test_unequal_files_are_told_and_a_second_try_works(command: Command, tmp_path: Path) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.fr"
    sources, targets = zip(*toy.pairs(120), strict=True)
    source.write_text("\n".join(sources) + "\n")
    target.write_text("\n".join(targets[1:]) + "\n")
    arguments = ["train", source, target, "--output", tmp_path / "run", *SMALL, *QUICKLY]
    one_line(command(*arguments), 3, "has 120 lines and", "has 119")
    target.write_text("\n".join(targets) + "\n")
    assert command(*arguments).code == 0


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\t\n"])
def test_an_empty_corpus_is_told(command: Command, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "corpus.tsv").write_bytes(content)
    ran = command("train", tmp_path / "corpus.tsv", "--output", tmp_path / "run", *SMALL, *QUICKLY)
    one_line(ran, 3, "no training pairs are left")


def test_a_vocabulary_too_large_is_told_and_a_second_try_works(command: Command, tmp_path: Path, corpus: Path) -> None:
    arguments = ["train", corpus, "--output", tmp_path / "run", *QUICKLY]
    one_line(command(*arguments), 3, "text.vocabulary 1000 is too large for this corpus", "--set text.vocabulary=")
    assert command(*arguments, *SMALL).code == 0


def test_a_tokenizer_that_is_none_is_told(command: Command, tmp_path: Path, corpus: Path) -> None:
    ran = command("train", corpus, "--tokenizer", corpus, "--output", tmp_path / "run", *SMALL, *QUICKLY)
    one_line(ran, 3, "corpus.tsv: not a SentencePiece model")


def test_broken_utf_8_is_told_with_its_line(command: Command, toy_run: Path, tmp_path: Path) -> None:
    ran = command("translate", toy_run, given=b"basa\nko\xffdu\n")
    one_line(ran, 3, "standard input, line 2: not UTF-8 at byte 3")
    (tmp_path / "in").write_bytes(b"\xc3\n")
    one_line(command("translate", toy_run, "--input", tmp_path / "in"), 3, "in, line 1: not UTF-8")


def test_utf_16_is_told(command: Command, toy_run: Path) -> None:
    one_line(command("translate", toy_run, given="basa\n".encode("utf-16")), 3, "is UTF-16, not UTF-8")


def test_a_test_set_that_is_none_is_told(command: Command, toy_run: Path, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("basa\tasab\nkodu\n")
    one_line(command("evaluate", toy_run, "--test", tmp_path / "test.tsv"), 3, "test.tsv, line 2: no tab")
    (tmp_path / "test.tsv").write_text("")
    one_line(command("evaluate", toy_run, "--test", tmp_path / "test.tsv"), 3, "no")


def test_systems_of_other_lengths_are_told(command: Command, toy_run: Path, tmp_path: Path) -> None:
    for name, content in (("one", "a\n"), ("two", "a\nb\n")):
        (tmp_path / name).write_text(content)
    one_line(command("evaluate", tmp_path / "one", "--reference", tmp_path / "two"), 3, "1", "2")
    one_line(command("evaluate", toy_run, "--reference", tmp_path / "two"), 2, "give --source or --test")
    ran = command("evaluate", tmp_path / "one", tmp_path / "one", "--reference", tmp_path / "one")
    one_line(ran, 2, "is given twice")


@pytest.mark.parametrize("name", ["train.source.ids", "train.lines", "valid.target.offsets", "tokenizer.model"])
@pytest.mark.parametrize("how", ["truncated", "missing"])
def test_damaged_data_is_told(command: Command, toy_data: Path, tmp_path: Path, name: str, how: str) -> None:
    shutil.copytree(toy_data, tmp_path / "data")
    path = tmp_path / "data" / name
    content = path.read_bytes()
    path.unlink()
    if how == "truncated":
        path.write_bytes(content[:-1])
    ran = command("train", "--data", tmp_path / "data", "--output", tmp_path / "run", *QUICKLY)
    one_line(ran, 3, name, "prepare again")
    assert not (tmp_path / "run").exists()


# What is in a run directory


def damage(name: str) -> Callable[[Path], None]:
    def write(run: Path) -> None:
        (run / name).write_bytes(b"\x00damaged")

    return write


def lose(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).unlink()


def other_tokenizer(run: Path) -> None:
    corpus = toy.write_tsv(run.parent / "other.tsv", toy.pairs(150, seed=8))
    other = prepare([corpus], run.parent / "other", toy.LEARNS.with_changes(text={"vocabulary": 320}))
    shutil.copy(other.directory / "tokenizer.model", run / "tokenizer.model")


def untrained(run: Path) -> None:
    shutil.rmtree(run / "final")
    shutil.rmtree(run / "checkpoints")


def changed(**settings: Any) -> Callable[[Path], None]:
    """Edits the settings of the model by hand."""

    def edit(run: Path) -> None:
        config = json.loads((run / "config.json").read_text())
        config["model"] |= settings
        (run / "config.json").write_text(json.dumps(config))

    return edit


@pytest.mark.parametrize(
    ("spoil", "code", "told"),
    [
        (damage("config.json"), 3, "config.json is damaged, or not a run's"),
        (lose("config.json"), 2, "is not a run directory: it has no config.json"),
        (damage("tokenizer.model"), 3, "tokenizer.model: not a SentencePiece model"),
        (lose("tokenizer.model"), 3, "tokenizer.model is missing; give the command that trained the run again"),
        (other_tokenizer, 3, "is not the tokenizer that"),
        (damage("final/weights.safetensors"), 3, "weights.safetensors is damaged"),
        (lose("final/manifest.json"), 3, "its manifest.json cannot be read"),
        (untrained, 3, "has no weights yet; train it first"),
        (changed(width=32), 3, "model.width from 64 to 32; change that back"),
        (changed(heads=2), 3, "config.json was changed since final was written: model.heads from 4 to 2"),
        (changed(positions="rotary"), 3, "model.positions from sinusoidal to rotary"),
    ],
)
def test_a_spoilt_run_is_told(command: Command, run: Path, spoil: Callable[[Path], None], code: int, told: str) -> None:
    spoil(run)
    one_line(command("translate", run, given=b"basa\n"), code, told)
    one_line(command("evaluate", run, "--test", toy.write_tsv(run / "test.tsv", toy.held_out())), code, told)


def test_a_run_begun_with_other_settings_is_told(command: Command, run: Path) -> None:
    corpus = run.parent / "corpus.tsv"
    toy.write_tsv(corpus, toy.pairs(3000))
    ran = command("train", corpus, "--output", run, "--recipe", "small")
    one_line(ran, 2, "was begun with other settings", "model.width was 64, now 192", "use another --output")


def test_a_run_that_is_being_trained_is_told(command: Command, tmp_path: Path, corpus: Path) -> None:
    arguments = ["train", corpus, "--output", tmp_path / "run", *SMALL, *QUICKLY]
    with RunDirectory(tmp_path / "run").held():
        one_line(command(*arguments), 2, "another process is at work on")
    assert command(*arguments).code == 0


def test_averaging_waits_for_whoever_writes_to_the_run(command: Command, run: Path) -> None:
    with RunDirectory(run).held():
        one_line(command("average", run, "--last", 2), 2, "another process is at work on")
    assert command("average", run, "--last", 2).code == 0


def test_a_lock_that_cannot_be_is_told_by_its_name(command: Command, run: Path) -> None:
    (run / "lock").unlink()
    (run / "lock").mkdir()
    one_line(command("average", run, "--last", 2), 3, f"cannot write {run / 'lock'}: Is a directory")


def test_a_plot_of_nothing_is_told(command: Command, tmp_path: Path) -> None:
    one_line(command("plot", tmp_path), 2, "log.jsonl")


# Where it goes


def test_an_output_that_is_a_file_is_told(command: Command, tmp_path: Path, corpus: Path, toy_data: Path) -> None:
    one_line(command("train", corpus, "--output", corpus, *SMALL, *QUICKLY), 2, f"not a directory: {corpus}")
    one_line(command("train", corpus, "--output", corpus / "run", *SMALL, *QUICKLY), 3, "Not a directory")
    one_line(command("train", "--data", toy_data, "--output", corpus, *QUICKLY), 2, f"not a directory: {corpus}")
    one_line(command("prepare", corpus, "--output", corpus, *SMALL), 2, "exists and is not prepared data")
    assert corpus.read_text()
    assert list(tmp_path.iterdir()) == [corpus]


def test_an_output_that_is_somebody_elses_is_told_and_kept(command: Command, tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"architectures": ["MarianMTModel"]}')
    ran = command("train", corpus, "--output", tmp_path / "model", *SMALL, *QUICKLY)
    one_line(ran, 3, "config.json is damaged, or not a run's")
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["config.json"]


def test_an_output_that_is_the_input_is_told_and_kept(command: Command, toy_run: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("basa\n")
    (tmp_path / "link").symlink_to(tmp_path / "text")
    ran = command("translate", toy_run, "--input", tmp_path / "text", "--output", tmp_path / "link")
    one_line(ran, 2, "which would be lost")
    assert (tmp_path / "text").read_text() == "basa\n"


def test_a_translation_that_cannot_be_written_is_told(command: Command, toy_run: Path, tmp_path: Path) -> None:
    for output, told in (
        (tmp_path, "Is a directory"),
        (tmp_path / "a" / "b", "No such file or directory"),
    ):
        ran = command("translate", toy_run, "--output", output, given=b"basa\n")
        one_line(ran, 3, f"cannot write {output}: {told}")
    ran = command("translate", toy_run, "--output", "/dev/full", given=b"basa\n")
    one_line(ran, 5, "the disk is full: /dev/full cannot be written; make room")


def test_a_full_disk_is_told_and_a_second_try_goes_on(command: Command, tmp_path: Path, toy_data: Path) -> None:
    with small_disk(tmp_path / "disk", "size=1m") as disk:
        # Room for one checkpoint of three times 80 kB, and not for two.
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(650_000))
        arguments = ["train", "--data", toy_data, "--output", disk / "run", *QUICKLY]
        one_line(command(*arguments), 5, "the disk is full", "step-0000004 needs", "give the same command again")
        assert [path.name for path in (disk / "run" / "checkpoints").iterdir()] == ["step-0000002"]
        ballast.unlink()
        ran = command(*arguments)
        assert ran.code == 0
        assert "going on after step 2" in ran.err


def test_a_place_that_may_not_be_written_is_told(
    command: Command, tmp_path: Path, corpus: Path, toy_data: Path
) -> None:
    # Permission bits do not stop root; a read-only file system does.
    with small_disk(tmp_path / "disk", "ro") as disk:
        ran = command("train", corpus, "--output", disk / "run", *SMALL, *QUICKLY)
        one_line(ran, 3, "cannot write", "Read-only file system")
        ran = command("train", "--data", toy_data, "--output", disk / "run", *QUICKLY)
        one_line(ran, 3, "cannot write", "Read-only file system")


@contextlib.contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Inside, permissions hold for root too: this thread lays down what passes them by, and takes it up again."""
    library = ctypes.CDLL(None)
    version, no_pass = 0x20080522, ~(1 << 1 | 1 << 2)
    header, sets = (ctypes.c_uint32 * 2)(version, 0), (ctypes.c_uint32 * 6)()
    assert library.capget(header, sets) == 0
    effective = sets[0]
    sets[0] = effective & no_pass
    assert library.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = effective
        assert library.capset(header, sets) == 0


@pytest.mark.parametrize(
    "name",
    [
        "config.json", "tokenizer.model", "final", "final/manifest.json", "final/state.json",
        "final/weights.safetensors", "checkpoints", ".",
    ],
)  # fmt: skip
def test_what_may_not_be_read_of_a_run_is_told(command: Command, run: Path, name: str) -> None:
    (run / name).chmod(0)
    with bound_by_permissions():
        one_line(command("translate", run, given=b"a\n"), 3, name.removeprefix("."), "Permission denied")
        arguments = ["--output", run, "--recipe", "tiny"]
        ran = command("train", toy.write_tsv(run.parent / "corpus.tsv", toy.pairs(120)), *arguments)
        assert (ran.code, "Traceback" in ran.err) in ((2, False), (3, False))
    (run / name).chmod(0o755)


def test_what_may_not_be_read_or_written_is_told(command: Command, run: Path, tmp_path: Path, corpus: Path) -> None:
    secret, locked, kept = tmp_path / "secret.tsv", tmp_path / "locked", tmp_path / "kept"
    for path, mode in ((secret, 0), (kept, 0o444)):
        path.write_text("basa\tasab\n")
        path.chmod(mode)
    locked.mkdir(mode=0o555)
    run.chmod(0o555)
    (run / "lock").chmod(0o444)
    with bound_by_permissions():
        for more in ([], ["--dry-run"]):
            one_line(command("train", secret, "--output", tmp_path / "new", *more), 3, f"cannot read {secret}")
            one_line(command("train", corpus, "--output", locked / "new", *more), 3, f"cannot write {locked / 'new'}")
        one_line(command("prepare", corpus, *SMALL, "--output", locked / "new"), 3, f"cannot write {locked / 'new'}")
        one_line(command("average", run, "--last", 1), 3, f"cannot write {run / 'lock'}: Permission denied")
        for output in (locked / "new", kept):
            ran = command("translate", run, "--output", output, given=b"basa\n")
            one_line(ran, 3, f"cannot write {output}: Permission denied")
        one_line(command("translate", run, "--input", secret), 3, f"cannot read {secret}: Permission denied")
        one_line(command("evaluate", run, "--test", secret), 3, f"cannot read {secret}: Permission denied")
        assert command("translate", run, given=b"basa kodu\n").lines == ["udok asab"]
    run.chmod(0o755)
    assert kept.read_text() == "basa\tasab\n"
    assert not (tmp_path / "new").exists()


# What is not installed


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("torch", ["train", "a.tsv", "--output", "run"], "train"),
        ("torch", ["train", "a.tsv", "--dry-run"], "train"),
        ("torch", ["translate", "run"], "train"),
        ("torch", ["average", "run"], "train"),
        ("safetensors", ["translate", "run"], "train"),
        ("sacrebleu", ["evaluate", "same.txt", "--reference", "same.txt"], "train"),
        ("matplotlib", ["plot", "run"], "plot"),
    ],
)
def test_a_package_that_is_not_installed_is_told(
    tmp_path: Path, missing: str, arguments: list[str], extra: str
) -> None:
    (tmp_path / "same.txt").write_text("a b c d\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    (tmp_path / "run" / "log.jsonl").write_text('{"kind": "train", "step": 1, "loss": 2.0}\n')
    program = f"import sys; sys.modules[{missing!r}] = None; from qkv.cli import main; sys.exit(main({arguments!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL
    )
    one_line(Ran(ran.returncode, ran.stdout, ran.stderr.decode()), 2, missing, f"pip install '.[{extra}]'")


@pytest.mark.parametrize("arguments", [["train", "a.tsv", "--output", "run"], ["translate", "run"]])
@pytest.mark.parametrize("raised", ["ImportError('libcudart.so is not there')", "OSError('libtorch.so: no symbol')"])
def test_a_package_that_cannot_be_imported_is_told(tmp_path: Path, arguments: list[str], raised: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("from torch import inside\n")
    (tmp_path / "torch" / "inside.py").write_text(f"raise {raised}\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    ran = subprocess.run(
        [sys.executable, "-m", "qkv", *arguments], capture_output=True, cwd=tmp_path, env=environment, input=b"a\n"
    )
    told = raised.split("'")[1]
    words = ("torch is installed and cannot be imported", told, "pip install --force-reinstall torch")
    one_line(Ran(ran.returncode, ran.stdout, ran.stderr.decode()), 2, *words)


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", "nowhere"],
        ["translate", "."],
        ["pack", "nowhere", "--output", "x"],
        ["export", ".", "--output", "x"],
        ["average", "nowhere"],
        ["distill", ".", "--output", "x"],
    ],
)
def test_who_has_no_torch_hears_of_a_wrong_name_first(tmp_path: Path, arguments: list[str]) -> None:
    program = f"import sys; sys.modules['torch'] = None; from qkv.cli import main; sys.exit(main({arguments!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL
    )
    one_line(Ran(ran.returncode, ran.stdout, ran.stderr.decode()), 2, "run directory", arguments[1])


# What is found out before it costs anything


def test_sources_that_do_not_pair_up_are_told_before_translating(command: Command, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "reference.txt").write_text("a\n", encoding="utf-8")
    # The run does not even exist: nothing was loaded.
    ran = command("evaluate", tmp_path, "--source", tmp_path / "source.txt", "--reference", tmp_path / "reference.txt")
    one_line(ran, 3, "2 sources but 1 references")


def test_a_flipped_byte_in_the_ids_is_told_before_training(command: Command, toy_data: Path, tmp_path: Path) -> None:
    data = shutil.copytree(toy_data, tmp_path / "data")
    ids = bytearray((data / "train.source.ids").read_bytes())
    ids[10] ^= 1
    (data / "train.source.ids").write_bytes(ids)
    ran = command("train", "--data", data, "--output", tmp_path / "run", *QUICKLY)
    one_line(ran, 3, "train.source.ids", "is not what was written")
    assert not (tmp_path / "run").exists()


def test_a_manifest_without_its_parts_is_told(command: Command, toy_data: Path, tmp_path: Path) -> None:
    data = shutil.copytree(toy_data, tmp_path / "data")
    (data / "prepared.json").write_text('{"format": 1}', encoding="utf-8")
    one_line(command("train", "--data", data, "--output", tmp_path / "run", *QUICKLY), 3, "prepared.json is damaged")


@pytest.mark.parametrize(
    "told",
    [
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 4503599627370496 bytes. Error code 12 (Cannot allocate memory)",
        "[enforce fail at alloc_cpu.cpp:97] DefaultCPUAllocator: not enough memory: you tried to allocate 8",
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 139.72 GiB.",
        "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "C10 Out of Memory. Trying to allocate 8",
        "std::bad_alloc",
    ],
)
def test_too_little_memory_is_told(command: Command, toy_run: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise RuntimeError(told)

    monkeypatch.setattr("qkv.translate.searcher.beam_search", full)
    one_line(command("translate", toy_run, given=b"a\n"), 4, "not enough memory")


@pytest.mark.parametrize(
    "refusal",
    [
        runtime.Fail("[ONNXRuntimeError] : 1 : FAIL : Load model from encoder.onnx failed:std::bad_alloc"),
        runtime.RuntimeException("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate memory for a buffer"),
    ],
)
def test_a_model_is_not_called_damaged_for_want_of_memory(
    command: Command, exported: Path, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    def full(*_: object, **__: object) -> None:
        raise refusal

    monkeypatch.setattr("qkv.engines.sessions.InferenceSession", full)
    one_line(command("translate", exported, given=b"a\n"), 4, "not enough memory")
    with pytest.raises(MemoryError), working():
        raise refusal


@pytest.mark.parametrize("told", ["CUDA error: an illegal memory access was encountered", "invalid memory format"])
def test_not_all_that_goes_wrong_with_memory_is_too_little_of_it(
    command: Command, toy_run: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(told)

    monkeypatch.setattr("qkv.translate.searcher.beam_search", broken)
    with pytest.raises(RuntimeError, match=told):
        command("translate", toy_run, given=b"a\n")


def test_files_given_as_one_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="train takes a list of files"):
        qkv.train("corpus.tsv", tmp_path / "run", qkv.recipe("tiny"))
