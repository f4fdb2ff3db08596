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


def test_the_paper_has_its_own_models_and_its_own_form():
    found = read_sections([], "paper")
    assert (found["discriminator"].reads, found["generators"].reads) == ("text", "text")
    assert (found["generators"].width, found["generators"].layers) == (1024, 6)
    assert (found["selection"].size, found["selection"].screened) == (500, 2000)
    assert found["score"] == ScoreOptions(form="paper")
    assert found["discriminator"].rank == 0, "equation 1 as it stands"
    with pytest.raises(OptionError, match="no preset papre; choose one of frozen, pretrained, paper"):
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
    ("text", "message"),
    [
        ("left=3", r"give section\.name=value"),
        ("index.left", r"give section\.name=value"),
        ("index.=3", r"give section\.name=value"),
        ("indexes.left=3", "there is no section indexes; choose one of index, "),
        ("index.left=0", r"--set index\.left=0: left must be 1 or more, not '0'"),
        ("index.lefts=3", r"--set index\.lefts=3: there is no option lefts: did you mean left"),
        ("score.weights=1,x", "weights must be"),
        ("discriminator.reads=deep", "reads must be one of states, text, not 'deep'"),
        ("selection.screened=5", "screened 5 is less than size 50"),
    ],
)
def test_a_single_value_that_is_wrong_is_named(text, message):
    with pytest.raises(OptionError, match=message):
        read_sections([text])


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (GeneratorOptions, {"width": 10, "heads": 3}, "not a multiple"),
        (GeneratorOptions, {"schedule": "cosine"}, "linear, inverse_sqrt"),
        (GeneratorOptions, {"dropout": 1.0}, "below 1"),
        (GeneratorOptions, {"batch_size": 0}, "1 or more"),
        (GeneratorOptions, {"widht": 1}, "no option widht"),
        (ScoreOptions, {"weights": (1, 1, 1)}, "form=pmi must be 7 numbers, not all"),
        (ScoreOptions, {"weights": (0,) * 7}, "form=pmi must be 7 numbers, not all"),
        (ScoreOptions, {"form": "paper", "weights": (0,) * 4}, "form=paper must be 4 numbers of 0 or more"),
        (ScoreOptions, {"form": "paper", "weights": (1, 1, 1, -1)}, "form=paper must be 4 numbers of 0 or more"),
        (ScoreOptions, {"terms": ("cosine", "centr")}, "no term centr; choose one of cosine, words"),
        (ScoreOptions, {"terms": ()}, "terms must be one or more"),
        (HarvestOptions, {"ranks": (0, 1)}, "of 1 or more"),
        (HarvestOptions, {"ranks": (2, 2)}, "different whole numbers"),
        (HarvestOptions, {"anchors": 1}, "anchors must be 2 or more"),
        (HarvestOptions, {"held_out": 0.5}, "below 0.5"),
        (HarvestOptions, {"min_words": 9, "max_words": 3}, "exclude every sentence"),
    ],
)
def test_values_out_of_range_and_contradictions(kind, changes, message):
    with pytest.raises(OptionError, match=message):
        kind().updated(**changes)
