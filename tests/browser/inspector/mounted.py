"""Mounts the inspector, and reads what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

VIEWS = ("attention", "equation", "positions", "probabilities", "search", "compare")

_MOUNT = """async ([inspection, compare, heads, second, others]) => {
  const {mount} = await import("/main.js");
  const fetchVectors = heads && (({use}) => Promise.resolve(heads[use]));
  const inspect = (second || others) && ((text, {target} = {}) => {
    const found = (target ? others[target] : [second]).find(({source}) => source.text === text);
    return found ? Promise.resolve(found) : Promise.reject(new Error(`No model for ${text}`));
  });
  const languages = others && Object.keys(others);
  mount(document.getElementById("place"), inspection, {compare, fetchVectors, inspect, languages});
}"""


def show(
    page: Page,
    given: dict[str, Any],
    compare: dict[str, Any] | None = None,
    *,
    at: str = "",
    heads: dict[str, Any] | None = None,
    second: dict[str, Any] | None = None,
    others: dict[str, list[dict[str, Any]]] | None = None,
) -> None:
    """The inspector as a link with the fragment `at` shows it.

    A server would give `heads`, the vectors of one head for each use, `second`, if its sentence is asked for, and
    `others`, the same sentences in other languages.
    """
    # A change of fragment alone would not load the page anew.
    page.goto("about:blank")
    page.goto(f"/#{at}")
    page.evaluate(_MOUNT, [given, compare, heads, second, others])


def status(page: Page) -> str:
    """What it says of the pair that is looked at."""
    return plain(page.locator(".status").inner_text())


def plain(text: str) -> str:
    """With signs and spaces as Python writes them."""
    return text.replace("\u00a0", " ").replace("−", "-")


def shown(share: float) -> str:
    """A share as the page writes it."""
    return f"{100 * share:.{1 if 0.0005 <= share < 0.0995 else 0}f} %"
