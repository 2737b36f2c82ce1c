"""API keys: kept as hashes, compared in constant time, each with what it may use.

A file of keys is TOML, a table for each key, written by `qkv serve --new-key NAME --keys FILE`:

    [alice]
    sha256 = "9f86d0…"
    characters_a_month = 500000     # without this line: as many as there are
    requests_a_minute = 600
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError
from qkv.serve.refusals import Refusal
from qkv.serve.toml import read_toml
from qkv.storage import write_atomically

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FIELDS = {"sha256", "characters_a_month", "requests_a_minute"}


@dataclass
class Account:
    """A key's owner, what they may use and what they have used."""

    name: str
    digest: bytes = b""
    characters_a_month: int | None = None
    requests_a_minute: int | None = None
    characters: int = 0
    """Used in the month of the last use."""
    month: str = ""
    _asked: deque[float] = field(default_factory=deque)

    def ask(self) -> None:
        """Counts a request; refuses it where there were too many of late."""
        if self.requests_a_minute is None:
            return
        now = time.monotonic()
        while self._asked and self._asked[0] <= now - 60:
            self._asked.popleft()
        if len(self._asked) >= self.requests_a_minute:
            wait = int(self._asked[0] + 60 - now) + 1
            message = f"Slowdown: more than {self.requests_a_minute} requests a minute"
            raise Refusal("busy", message, retry_after=wait)
        self._asked.append(now)

    def use(self, characters: int) -> None:
        """Counts characters; refuses those beyond what the key may use in a month."""
        self._turn_over()
        if self.characters_a_month is not None and self.characters + characters > self.characters_a_month:
            raise Refusal("quota", f"Quota exceeded: {self.characters_a_month} characters a month")
        self.characters += characters

    def give_back(self, characters: int, month: str) -> None:
        """What was counted in a month and not used; of a month that is over nobody asks any more."""
        if month == self.month:
            self.characters -= characters

    @property
    def used(self) -> int:
        """Characters of this month."""
        self._turn_over()
        return self.characters

    def _turn_over(self) -> None:
        month = time.strftime("%Y-%m", time.gmtime())
        if self.month != month:
            self.month, self.characters = month, 0


class Keys:
    """Who may ask: everybody, where there is no file."""

    def __init__(self, accounts: list[Account] | None = None) -> None:
        self.required = accounts is not None
        self._accounts = accounts or []
        self.anybody = Account("anybody")

    @classmethod
    def load(cls, path: Path) -> Keys:
        return cls([_account(name, table, path) for name, table in _read(path).items()])

    def usage(self) -> dict[str, dict[str, Any]]:
        """What each has used, by its name."""
        return {one.name: {"month": one.month, "characters": one.characters} for one in self._everybody()}

    def remember(self, usage: Any) -> None:
        """Goes on from what was used before; what makes no sense counts as nothing."""
        for one in self._everybody():
            match usage:
                case {one.name: {"month": str(month), "characters": int(characters)}}:
                    one.month, one.characters = month, characters

    def _everybody(self) -> list[Account]:
        return self._accounts if self.required else [self.anybody]

    def account(self, key: str | None) -> Account:
        """Whose key this is."""
        if not self.required:
            return self.anybody
        if not key:
            raise Refusal("key_missing", "Please contact the server operator to get an API key")
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        # All are compared, so that the time tells nobody which it was.
        found = [account for account in self._accounts if hmac.compare_digest(account.digest, digest)]
        if not found:
            raise Refusal("key_wrong", "Invalid API key")
        return found[0]


def new_key(path: Path, name: str) -> str:
    """Makes a key, adds its hash to the file, and gives the key itself, which is kept nowhere."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"a key is named with letters, digits, - and _, not {name!r}")
    tables = _read(path) if path.exists() else {}
    if name in tables:
        raise ConfigError(f"{path} has a key called {name} already; choose another name, or take that one out")
    key = secrets.token_urlsafe(32)
    # Also where it has no tables: what people have written down is theirs.
    written = path.read_text(encoding="utf-8").rstrip() if path.exists() else ""
    before = f"{written}\n\n" if written else ""
    digest = hashlib.sha256(key.encode()).hexdigest()
    write_atomically(path, f'{before}[{name}]\nsha256 = "{digest}"\n'.encode())
    path.chmod(0o600)
    return key


def _read(path: Path) -> dict[str, Any]:
    return read_toml(path, f"make a key: qkv serve --keys {path} --new-key NAME")


def _account(name: str, table: Any, path: Path) -> Account:
    if not isinstance(table, dict) or not table.keys() <= _FIELDS or not isinstance(table.get("sha256"), str):
        raise ConfigError(f"{path}: [{name}] must have sha256, and may have {', '.join(sorted(_FIELDS - {'sha256'}))}")
    limits = {name: value for name, value in table.items() if name != "sha256"}
    if any(type(value) is not int or value < 0 for value in limits.values()):
        raise ConfigError(f"{path}: limits of [{name}] must be whole numbers")
    try:
        return Account(name, bytes.fromhex(table["sha256"]), **limits)
    except ValueError as error:
        raise ConfigError(f"{path}: sha256 of [{name}] is not written in hexadecimal digits") from error
