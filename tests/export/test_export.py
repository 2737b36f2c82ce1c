"""From a run to a model that translates without torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnxruntime import InferenceSession

from qkv.engines.shortlist import Shortlist
from qkv.errors import CheckpointError, ConfigError, TextError
from qkv.export import export
from qkv.manifest import MANIFEST
from qkv.training import train_prepared
from qkv.translate import Translator
from tests import toy
from tests.toy import Command
from tests.vouching import vouched_for

SOURCES = [source for source, _ in toy.held_out()[:40]]


@pytest.fixture(scope="module")
def model(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy run, exported as it is by default."""
    output = tmp_path_factory.mktemp("exported") / "model"
    export(toy_run, output, precision="int8")
    return output


@pytest.fixture
def changed(model: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(model, tmp_path / "changed"))


def test_in_32_bits_it_translates_as_the_run_does(toy_run: Path, tmp_path: Path) -> None:
    export(toy_run, tmp_path / "model", precision="float32", shortlist=False)
    theirs, ours = Translator.load(toy_run, device="cpu"), Translator.load(tmp_path / "model")
    for beam in (1, 4):
        expected, found = (one.translate(SOURCES, beam=beam) for one in (theirs, ours))
        assert [one.text for one in found] == [one.text for one in expected]
        np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], atol=1e-4)


def test_in_8_bits_with_a_shortlist_it_translates_as_well(model: Path) -> None:
    found = Translator.load(model).translate(SOURCES)
    right = [one.text == source[::-1] for one, source in zip(found, SOURCES, strict=True)]
    assert sum(right) >= 0.9 * len(right)


def test_where_torch_cannot_be_imported_it_translates(model: Path) -> None:
    code = f"""
import sys
sys.modules["torch"] = sys.modules["safetensors"] = None  # whoever imports them now gets an ImportError
import qkv
from qkv.cli import main
print(qkv.Translator.load({str(model)!r}).translate(["basa kodu"])[0].text)
sys.exit(main(["translate", {str(model)!r}]))
"""
    ran = subprocess.run([sys.executable, "-c", code], input="basa kodu\n", capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "udok asab\nudok asab\n", "")


def test_the_command_exports_what_the_other_commands_take(command: Command, toy_run: Path, tmp_path: Path) -> None:
    output = tmp_path / "model"
    ran = command("export", toy_run, "--output", output, "--precision", "float32", "--no-shortlist")
    assert (ran.code, ran.lines) == (0, [str(output)])
    assert not Shortlist.is_in(output)
    assert command("translate", output, given=b"basa kodu\n").lines == ["udok asab"]
    pairs = toy.write_tsv(tmp_path / "test.tsv", toy.held_out()[:5])
    assert "BLEU" in command("evaluate", output, "--test", pairs, "--language", "en").out.decode()


@pytest.mark.parametrize(("options", "are_plain"), [([], False), (["--plain-marks"], True)])
def test_marks_are_plain_where_that_is_asked_for(
    command: Command, toy_run: Path, tmp_path: Path, options: list[str], are_plain: bool
) -> None:
    output = tmp_path / "model"
    assert command("export", toy_run, "--output", output, "--no-shortlist", *options).code == 0
    found = Translator.load(output)
    # An apostrophe that nobody types has to be spelled in three bytes.
    assert (found.measure("basa’s") == found.measure("basa's")) == are_plain
    assert (found.typeset is not found) == are_plain


def test_an_export_takes_the_place_of_another_and_of_nothing_else(toy_run: Path, tmp_path: Path) -> None:
    export(toy_run, tmp_path / "model", precision="int8", shortlist=False)
    before = (tmp_path / "model" / "step.onnx").stat().st_size
    export(toy_run, tmp_path / "model", precision="float32", shortlist=False)
    assert (tmp_path / "model" / "step.onnx").stat().st_size > before
    with pytest.raises(ConfigError, match="exists and is no exported model"):
        export(toy_run, toy_run, precision="int8", shortlist=False)
    with pytest.raises(ConfigError, match="precision is 'int4'; it must be one of float32, int8"):
        export(toy_run, tmp_path / "other", precision="int4")


def test_nobody_is_told_to_remove_a_run(toy_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is no exported model; choose another directory$"):
        export(toy_run, toy_run, precision="int8")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"is no exported model; choose another directory or remove it$"):
        export(toy_run, tmp_path, precision="int8")


def test_a_run_remembers_where_the_data_lies_that_it_was_given(
    toy_data: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(toy_data, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    with toy.one_thread():
        train_prepared(Path("data"), Path("run"), toy.QUICK)
    monkeypatch.chdir(tmp_path / "run")
    ran = command("export", ".", "--output", tmp_path / "model")
    assert ran.code == 0, ran.err
    assert Shortlist.is_in(tmp_path / "model")
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    ran = command("export", ".", "--output", tmp_path / "model")
    assert (ran.code, f"which is not at {tmp_path / 'data'}; name it with --data" in ran.err) == (2, True)
    (tmp_path / "run" / "data.path").write_bytes(b"\xff")
    ran = command("export", ".", "--output", tmp_path / "model")
    assert (ran.code, "name it with --data" in ran.err) == (2, True)


def test_data_that_a_shortlist_cannot_be_learned_from_is_told(toy_run: Path, toy_data: Path, tmp_path: Path) -> None:
    bare = tmp_path / "run"
    shutil.copytree(toy_run, bare, ignore=shutil.ignore_patterns("data", "checkpoints"))
    with pytest.raises(ConfigError, match="name it with --data, or give --no-shortlist"):
        export(bare, tmp_path / "model", precision="int8")
    with pytest.raises(TextError, match="was prepared with another vocabulary"):
        export(bare, tmp_path / "model", data=toy_data, precision="int8")
    export(bare, tmp_path / "model", data=toy_run / "data", precision="int8")
    assert Shortlist.is_in(tmp_path / "model")


@pytest.mark.parametrize("name", ["step.onnx", "vectors.npy", "tokenizer.model", "config.json", MANIFEST])
def test_a_changed_byte_is_told(changed: Path, name: str) -> None:
    content = bytearray((changed / name).read_bytes())
    content[len(content) // 2] ^= 1
    (changed / name).write_bytes(content)
    with pytest.raises(CheckpointError, match="is damaged"):
        Translator.load(changed)


@pytest.mark.parametrize("name", ["scale.npy", "step.onnx", MANIFEST])
def test_a_file_that_is_missing_is_told(changed: Path, name: str) -> None:
    """And not taken for a run, which would need torch."""
    (changed / name).unlink()
    with pytest.raises(CheckpointError, match="its manifest" if name == MANIFEST else f"{name} is damaged"):
        Translator.load(changed)


@pytest.mark.parametrize("name", ["step.onnx", "vectors.npy", "scale.npy", "shortlist.likely.npy"])
def test_files_that_are_no_models_are_told_though_the_manifest_vouches_for_them(changed: Path, name: str) -> None:
    (changed / name).write_bytes(b"\x80\x04nonsense")
    vouched_for(changed)
    with pytest.raises(CheckpointError, match="is damaged"):
        Translator.load(changed)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("step.onnx", "encoder.onnx"),
        ("encoder.onnx", "step.onnx"),
        ("shortlist.onnx", "output.onnx"),
        ("shortlist.onnx", "sum.onnx"),
        ("sum.onnx", "step.onnx"),
        ("tokenizer.model", "sum.onnx"),
        ("config.json", "alignment.json"),
        ("alignment.json", "config.json"),
    ],
)
def test_a_file_in_the_place_of_another_is_told_though_the_manifest_vouches_for_it(
    changed: Path, command: Command, name: str, other: str
) -> None:
    for place in changed.glob("shortlist*.onnx") if name == "shortlist.onnx" else [changed / name]:
        shutil.copy(changed / other, place)
    vouched_for(changed)
    ran = command("translate", changed, given=b"basa kodu\n")
    assert (ran.code, ran.out) == (3, b"")
    assert ran.err.startswith("qkv: ")
    assert ran.err.count("\n") == 1


def test_a_graph_that_lies_about_its_shapes_is_told_when_it_is_used(changed: Path, command: Command) -> None:
    """It promises a head more than it computes with."""
    graph = (changed / "step.onnx").read_bytes()
    shapes = {one.name: one.shape for one in InferenceSession(changed / "step.onnx").get_inputs()}
    heads = shapes["key_NHSE.0"][1]
    before, after = (b"\x08" + bytes([count]) for count in (heads, heads + 1))
    for file in ("step.onnx", "encoder.onnx"):
        graph = (changed / file).read_bytes()
        (changed / file).write_bytes(graph.replace(b"\n\x02" + before, b"\n\x02" + after))
        assert (changed / file).read_bytes() != graph
    vouched_for(changed)
    ran = command("translate", changed, given=b"basa kodu\n")
    assert (ran.code, ran.out) == (3, b"")
    assert "is damaged" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("text", ['{"heads": [[Infinity, 0]], "when_read": false, "quality": 1}', "[]", "{}"])
def test_heads_of_the_wrong_kind_are_told(changed: Path, text: str) -> None:
    (changed / "alignment.json").write_text(text)
    vouched_for(changed)
    with pytest.raises(CheckpointError, match=r"alignment\.json is damaged"):
        Translator.load(changed)


def test_arrays_that_do_not_fit_are_told(changed: Path) -> None:
    vectors = np.load(changed / "vectors.npy")
    np.save(changed / "vectors.npy", vectors[:-1])
    vouched_for(changed)
    with pytest.raises(CheckpointError, match="is damaged"):
        Translator.load(changed)


def test_a_shortlist_of_words_that_do_not_exist_is_told(changed: Path) -> None:
    likely = np.load(changed / "shortlist.likely.npy")
    np.save(changed / "shortlist.likely.npy", likely.astype(np.uint32) + 100_000)
    vouched_for(changed)
    with pytest.raises(CheckpointError, match="is damaged"):
        Translator.load(changed)


def test_what_was_pickled_is_not_read(changed: Path) -> None:
    np.save(changed / "scale.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    vouched_for(changed)
    with pytest.raises(CheckpointError, match="is damaged"):
        Translator.load(changed)
