"""A batch that is left to be found fits the memory, and stays what it was found to be."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.errors import ConfigError
from qkv.prepare import Prepared, prepare
from qkv.run import RunDirectory
from qkv.settings import from_json, to_json
from qkv.training import fitting, train_prepared
from qkv.training.feeding import batches_of
from qkv.training.fitting import fitted, largest
from qkv.training.processes import Processes
from qkv.training.step import Outcome, Step
from qkv.translate import Translation, Translator
from tests import toy
from tests.forked import run as run_child
from tests.toy import QUICK, Command

AUTO = QUICK.with_changes(training={"tokens_per_batch": "auto"})
LIBRARIES = 1 << 28


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


def with_memory(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    """From here on, this many bytes are free beside what libraries take."""
    monkeypatch.setattr(fitting, "free_memory", lambda _: LIBRARIES + free)


def rows_of(config: Config, data: Path) -> int:
    return fitted(config, Processes(), Prepared.open(data)).rows_a_step


def test_the_batch_grows_with_the_memory_up_to_the_corpus(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for free in (8_500_000, 9_500_000, 10_500_000, 1 << 40):
        with_memory(monkeypatch, free)
        rows.append(rows_of(AUTO, toy_data))
    assert 0 < rows[0] < rows[1] < rows[2] < rows[3]
    assert rows[2] - rows[1] == pytest.approx(rows[1] - rows[0], abs=1)
    # A step of more would see sentences twice.
    assert rows[3] == len(batches_of(QUICK, Prepared.open(toy_data), "train").rows)


def test_in_parts_more_fits_and_all_parts_are_equal(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_memory(monkeypatch, 8_500_000)
    whole = rows_of(AUTO, toy_data)
    assert rows_of(AUTO.with_changes(training={"accumulate": 3}), toy_data) == 3 * whole


def test_where_batches_grow_the_last_ones_fit(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_memory(monkeypatch, 8_500_000)
    assert rows_of(AUTO.with_changes(training={"ramp_steps": 50}), toy_data) == rows_of(AUTO, toy_data)


def test_what_cannot_fit_is_told_with_what_would(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_memory(monkeypatch, 1_000_000)
    with pytest.raises(ConfigError, match=r"than the 600\.0 kB that can be counted .* about ([\d.]+) MB would") as told:
        rows_of(AUTO, toy_data)
    enough = re.search(r"about ([\d.]+) MB", str(told.value))
    assert enough is not None
    with_memory(monkeypatch, int((float(enough[1]) + 0.1) * 1e6 / 0.6))
    assert 1 <= rows_of(AUTO, toy_data) <= 2


def test_a_number_is_left_as_it_is(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_memory(monkeypatch, 0)
    assert fitted(QUICK, Processes(), Prepared.open(toy_data)) == QUICK


@pytest.mark.parametrize("fitting_most", [0, 1, 2, 7, 100, 1000, 5000])
@pytest.mark.parametrize("guess", [0, 3, 90, 100_000])
def test_the_largest_is_found_by_trying_what_grows(fitting_most: int, guess: int) -> None:
    tried: list[int] = []

    def fits(number: int) -> bool:
        tried.append(number)
        return number <= fitting_most

    found = largest(fits, guess, 2000)
    wanted = min(fitting_most, 2000)
    assert wanted * 15 // 16 <= found <= wanted
    assert len({*tried}) == len(tried) <= 16
    assert max(tried) <= 2000


def test_a_guess_that_is_about_right_is_quickly_confirmed() -> None:
    tried: list[int] = []

    def fits(number: int) -> bool:
        tried.append(number)
        return number <= 1000

    assert largest(fits, 1040, 10**6) > 940
    assert tried[:4] == [260, 520, 1040, 780]
    assert len(tried) == 7


def test_a_trial_is_a_run_in_short(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of the size that is tried, then a validation of the model with its translations."""
    prepared, done = Prepared.open(toy_data), []
    begin, translate = Step.begin, Translator.translate

    def begun(step: Step, batch: PairBatch, number: int, **options: float) -> Callable[[], Outcome]:
        done.append(f"step of {len(batch.label_RW)}")
        return begin(step, batch, number, **options)

    def translated(translator: Translator, texts: list[str], **options: int) -> list[Translation]:
        done.append(f"translated {len(texts)}")
        return translate(translator, texts, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Step, "begin", begun)
    monkeypatch.setattr(Translator, "translate", translated)
    # More rows than the corpus has.
    config = QUICK.with_changes(training={"tokens_per_batch": 32 * 70, "final": "moving"})
    fitting._rehearse(config, prepared, batches_of(config, prepared, "train"))
    assert done == ["step of 70"] * 4 + ["translated 2"]


def test_want_of_memory_is_known_behind_what_is_complained_of() -> None:
    """A graph that cannot be captured for want of memory ends with an error of its own."""
    with pytest.raises(RuntimeError) as told:
        try:
            raise torch.OutOfMemoryError("no room")
        finally:
            raise RuntimeError("the capture failed")
    assert fitting._out_of_memory(told.value)
    assert not fitting._out_of_memory(RuntimeError("the capture failed"))


def test_the_number_is_told_kept_and_gone_on_with(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory(tmp_path / "run")
    with_memory(monkeypatch, 8_500_000)
    train_prepared(toy_data, run.path, AUTO.with_changes(training={"steps": 6}))
    tokens = run.config().training.tokens_per_batch
    assert isinstance(tokens, int)
    assert f"training.tokens_per_batch is {tokens:,}, which is {tokens // 32} rows a step: estimated for" in (
        capsys.readouterr().err
    )
    # More memory: the run goes on with the batches that it was begun with, so that its order stays.
    with_memory(monkeypatch, 10_500_000)
    train_prepared(toy_data, run.path, AUTO)
    assert run.config().training.tokens_per_batch == tokens
    assert "tokens_per_batch" not in capsys.readouterr().err
    train_prepared(toy_data, tmp_path / "fixed", QUICK.with_changes(training={"tokens_per_batch": tokens}))
    assert toy.equal(toy.weights(run.path), toy.weights(tmp_path / "fixed"))
    with pytest.raises(ConfigError, match=r"training\.tokens_per_batch was"):
        train_prepared(toy_data, run.path, QUICK.with_changes(training={"tokens_per_batch": tokens + 32}))


def test_killed_before_it_learned_anything_a_run_keeps_its_number_unless_settings_changed(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path / "run")
    config = Prepared.open(toy_data).applied_to(AUTO)
    run.path.mkdir()
    run.begin(config.with_changes(training={"tokens_per_batch": 96}))
    with_memory(monkeypatch, 8_500_000)
    assert run.settled(config).training.tokens_per_batch == 96
    assert run.settled(config.with_changes(model={"hidden": 48})).training.tokens_per_batch == "auto"
    train_prepared(toy_data, run.path, AUTO)
    assert run.config().training.tokens_per_batch == 96
    # The checkpoints know it too.
    run.config_file.unlink()
    assert run.settled(config).training.tokens_per_batch == 96


def test_a_dry_run_tells_the_number_that_training_takes(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    with_memory(monkeypatch, 8_500_000)
    shape = {f"model.{name}": value for name, value in json.loads(to_json(QUICK))["model"].items() if value}
    changes = [f"--set={name}={value}" for name, value in shape.items()]
    asked = ["train", "--data", toy_data, *changes, "--set=training.tokens_per_batch=auto", "--set=training.device=cpu"]
    planned = command(*asked, "--dry-run")
    tokens = rows_of(Prepared.open(toy_data).applied_to(from_json(to_json(AUTO))), toy_data) * 32
    assert (planned.code, f"training.tokens_per_batch = {tokens}" in planned.lines) == (0, True)
    # Before there is data it can only be estimated, and does not end with the corpus.
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))
    early = command("train", corpus, "--set=training.tokens_per_batch=auto", "--set=training.device=cpu", "--dry-run")
    assert early.code == 2 and "training needs more memory than the 5.1 MB" in early.err
    with_memory(monkeypatch, 64 << 30)
    early = command("train", corpus, "--set=training.tokens_per_batch=auto", "--set=training.device=cpu", "--dry-run")
    found = re.search(r"training\.tokens_per_batch = (\d+)", early.out.decode())
    assert found is not None and int(found[1]) > 25_000


def train_within(data: Path, output: Path, free: int) -> None:
    with_memory(pytest.MonkeyPatch(), free)
    config = AUTO.with_changes(model={"width": 128, "hidden": 512}, training={"steps": 3, "save_every": 1})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    train_prepared(data, output, config)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (output / "taken").write_text(str(after - before))


def test_training_takes_no_more_than_was_free(tmp_path: Path) -> None:
    free = 200_000_000
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(4000))
    config = AUTO.with_changes(training={"tokens_per_batch": 32})
    data = prepare([corpus], tmp_path / "data", config).directory
    assert run_child(train_within, data, tmp_path / "run", free, told=tmp_path / "told") == 0, (
        tmp_path / "told"
    ).read_text()
    taken = int((tmp_path / "run" / "taken").read_text())
    assert free // 3 < taken < LIBRARIES + free
