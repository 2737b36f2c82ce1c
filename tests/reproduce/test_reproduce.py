"""Experiments from their names to their tables, with real small trainings."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import qkv
from qkv.fetch import CORPORA
from qkv.reproduce.provenance import commit_of
from tests import toy
from tests.fetch.mirror import serving, stand_in
from tests.forked import signalled
from tests.toy import Command
from tests.training.many import forked

SMALL = [
    "--set", "model.width=16", "--set", "model.hidden=24", "--set", "model.encoder_layers=1",
    "--set", "model.decoder_layers=1", "--set", "training.tokens_per_batch=160", "--set", "training.device=cpu",
    "--set", "training.validation_sentences=0", "--set", "search.beam=2", "--set", "search.extra_length=2",
]  # fmt: skip
ROWS = [
    "--width", "32", "--layers", "1", "--set", "training.tokens_per_batch=160", "--set", "training.device=cpu",
    "--set", "search.beam=2", "--set", "search.extra_length=2",
]  # fmt: skip
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(qkv.__file__).parents[1])}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


def cells(text: str) -> dict[str, list[str]]:
    """The rows of a table by their first cells."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    parts = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in parts}


def results(work: Path) -> Any:
    return json.loads((work / "results.json").read_text())


def test_an_experiment_goes_from_its_name_to_its_table(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    monkeypatch.setitem(CORPORA, "multi30k-en-de", stand_in(CORPORA["multi30k-en-de"], served))
    arguments = [
        "reproduce", "multi30k-en-de", "--work", tmp_path / "work", "--corpora", tmp_path / "corpora", "--steps", "8",
        "--set", "text.vocabulary=320", *SMALL, "--output", tmp_path / "table.md",
    ]  # fmt: skip
    with serving(served) as mirror:
        ran = command(*arguments, "--from", mirror.url)
    assert ran.code == 0, ran.err
    table = cells(ran.out.decode())
    assert table[""] == ["here", "the paper"]
    assert {"BLEU as in the paper", "sacreBLEU", "chrF2"} < {*table}
    assert (tmp_path / "table.md").read_bytes() == ran.out
    told = results(tmp_path / "work")
    assert told == json.loads((tmp_path / "table.json").read_text())
    assert (told["experiment"], told["steps"], told["sentences"]) == ("multi30k-en-de", 8, 60)
    assert told["test"] == ["test_2016_flickr.en", "test_2016_flickr.de"]
    assert "text.vocabulary=320 instead of 6000" in told["differences"]
    assert len(told["differences"]) == len(told["changed"])
    assert "|tok:13a|" in told["scores"]["bleu"]["signature"]
    assert "lang:de" in told["scores"]["paper"]["signature"]
    # The second time there is no server, and nothing to do.
    weights = toy.weights(tmp_path / "work" / "run")
    again = command(*arguments)
    assert (again.code, again.out) == (0, ran.out)
    assert toy.equal(toy.weights(tmp_path / "work" / "run"), weights)


def test_the_papers_number_stands_beside(command: Command, tmp_path: Path, toy_data: Path) -> None:
    pairs = toy.write_tsv(tmp_path / "test.tsv", toy.pairs(5, seed=4))
    arguments = ["reproduce", "base-en-de", "--data", toy_data, "--work", tmp_path, *SMALL, "--steps", "3"]
    ran = command(*arguments, "--test", pairs)
    assert ran.code == 0, ran.err
    assert cells(ran.out.decode())["BLEU as in the paper"][1] == "27.3"
    assert results(tmp_path)["test"] == ["test.tsv"]
    # Another test set is another one, also where it has as many sentences.
    first = results(tmp_path)["scores"]
    other = toy.write_tsv(tmp_path / "other.tsv", toy.pairs(5, seed=9))
    assert command(*arguments, "--test", other).code == 0
    assert results(tmp_path)["test"] == ["other.tsv"]
    assert results(tmp_path)["scores"] != first
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["training"]["warmup_steps"], config["training"]["final"]) == (1, "checkpoints")


def test_a_report_tells_how_its_numbers_came_about(command: Command, tmp_path: Path, toy_data: Path) -> None:
    pairs = toy.write_tsv(tmp_path / "test.tsv", toy.pairs(5, seed=4))
    asked = ["--data", str(toy_data), "--test", str(pairs), "--steps", "3", *SMALL]
    ran = command("reproduce", "base-en-de", *asked, "--work", tmp_path)
    assert ran.code == 0, ran.err
    told = results(tmp_path)
    assert told["command"] == shlex.join(["qkv", "reproduce", "base-en-de", *asked])
    assert (told["recipe"], told["corpus"]) == ("base", "wmt14-en-de")
    assert told["changed"]["model.width"] == {"recipe": 512, "here": 16}
    assert told["changed"]["text.vocabulary"]["recipe"] == 37_000
    # Also what a number of steps changes by itself.
    assert told["changed"]["training.warmup_steps"] == {"recipe": 4000, "here": 1}
    assert told["commit"] == commit_of(Path(qkv.__file__))
    assert re.fullmatch(r"CPU \(.+\)", told["device"])
    table = ran.out.decode()
    differs = re.search(r"^- differs from the recipe of base-en-de: (.*)$", table, re.MULTILINE)
    assert differs is not None
    assert differs[1].split(", ") == told["differences"]
    assert told["differences"][:3] == [
        "tested on test.tsv instead of newstest2014", f"learned from {toy_data} instead of wmt14-en-de",
        "model.width=16 instead of 512",
    ]  # fmt: skip
    assert len(told["differences"]) == 2 + len(told["changed"])
    assert f"\n- `{told['command']}`, qkv {qkv.__version__}, torch " in table
    assert f" on 1 x {told['device']}; " in table


def test_a_report_is_of_the_machine_that_trained(command: Command, tmp_path: Path, toy_data: Path) -> None:
    arguments = ["reproduce", "base-en-de", "--data", toy_data, "--work", tmp_path, *SMALL, "--steps", "3"]
    ran = command(*arguments)
    kept = tmp_path / "machine.json"
    here = json.loads(kept.read_text())
    there = {"device": "Some GPU", "processes": 4, "torch": "9.9", "qkv": "8.8", "commit": None}
    assert here.keys() == there.keys()
    kept.write_text(json.dumps(there))
    again = command(*arguments).out.decode()
    assert "on 4 x Some GPU; " in again
    assert "`, qkv 8.8, torch 9.9\n" in again
    assert results(tmp_path)["command"].startswith("torchrun --nproc-per-node 4 -m qkv reproduce base-en-de --data ")
    # Where nobody knows any more, it is as if it had been here.
    for damage in ("", "5", "{}", json.dumps({**there, "processes": "many"}), 100_000 * "["):
        kept.write_text(damage)
        assert command(*arguments).out == ran.out


def test_a_budget_of_time_bounds_the_training(command: Command, tmp_path: Path, toy_data: Path) -> None:
    ran = command("reproduce", "base-en-de", "--data", toy_data, "--work", tmp_path, *SMALL, "--budget", "1s")
    assert ran.code == 0, ran.err
    told = results(tmp_path)
    assert told["steps"] > 3
    assert told["seconds"] < 10


def test_what_contradicts_itself_is_refused_before_anything_is_done(
    command: Command, tmp_path: Path, toy_data: Path
) -> None:
    def refusal(*arguments: object) -> str:
        ran = command("reproduce", *arguments, "--work", tmp_path / "work")
        assert ran.code == 2
        return ran.err

    data = ("--data", toy_data)
    assert "--budget does not go with --steps" in refusal("base-en-de", *data, "--budget", "5m", "--steps", "5")
    assert "--data does not go with --from" in refusal("base-en-de", *data, "--from", "http://mirror")
    assert "--rows: of use only for table3" in refusal("base-en-de", *data, "--rows", "A")
    tested = ("--test", tmp_path / "gone.tsv", *ROWS, "--steps", "1")
    assert "--test: of no use for table3" in refusal("table3", *data, *tested)
    assert "Table 3 has no row F" in refusal("table3", *data, "--rows", "base,F")
    assert "sentences of 0 cannot be" in refusal("table3", *data, "--sentences", "0")
    own = refusal("base-en-de", *data, *SMALL, "--steps", "1", "--output", tmp_path / "table.json")
    assert f"name the table {tmp_path / 'table.md'}" in own
    assert "settled when" in refusal("base-en-de", *data, "--set", "text.vocabulary=99")
    assert "leave one out" in refusal("base-en-de", *data, "--steps", "5", "--set", "training.steps=9")
    assert "did you mean 'training.steps'" in refusal("table3", *data, "--set", "training.step=9")
    assert "did you mean 'big-en-de'" in refusal("big-ende")
    assert not (tmp_path / "work").exists()


def test_what_scoring_would_refuse_is_told_before_training(
    command: Command, tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["reproduce", "base-en-de", "--data", toy_data, "--work", tmp_path / "work", *SMALL, "--steps", "3"]
    (tmp_path / "plain.txt").write_text("no tab\n")
    (tmp_path / "two.txt").write_text("one\ntwo\n")
    (tmp_path / "blank.tsv").write_text("one\t\n")
    for files, told in (
        (["gone.tsv"], "no such file"),
        (["plain.txt"], "line 1: no tab"),
        (["two.txt", "plain.txt"], "there are 2 sources but 1 references"),
        (["blank.tsv"], "nothing to score"),
    ):
        ran = command(*arguments, "--test", *(tmp_path / name for name in files))
        assert (ran.code > 0, told in ran.err) == (True, True), ran.err
        assert not (tmp_path / "work").exists()
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    ran = command(*arguments)
    assert (ran.code, "scoring needs sacrebleu" in ran.err) == (2, True), ran.err
    assert not (tmp_path / "work").exists()


def test_a_place_where_no_table_can_be_written_is_told_before_training(
    command: Command, tmp_path: Path, toy_data: Path
) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "taken.json").mkdir()
    for experiment in (["base-en-de", *SMALL], ["table3", *ROWS]):
        given = ["reproduce", *experiment, "--data", toy_data, "--work", tmp_path / "work", "--steps", "3"]
        for place, told in (
            (tmp_path, "it is not a file"),
            ("", "it is not a file"),
            (tmp_path / "pipe", "it is not a file"),
            ("/proc/nobody/table.md", "/proc/nobody/table.md: "),
            ("/proc/table.md", "/proc/table.md: "),
            (tmp_path / "file" / "table.md", "File exists"),
            (tmp_path / "taken.md", "taken.json: it is not a file"),
        ):
            ran = command(*given, "--output", place)
            assert (ran.code, "cannot write" in ran.err, told in ran.err) == (3, True, True), ran.err
            assert not (tmp_path / "work").exists()


def test_data_of_several_directions_is_refused_before_training(command: Command, tmp_path: Path) -> None:
    pairs = toy.write_tsv(tmp_path / "pairs.tsv", toy.pairs(60))
    prepared = [pairs, "--output", tmp_path / "data", "--set", "text.vocabulary=330", "--set", "data.held_out=5"]
    assert command("prepare", *prepared, "--directions", "en-de,de-en").code == 0
    given = ["--data", tmp_path / "data", "--work", tmp_path / "work", "--steps", "3"]
    for arguments in (
        ["base-en-de", *given, *SMALL],
        ["table3", *given, *ROWS],
        # Nor is anything fetched for it.
        ["base-en-de", "--corpora", tmp_path / "corpora", "--set", "text.directions=en-de,de-en"],
    ):
        ran = command("reproduce", *arguments)
        assert (ran.code, "is of several directions, en-de, de-en" in ran.err) == (2, True), ran.err
        assert "prepare it with --directions en-de" in ran.err
    assert not (tmp_path / "work").exists()
    assert not (tmp_path / "corpora").exists()


def test_rows_of_table_3_stand_beside_the_papers(command: Command, tmp_path: Path, toy_data: Path) -> None:
    arguments = ["reproduce", "table3", "--data", toy_data, "--work", tmp_path / "work", *ROWS, "--steps", "4"]
    ran = command(*arguments, "--rows", "base,B", "--sentences", "5")
    assert ran.code == 0, ran.err
    table = cells(ran.out.decode())
    assert [*table] == ["row", ":-------", "base", "B-keys16", "B-keys32"]
    assert "- base, B-keys16, B-keys32: fewer than 3,000 steps, " in ran.out.decode()
    assert table["base"][0] == "4"
    assert table["B-keys16"][-5:] == ["58", "5.16", "+0.24", "25.1", "-0.7"]
    told = results(tmp_path / "work")["rows"]
    ours = {row: one["perplexity"] for row, one in told.items()}
    assert table["B-keys32"][3] == f"{ours['B-keys32'] - ours['base']:+.2f}"
    assert told["B-keys16"]["parameters"] < told["B-keys32"]["parameters"] < told["base"]["parameters"]
    assert all(one["sentences"] == 5 and "tok:13a" in one["signature"] for one in told.values())
    whole = results(tmp_path / "work")
    asked = ["--data", str(toy_data), "--rows", "base,B", "--width", "32", "--layers", "1", "--sentences", "5"]
    assert whole["command"] == shlex.join(["qkv", "reproduce", "table3", *asked, "--steps", "4", *ROWS[4:]])
    assert f"\n- `{whole['command']}`, qkv {qkv.__version__}, torch " in ran.out.decode()
    assert f"\n- differs from the recipes of the rows: {', '.join(whole['differences'])}\n" in ran.out.decode()
    assert whole["differences"][:2] == [
        f"learned from {toy_data} instead of wmt14-en-de", "model.width=32 instead of 512"
    ]  # fmt: skip
    assert "model.key_width=1 instead of 16 (B-keys16)" in whole["differences"]
    assert told["B-keys16"]["changed"]["model.key_width"] == {"recipe": 16, "here": 1}
    assert not any("average_checkpoints" in one for one in whole["differences"])
    # What is done stays, and is told with what comes later.
    (translations,) = (tmp_path / "work" / "rows" / "base").glob("translations-*.txt")
    before = translations.stat().st_mtime_ns
    ran = command(*arguments, "--rows", "base,B,E", "--sentences", "5")
    assert [*cells(ran.out.decode())][2:] == ["base", "B-keys16", "B-keys32", "E-learned"]
    assert translations.stat().st_mtime_ns == before
    ran = command(*arguments, "--rows", "base", "--sentences", "4")
    assert results(tmp_path / "work")["rows"]["base"]["sentences"] == 4
    assert "other settings, another budget" in command(*arguments[:-1], "5", "--rows", "base").err


def test_rows_of_every_shape_can_be_trained_small(command: Command, tmp_path: Path, toy_data: Path) -> None:
    ran = command(
        "reproduce", "table3", "--data", toy_data, "--work", tmp_path, *ROWS, "--steps", "1", "--sentences", "1",
        "--layers", "3", "--rows", "A-heads32,C-layers8,C-width1024,D-dropout0.0,D-smoothing0.2,big",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert len(results(tmp_path)["rows"]) == 6


def test_a_row_that_is_another_one_at_this_size_is_left_out(command: Command, tmp_path: Path, toy_data: Path) -> None:
    arguments = ["reproduce", "table3", "--data", toy_data, "--work", tmp_path, *ROWS, "--steps", "1"]
    # A third of 2 and of 4 layers is one layer, and a third of 8 as many as a third of 6.
    ran = command(*arguments, "--layers", "2", "--sentences", "1", "--rows", "base,C-layers2,C-layers4,C-layers8")
    assert ran.code == 0, ran.err
    assert [*cells(ran.out.decode())][2:] == ["base", "C-layers2"]
    for row, other in (("C-layers4", "C-layers2"), ("C-layers8", "base")):
        why = f"with this --width, --layers and --set it is the same as {other}"
        assert f"- {row} was left out: {why}\n" in ran.out.decode()
        # It is known before anything is trained.
        assert f"row {row} is left out: {why}\n" in ran.err.partition("row base")[0]
        assert results(tmp_path)["repeated"][row] == why
        assert not (tmp_path / "rows" / row).exists()
    ran = command(*arguments, "--rows", "C-layers8,D-dropout0.2", "--set", "model.dropout=0.1")
    assert (ran.code, "no row asked for differs from base" in ran.err) == (2, True)


def test_a_row_that_cannot_be_trained_is_told_and_the_others_go_on(
    command: Command, tmp_path: Path, toy_data: Path
) -> None:
    arguments = ["reproduce", "table3", "--data", toy_data, "--work", tmp_path, *ROWS, "--steps", "3"]
    assert command(*arguments, "--rows", "base").code == 0
    plan = tmp_path / "rows" / "base" / "plan.json"
    # Another row of which no step is finite.
    broken = json.loads(plan.read_text().replace('"key_width": null', '"key_width": 1'))
    for settings in (broken["asked"]["settings"], broken["settings"]):
        assert settings["model"]["key_width"] == 1
    broken["settings"]["training"] |= {"learning_rate": 1e38, "rollbacks": 0, "tolerated_bad_steps": 1}
    (tmp_path / "rows" / "B-keys16").mkdir()
    (tmp_path / "rows" / "B-keys16" / "plan.json").write_text(json.dumps(broken))
    ran = command(*arguments, "--rows", "base,B")
    assert ran.code == 4
    assert "B-keys16 could not be trained; the table tells why" in ran.err
    assert [*cells(ran.out.decode())][2:] == ["base", "B-keys32"]
    assert re.search(r"^- B-keys16 was left out: .*not finite", ran.out.decode(), re.MULTILINE)


def test_translations_wait_for_a_machine_that_can_score_them(
    command: Command, tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["reproduce", "table3", "--data", toy_data, "--work", tmp_path, *ROWS, "--steps", "3", "--rows", "base"]
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda _: None)
        ran = command(*arguments)
    assert ran.code == 0, ran.err
    assert "no BLEU yet: sacrebleu is not installed" in ran.out.decode()
    assert cells(ran.out.decode())["base"][4] == "–"
    # An older version did not keep what differs.
    kept = tmp_path / "rows" / "base" / "result.json"
    kept.write_text(json.dumps({name: one for name, one in json.loads(kept.read_text()).items() if name != "changed"}))
    assert "instead of wmt14-en-de, what an older version did not keep of base\n" in command(*arguments).out.decode()
    # Neither weights nor checkpoints have to be brought there.
    shutil.rmtree(tmp_path / "rows" / "base" / "run")
    assert re.fullmatch(r"[\d.]+", cells(command(*arguments).out.decode())["base"][4])


def test_time_that_is_up_ends_between_rows_or_within_one_and_the_same_command_goes_on(
    command: Command, tmp_path: Path, toy_data: Path
) -> None:
    arguments = [
        "reproduce",
        "table3",
        "--data",
        toy_data,
        "--work",
        tmp_path,
        *ROWS,
        "--steps",
        "3",
        "--rows",
        "base,E",
    ]
    ran = command(*arguments, "--max-time", "0.001s")
    assert (ran.code, "the same command goes on" in ran.err) == (75, True)
    assert "still to do: base, E-learned" in ran.out.decode()
    ran = command(*arguments)
    assert ran.code == 0
    assert [*cells(ran.out.decode())][2:] == ["base", "E-learned"]
    arguments = ["reproduce", "base-en-de", "--data", toy_data, "--work", tmp_path / "one", *SMALL, "--steps", "3"]
    ran = command(*arguments, "--max-time", "0.001s")
    assert (ran.code, ran.out, "the same command goes on" in ran.err) == (75, b"", True)
    assert command(*arguments).code == 0


def test_an_interrupted_experiment_ends_as_one_that_was_not(command: Command, tmp_path: Path, toy_data: Path) -> None:
    def arguments(work: Path) -> list[str]:
        given = ["reproduce", "base-en-de", "--data", toy_data, "--work", work, *SMALL, "--steps", "60"]
        return [str(one) for one in given]

    assert command(*arguments(tmp_path / "whole")).code == 0
    there = tmp_path / "cut" / "run" / "checkpoints" / "step-0000001"
    ended = signalled(signal.SIGTERM, there, *arguments(tmp_path / "cut"), told=tmp_path / "told")
    assert ended == 143
    assert not (tmp_path / "cut" / "results.json").exists()
    assert command(*arguments(tmp_path / "cut")).code == 0
    assert toy.equal(toy.weights(tmp_path / "cut" / "run"), toy.weights(tmp_path / "whole" / "run"))
    for told in (results(tmp_path / "cut"), results(tmp_path / "whole")):
        assert told["steps"] == 60


def test_several_processes_reproduce_together(tmp_path: Path, toy_data: Path) -> None:
    given = ["reproduce", "base-en-de", "--data", toy_data, "--work", tmp_path / "work", *SMALL]
    command = ["qkv", *map(str, given)]
    code, said = forked(*command, "--steps", "3")
    assert code == 0, said
    assert results(tmp_path / "work")["processes"] == 2
    assert results(tmp_path / "work")["command"].startswith("torchrun --nproc-per-node 2 -m qkv reproduce base-en-de ")
    assert said.count("finished after step 3") == 1
    assert "a budget of time is measured by one process" in forked(*command, "--budget", "5s")[1]


def test_the_list_tells_the_papers_numbers(command: Command) -> None:
    lines = command("reproduce").lines
    assert [line.split()[:2] for line in lines[:4]] == [
        ["base-en-de", "27.3"], ["big-en-de", "28.4"], ["base-en-fr", "38.1"], ["big-en-fr", "41.8"],
    ]  # fmt: skip
    assert lines[-1].startswith("table3 ")
