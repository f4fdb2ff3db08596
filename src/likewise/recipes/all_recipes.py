"""The table of this library's recipes, and recipes that other packages register."""

from likewise.recipes.arccse import ARCCSE, SIMCSE
from likewise.recipes.gclsr import GCLSR
from likewise.recipes.light import LIGHT
from likewise.recipes.recipe import Recipe
from likewise.recipes.sncse import SNCSE
from likewise.runs.options import OptionError
from likewise.runs.plugins import RECIPES_GROUP, Registry

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (ARCCSE, SIMCSE, SNCSE, GCLSR, LIGHT)}
"""The recipes of this library; others, such as exclusion and recipes for comparison, are registered by entry points."""

FUNCTIONS = {"characters": "likewise.train_characters", "contexts": "the functions of likewise.context"}
"""Commands of `likewise train` that are no recipes, since they take no base, and their functions."""

_ALL = Registry(RECIPES_GROUP, Recipe, "recipe", RECIPES)
recipe_names = _ALL.names


def find_recipe(recipe: str | Recipe) -> Recipe:
    """Return the recipe of a name, with precedence for this library's recipes; a `Recipe` is returned unchanged."""
    if isinstance(recipe, str) and recipe in FUNCTIONS:
        raise OptionError(f"{recipe} is not a recipe, since it takes no base: use {FUNCTIONS[recipe]}")
    return recipe if isinstance(recipe, Recipe) else RECIPES.get(recipe) or _ALL.find(recipe)
