"""What README.md and docs/ promise is there: files behind links, commands with their options, modules, the tree."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from qkv.cli import build_parser

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "demo" / "README.md"]

_CODE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_MODULE = re.compile(r"python3? -m ((?:bench|tests)[\w.]*)")
_SPOKEN = re.compile(r"`qkv ([^`]+)`")
_BEHIND = {"|", "<", "<<<", ">", ">>", "2>", "&&", ";", "&"}
"""What ends the arguments of a command."""


def options_of_commands() -> dict[str, set[str]]:
    parser = build_parser()
    subparsers = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return {name: {*one._option_string_actions} for name, one in subparsers.choices.items()}


OPTIONS = options_of_commands()


def commands(text: str) -> Iterator[list[str]]:
    """The words behind every `qkv` at the beginning of a line of code, or behind a pipe."""
    for _, language, code in _CODE.findall(text):
        if language not in ("", "sh", "bash"):
            continue
        for line in code.replace("\\\n", " ").splitlines():
            for part in line.split("|"):
                with contextlib.suppress(ValueError):
                    words = shlex.split(part, comments=True)
                    if words[:1] == ["qkv"] and "…" not in line and "$" not in line:
                        yield [*_arguments(words[1:])]


def _arguments(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in _BEHIND:
            return
        yield word


def anchor(heading: str) -> str:
    """What a heading is called in an address."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for link in _LINK.findall(_CODE.sub("", text)):
        if re.match(r"\w+:", link):
            continue
        name, _, place = link.partition("#")
        target = document.parent / name if name else document
        assert target.exists(), link
        if place:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert place in map(anchor, headings), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_have_the_options_that_are_shown(document: Path) -> None:
    for words in commands(document.read_text(encoding="utf-8")):
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                build_parser().parse_args(words)
        except SystemExit as end:
            assert not end.code, f"qkv {shlex.join(words)}: {said.getvalue()}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_that_are_spoken_of_have_the_options_that_are_named(document: Path) -> None:
    for code in _SPOKEN.findall(_CODE.sub("", document.read_text(encoding="utf-8"))):
        name, *words = code.split()
        assert name in OPTIONS or name.startswith("-") or not name.isalpha() or name.isupper(), code
        options = {word.partition("=")[0] for word in words if word.startswith("--") and word != "--"}
        assert options <= OPTIONS.get(name, options), code


def test_commands_are_found_and_a_wrong_one_is_seen() -> None:
    found = [words for document in DOCUMENTS for words in commands(document.read_text(encoding="utf-8"))]
    assert len(found) > 60
    assert len({words[0] for words in found}) > 10
    assert [*commands("```sh\necho a | qkv translate run/ --to \\\n  de < in > out  # so\nls\n```\nqkv not code")] == [
        ["translate", "run/", "--to", "de"]
    ]
    with pytest.raises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
        build_parser().parse_args(["translate", "--no-such-option"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_that_are_to_be_run_are_there(document: Path) -> None:
    for name in _MODULE.findall(document.read_text(encoding="utf-8")):
        assert importlib.util.find_spec(name.rstrip(".")) is not None, name


def test_the_tree_of_the_readme_has_every_part() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = next(code for _, _, code in _CODE.findall(text) if code.startswith("qkv/\n"))
    named = set(re.findall(r"[\w.]+(?:/|\.py)", tree))
    there = {path.name + "/" * path.is_dir() for path in (ROOT / "qkv").iterdir() if not path.name.startswith("_")}
    assert {name for name in there if name.endswith(("/", ".py"))} <= named
    documents = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert documents <= set(re.findall(r"\w+", tree[tree.index("docs/") :]))
