"""Every command and every option, as a user types them."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import qkv
from qkv.checkpoint import read, step_of, write
from qkv.cli import main
from qkv.models.build import count_parameters
from qkv.prepare.directory import space_needed
from qkv.recipes import RECIPES, recipe
from qkv.run import RunDirectory
from qkv.settings import settings
from qkv.storage import readable_size
from tests import toy
from tests.forked import signalled
from tests.toy import Command

SOURCES = [source for source, _ in toy.held_out()[:6]]
REFERENCES = [target for _, target in toy.held_out()[:6]]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(qkv.__file__).parents[1])}

QUICKLY = [
    "--recipe", "tiny", "--set", "model.width=16", "--set", "model.heads=2", "--set", "model.hidden=24",
    "--set", "training.steps=4", "--set", "training.save_every=2",
    "--set", "training.validation_sentences=2", "--set", "training.tokens_per_batch=192",
]  # fmt: skip
SMALL = ["--set", "text.vocabulary=320"]


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `QUICKLY` on the corpus."""
    folder = tmp_path_factory.mktemp("begun")
    corpus = toy.write_tsv(folder / "corpus.tsv", toy.pairs(120))
    assert main(["train", str(corpus), *SMALL, *QUICKLY, "--output", str(folder / "run")]) == 0
    return folder / "run"


# Help


def test_help_names_every_command(command: Command) -> None:
    ran = command("--help")
    assert ran.code == 0
    for name in (
        "prepare", "train", "distill", "translate", "align", "score", "evaluate", "export", "fetch", "reproduce",
        "plot", "average", "recipes", "completion",
    ):  # fmt: skip
        assert re.search(rf"^ +{name}\b", ran.out.decode(), re.MULTILINE)
        assert command(name, "--help").out.decode().startswith(f"usage: qkv {name} ")


def test_without_a_command_the_help_is_printed(command: Command) -> None:
    ran = command()
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err == command("--help").out.decode()


def test_the_version_is_told(command: Command) -> None:
    assert command("--version").out.decode() == f"qkv {qkv.__version__}\n"


def test_recipes_are_listed_with_a_sentence_each(command: Command) -> None:
    lines = command("recipes").lines
    assert [line.split()[0] for line in lines] == list(RECIPES)
    assert all(line.endswith((".", "subwords.")) or ":" in line for line in lines)


def test_a_recipe_is_printed_as_set_takes_it(command: Command) -> None:
    lines = command("recipes", "modern").lines
    assert len(lines) == len(list(settings(recipe("modern"))))
    assert "model.norm = rms" in lines
    assert "training.patience = none" in lines


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_scripts_name_every_command(command: Command, shell: str) -> None:
    script = command("completion", shell).out
    assert all(name in script for name in (b"translate", b"evaluate", b"average"))
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=script, capture_output=True).stderr == b""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["train", "--recipe", ""], {*RECIPES}),
        (["prepare", "--recipe", "mod"], {"modern"}),
        (["recipes", "bi"], {"big", "big-en-fr"}),
        (["completion", ""], {"bash", "zsh", "tcsh"}),
        (["fetch", "wmt"], {"wmt14-en-de", "wmt14-en-fr"}),
        (["reproduce", "t"], {"table3"}),
        (["reproduce", "table3", "--data", "co"], {"country"}),
        (["train", "co"], {"corpus.tsv", "country"}),
        (["train", "--tokenizer", "co"], {"corpus.tsv", "country"}),
        (["evaluate", "co"], {"corpus.tsv", "country"}),
        (["translate", "co"], {"country"}),
        (["translate", "country", "--input", "co"], {"corpus.tsv", "country"}),
        (["train", "--data", "co"], {"country"}),
        (["plot", "co"], {"country"}),
        (["average", "co"], {"country"}),
    ],
)
def test_bash_completes_recipes_files_and_directories(
    command: Command, tmp_path: Path, corpus: Path, typed: list[str], offered: set[str]
) -> None:
    (tmp_path / "country").mkdir()
    (tmp_path / "script").write_bytes(command("completion", "bash").out)
    words = 'source ./script; COMP_WORDS=(qkv "$@"); COMP_CWORD=$#; _shtab_qkv; printf \'%s\\n\' "${COMPREPLY[@]}"'
    ran = subprocess.run(["bash", "-c", words, "bash", *typed], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.stderr, {*ran.stdout.split()}) == ("", offered)
    assert corpus.name == "corpus.tsv"


def test_completing_needs_no_torch() -> None:
    code = "import sys; from qkv.cli import main; main(['completion', 'bash']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT).returncode == 0


# Preparing and training


def test_prepare_and_train_by_themselves(command: Command, tmp_path: Path, corpus: Path) -> None:
    data, run = tmp_path / "data", tmp_path / "run"
    valid = toy.write_tsv(tmp_path / "valid.tsv", toy.pairs(9, seed=5))
    ran = command(
        "prepare", corpus, "--valid", valid, "--test", valid, "--from", "en", "--to", "fr", "--output", data,
        "--recipe", "tiny", "--set", "text.vocabulary=320", "--workers", "1",
    )  # fmt: skip
    assert (ran.code, ran.out) == (0, b"")
    assert "120 pairs read" in ran.err
    ran = command("train", "--data", data, "--output", run, *QUICKLY)
    assert (ran.code, ran.out) == (0, b"")
    assert f"finished after step 4: {run}" in ran.err
    config = RunDirectory(run).config()
    assert (config.text.vocabulary, config.text.target_language, config.model.width) == (320, "fr", 16)


def test_train_does_it_all_in_one_command(command: Command, tmp_path: Path, corpus: Path) -> None:
    source, target = tmp_path / "corpus.en.gz", tmp_path / "corpus.fr.xz"
    source.write_bytes(gzip.compress(text([one for one, _ in toy.pairs(120)])))
    target.write_bytes(lzma.compress(text([other for _, other in toy.pairs(120)])))
    # Names such as corpus.en tell the languages, which have tags in the vocabulary.
    how = ["--from", "en", "--to", "fr", *SMALL, *QUICKLY]
    for files, name in (([corpus], "one"), ([source, target], "two")):
        ran = command("train", *files, "--output", tmp_path / name, *how)
        assert (ran.code, ran.out) == (0, b"")
        assert "120 pairs read" in ran.err
    assert toy.equal(toy.weights(tmp_path / "one"), toy.weights(tmp_path / "two"))
    ran = command("train", corpus, "--output", tmp_path / "one", *how)
    assert (ran.code, ran.err.splitlines()[-1].partition(";")[0]) == (0, f"{tmp_path / 'one'} is finished")


def test_train_uses_a_vocabulary_that_is_there(command: Command, tmp_path: Path, corpus: Path) -> None:
    assert command("train", corpus, "--output", tmp_path / "run", *SMALL, *QUICKLY).code == 0
    tokenizer = tmp_path / "run" / "tokenizer.model"
    assert (
        command("train", corpus, "--tokenizer", tokenizer, "--output", tmp_path / "other", *SMALL, *QUICKLY).code == 0
    )
    assert (tmp_path / "other" / "tokenizer.model").read_bytes() == tokenizer.read_bytes()


def test_a_dry_run_tells_the_settings_and_the_sizes_and_does_nothing(
    command: Command, tmp_path: Path, corpus: Path
) -> None:
    ran = command("train", corpus, "--output", tmp_path / "run", "--set", "training.steps=7", "--dry-run")
    assert ran.code == 0
    assert "training.steps = 7" in ran.lines
    told = {line.split("  ")[0]: line for line in ran.lines if "  " in line}
    base = recipe("base")
    assert f"{count_parameters(base.model, base.text.vocabulary):,}" in told["parameters"]
    assert "195 rows of 128 positions" in told["a step"]
    assert "24,960" in told["a step"]
    assert "GB" in told["memory"]
    assert "GB" in told["disk"]
    assert not (tmp_path / "run").exists()


def test_a_dry_run_counts_the_data_that_is_still_to_be_prepared(
    command: Command, tmp_path: Path, corpus: Path, toy_data: Path
) -> None:
    def disk(*arguments: object) -> str:
        return next(line for line in command("train", *arguments, "--dry-run").lines if line.startswith("disk"))

    needed = readable_size(space_needed([corpus]))
    run = tmp_path / "run"
    assert disk(corpus, *SMALL, *QUICKLY).endswith(f"checkpoints and weights, {needed} for preparing the data")
    assert disk("--data", toy_data, *QUICKLY).endswith("0 bytes for preparing the data")
    assert command("train", corpus, "--output", run, *SMALL, *QUICKLY).code == 0
    assert disk(corpus, "--output", run, *SMALL, *QUICKLY).endswith("0 bytes for preparing the data")


def contents(directory: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*")}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--recipe", "tiny"],
        ["{corpus}", "--data", "{data}"],
        ["{corpus}", "--set", "training.device=cuda:77"],
        ["{corpus}", "--set", "training.device=gpu"],
        ["{corpus}", "--set", "text.vocabulary=100"],
        ["{corpus}", "--to", "?"],
        ["{corpus}", "--tokenizer", "{corpus}"],
        ["{corpus}", "--tokenizer", "{data}/tokenizer.model"],
        ["{corpus}", "--valid", "{empty}"],
        ["{corpus}", "--test", "{wide}"],
        ["{empty}"],
        ["--data", "{data}", "--set", "training.device=cuda:77"],
        ["--data", "{corpus}"],
        ["{corpus}", "--output", "{corpus}"],
        ["{corpus}", "--output", "{corpus}/run"],
        ["--data", "{data}", "--output", "{corpus}/run"],
        ["{corpus}", "--output", "{toy_run}"],
        ["{corpus}", *SMALL, *QUICKLY, "--set", "model.dropout=0.3", "--output", "{run}"],
        ["{corpus}", "{corpus}", *SMALL, *QUICKLY, "--output", "{run}"],
        ["--data", "{data}", *QUICKLY, "--output", "{run}"],
    ],
)
def test_a_dry_run_refuses_what_the_real_one_would(
    command: Command, tmp_path: Path, corpus: Path, toy_data: Path, toy_run: Path, begun: Path, arguments: list[str]
) -> None:
    (tmp_path / "empty.tsv").touch()
    (tmp_path / "wide.tsv").write_text("basa\tasab\n", encoding="utf-16")
    places = {
        "corpus": corpus, "data": toy_data, "toy_run": toy_run, "run": begun, "empty": tmp_path / "empty.tsv",
        "wide": tmp_path / "wide.tsv",
    }  # fmt: skip
    asked = [argument.format_map(places) for argument in arguments]
    before = contents(tmp_path) | contents(begun) | contents(toy_run)
    tried = command("train", *asked, "--dry-run")
    assert contents(tmp_path) | contents(begun) | contents(toy_run) == before
    real = command("train", *asked, *([] if "--output" in asked else ["--output", tmp_path / "new"]))
    assert tried.code == real.code != 0
    assert tried.err == real.err.splitlines(keepends=True)[-1]


def test_a_dry_run_of_a_run_that_is_written_to_is_refused(command: Command, corpus: Path, begun: Path) -> None:
    with RunDirectory(begun).held():
        ran = command("train", corpus, *SMALL, *QUICKLY, "--output", begun, "--dry-run")
    assert (ran.code, "another process is at work on" in ran.err) == (2, True)
    assert command("train", corpus, *SMALL, *QUICKLY, "--output", begun, "--dry-run").code == 0


def test_tensorboard_that_is_not_installed_is_told_before_preparing(
    command: Command, tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    arguments = ["train", corpus, "--output", tmp_path / "run", *QUICKLY, "--set", "training.tensorboard=true"]
    for more in ([], ["--dry-run"]):
        ran = command(*arguments, *more)
        assert (ran.code, "pip install '.[tensorboard]'" in ran.err) == (2, True)
    assert not (tmp_path / "run").exists()


def test_a_dry_run_finds_files_that_are_not_there(command: Command) -> None:
    ran = command("train", "no.en", "no.fr", "--dry-run")
    assert (ran.code, ran.err) == (2, "qkv: error: no such file: no.en\n")


def test_options_of_sampling_without_sampling_are_refused(command: Command, toy_run: Path) -> None:
    ran = command("translate", toy_run, "--top-k", "3", given=text(SOURCES))
    assert ran.code == 2
    assert "add --sample" in ran.err


def test_a_dry_run_takes_the_settings_of_prepared_data(command: Command, toy_data: Path) -> None:
    ran = command("train", "--data", toy_data, "--recipe", "tiny", "--dry-run")
    assert "text.vocabulary = 320" in ran.lines
    assert "data.row_width = 32" in ran.lines


def test_average_and_plot_work_on_runs(command: Command, toy_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(toy_run, run)
    ran = command("average", run, "--last", 2)
    assert ran.lines == [f"{run}: the weights are now the mean of those after steps 200, 300"]
    assert read(run / "final").state["weights"] == "checkpoints"
    assert command("translate", run, given=b"basa kodu\n").lines == ["udok asab"]
    ran = command("plot", run, toy_run, "--output", tmp_path / "curves.png")
    assert (ran.code, ran.lines) == (0, [str(tmp_path / "curves.png")])
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert command("plot", run).lines == [str(run / "curves.png")]


def test_where_a_run_is_needed_an_exported_model_is_told_from_one(
    command: Command, exported: Path, tmp_path: Path
) -> None:
    output = ["--output", tmp_path / "out"]
    for typed in (
        ["watch", exported, "--html", tmp_path / "out"],
        ["export", exported, *output],
        ["distill", exported, *output],
        ["average", exported],
        ["pack", exported, *output],
    ):
        ran = command(*typed)
        assert (ran.code, ran.out) == (2, b"")
        assert ran.err == (
            f"qkv: error: {exported} is an exported model; this needs the run that it was exported from\n"
        )
    assert not (tmp_path / "out").exists()


# Translating


def test_one_line_in_is_one_line_out(command: Command, toy_run: Path) -> None:
    ran = command("translate", toy_run, given=text(SOURCES))
    assert ran.code == 0
    assert ran.err == ""
    right = sum(line == reference for line, reference in zip(ran.lines, REFERENCES, strict=True))
    assert right >= len(REFERENCES) - 1


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (b"", 0),
        (b"\n", 1),
        (b"\n\n\n", 3),
        (b"basa", 1),
        (b"basa\r\nkodu\r\n", 2),
        ("ba\u2028sa\u2029ko\u0085du\x0b\x0c\x1c\x1d\x1e\nkodu\n".encode(), 2),
        (b"ba\tsa\t\n\t\nkodu\n", 3),
        (b"ba\0sa\nkodu\n", 2),
        (b"ba\rsa\nkodu\n", 2),
        (b"\xef\xbb\xbfbasa\n", 1),
        ("日本語 🎉\nZażółć\n".encode(), 2),
    ],
)
def test_whatever_is_in_a_line_it_stays_one(command: Command, toy_run: Path, given: bytes, lines: int) -> None:
    ran = command("translate", toy_run, "--beam", 1, given=given)
    assert ran.code == 0
    assert ran.out.count(b"\n") == lines
    assert ran.out.endswith(b"\n") or not lines
    assert b"\r" not in ran.out


def test_empty_lines_stay_empty_and_in_place(command: Command, toy_run: Path) -> None:
    ran = command("translate", toy_run, given=b"\nbasa kodu\n \t \n\nkodu basa\n")
    assert ran.lines == ["", "udok asab", "", "", "asab udok"]


def test_windows_line_ends_change_no_translation(command: Command, toy_run: Path) -> None:
    assert command("translate", toy_run, given=b"basa kodu\r\nkodu basa\r\n").lines == ["udok asab", "asab udok"]


def test_more_lines_than_are_translated_at_once_stay_in_order(
    command: Command, toy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = command("translate", toy_run, given=text(SOURCES)).lines
    monkeypatch.setattr("qkv.translate.translator._TEXTS", 2)
    assert command("translate", toy_run, given=text(SOURCES)).lines == expected


def test_files_in_and_out(command: Command, toy_run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"basa kodu\n\n"))
    ran = command("translate", toy_run, "--input", tmp_path / "in.gz", "--output", tmp_path / "out", "--device", "cpu")
    assert (ran.code, ran.out) == (0, b"")
    assert (tmp_path / "out").read_text() == "udok asab\n\n"


def test_a_failure_leaves_the_output_file_as_it_was(
    command: Command, toy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qkv.translate.translator._TEXTS", 1)
    (tmp_path / "out").write_text("of value\n")
    ran = command("translate", toy_run, "--output", tmp_path / "out", given=b"basa kodu\n\xff\n")
    assert (ran.code, (tmp_path / "out").read_text()) == (3, "of value\n")
    assert ran.err.endswith("line 2: not UTF-8 at byte 1; nothing is written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("at_once", [2, 3, 2000])
def test_lines_before_a_broken_one_are_translated(
    command: Command, toy_run: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("qkv.translate.translator._TEXTS", at_once)
    ran = command("translate", toy_run, given=b"basa kodu\n\nkodu basa\n\xff\nbasa\n")
    assert (ran.code, ran.lines) == (3, ["udok asab", "", "asab udok"])
    assert ran.err.endswith("line 4: not UTF-8 at byte 1; the 3 lines before it are translated\n")
    assert command("translate", toy_run, given=b"\xff\n").err.endswith("byte 1; nothing is written\n")


def test_who_translates_tags_as_words_is_told_what_carries_them(command: Command, toy_run: Path) -> None:
    given = b"basa\n<b>basa</b> kodu\na < b\n"
    ran = command("translate", toy_run, given=given)
    assert (ran.code, len(ran.lines)) == (0, 3)
    assert ran.err.startswith(
        "qkv: warning: line 2: words between tags may stay as they are; --document --tags carries"
    )
    for quiet in ["--whole-lines"], ["--document", "--tags"]:
        assert "tags may stay" not in command("translate", toy_run, *quiet, given=given).err


def test_an_output_file_keeps_its_mode_and_what_leads_to_it(command: Command, toy_run: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("of no value\n")
    (tmp_path / "out").chmod(0o640)
    (tmp_path / "link").symlink_to("out")
    assert command("translate", toy_run, "--output", tmp_path / "link", given=b"basa kodu\n").code == 0
    assert (tmp_path / "out").read_text() == "udok asab\n"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link").is_symlink()


def test_a_pipe_is_an_input(command: Command, toy_run: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"basa kodu\n")
    os.close(writing)
    try:
        assert command("translate", toy_run, "--input", f"/dev/fd/{reading}").lines == ["udok asab"]
    finally:
        os.close(reading)


def test_n_best_are_numbered_and_scored(command: Command, toy_run: Path) -> None:
    ran = command("translate", toy_run, "--n-best", 3, "--beam", 4, given=b"basa kodu\n\nkodu\n")
    rows = [line.split("\t") for line in ran.lines]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3"]
    assert rows[0][2] == "udok asab"
    assert rows[3] == ["2", "0.0000", ""]
    assert float(rows[0][1]) >= float(rows[1][1]) >= float(rows[2][1])


def test_scores_stand_before_the_translations(command: Command, toy_run: Path) -> None:
    (line,) = command("translate", toy_run, "--scores", given=b"basa kodu\n").lines
    score, translation = line.split("\t")
    assert float(score) < 0
    assert translation == "udok asab"


def test_a_length_penalty_changes_the_scores(command: Command, toy_run: Path) -> None:
    one, other = (
        command("translate", toy_run, "--scores", "--length-penalty", alpha, given=b"basa kodu\n").out
        for alpha in (0, 1)
    )
    assert one != other


def test_drawing_is_repeated_by_its_seed(command: Command, toy_run: Path) -> None:
    options = ["--sample", "--temperature", "3", "--top-k", "50", "--top-p", "0.99"]
    first, again, other = (
        command("translate", toy_run, *options, "--seed", seed, given=text(SOURCES)).lines for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(command("translate", toy_run, *options, "--n-best", 7, given=b"basa\n").lines) == 7


# Scoring


@pytest.fixture
def scored(tmp_path: Path) -> dict[str, Path]:
    files = {
        "source": text(SOURCES),
        "reference": text(REFERENCES),
        "test": text([f"{one}\t{other}" for one, other in zip(SOURCES, REFERENCES, strict=True)]),
        "worse": text([" ".join(line.split()[::-1]) for line in REFERENCES]),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / name for name in files}


def test_a_run_is_scored(command: Command, toy_run: Path, scored: dict[str, Path]) -> None:
    apart = command("evaluate", toy_run, "--source", scored["source"], "--reference", scored["reference"])
    together = command("evaluate", toy_run, "--test", scored["test"], "--language", "en", "--device", "cpu")
    assert apart.code == together.code == 0
    assert apart.out == together.out
    told = apart.out.decode()
    assert told.startswith("6 sentences\n")
    for metric in ("BLEU", "chrF", "nrefs:1"):
        assert metric in told


def test_a_run_is_scored_with_the_search_asked_for(
    command: Command, toy_run: Path, scored: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []

    def translate(_: object, sources: list[str], **options: Any) -> list[qkv.Translation]:
        seen.append(options)
        return [qkv.Translation(one, 0.0, True) for one in sources]

    monkeypatch.setattr("qkv.translate.translator.Translator.translate", translate)
    assert command("evaluate", toy_run, "--test", scored["test"], "--beam", 2, "--length-penalty", 0.3).code == 0
    assert (seen[0]["beam"], seen[0]["length_penalty"]) == (2, 0.3)


def test_a_file_is_scored_and_perfect_where_it_is_the_reference(command: Command, scored: dict[str, Path]) -> None:
    ran = command("evaluate", scored["reference"], "--reference", scored["reference"], "--json")
    values = json.loads(ran.out)
    assert values["sentences"] == 6
    (scores,) = values["systems"].values()
    assert {round(one["value"], 3) for one in scores.values()} == {100.0}
    assert all(one["signature"] for one in scores.values())
    assert values["comparisons"] == []


def test_the_papers_flavour_is_of_the_language_that_a_name_tells_or_is_said_to_be_english(
    command: Command, scored: dict[str, Path]
) -> None:
    named = scored["reference"].with_suffix(".fr")
    shutil.copy(scored["reference"], named)
    pairs = scored["test"].with_name("test.en-de.tsv")
    shutil.copy(scored["test"], pairs)
    for test, language in ((["--reference", named], "fr"), (["--test", pairs], "de")):
        ran = command("evaluate", scored["worse"], *test)
        assert f"|lang:{language}|" in ran.out.decode() and ran.err == ""
    ran = command("evaluate", scored["worse"], "--reference", scored["reference"])
    assert "|lang:en|" in ran.out.decode()
    assert ran.err == "qkv: note: the paper's flavour is taken as English; --language fr says otherwise\n"


def test_two_systems_are_compared(command: Command, toy_run: Path, scored: dict[str, Path]) -> None:
    ran = command("evaluate", scored["worse"], toy_run, "--test", scored["test"])
    assert "paired bootstrap" in ran.out.decode()
    ran = command("evaluate", scored["worse"], toy_run, "--test", scored["test"], "--json")
    (comparison,) = json.loads(ran.out)["comparisons"]
    assert all(one["better"] for one in comparison.values())


# What happens to a process


def test_a_reader_that_goes_away_ends_it_quietly(toy_run: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("basa kodu\n" * 30_000)
    script = 'set -o pipefail; "$0" -m qkv translate "$1" --beam 1 < "$2" | head -1'
    ran = subprocess.run(
        ["bash", "-c", script, sys.executable, toy_run, tmp_path / "in"], capture_output=True, env=ENVIRONMENT
    )
    assert (ran.stdout, ran.stderr.decode(), ran.returncode) == (b"udok asab\n", "", 141)


@pytest.mark.parametrize("arguments", [["recipes"], ["completion", "bash"]])
def test_output_that_cannot_be_written_is_told(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "qkv", *arguments], stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
    assert (ran.stderr.decode(), ran.returncode) == ("qkv: error: the output: No space left on device\n", 5)


def test_a_closed_output_is_no_mistake() -> None:
    ran = subprocess.run(
        ["bash", "-c", '"$0" -m qkv recipes >&-', sys.executable], stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert (ran.stderr, ran.returncode) == (b"", 0)


def test_an_interrupt_saves_and_says_how_to_go_on(tmp_path: Path, corpus: Path) -> None:
    run = tmp_path / "run"
    arguments = ["train", corpus, "--output", run, *SMALL, *QUICKLY, "--set", "training.steps=100000"]
    first = run / "checkpoints" / "step-0000002"
    assert signalled(signal.SIGINT, first, *map(str, arguments), told=tmp_path / "told") == 130
    told = (tmp_path / "told").read_text()
    assert "Traceback" not in told
    newest = step_of(RunDirectory(run).checkpoints()[-1])
    assert [line for line in told.splitlines() if line.startswith("qkv:")] == [
        "qkv: stopping after this step, which is saved; interrupt again to leave at once",
        f"qkv: stopped by SIGINT after step {newest}, which is saved; the same command goes on",
    ]
    assert not list((run / "checkpoints").glob("*.tmp"))


def test_a_search_option_found_wrong_leaves_the_output_file_as_it_was(
    command: Command, toy_run: Path, tmp_path: Path
) -> None:
    output = tmp_path / "kept.txt"
    output.write_text("of value\n", encoding="utf-8")
    ran = command("translate", toy_run, "--output", output, "--n-best", "9", given=text(SOURCES))
    assert ran.code == 2
    assert output.read_text(encoding="utf-8") == "of value\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_stream_is_told(toy_run: Path, closed: str) -> None:
    line = f"echo a | {sys.executable} -m qkv translate {toy_run} {closed}"
    ran = subprocess.run(["bash", "-c", line], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "is closed; give" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_lines_are_numbered_on_from_one_helping_to_the_next(
    command: Command, toy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qkv.translate.translator._TEXTS", 2)
    same = text([SOURCES[0]] * 5)
    rows = [line.split("\t") for line in command("translate", toy_run, "--n-best", 2, given=same).lines]
    assert [row[0] for row in rows] == ["1", "1", "2", "2", "3", "3", "4", "4", "5", "5"]


def test_train_takes_validation_and_test_files(command: Command, tmp_path: Path, corpus: Path) -> None:
    valid = toy.write_tsv(tmp_path / "valid.tsv", toy.pairs(9, seed=5))
    leaked = toy.write_tsv(tmp_path / "test.tsv", toy.pairs(7))
    ran = command("train", corpus, "--valid", valid, "--test", leaked, "--output", tmp_path / "run", *SMALL, *QUICKLY)
    assert ran.code == 0
    report = json.loads((tmp_path / "run" / "data" / "report.json").read_text())
    assert (report["training"]["pairs"], report["validation"]["pairs"]) == (120, 9)
    assert report["overlap"]["test"]["lines"] == 7


@pytest.mark.parametrize("option", ["--valid", "--test", "--tokenizer"])
def test_what_prepared_data_has_settled_cannot_be_asked_for_again(
    command: Command, tmp_path: Path, corpus: Path, toy_data: Path, option: str
) -> None:
    ran = command("train", "--data", toy_data, option, corpus, "--output", tmp_path / "run", *QUICKLY)
    assert (ran.code, (tmp_path / "run").exists()) == (2, False)
    assert f"{option}: settled when {toy_data} was prepared" in ran.err


def test_settings_that_prepared_data_has_may_be_said_again(command: Command, toy_data: Path) -> None:
    asked = ["train", "--data", toy_data, "--recipe", "tiny", "--dry-run"]
    assert command(*asked, "--set", "text.vocabulary=320", "--set", "data.row_width=32").code == 0
    ran = command(*asked, "--set", "text.vocabulary=320", "--set", "data.row_width=64")
    assert (ran.code, ran.out) == (2, b"")
    assert f"error: data.row_width=64: settled when {toy_data} was prepared" in ran.err


def test_a_run_is_scored_by_the_rules_of_its_own_language_unless_told(
    command: Command, toy_run: Path, tmp_path: Path, scored: dict[str, Path]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(toy_run, run)
    config = json.loads((run / "config.json").read_text())
    config["text"]["target_language"] = "fr"
    (run / "config.json").write_text(json.dumps(config))
    assert "|lang:fr|" in command("evaluate", run, "--test", scored["test"]).out.decode()
    assert "|lang:de|" in command("evaluate", run, "--test", scored["test"], "--language", "de").out.decode()


def test_a_translation_with_bytes_that_end_lines_is_one_line(
    command: Command, toy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qkv.text.subwords.Tokenizer.decode", lambda *_: "one\ntwo\r\nthree\r")
    assert command("translate", toy_run, "--beam", 1, given=b"basa\nkodu\n").lines == ["one two  three "] * 2


@pytest.mark.parametrize("nowhere", ["2>&-", "2>/dev/full"])
def test_messages_that_nobody_can_read_stop_nothing(exported: Path, corpus: Path, tmp_path: Path, nowhere: str) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = " ".join(str(one) for one in arguments)
        line = f"echo {SOURCES[0]} | {sys.executable} -m qkv {words} {nowhere}"
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=ENVIRONMENT, check=False)

    translated = run("translate", exported)
    assert (translated.returncode, len(translated.stdout.splitlines())) == (0, 1)
    trained = run("train", corpus, *SMALL, *QUICKLY, "--output", tmp_path / "run")
    assert trained.returncode == 0
    assert (tmp_path / "run" / "final").is_dir()
    assert run("translate", tmp_path / "nothing").returncode == 2


def test_weights_that_have_blown_up_are_told(command: Command, corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("train", corpus, *SMALL, *QUICKLY, "--output", run).code == 0
    final = read(run / "final")
    ruined = {name: tensor * float("inf") for name, tensor in final.tensors["weights"].items()}
    write(run / "final", {"weights": ruined}, final.state)
    for how in ([], ["--sample"]):
        told = command("translate", run, *how, given=b"a\n")
        assert (told.code, told.lines) == (4, [])
        assert "the model's scores are not finite" in told.err


def test_a_language_that_moses_does_not_know_costs_only_the_score_that_needs_it(
    command: Command, corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert command("train", corpus, *SMALL, *QUICKLY, "--to", "deu", "--output", run).code == 0
    scored = command("evaluate", run, "--test", corpus, "--json")
    assert scored.code == 0
    assert json.loads(scored.out)["systems"][str(run)].keys() == {"bleu", "chrf"}
    assert "Moses has no rules for the run's language, 'deu'; --language takes one of" in scored.err
    assert json.loads(command("evaluate", run, "--test", corpus, "--json", "--language", "de").out)["systems"][
        str(run)
    ].keys() == {"bleu", "chrf", "paper"}


def test_settings_have_to_fit_the_rows_of_the_data_and_not_those_of_the_recipe(
    command: Command, corpus: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    narrow = ["--recipe", "tiny", "--set", "data.row_width=32"]
    assert command("prepare", corpus, *SMALL, *narrow, "--output", data).code == 0
    assert recipe("tiny").data.row_width > 40
    planned = command("train", "--data", data, "--recipe", "tiny", "--set", "training.tokens_per_batch=40", "--dry-run")
    assert planned.code == 0
    assert "1 rows of 32 positions" in planned.out.decode()
