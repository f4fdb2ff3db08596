"""Recipes of other packages."""

import sys

import pytest
from typer.testing import CliRunner

import likewise
from likewise.cli import build_app
from likewise.recipes import RECIPES, OptionError, find_recipe, recipe_names


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with a recipe that works, two that do not, and one that takes a name of ours."""
    (tmp_path / "toy_recipes.py").write_text(
        "import dataclasses\nfrom likewise.recipes import RECIPES\n"
        "TOY = dataclasses.replace(RECIPES['simcse'], name='toy')\nNONE = 3\n"
    )
    metadata = tmp_path / "toy_recipes-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-recipes\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[likewise.recipes]\ntoy = toy_recipes:TOY\nbroken = toy_recipes:MISSING\nnone = toy_recipes:NONE\n"
        "arccse = toy_recipes:TOY\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("toy_recipes", None)


def test_a_registered_recipe_is_found_and_trained(installed, corpus_file, tiny_base, tmp_path):
    assert recipe_names() == [*RECIPES, "broken", "none", "toy"]
    settings = {"batch_size": 8, "max_steps": 1, "select_by": "last", "quiet": True}
    result = likewise.train("toy", corpus_file, base=tiny_base, out=tmp_path / "run", **settings)
    assert result.record["recipe"] == "toy"


def test_a_registered_recipe_is_on_the_command_line(installed):
    run = CliRunner().invoke
    assert "toy" in run(build_app(), ["train", "--help"]).output
    assert "--temperature" in run(build_app(), ["train", "toy", "--help"]).output
    assert "'broken' of the package toy-recipes" in run(build_app(), ["train", "broken", "--help"]).output


def test_a_name_of_our_own_wins(installed):
    assert find_recipe("arccse") is RECIPES["arccse"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "'broken' of the package toy-recipes cannot be loaded .*MISSING"),
        ("none", "'none' of the package toy-recipes is not a Recipe but int"),
        ("other", "there is no recipe 'other'; .*toy"),
    ],
)
def test_a_broken_one_is_named_when_it_is_asked_for(installed, name, message):
    with pytest.raises(OptionError, match=message):
        find_recipe(name)
