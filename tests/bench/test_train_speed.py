"""The training benchmark: it takes the steps of the recipe that it names, and peers the same sentences."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from bench import train_speed
from bench.arithmetic import LIMIT
from bench.marian import BEGIN, END, PADDING
from bench.peers import PEERS, PaddedBatch, fill, peer_steps, sorted_batches, unlike_peers
from bench.sentences import write_corpus
from bench.train_speed import Speed, on_data, qkv_steps, show, sizes_of
from qkv import cli
from qkv.config import Config
from qkv.data.batches import Batches, Marks
from qkv.errors import ConfigError, TrainingError
from qkv.layers.loss import IGNORED
from qkv.prepare import Prepared
from qkv.recipes import RECIPES, recipe
from tests import toy
from tests.bench.refusing import refused
from tests.toy import QUICK

CPU = torch.device("cpu")
TOY = QUICK.with_changes(model={"residual": "post"}, training={"tokens_per_batch": 96})


def test_made_up_sentences_show_a_speed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(RECIPES, "toy", lambda: TOY)
    command = "--recipe toy --vocabulary 400 --tokens 512 --tokens 256 --steps 1"
    monkeypatch.setattr("sys.argv", ["train_speed", *command.split()])
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with toy.one_thread():
        assert train_speed.main() == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split("  ")[-1].strip() == "source + target tokens/s"
    assert [line.split()[-3] for line in lines[:6]] == ["512", "256"] * 3
    assert all(85 < float(line.split()[-2].rstrip("%")) <= 100 for line in lines[:6])
    assert [line[:28].rstrip() for line in lines[:6:2]] == ["qkv", *PEERS]
    assert len([line for line in lines if " times " in line and line.startswith("qkv with ")]) == 4
    assert lines[-1] == "median of 1 steps"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--recipe bas", "no recipe 'bas'; there are base, "),
        ("--alone --recipe tiny --tokens 10", "--tokens 10 is less than a row of 64"),
        ("--alone --recipe tiny --profile", "are for a GPU, and there is none"),
        ("--alone --recipe tiny --data nowhere", "are for a GPU, and there is none"),
        ("--steps -5", "argument --steps: '-5' is not a whole number from 1 on"),
        ("--steps 0", "argument --steps: '0' is not a whole number from 1 on"),
        ("--steps few", "argument --steps: 'few' is not a whole number from 1 on"),
        ("--tokens 0", "argument --tokens: '0' is not a whole number from 1 on"),
        ("--vocabulary 4", "argument --vocabulary: '4' has no words: the first 4 ids are marks"),
        (
            "--recipe fast --tokens 1",
            "model.feed_forward=gated, model.query_key_norm=rms, training.optimizer=muon: measure recipe",
        ),
    ],
)
def test_what_cannot_be_measured_is_told_at_once(
    command: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    refused(train_speed.main, command, monkeypatch)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--recipe base", "on a GPU, --data DIRECTORY: what qkv prepare wrote"),
        ("--data {data} --vocabulary 400", "--vocabulary is for made-up sentences, and those of --data have theirs"),
        ("--data {folder}/nowhere", "{folder}/nowhere"),
        ("--data {data} --tokens 20", "--tokens 20 is less than a row of 32"),
    ],
)
def test_with_a_gpu_too(
    command: str,
    words: str,
    tmp_path: Path,
    toy_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    places = {"folder": tmp_path, "data": toy_data}
    refused(train_speed.main, command.format(**places), monkeypatch)
    assert words.format(**places) in capsys.readouterr().err


def test_only_recipes_that_do_the_same_work_have_peers() -> None:
    alike = {name for name in RECIPES if not unlike_peers(recipe(name))}
    assert {"base", "big", "C-width256", "A-heads1"} <= alike
    assert not alike & {"fast", "modern", "pre-norm", "gated", "rotary", "B-keys16", "E-learned", "tiny", "student"}


@pytest.fixture
def trained_here(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """`qkv train` runs in this process; the commands that it was given."""
    commands = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command[3:])
        with toy.one_thread():
            return subprocess.CompletedProcess(command, cli.main(command[3:]), stderr="it says why")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setitem(RECIPES, "toy", lambda: TOY)
    monkeypatch.setattr(train_speed, "_SKIPPED", 2)
    monkeypatch.setattr(train_speed, "_PEER_STEPS", 2)
    return commands


def options_of(*arguments: object) -> Any:
    return train_speed._parser().parse_args(["--recipe", "toy", *map(str, arguments)])


def test_qkv_and_its_peers_train_on_the_same_data_with_batches_of_the_same_sizes(
    toy_data: Path, trained_here: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(train_speed, "_GPU_TOKENS", {"toy": 320})
    monkeypatch.setattr(train_speed, "_name", lambda _: "NVIDIA H200")
    # What the recipe says of rows is not what the data has, which counts.
    config = TOY.with_changes(data={"row_width": 16})
    with toy.one_thread():
        on_data(config, options_of("--data", toy_data, "--steps", 3, "--profile"), CPU)
    given = [dict(word.split("=") for word in command if "=" in word) for command in trained_here]
    assert [(one["training.steps"], one["training.tokens_per_batch"]) for one in given] == [
        ("1", "320"), ("5", "320"), ("5", "96"),
    ]  # fmt: skip
    assert all(one["model.dropout"] == one["training.label_smoothing"] == "0.1" for one in given)
    lines = capsys.readouterr().out.splitlines()
    assert "transformers 5." in lines[0] and lines[0].endswith(", toy, 320 subwords")
    head = next(place for place, line in enumerate(lines) if line.endswith("of 790 TFLOP/s"))
    rows = [line[28:].split() for line in lines[head + 1 : head + 7]]
    assert [row[0] for row in rows] == ["320", "96"] * 3
    assert all(50 < float(row[1].rstrip("%")) <= 100 for row in rows)
    assert all(float(row[2].replace(",", "")) > 0 and row[3].endswith("%") for row in rows)
    assert any("ms a step" in line for line in lines)


def test_training_that_fails_ends_the_benchmark_with_what_it_said(
    tmp_path: Path, toy_data: Path, trained_here: list[list[str]]
) -> None:
    options = options_of("--data", toy_data)
    with pytest.raises(TrainingError, match=r"(?s)qkv train failed.*it says why"):
        train_speed.train(options, tmp_path / "run", 20, steps=1)
    assert len(trained_here) == 1


def test_means_are_over_time(
    toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many tokens as there were, by the seconds that they took, the first steps left out; as long as it waited."""
    windows = [(50, 1.0, 9.0, 0.9), (100, 400.0, 10.0, 0.7), (150, 200.0, 12.0, 0.0), (160, 100.0, 16.0, 0.35)]
    log = [
        {"kind": "train", "step": step, "tokens_per_second": speed, "seconds": seconds, "idle": idle}
        for step, speed, seconds, idle in windows
    ]
    monkeypatch.setattr(train_speed, "train", lambda *_, **__: [{"kind": "begin"}, *log])
    speed = train_speed.qkv_speed(options_of("--data", toy_data), 100, 110, 32)
    assert speed.tokens_per_second == pytest.approx(1200 / 7)
    # 0.7 of the first second, none of the next two, and 1.4 of the last four.
    assert capsys.readouterr().out.endswith("; the device waits 30.00% of the time\n")
    # 1,200 tokens in 110 steps, each with room for three rows of 32 on either side.
    assert speed.filled == pytest.approx(1200 / (110 * 2 * 96))


def test_a_peer_without_memory_for_the_largest_batches_is_measured_with_smaller_ones(
    toy_data: Path, trained_here: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del trained_here

    def small(name: str, config: Config, vocabulary: int, batches: Any, device: torch.device) -> Any:
        if name == "torch.nn.Transformer" and max(batch.target.numel() for batch in batches) > 96:
            raise torch.OutOfMemoryError
        return peer_steps(name, config, vocabulary, batches, device)

    monkeypatch.setattr(train_speed, "peer_steps", small)
    monkeypatch.setattr(train_speed, "qkv_speed", lambda _, tokens, *__: Speed("qkv", tokens, 1000.0, 0.9))
    monkeypatch.setattr(train_speed, "train", lambda *_, **__: [])
    with toy.one_thread():
        on_data(TOY, options_of("--data", toy_data, "--tokens", 320, "--tokens", 96), CPU)
    told = capsys.readouterr().out
    (without,) = (line for line in told.splitlines() if line.endswith("too little memory"))
    assert without.startswith("torch.nn.Transformer") and " 320 " in without
    assert told.count("torch.nn.Transformer at its best, with 96\n") == 2


def test_the_table_compares_every_size_of_ours_with_their_best_and_with_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    marian, _ = PEERS
    show(
        [
            Speed("qkv", 600, 1200.0, 0.99),
            Speed("qkv", 250, 900.0, 0.98),
            Speed(marian, 600, 400.0, 0.97),
            Speed(marian, 250, 300.0, 0.96),
        ],
        LIMIT / 2400,
    )
    *table, larger, own = capsys.readouterr().out.splitlines()
    assert [line.split()[-4:] for line in table[1:]] == [
        ["600", "99.0%", "1,200", "50.0%"], ["250", "98.0%", "900", "37.5%"],
        ["600", "97.0%", "400", "16.7%"], ["250", "96.0%", "300", "12.5%"],
    ]  # fmt: skip
    assert len(set(map(len, table))) == 1
    assert larger == f"qkv with 600 is 3.00 times {marian} at its best, with 600"
    assert own == f"qkv with 250 is 2.25 times {marian} at its best, with 600, and 3.00 times it with 250"


def test_a_size_is_measured_once_and_has_a_row_at_least() -> None:
    assert sizes_of(TOY, [320, 96, 320]) == [320, 96]
    with pytest.raises(ConfigError, match="--tokens 31 is less than a row of 32"):
        sizes_of(TOY, [320, 31])


def test_sorted_batches_have_no_more_positions_than_asked_for(toy_data: Path) -> None:
    corpus = Prepared.open(toy_data).corpus("train")
    batches = sorted_batches(corpus, 96, count=5)
    assert len(batches) == 5
    assert all(0 < batch.target.numel() <= 96 for batch in batches)
    # No two of them have the same sentences.
    assert len({batch.label.flatten()[: batch.label.size(1)].numpy().tobytes() for batch in batches}) == 5


def test_sentences_that_are_sorted_are_those_of_the_corpus(toy_data: Path) -> None:
    corpus = Prepared.open(toy_data).corpus("train")
    (whole,) = sorted_batches(corpus, 10**6, count=1)
    assert len(whole.source) == len(corpus)
    assert whole.tokens == (corpus.source_lengths() + 1).sum() + (corpus.target_lengths() + 1).sum()
    lengths = (whole.label != IGNORED).sum(1)
    assert torch.equal(lengths, lengths.sort().values)
    assert int((whole.source != PADDING).sum(1).max()) == whole.source.size(1)


def test_a_batch_of_two_lengths_of_targets_has_sources_of_about_one_length(tmp_path: Path) -> None:
    """Sorted upwards each, the longest sources of one length would meet the shortest of the next."""
    corpus = write_corpus(tmp_path, pairs=20_000, vocabulary=400, longest=127)
    batches = sorted_batches(corpus, 1024, count=40)
    assert fill(batches) > 0.96
    whole = sum(batch.source.numel() + batch.label.numel() for batch in batches)
    assert fill(batches) == sum(batch.tokens for batch in batches) / whole


def test_some_batches_are_as_full_as_all(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, pairs=20_000, vocabulary=400, longest=127)
    every = sorted_batches(corpus, 1024, count=10_000)
    assert fill(sorted_batches(corpus, 1024, count=40)) == pytest.approx(fill(every), abs=0.004)


def test_peers_smooth_their_labels_as_the_recipe_says(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, given = Prepared.open(toy_data), []
    real = functional.cross_entropy

    def seen(*arguments: Any, **options: Any) -> torch.Tensor:
        given.append(options["label_smoothing"])
        return real(*arguments, **options)

    monkeypatch.setattr("torch.nn.functional.cross_entropy", seen)
    config = TOY.with_changes(training={"label_smoothing": 0.3})
    with toy.one_thread():
        for name in PEERS:
            batches = sorted_batches(prepared.corpus("train"), 96, count=1)
            next(peer_steps(name, config, prepared.tokenizer().size, batches, CPU))
    assert given == [0.3, 0.3]


def test_only_on_hardware_whose_limit_is_known_is_a_share_of_it_told(
    toy_data: Path, trained_here: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del trained_here
    with toy.one_thread():
        on_data(TOY, options_of("--data", toy_data, "--steps", 3, "--alone"), CPU)
    assert "TFLOP/s" not in capsys.readouterr().out
    monkeypatch.setattr(train_speed, "_name", lambda _: "NVIDIA H200 NVL")
    with toy.one_thread():
        on_data(TOY, options_of("--data", toy_data, "--steps", 3, "--alone"), CPU)
    assert "of 790 TFLOP/s" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "mixed"), [("cuda", True), ("cpu", False)])
def test_peers_compute_in_bfloat16_on_a_gpu_and_nowhere_else(
    kind: str, mixed: bool, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All stays where it is, as if that were the GPU."""
    seen = []

    def autocast(*given: object, enabled: bool) -> nullcontext[None]:
        seen.append((*given, enabled))
        return nullcontext()

    monkeypatch.setattr("torch.autocast", autocast)
    monkeypatch.setattr(PaddedBatch, "ready_for", lambda batch, _: batch)
    monkeypatch.setattr(PaddedBatch, "to", lambda batch, _: batch)
    monkeypatch.setattr("torch.nn.Module.to", lambda module, _: module)
    prepared = Prepared.open(toy_data)
    with toy.one_thread():
        for name in PEERS:
            batches = sorted_batches(prepared.corpus("train"), 96, count=1)
            next(peer_steps(name, TOY, prepared.tokenizer().size, batches, torch.device(kind)))
    assert seen == [(kind, torch.bfloat16, mixed)] * 2


def test_what_a_shape_costs_a_peer_the_first_time_is_not_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0

    def twice_over_three_batches(*_: object) -> Iterator[int]:
        nonlocal now
        for seconds in (100, 100, 100, 2, 2, 2):
            now += seconds
            yield 10

    monkeypatch.setattr(train_speed, "_PEER_STEPS", 3)
    monkeypatch.setattr(train_speed, "peer_steps", twice_over_three_batches)
    monkeypatch.setattr("bench.train_speed.time.perf_counter", lambda: now)
    assert train_speed.peer_speed("some peer", TOY, 400, [], CPU) == 5


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_says_how_many_tokens_it_has_seen(name: str, toy_data: Path) -> None:
    prepared = Prepared.open(toy_data)
    batches = sorted_batches(prepared.corpus("train"), 96, count=2)
    with toy.one_thread():
        steps = peer_steps(name, TOY, prepared.tokenizer().size, batches, CPU)
        assert [next(steps) for _ in range(4)] == [batch.tokens for batch in batches] * 2


def test_a_step_of_ours_says_how_many_tokens_of_both_sides_it_has_seen(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, pairs=20, vocabulary=400, longest=31)
    rows = len(Batches(corpus, width=32, rows_a_step=1, marks=Marks(PADDING, BEGIN, END), seed=1).rows)
    source, target = int((corpus.source_lengths() + 1).sum()), int((corpus.target_lengths() + 1).sum())
    assert source != target
    with toy.one_thread():
        # Every row, each time.
        steps = qkv_steps(TOY, corpus, 400, rows * 32)
        assert [next(steps) for _ in range(2)] == [source + target] * 2


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_learns_from_each_batch_alone(name: str, toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a loop where gradients of the step before have no place to stay."""
    prepared = Prepared.open(toy_data)
    batches = sorted_batches(prepared.corpus("train"), 96, count=2)
    config, vocabulary = TOY.with_changes(model={"dropout": 0.0}), prepared.tokenizer().size
    model, logits = PEERS[name](config, vocabulary)
    begun = copy.deepcopy(model.state_dict())
    monkeypatch.setitem(PEERS, name, lambda *_: (model, logits))
    with toy.one_thread():
        steps = peer_steps(name, config, vocabulary, batches, CPU)
        for _ in batches:
            next(steps)
        learned = copy.deepcopy(model.state_dict())

        model.load_state_dict(begun)
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=True)
        for batch in batches:
            loss = functional.cross_entropy(
                logits(batch).flatten(0, 1),
                batch.label.flatten(),
                ignore_index=IGNORED,
                label_smoothing=config.training.label_smoothing,
            )
            for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight.grad = gradient
            optimizer.step()
    for part, expected in model.state_dict().items():
        torch.testing.assert_close(learned[part], expected, rtol=0, atol=1e-7)
