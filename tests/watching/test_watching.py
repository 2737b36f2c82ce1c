"""A run, watched."""

from __future__ import annotations

import dataclasses
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest

from qkv import Translator
from qkv.errors import ConfigError
from qkv.models.build import build
from qkv.prepare import Prepared
from qkv.prepare.directory import held
from qkv.run import RunDirectory
from qkv.settings import to_json
from qkv.training import train
from qkv.training.feeding import batches_of
from qkv.training.validation import Texts, Validation
from qkv.watching.run import Watched
from tests.serve.served import eventually
from tests.toy import QUICK, Command, held_out, pairs, reports, write_tsv

TEXT, _ = held_out()[0]


@pytest.fixture
def run(toy_run: Path, tmp_path: Path) -> Path:
    """A copy of the toy run, which may be changed."""
    return Path(shutil.copytree(toy_run, tmp_path / "run"))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that goes both ways."""
    folder = tmp_path_factory.mktemp("several")
    file = write_tsv(folder / "both.en-de.tsv", pairs(80))
    config = QUICK.with_changes(text={"vocabulary": 340, "directions": "en-de,de-en"})
    train([file], folder / "run", config)
    return folder / "run"


def told(run: Path, **how: Any) -> dict[str, Any]:
    watched = Watched(run, **how)
    watched.look()
    return watched.told()


def test_a_validation_logs_a_few_translations(toy_run: Path) -> None:
    last = reports(toy_run, "validation")[-1]
    assert len(last["samples"]) == 3
    assert all(one["reference"] == one["source"][::-1] for one in last["samples"])
    # The run has learned its language.
    assert sum(one["text"] == one["reference"] for one in last["samples"]) >= 2


def test_curves_and_samples_are_those_of_the_log(toy_run: Path) -> None:
    shown = told(toy_run)
    for kind, names in (("train", ("loss", "learning_rate")), ("validation", ("loss", "bleu"))):
        logged = reports(toy_run, kind)
        assert [one["step"] for one in shown[kind]] == [one["step"] for one in logged]
        for name in names:
            assert [one[name] for one in shown[kind]] == [one[name] for one in logged]
    assert shown["samples"][-1]["sentences"] == reports(toy_run, "validation")[-1]["samples"]
    assert (shown["steps"], shown["problem"]) == (300, None)


def test_attention_is_told_of_every_checkpoint_and_becomes_sharper(toy_run: Path) -> None:
    shown = told(toy_run)["attention"]
    sample = max(reports(toy_run, "validation")[0]["samples"], key=lambda one: len(one["source"]))
    assert shown["texts"] == [sample["source"], sample["reference"]]
    assert [one["step"] for one in shown["checkpoints"]] == [100, 200, 300]
    sharpness = []
    for one in shown["checkpoints"]:
        for layer in one["layers"]:
            assert len(layer) == len(shown["target"])
            assert all(len(row) == len(shown["source"]) and abs(sum(row) - 1) < 0.02 for row in layer)
        sharpness.append(sum(max(row) for layer in one["layers"] for row in layer))
    assert sharpness[-1] > sharpness[0]


def test_a_sentence_can_be_chosen(toy_run: Path) -> None:
    shown = told(toy_run, sentence=TEXT)["attention"]
    assert shown["texts"] == [TEXT, TEXT[::-1]]


def test_a_damaged_checkpoint_is_told_of_and_the_others_are_shown(run: Path) -> None:
    path = run / "checkpoints" / "step-0000200" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    shown = told(run)
    assert [one["step"] for one in shown["attention"]["checkpoints"]] == [100, 300]
    assert "step-0000200" in shown["problem"]


def test_final_weights_are_those_of_the_step_that_they_were_made_at(run: Path) -> None:
    config = RunDirectory(run).config().with_changes(training={"steps": 900, "patience": 2})
    (run / "config.json").write_text(to_json(config))
    shutil.rmtree(run / "checkpoints")
    assert [one["step"] for one in told(run)["attention"]["checkpoints"]] == [300]


def test_final_weights_that_do_not_tell_their_step_are_a_problem_that_is_told(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    (run / "final" / "state.json").write_text("{")
    shown = told(run)
    assert (shown["attention"], "state.json is damaged" in shown["problem"]) == (None, True)


def test_what_was_seen_stays_when_the_run_removes_it_and_new_reports_are_found(run: Path) -> None:
    watched = Watched(run)
    watched.look()
    shutil.rmtree(run / "checkpoints" / "step-0000100")
    with (run / "log.jsonl").open("a") as log:
        log.write(json.dumps({"kind": "train", "step": 310, "loss": float("nan"), "learning_rate": 0.1}) + "\n{")
    watched.look()
    shown = watched.told()
    assert len(shown["attention"]["checkpoints"]) == 3
    # JSON has no word for what is not a number.
    assert shown["train"][-1] == {"step": 310, "loss": None, "learning_rate": 0.1, "tokens_per_second": None}


def test_a_run_that_has_only_begun_is_shown_as_such(run: Path) -> None:
    for name in ("checkpoints", "final"):
        shutil.rmtree(run / name)
    (run / "log.jsonl").unlink()
    shown = told(run)
    assert (shown["train"], shown["validation"], shown["samples"], shown["attention"]) == ([], [], [], None)


def test_it_is_told_whether_a_run_goes_on_and_how_long(run: Path) -> None:
    shown = told(run)
    assert (shown["standing"], shown["seconds_left"]) == ("finished", 0)
    with RunDirectory(run).held():
        assert told(run)["standing"] == "training"
    shutil.rmtree(run / "final")
    assert (told(run)["standing"], told(run)["why_stopped"]) == ("stopped", None)
    with (run / "log.jsonl").open("a") as log:
        log.write('{"kind": "stopped", "step": 300, "why": "the memory is full"}\n')
    assert told(run)["why_stopped"] == "the memory is full"
    lines = [{"kind": "train", "step": step, "loss": 1.0, "seconds": 0.5 * step} for step in (100, 120, 140)]
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = told(run)
    assert shown["seconds_left"] == pytest.approx(0.5 * (300 - 140))
    assert 0 <= shown["seconds_since"] < 60


def test_a_look_at_whether_a_run_goes_on_keeps_nobody_from_it(run: Path) -> None:
    def let_go(lock: IO[bytes]) -> None:
        time.sleep(0.5)
        fcntl.flock(lock, fcntl.LOCK_UN)

    with (run / "lock").open("rb") as lock, ThreadPoolExecutor(1) as beside:
        # As a look does, only much longer.
        fcntl.flock(lock, fcntl.LOCK_SH)
        beside.submit(let_go, lock)
        with RunDirectory(run).held():
            assert RunDirectory(run).busy
            begun = time.monotonic()
            with pytest.raises(ConfigError, match="another process is at work"), RunDirectory(run).held():
                pass
            # A claim is not waited for as a look is.
            assert time.monotonic() - begun < 10


def test_a_run_whose_text_is_being_prepared_is_waited_for(run: Path, tmp_path: Path) -> None:
    place = tmp_path / "early"
    place.mkdir()
    with pytest.raises(ConfigError, match="is not a run directory"):
        Watched(place)
    with held(place / "data"):
        watched = Watched(place)
        watched.look()
        assert (watched.told()["standing"], watched.told()["train"]) == ("preparing", [])
    # As a process leaves it that was killed.
    (place / ".data.lock").touch()
    assert watched.told()["standing"] == "stopped"
    shutil.copytree(run, place, dirs_exist_ok=True)
    watched.look()
    assert (watched.told()["standing"], watched.told()["steps"]) == ("finished", 300)
    assert watched.told()["attention"] is not None


def test_setbacks_are_told(run: Path) -> None:
    setback = {
        "kind": "rollback",
        "step": 100,
        "rollback": 1,
        "from_step": 180,
        "rate_factor": 0.5,
        "reason": "it rose",
    }
    with (run / "log.jsonl").open("a") as log:
        log.write(json.dumps(setback) + "\n")
    assert told(run)["rollbacks"] == [setback]


def test_where_no_checkpoint_is_left_the_end_of_the_run_is_looked_at(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    assert [one["step"] for one in told(run)["attention"]["checkpoints"]] == [300]


def test_a_damaged_checkpoint_is_not_read_again_and_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    load = Translator.load

    def counted(*given: Any, **more: Any) -> Translator:
        loaded.append(given)
        return load(*given, **more)

    monkeypatch.setattr(Translator, "load", counted)
    path = run / "checkpoints" / "step-0000300" / "weights.safetensors"
    path.write_bytes(b"")
    watched = Watched(run)
    watched.look()
    watched.look()
    assert len(loaded) == 1


def test_a_log_without_samples_asks_for_a_sentence(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    kept = [{name: value for name, value in line.items() if name != "samples"} for line in lines]
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    assert "--sentence" in told(run)["problem"]


def test_a_run_of_several_directions_is_watched_in_the_one_that_is_asked_for(several: Path) -> None:
    samples = reports(several, "validation")[0]["samples"]
    assert {(one["from"], one["to"]) for one in samples} == {("en", "de"), ("de", "en")}
    for languages in (("en", "de"), ("de", "en")):
        shown = told(several, languages=languages)
        of_these = [one for one in samples if (one["from"], one["to"]) == languages]
        sample = max(of_these, key=lambda one: len(one["source"]))
        assert (shown["problem"], shown["attention"]["texts"]) == (None, [sample["source"], sample["reference"]])
        # The tag that asks for a language is looked at, too.
        assert shown["attention"]["source"][0] == f"<to:{languages[1]}>"
    longest = max(samples, key=lambda one: len(one["source"]))
    assert told(several)["attention"]["texts"][0] == longest["source"]
    assert told(several, sentence=TEXT, languages=("de", "en"))["attention"]["texts"][0] == TEXT


def test_a_direction_without_samples_asks_for_a_sentence(several: Path) -> None:
    assert "no samples from en to it" in told(several, languages=("en", "it"))["problem"]


def test_a_page_is_written_and_nothing_in_the_run(command: Command, run: Path, tmp_path: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        return sorted((str(one), one.stat().st_mtime_ns, one.stat().st_size) for one in run.rglob("*"))

    before = state()
    page = tmp_path / "run.html"
    assert command("watch", run, "--html", page).code == 0
    assert state() == before
    data = re.findall(r'id="told">(.*?)</script>', page.read_text())[0]
    assert json.loads(data)["attention"]["texts"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["nowhere"], "no such run directory: nowhere"),
        (["RUN", "--from", "en"], "both --from and --to"),
        (["RUN", "--port", "70000"], "no port 70000"),
        (["RUN", "--sentence", " "], "the sentence is empty"),
    ],
)
def test_what_is_typed_wrong_is_said_in_a_line(command: Command, toy_run: Path, typed: list[str], said: str) -> None:
    ran = command("watch", *(str(toy_run) if one == "RUN" else one for one in typed))
    assert ran.code == 2 and said in ran.err


def test_a_server_shows_the_run_to_this_machine_alone_and_ends_with_a_signal(toy_run: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as file:
        command = [sys.executable, "-m", "qkv", "watch", str(toy_run), "--port", "0"]
        process = subprocess.Popen(command, stderr=file, env=dict(os.environ))
    try:
        assert eventually(lambda: "http://" in log.read_text(), 60)
        port = int(re.findall(r"127\.0\.0\.1:(\d+)", log.read_text())[0])

        def got(path: str, host: str = "") -> tuple[int, bytes, str]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
            answer = connection.getresponse()
            found = answer.status, answer.read(), answer.headers["Content-Security-Policy"]
            connection.close()
            return found

        status, body, policy = got("/")
        assert status == 200 and b"live.js" in body
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert got("/told", f"localhost:{port}")[0] == 200
        assert got("/told", "evil.example")[0] == 403
        assert got("/../config.py")[0] == got("/watch/")[0] == 404
        assert eventually(lambda: json.loads(got("/told")[1])["attention"] is not None, 60)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()


def test_samples_come_from_everywhere_and_none_comes_twice(toy_data: Path) -> None:
    prepared = Prepared.open(toy_data)
    batches = batches_of(QUICK, prepared, "valid")
    validation = Validation.load(prepared, batches, prepared.tokenizer(), QUICK)
    sources = ["basa", "basa", "koti", "rimo", "nesa"]
    texts = [Texts(None, sources, [one[::-1] for one in sources])]
    model = build(QUICK.model, prepared.tokenizer().size, seed=1)
    told = dataclasses.replace(validation, texts=texts).run(model)
    assert told is not None
    assert [one["source"] for one in told["samples"]] == ["basa", "koti", "nesa"]
