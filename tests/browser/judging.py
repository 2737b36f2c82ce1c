"""What axe-core has to say against a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

_INSTALLED = Path(__file__).parents[2] / ".venv/axe/node_modules/axe-core/axe.min.js"


def found_axe() -> Path | None:
    """Where axe-core is, if it is anywhere."""
    path = Path(os.environ.get("QKV_AXE", _INSTALLED))
    return path if path.is_file() else None


class Judge:
    """Looks at pages as axe-core does."""

    def __init__(self, script: str) -> None:
        self._script = script

    def __call__(self, page: Page) -> list[str]:
        """What is wrong with the page as it is now, and where."""
        # As a debugger would: the page's own rules let no foreign script in.
        page.evaluate(self._script)
        # A colour on its way to another is none that anybody has chosen.
        page.evaluate("Promise.allSettled(document.getAnimations().map((one) => one.finished))")
        found: dict[str, Any] = page.evaluate("axe.run()")
        return [
            f"{one['id']}: {one['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for one in found["violations"]
            for node in one["nodes"]
        ]
