"""The command line for scripts that call it many times: processes of their own, that are there in milliseconds."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

_KEY = b"qkv"


@contextlib.contextmanager
def qkv_for_scripts(folder: Path) -> Iterator[str]:
    """What a script is given as `qkv`; it runs what this process would run, forked where all is imported already."""
    with Listener(("localhost", 0), authkey=_KEY) as listener:
        threading.Thread(target=_serve, args=(listener, folder), daemon=True).start()
        yield shlex.join([sys.executable, "-S", __file__, str(listener.address[1])])


def _serve(listener: Listener, folder: Path) -> None:
    number = 0
    # Closing what is listened at ends this, once somebody has called again.
    with contextlib.suppress(OSError):
        while True:
            number += 1
            threading.Thread(target=_answer, args=(listener.accept(), folder / f"told-{number}"), daemon=True).start()


def _answer(connection: Connection[Any, Any], told: Path) -> None:
    # Not above: whoever asks is this file as well, and is to be quick.
    from tests import forked

    with connection, contextlib.suppress(EOFError, OSError):
        directory, *arguments = connection.recv()
        code = forked.run(_within, directory, *arguments, told=told)
        connection.send((code, told.read_text()))


def _within(directory: str, *arguments: str) -> int:
    from tests import forked

    os.chdir(directory)
    return forked.command(*arguments)


if __name__ == "__main__":
    with Client(("localhost", int(sys.argv[1])), authkey=_KEY) as asked:
        asked.send([str(Path.cwd()), *sys.argv[2:]])
        code, told = asked.recv()
    sys.stderr.write(told)
    sys.exit(code if code >= 0 else 128 - code)
