"""The recipes: their table, and those that other packages register.

Where the values of a recipe come from, and what differs from its paper: docs/papers.md.
"""

from importlib.metadata import EntryPoint, entry_points

from likewise.recipes.arccse import ARCCSE, SIMCSE
from likewise.recipes.consert import CONSERT
from likewise.recipes.ct import CT
from likewise.recipes.esimcse import ESIMCSE
from likewise.recipes.exclusion import EXCLUSION
from likewise.recipes.gclsr import GCLSR
from likewise.recipes.light import LIGHT
from likewise.recipes.mask_distillation import MASK_DISTILLATION
from likewise.recipes.options import TrainingOptions
from likewise.recipes.recipe import Recipe
from likewise.recipes.sncse import SNCSE
from likewise.recipes.tsdae import TSDAE
from likewise.runs.options import OptionError
from likewise.runs.registered import RECIPES_GROUP, load_registered

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (ARCCSE, SIMCSE, SNCSE, GCLSR, ESIMCSE, CONSERT, CT, TSDAE, MASK_DISTILLATION, EXCLUSION, LIGHT)
}
"""The recipes of this library."""

__all__ = ["RECIPES", "OptionError", "Recipe", "TrainingOptions", "find_recipe", "recipe_names"]


def recipe_names() -> list[str]:
    """Return the names of this library's recipes and of those that installed packages register."""
    return [*RECIPES, *sorted(_registered())]


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
