"""A page's parts that are small enough to be read."""

from __future__ import annotations

from pathlib import Path

_SHELL = "<title>{{title}}</title><style>{{style}}</style><p id=d>{{data}}</p><script>{{script}}mountPage();</script>"


def modules(folder: Path) -> Path:
    """Modules that import one another, one of them twice."""
    folder.mkdir(exist_ok=True)
    texts = {
        "shell.html": _SHELL,
        "inspector.css": "p { color: red }",
        "main.js": 'import {one} from "./one.js";\nimport {two} from "./two.js";\n'
        "export const mountPage = () => one + two;\n",
        "one.js": 'import {two} from "./two.js";\nexport const one = two;\n',
        "two.js": "export const two = 2;\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder
