"""Clients that mean harm, and what others have to bear: a thousand that are slow, and one that asks for no end."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Sequence
from contextlib import suppress

from bench.load import Asking, Bar, Server, Tally, at_most, nothing, watch_health

_PATIENCE = 35.0
"""Seconds after which nobody may still be waited for: more than any limit that a server has for clients."""
_A_SECOND = 200
"""Slow clients that come in a second."""
_EVERY = 2.0
"""Seconds between two bytes of a slow client."""


async def slow(server: Server, asking: Asking, sentences: Sequence[str], count: int) -> list[Bar]:
    """Clients that say nothing, send head or body byte by byte, or do not read what they asked for."""
    body = json.dumps(asking.of(sentences[0])).encode()
    post = b"POST /translate HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: "
    kinds = {
        "silent": (b"", b""),
        "slow head": (b"GET /health HTTP/1.1\r\nX-Slow: ", b"a"),
        "slow body": (post + str(len(body)).encode() + b"\r\n\r\n" + body[:5], b" "),
        "slow reader": (b"GET /openapi.json HTTP/1.1\r\nHost: bench\r\n\r\n" * 8, b"\r\n"),
    }
    health, left = Tally(), asyncio.Queue[str]()

    async def linger(number: int, kind: str) -> None:
        begin, more = kinds[kind]
        await asyncio.sleep(number / _A_SECOND)
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1024)
        begun = time.monotonic()
        # What makes the other end close it is an error here, or the end.
        with suppress(OSError):
            writer.write(begin)
            while time.monotonic() < begun + _PATIENCE:
                writer.write(more)
                await writer.drain()
                if reader.at_eof() or writer.transport.is_closing():
                    break
                await asyncio.sleep(_EVERY)
            else:
                left.put_nowait(kind)
        writer.transport.abort()

    begun = time.monotonic()
    watching = asyncio.create_task(watch_health(server, health, begun + _PATIENCE))
    served = asyncio.create_task(asking.closed_loop(server, sentences, 1, _PATIENCE))
    await asyncio.gather(*(linger(*one) for one in zip(range(count), itertools.cycle(kinds), strict=False)))
    await watching
    others = await served
    print(f"{count} slow clients: health p50 {health.at(0.5):.1f}, p99 {health.at(0.99):.1f} ms; still waited for: "
          f"{left.qsize()}; others had {others.statuses[200]} answers, p99 {others.at(0.99):.1f} ms")  # fmt: skip
    return [
        at_most(f"p99 of health beside {count} slow clients in ms", health.at(0.99), 50),
        nothing(f"slow clients still waited for after {_PATIENCE:g} s", left.qsize()),
        nothing("answers to another client that are not 200", others.others),
    ]


async def endless(server: Server, asking: Asking, sentences: Sequence[str], seconds: float) -> list[Bar]:
    """One client that asks for sentences which no model can end, again and again, and another that asks for little."""
    few = sentences[:20]
    await asking.closed_loop(server, few, 1, 2.0)
    idle = await asking.closed_loop(server, few, 1, seconds)
    # Each byte of these is a token, and no model has learned what comes of them.
    hostile = ["\u6c49\u5b57" * 450, "\U0001f468\u200d" * 250, "a\u0301\u0302" * 300]
    asked, beside = await asyncio.gather(
        asking.closed_loop(server, hostile, 1, seconds), asking.closed_loop(server, few, 1, seconds)
    )
    ratio = beside.at(0.99) / idle.at(0.99)
    print(f"alone p50 {idle.at(0.5):.1f}, p99 {idle.at(0.99):.1f} ms; beside something endless p50 "
          f"{beside.at(0.5):.1f}, p99 {beside.at(0.99):.1f} ms; that was answered {dict(asked.statuses)}")  # fmt: skip
    return [
        at_most("p99 beside something endless, in times of that alone", ratio, 2),
        nothing("answers beside something endless that are not 200", beside.others),
    ]
