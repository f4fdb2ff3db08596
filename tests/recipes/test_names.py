"""What a recipe takes from likewise, as docs/extend.md counts it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "src" / "likewise" / "recipes"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def taken(name: str) -> dict[str, set[str]]:
    """Return the names that a recipe takes from each module of likewise."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse((RECIPES / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("likewise"):
            found.setdefault(node.module, set()).update(one.name for one in node.names)
    return found


def test_the_documentation_counts_the_names_that_sncse_takes():
    text = " ".join((ROOT / "docs" / "extend.md").read_text(encoding="utf-8").split())
    found = taken("sncse")
    names, modules = re.search(r"`sncse`, the largest, imports (\d+) names from (\w+) modules", text).groups()
    assert (sum(map(len, found.values())), len(found)) == (int(names), NUMBERS.index(modules))


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.py")), ids=lambda path: path.stem)
def test_a_recipe_takes_by_the_door_what_a_package_of_ones_own_would(path):
    if path.stem in ("__init__", "all_recipes", "collator", "optimizers", "recipe", "recipe_options"):
        return
    behind = tuple(
        f"likewise.{name}" for name in ("recipes.collator", "recipes.recipe", "recipes.recipe_options", "runs.options")
    )
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    assert not [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module in behind]
