"""Files and folders from the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qkv.settings import from_json, to_json
from tests.toy import Command


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with pages, a picture, what is hidden, and a link that leads out of it."""
    folder = tmp_path / "site"
    (folder / "deep" / ".hidden").mkdir(parents=True)
    (folder / "index.html").write_text('<html lang="xx"><p class="a">basa kodu</p>')
    (folder / "deep" / "notes.txt").write_text("basa kodu\n\nkodu\n")
    (folder / "deep" / "picture.png").write_bytes(b"\x89PNG\0")
    (folder / "deep" / ".hidden" / "a.txt").write_text("basa")
    (tmp_path / "secret.txt").write_text("basa")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


TRANSLATED = {
    "index.html": b'<html lang="yy"><p class="a">udok asab</p>',
    "deep/notes.txt": b"udok asab\n\nudok\n",
    "deep/picture.png": b"\x89PNG\0",
}


def test_a_file_is_translated_beside_itself(command: Command, toy_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>basa kodu <b>lumo</b> {name}</p>")
    ran = command("translate", toy_run, "--file", page, "--to", "yy")
    assert (ran.code, ran.out) == (0, b"")
    assert f"1 file translated, to {tmp_path / 'page.yy.html'}" in ran.err
    translation = (tmp_path / "page.yy.html").read_text()
    assert translation.count("<b>") == translation.count("</b>") == translation.count("{name}") == 1
    assert "udok asab" in translation


def test_a_folder_is_translated_to_one_beside_it(command: Command, toy_run: Path, site: Path) -> None:
    assert command("translate", toy_run, site, "--to", "yy").code == 0
    assert contents(site.with_name("site.yy")) == TRANSLATED


def test_a_folder_may_be_given_without_a_model(
    command: Command, toy_run: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a web site, such a file tells its name and icons.
    (site / "manifest.json").write_text("{}")
    shutil.copytree(toy_run, site.parent / "models" / "toy")
    config = site.parent / "models" / "toy" / "config.json"
    directions = {"source_language": "xx", "target_language": "yy"}
    config.write_text(to_json(from_json(config.read_text()).with_changes(text=directions)))
    monkeypatch.setenv("QKV_MODELS", str(site.parent / "models"))
    ran = command("translate", site, "--from", "xx", "--to", "yy")
    assert (ran.code, ran.out) == (0, b"")
    assert f"2 files translated, to {site}.yy" in ran.err
    assert contents(site.with_name("site.yy")) == {**TRANSLATED, "manifest.json": b"{}"}


@pytest.mark.parametrize("lost", ["", "tokenizer.model"])
def test_a_model_that_is_not_whole_is_no_folder_to_translate(
    command: Command, toy_run: Path, tmp_path: Path, lost: str
) -> None:
    run = tmp_path / "runs" / "toy"
    shutil.copytree(toy_run, run)
    for name in filter(None, ("config.json", lost)):
        (run / name).unlink()
    for given in (run, run.parent):
        ran = command("translate", given, "--to", "yy", given=b"basa\n")
        assert (ran.code, ran.out) == (2, b"")
        assert f"name a whole model, look for models in it with --model {given}, or" in ran.err
    assert {path.name for path in tmp_path.rglob("*") if path.name.endswith(".yy")} == set()


def test_an_exported_model_that_is_not_whole_is_no_folder_to_translate(
    command: Command, exported: Path, tmp_path: Path
) -> None:
    shutil.copytree(exported, tmp_path / "models" / "toy")
    for name in ("config.json", "tokenizer.model"):
        (tmp_path / "models" / "toy" / name).unlink()
        for given in (tmp_path / "models" / "toy", tmp_path / "models"):
            ran = command("translate", given, "--to", "yy", given=b"basa\n")
            assert (ran.code, ran.out, "having no config.json" in ran.err) == (2, b"", True)
    assert [path.name for path in tmp_path.iterdir()] == ["models"]


def test_what_is_done_is_not_done_again(command: Command, toy_run: Path, site: Path) -> None:
    command("translate", toy_run, site, "--to", "yy")
    done = site.with_name("site.yy") / "index.html"
    done.write_text("kept")
    (site / "deep" / "notes.txt").write_text("lumo")
    ran = command("translate", toy_run, site, "--to", "yy")
    assert (ran.code, done.read_text()) == (0, "kept")
    assert "1 of 2 files are there already" in ran.err
    assert (site.with_name("site.yy") / "deep" / "notes.txt").read_text() == "omul"
    command("translate", toy_run, site, "--to", "yy", "--again")
    assert done.read_bytes() == TRANSLATED["index.html"]


def test_a_file_that_cannot_be_translated_stops_no_others(command: Command, toy_run: Path, site: Path) -> None:
    (site / "bad.html").write_bytes(b"\xff\xfe\xff")
    (site / "bad.txt").write_bytes(b"caf\xe9")
    (site / "bad.po").write_text('msgid ""\nmsgstr "Content-Type: text/plain; charset=idna"\n')
    (site / "bad.docx").write_bytes(b"PK\5\6" + b"\xff" * 18)
    ran = command("translate", toy_run, site, "--to", "yy")
    assert ran.code == 3
    assert "bad.txt: line 1 is not utf-8; convert it" in ran.err
    assert "4 of 6 files could not be translated" in ran.err
    assert contents(site.with_name("site.yy")) == TRANSLATED


def test_a_folder_inside_the_one_that_is_translated_is_not_translated_itself(
    command: Command, toy_run: Path, site: Path
) -> None:
    for _ in range(2):
        assert command("translate", toy_run, "--file", site, "--to", "yy", "--output", site / "yy").code == 0
    assert contents(site / "yy") == TRANSLATED


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--file", "missing.txt", "--to", "yy"], "there is no file or folder missing.txt"),
        (["--file", "a.exe", "--to", "yy"], "a.exe: files of this kind cannot be translated; there are .txt"),
        (["--file", "a.txt"], "add --to"),
        (["--file", "a.txt", "--to", "../yy"], "is no language; give its code"),
        (["--file", "a.txt", "--to", "yy", "--output", "a.txt"], "would be lost"),
        (["--file", "a.txt", "a.exe", "--json", "--to", "yy"], "--file does not go with --json"),
        (["empty", "--to", "yy"], "empty has no file that can be translated; there are .txt"),
        (["--file", "pictures", "--to", "yy"], "pictures has no file that can be translated; there are .txt"),
        (["--again"], "--again: of use only with --file"),
    ],
)
def test_what_was_typed_wrong_is_told(
    command: Command,
    toy_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "a.exe"):
        Path(name).write_text("basa")
    for name in ("empty", "pictures"):
        Path(name).mkdir()
    Path("pictures", "a.png").touch()
    ran = command("translate", toy_run, *arguments)
    assert ran.code == 2
    assert told in ran.err
    assert Path("a.txt").read_text() == "basa"
    assert {path.name for path in Path().iterdir()} == {"a.txt", "a.exe", "empty", "pictures"}
