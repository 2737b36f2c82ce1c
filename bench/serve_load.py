"""A server under load: how much it serves, what it refuses and how quickly, and what it loses when it is stopped.

    python -m bench.serve_load --model model/ --from en --to fr --sentences demo/test.en-fr.tsv

starts `qkv serve` on a free port of the loopback address and prints a table for each trial. Load and server share the
machine, so figures of a run are to be compared with one another.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CONNECTIONS = (1, 16, 64, 256)


class Server:
    """A server of its own process."""

    def __init__(self, options: Sequence[str]) -> None:
        command = [sys.executable, "-m", "qkv", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        told = ""
        while not (match := re.search(r"http://([\d.]+):(\d+)", told)):
            told = self.process.stderr.readline()
            assert told, "the server did not start"
        self.host, self.port = match[1], int(match[2])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Asks it to stop, and gives its exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def memory(self) -> float:
        """Megabytes that it holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def files(self) -> int:
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])


class Connection:
    """A client that keeps its connection, as HTTP/1.1 has it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, body: object = None) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        await self.send(path, body)
        return await self.answer()

    async def send(self, path: str, body: object = None) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._server.host, self._server.port)
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: bench\r\n"
        if content:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self._streams[1].write(head.encode() + b"\r\n" + content)
        await self._streams[1].drain()

    async def answer(self) -> tuple[int, bytes]:
        assert self._streams is not None
        head = (await self._streams[0].readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", head)
        content = await self._streams[0].readexactly(int(length[1])) if length else b""
        if b"connection: close" in head:
            self.close()
        return int(head.split()[1]), content

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Tally:
    """What came of some requests."""

    statuses: Counter[int | str] = field(default_factory=Counter)
    seconds: dict[int | str, list[float]] = field(default_factory=dict)

    def add(self, status: int | str, seconds: float) -> None:
        self.statuses[status] += 1
        self.seconds.setdefault(status, []).append(seconds)

    def at(self, share: float, status: int | str = 200) -> float:
        """Milliseconds that this share of the answers took no longer than."""
        some = sorted(self.seconds.get(status, [0.0]))
        return 1e3 * some[min(len(some) - 1, int(share * len(some)))]


async def ask_until(server: Server, sentences: Sequence[str], tally: Tally, until: float, pause: float = 0.0) -> None:
    """One client that asks again and again, with a pause after each answer."""
    connection = Connection(server)
    for text in itertools.cycle(sentences):
        begun = time.monotonic()
        if begun > until:
            break
        try:
            status, _ = await connection.ask("/translate", {"q": text, "source": "auto", "target": TARGET})
        except (OSError, asyncio.IncompleteReadError) as error:
            connection.close()
            tally.add(type(error).__name__, time.monotonic() - begun)
            await asyncio.sleep(0.05)
            continue
        tally.add(status, time.monotonic() - begun)
        if pause:
            await asyncio.sleep(pause)
    connection.close()


async def watch_health(server: Server, tally: Tally, until: float) -> None:
    connection = Connection(server)
    while (begun := time.monotonic()) < until:
        status, _ = await connection.ask("/health")
        tally.add(status, time.monotonic() - begun)
        await asyncio.sleep(0.02)
    connection.close()


async def closed_loop(server: Server, sentences: Sequence[str], connections: int, seconds: float) -> Tally:
    """So many clients, each asking as soon as it is answered."""
    tally = Tally()
    until = time.monotonic() + seconds
    parts = [sentences[number::connections] or sentences for number in range(connections)]
    await asyncio.gather(*(ask_until(server, part, tally, until) for part in parts))
    return tally


async def capacity(server: Server, sentences: Sequence[str], seconds: float) -> None:
    print(f"{'connections':>11} {'requests/s':>10} {'p50 ms':>8} {'p99 ms':>8}  others")
    for connections in CONNECTIONS:
        tally = await closed_loop(server, sentences, connections, seconds)
        others = {status: count for status, count in tally.statuses.items() if status != 200}
        rate = tally.statuses[200] / seconds
        print(f"{connections:>11} {rate:>10.1f} {tally.at(0.5):>8.1f} {tally.at(0.99):>8.1f}  {others or ''}")


async def overload(server: Server, sentences: Sequence[str], seconds: float, times: float) -> None:
    """Ten times what it can do: requests come at their own rate, whether or not others have been answered."""
    texts = [" ".join(sentences[place : place + 8]) for place in range(0, len(sentences) - 8, 8)]
    solo = await closed_loop(server, texts, 32, min(seconds, 10))
    rate = solo.statuses[200] / min(seconds, 10)
    tally, health = Tally(), Tally()
    begun = time.monotonic()
    watching = asyncio.create_task(watch_health(server, health, begun + seconds))
    idle: list[Connection] = []

    async def ask(text: str) -> None:
        connection = idle.pop() if idle else Connection(server)
        sent = time.monotonic()
        try:
            status: int | str = (await connection.ask("/translate", {"q": text, "source": "auto", "target": TARGET}))[0]
        except (OSError, asyncio.IncompleteReadError) as error:
            status = type(error).__name__
            connection.close()
        tally.add(status, time.monotonic() - sent)
        idle.append(connection)

    asking = []
    for number, text in enumerate(itertools.cycle(texts)):
        due = begun + number / (rate * times)
        if due > begun + seconds:
            break
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asking.append(asyncio.create_task(ask(text)))
    await asyncio.gather(watching, *asking)
    seconds = time.monotonic() - begun
    served = tally.statuses[200] / seconds
    print(f"solo {rate:.1f}/s; offered {tally.statuses.total() / seconds:.1f}/s, served {served:.1f}/s "
          f"({served / rate:.0%} of solo); refusals p50 {tally.at(0.5, 429):.1f}, p99 {tally.at(0.99, 429):.1f} ms; "
          f"health p50 {health.at(0.5):.1f}, p99 {health.at(0.99):.1f} ms; {dict(tally.statuses)}")  # fmt: skip


async def stop_under_load(options: Sequence[str], sentences: Sequence[str], times: int) -> None:
    """Stops a server in the middle of work; requests that were sent whole before the signal must be answered."""
    lost = answered = 0
    for number in range(times):
        server = Server(options)
        connections = [Connection(server) for _ in range(32)]
        for place, connection in enumerate(connections):
            await connection.send("/translate", {"q": sentences[place], "source": "auto", "target": TARGET})
        await asyncio.sleep(0.002 * (number % 25))
        server.process.send_signal(signal.SIGTERM)
        found = await asyncio.gather(*(one.answer() for one in connections), return_exceptions=True)
        for one in found:
            good = not isinstance(one, BaseException) and one[0] in (200, 429, 503)
            answered, lost = answered + good, lost + (not good)
        code = await asyncio.to_thread(server.process.wait, 60)
        assert code == 128 + signal.SIGTERM, code
    print(f"SIGTERM {times} times with 32 requests under way: {answered} answered, {lost} lost")


async def disconnects(server: Server, sentences: Sequence[str], times: int) -> None:
    """Clients that leave before they are answered: their work must leave too."""
    long = " ".join(sentences[:40])

    async def leave() -> None:
        connection = Connection(server)
        with suppress(OSError):
            await connection.send("/translate", {"q": long, "source": "auto", "target": TARGET})
            await asyncio.sleep(0.01)
        connection.close()

    for _ in range(0, times, 50):
        await asyncio.gather(*(leave() for _ in range(50)))
    begun = time.monotonic()
    connection = Connection(server)
    while b"qkv_orders 0\n" not in (await connection.ask("/metrics"))[1]:
        await asyncio.sleep(0.005)
    took = time.monotonic() - begun
    connection.close()
    after = await closed_loop(server, sentences, 1, 2)
    print(f"{times} disconnects: the queue was empty {1e3 * took:.0f} ms later; then p50 {after.at(0.5):.1f} ms")


async def soak(server: Server, sentences: Sequence[str], seconds: float) -> None:
    """Hours at about two thirds of what it can do, texts of all lengths."""
    texts = [" ".join(sentences[place : place + 1 + place % 7]) for place in range(len(sentences))]
    await closed_loop(server, texts, 8, min(60.0, seconds / 4))
    begun, first, files = time.monotonic(), server.memory(), server.files()
    tally = Tally()
    until = begun + seconds
    clients = (ask_until(server, texts[number::4], tally, until, pause=0.03) for number in range(4))
    await asyncio.gather(*clients)
    hours = (time.monotonic() - begun) / 3600
    print(f"soak of {seconds:.0f} s: {dict(tally.statuses)}, memory {first:.1f} -> {server.memory():.1f} MB "
          f"({(server.memory() - first) / hours:+.1f} MB/h), files {files} -> {server.files()}")  # fmt: skip


@asynccontextmanager
async def running(options: Sequence[str]) -> AsyncIterator[Server]:
    server = Server(options)
    try:
        yield server
    finally:
        server.stop()


async def measure(chosen: argparse.Namespace) -> None:
    options = ["--model", chosen.model, "--from", chosen.source, "--to", chosen.target, *chosen.more]
    lines = Path(chosen.sentences).read_text(encoding="utf-8").splitlines()
    sentences = [line.partition("\t")[0] for line in lines]
    seconds = chosen.seconds
    trials: dict[str, Callable[[Server], Awaitable[None]]] = {
        "capacity": lambda server: capacity(server, sentences, seconds),
        "overload": lambda server: overload(server, sentences, 6 * seconds, 10),
        "disconnects": lambda server: disconnects(server, sentences, 1000),
        "soak": lambda server: soak(server, sentences, chosen.soak),
    }
    for name, trial in trials.items():
        if name in chosen.trials:
            print(f"\n{name}")
            async with running(options) as server:
                await trial(server)
    if "stop" in chosen.trials:
        print("\nstop")
        await stop_under_load(options, sentences, chosen.stops)


TARGET = ""


def main() -> None:
    global TARGET
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--from", dest="source", default="en")
    parser.add_argument("--to", dest="target", default="fr")
    parser.add_argument("--sentences", default="demo/test.en-fr.tsv", help="text, or pairs of which the first is taken")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each row (default: 10)")
    parser.add_argument("--soak", type=float, default=3600.0, help="seconds (default: 3600)")
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument("--trials", default="capacity,overload,disconnects,stop", type=lambda text: text.split(","))
    parser.add_argument("more", nargs="*", help="other options of qkv serve, after --")
    chosen = parser.parse_args()
    TARGET = chosen.target
    asyncio.run(measure(chosen))


if __name__ == "__main__":
    main()
