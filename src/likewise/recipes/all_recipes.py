"""The table of this library's recipes, and recipes that other packages register."""

from likewise.recipes.arccse import ARCCSE, SIMCSE
from likewise.recipes.gclsr import GCLSR
from likewise.recipes.light import LIGHT
from likewise.recipes.recipe import Recipe
from likewise.recipes.sncse import SNCSE
from likewise.runs.plugins import RECIPES_GROUP, Registry

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (ARCCSE, SIMCSE, SNCSE, GCLSR, LIGHT)}
"""The recipes of this library; others, such as exclusion and recipes for comparison, are registered by entry points."""

_ALL = Registry(RECIPES_GROUP, Recipe, "recipe", RECIPES)
recipe_names = _ALL.names


def find_recipe(recipe: str | Recipe) -> Recipe:
    """Return the recipe of a name, with precedence for this library's recipes; a `Recipe` is returned unchanged."""
    return recipe if isinstance(recipe, Recipe) else RECIPES.get(recipe) or _ALL.find(recipe)
