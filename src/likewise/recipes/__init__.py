"""The methods, and the only table of their names."""

from likewise.recipes.arccse import ARCCSE, SIMCSE
from likewise.recipes.consert import CONSERT
from likewise.recipes.ct import CT
from likewise.recipes.esimcse import ESIMCSE
from likewise.recipes.gclsr import GCLSR
from likewise.recipes.mask_distillation import MASK_DISTILLATION
from likewise.recipes.options import TrainingOptions
from likewise.recipes.recipe import Recipe
from likewise.recipes.sncse import SNCSE
from likewise.recipes.tsdae import TSDAE
from likewise.runs.options import OptionError

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (ARCCSE, SIMCSE, SNCSE, GCLSR, ESIMCSE, CONSERT, CT, TSDAE, MASK_DISTILLATION)
}

__all__ = ["RECIPES", "OptionError", "Recipe", "TrainingOptions", "find_recipe"]


def find_recipe(name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        OptionError: there is none; the message lists those there are.
    """
    if name not in RECIPES:
        raise OptionError(f"there is no recipe {name!r}; there are {', '.join(sorted(RECIPES))}")
    return RECIPES[name]
