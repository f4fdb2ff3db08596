from __future__ import annotations

from typing import Literal

import pytest

from likewise.recipes.recipe_options import WithPresets
from likewise.runs.options import (
    OptionError,
    Options,
    choices_of,
    option,
    write_toml,
)
from likewise.runs.toml_files import read_toml


class Cooking(Options):
    minutes: int = option(10, "How long.", ge=1)
    heat: float = option(0.5, "How hot.", ge=0, le=1)
    pan: Literal["iron", "steel"] = option("iron", "Which pan.")
    lid: bool = option(True, "With a lid.")

    def _check(self) -> None:
        if self.minutes > 100 and self.heat > 0.9:
            raise OptionError("minutes above 100 and heat above 0.9 burn everything: lower one of them")


class SlowCooking(Cooking):
    minutes: int = option(90, "How long.")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"minutes": 0}, "minutes must be 1 or more, not 0"),
        ({"heat": 1.5}, "heat must be at most 1, not 1.5"),
        ({"heat": float("nan")}, "heat must be a finite number, not nan"),
        ({"minutes": 2.5}, "minutes must be an integer, not 2.5"),
        ({"lid": "perhaps"}, "lid must be true or false, not 'perhaps'"),
        ({"pan": "clay"}, "pan must be one of iron, steel, not 'clay'"),
        ({"minuts": 1}, "there is no option minuts: did you mean minutes? Choose one of heat, lid, minutes, pan"),
        ({"minutes": 0, "heat": -1}, "minutes must be 1 or more, not 0; heat must be 0 or more, not -1"),
        ({"minutes": 101, "heat": 1}, "minutes above 100 and heat above 0.9 burn everything: lower one of them"),
    ],
)
def test_one_sentence_an_error(values: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        Cooking(**values)
    assert str(caught.value) == message
    with pytest.raises(OptionError) as caught:
        Cooking().updated(**values)
    assert str(caught.value) == message


def test_a_new_default_keeps_the_limits(says) -> None:
    assert SlowCooking().minutes == 90
    with says(OptionError):
        SlowCooking(minutes=0)


def test_text_is_read_as_the_type_of_its_option(says) -> None:
    found = Cooking().updated_from_strings({"minutes": "12", "heat": "1e-1", "pan": "steel", "lid": "no"})
    assert found == Cooking(minutes=12, heat=0.1, pan="steel", lid=False)
    with says(OptionError):
        Cooking().updated_from_strings({"lid": "perhaps"})
    with says(OptionError):
        Cooking().updated_from_strings({"hat": "1"})


def test_text_that_contradicts_the_preset_and_not_the_defaults(says) -> None:
    with says(OptionError):
        Cooking(minutes=200).updated_from_strings({"heat": "1"})
    # And the other way round: what contradicts a default may be right with a preset's value.
    assert Cooking(heat=0.1).updated_from_strings({"minutes": "200"}).minutes == 200


def test_options_are_frozen_equal_and_plain() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Cooking().minutes = 3  # type: ignore[misc]
    assert Cooking(minutes=3) == Cooking().updated(minutes=3)
    assert Cooking().to_dict() == {"minutes": 10, "heat": 0.5, "pan": "iron", "lid": True}
    assert choices_of(Cooking, "pan") == ("iron", "steel")
    assert choices_of(Cooking, "heat") == ()


def test_presets(says) -> None:
    presets = {"soft": Cooking(), "hard": Cooking(minutes=20)}
    eggs = WithPresets("eggs", "", "", presets)
    assert eggs.options().minutes == 10
    assert eggs.options("hard", heat=0.2) == Cooking(minutes=20, heat=0.2)
    with says(OptionError):
        eggs.options("raw")


def test_toml_there_and_back(tmp_path, says) -> None:
    path = tmp_path / "run.toml"
    content = {"base": "b", "seed": 1, "preset": None, "corpus": ["a", "b"], "options": {"margin": 0.5, "x": None}}
    path.write_text(write_toml(content), encoding="utf-8")
    assert read_toml(path, content) == {"base": "b", "seed": 1, "corpus": ["a", "b"], "options": {"margin": 0.5}}
    with says(OptionError):
        read_toml(path, ["seed", "corpus", "options"])
    path.write_text("a = [", encoding="utf-8")
    with says(OptionError):
        read_toml(path, ["a"])
    with says(OptionError):
        read_toml(tmp_path / "none.toml", [])
