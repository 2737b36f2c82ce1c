"""What `import qkv` offers, and nothing else."""

from __future__ import annotations

import importlib

import pytest

import qkv


def test_the_public_names_are_these() -> None:
    assert sorted(qkv.__all__) == [
        "Config", "QkvError", "Translation", "Translator", "__version__", "recipe", "train",
    ]  # fmt: skip
    assert dir(qkv) == sorted(qkv.__all__)


@pytest.mark.parametrize("name", qkv.__all__)
def test_every_public_name_is_the_one_of_its_module(name: str) -> None:
    found = getattr(qkv, name)
    if name != "__version__":
        assert getattr(importlib.import_module(found.__module__), name) is found


def test_names_that_do_not_exist_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'qkv' has no attribute 'Transformer'"):
        _ = qkv.Transformer
    assert not hasattr(qkv, "torch")


def test_a_star_import_brings_the_public_names_alone() -> None:
    names: dict[str, object] = {}
    exec("from qkv import *", names)
    assert names.keys() - {"__builtins__"} == {*qkv.__all__}
