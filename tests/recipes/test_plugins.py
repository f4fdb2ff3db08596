"""Recipes of other packages."""

import sys

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

import likewise
from likewise.cli import build_app
from likewise.recipes import RECIPES, OptionError, find_recipe, recipe_names

HALVES = """
from likewise.encoder import SavedModule, build_encoder
from likewise.losses import EncoderLoss, functional
from likewise.recipes import Reading, Recipe, Run, TextCollator, TrainingOptions


class Scaled(SavedModule):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, features):
        return features | {"sentence_embedding": self.factor * features["sentence_embedding"]}


class HalvesLoss(EncoderLoss):
    def _loss(self, first, second):
        return functional.nt_xent(self.vectors(first), self.vectors(second), 0.05)


def encoder(base, options):
    found = build_encoder(base, pooling="mean", head=False)
    found.append(Scaled(2.0))
    return found


def with_last_words(run):
    def make(folder):
        words = [row["sentence"].rpartition(" ")[2] for row in run.rows]
        (folder / "words.txt").write_text(" ".join(words))

    path = run.prepared([], make) / "words.txt"
    return run.but(rows=run.rows.add_column("second", path.read_text().split(" ")))


def views(rows):
    return {"first": [row["sentence"] for row in rows], "second": [row["second"] for row in rows]}


HALVES = Recipe(
    name="halves",
    summary="A sentence and its last word.",
    source="a test",
    presets={"cpu": TrainingOptions(batch_size=8, max_steps=1, select_by="last")},
    build_encoder=encoder,
    build_collator=lambda encoder, options, seed: TextCollator(views, Reading.of(encoder, 32)),
    build_loss=HalvesLoss,
    stages=(with_last_words, Run.built),
    modules=(Scaled,),
)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch, forget_packages):
    """A package with a recipe that works, two that do not, and one that takes a name of ours."""
    (tmp_path / "toy_recipes.py").write_text(
        "import dataclasses\nfrom likewise.recipes import RECIPES\n"
        "TOY = dataclasses.replace(RECIPES['simcse'], name='toy')\nNONE = 3\n"
    )
    (tmp_path / "toy_halves.py").write_text(HALVES)
    metadata = tmp_path / "toy_recipes-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-recipes\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[likewise.recipes]\ntoy = toy_recipes:TOY\nbroken = toy_recipes:MISSING\nnone = toy_recipes:NONE\n"
        "arccse = toy_recipes:TOY\nhalves = toy_halves:HALVES\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    forget_packages()
    yield
    sys.modules.pop("toy_recipes", None)
    sys.modules.pop("toy_halves", None)


def test_a_registered_recipe_is_found_and_trained(installed, corpus_file, tiny_base, tmp_path):
    ours = {
        "consert",
        "ct",
        "esimcse",
        "exclusion",
        "mask-distillation",
        "tsdae",
    }  # registered like any other
    assert recipe_names() == [*RECIPES, *sorted({"broken", "halves", "none", "toy"} | ours)]
    settings = {"batch_size": 8, "max_steps": 1, "select_by": "last", "quiet": True}
    result = likewise.train("toy", corpus_file, base=tiny_base, out=tmp_path / "run", **settings)
    assert result.record["recipe"] == "toy"


def test_a_recipe_brings_stages_and_modules_of_its_own(installed, corpus_file, tiny_base, tmp_path, monkeypatch, says):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    likewise.train("halves", corpus_file, base=tiny_base, out=tmp_path / "run", quiet=True)
    assert [path.name for path in (tmp_path / "cache" / "stages").rglob("*.txt")] == ["words.txt"]
    model = likewise.load(tmp_path / "run")
    plain = SentenceTransformer(modules=list(model)[:2])
    assert np.allclose(model.encode("the river"), 2 * plain.encode("the river"), atol=1e-6)
    listing = tmp_path / "run" / "modules.json"
    listing.write_text(listing.read_text().replace("Scaled", "HalvesLoss"))
    with says(likewise.LikewiseError, hidden=r"\(The model .*\)"):  # a class that no recipe brings
        likewise.load(tmp_path / "run")


def test_a_registered_recipe_is_on_the_command_line(installed):
    run = CliRunner().invoke
    assert "toy" in run(build_app(), ["train", "--help"]).output
    assert "--temperature" in run(build_app(), ["train", "toy", "--help"]).output
    assert "'broken' of the package toy-recipes" in run(build_app(), ["train", "broken", "--help"]).output


def test_a_name_of_our_own_wins(installed):
    assert find_recipe("arccse") is RECIPES["arccse"]


@pytest.mark.parametrize(
    "name",
    [
        "broken",
        "none",
        "other",
    ],
)
def test_a_broken_one_is_named_when_it_is_asked_for(installed, name, says):
    with says(OptionError):
        find_recipe(name)
