"""Clients as people install them, against the real server: those of PyPI, and of npm where node is.

They are of no use to anything else here, and some are heavy; whoever has none of them sees which are missing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.routing import Route

from qkv.serve.application import application
from qkv.serve.desk import Desk
from qkv.serve.documents import Documents
from qkv.serve.engine import Engine
from qkv.serve.keys import Keys
from qkv.serve.languages import Direction
from qkv.serve.openapi import document
from qkv.serve.settings import Settings
from qkv.serve.state import State
from tests.serve.endure import fuzzed
from tests.serve.served import Served

SOURCE, TARGET = "basa koti", "itok asab"


def client(module: str, package: str) -> pytest.MarkDecorator:
    """A mark for a test that needs a package."""
    try:
        there = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        there = False
    return pytest.mark.skipif(not there, reason=f"no {package}: pip install {package}")


@pytest.fixture(autouse=True)
def _their_warnings_are_theirs(recwarn: pytest.WarningsRecorder) -> None:
    """Other people's packages may warn of what is theirs."""


@client("deepl", "deepl")
def test_deepl(served: Served) -> None:
    import deepl

    translator = deepl.DeepLClient("key", server_url=served.url)
    found = translator.translate_text([SOURCE, SOURCE], source_lang="EN", target_lang="FR")
    assert [one.text for one in found] == [TARGET, TARGET]
    assert [one.code for one in translator.get_target_languages()] == ["FR"]
    glossary = translator.create_glossary("mine", "EN", "FR", {"koti": "kitty"})
    assert translator.get_glossary_entries(glossary) == {"koti": "kitty"}
    held = translator.translate_text(SOURCE, source_lang="EN", target_lang="FR", glossary=glossary)
    assert "kitty" in held.text.lower()
    translator.delete_glossary(glossary)
    assert not translator.get_usage().any_limit_reached
    with pytest.raises(deepl.DeepLException, match=r"target_lang.*not supported"):
        translator.translate_text(SOURCE, target_lang="XX")


@client("deepl", "deepl")
def test_the_command_line_of_deepl(served: Served) -> None:
    environment = {**os.environ, "DEEPL_SERVER_URL": served.url, "DEEPL_AUTH_KEY": "key"}
    command = [sys.executable, "-m", "deepl", "text", "--from", "EN", "--to", "FR", SOURCE]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == (f"{TARGET}\n", 0), ran.stderr


@client("libretranslatepy", "libretranslatepy")
def test_libretranslatepy(served: Served) -> None:
    from libretranslatepy import LibreTranslateAPI

    api = LibreTranslateAPI(f"{served.url}/")
    assert api.translate(SOURCE, "en", "fr") == TARGET
    assert api.detect("Where are all the children?")[0]["language"] == "en"


@client("translate", "translate")
def test_translate(served: Served) -> None:
    from translate import Translator

    translator = Translator(
        provider="libre", from_lang="en", to_lang="fr", secret_access_key="", base_url=served.url
    )  # fmt: skip
    assert translator.translate(SOURCE) == TARGET


@client("deep_translator", "deep-translator")
def test_deep_translator(served: Served) -> None:
    from deep_translator import LibreTranslator

    translator = LibreTranslator(source="en", target="fr", custom_url=f"{served.url}/", api_key="key")
    assert translator.translate(SOURCE) == TARGET


@client("google.cloud.translate_v2", "google-cloud-translate")
def test_google(served: Served) -> None:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import translate_v2

    translator = translate_v2.Client(
        credentials=AnonymousCredentials(), client_options={"api_endpoint": served.url}
    )  # fmt: skip
    assert translator.translate(SOURCE, source_language="en", target_language="fr")["translatedText"] == TARGET
    assert [one["language"] for one in translator.get_languages()] == ["en", "fr"]
    assert translator.detect_language("Where are all the children?")["language"] == "en"


@client("azure.ai.translation.text", "azure-ai-translation-text")
def test_azure(served: Served) -> None:
    from azure.ai.translation.text import TextTranslationClient
    from azure.core.credentials import AzureKeyCredential

    translator = TextTranslationClient(endpoint=served.url, credential=AzureKeyCredential("key"))
    (found,) = translator.translate(body=[SOURCE], to_language=["fr"], from_language="en")
    assert found.translations[0].text == TARGET
    assert translator.get_supported_languages().translation["fr"].native_name == "français"


@client("tritonclient.http", "tritonclient[http]")
def test_triton(served: Served) -> None:
    import numpy as np
    from tritonclient import http

    server = http.InferenceServerClient(served.url.removeprefix("http://"))
    assert server.is_server_live() and server.is_server_ready() and server.is_model_ready("en-fr")
    tensor = http.InferInput("text", [2], "BYTES")
    tensor.set_data_from_numpy(np.array([SOURCE.encode()] * 2, dtype=np.object_))
    assert [one.decode() for one in server.infer("en-fr", [tensor]).as_numpy("translation")] == [TARGET] * 2


NODE = {
    "deepl-node": """
        const deepl = await import("deepl-node");
        const translator = new deepl.Translator("key", { serverUrl: base });
        show((await translator.translateText(source, "en", "fr")).text);""",
    "translate": """
        const translate = (await import("translate")).default;
        Object.assign(translate, { engine: "libre", url: `${base}/translate`, key: "key" });
        show(await translate(source, { from: "en", to: "fr" }));""",
    "libretranslate-ts": """
        const { libreTranslate } = await import("libretranslate-ts");
        libreTranslate.setApiEndpoint(base);
        show((await libreTranslate.translate(source, "en", "fr")).translatedText);""",
    "@azure-rest/ai-translation-text": """
        const azure = (await import("@azure-rest/ai-translation-text")).default;
        const client = azure(base, { key: "key", region: "here" }, { allowInsecureConnection: true });
        const inputs = [{ text: source, language: "en", targets: [{ language: "fr" }] }];
        show((await client.path("/translate").post({ body: { inputs } })).body.value[0].translations[0].text);""",
}
MODULES = Path(os.environ.get("QKV_NODE_MODULES", "node_modules"))


@pytest.mark.parametrize("package", NODE)
def test_clients_of_npm(served: Served, package: str, tmp_path: Path) -> None:
    if shutil.which("node") is None or not (MODULES / package).is_dir():
        pytest.skip(f"no {package}: npm install {package}, and name its folder in QKV_NODE_MODULES")
    (tmp_path / "node_modules").symlink_to(MODULES.resolve())
    script = tmp_path / "client.mjs"
    told = f'const base = "{served.url}", source = "{SOURCE}", show = console.log;\n'
    script.write_text(told + NODE[package])
    ran = subprocess.run(["node", str(script)], capture_output=True, text=True, timeout=60)
    assert (ran.stdout.strip(), ran.returncode) == (TARGET, 0), ran.stderr


@client("schemathesis", "schemathesis")
def test_the_openapi_document_tells_the_truth_whatever_is_sent(served: Served, tmp_path: Path) -> None:
    ran = fuzzed(served, tmp_path, examples=15)
    assert ran.returncode == 0, ran.stdout


def test_every_address_is_in_the_openapi_document() -> None:
    settings = Settings()
    desk = Desk(Engine(settings), [Direction("en", "fr")], settings)
    routes = application(desk, Documents(desk, 1), Keys(), State(None), settings).routes
    asked = [route for route in routes if isinstance(route, Route) and route.include_in_schema]
    # A model has one version, which may be named.
    there = {route.path for route in asked if "{version}" not in route.path}
    assert there == {*document(settings, desk.languages)["paths"]}


def test_the_marks_know_what_is_missing() -> None:
    assert client("a_module.that_is_nowhere", "nothing").args == (True,)
