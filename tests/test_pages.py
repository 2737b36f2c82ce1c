"""Pages that need nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from qkv.errors import StorageError
from qkv.pages import FOLDER, blank, page

DATA: dict[str, Any] = {"text": 'a <b> & {{title}} "c"', "other": "</p><script>alert(1)</script>"}
TEXTS = {
    "shell.html": '<meta content="{{policy}}"><title>{{title}}</title><style>{{style}}</style>'
    "<p id=d>{{data}}</p><script>{{script}}begin();</script>",
    "style.css": "p { color: red }",
    "main.js": 'import {one} from "./one.js";\nimport {two} from "../shared/two.js";\n'
    "export const begin = one + two;\n",
    "one.js": 'import {two} from "../shared/two.js";\nexport const one = two;\n',
    "../shared/two.js": "export const two = 2;\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Modules that import one another, one of them twice."""
    folder = tmp_path / "own"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_page_holds_its_modules_each_behind_those_it_imports(folder: Path) -> None:
    script = page(folder, "", DATA).split("<script>")[-1]
    assert script == "const two = 2;\nconst one = two;\nconst begin = one + two;\nbegin();</script>"


def test_what_is_shown_is_in_the_page_and_can_do_nothing_there(folder: Path) -> None:
    made = page(folder, 'a <b> & "c"', DATA)
    assert json.loads(made.split("<p id=d>")[1].split("</p>")[0]) == DATA
    assert "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>" in made
    assert made.count("<script>") == 1


def test_a_page_allows_its_own_script_and_style_alone(folder: Path) -> None:
    policy = re.findall(r'content="(.*?)"', blank(folder))[0]
    # As computed by openssl.
    assert "style-src 'sha256-ngewhhP73WDIbgwseeu52VAAJgKdGUsu1IUQQsAm8m4='" in policy
    assert "script-src 'sha256-w0YOwt+unaDup2fdUevr6oJtOCMj+CVAGV2kDqLVUVQ='" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.mark.parametrize("name", ["inspector", "watch"])
def test_of_what_is_to_be_put_in_nothing_is_left_out(name: str) -> None:
    assert "{{" not in page(FOLDER / name, "title", {}).split("<script")[0]
    assert sorted(re.findall(r"\{\{(\w+)\}\}", blank(FOLDER / name))) == ["data", "title"]


def test_a_page_whose_parts_are_missing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="install qkv again"):
        page(tmp_path, "", DATA)
