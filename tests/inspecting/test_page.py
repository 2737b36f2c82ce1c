"""The page that needs nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qkv.errors import StorageError
from qkv.inspecting.page import page
from tests.inspecting.made import modules

INSPECTION: dict[str, Any] = {"source": {"text": 'a <b> & "c"'}, "other": "</p><script>alert(1)</script>"}


def test_a_page_holds_its_modules_each_behind_those_it_imports(tmp_path: Path) -> None:
    made = page(INSPECTION, modules=modules(tmp_path))
    script = made.split("<script>")[-1]
    assert script == "const two = 2;\nconst one = two;\nconst mountPage = () => one + two;\nmountPage();</script>"


def test_what_was_inspected_is_in_the_page_and_can_do_nothing_there(tmp_path: Path) -> None:
    made = page(INSPECTION, {"beside": 1}, modules=modules(tmp_path))
    data = made.split("<p id=d>")[1].split("</p>")[0]
    assert json.loads(data) == {"inspection": INSPECTION, "compare": {"beside": 1}}
    assert "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>" in made
    assert made.count("<script>") == 1


def test_a_page_whose_parts_are_missing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="install qkv again"):
        page(INSPECTION, modules=tmp_path)
