"""`make translate` hands text over as it was typed, whatever a shell would make of it, and says what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHOWS = """#!/bin/sh
printf '%s\\n' "$@"
cat
"""
"""In the place of the translator: its arguments, then what it would have translated."""

ODD = [
    "It costs $20, or 50 % of $USD.",
    "$(HOME) and ${HOME}, $$ and $(shell touch injected)",
    """'single', "double", `touch injected`, $(touch injected)""",
    "a \\backslash, a \\\\ and one at the end \\",
    "# 1 is no comment, a;b && touch injected | cat > injected",
    "= := ?= %s %n * ~",
    "Zwei  Leerzeichen, Größe, 日本語",
]

PYTHON = """#!/bin/sh
case "$*" in
"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*install*)
    for file in $PIP_CONSTRAINT; do test -f "$file" || exit 1; done
    cp shows .venv/bin/qkv
    ;;
esac
"""
"""In the place of an interpreter, with a pip that reads its list of constraints as pip does."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that has been set up already."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    executable(tmp_path / ".venv" / "bin" / "qkv", SHOWS)
    (tmp_path / ".venv" / ".light").touch()
    return tmp_path


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # This may itself have been started by make, which would be spoken to as a part of that.
    asked = {"TEXT", "FROM", "TO", "MFLAGS"}
    outside = {name: value for name, value in os.environ.items() if name not in asked and not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "translate", *arguments], cwd=checkout, env=outside | environment, capture_output=True, text=True
    )


def made(checkout: Path, *arguments: str, **environment: str) -> list[str]:
    """What the translator was given: two options with their values, then lines of text."""
    ran = make(checkout, *arguments, **environment)
    assert ran.returncode == 0, ran.stderr
    assert not (checkout / "injected").exists()
    return ran.stdout.splitlines()


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")


@needs_make
@pytest.mark.parametrize("text", ODD)
def test_text_reaches_the_translator_as_it_was_typed(checkout: Path, text: str) -> None:
    asked = ["translate", "--from", "en", "--to", "de"]
    assert made(checkout, f"TEXT={text}") == [*asked, text]
    assert made(checkout, TEXT=text) == [*asked, text]


@needs_make
def test_languages_are_no_commands_either(checkout: Path) -> None:
    odd = '"; touch injected; "$(touch injected)'
    assert made(checkout, f"FROM={odd}", f"TO={odd}", "TEXT=a") == ["translate", "--from", odd, "--to", odd, "a"]
    assert made(checkout, "TO=fr", TO="it")[1:5] == ["--from", "en", "--to", "fr"]


@needs_make
def test_without_text_there_is_an_example(checkout: Path) -> None:
    assert made(checkout)[-1] == "The animal didn't cross the street because it was too tired."


@needs_make
def test_who_has_no_network_is_asked_about_it(checkout: Path) -> None:
    (checkout / ".venv" / ".light").unlink()
    executable(
        checkout / ".venv" / "bin" / "python",
        """#!/bin/sh
case "$*" in *--version) exit 0 ;; esac
echo 'ERROR: ResolutionImpossible' >&2
exit 1
""",
    )
    ran = make(checkout)
    assert ran.returncode != 0
    assert "is there a network?" in ran.stderr
    assert not (checkout / ".venv" / ".light").exists()


@needs_make
def test_the_path_to_a_checkout_may_have_a_space_in_it(checkout: Path) -> None:
    spaced = checkout.rename(checkout.with_name("my clone"))
    shutil.rmtree(spaced / ".venv")
    executable(spaced / "shows", SHOWS)
    assert made(spaced, f"PYTHON={executable(checkout / 'python', PYTHON)}", "TEXT=a")[-1] == "a"


@needs_make
def test_setting_up_begins_anew_where_it_was_interrupted(checkout: Path) -> None:
    (checkout / ".venv" / ".light").unlink()
    executable(checkout / "shows", SHOWS)
    executable(checkout / ".venv" / "bin" / "python", "#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n")
    assert made(checkout, f"PYTHON={executable(checkout / 'python', PYTHON)}", "TEXT=a")[-1] == "a"
