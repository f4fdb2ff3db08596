import pytest

import likewise
from likewise.cli.training_commands import train
from likewise.recipes import RECIPES, OptionError, TrainingOptions, find_recipe, recipe_names
from likewise.recipes.all_recipes import FUNCTIONS
from likewise.runs.plugins import COMPARED


def test_misspelt_option_is_an_error_that_lists_the_options(says):
    with says(OptionError):
        RECIPES["arccse"].options(temprature=0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size": 0},
        {"warmup_ratio": 1.0},
        {"schedule": "square"},
        {"max_length": 2},
        {"margin": 91.0},
        {"mask_closer": 0.5, "mask_farther": 0.4},
        {"contrastive": "none", "triplet_weight": 0.0},
        {"dropout": 0.0},
        {"temperature": 0.0},
    ],
)
def test_contradictions_are_refused_when_made(changes, says):
    with says(OptionError):
        RECIPES["arccse"].options(**changes)


def test_every_option_has_a_help_text_and_a_preset_is_found_by_name(says):
    for recipe in map(find_recipe, recipe_names()):
        assert all(item.description.endswith(".") for item in recipe.options_type.model_fields.values())
        for preset in recipe.presets:
            assert isinstance(recipe.options(preset), TrainingOptions)
    with says(OptionError):
        find_recipe("arccse").options("paper")
    with says(OptionError):
        find_recipe("simsce")


def test_commands_that_are_no_recipes_have_functions():
    assert set(train().list_commands(None)) - set(recipe_names()) - set(COMPARED) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_command_that_is_no_recipe_names_its_function(name, says):
    with says(OptionError):
        likewise.train(name, ["The pump leaks."], out="runs/other")


def test_paper_presets_hold_the_values_of_section_4_1():
    base, large = (RECIPES["arccse"].options(name) for name in ("paper-base", "paper-large"))
    assert base.batch_size * base.accumulation == 64
    assert base.batch_size in (8, 16, 32)
    assert (base.learning_rate, large.learning_rate) == (3e-5, 1e-5)
    assert (base.max_length, large.max_length, large.triplet_max_length) == (0, 32, 0)
    for options in (base, large):
        assert (options.margin, options.temperature, options.dropout) == (10, 0.05, 0.1)
        assert (options.mask_closer, options.mask_farther, options.triplet_min_words) == (0.2, 0.4, 25)
        assert (options.triplet_weight, options.triplet_margin, options.epochs, options.eval_steps) == (
            0.1,
            0,
            1,
            125,
        )
        assert options.sam_rho == 0.05
        assert options.pooling == "cls"
