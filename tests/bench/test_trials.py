"""Trials of recipes: every row makes sense, and what came of each is kept as it comes."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import qkv.layers
from bench import trials
from bench.trial_results import drop_half_a_line, results_in, table
from bench.trial_table import TRIALS, Trial, papers, varied
from bench.trials import config_of, steps_within
from qkv.errors import ConfigError, Stopped
from qkv.recipes import recipe
from qkv.training import train_prepared
from qkv.training.optimizer import learning_rate
from tests import toy
from tests.bench.refusing import refused

SMALL = [
    "model.width=16", "model.heads=2", "model.hidden=24", "model.encoder_layers=1", "model.decoder_layers=1",
    "training.tokens_per_batch=320", "training.warmup_steps=2", "training.validation_sentences=2",
    "training.device=cpu",
]  # fmt: skip


@pytest.mark.parametrize("name", TRIALS)
def test_every_trial_is_a_recipe(name: str) -> None:
    config = config_of(TRIALS[name], {})
    assert (config.model.width, config.model.width // config.model.heads) == (768 if "width" in name else 512, 64)
    assert config.rows_a_step * config.row_width > 0.98 * 32_768


def test_fast_is_the_recipe_of_this_name_but_for_what_goes_with_the_length_of_a_run() -> None:
    ours, theirs = config_of(TRIALS["fast"], {}), recipe("fast")
    assert ours.model == theirs.model
    same = "optimizer learning_rate rest_rate tokens_per_batch clip beta2 label_smoothing"
    for name in same.split():
        assert getattr(ours.training, name) == getattr(theirs.training, name)
    assert (ours.training.weight_decay, theirs.training.weight_decay) == (0.1, 0.06)


def test_the_papers_control_has_its_model_and_the_peak_of_its_rate_sooner() -> None:
    config, base = config_of(Trial(papers(7e-4, 200)), {}), recipe("base")
    assert config.model == base.model
    rates = [learning_rate(config.training, 512, step) for step in range(1, 1000)]
    assert rates.index(max(rates)) == 199
    assert max(rates) == pytest.approx(7e-4)
    assert learning_rate(base.training, 512, 4000) == pytest.approx(7e-4, rel=2e-3)


def test_what_a_trial_leaves_out_of_fast_is_what_it_is_about_too() -> None:
    trial = TRIALS["Muon 6e-3, pre-norm"]
    with pytest.raises(ConfigError, match=r"--set model\.norm would undo what this trial is about"):
        config_of(trial, {"model.norm": "rms"})
    assert config_of(trial, {"model.dropout": "0.3"}).model.dropout == 0.3
    assert varied(TRIALS["fast"]) == set()
    assert varied(TRIALS["fast, 9e-3"]) == {"training.learning_rate"}


def test_steps_of_smaller_batches_take_their_own_time() -> None:
    steady, growing = (config_of(TRIALS[name], {}) for name in ("fast", "fast, batches grow over 150 steps"))
    # A quarter of the rows takes a third of the time, half of them two thirds.
    speeds = {128: 30.0, 256: 15.0, 512: 10.0}
    assert steps_within(steady, 60.05, speeds) == 600
    # 75 steps each of the two smaller sizes take 2.5 and 5 s.
    assert steps_within(growing, 60.05, speeds) == 75 + 75 + 525
    assert steps_within(growing, 1.0, speeds) == 30


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """With models small enough to learn within a second; the exit code."""
    small = [part for setting in SMALL for part in ("--set", setting)]
    monkeypatch.setattr(trials, "_MEASURING", 0.1)
    monkeypatch.setattr("sys.argv", ["trials", "--seconds=0.4", *small, *map(str, arguments)])
    with toy.one_thread():
        return trials.main()


def test_trials_are_written_as_they_come_and_not_taken_twice(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "trials.jsonl"
    options = (f"--data={toy_data}", f"--output={output}", "--only=fast", "--only=unigram", "--only=rows of 64")
    assert run(monkeypatch, *options) == 0
    told = capsys.readouterr().out
    assert "fast, unigram: needs --unigram" in told
    assert "trials to run: 2 of 0.4 s each, about" in told
    found = results_in(output)
    # A whole name is one trial's, and part of a name that of several.
    assert [one["name"] for one in found] == ["fast", "fast, rows of 64"]
    for one in found:
        assert min(one["steps"], one["nll"], one["seconds"]) > 0
        assert one["note"] == "plain kernels"
        assert one["name"] in told and f"{one['nll']:.3f}" in told
    before = output.read_bytes()
    assert run(monkeypatch, *options) == 0
    assert output.read_bytes() == before
    assert "trials to run: 0 of 0.4 s" in capsys.readouterr().out


def test_a_trial_that_fails_says_why_and_costs_the_others_nothing(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(TRIALS, "fast, rows of 64", Trial({**TRIALS["fast"].settings, "training.row_width": 4}))
    output = tmp_path / "trials.jsonl"
    options = (f"--data={toy_data}", f"--output={output}", "--only=rows of 64", "--only=fast, two readings agree")
    assert run(monkeypatch, *options) == 1
    sound, failed = results_in(output)
    assert failed["error"].startswith("ConfigError: no pair of the corpus fits rows of 4 positions")
    told = capsys.readouterr()
    assert failed["error"] in told.out
    assert told.err == "bench.trials: 1 of 2 trials failed; the table says why\n"
    assert sound["nll"] > 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--seconds -1", "argument --seconds: '-1' is not a number above 0"),
        ("--seconds nan", "argument --seconds: 'nan' is not a number above 0"),
        ("--seconds soon", "argument --seconds: 'soon' is not a number above 0"),
        ("--only xyzzy", "no trial has 'xyzzy' in its name; --list shows them all"),
        ("--only fast --only fast,rows --only more", "no trial has 'fast,rows' or 'more' in its name; --list shows"),
        ("--only fast", "nothing to train on; give --data: a directory that qkv prepare wrote"),
        ("--data {folder}/nowhere", "{folder}/nowhere"),
        ("--data {data} --set nope", "--set takes NAME=VALUE, such as training.steps=500, not 'nope'"),
        ("--data {data} --set model.with=3", "no setting is called 'model.with'; did you mean 'model.width'?"),
        ("--data {data} --set model.width=wide", "model.width takes a whole number, not 'wide'"),
        ("--data {data} --output {folder}/nowhere/trials.jsonl", "the folder {folder}/nowhere is not there"),
        ("--data {data} --output {folder}", "--output {folder} is a folder; give a file"),
        ("--data {data} --output {folder}/prose", "{folder}/prose is no file of results, which has one JSON object"),
        (
            "--data {data} --only fast --output {folder}/note",
            "{folder}/note is no file of results: it ends with 'Bread'",
        ),
        ("--data {data} --set data.row_width=64", "--set data.row_width: that is as the data was prepared"),
        ("--data {data} --set training.steps=500", "--set training.steps: that follows from the time of a trial"),
        ("--data {data} --only half --set training.learning_rate=1", "--set training.learning_rate would undo what"),
        ("--data {data} --set training.tokens_per_batch=auto", "training.tokens_per_batch has to be a number"),
        ("--table {folder}/nowhere", "--table {folder}/nowhere: there is no such file"),
        ("--table {folder}/prose", "{folder}/prose is no file of results, which has one JSON object a line"),
        ("--table {folder}/names", "{folder}/names is no file of results: not every line says what came of a trial"),
        ("--table {folder}/scores", "{folder}/scores is no file of results: not every line says what came of a trial"),
        ("--table {folder}/times", "{folder}/times is no file of results: not every line says what came of a trial"),
    ],
)
def test_what_cannot_be_tried_is_told_before_anything_is(
    command: str,
    words: str,
    tmp_path: Path,
    toy_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "prose").write_text("There was no time.\n")
    (tmp_path / "names").write_text('{"name": "fast"}\n')
    (tmp_path / "times").write_text('{"name": "fast", "asked": "long", "error": "no room"}\n')
    found = {"name": "fast", "asked": 1, "steps": 1, "seconds": 1, "tokens_per_second": 1, "nll": 1, "note": ""}
    (tmp_path / "scores").write_text(json.dumps({**found, "bleu": "x"}) + "\n")
    (tmp_path / "note").write_text("Bread")
    monkeypatch.chdir(tmp_path)
    places = {"folder": tmp_path, "data": toy_data}
    refused(trials.main, command.format(**places), monkeypatch)
    told = capsys.readouterr()
    assert words.format(**places) in told.err
    assert "|" not in told.out
    assert (tmp_path / "note").read_text() == "Bread"


def test_the_widest_row_of_our_attention_is_known_without_triton() -> None:
    source = Path(qkv.layers.__file__).parent / "gpu" / "attention.py"
    given = {
        ast.unparse(node.targets[0]): node.value
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
    }
    assert ast.literal_eval(given["WIDEST"]) == trials._TILED


def test_what_cannot_be_compared_stands_in_tables_of_its_own() -> None:
    known = {"steps": 10, "seconds": 4.9, "tokens_per_second": 1e6, "bleu": 1.2, "note": "", "nll": 2.0, "asked": 5.0}
    others: list[dict[str, Any]] = [
        {}, {"set": ["model.width=32"]}, {"data": "abcdef0123456789"}, {"commit": "1a2b3c4"}, {"device": "CPU"},
        {"asked": 50.0}, {},
    ]  # fmt: skip
    tables = table([{"name": f"fast {number}", **known, **other} for number, other in enumerate(others)]).split("\n\n")
    # Each has a line about it, then its rows.
    assert tables[::2] == [
        "5 s", "5 s: commit 1a2b3c4", "5 s: data abcdef012345", "5 s: on CPU", "5 s: model.width=32", "50 s",
    ]  # fmt: skip
    assert [rows.count("| fast") for rows in tables[1::2]] == [2, 1, 1, 1, 1, 1]


def test_the_table_has_the_best_first_and_failures_last() -> None:
    def result(name: str, nll: float) -> dict[str, Any]:
        known = {"asked": 5.0, "steps": 10, "seconds": 4.9, "tokens_per_second": 1e6, "bleu": 1.234, "note": ""}
        return {"name": name, "nll": nll, **known}

    some = [{"name": "broken", "asked": 5.0, "error": "no\nroom | left"}, result("worse", 3.0), result("better", 2.0)]
    about, _, _, _, *lines = table(some).splitlines()
    assert about == "5 s"
    assert lines[0] == "| better | 10 | 4.9 of 5 | 1,000,000 | 2.000 | 1.23 |  |"
    assert [line.split(" | ")[0] for line in lines] == ["| better", "| worse", "| broken"]
    assert lines[-1].endswith("| no room \\| left |")


def test_a_signal_ends_all_trials_and_the_same_command_begins_with_the_one_it_ended(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "trials.log"
    options = (f"--data={toy_data}", f"--output={output}", "--only=rows of 64", "--only=fast, two readings agree")

    def signalled(*given: Any) -> bool:
        if not results_in(output):
            return train_prepared(*given)
        raise Stopped("stopped by SIGTERM after step 1, which is saved", code=143)

    with monkeypatch.context() as patch:
        patch.setattr(trials, "train_prepared", signalled)
        assert run(monkeypatch, *options) == 143
    said = "bench.trials: stopped during 'fast, rows of 64'; the same command begins with that\n"
    assert capsys.readouterr().err == said
    assert [one["name"] for one in results_in(output)] == ["fast, two readings agree"]
    assert run(monkeypatch, *options) == 0
    assert "trials to run: 1 of 0.4 s" in capsys.readouterr().out
    assert len(results_in(output)) == 2


def test_what_another_commit_did_is_tried_again(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (f"--data={toy_data}", f"--output={tmp_path / 'trials.jsonl'}", "--only=fast")
    for commit, count in (("1a2b3c4", 1), ("1a2b3c4", 0), ("5d6e7f8", 1)):
        monkeypatch.setattr(trials, "_commit", lambda commit=commit: commit)
        assert run(monkeypatch, *options) == 0
        assert f"trials to run: {count} of 0.4 s" in capsys.readouterr().out


def test_a_trial_whose_settings_have_changed_is_tried_again(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (f"--data={toy_data}", f"--output={tmp_path / 'trials.jsonl'}", "--only=fast")
    for decay, count in ((0.1, 1), (0.1, 0), (0.2, 1)):
        changed = {**TRIALS["fast"].settings, "training.weight_decay": decay}
        monkeypatch.setitem(TRIALS, "fast", Trial(changed))
        assert run(monkeypatch, *options) == 0
        assert f"trials to run: {count} of 0.4 s" in capsys.readouterr().out


def test_a_signal_while_speed_is_measured_ends_all_trials_too(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def signalled(*_: object) -> float:
        os.kill(os.getpid(), signal.SIGTERM)
        return 1.0

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(trials, "steps_a_second", signalled)
    assert run(monkeypatch, f"--data={toy_data}", f"--output={tmp_path / 'trials.jsonl'}", "--only=fast") == 143
    assert capsys.readouterr().err == "bench.trials: stopped during 'fast'; the same command begins with that\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_sampled_subwords_stand_beside_the_best_ones_of_the_same_vocabulary(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(toy_data, other)
    told = json.loads((other / "prepared.json").read_text())
    (other / "prepared.json").write_text(json.dumps({**told, "fingerprint": "0" * 64}))
    given = (f"--unigram={toy_data}", f"--sampled={other}", f"--output={tmp_path / 'trials.jsonl'}", "--only=unigram")
    assert run(monkeypatch, *given) == 0
    *_, rows = capsys.readouterr().out.split("\n\n")
    assert [line.split(" | ")[0] for line in sorted(rows.splitlines()[2:])] == [
        "| fast, unigram", "| fast, unigram, sampled subwords",
    ]  # fmt: skip


def test_the_speed_is_that_of_the_whole_run() -> None:
    """The first ten seconds at a hundred tokens, the next thirty at five hundred."""
    lines = [
        {"kind": "train", "seconds": 10.0, "tokens_per_second": 100.0},
        {"kind": "train", "seconds": 40.0, "tokens_per_second": 500.0},
        {"kind": "validation", "seconds": 40.0},
    ]
    assert trials._mean_speed(lines) == pytest.approx(400.0)


def test_half_a_line_is_no_result(tmp_path: Path) -> None:
    """A machine may be taken away while it writes."""
    output = tmp_path / "trials.jsonl"
    whole = '{"name": "fast", "asked": 5.0, "error": "no room"}\n'
    output.write_text(whole + '{"name": "fa')
    assert results_in(output) == [{"name": "fast", "asked": 5.0, "error": "no room"}]
    drop_half_a_line(output)
    assert output.read_text() == whole
