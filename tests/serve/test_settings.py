"""Flags, environment and file: one table, and who counts more."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from qkv.errors import ConfigError
from qkv.serve.settings import Settings, read_settings
from tests.serve.served import serving
from tests.toy import Command


def test_flags_count_more_than_the_environment_and_that_more_than_the_file(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('port = 1\nhost = "::1"\nbeam = 2\ndeadline = 5\nmetrics = false\n')
    found = read_settings(
        {"port": 3, "host": None}, file, {"QKV_SERVE_PORT": "2", "QKV_SERVE_HOST": "0.0.0.0", "X": "y"}
    )
    assert (found.port, found.host, found.beam, found.deadline, found.metrics) == (3, "0.0.0.0", 2, 5.0, False)
    assert read_settings({}, None, {}) == Settings()


def test_languages_are_called_what_the_flags_are_called(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('from = "en"\nto = "de"\n')
    assert read_settings({}, file, {}) == Settings(source="en", target="de")
    assert read_settings({}, file, {"QKV_SERVE_TO": "fr"}) == Settings(source="en", target="fr")
    file.write_text('source = "en"\ntarget = "de"\n')
    assert read_settings({}, file, {}) == Settings(source="en", target="de")


@pytest.mark.parametrize(
    ("environment", "text", "message"),
    [
        ({"QKV_SERVE_PROT": "1"}, "", "did you mean port"),
        ({"QKV_SERVE_PORT": "x"}, "", "QKV_SERVE_PORT is 'x'; it must be a whole number"),
        ({"QKV_SERVE_METRICS": "maybe"}, "", "true or false"),
        ({}, 'port = "80"', "it must be a whole number"),
        ({}, "port = 70000", "from 0 to 65535"),
        ({}, "deadline = 0", "more than 0"),
        ({}, "deadline = nan", "a number of seconds"),
        ({"QKV_SERVE_IDLE_TIMEOUT": "inf"}, "", "a number of seconds"),
        ({}, "port =", "is not TOML"),
        ({}, 'log = "loud"', "one of debug"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, environment: dict[str, str], text: str, message: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_settings({}, file, environment)


def test_every_setting_is_a_flag_with_help(command: Command) -> None:
    told = command("serve", "--help").out.decode()
    renamed = {"source": "from", "target": "to"}
    for one in dataclasses.fields(Settings):
        assert f"--{renamed.get(one.name, one.name.replace('_', '-'))} " in told
    assert "qkv serve --model model/ --from en --to fr" in told


def test_mistakes_are_told_in_a_line(command: Command, tmp_path: Path, exported: Path) -> None:
    for arguments, code, words in (
        (["--port", "many"], 2, "invalid port value"),
        (["--config", tmp_path / "none.toml"], 2, "there is no file"),
        (["--port", "0", "--model", tmp_path / "empty"], 2, str(tmp_path / "empty")),
        (["--port", "0", "--model", tmp_path], 2, str(tmp_path)),
        (["--port", "0", "--model", exported], 2, "add --from and --to"),
        (["--new-key", "a"], 2, "--keys"),
    ):
        ran = command("serve", *arguments)
        assert (ran.code, ran.err.count("qkv: error")) == (code, 1), ran.err
        assert words in ran.err


def test_a_port_that_is_taken_is_told(command: Command, exported: Path) -> None:
    with serving(exported) as served:
        ran = command("serve", "--model", exported, "--from", "en", "--to", "fr", "--port", served.port)
        assert (ran.code, "choose another --host or --port" in ran.err) == (2, True)


def test_serving_an_exported_model_brings_no_torch(exported: Path) -> None:
    with serving(exported) as served:
        assert served.translate("basa koti").status == 200
        for process in (served.process.pid, served.worker):
            assert "libtorch" not in Path(f"/proc/{process}/maps").read_text()
    code = "import sys, qkv.serve.server, qkv.serve.worker; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
