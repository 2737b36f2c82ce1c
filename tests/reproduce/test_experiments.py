"""What can be reproduced, against the recipes, the corpora and the paper."""

from __future__ import annotations

import pytest

from qkv.errors import ConfigError
from qkv.fetch import CORPORA
from qkv.recipes import recipe
from qkv.recipes.paper import TABLE_3 as RECIPES_OF_TABLE_3
from qkv.reproduce import EXPERIMENTS, TABLE_3, experiment, rows
from qkv.reproduce.table3 import scaled
from tests.test_recipes import PRINTED


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_corpus_and_a_recipe(name: str) -> None:
    one = EXPERIMENTS[name]
    assert one.corpus in CORPORA
    assert one.config().search == recipe("base").search


def test_the_papers_experiments_are_trained_and_averaged_as_in_the_paper() -> None:
    for name, steps, averaged in (("base", 100_000, 5), ("big", 300_000, 20)):
        for pair in ("en-de", "en-fr"):
            training = experiment(f"{name}-{pair}").config().training
            assert (training.steps, training.warmup_steps, training.final) == (steps, 4000, "checkpoints")
            assert (training.average_checkpoints, training.tokens_per_batch) == (averaged, 25_000)
    assert [experiment(f"big-{pair}").config().model.dropout for pair in ("en-de", "en-fr")] == [0.3, 0.1]


def test_table_3_has_every_row_that_there_is_a_recipe_for() -> None:
    assert {*TABLE_3} == {*RECIPES_OF_TABLE_3, "base", "big"}
    assert {row: one.millions for row, one in TABLE_3.items() if one.millions is not None} == PRINTED


def test_rows_are_named_by_themselves_or_by_their_group() -> None:
    assert rows() == [*TABLE_3]
    assert rows(["E", "base", "B"]) == ["base", "B-keys16", "B-keys32", "E-learned"]
    assert rows(["big", "A-heads4"]) == ["A-heads4", "big"]
    with pytest.raises(
        ConfigError, match="Table 3 has no row F, A-heads; it has the groups A to E, and base, A-heads1"
    ):
        rows(["F", "base", "A-heads"])


def test_an_unknown_experiment_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'base-en-de'"):
        experiment("base-ende")
    with pytest.raises(ConfigError, match="did you mean 'table3'"):
        experiment("table-3")


@pytest.mark.parametrize("row", TABLE_3)
def test_smaller_rows_stay_in_proportion(row: str) -> None:
    config = recipe(row)
    small = scaled(config, 64, 3)
    assert small.model.width * 8 == config.model.width
    assert small.model.hidden * 8 == config.model.hidden
    assert small.model.head_key_width * 8 == config.model.head_key_width
    assert small.model.encoder_layers * 2 == config.model.encoder_layers
    assert (small.model.heads, small.training) == (config.model.heads, config.training)
    assert scaled(config, None, None) == config
