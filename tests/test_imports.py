"""Who may import whom: imports point down, and the shelves of parts never import one another."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import qkv

# A row is a module, or a package with all that is in it; the longest row that fits a module counts. Modules of one row
# may import one another. A new module needs a row; a new word in a row is a decision about the architecture.
MAY_IMPORT = {
    # Ground: stands on nothing but itself.
    "qkv.errors": "",
    "qkv.progress": "",
    "qkv.processors": "",
    "qkv.storage": "errors",
    "qkv.manifest": "errors storage",
    "qkv.directories": "errors manifest",
    "qkv.pages": "qkv errors",
    "qkv.values": "errors",
    "qkv.config": "errors values",
    "qkv.settings": "errors config values",
    "qkv.recipes": "errors config",
    # Shelves of parts: never each other, and the config reaches no layer and no search.
    "qkv.text": "errors config",
    "qkv.data": "errors",
    "qkv.layers": "",
    "qkv.search": "errors",
    # Assemblers: join parts.
    "qkv.models": "config data.batch layers",
    "qkv.checkpoint": "qkv errors progress storage directories manifest",
    "qkv.run": "errors progress storage directories config settings checkpoint",
    "qkv.prepare": "qkv errors progress processors storage directories config text data",
    "qkv.devices": "errors",
    "qkv.engines": (
        "errors processors storage directories manifest config settings text data layers models search run devices"
    ),
    "qkv.inspecting": "errors pages config text search engines.shortlist engines.weights",
    "qkv.translate": (
        "qkv errors progress directories config settings text search models.encoder_decoder engines inspecting"
    ),
    "qkv.training": (
        "errors progress storage directories manifest config settings recipes text data layers models checkpoint run "
        "devices prepare engines.exported engines.looks engines.shortlist engines.weights translate evaluate.scores"
    ),
    # Applications: use assemblers.
    "qkv.evaluate": "errors",
    "qkv.evaluate.systems": "errors progress text translate",
    "qkv.evaluate.several": "errors progress text translate evaluate",
    "qkv.distill": (
        "errors progress storage directories config text data.corpus run devices prepare translate evaluate.scores "
        "training"
    ),
    "qkv.parcel": "errors progress storage manifest data checkpoint run prepare",
    "qkv.fetch": "qkv errors progress storage config prepare",
    "qkv.reproduce": (
        "qkv errors progress storage config settings recipes text.files checkpoint run devices models.build prepare "
        "translate evaluate training fetch"
    ),
    "qkv.convert": "errors config",
    "qkv.export": (
        "qkv errors storage directories manifest settings text data layers models checkpoint run prepare engines"
    ),
    "qkv.export.card": "errors storage config settings recipes text checkpoint run prepare",
    "qkv.plot": "errors directories",
    "qkv.files": "errors text.protect text.tags text.words",
    "qkv.serve": (
        "qkv errors pages progress storage text.cleaning text.glossary text.languages text.sentences text.typography "
        "text.words translate files"
    ),
    "qkv.watching": "errors pages progress checkpoint run prepare inspecting translate plot",
    "qkv.commands": (
        "errors storage directories pages progress config settings recipes text run prepare engines export inspecting "
        "translate evaluate training distill fetch reproduce parcel plot files serve watching"
    ),
    "qkv.cli": "qkv errors storage progress commands",
    "qkv.__main__": "cli",
    "qkv": "errors config recipes translate training",
}

# What needs no torch brings none, not even through what it imports: help, preparing and scoring start at once.
WITHOUT_TORCH = [
    "qkv",
    "qkv.errors",
    "qkv.progress",
    "qkv.processors",
    "qkv.storage",
    "qkv.directories",
    "qkv.manifest",
    "qkv.pages",
    "qkv.values",
    "qkv.config",
    "qkv.settings",
    "qkv.recipes",
    "qkv.text",
    "qkv.data.corpus",
    "qkv.data.packing",
    "qkv.prepare",
    "qkv.search",
    "qkv.engines.ensemble",
    "qkv.engines.exported",
    "qkv.engines.looks",
    "qkv.engines.onnx",
    "qkv.engines.weights",
    "qkv.inspecting",
    "qkv.translate",
    "qkv.evaluate",
    "qkv.fetch",
    "qkv.reproduce.experiments",
    "qkv.reproduce.report",
    "qkv.parcel.data",
    "qkv.plot",
    "qkv.files",
    "qkv.serve",
    "qkv.commands",
    "qkv.cli",
]

PACKAGE = Path(qkv.__file__).parent


class Import(NamedTuple):
    module: str
    line: int
    at_start: bool
    """Whether it runs when the importing module is imported, and not only when a function is called."""


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def belongs(module: str, row: str) -> bool:
    """Whether a row of a table speaks of this module; the row `qkv` speaks of the package's first file alone."""
    return module == row or (row != "qkv" and module.startswith(f"{row}."))


def imports_of(source: str) -> Iterator[Import]:
    """Every module of qkv that a piece of code imports, wherever in it."""
    tree = ast.parse(source)
    later = {
        id(node)
        for part in ast.walk(tree)
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        or (isinstance(part, ast.If) and "TYPE_CHECKING" in ast.unparse(part.test))
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module and node.level == 0, f"line {node.lineno}: imports are written in full"
            # `from qkv.recipes import paper` imports a module, `from qkv.config import Config` something in one.
            inside = [f"{node.module}.{name.name}" for name in node.names]
            names = [name if name in MODULES else node.module for name in inside]
        else:
            continue
        for name in dict.fromkeys(names):
            if name == "qkv" or name.startswith("qkv."):
                yield Import(name, node.lineno, id(node) not in later)


def rows_allowed(row: str) -> list[str]:
    return [row, *(word if word == "qkv" else f"qkv.{word}" for word in MAY_IMPORT[row].split())]


def row_of(module: str) -> str:
    rows = [row for row in MAY_IMPORT if belongs(module, row)]
    assert rows, f"{module} is in no row of MAY_IMPORT: decide who may import it, and whom it may import"
    return max(rows, key=len)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_the_table_allows(module: str) -> None:
    allowed = rows_allowed(row_of(module))
    forbidden = [
        f"{module} line {found.line} imports {found.module}"
        for found in imports_of(MODULES[module].read_text())
        if not any(belongs(found.module, row) for row in allowed)
    ]
    assert forbidden == []


def test_the_table_allows_nothing_that_nobody_uses() -> None:
    used: dict[str, set[str]] = {row: set() for row in MAY_IMPORT}
    for module, path in MODULES.items():
        used[row_of(module)] |= {found.module for found in imports_of(path.read_text())}
    assert [
        f"{row} imports no {word}"
        for row, found in used.items()
        for word in rows_allowed(row)[1:]
        if not any(belongs(module, word) for module in found)
    ] == []


def test_every_row_of_the_tables_speaks_of_a_module() -> None:
    words = {row for name in MAY_IMPORT for row in rows_allowed(name)} | {*WITHOUT_TORCH}
    assert [word for word in sorted(words) if not any(belongs(module, word) for module in MODULES)] == []


def test_shelves_never_import_one_another() -> None:
    shelves = {"qkv.text", "qkv.data", "qkv.layers", "qkv.search"}
    assert [
        (shelf, other)
        for shelf in shelves
        for other in shelves - {shelf}
        if any(belongs(row, other) for row in rows_allowed(shelf))
    ] == []


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {
        module: {found.module for found in imports_of(path.read_text()) if found.at_start} - {module}
        for module, path in MODULES.items()
    }
    assert len([*graphlib.TopologicalSorter(graph).static_order()]) == len(MODULES)


def test_parts_for_a_gpu_are_imported_where_one_is_used_and_not_before() -> None:
    """They need Triton, which comes with torch only where torch can use a GPU."""
    assert [
        (module, found.line)
        for module, path in MODULES.items()
        if not belongs(module, "qkv.layers.gpu")
        for found in imports_of(path.read_text())
        if found.at_start and belongs(found.module, "qkv.layers.gpu")
    ] == []


def test_what_needs_no_torch_brings_none() -> None:
    modules = [module for module in MODULES if any(belongs(module, row) for row in WITHOUT_TORCH)]
    # One interpreter for all: the first module after which torch is there brought it.
    code = (
        "import importlib, sys\n"
        f"for module in {modules}:\n"
        "    importlib.import_module(module)\n"
        "    if 'torch' in sys.modules: sys.exit(module + ' brings torch')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_imports_are_found_wherever_they_stand() -> None:
    source = """
import qkv.config, os
from qkv import recipes, __version__
if TYPE_CHECKING:
    from qkv.layers.attention import KeyValues
def work():
    from qkv.recipes import paper
"""
    assert [(found.module, found.at_start) for found in imports_of(source)] == [
        ("qkv.config", True),
        ("qkv.recipes", True),
        ("qkv", True),
        ("qkv.layers.attention", False),
        ("qkv.recipes.paper", False),
    ]
