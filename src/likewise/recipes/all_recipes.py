"""The table of this library's recipes, and recipes that other packages register."""

from likewise.recipes.arccse import ARCCSE, SIMCSE
from likewise.recipes.exclusion import EXCLUSION
from likewise.recipes.gclsr import GCLSR
from likewise.recipes.light import LIGHT
from likewise.recipes.recipe import Recipe
from likewise.recipes.sncse import SNCSE
from likewise.runs.options import OptionError
from likewise.runs.plugins import RECIPES_GROUP, Registry

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (ARCCSE, SIMCSE, SNCSE, GCLSR, EXCLUSION, LIGHT)}
"""The recipes of this library. Recipes of other papers for comparison are registered like any package's."""

_ALL = Registry(RECIPES_GROUP, Recipe, "recipe", RECIPES)
recipe_names = _ALL.names


def recipe_summaries() -> dict[str, tuple[str, str]]:
    """Return the source and the summary of each recipe by its name; of one that cannot be loaded, what is wrong."""
    summaries = {}
    for name in recipe_names():
        try:
            recipe = find_recipe(name)
            summaries[name] = (recipe.source, recipe.summary)
        except OptionError as error:
            summaries[name] = ("", str(error))
    return summaries


def find_recipe(recipe: str | Recipe) -> Recipe:
    """Return the recipe of a name, with precedence for this library's; a `Recipe` is returned unchanged."""
    return recipe if isinstance(recipe, Recipe) else RECIPES.get(recipe) or _ALL.find(recipe)
