"""What all protocols share: how a request is read, refused, counted, and given up when its client has gone."""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qkv.serve.desk import Desk
from qkv.serve.documents import Documents
from qkv.serve.keys import Account, Keys
from qkv.serve.metrics import Metrics
from qkv.serve.openapi import document
from qkv.serve.orders import Answer, Order
from qkv.serve.reading import Asked, Buffers, received, understood
from qkv.serve.refusals import OUR_FAULT, STATUS, Reason, Refusal
from qkv.serve.settings import Settings
from qkv.serve.state import State
from qkv.serve.telling import LOG

GONE = 499
"""The status of an answer that nobody reads."""

Handle = Callable[[Asked, Account], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Front:
    """What the protocols of a server stand before."""

    desk: Desk
    keys: Keys
    settings: Settings
    metrics: Metrics
    buffers: Buffers
    documents: Documents
    state: State


class Family(ABC):
    """A protocol."""

    name: ClassVar[str]
    statuses: ClassVar[Mapping[Reason, int]] = {}
    """Where the protocol has other numbers than HTTP."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.desk = front.desk
        self.settings = front.settings
        self._described: dict[str, bytes] = {}

    def described(self, title: str) -> Response:
        """The OpenAPI document; it stays the same, and anybody may ask for it."""
        if title not in self._described:
            told = document(self.settings, self.desk.languages, title=title)
            self._described[title] = json.dumps(told, ensure_ascii=False).encode()
        return Response(self._described[title], media_type="application/json")

    @abstractmethod
    def routes(self) -> list[Route]:
        """What it answers."""

    @abstractmethod
    def key(self, asked: Asked) -> str | None:
        """The key that a request came with."""

    @abstractmethod
    def error(self, status: int, refusal: Refusal) -> Any:
        """The body of a refusal."""

    def refused(self, refusal: Refusal) -> Response:
        status = self.statuses.get(refusal.reason, STATUS[refusal.reason])
        return JSONResponse(self.error(status, refusal), status, headers=refusal.headers)

    def endpoint(self, handle: Handle, *, public: bool = False, works: bool = False, files: bool = False) -> Endpoint:
        """A handler that reads, asks for a key unless it is `public`, and gives up what it `works` at for nobody.

        Whoever asks for work, or sends `files`, is turned away before anything is read where there is no room: ten may
        be refused for each that is served, and what a refusal costs is taken from those who are. What such a client
        still sends is passed over, and the connection kept.
        """

        async def answer(request: Request) -> Response:
            begun = time.monotonic()
            try:
                if works or files:
                    self.desk.require_room()
                response = await self._answered(request, handle, public=public, works=works, files=files)
            except Refusal as refusal:
                response = self.refused(refusal)
            except asyncio.CancelledError:
                if not self.desk.stopping:
                    raise
                # Its time to stop is over, and nobody will finish this.
                response = self.refused(Refusal("away", "The server is stopping; ask again.", retry_after=5))
            except Exception:  # noqa: BLE001 - a client is told in its own protocol whatever went wrong
                LOG.exception("%s %s failed", request.method, request.url.path)
                response = self.refused(Refusal("failed", OUR_FAULT))
            self.front.metrics.answered(self.name, response.status_code, time.monotonic() - begun)
            return response

        return answer

    async def _answered(self, request: Request, handle: Handle, *, public: bool, works: bool, files: bool) -> Response:
        settings = self.settings
        try:
            body = await received(
                request,
                buffers=self.front.buffers,
                most_bytes=settings.file_bytes if files else settings.request_bytes,
                seconds=settings.body_timeout,
            )
        except ClientDisconnect:
            return Response(status_code=GONE)
        asked = await understood(request, body)
        account = self.front.keys.anybody if public else self.front.keys.account(self.key(asked))
        account.ask()
        if not works:
            return await handle(asked, account)
        return await self._unless_gone(request, handle(asked, account))

    async def _unless_gone(self, request: Request, work: Awaitable[Response]) -> Response:
        """The answer, as long as somebody waits for it."""
        working = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            self.front.metrics.disconnected += 1
            return Response(status_code=GONE)
        finally:
            for task in (working, gone):
                task.cancel()
            with suppress(asyncio.CancelledError, Refusal):
                await working

    async def translate(self, account: Account, order: Order) -> list[Answer]:
        """The one call: counts what the account uses, and translates."""
        with self.counted(account, order):
            return await self.desk.translate(order)

    @contextmanager
    def counted(self, account: Account, order: Order) -> Iterator[None]:
        """What the account uses; what was not translated costs nothing."""
        characters = sum(map(len, order.texts))
        account.use(characters)
        month = account.month
        try:
            yield
        except BaseException:
            account.give_back(characters, month)
            raise
        self.front.metrics.translated(self.name, characters)

    def alternatives(self, asked: Asked) -> int:
        """How many other translations are asked for, within the limit."""
        count, most = asked.number("alternatives"), self.settings.request_alternatives
        if not 0 <= count <= most:
            message = f"Invalid request: alternatives ({count}) exceeds limit ({most})"
            raise Refusal("bad", message, parameter="alternatives")
        return count


async def together(works: Iterable[Coroutine[Any, Any, Found]]) -> list[Found]:
    """What comes of all of them; where one is refused the others are given up, for nobody waits for them then."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]
