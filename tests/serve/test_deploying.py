"""What docs/deploying says is understood by the tools it is for, and names what is there."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from qkv.cli import build_parser
from qkv.serve.settings import Settings, read_settings
from tests.serve.served import Served, eventually, listens, send, serving

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "deploying"


def settings_of(command: list[str]) -> Settings:
    """What a command line means; one that is wrong ends the test."""
    program, *arguments = command
    assert Path(program).name == "qkv"
    options = build_parser().parse_args(arguments)
    return read_settings(vars(options), options.config, {})


def drains_in(settings: Settings) -> float:
    return settings.drain_delay + settings.drain_timeout


def test_the_unit_of_systemd(tmp_path: Path) -> None:
    text = (FOLDER / "qkv.service").read_text()
    said = dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z]\w+=", line))
    settings = settings_of(shlex.split(said["ExecStart"]))
    assert int(said["TimeoutStopSec"]) > drains_in(settings)
    assert settings.state == f"/var/lib/{said['StateDirectory']}"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: the rest of the unit is not checked")
    unit = tmp_path / "qkv.service"
    # It looks whether the program is there.
    unit.write_text(text.replace("/opt/qkv/bin/qkv", sys.executable))
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_container() -> None:
    lines = [line.split(" ", 1) for line in (FOLDER / "Dockerfile").read_text().splitlines()]
    copied = [name for word, rest in lines if word == "COPY" for name in rest.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    kept = (FOLDER / "Dockerfile.dockerignore").read_text()
    assert all(f"!{name}\n" in kept for name in copied)
    said = dict(lines)
    settings = settings_of(json.loads(said["CMD"]))
    assert (settings.host, settings.model) == ("0.0.0.0", "/models")
    assert settings.port == int(said["EXPOSE"])


def test_the_manifests_of_kubernetes(served: Served) -> None:
    yaml = pytest.importorskip("yaml")
    deployment, service = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    template: dict[str, Any] = deployment["spec"]["template"]
    assert (
        deployment["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"] == service["spec"]["selector"]
    )
    (container,) = template["spec"]["containers"]
    settings = settings_of(container["args"])
    assert template["spec"]["terminationGracePeriodSeconds"] > drains_in(settings)
    ports = [settings.port, container["ports"][0]["containerPort"], service["spec"]["ports"][0]["port"]]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        ports.append(container[name]["httpGet"]["port"])
        assert served.get(container[name]["httpGet"]["path"]).status == 200
    assert {*ports} == {settings.port}
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in template["spec"]["volumes"]}


def test_commands_of_the_page_are_understood() -> None:
    text = (ROOT / "docs" / "serving.md").read_text()
    commands = re.findall(r"^qkv serve[^#\n]*", text, re.MULTILINE)
    assert commands
    for command in commands:
        settings_of(shlex.split(command))
    table = text[text.index("## Settings") : text.index("## Stopping")]
    named = {*re.findall(r"`([a-z]+_[a-z_]+)`", table)}
    assert named and named <= {*vars(Settings())}


def test_servers_behind_nginx_are_restarted_one_after_the_other_and_nothing_is_lost(
    exported: Path, tmp_path: Path
) -> None:
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("no nginx: its configuration is not tried")
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serving(exported)) for _ in range(2)]
        proxy = stack.enter_context(proxied(nginx, tmp_path, [one.port for one in servers]))
        # Files are on the server that took them, under the address that was asked for.
        for number in range(4):
            sent = send(proxy, "/translate_file", f"{number}.txt", b"basa koti", source="en", target="fr")
            where = urlsplit(sent.json["translatedFileUrl"])
            assert where.netloc == f"{proxy.host}:{proxy.port}"
            assert proxy.get(where.path).body == b"itok asab"
        over = threading.Event()

        def ask() -> Counter[int]:
            found: Counter[int] = Counter()
            while not over.is_set():
                found[proxy.translate("basa koti").status] += 1
            return found

        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(4))
        asking = [threads.submit(ask) for _ in range(4)]
        try:
            for one in servers:
                assert one.stop() == 143
                stack.enter_context(serving(exported, port=one.port))
        finally:
            over.set()
        found = sum((one.result() for one in asking), Counter())
        assert {*found} == {200}, found


@contextlib.contextmanager
def proxied(nginx: str, folder: Path, ports: list[int]) -> Iterator[Served]:
    """The documented configuration, in front of servers on other ports, on a port of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = (FOLDER / "nginx.conf").read_text().replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    for documented, one in zip(("127.0.0.1:5000", "127.0.0.1:5001"), ports, strict=True):
        text = text.replace(documented, f"127.0.0.1:{one}")
    for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        text = text.replace("http {", f"http {{\n    {kind}_temp_path {folder}/{kind};", 1)
    text = text.replace("http {", f"http {{\n    access_log {folder}/access;", 1)
    (folder / "nginx.conf").write_text(text)
    log = folder / "error"
    said = f"daemon off; pid {folder}/pid; error_log {log};"
    command = [nginx, "-p", str(folder), "-c", "nginx.conf", "-g", said, "-e", str(log)]
    process = subprocess.Popen(command, text=True)
    proxy = Served(process, "127.0.0.1", port, log)
    try:
        assert eventually(lambda: listens(proxy)), log.read_text()
        yield proxy
    finally:
        process.terminate()
        process.wait(30)
