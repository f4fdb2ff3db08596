"""The table of this library's recipes, and those that other packages register."""

from importlib.metadata import EntryPoint, entry_points

from likewise.recipes.arccse import ARCCSE, SIMCSE
from likewise.recipes.exclusion import EXCLUSION
from likewise.recipes.gclsr import GCLSR
from likewise.recipes.light import LIGHT
from likewise.recipes.recipe import Recipe
from likewise.recipes.sncse import SNCSE
from likewise.runs.options import OptionError
from likewise.runs.registered import RECIPES_GROUP, is_of_likewise, load_registered

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (ARCCSE, SIMCSE, SNCSE, GCLSR, EXCLUSION, LIGHT)}
"""The recipes of this library. Those of other papers to compare with are registered as any package's are."""


def recipe_names() -> list[str]:
    """Return the names of this library's recipes and of those that installed packages register."""
    return [*RECIPES, *sorted(_registered())]


def recipe_summaries() -> dict[str, str]:
    """Return the summary of each recipe by its name; those of other packages are not loaded for it."""
    others = {
        name: find_recipe(name).summary if is_of_likewise(entry) else "A recipe of another package."
        for name, entry in sorted(_registered().items())
    }
    return {name: recipe.summary for name, recipe in RECIPES.items()} | others


def find_recipe(recipe: str | Recipe) -> Recipe:
    """Return the recipe of a name, with precedence for this library's; a `Recipe` is returned unchanged."""
    if isinstance(recipe, Recipe):
        return recipe
    if recipe in RECIPES:
        return RECIPES[recipe]
    registered = _registered()
    if recipe not in registered:
        names = ", ".join(sorted([*RECIPES, *registered]))
        raise OptionError(f"there is no recipe {recipe!r}; there are {names}")
    return load_registered(registered[recipe], Recipe, f"the recipe {recipe!r}", OptionError)


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=RECIPES_GROUP) if entry.name not in RECIPES}
