"""What all tests share."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import qkv

if TYPE_CHECKING:
    from tests.serve.served import Served
    from tests.toy import Command

LONGEST = (
    "tests/training/test_many.py", "tests/torture/", "tests/test_demo.py", "tests/test_stretches.py",
    "tests/test_terms.py", "tests/test_distill.py",
)  # fmt: skip
"""Tests that take seconds each: who comes to them last would end long after the others."""

if "PYTEST_XDIST_WORKER" in os.environ:
    # There are more workers than cores: more threads than one in each would fight over the cores.
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# In the background of a script this process ignores interrupts, and so would those it starts, which tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Without a GPU, kernels written for one are run by Triton's interpreter; it asks for this when it is first imported,
# which other packages may do at any time.
if not (Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi")):
    os.environ["TRITON_INTERPRET"] = "1"

# The tests that need a GPU run where there is little else.
if importlib.util.find_spec("hypothesis") is not None:
    import hypothesis

    # What the tests say depends on the tree alone, not on luck or on how busy the machine is.
    hypothesis.settings.register_profile("qkv", deadline=None, derandomize=True)
    hypothesis.settings.load_profile("qkv")


# Where there is no xdist, there is no such hook.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """A worker for each core and one more, for a fifth of their time tests wait for processes, servers and browsers."""
    from qkv.processors import usable_cores

    return usable_cores() + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, and all others in the order in which they stand."""

    def place(item: pytest.Item) -> int:
        return next((place for place, name in enumerate(LONGEST) if item.nodeid.startswith(name)), len(LONGEST))

    items.sort(key=place)


@pytest.fixture
def checked_shapes() -> Iterator[None]:
    """While the test runs, every tensor in qkv whose name ends in its dimensions must have them."""
    from tests.shapes import checking_shapes, legend

    with checking_shapes(Path(qkv.__file__).parent, legend()):
        yield


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """The command line, run in this process."""
    from tests.toy import Command

    return Command(monkeypatch, capfdbinary)


@pytest.fixture(scope="session")
def toy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that translates the toy language; who wants to change it copies it first."""
    from tests.toy import trained_once

    return trained_once(tmp_path_factory)


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small part of the toy language, prepared."""
    from qkv.prepare import prepare
    from tests.toy import QUICK, pairs, write_tsv

    folder = tmp_path_factory.mktemp("toy-data")
    return prepare([write_tsv(folder / "corpus.tsv", pairs(120))], folder / "data", QUICK).directory


@pytest.fixture(scope="session")
def exported(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy run as a model that needs no torch."""
    from qkv.export import export

    output = tmp_path_factory.mktemp("served") / "model"
    export(toy_run, output, precision="int8")
    return output


@pytest.fixture(scope="session")
def served(exported: Path) -> Iterator[Served]:
    """One server of the exported model for all tests that change nothing."""
    from tests.serve.served import serving

    with serving(exported) as server:
        yield server
