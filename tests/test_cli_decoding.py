"""What people do with the search, as they type it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from qkv.training import train_prepared
from qkv.translate import Translator
from tests import toy
from tests.toy import Command

SOURCES = [source for source, _ in toy.held_out()[:5]]


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def endless(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned nothing, and seldom ends what it writes."""
    run = tmp_path_factory.mktemp("endless") / "run"
    train_prepared(toy_data, run, toy.QUICK.with_changes(training={"steps": 1}))
    return run


# What translations are like


def test_every_translation_begins_with_the_prefix(command: Command, toy_run: Path) -> None:
    for more in ([], ["--stream"], ["--sample"]):
        ran = command("translate", toy_run, "--prefix", "omul", *more, given=text(SOURCES))
        assert (ran.code, ran.err) == (0, "")
        assert all(line.startswith("omul") for line in ran.lines)


@pytest.mark.parametrize("at_once", [2, 2000])
def test_each_translation_begins_with_its_line_of_the_prefixes(
    command: Command, toy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("qkv.translate.translator._TEXTS", at_once)
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("omul\n\nitir asab\n")
    ran = command("translate", toy_run, "--prefixes", prefixes, given=text(["basa kodu", "basa kodu", "kodu basa"]))
    assert [line.split()[0] for line in ran.lines] == ["omul", "udok", "itir"]
    ran = command("translate", toy_run, "--prefixes", prefixes, given=text(SOURCES))
    assert ran.code == 3
    assert f"{prefixes} has 3 lines, and the input has more; give a line for each" in ran.err
    ran = command("translate", toy_run, "--prefixes", prefixes, given=text(["basa kodu"]))
    assert ran.code == 3
    assert f"{prefixes} has more lines than the input, which has 1; give a line for each" in ran.err


def test_a_translation_repeats_nothing_and_has_its_least_length(command: Command, toy_run: Path) -> None:
    source = text(["basa basa basa"])
    plain = json.loads(command("translate", toy_run, "--json", given=source).out)
    assert plain["text"] == "asab asab asab"
    once = json.loads(command("translate", toy_run, "--json", "--no-repeat", 1, given=source).out)
    assert len({*once["tokens"]}) == len(once["tokens"])
    longer = json.loads(command("translate", toy_run, "--json", "--min-length", 40, given=source).out)
    assert len(longer["tokens"]) > 40 >= len(plain["tokens"])


def test_a_coverage_penalty_costs(command: Command, toy_run: Path) -> None:
    plain, covered = (
        json.loads(command("translate", toy_run, "--json", "--beam", 1, *more, given=text(SOURCES[:1])).out)
        for more in ([], ["--coverage-penalty", "5"])
    )
    assert covered["text"] == plain["text"]
    assert covered["log_probability"] == pytest.approx(plain["log_probability"], abs=1e-4)
    assert covered["score"] < plain["score"]


# What is shown


def test_json_tells_everything_of_each_line(command: Command, toy_run: Path) -> None:
    ran = command("translate", toy_run, "--json", "--n-best", 2, given=text(["basa kodu", "", "kodu"]))
    first, empty, last = (json.loads(line) for line in ran.lines)
    assert (first["line"], first["text"], first["complete"]) == (1, "udok asab", True)
    assert first["tokens"][-1] == "</s>"
    assert "".join(first["tokens"][:-1]).replace("▁", " ").strip() == "udok asab"
    assert first["log_probability"] == pytest.approx(sum(first["token_scores"]), abs=1e-4)
    length = len(first["tokens"])
    assert first["score"] == pytest.approx(first["log_probability"] / ((5 + length) / 6) ** 0.6, abs=1e-4)
    (alternative,) = first["alternatives"]
    assert alternative["score"] <= first["score"]
    assert (empty["line"], empty["text"], empty["score"], empty["tokens"], empty["alternatives"]) == (
        2,
        "",
        0.0,
        [],
        [],
    )
    assert last["line"] == 3


def test_a_streamed_line_is_the_greedy_one(command: Command, toy_run: Path) -> None:
    given = text([*SOURCES, "", "日本 basa"])
    assert (
        command("translate", toy_run, "--stream", given=given).out
        == command("translate", toy_run, "--beam", 1, given=given).out
    )


@pytest.mark.parametrize("more", [["--json"], ["--json", "--sample"], ["--json", "--n-best", "2"], ["--stream"]])
def test_what_the_length_limit_cut_off_is_told_with_its_line(
    command: Command, endless: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.setattr("qkv.translate.translator._TEXTS", 5)
    ran = command("translate", endless, *more, given=text(["", *SOURCES[:2], "", SOURCES[3]]))
    assert ran.code == 0
    told = "the translation does not end by itself; the length limit cut it off"
    if more == ["--stream"]:
        assert ran.err.splitlines() == [f"qkv: warning: line {number}: {told}" for number in (2, 3, 5)]
    else:
        rows = [json.loads(line) for line in ran.lines]
        cut_off = [str(row["line"]) for row in rows if not all(one["complete"] for one in (row, *row["alternatives"]))]
        assert len(cut_off) > 1
        assert ran.err == f"qkv: warning: lines {', '.join(cut_off)}: {told}\n"


def test_many_lines_that_were_cut_off_are_counted(command: Command, endless: Path) -> None:
    ran = command("translate", endless, "--beam", 1, given=text(["basa"] * 13))
    assert "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more: the translation does not end by itself" in ran.err


# Drawing


def test_a_line_alone_is_drawn_as_it_is_in_a_file(
    command: Command, toy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for how in (["--sample", "--temperature", "3"], ["--mbr", "chrf", "--samples", "4", "--temperature", "3"]):
        together = command("translate", toy_run, *how, given=text(SOURCES)).lines
        alone = [command("translate", toy_run, *how, given=text([source])).lines[0] for source in SOURCES]
        assert together == alone
        monkeypatch.setattr("qkv.translate.translator._TEXTS", 2)
        assert command("translate", toy_run, *how, given=text([*reversed(SOURCES)])).lines == together[::-1]
        assert command("translate", toy_run, *how, "--seed", 1, given=text(SOURCES)).lines != together


def test_of_those_drawn_the_one_most_like_the_others_is_taken(command: Command, toy_run: Path) -> None:
    ran = command("translate", toy_run, "--mbr", "bleu", "--samples", 8, "--scores", given=b"basa kodu\n\n")
    assert [line.split("\t")[1] for line in ran.lines] == ["udok asab", ""]
    assert 50 < float(ran.lines[0].split("\t")[0]) <= 100
    for epsilon in ("0.5", "0.02"):
        assert command("translate", toy_run, "--sample", "--epsilon", epsilon, given=b"basa kodu\n").code == 0


# Several models


def test_runs_translate_and_score_together(command: Command, toy_run: Path, tmp_path: Path) -> None:
    again = shutil.copytree(toy_run, tmp_path / "again")
    alone = command("translate", toy_run, given=text(SOURCES)).lines
    assert command("translate", toy_run, again, given=text(SOURCES)).lines == alone
    pairs = text([f"{source}\t{target}" for source, target in toy.held_out()[:3]])
    (one, other) = (command("score", *runs, given=pairs).lines for runs in ([toy_run], [toy_run, again]))
    assert [float(line.split()[0]) for line in one] == pytest.approx(
        [float(line.split()[0]) for line in other], abs=1e-3
    )


def test_a_second_model_ranks_again(command: Command, toy_run: Path) -> None:
    plain = command("translate", toy_run, "--scores", given=text(SOURCES)).lines
    for more in ([], ["--weight", "0.9"]):
        ran = command("translate", toy_run, "--rerank", toy_run, *more, "--scores", given=text(SOURCES))
        assert [line.split("\t")[1] for line in ran.lines] == [line.split("\t")[1] for line in plain]
        scores = [[float(line.split("\t")[0]) for line in lines] for lines in (ran.lines, plain)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-3)
    backward = command("translate", toy_run, "--rerank", toy_run, "--backward", "--n-best", 2, given=text(SOURCES))
    assert (backward.code, len(backward.lines)) == (0, 2 * len(SOURCES))


# Scoring


def test_pairs_are_scored_a_line_each(command: Command, toy_run: Path) -> None:
    pairs = toy.held_out()[:4]
    ran = command("score", toy_run, "--tokens", given=text([f"{one}\t{other}" for one, other in pairs]))
    assert (ran.code, ran.err) == (0, "")
    expected = Translator.load(toy_run).score([one for one, _ in pairs], [other for _, other in pairs])
    for line, one in zip(ran.lines, expected, strict=True):
        score, log_probability, tokens = line.split("\t")
        assert float(score) == pytest.approx(one.score, abs=1e-3)
        assert float(log_probability) == pytest.approx(one.log_probability, abs=1e-3)
        words = tokens.split(" ")
        assert tuple(words[::2]) == one.tokens
        assert [float(word) for word in words[1::2]] == pytest.approx(one.token_scores, abs=1e-3)


@pytest.mark.parametrize("at_once", [1, 2000])
def test_lines_that_are_no_pairs_are_told_and_the_others_keep_their_place(
    command: Command, toy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("qkv.commands.pairs.LINES_AT_ONCE", at_once)
    given = b"basa\tasab\nno tab\n \tasab\n\t\nkodu\t\n"
    ran = command("score", toy_run, given=given)
    assert (ran.code, len(ran.lines)) == (3, 5)
    assert [bool(line) for line in ran.lines] == [True, False, False, True, True]
    assert ran.err.splitlines() == [
        "qkv: warning: standard input, line 2: no tab between a source and its translation; it is not scored",
        "qkv: warning: standard input, line 3: a translation without a source; it is not scored",
        "qkv: error: 2 of 5 lines are not scored; all others are",
    ]
    output = tmp_path / "scores"
    told = command("score", toy_run, "--json", "--output", output, given=given)
    rows: list[dict[str, Any]] = [json.loads(line) for line in output.read_text().splitlines()]
    assert (told.code, [row["line"] for row in rows]) == (3, [1, 2, 3, 4, 5])
    assert rows[1] == {"line": 2, "error": "no tab between a source and its translation"}
    assert (rows[0]["text"], rows[3]["score"], rows[4]["tokens"]) == ("asab", 0.0, ["</s>"])


def test_lines_before_a_broken_one_are_scored(command: Command, toy_run: Path) -> None:
    ran = command("score", toy_run, given=b"basa\tasab\n\xff\n")
    assert (ran.code, len(ran.lines)) == (3, 1)
    assert ran.err.endswith("line 2: not UTF-8 at byte 1; the 1 lines before it are scored\n")


# What cannot be


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--top-k", "3", "--seed", "0"], "--top-k, --seed: of use only with --sample or --mbr; add --sample or --mbr"),
        (["--samples", "9", "--sample"], "--samples: of use only with --mbr; add --mbr"),
        (["--weight", "0"], "--weight: of use only with --rerank; add --rerank"),
        (["--stream", "--n-best", "2", "--json"], "--stream does not go with --n-best and --json; leave one out"),
        (["--stream", "--beam", "4"], "--stream does not go with --beam"),
        (["--mbr", "chrf", "--sample"], "--mbr does not go with --sample"),
        (["--mbr", "chrf", "--samples", "1"], "draw from 2 to 1024"),
        (["--mbr", "ter"], "argument --mbr: invalid choice: 'ter'"),
        (["--prefix", "a", "--prefixes", "b"], "--prefix does not go with --prefixes"),
        (["--sample", "--beam", "4"], "--sample does not go with --beam"),
        (["--sample", "--coverage-penalty", "1"], "--sample does not go with --coverage-penalty"),
        (["--mbr", "chrf", "--length-penalty", "3"], "--mbr does not go with --length-penalty"),
        (["--prefixes", "nowhere"], "no such file: nowhere"),
        (["--rerank", "nowhere"], "no such run directory: nowhere"),
        (["--n-best", "0"], "--n-best is 0; it must be at least 1"),
        (["--n-best", "9"], "the 9 best need a beam of at least 9, not 4"),
        (["--no-repeat", "-1"], "no_repeats_of is -1; it must be 0 or more"),
        (["--min-length", "-1"], "least_tokens is -1; it must be 0 or more"),
        (["--coverage-penalty", "nan"], "the coverage penalty is nan; it must be from 0 to 100"),
        (["--sample", "--epsilon", "1"], "epsilon is 1.0; it must be above 0 and below 1"),
        (["--min-length", "5000"], "line 2: no translation has all that was asked for"),
    ],
)
def test_what_cannot_be_is_told(command: Command, toy_run: Path, tmp_path: Path, options: list[str], told: str) -> None:
    (tmp_path / "out").write_text("of value\n")
    ran = command("translate", toy_run, *options, "--output", tmp_path / "out", given=b"\nbasa\n")
    assert (ran.code, ran.out, (tmp_path / "out").read_text()) == (2, b"", "of value\n")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_a_third_column_is_no_pair(toy_run: Path, command: toy.Command) -> None:
    ran = command("score", toy_run, given=b"basa\tasab\nbasa\tasab\tkodu\n")
    assert (ran.code, len(ran.lines), ran.lines[1]) == (3, 2, "")
    assert "line 2: more than a source and its translation, with one tab between them; it is not scored" in ran.err


def test_a_line_of_invisible_characters_is_an_empty_one(toy_run: Path, command: toy.Command) -> None:
    ran = command("translate", toy_run, given="\u200b\nbasa\n \u2060\u00ad\n".encode())
    assert (ran.code, ran.lines) == (0, ["", "asab", ""])


def test_a_line_is_translated_sentence_by_sentence(command: Command, toy_run: Path) -> None:
    first, second = "basa kodu.", "naso omul basa."
    alone = command("translate", toy_run, given=f"{first}\n{second}\n".encode()).out.decode().split("\n")
    together = command("translate", toy_run, given=f"{first} {second}\n\n- {first}\n".encode()).out.decode()
    assert together == f"{alone[0]} {alone[1]}\n\n- {alone[0]}\n"
    whole = command("translate", toy_run, "--whole-lines", given=f"{first} {second}\n".encode()).out.decode()
    (expected,) = Translator.load(toy_run, device="cpu").translate([f"{first} {second}"])
    assert whole == f"{expected.text}\n" != f"{alone[0]} {alone[1]}\n"


@pytest.mark.parametrize("options", [["--scores"], ["--json"], ["--n-best", "2"], ["--prefix", "asab"]])
def test_what_is_told_of_sentences_takes_a_line_for_one(command: Command, toy_run: Path, options: list[str]) -> None:
    line = b"basa kodu. naso omul basa.\n"
    whole = command("translate", toy_run, *options, "--whole-lines", given=line)
    assert (whole.code, command("translate", toy_run, *options, given=line).out) == (0, whole.out)


def test_addresses_and_numbers_stay_as_they_are_unless_nothing_is_kept(command: Command, toy_run: Path) -> None:
    line = b"basa {kodu} https://naso.example/omul.\n"
    assert command("translate", toy_run, given=line).out.decode().split().count("{kodu}") == 1
    assert b"https://naso.example/omul" in command("translate", toy_run, given=line).out
    free = command("translate", toy_run, "--keep", "none", given=line).out
    assert free == command("translate", toy_run, "--whole-lines", given=line).out
    assert b"{kodu}" not in free


def test_text_without_words_is_copied(command: Command, toy_run: Path) -> None:
    lines = "2:1\n!!!\n€ 5,00\n\N{GRINNING FACE}\n\u200b\n"
    assert command("translate", toy_run, given=lines.encode()).out.decode() == lines.replace("\u200b", "")
