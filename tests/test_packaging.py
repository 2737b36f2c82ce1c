"""The wheel: what is in it, what it asks for, and that it works where nothing else is."""

from __future__ import annotations

import email
import importlib.metadata
import itertools
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import qkv

ROOT = Path(qkv.__file__).parents[1]
CORE = {"markdown-it-py", "numpy", "onnxruntime", "sentencepiece", "shtab"}
HELP = [str(Path(sys.executable).with_name("qkv")), "--help"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    (made,) = folder.glob("*.whl")
    return made


def run(command: list[str]) -> str:
    """The command's output; a command that fails says why. It finds no packages but its environment's."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def files_in(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def metadata_of(wheel: Path) -> Message:
    (path,) = (name for name in files_in(wheel) if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(zipfile.ZipFile(wheel).read(path))


def asked_for(requirements: list[str]) -> set[str]:
    """The names of what is asked for without any extra."""
    return {re.split(r"[^\w.-]", one)[0] for one in requirements if "extra ==" not in one}


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: Path) -> None:
    inside = {name for name in files_in(wheel) if ".dist-info/" not in name}
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "qkv").rglob("*") if path.is_file()}
    assert inside == {name for name in package if "__pycache__" not in name}
    assert {"qkv/py.typed", "qkv/cli.py", "qkv/layers/attention.py"} <= inside


def test_the_wheel_holds_the_licence(wheel: Path) -> None:
    (licence,) = (name for name in files_in(wheel) if name.endswith("/LICENSE"))
    assert b"Apache License" in zipfile.ZipFile(wheel).read(licence)
    assert metadata_of(wheel)["License-Expression"] == "Apache-2.0"


def test_the_wheel_says_what_it_needs(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert (metadata["Name"], metadata["Version"]) == ("qkv", qkv.__version__)
    assert metadata["Requires-Python"] == ">=3.11"
    assert {*metadata.get_all("Provides-Extra", [])} == {"train", "plot", "tensorboard", "serve"}
    assert asked_for(metadata.get_all("Requires-Dist", [])) == CORE


def test_the_wheel_works_where_only_the_core_dependencies_are(wheel: Path, tmp_path: Path) -> None:
    python = empty_environment(tmp_path, asked_for(metadata_of(wheel).get_all("Requires-Dist", [])))
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    run([*pip, "install", "--quiet", "--no-index", str(wheel)])
    run([*pip, "check"])
    command = str(python.with_name("qkv"))
    assert run([command, "--version"]).split() == ["qkv", qkv.__version__]
    assert "translate" in run([command, "--help"])
    assert "base" in run([command, "recipes"])
    assert run([str(python), "-I", "-c", "import qkv; print(qkv.__file__)"]).startswith(str(tmp_path))


def empty_environment(folder: Path, packages: set[str]) -> Path:
    """An environment with these packages and what they need, as they are here; pip is not asked, so no network is."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    site = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    waiting, linked = [*packages], set()
    while waiting:
        name = waiting.pop()
        if name not in linked:
            linked.add(name)
            distribution = importlib.metadata.distribution(name)
            waiting += asked_for(distribution.requires or [])
            for file in distribution.files or []:
                if ".." not in file.parts:
                    (site / file).parent.mkdir(parents=True, exist_ok=True)
                    (site / file).symlink_to(str(file.locate()))
    return python


@pytest.mark.parametrize(
    "code",
    [
        "import qkv",
        "from qkv.cli import main; main(['--help'])",
        "from qkv.cli import main; main(['train', '--help'])",
        "from qkv.cli import main; main(['recipes'])",
        "from qkv.cli import main; main(['completion', 'bash'])",
    ],
)
def test_asking_for_help_imports_neither_torch_nor_numpy(code: str) -> None:
    # argparse leaves by SystemExit after --help.
    program = f"""
import sys
try:
    {code}
except SystemExit as end:
    assert not end.code, end.code
print("heavy:", sorted({{"torch", "numpy", "sentencepiece", "sacrebleu"}} & {{*sys.modules}}))
"""
    assert run([sys.executable, "-c", program]).splitlines()[-1] == "heavy: []"


def test_help_answers_in_well_under_half_a_second() -> None:
    bare = [sys.executable, "-c", "pass"]
    # The fastest of several: a busy machine slows some of them, and the bare interpreter as well.
    assert min(seconds(HELP) for _ in range(5)) - min(seconds(bare) for _ in range(5)) < 0.4


def seconds(command: list[str]) -> float:
    """Of a core: how long it takes by the clock is how busy the machine is."""
    begin = os.times()
    run(command)
    end = os.times()
    return end.children_user + end.children_system - begin.children_user - begin.children_system


def test_every_package_the_project_names_is_pinned_to_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *itertools.chain.from_iterable(project["project"]["optional-dependencies"].values()),
        *itertools.chain.from_iterable(project["dependency-groups"].values()),
    ]
    assert asked_for(named) - pins().keys() == set()
    assert pins()["torch"] == "2.13.0"
    assert [version for version in pins().values() if not re.fullmatch(r"[\w.]+", version)] == []


def test_the_tests_run_with_what_is_pinned() -> None:
    here = {_normal(one.metadata["Name"]): one.version.partition("+")[0] for one in importlib.metadata.distributions()}
    assert {name: here.get(name, version) for name, version in pins().items()} == pins()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {_normal(name): version for name, _, version in (line.partition("==") for line in lines if line[0] != "#")}


def _normal(name: str) -> str:
    """A package's name as all its spellings are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()
