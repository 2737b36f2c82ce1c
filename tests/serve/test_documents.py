"""Files sent to the server come back translated, and what is in them does no harm."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from qkv.serve import clerk as clerk_module
from qkv.serve.clerk import Clerk
from qkv.serve.documents import Document, Documents, Sent, _patiently
from qkv.serve.line import Line
from qkv.serve.orders import Answer, Order
from qkv.serve.refusals import Refusal
from qkv.serve.settings import Settings
from tests.serve.served import Got, Served, answered, connected, eventually, posted, send, serving

PAGE = b'<html lang="en"><p class="a">basa <b>koti</b></p><script>basa</script>'


def test_libretranslate_translates_a_file(served: Served) -> None:
    got = send(served, "/translate_file", "a page.html", PAGE, source="en", target="fr")
    assert got.status == 200, got.body
    where = urlsplit(got.json["translatedFileUrl"])
    assert f"{where.scheme}://{where.netloc}" == served.url
    made = served.get(where.path)
    assert made.body.startswith(b'<html lang="fr"><p class="a">')
    assert made.body.endswith(b"</p><script>basa</script>")
    assert b"asab" in made.body and made.body.count(b"<b>") == 1
    assert made.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20page.fr.html"
    assert send(served, "/translate_file", "a.html", PAGE, source="auto", target="fr").status == 200
    assert ".docx" in served.get("/frontend/settings").json["supportedFilesFormat"]


def test_deepl_translates_a_document(served: Served, tmp_path: Path) -> None:
    deepl = pytest.importorskip("deepl")
    (tmp_path / "in.txt").write_text("basa koti\n\nrimo nesa\n")
    client = deepl.DeepLClient("key", server_url=served.url)
    paths = tmp_path / "in.txt", tmp_path / "out.txt"
    status = client.translate_document_from_filepath(*paths, source_lang="EN", target_lang="FR")
    assert status.done
    assert (tmp_path / "out.txt").read_text() == "itok asab\n\nasen omir\n"


def bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<a>" + b" " * (64 << 20) + b"</a>")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.docx", bomb(), "unpacks to far too much"),
        ("a.xlf", b'<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><xliff>&d;</xliff>', "declares entities"),
        ("a.txt", b"\xff", "convert it to UTF-8"),
        ("a.exe", b"", "cannot be translated"),
        ("../../etc/passwd", b"", "cannot be translated"),
    ],
)
def test_what_is_broken_or_made_to_do_harm_is_refused(served: Served, name: str, data: bytes, told: str) -> None:
    got = send(served, "/translate_file", name, data, source="en", target="fr")
    assert got.status == 400
    assert told in got.json["error"]
    sent = send(served, "/v2/document", name, data, target_lang="FR")
    if sent.status == 200:
        key = sent.json["document_key"]
        for _ in range(600):
            status = served.post(f"/v2/document/{sent.json['document_id']}", {"document_key": key})
            if status.json["status"] == "error":
                break
            time.sleep(0.1)
        assert told in status.json["error_message"]
    else:
        assert (sent.status, told in sent.json["message"]) == (400, True)


def test_a_document_is_given_once_and_to_whoever_has_its_key(served: Served) -> None:
    sent = send(served, "/v2/document", "a.txt", b"basa koti", target_lang="FR", source_lang="EN").json
    where = f"/v2/document/{sent['document_id']}"
    assert served.post(where, {"document_key": "é"}).status == 404
    assert eventually(lambda: served.post(where, {"document_key": sent["document_key"]}).json["status"] == "done", 60)
    assert served.post(f"{where}/result", {"document_key": "wrong"}).status == 404
    assert served.post(f"{where}/result", {"document_key": sent["document_key"]}).body == b"itok asab"
    assert served.post(f"{where}/result", {"document_key": sent["document_key"]}).status == 404
    assert served.get("/download_file/nothing").status == 404


def test_a_document_that_is_not_done_is_waited_for_a_while_and_then_to_be_asked_for_again(exported: Path) -> None:
    with serving(exported, "--batch-tokens", "64") as served:

        def result(text: bytes) -> Got:
            sent = send(served, "/v2/document", "a.txt", text, target_lang="FR", source_lang="EN").json
            return served.post(f"/v2/document/{sent['document_id']}/result", {"document_key": sent["document_key"]})

        assert result(b"basa koti\n" * 9).body == b"itok asab\n" * 9
        os.kill(served.worker, signal.SIGSTOP)
        got = result(b"basa koti")
        assert (got.status, got.headers["retry-after"]) == (503, "1")
        os.kill(served.worker, signal.SIGCONT)


def test_a_document_is_translated_by_a_glossary(served: Served) -> None:
    said = {"name": "mine", "source_lang": "EN", "target_lang": "FR", "entries": "koti\tkitty"}
    number = served.post("/v2/glossaries", said).json["glossary_id"]
    fields = {"target_lang": "FR", "source_lang": "EN", "glossary_id": number}
    sent = send(served, "/v2/document", "a.txt", b"basa koti", **fields).json
    where, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
    assert eventually(lambda: served.post(where, key).json["status"] == "done")
    assert b"kitty" in served.post(f"{where}/result", key).body.lower()
    assert served.ask("DELETE", f"/v2/glossaries/{number}").status == 204
    assert send(served, "/v2/document", "a.txt", b"basa koti", **fields).status == 404


def test_a_file_may_have_more_than_a_request(exported: Path) -> None:
    with serving(exported, "--request-characters", "20", "--request-texts", "2", "--request-tokens", "6") as served:
        text = b"basa koti\nrimo nesa\nkoti\nnesa\nbasa\n"
        got = send(served, "/translate_file", "a.txt", text, source="en", target="fr")
        assert got.status == 200, got.body
        made = served.get(urlsplit(got.json["translatedFileUrl"]).path)
        assert made.body.count(b"\n") == 5
        assert made.body.startswith(b"itok asab\nasen omir\n")
        assert send(served, "/translate_file", "a.txt", text, source="en", target="xx").status == 400


def test_a_server_that_stops_finishes_files_and_gives_them_out(exported: Path) -> None:
    with serving(exported, "--batch-tokens", "64", "--drain-delay", "0") as served:
        text = b"basa koti rimo nesa\n" * 300
        sent = send(served, "/v2/document", "a.txt", text, target_lang="FR", source_lang="EN").json
        served.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: served.get("/ready").status == 503)
        refused = send(served, "/v2/document", "b.txt", b"basa", target_lang="FR")
        assert (refused.status, "retry-after" in refused.headers) == (503, True)
        where, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
        assert eventually(lambda: served.post(where, key).json["status"] == "done", 60)
        assert served.post(f"{where}/result", key).body.count(b"\n") == 300
        assert served.process.wait(30) == 143
        assert "lost" not in served.log.read_text()


def test_a_file_that_nobody_can_have_is_told(exported: Path) -> None:
    with serving(exported, "--batch-tokens", "64", "--drain-delay", "0", "--drain-timeout", "0.2") as served:
        send(served, "/v2/document", "a.txt", b"basa koti rimo nesa\n" * 1200, target_lang="FR", source_lang="EN")
        assert served.stop() == 143
        assert "1 files that were accepted have not been fetched, and are lost" in served.log.read_text()


def test_a_file_is_given_out_by_the_protocol_that_it_was_sent_by(served: Served) -> None:
    sent = send(served, "/v2/document", "a.txt", b"basa koti", target_lang="FR", source_lang="EN").json
    where, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
    assert eventually(lambda: served.post(where, key).json["status"] == "done")
    assert served.get(f"/download_file/{sent['document_id']}.a.fr.txt").status == 404
    assert served.post(f"{where}/result", key).body == b"itok asab"


ENDLESS = b"<p>basa <b>koti</b></p>\n" * 100_000
"""What takes seconds to be taken apart."""


def test_files_that_take_too_long_are_given_up_and_hold_up_nobody(exported: Path) -> None:
    with serving(exported, "--file-timeout", "0.1") as served:
        fields = {"target_lang": "FR", "source_lang": "EN"}
        sent = [send(served, "/v2/document", "a.html", ENDLESS, **fields).json for _ in range(6)]
        small = send(served, "/translate_file", "a.txt", b"basa koti", source="en", target="fr")
        assert small.status == 200, small.body
        for one in sent:
            where, key = f"/v2/document/{one['document_id']}", {"document_key": one["document_key"]}
            assert eventually(lambda: served.post(where, key).json["status"] == "error")  # noqa: B023
            assert "more than 0.1 seconds to read; split it" in served.post(where, key).json["error_message"]
        assert send(served, "/translate_file", "a.html", ENDLESS, source="en", target="fr").status == 400


def clerks(served: Served) -> list[int]:
    """The processes that read files."""
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text().split()
    return [int(one) for one in children if b"qkv.serve.clerk" in Path(f"/proc/{one}/cmdline").read_bytes()]


def test_a_server_stops_in_time_whatever_a_file_does_and_says_what_is_lost(exported: Path) -> None:
    with serving(exported, "--drain-delay", "0", "--drain-timeout", "0.5") as served:
        assert send(served, "/translate_file", "a.txt", b"basa koti", source="en", target="fr").status == 200
        (clerk,) = clerks(served)
        os.kill(clerk, signal.SIGSTOP)
        send(served, "/v2/document", "a.txt", b"basa koti", target_lang="FR", source_lang="EN")
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(20) == 143
        assert "stopped; given up: 2 files" in served.log.read_text()
        assert not is_there(clerk)


def test_processes_end_with_a_server_that_is_killed_whatever_they_do(exported: Path) -> None:
    with serving(exported) as served:
        assert send(served, "/translate_file", "a.txt", b"basa koti", source="en", target="fr").status == 200
        processes = [served.worker, *clerks(served)]
        assert len(processes) == 2
        for one in processes:
            os.kill(one, signal.SIGSTOP)
        served.process.kill()
        assert eventually(lambda: not any(is_there(one) for one in processes))


def is_there(process: int) -> bool:
    """Whether a process has not ended, or only nobody has asked how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_server_says_how_many_requests_it_did_not_answer(exported: Path) -> None:
    with serving(exported, "--drain-delay", "0", "--drain-timeout", "0.2") as served, connected(served) as connection:
        worker = served.worker
        os.kill(worker, signal.SIGSTOP)
        connection.sendall(posted("basa koti"))
        assert eventually(lambda: served.metric("orders") == 1)
        assert served.stop() == 143
        assert "stopped; given up: 1 requests" in served.log.read_text()
        assert "Traceback" not in served.log.read_text()
        # In the words of its protocol, so that a client knows when to ask again.
        head, _, body = answered(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ") and b"retry-after: 5" in head.lower()
        assert json.loads(body) == {"error": "The server is stopping; ask again."}


def test_whoever_reads_files_and_died_meanwhile_is_begun_anew(exported: Path) -> None:
    with serving(exported) as served:
        for _ in range(2):
            assert send(served, "/translate_file", "a.txt", b"basa koti", source="en", target="fr").status == 200
            (clerk,) = clerks(served)
            os.kill(clerk, signal.SIGKILL)
            assert eventually(lambda: not is_there(clerk))  # noqa: B023


def test_a_file_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = "from qkv.serve import clerk; clerk._limit_memory(); bytearray(2 * clerk._MEMORY)"
    ran = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True)
    assert ran.stderr.endswith("MemoryError\n")

    def too_much(*_: object, **__: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(clerk_module, "translate_file", too_much)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        asked = {"name": "a.docx", "seconds": 1.0, "source": "en", "target": "fr"}
        told, made = Clerk(Line(ours))._made(b"", asked)
    assert (told, made) == ({"refused": "a.docx takes too much memory to read; split it"}, b"")


def test_a_part_of_a_file_that_takes_too_long_is_asked_for_in_halves() -> None:
    asked: list[int] = []

    async def translate(order: Order) -> list[Answer]:
        asked.append(len(order.texts))
        if len(order.texts) > 2:
            raise Refusal("late", "It took longer than 30 seconds.")
        return [Answer(text[::-1], (), "en", 1.0) for text in order.texts]

    texts = ["ab", "cd", "ef", "gh", "ij"]
    found = asyncio.run(_patiently(translate, Order(texts, "en", "fr")))
    assert [one.text for one in found] == [text[::-1] for text in texts]
    assert asked == [5, 2, 3, 1, 2]


class Languages:
    """Of a server that takes every direction."""

    def direction(self, source: str, target: str) -> None: ...

    def target(self, code: str) -> str:
        return code


class Desk:
    stopping = False
    settings = Settings()
    languages = Languages()


async def refused(_: Order) -> list[Answer]:
    raise Refusal("failed", "nothing is translated here")


def test_what_is_held_for_files_is_counted_and_no_more_than_there_is_room_for() -> None:
    broken = b"x" * (4 << 20)

    async def sent() -> tuple[list[Document], list[int]]:
        with contextlib.closing(Documents(Desk(), 5 << 20)) as documents:  # type: ignore[arg-type]

            def begin() -> Document:
                return documents.begin(Sent("a.docx", broken + b"", "en", "fr"), refused, protocol="deepl")

            first = begin()
            with pytest.raises(Refusal, match="too many files"):
                begin()
            await first.work
            every = [first]
            tracemalloc.start()
            for _ in range(3):
                every.append(begin())
                await every[-1].work
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return every, [held, sum(one.held for one in every)]

    every, (traced, counted) = asyncio.run(sent())
    assert all(one.failure is not None and "docx" in one.failure.message for one in every)
    assert traced < 1 << 20
    assert counted == 4 * 4096


def test_an_hour_is_counted_from_when_a_file_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("qkv.serve.documents.time", SimpleNamespace(monotonic=lambda: now))

    async def sent() -> None:
        nonlocal now
        with contextlib.closing(Documents(Desk(), 5 << 20)) as documents:  # type: ignore[arg-type]
            document = documents.begin(Sent("a.docx", b"x", "en", "fr"), refused, protocol="deepl")
            now += 3500
            await document.work
            now += 3599
            assert documents.get(document.number, protocol="deepl") is document
            now += 2
            with pytest.raises(Refusal, match="not found"):
                documents.get(document.number, protocol="deepl")

    asyncio.run(sent())
