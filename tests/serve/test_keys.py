"""Who may ask, how much, and what nobody gets to see."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from qkv.errors import ConfigError
from qkv.serve.keys import Account, Keys, new_key
from tests.serve.served import serving
from tests.toy import Command


def test_a_key_is_printed_once_and_kept_as_a_hash(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    first, second = (command("serve", "--keys", file, "--new-key", name).lines[0] for name in ("alice", "bob"))
    kept = file.read_text()
    assert first not in kept and second not in kept
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    keys = Keys.load(file)
    assert [keys.account(key).name for key in (first, second)] == ["alice", "bob"]
    assert command("serve", "--keys", file, "--new-key", "alice").code == 2


@pytest.mark.parametrize("text", ["[a]\n", '[a]\nsha256 = "xyz"\n', '[a]\nsha256 = "00"\nlimit = 3\n', "a = 3\n", "["])
def test_a_file_of_keys_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(ConfigError):
        Keys.load(file)


def test_each_protocol_takes_keys_in_its_own_way(exported: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    key, small = new_key(file, "alice"), new_key(file, "small")
    file.write_text(file.read_text() + "characters_a_month = 12\nrequests_a_minute = 8\n")
    libre, deepl = {"q": "basa koti", "source": "en", "target": "fr"}, {"text": ["basa koti"], "target_lang": "FR"}
    tensor = {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["basa koti"]}]}
    google, azure = {"q": "basa koti", "target": "fr"}, [{"text": "basa koti"}]
    with serving(exported, "--keys", str(file), "--log", "debug") as served:

        def status(path: str, body: object, **headers: str) -> int:
            return served.post(path, body, headers=headers).status

        assert status("/translate", libre) == 400
        assert served.post("/translate", {**libre, "api_key": "no"}).json == {"error": "Invalid API key"}
        assert status("/translate", {**libre, "api_key": "no"}) == 403
        assert status("/translate", {**libre, "api_key": key}) == status("/translate", {**libre, "apiKey": key}) == 200
        assert (
            status("/v2/translate", deepl) == status("/v2/translate", deepl, Authorization="DeepL-Auth-Key no") == 403
        )
        assert status("/v2/translate", deepl, Authorization=f"DeepL-Auth-Key {key}") == 200
        assert status("/language/translate/v2", google) == 403
        assert status(f"/language/translate/v2?key={key}", google) == 200
        assert status("/translate?api-version=3.0&to=fr", azure) == 401
        assert status("/translate?api-version=3.0&to=fr", azure, **{"Ocp-Apim-Subscription-Key": key}) == 200
        assert status("/v2/models/en-fr/infer", tensor) == 401
        assert status("/v2/models/en-fr/infer", tensor, Authorization=f"Bearer {key}") == 200
        assert served.get("/health").status == served.get("/languages").status == 200
        assert served.get("/frontend/settings").json["keyRequired"] is True

        own = {"Authorization": f"DeepL-Auth-Key {small}"}
        assert status("/v2/translate", deepl, **own) == 200
        assert served.get("/v2/usage", headers=own).json == {"character_count": 9, "character_limit": 12}
        assert status("/v2/translate", deepl, **own) == 456
        assert status("/translate", {**libre, "api_key": small}) == 403
        # What was refused costs nothing.
        assert status("/stream", {"q": "a", "target": "zz"}, Authorization=f"Bearer {small}") == 400
        assert served.get("/v2/usage", headers=own).json["character_count"] == 9
        glossary = {"name": "g", "source_lang": "en", "target_lang": "fr", "entries": "a\tb"}
        number = served.post("/v2/glossaries", glossary, headers={"Authorization": f"DeepL-Auth-Key {key}"}).json
        path = f"/v2/glossaries/{number['glossary_id']}"
        assert served.get(path, headers=own).status == 404
        assert served.get(path, headers=own).status == 404
        assert served.get(path, headers=own).status == 429

        figures = served.get("/metrics").body.decode()
        served.stop()
        told = figures + served.log.read_text().replace(served.url, "")
        for secret in (key, small, "alice", "127.0.0.1", "basa"):
            assert secret not in told


def test_browsers_are_told_to_be_careful(exported: Path) -> None:
    with serving(exported) as served:
        got = served.get("/health", headers={"Origin": "https://elsewhere.example"})
        assert "access-control-allow-origin" not in got.headers
        assert got.headers["content-security-policy"].startswith("default-src 'none'")
        assert got.headers["x-content-type-options"] == "nosniff"
        assert "server" not in got.headers
    with serving(exported, "--cors", "https://friend.example") as served:
        for origin, allowed in (("https://friend.example", True), ("https://elsewhere.example", False)):
            got = served.get("/health", headers={"Origin": origin})
            assert ("access-control-allow-origin" in got.headers) is allowed
            assert "access-control-allow-credentials" not in got.headers


def test_glossaries_and_usage_outlive_the_server(exported: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    said = {"name": "mine", "source_lang": "EN", "target_lang": "FR", "entries": "koti\tkitty"}
    with serving(exported, "--state", str(state)) as served:
        kept, gone = [served.post("/v2/glossaries", said).json["glossary_id"] for _ in range(2)]
        assert served.ask("DELETE", f"/v2/glossaries/{gone}").status == 204
        assert served.post("/v2/translate", {"text": ["basa koti"], "target_lang": "FR"}).status == 200
        assert served.stop() == 143
    (state / "glossaries" / "broken.json").write_text("{")
    (state / "glossaries" / "other.json").write_text('{"number": 3}')
    with serving(exported, "--state", str(state)) as served:
        assert [one["glossary_id"] for one in served.get("/v2/glossaries").json["glossaries"]] == [kept]
        assert served.get(f"/v2/glossaries/{kept}/entries").body == b"koti\tkitty\n"
        assert served.get("/v2/usage").json["character_count"] == len("basa koti")
        assert "broken.json cannot be read, and is left out" in served.log.read_text()
        assert "a glossary that was kept cannot be read" in served.log.read_text()


def test_a_month_that_is_over_counts_no_more() -> None:
    keys = Keys()
    keys.remember({"anybody": {"month": "2001-01", "characters": 7}, "somebody": {"month": "", "characters": 1}})
    assert keys.usage() == {"anybody": {"month": "2001-01", "characters": 7}}
    assert keys.anybody.used == 0
    others: list[object] = [None, [], {"anybody": 3}, {"anybody": {"month": 1, "characters": "many"}}]
    for nonsense in others:
        keys.remember(nonsense)
        assert keys.anybody.used == 0


def test_what_was_counted_in_a_month_that_is_over_is_not_given_back_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    months = iter(["2026-10", "2026-11", "2026-11"])
    monkeypatch.setattr("qkv.serve.keys.time.strftime", lambda *_: next(months))
    account = Account("alice", characters_a_month=100)
    account.use(80)
    october = account.month
    account.use(10)
    account.give_back(80, october)
    assert account.used == 10
    account.give_back(4, account.month)
    assert account.characters == 6


def test_a_new_key_leaves_what_people_wrote_into_the_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text("# keys of the office; ask before changing\n")
    for name in ("alice", "bob"):
        new_key(file, name)
    written = file.read_text()
    assert written.startswith("# keys of the office; ask before changing\n\n[alice]\n")
    assert "[bob]" in written
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    new_key(empty, "carol")
    assert empty.read_text().startswith("[carol]\n")
