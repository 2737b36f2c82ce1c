"""What an order is made of is got ready without holding up others, and given up when nobody waits for it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qkv.config import SearchConfig
from qkv.serve import worker as module
from qkv.serve.line import Line
from qkv.serve.models import Models
from qkv.serve.orders import Order, as_message
from qkv.serve.preparing import Prepared, prepare
from qkv.serve.settings import Settings
from qkv.serve.worker import Worker
from qkv.text.languages import Direction
from qkv.translate import Translator
from qkv.translate.making import Makings


@pytest.fixture(scope="module")
def translator(exported: Path) -> Translator:
    return Translator.load(exported).between("en", "fr")


@contextmanager
def asked(translator: Translator, **settings: float) -> Iterator[Line]:
    """The other end of a worker's line."""
    ours, theirs = socket.socketpair()
    worker = Worker(Models({Direction("en", "fr"): (translator,)}), Settings(**settings), Line(theirs))  # type: ignore[arg-type]
    thread = threading.Thread(target=worker.work)
    thread.start()
    try:
        yield Line(ours)
    finally:
        ours.close()
        thread.join()
        theirs.close()


def test_nobody_waits_for_what_somebodys_large_order_costs(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def slowly(order: Order, *steps: object, **how: object) -> Prepared:
        if order.glossary is not None or len(order.texts[0]) > 1000:
            assert over.wait(60)
        return prepare(order, *steps, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "prepare", slowly)
    large = [Order(["basa koti"], "en", "fr", glossary={"koti": "nesa"}), Order(["basa koti " * 500], "en", "fr")]
    with asked(translator) as line:
        for number, order in enumerate([*large, Order(["basa koti"], "en", "fr")]):
            line.send(as_message(number, order))
        told = (message for message in line.messages() if "number" in message)
        assert next(told) == {"number": 2, "texts": [["itok asab"]]}
        over.set()
        numbers = (message["number"] for message in told if "number" in message)
        assert {next(numbers), next(numbers)} == {0, 1}


def test_no_batch_waits_for_a_large_order(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def slowly(order: Order, *steps: object, **how: object) -> Prepared:
        assert order.glossary is None or over.wait(60)
        return prepare(order, *steps, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "prepare", slowly)
    large = Order(["basa koti"], "en", "fr", glossary={"koti": "nesa"})
    with asked(translator, batch_wait=30) as line:
        begun = time.monotonic()
        # One is being cut, and one is in line behind it.
        for number, order in enumerate([large, large, Order(["basa koti"], "en", "fr")]):
            line.send(as_message(number, order))
        told = (message["number"] for message in line.messages() if "number" in message)
        assert (next(told), time.monotonic() - begun < 20) == (2, True)
        over.set()
        assert {next(told), next(told)} == {0, 1}


def test_a_batch_waits_a_moment_for_an_order_that_is_being_cut(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutting = threading.Event()

    def slowly(order: Order, *steps: object, **how: object) -> Prepared:
        if order.glossary is None:
            cutting.set()
            time.sleep(0.5)
        else:
            # It has a thread of its own, and is done first.
            assert cutting.wait(60)
        return prepare(order, *steps, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "prepare", slowly)
    with asked(translator, batch_wait=30) as line:
        begun = time.monotonic()
        line.send(as_message(0, Order(["basa koti"], "en", "fr", glossary={"koti": "nesa"})))
        line.send(as_message(1, Order(["basa koti"], "en", "fr")))
        told = line.messages()
        paces = (message["pace"] for message in told if "pace" in message)
        assert next(pace["sentences"] for pace in paces if pace["batches"] == 1) == 2
        # And no longer than that.
        assert time.monotonic() - begun < 20
        numbers = (message["number"] for message in told if "number" in message)
        assert {next(numbers), next(numbers)} == {0, 1}


def test_what_nobody_waits_for_is_prepared_no_further(translator: Translator) -> None:
    asked = 0

    def abandoned() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    order = Order(["basa koti"] * 100, "en", "fr")
    assert len(prepare(order, (translator,), beam=0, abandoned=abandoned).parted) == 3


@pytest.mark.parametrize(
    ("order", "typeset"),
    [
        (Order(["basa's", "kodu"], "en", "fr"), False),
        (Order(["basa’s", "kodu"], "en", "fr"), True),
        (Order(["basa's"], "en", "fr", typeset=True), True),
        # What counts is what is read, not how it is marked up.
        (Order(["<p>basa&rsquo;s</p>", "kodu"], "en", "fr", "html"), True),
        (Order(["<p title='’'>basa's</p>"], "en", "fr", "html"), False),
    ],
)
def test_an_order_is_typeset_or_not_as_a_whole(exported: Path, order: Order, typeset: bool) -> None:
    kept = Translator.load(exported)
    plain = Translator(Makings.of(kept.engine, kept.tokenizer, SearchConfig(), right_to_left=False, plain_marks=True))
    prepared = prepare(order, (plain, plain), beam=1, abandoned=lambda: False)
    assert prepared.translators == ((plain.typeset,) * 2 if typeset else (plain,) * 2)
    assert prepare(order, (kept,), beam=1, abandoned=lambda: False).translators == (kept,)
