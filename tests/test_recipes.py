"""The recipes, against the paper's Table 3 and sections 5 and 6.

The paper says that English-German has "about 37000" subwords. With exactly so many, every model of rows A to E has
1.2 to 4.2 million parameters fewer than its column says, all for one reason: with a vocabulary of 41,004 to 41,208
subwords every one of the ten printed figures is met to its last digit. Big, printed as 213 million, needs 35,368 to
36,344: no one vocabulary meets both. What does not depend on the vocabulary, the differences between rows, agrees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from qkv.errors import ConfigError
from qkv.models.build import assemble, count_parameters
from qkv.recipes import RECIPES, recipe

MILLION = 1_000_000


@dataclass(frozen=True)
class Row:
    """A row of Table 3 as printed; where the paper leaves a blank, the value of the base model."""

    layers: int = 6
    width: int = 512
    hidden: int = 2048
    heads: int = 8
    key_width: int = 64
    value_width: int = 64
    dropout: float = 0.1
    smoothing: float = 0.1
    steps: int = 100_000
    millions: int | None = None


BASE = Row(millions=65)
TABLE_3 = {
    "base": BASE,
    "A-heads1": Row(heads=1, key_width=512, value_width=512),
    "A-heads4": Row(heads=4, key_width=128, value_width=128),
    "A-heads16": Row(heads=16, key_width=32, value_width=32),
    "A-heads32": Row(heads=32, key_width=16, value_width=16),
    "B-keys16": Row(key_width=16, millions=58),
    "B-keys32": Row(key_width=32, millions=60),
    "C-layers2": Row(layers=2, millions=36),
    "C-layers4": Row(layers=4, millions=50),
    "C-layers8": Row(layers=8, millions=80),
    "C-width256": Row(width=256, key_width=32, value_width=32, millions=28),
    "C-width1024": Row(width=1024, key_width=128, value_width=128, millions=168),
    "C-hidden1024": Row(hidden=1024, millions=53),
    "C-hidden4096": Row(hidden=4096, millions=90),
    "D-dropout0.0": Row(dropout=0.0),
    "D-dropout0.2": Row(dropout=0.2),
    "D-smoothing0.0": Row(smoothing=0.0),
    "D-smoothing0.2": Row(smoothing=0.2),
    "E-learned": Row(),
    "big": Row(width=1024, hidden=4096, heads=16, dropout=0.3, steps=300_000, millions=213),
}
PRINTED = {name: row.millions for name, row in TABLE_3.items() if row.millions is not None}


def parameters(name: str, vocabulary: int) -> int:
    return count_parameters(recipe(name).model, vocabulary)


def vocabularies_that_round_to(name: str, millions: int) -> range:
    """Every size of the vocabulary with which the model has the printed number of parameters."""
    width = recipe(name).model.width
    rest = parameters(name, 1) - width
    least, beyond = (millions * MILLION + half - rest for half in (-MILLION // 2, MILLION // 2))
    return range(-(-least // width), -(-beyond // width))


@pytest.mark.parametrize("name", TABLE_3)
def test_a_row_of_table_3_has_the_papers_settings(name: str) -> None:
    config = recipe(name)
    model, training = config.model, config.training
    assert model.encoder_layers == model.decoder_layers
    settings = Row(
        model.encoder_layers, model.width, model.hidden, model.heads, model.head_key_width, model.head_value_width,
        model.dropout, training.label_smoothing, training.steps,
    )  # fmt: skip
    assert settings == replace(TABLE_3[name], millions=None)
    assert model.positions == ("learned" if name == "E-learned" else "sinusoidal")
    choices = (model.residual, model.norm, model.feed_forward, model.query_key_norm, model.projection)
    assert choices == ("post", "layer", "relu", "none", "plain")


def test_table_3_is_complete() -> None:
    assert {name for name in RECIPES if name[:2] in {"A-", "B-", "C-", "D-", "E-"}} == {*TABLE_3} - {"base", "big"}


def test_the_rest_of_the_papers_settings_is_that_of_sections_5_and_6() -> None:
    base, big, french = recipe("base"), recipe("big"), recipe("big-en-fr")
    for config in (base, big, french):
        training, search = config.training, config.search
        assert (training.optimizer, training.beta1, training.beta2, training.epsilon) == ("adam", 0.9, 0.98, 1e-9)
        assert (training.schedule, training.warmup_steps, training.learning_rate) == ("paper", 4000, 1.0)
        assert training.tokens_per_batch == 25_000
        assert (search.beam, search.length_penalty, search.extra_length) == (4, 0.6, 50)
        assert config.text.algorithm == "bpe"
        assert training.final == "checkpoints"
    assert (base.training.average_checkpoints, big.training.average_checkpoints) == (5, 20)
    assert (base.text.vocabulary, big.text.vocabulary, french.text.vocabulary) == (37_000, 37_000, 32_000)
    assert french.model == replace(big.model, dropout=0.1)


def test_parameters_of_rows_a_to_e_agree_to_the_printed_digit_with_one_vocabulary() -> None:
    ranges = [vocabularies_that_round_to(name, millions) for name, millions in PRINTED.items() if name != "big"]
    common = range(max(one.start for one in ranges), min(one.stop for one in ranges))
    assert common == range(41_004, 41_209)
    for vocabulary in (common[0], 41_100, common[-1]):
        assert {name: round(parameters(name, vocabulary) / MILLION) for name in PRINTED if name != "big"} == {
            name: millions for name, millions in PRINTED.items() if name != "big"
        }


def test_parameters_of_big_agree_to_the_printed_digit_with_a_smaller_vocabulary() -> None:
    sizes = vocabularies_that_round_to("big", PRINTED["big"])
    assert sizes == range(35_368, 36_345)
    assert round(parameters("big", 36_000) / MILLION) == 213


def test_parameters_with_37_000_subwords_are_near_the_printed_ones() -> None:
    """The least bounds that hold: 6.6 % and 2.6 million, but 4.2 for width 1024, where a subword costs twice as much.

    Only big has more than printed, by 1.2 million.
    """
    shortfall = {name: millions - parameters(name, 37_000) / MILLION for name, millions in PRINTED.items()}
    for name, millions in PRINTED.items():
        assert abs(shortfall[name]) / millions < 0.066
        assert abs(shortfall[name]) < (4.2 if name == "C-width1024" else 2.6)
    assert [name for name in PRINTED if shortfall[name] < 0] == ["big"]


@pytest.mark.parametrize("name", [name for name in PRINTED if TABLE_3[name].width == BASE.width and name != "base"])
def test_what_a_row_adds_to_base_agrees_whatever_the_vocabulary(name: str) -> None:
    """Both printed figures are rounded, so their difference may be off by less than one million."""
    difference = (parameters(name, 1000) - parameters("base", 1000)) / MILLION
    assert abs(difference - (PRINTED[name] - PRINTED["base"])) < 1


def test_heads_dropout_and_smoothing_cost_no_parameters() -> None:
    """Where the paper prints no figure in rows A and D, it is that of base."""
    for name in TABLE_3:
        if name.startswith(("A-", "D-")):
            assert parameters(name, 37_000) == parameters("base", 37_000)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_builds_and_says_what_it_is(name: str) -> None:
    config = recipe(name)
    with torch.device("meta"):
        model = assemble(config.model, config.text.vocabulary)
    assert sum(weight.numel() for weight in model.parameters()) == parameters(name, config.text.vocabulary)
    assert RECIPES[name].__doc__


@pytest.mark.parametrize("name", ["gated", "modern"])
def test_a_gated_feed_forward_costs_about_what_the_papers_does(name: str) -> None:
    assert parameters(name, 37_000) == pytest.approx(parameters("base", 37_000), rel=0.001)


def test_an_unknown_recipe_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="no recipe is called 'tyni'; did you mean 'tiny'"):
        recipe("tyni")
    with pytest.raises(ConfigError, match="no recipe is called 'bse'; did you mean 'base'"):
        recipe("bse")
    with pytest.raises(ConfigError, match="`qkv recipes` lists them"):
        recipe("zzzz")


def work_of_a_token(name: str, *, subwords: int, beam: int = 4) -> float:
    """Millions of multiplications for a target token and a source token, without attention's own sums."""
    model = recipe(name).model
    square = model.width**2
    feed_forward = {"relu": 2, "gated": 3}[model.feed_forward] * model.width * model.hidden
    reading = model.encoder_layers * (4 * square + feed_forward) + model.decoder_layers * 2 * square
    writing = model.decoder_layers * (6 * square + feed_forward) + model.width * subwords
    return (reading + beam * writing) / MILLION


def test_the_student_does_a_third_of_the_work_of_base() -> None:
    base, student = (work_of_a_token(name, subwords=3000) for name in ("base", "student"))
    assert (round(base, 1), round(student, 1)) == (116.2, 34.4)
    assert base / student > 3
    assert round(work_of_a_token("base", subwords=37_000), 1) == 185.9
    assert round(work_of_a_token("student", subwords=3000, beam=1), 1) == 24.7
