"""The process that takes files apart and puts them together.

Files are others': whatever one of them does to who reads it, a process can be ended, and a thread cannot. It asks for
translations over its line, and has so many seconds of a core for each stretch of work between.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from qkv.errors import QkvError
from qkv.files import translate_file
from qkv.serve.line import Line, Message, own_line

_MEMORY = 1 << 30
"""Bytes that reading a file may take; of what is packed, a small one may hold much."""
_AT_ONCE = 1 << 16
"""Characters that are sent together: whoever reads them has others to answer, too."""


class Clerk:
    """Does one file after the other."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._messages = line.messages()

    def work(self) -> None:
        """Follows messages until there are no more."""
        for message in self._messages:
            data = self._line.read(message["bytes"])
            _limit(message["seconds"])
            told, made = self._made(data, message)
            _limit(0)
            self._line.send(told, made)

    def _made(self, data: bytes, asked: Message) -> tuple[Message, bytes]:
        def translate(texts: list[str]) -> list[str]:
            # Others work meanwhile; then all the time begins anew.
            _limit(0)
            answers = self._translated(texts)
            _limit(asked["seconds"])
            return answers

        try:
            made = translate_file(data, asked["name"], translate, source=asked["source"], target=asked["target"])
        except QkvError as error:
            return {"refused": str(error)}, b""
        except MemoryError:
            return {"refused": f"{asked['name']} takes too much memory to read; split it"}, b""
        return {"made": len(made)}, made

    def _translated(self, texts: list[str]) -> list[str]:
        for some in _helpings(texts):
            self._line.send({"texts": some})
        self._line.send({"asked": len(texts)})
        answers: list[str] = []
        while len(answers) < len(texts):
            message = next(self._messages, None)
            if message is None:
                sys.exit()
            answers += message["answers"]
        return answers


def _limit(seconds: float) -> None:
    """Ends this process when it has worked for so many seconds, if any: the kernel does it, whatever the work is."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    """From here on, what takes more raises a MemoryError; libraries have reserved some already, more than they use."""
    if sys.platform == "linux":
        reserved = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (reserved + _MEMORY, reserved + _MEMORY))


def _helpings(texts: list[str]) -> Iterator[list[str]]:
    some: list[str] = []
    characters = 0
    for text in texts:
        some.append(text)
        characters += len(text)
        if characters > _AT_ONCE:
            yield some
            some, characters = [], 0
    if some:
        yield some


if __name__ == "__main__":
    _limit_memory()
    Clerk(own_line()).work()
