"""What a server says no to: one kind for each reason, whatever words and numbers a protocol has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Reason = Literal[
    "bad",  # the request says something that cannot be
    "language",  # no model for it
    "too_much",  # more texts or characters than a request may have
    "too_large",  # more bytes than a request may have
    "key_missing",
    "key_wrong",
    "quota",  # the key has used up what it may
    "forbidden",  # turned off on this server
    "not_found",
    "method",
    "media",  # a kind of body that is not read
    "slow",  # the body did not come in time
    "busy",  # too much is waiting already
    "away",  # the process that translates is being started
    "late",  # not done in time
    "failed",
]

STATUS: dict[Reason, int] = {
    "bad": 400,
    "language": 400,
    "too_much": 413,
    "too_large": 413,
    "key_missing": 401,
    "key_wrong": 403,
    "quota": 429,
    "forbidden": 403,
    "not_found": 404,
    "method": 405,
    "media": 415,
    "slow": 408,
    "busy": 429,
    "away": 503,
    "late": 504,
    "failed": 500,
}
"""What HTTP calls each; a protocol may have another number."""

OUR_FAULT = "The server failed; this is a fault of its own."
"""What is told of a failure that nobody who asks can mend."""


class Refusal(Exception):  # noqa: N818 - most of them are no error of anybody's
    """A request that is not done, and why."""

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        parameter: str | None = None,
        supported: Sequence[str] = (),
        retry_after: int | None = None,
        allow: str | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message
        self.parameter = parameter
        """Which parameter of the request is wrong, where it is one."""
        self.supported = supported
        """What it could have been, where that is a short list."""
        self.retry_after = retry_after
        """After how many seconds it may go better."""
        self.allow = allow
        """The methods that would be right."""
        self.close = close
        """Whether the rest of the request is not read, so that the connection is of no more use."""

    @property
    def explanation(self) -> str:
        """The message and what would be right, for protocols whose clients do not compare the message."""
        return f"{self.message}; supported: {', '.join(self.supported)}" if self.supported else self.message

    @property
    def headers(self) -> dict[str, str]:
        """What every protocol tells alike."""
        told = {"Retry-After": None if self.retry_after is None else str(self.retry_after), "Allow": self.allow}
        headers = {name: value for name, value in told.items() if value is not None}
        return headers | {"Connection": "close"} if self.close else headers
