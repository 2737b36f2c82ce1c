"""A web server with small stand-ins of every archive, laid out as the real ones are, that can be told to misbehave."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from qkv.fetch.corpora import Corpus, Download, Side, Text
from tests import toy

Fault = Callable[["Handler", bytes], None]


@dataclass
class Mirror:
    """What is served, what was asked for, and what goes wrong with the next requests, in order."""

    directory: Path
    url: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Names of files, and the range of each."""
    faults: list[Fault] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    def __init__(self, mirror: Mirror, *rest: object) -> None:
        self.mirror = mirror
        super().__init__(*rest)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.mirror.asked.append((self.path.rpartition("/")[2], wanted))
        path = self.mirror.directory / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        if self.mirror.faults:
            self.mirror.faults.pop(0)(self, content)
            return
        tag = tag_of(content)
        if wanted is None or self.headers["If-Range"] != tag:
            self.answer(200, content, tag)
            return
        begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if begin >= len(content):
            self.send_error(416)
            return
        self.answer(206, content[begin:], tag, f"bytes {begin}-{len(content) - 1}/{len(content)}")

    def answer(
        self, status: int, body: bytes, tag: str, content_range: str | None = None, *, promised: int | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if promised is None else promised))
        self.send_header("ETag", tag)
        if content_range is not None:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def tag_of(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()}"'


def cut_after(count: int) -> Fault:
    """The connection breaks off after so many bytes."""
    return lambda handler, content: handler.answer(200, content[:count], tag_of(content), promised=len(content))


def promising(count: int) -> Fault:
    """All is sent, and more was promised."""
    return lambda handler, content: handler.answer(200, content, tag_of(content), promised=count)


def without_a_length(told: str | None = None) -> Fault:
    """What is sent ends with the connection, and its header does not tell where."""

    def fault(handler: Handler, content: bytes) -> None:
        handler.send_response(200)
        if told is not None:
            handler.send_header("Content-Length", told)
        handler.end_headers()
        handler.wfile.write(content)

    return fault


def without_an_end(handler: Handler, content: bytes) -> None:
    """The same is sent again and again, to whoever does not go away."""
    handler.send_response(200)
    handler.end_headers()
    with contextlib.suppress(ConnectionError):
        for _ in range(10_000):
            handler.wfile.write(content)


def leading_to(place: str) -> Fault:
    """The file is said to be elsewhere."""

    def fault(handler: Handler, _: bytes) -> None:
        handler.send_response(302)
        handler.send_header("Location", place)
        handler.end_headers()

    return fault


def saying(words: bytes) -> Fault:
    """These bytes are sent and no others, whatever they are."""

    def fault(handler: Handler, _: bytes) -> None:
        handler.wfile.write(words)

    return fault


def status(code: int) -> Fault:
    return lambda handler, _: handler.send_error(code)


@contextmanager
def serving(directory: Path) -> Iterator[Mirror]:
    mirror = Mirror(directory)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, mirror))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    mirror.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield mirror
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def stand_in(found: Corpus, directory: Path, pairs: int = 60) -> Corpus:
    """Writes small files in place of all that a corpus is made of; the corpus, with their checksums and sizes."""
    checksums: dict[str, str] = {}
    for download, sides in found.downloads().items():
        content = _archive(download, [(side, _content(text, side, found, pairs)) for text, side, _ in sides])
        (directory / download.name).write_bytes(content)
        checksums[download.name] = f"sha256:{hashlib.sha256(content).hexdigest()}"

    def side(one: Side) -> Side:
        download = one.download
        # Where nobody has published one, there is none for the stand-in either.
        checksum = checksums[download.name] if download.checksum else None
        return one._replace(download=download._replace(checksum=checksum))

    def texts(some: tuple[Text, ...]) -> tuple[Text, ...]:
        return tuple(one._replace(source=side(one.source), target=side(one.target)) for one in some)

    return replace(found, training=texts(found.training), valid=texts(found.valid), test=texts(found.test))


def lines_of(text: Text, found: Corpus, pairs: int) -> list[tuple[str, str]]:
    """What a stand-in says: other pairs in each text."""
    number = [*found.texts()].index(text)
    return toy.pairs(pairs * (number + 1), seed=3)[pairs * number :]


def _content(text: Text, side: Side, found: Corpus, pairs: int) -> bytes:
    column = 0 if side == text.source else 1
    lines = [pair[column] for pair in lines_of(text, found, pairs)]
    written: bytes = _FORMS[text.form](lines)
    return gzip.compress(written) if side.member is not None and side.member.endswith(".gz") else written


def _segments(lines: list[str]) -> bytes:
    half = len(lines) // 2
    documents = [
        "\n".join(f'<seg id="{number}"> {line} &amp; </seg>' for number, line in enumerate(some, start=1))
        for some in (lines[:half], lines[half:])
    ]
    inside = "".join(f'<doc sysid="ref" docid="d{number}">\n{one}\n</doc>\n' for number, one in enumerate(documents))
    return f'<srcset setid="test" srclang="any">\n{inside}</srcset>\n'.encode()


def _talks(lines: list[str]) -> bytes:
    first, *rest = lines
    body = "\n".join(f" {line} " for line in rest)
    about = "<url>http://example.org</url>\n<keywords>a, b</keywords>\n<talkid>1</talkid>\n"
    return f'{about}<title>{first}</title>\n{body}\n<translator href="x">Somebody</translator>\n'.encode()


_FORMS: dict[str, Callable[[list[str]], bytes]] = {
    "lines": lambda lines: "".join(f"{line}\n" for line in lines).encode(),
    "segments": _segments,
    "talks": _talks,
}


def _archive(download: Download, contents: list[tuple[Side, bytes]]) -> bytes:
    if contents[0][0].member is None:
        return gzip.compress(contents[0][1])
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        add(archive, "training/README", b"of no use here\n")
        for side, content in contents:
            add(archive, str(side.member), content)
    return written.getvalue() if download.name.endswith(".tar") else gzip.compress(written.getvalue())


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
