"""A server under load: how much it serves, what it refuses and how quickly, and what it loses when it is stopped.

    python -m bench.serve_load --model model/ --from en --to fr --sentences demo/test.en-fr.tsv
    python -m bench.serve_load --model model/ --from en --to fr --trials capacity --beside auto

starts `qkv serve` on a free port of the loopback address and prints a table for each trial, then what is to be reached
and whether it was; `--beside` asks another server in turns with it. Load and servers share the machine, so figures of a
run are to be compared with one another.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from bench.abuse import endless, slow
from bench.load import Asking, Bar, Connection, Server, Tally, at_most, nothing, running, watch_health

CONNECTIONS = (1, 16, 64, 256)
PEER = "libretranslate==1.9.6"
_PLACE = Path(".venv.libretranslate")
"""Where it lies: what it needs is older than what qkv does."""
_LONG_SOAK = 1800.0
"""Seconds from which on memory that grows can be told from memory that was not used yet."""
_ROUNDS = 3
"""Times that each server is asked for a row, in turns: what else the machine does meets both."""


async def capacity(
    servers: Mapping[str, Server], asking: Asking, sentences: Sequence[str], seconds: float
) -> list[Bar]:
    changed = 0
    print(f"{'server':<14} {'connections':>11} {'requests/s':>10} {'p50 ms':>8} {'p99 ms':>8}  others")
    for server in servers.values():
        await asking.closed_loop(server, sentences, 4, min(seconds, 2.0))
    for connections in CONNECTIONS:
        tallies = {name: Tally() for name in servers}
        for _, (name, server) in itertools.product(range(_ROUNDS), servers.items()):
            tallies[name].join(await asking.closed_loop(server, sentences, connections, seconds / _ROUNDS))
        for name, tally in tallies.items():
            changed += tally.changed
            times = f"{tally.at(0.5):>8.1f} {tally.at(0.99):>8.1f}"
            print(f"{name:<14} {connections:>11} {tally.rate:>10.1f} {times}  {tally.others or ''}")
    return [] if len(servers) > 1 else [nothing("texts translated in another way beside others", changed)]


async def overload(server: Server, asking: Asking, sentences: Sequence[str], seconds: float, times: float) -> list[Bar]:
    """Ten times what it can do: requests come at their own rate, whether or not others have been answered."""
    texts = [" ".join(sentences[place : place + 8]) for place in range(0, len(sentences) - 8, 8)]
    rate = (await asking.closed_loop(server, texts, 32, min(seconds, 10))).rate
    tally, health = Tally(), Tally()
    begun = time.monotonic()
    watching = asyncio.create_task(watch_health(server, health, begun + seconds))
    idle: list[Connection] = []

    async def ask(text: str) -> None:
        connection = idle.pop() if idle else Connection(server)
        sent = time.monotonic()
        try:
            status: int | str = (await connection.ask("/translate", asking.of(text)))[0]
        except (OSError, asyncio.IncompleteReadError) as error:
            status = type(error).__name__
            connection.close()
        tally.add(status, time.monotonic() - sent)
        idle.append(connection)

    asked = []
    for number, text in enumerate(itertools.cycle(texts)):
        due = begun + number / (rate * times)
        if due > begun + seconds:
            break
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked.append(asyncio.create_task(ask(text)))
    await asyncio.gather(watching, *asked)
    tally.reopened = sum(one.reopened for one in idle)
    seconds = time.monotonic() - begun
    served = tally.statuses[200] / seconds
    print(f"solo {rate:.1f}/s; offered {tally.statuses.total() / seconds:.1f}/s, served {served:.1f}/s "
          f"({served / rate:.0%} of solo); refusals p50 {tally.at(0.5, 429):.1f}, p99 {tally.at(0.99, 429):.1f} ms; "
          f"health p50 {health.at(0.5):.1f}, p99 {health.at(0.99):.1f} ms; "
          f"{tally.statuses[200]} served, others {tally.others}")  # fmt: skip
    return [
        Bar("share of solo capacity that is served under overload (at least 0.9)", served / rate, served >= 0.9 * rate),
        at_most("p99 of refusals in ms", tally.at(0.99, 429), 50),
        at_most("p99 of health under overload in ms", health.at(0.99), 50),
        nothing("answers that are neither 200 nor 429", {*tally.statuses} - {200, 429}),
    ]


async def stop_under_load(command: Sequence[str], asking: Asking, sentences: Sequence[str], times: int) -> list[Bar]:
    """Stops a server in the middle of work; requests that were sent whole before the signal must be answered."""
    lost = answered = 0
    for number in range(times):
        server = Server(command)
        await server.begin()
        connections = [Connection(server) for _ in range(32)]
        for place, connection in enumerate(connections):
            await connection.send("/translate", asking.of(sentences[place]))
        await asyncio.sleep(0.002 * (number % 25))
        server.process.send_signal(signal.SIGTERM)
        found = await asyncio.gather(*(one.answer() for one in connections), return_exceptions=True)
        for one in found:
            good = not isinstance(one, BaseException) and one[0] in (200, 429, 503)
            answered, lost = answered + good, lost + (not good)
        code = await asyncio.to_thread(server.process.wait, 60)
        assert code == 128 + signal.SIGTERM, code
    print(f"SIGTERM {times} times with 32 requests under way: {answered} answered, {lost} lost")
    return [nothing(f"accepted requests lost by {times} stops", lost)]


async def disconnects(server: Server, asking: Asking, sentences: Sequence[str], times: int) -> list[Bar]:
    """Clients that leave before they are answered: their work must leave too."""
    long = " ".join(sentences[:40])

    async def leave() -> None:
        connection = Connection(server)
        with suppress(OSError):
            await connection.send("/translate", asking.of(long))
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
    after = await asking.closed_loop(server, sentences, 1, 2)
    print(f"{times} disconnects: the queue was empty {1e3 * took:.0f} ms later; then p50 {after.at(0.5):.1f} ms")
    return [
        at_most(f"ms until nothing is left of {times} requests that were left", 1e3 * took, 1000),
        nothing("answers after that which are not 200", after.others),
    ]


async def soak(server: Server, asking: Asking, sentences: Sequence[str], seconds: float) -> list[Bar]:
    """Hours at about two thirds of what it can do, texts of all lengths."""
    texts = [" ".join(sentences[place : place + 1 + place % 7]) for place in range(len(sentences))]
    await asking.closed_loop(server, texts, 8, min(60.0, seconds / 4))
    begun, first, files = time.monotonic(), server.memory(), server.files()
    tally = Tally()
    clients = (asking.until(server, texts[number::4], tally, begun + seconds, pause=0.03) for number in range(4))
    await asyncio.gather(*clients)
    hours = (time.monotonic() - begun) / 3600
    print(f"soak of {seconds:.0f} s: {tally.statuses[200]} served, others {tally.others}")
    print(f"files {files} -> {server.files()}")
    # Connections of the clients are among them.
    bars = [
        at_most("open files more than before", server.files() - files, 0),
        nothing("texts translated in another way than before", tally.changed),
        nothing("answers that are not 200", {*tally.statuses} - {200}),
    ]
    # The process that talks to clients, and the one that translates.
    for name, before, after in zip(("front", "engine"), first, server.memory(), strict=True):
        print(f"memory of the {name} {before:.1f} -> {after:.1f} MB ({(after - before) / hours:+.1f} MB/h)")
        if seconds >= _LONG_SOAK:
            bars.append(at_most(f"MB an hour by which the {name} grows", (after - before) / hours, 1))
    return bars


async def measure(chosen: argparse.Namespace) -> list[Bar]:
    """Does the trials that were chosen, and tells what was reached."""
    model = ["--model", chosen.model, "--from", chosen.source, "--to", chosen.target]
    command = [sys.executable, "-m", "qkv", "serve", *model, *chosen.more]
    # Which language a text is in is found out by each server in its own way: beside another, that is not the question.
    asking = Asking(chosen.source if chosen.beside else "auto", chosen.target)
    lines = Path(chosen.sentences).read_text(encoding="utf-8").splitlines()
    sentences = [line.partition("\t")[0] for line in lines]
    seconds = chosen.seconds
    bars: list[Bar] = []
    trials: dict[str, Callable[[Server], Awaitable[list[Bar]]]] = {
        "overload": lambda server: overload(server, asking, sentences, 6 * seconds, 10),
        "disconnects": lambda server: disconnects(server, asking, sentences, 1000),
        "slow": lambda server: slow(server, asking, sentences, 1000),
        "endless": lambda server: endless(server, asking, sentences, 2 * seconds),
        "soak": lambda server: soak(server, asking, sentences, chosen.soak),
    }
    if "capacity" in chosen.trials:
        print("\ncapacity")
        commands = {"qkv": command} | (_beside(chosen.beside, model) if chosen.beside else {})
        async with AsyncExitStack() as stack:
            servers = {name: await stack.enter_async_context(running(one)) for name, one in commands.items()}
            bars += await capacity(servers, asking, sentences, seconds)
    for name, trial in trials.items():
        if name in chosen.trials:
            print(f"\n{name}")
            async with running(command) as server:
                bars += await trial(server)
    if "stop" in chosen.trials:
        print("\nstop")
        bars += await stop_under_load(command, asking, sentences, chosen.stops)
    return bars


def _beside(beside: str, model: Sequence[str]) -> dict[str, list[str]]:
    """The name of the other server, and how it is begun: as it is said, or LibreTranslate with the same model."""
    if beside != "auto":
        return {"beside": shlex.split(beside)}
    python = _PLACE / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(_PLACE)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PEER, "."], check=True)
    return {"LibreTranslate": [str(python), "-m", "bench.libre", *model]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--from", dest="source", default="en")
    parser.add_argument("--to", dest="target", default="fr")
    parser.add_argument("--sentences", default="demo/test.en-fr.tsv", help="text, or pairs of which the first is taken")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each row (default: 10)")
    parser.add_argument("--soak", type=float, default=3600.0, help="seconds (default: 3600)")
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument(
        "--trials", default="capacity,overload,disconnects,slow,endless,stop", type=lambda text: text.split(",")
    )
    parser.add_argument(
        "--beside",
        metavar="COMMAND",
        help=f"another server that speaks LibreTranslate's protocol and takes --host and --port; auto is {PEER} "
        f"with the same model, installed in {_PLACE} where it is not",
    )
    parser.add_argument("more", nargs="*", help="other options of qkv serve, after --")
    bars = asyncio.run(measure(parser.parse_args()))
    print("", *bars, sep="\n")
    return 0 if all(bar.held for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
