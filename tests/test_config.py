"""Settings: they survive JSON, can be overridden by name, and a wrong one says what would be right."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
import typing
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qkv
from qkv.config import Config, ModelConfig
from qkv.errors import ConfigError
from qkv.recipes import RECIPES, recipe
from qkv.settings import from_json, override_all, settings, to_json

SETTINGS = dict(settings(Config()))
# Named like a setting without being one: where a function makes its tensors, in which numbers it searches, and what it
# draws translations with.
OPTIONS_OF_A_CALL = {"device", "precision", "seed"}


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_json(name: str) -> None:
    config = recipe(name)
    assert from_json(to_json(config)) == config


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_says_in_a_line_what_it_is(name: str) -> None:
    sentence = RECIPES[name].__doc__
    assert sentence and sentence.endswith(".") and "\n" not in sentence


def test_a_recipe_that_does_not_exist_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="no recipe is called 'bigg'; did you mean 'big'"):
        recipe("bigg")
    with pytest.raises(ConfigError, match="`qkv recipes` lists them"):
        recipe("xyzzy")


def kind_of(name: str) -> Any:
    section, _, setting = name.partition(".")
    return typing.get_type_hints(type(getattr(Config(), section)))[setting]


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_set_to_what_it_is(name: str) -> None:
    assert override_all(Config(), {name: str(SETTINGS[name])}) == Config()


NUMBERS = [name for name in SETTINGS if {int, float} & {kind_of(name), *typing.get_args(kind_of(name))}]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_number_is_refused_from_python_too(name: str, value: float) -> None:
    section, _, setting = name.partition(".")
    with pytest.raises(ConfigError, match=rf"^{name} takes a .*number.*, not {value}$"):
        Config().with_changes(**{section: {setting: value}})


def test_a_whole_number_beyond_all_floats_is_refused_where_a_float_is_meant() -> None:
    with pytest.raises(ConfigError, match=r"training\.clip takes a number or none, not 10000"):
        Config().with_changes(training={"clip": 10**400})


@pytest.mark.parametrize("name", [name for name in SETTINGS if typing.get_origin(kind_of(name)) is Literal])
def test_every_choice_can_be_chosen_and_nothing_else(name: str) -> None:
    for choice in typing.get_args(kind_of(name)):
        assert dict(settings(override_all(Config(), {name: choice})))[name] == choice
    with pytest.raises(ConfigError, match=f"{name} takes .*{choice}, not 'xyzzy'"):
        override_all(Config(), {name: "xyzzy"})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("training.steps", "500", 500),
        ("training.steps", "100_000", 100_000),
        ("training.steps", "1e3", 1000),
        ("training.steps", "2.5e5", 250_000),
        ("training.learning_rate", "1e0", 1.0),
        ("model.dropout", "0.25", 0.25),
        ("model.dropout", "0", 0.0),
        ("training.learning_rate", "3e-4", 3e-4),
        ("training.tensorboard", "true", True),
        ("training.tensorboard", "False", False),
        ("training.device", "cuda:1", "cuda:1"),
        ("training.device", "none", "none"),
        ("training.clip", "none", None),
        ("training.clip", "1", 1.0),
        ("training.patience", "None", None),
        ("model.key_width", "16", 16),
        ("model.norm", "rms", "rms"),
        ("model.query_key_norm", "none", "none"),
        ("text.source_language", "de", "de"),
        ("text.source_language", "1", "1"),
        ("text.source_language", "none", None),
    ],
)
def test_an_override_has_the_type_of_its_setting(name: str, text: str, value: object) -> None:
    changed = dict(settings(override_all(Config(), {name: text})))
    assert changed == {**SETTINGS, name: value}
    assert type(changed[name]) is type(value)


@pytest.mark.parametrize("name", [name for name, value in SETTINGS.items() if isinstance(value, float)])
def test_a_whole_number_for_a_float_is_one_however_it_is_given(name: str) -> None:
    section, _, setting = name.partition(".")
    # All but this one may be 0, or are more than 1.
    whole = 1 if name == "training.epsilon" else int(SETTINGS[name])
    for config in (
        override_all(Config(), {name: str(whole)}),
        from_json(json.dumps({section: {setting: whole}})),
        Config().with_changes(**{section: {setting: whole}}),
    ):
        assert dict(settings(config))[name] == whole
        assert type(dict(settings(config))[name]) is float


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("training.steps", "many", "training.steps takes a whole number, not 'many'"),
        ("training.steps", "1.5", "training.steps takes a whole number, not '1.5'"),
        ("training.steps", "1e-1", "training.steps takes a whole number, not '1e-1'"),
        ("training.steps", "1e30", "training.steps takes a whole number, not '1e30'"),
        ("training.steps", "1e999", "training.steps takes a whole number, not '1e999'"),
        ("training.steps", "true", "training.steps takes a whole number, not 'true'"),
        ("training.steps", "none", "training.steps takes a whole number, not 'none'"),
        ("training.steps", "", "training.steps takes a whole number, not ''"),
        ("training.steps", "9" * 5000, "training.steps takes a whole number, not '9"),
        ("model.dropout", "a lot", "model.dropout takes a number, not 'a lot'"),
        ("model.dropout", "true", "model.dropout takes a number, not 'true'"),
        ("training.learning_rate", "nan", "training.learning_rate takes a number, not 'nan'"),
        ("training.learning_rate", "inf", "training.learning_rate takes a number, not 'inf'"),
        ("training.learning_rate", "9" * 400, "training.learning_rate takes a number, not '9"),
        ("training.tensorboard", "1", "training.tensorboard takes true or false, not '1'"),
        ("training.clip", "tight", "training.clip takes a number or none, not 'tight'"),
        ("model.norm", "batch", "model.norm takes layer, rms, not 'batch'"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(name: str, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override_all(Config(), {name: text})
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("training.step", "training.steps"),
        ("steps", "training.steps"),
        ("train.steps", "training.steps"),
        ("model.vocabulary", "text.vocabulary"),
        ("dropuot", "model.dropout"),
        ("warmup", "training.warmup_steps"),
        ("Training.Steps", "training.steps"),
    ],
)
def test_a_wrong_name_gets_a_suggestion(wrong: str, right: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override_all(Config(), {wrong: "1"})
    assert str(caught.value) == f"no setting is called {wrong!r}; did you mean {right!r}?"


@pytest.mark.parametrize("name", ["xyzzy", "", "model.", "."])
def test_a_name_like_no_other_is_told_where_to_look(name: str) -> None:
    with pytest.raises(ConfigError, match=r"no setting is called '.*'; "):
        override_all(Config(), {name: "1"})


@pytest.mark.parametrize("name", [name for name in SETTINGS if name[-1].isalpha()])
def test_a_name_that_misses_its_last_letter_is_understood(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override_all(Config(), {name[:-1]: "1"})
    assert str(caught.value).endswith(f"did you mean {name!r}?")


def test_settings_that_make_sense_only_together_can_be_set_together() -> None:
    together = {
        "model.heads": "3",
        "model.width": "96",
        "data.row_width": "50000",
        "training.tokens_per_batch": "60000",
    }
    config = override_all(Config(), together)
    assert {name: str(dict(settings(config))[name]) for name in together} == together


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"model.width": "100"}, "model.width 100 does not divide into 8 heads; try 96"),
        ({"model.width": "10", "model.heads": "3"}, "model.width 10 does not divide into 3 heads; try 6"),
        ({"model.width": "2"}, "model.width 2 does not divide into 8 heads; try 8"),
        ({"model.width": "9", "model.heads": "3"}, "model.width 9 is odd"),
        ({"model.heads": "0"}, "model.heads is 0; it must be at least 1"),
        ({"model.key_width": "0"}, "model.key_width is 0; it must be at least 1"),
        ({"model.dropout": "1"}, "model.dropout is 1; it must be at least 0 and below 1"),
        ({"model.dropout": "-0.1"}, "model.dropout is -0.1; it must be at least 0 and below 1"),
        ({"model.positions": "rotary", "model.key_width": "15"}, "rotary positions turn pairs"),
        (
            {"model.positions": "learned", "model.longest": "64"},
            "data.row_width 128 is more than the 64 learned positions; set model.longest to at least 128",
        ),
        (
            {"model.positions": "learned", "model.longest": "200", "training.row_width": "256"},
            "training.row_width 256 is more than the 200 learned positions; set model.longest to at least 256",
        ),
        ({"text.segmentations": "2"}, "text.segmentations samples subwords, which only text.algorithm=unigram can do"),
        ({"text.sampling_alpha": "-1"}, "text.sampling_alpha is -1; it must be at least 0"),
        ({"data.row_width": "3"}, "data.row_width is 3; it must be at least 4"),
        ({"data.max_ratio": "0.5"}, "data.max_ratio is 0.5"),
        ({"training.steps": "0"}, "training.steps is 0; it must be at least 1"),
        ({"training.tokens_per_batch": "100"}, "training.tokens_per_batch 100 is less than a row of 128 positions"),
        ({"training.accumulate": "1000"}, "training.tokens_per_batch 25000 is less than a row of 128 positions"),
        ({"training.learning_rate": "0"}, "training.learning_rate is 0; it must be above 0"),
        ({"training.rest_rate": "0"}, "training.rest_rate is 0; it must be above 0"),
        ({"training.kernels": "quick"}, "training.kernels takes auto, fast, plain, not 'quick'"),
        ({"training.optimizer": "sgd"}, "training.optimizer takes adam, adamw, muon, not 'sgd'"),
        ({"training.clip": "0"}, "training.clip is 0; give a norm above 0, or none"),
        ({"training.patience": "0"}, "training.patience is 0; it must be at least 1"),
        ({"training.beta2": "1"}, "training.beta2 is 1; it must be at least 0 and below 1"),
        ({"training.epsilon": "-1e-9"}, "training.epsilon is -1e-09; it must be above 0"),
        ({"training.epsilon": "0"}, "training.epsilon is 0; it must be above 0"),
        ({"training.weight_decay": "-0.1"}, "training.weight_decay is -0.1; it must be at least 0"),
        ({"training.seed": "-1"}, "training.seed is -1; it must be at least 0 and below 4294967296"),
        ({"text.vocabulary": "1000000000"}, "text.vocabulary is 1000000000; it must be at most 1000000"),
        ({"model.decoder_layers": "1000000000"}, "model.decoder_layers is 1000000000; it must be at most 1000"),
        ({"model.hidden": "1000000000000"}, "model.hidden is 1000000000000; it must be at most 1048576"),
        ({"data.row_width": "1000000000"}, "data.row_width is 1000000000; it must be at most 65536"),
        ({"search.beam": "1000000000"}, "search.beam is 1000000000; it must be at most 1000"),
        ({"search.beam": "0"}, "search.beam is 0; it must be at least 1"),
        ({"search.extra_length": "-1"}, "search.extra_length is -1; it must be at least 0"),
        ({"search.extra_length": "100000000"}, "search.extra_length is 100000000; it must be at most 10000"),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_what_could(changes: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override_all(Config(), changes)
    assert str(caught.value).startswith(complaint)


@given(width=st.integers(1, 3000), heads=st.integers(1, 64))
def test_the_width_that_is_suggested_works(width: int, heads: int) -> None:
    try:
        ModelConfig(width=width, heads=heads)
    except ConfigError as error:
        before, found, nearest = str(error).partition("; try ")
        assert ModelConfig(width=int(nearest), heads=heads) if found else "is odd" in before


@given(
    steps=st.integers(1, 10**9),
    dropout=st.floats(0, 1, exclude_max=True),
    clip=st.none() | st.floats(1e-300, allow_infinity=False),
    language=st.none() | st.text(),
    tensorboard=st.booleans(),
)
def test_any_values_survive_json(
    steps: int, dropout: float, clip: float | None, language: str | None, tensorboard: bool
) -> None:
    config = Config().with_changes(
        model={"dropout": dropout},
        text={"target_language": language},
        training={"steps": steps, "clip": clip, "tensorboard": tensorboard},
    )
    assert from_json(to_json(config)) == config


@given(st.sampled_from(sorted(SETTINGS)), st.text())
def test_any_text_is_a_value_or_a_mistake_that_is_explained(name: str, text: str) -> None:
    try:
        config = override_all(Config(), {name: text})
    except ConfigError:
        return
    assert from_json(to_json(config)) == config


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists) | st.text())
def test_any_json_is_a_config_or_a_mistake_that_is_explained(value: Any) -> None:
    for text in (json.dumps(value), json.dumps({"model": value}), json.dumps({"model": {"width": value}}), str(value)):
        try:
            from_json(text)
        except ConfigError:
            continue


def test_a_setting_that_json_leaves_out_has_its_default() -> None:
    assert from_json("{}") == Config()
    assert from_json('{"model": {"heads": 4}}') == Config().with_changes(model={"heads": 4})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the configuration is not JSON"),
        ("[]", "the configuration is not a JSON object of sections"),
        ('{"modle": {}}', "no section is called 'modle'; did you mean 'model'?"),
        ('{"model": 3}', "section 'model' takes an object of settings, not 3"),
        ('{"model": {"widht": 3}}', "no setting is called 'model.widht'; did you mean 'model.width'?"),
        ('{"model": {"steps": 3}}', "no setting is called 'model.steps'; did you mean 'training.steps'?"),
        ('{"model": {"width": "wide"}}', "model.width takes a whole number, not 'wide'"),
        ('{"model": {"width": 512.0}}', "model.width takes a whole number, not 512.0"),
        ('{"model": {"width": true}}', "model.width takes a whole number, not True"),
        ('{"model": {"width": null}}', "model.width takes a whole number, not None"),
        ('{"model": {"norm": ["rms"]}}', "model.norm takes layer, rms, not ['rms']"),
        ('{"training": {"clip": NaN}}', "training.clip takes a number or none, not nan"),
        ('{"training": {"steps": ' + "9" * 5000 + "}}", "the configuration is not JSON"),
        ('{"model": {"width": 100}}', "model.width 100 does not divide into 8 heads"),
    ],
)
def test_a_mistake_in_json_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_json(text)
    assert str(caught.value).startswith(complaint)


def test_settings_cannot_be_changed_in_place() -> None:
    config = Config()
    for section in dataclasses.fields(config):
        for setting in dataclasses.fields(getattr(config, section.name)):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(getattr(config, section.name), setting.name, None)


def test_heads_share_the_width_unless_told() -> None:
    assert (ModelConfig(width=96, heads=6).head_key_width, ModelConfig(width=96, heads=6).head_value_width) == (16, 16)
    told = ModelConfig(width=96, heads=5, key_width=10, value_width=12)
    assert (told.head_key_width, told.head_value_width) == (10, 12)


def test_no_default_lives_outside_the_config() -> None:
    """A parameter named like a setting has no default but None: its value comes from the config."""
    names = {name.partition(".")[2] for name in SETTINGS} - OPTIONS_OF_A_CALL
    package = Path(qkv.__file__).parent
    found = []
    for path in sorted({*package.rglob("*.py")} - {package / "config.py"}):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.arguments):
                positional = [*node.posonlyargs, *node.args]
                defaults = [
                    *zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True),
                    *zip(node.kwonlyargs, node.kw_defaults, strict=True),
                ]
                found += [
                    f"{path.relative_to(package.parent)}:{one.lineno} {one.arg}"
                    for one, default in defaults
                    if one.arg in names and default is not None and ast.unparse(default) != "None"
                ]
    assert found == []
