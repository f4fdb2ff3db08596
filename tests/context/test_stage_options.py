"""The options of the stages, the file and single values."""

import pytest

from likewise.context.stage_options import (
    SECTIONS,
    DiscriminatorOptions,
    GeneratorOptions,
    HarvestOptions,
    IndexOptions,
    ScoreOptions,
    SelectionOptions,
    read_sections,
)
from likewise.runs.options import OptionError


def test_nothing_gives_the_defaults():
    found = read_sections()
    assert list(found) == list(SECTIONS)
    assert all(found[name] == kind() for name, kind in SECTIONS.items())


def test_the_paper_has_its_own_models_and_its_own_form(says):
    found = read_sections([], "paper")
    assert (found["discriminator"].reads, found["generators"].reads) == ("text", "text")
    assert (found["generators"].width, found["generators"].layers) == (1024, 6)
    assert (found["selection"].size, found["selection"].screened) == (500, 2000)
    assert found["score"] == ScoreOptions(form="paper")
    assert found["discriminator"].rank == 0, "equation 1 as it stands"
    with says(OptionError):
        read_sections([], "papre")


def test_single_values():
    single = ["index.right=5", "selection.strategy=random", "selection.diversity=false", "harvest.ranks=[1, 3]"]
    found = read_sections([*single, "score.weights=1,0,-0.5,0,0,0,0", "discriminator.seed=7"])
    assert found["index"] == IndexOptions(right=5)
    assert found["discriminator"] == DiscriminatorOptions(seed=7)
    assert found["selection"] == SelectionOptions(strategy="random", diversity=False)
    assert found["harvest"] == HarvestOptions(ranks=(1, 3))
    assert found["score"] == ScoreOptions(weights=(1, 0, -0.5, 0, 0, 0, 0))


@pytest.mark.parametrize(
    "text",
    [
        "left=3",
        "index.left",
        "index.=3",
        "indexes.left=3",
        "index.left=0",
        "index.lefts=3",
        "score.weights=1,x",
        "discriminator.reads=deep",
        "selection.screened=5",
    ],
)
def test_a_single_value_that_is_wrong_is_named(text, says):
    with says(OptionError):
        read_sections([text])


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (GeneratorOptions, {"width": 10, "heads": 3}),
        (GeneratorOptions, {"schedule": "cosine"}),
        (GeneratorOptions, {"dropout": 1.0}),
        (GeneratorOptions, {"batch_size": 0}),
        (GeneratorOptions, {"widht": 1}),
        (ScoreOptions, {"weights": (1, 1, 1)}),
        (ScoreOptions, {"weights": (0,) * 7}),
        (ScoreOptions, {"form": "paper", "weights": (0,) * 4}),
        (ScoreOptions, {"form": "paper", "weights": (1, 1, 1, -1)}),
        (ScoreOptions, {"terms": ("cosine", "centr")}),
        (ScoreOptions, {"terms": ()}),
        (HarvestOptions, {"ranks": (0, 1)}),
        (HarvestOptions, {"ranks": (2, 2)}),
        (HarvestOptions, {"anchors": 1}),
        (HarvestOptions, {"held_out": 0.5}),
        (HarvestOptions, {"min_words": 9, "max_words": 3}),
    ],
)
def test_values_out_of_range_and_contradictions(kind, changes, says):
    with says(OptionError):
        kind().updated(**changes)
