"""Parts that other packages register by entry points."""

from importlib.metadata import EntryPoint
from typing import TypeVar

from likewise.errors import LikewiseError, first_line

_Part = TypeVar("_Part")

RECIPES_GROUP = "likewise.recipes"
"""The group of entry points by which an installed package registers recipes, and the modules of their encoders."""


def is_of_likewise(entry: EntryPoint) -> bool:
    """Return whether an entry point leads into this package."""
    return entry.module.partition(".")[0] == "likewise"


def load_registered(entry: EntryPoint, kind: type[_Part], what: str, error: type[LikewiseError]) -> _Part:
    """Load an entry point of another package.

    Args:
        kind: the class that it has to be an instance of.
        what: the entry point in the words of a message.
        error: raised if the entry point cannot be loaded, or is of another kind; the message names the package.
    """
    named = f"{what} of the package {entry.dist.name if entry.dist else entry.value}"
    try:
        found = entry.load()
    except Exception as reason:
        raise error(
            f"{named} cannot be loaded ({type(reason).__name__}: {first_line(reason)}): update or remove that package"
        ) from reason
    if not isinstance(found, kind):
        raise error(f"{named} is not a {kind.__name__} but {type(found).__name__}")
    return found
