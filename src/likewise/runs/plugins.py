"""Parts that other packages register by entry points, in addition to this library's."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Generic, TypeVar

from likewise.errors import LikewiseError, first_line
from likewise.runs.options import OptionError

_Part = TypeVar("_Part")

RECIPES_GROUP = "likewise.recipes"
"""The group of entry points by which an installed package registers recipes, and the modules of their encoders."""

MODULES_GROUP = "likewise.modules"
"""The group of entry points by which an installed package registers modules of models that no recipe makes."""

SCORERS_GROUP = "likewise.scorers"
"""The group of entry points by which an installed package registers what `likewise.evaluate` opens by NAME:PLACE."""

FORMATS_GROUP = "likewise.formats"
"""The group of entry points by which an installed package registers formats of documents."""

PARTS_GROUP = "likewise.search_parts"
"""The group of entry points by which an installed package registers parts of the search of an index."""

COMPARED = ("consert", "ct", "esimcse", "tsdae")
"""The names of recipes that the package `likewise-compared` registers."""

COMPARED_TASKS = ("afs",)
"""The tasks that it registers."""

COMPARED_SCORERS = ("bertscore", "cross-encoder")
"""The scorers that it registers."""


@cache
def entry_points_of(group: str) -> EntryPoints:
    """Return the entry points of a group; the files of all installed packages are read once in a process."""
    return entry_points(group=group)


def load_registered(entry: EntryPoint, kind: type[_Part], what: str, error: type[LikewiseError]) -> _Part:
    """Load an entry point of another package.

    Args:
        kind: Required class of the object.
        what: Name of the entry point in messages.
        error: Error that is raised if the entry point cannot be loaded or has another class; the message names the
            package.
    """
    named = f"{what} of the package {entry.dist.name if entry.dist else entry.value}"
    try:
        part = entry.load()
    except Exception as reason:
        raise error(
            f"{named} cannot be loaded ({type(reason).__name__}: {first_line(reason)}): update or remove that package"
        ) from reason
    if not isinstance(part, kind):
        raise error(f"{named} is not a {kind.__name__} but {type(part).__name__}")
    return part


def not_installed(name: str) -> str:
    """Return the message that the package of a name of `COMPARED` or of the lists after it is not installed."""
    return (
        f"{name} comes with the package likewise-compared, which is not installed: `pip install benchmarks/compared` "
        "in a checkout of likewise"
    )


@dataclass(frozen=True)
class Registry(Generic[_Part]):
    """The parts of one kind by their names: first this library's, then other packages'.

    Attributes:
        group: Group of entry points by which other packages register theirs.
        kind: Class of a part.
        noun: Name of a part in messages.
        own: Parts of this library.
    """

    group: str
    kind: type[_Part]
    noun: str
    own: Mapping[str, _Part]

    def names(self) -> list[str]:
        """Return the names of all parts."""
        return [*self.own, *sorted(self._registered())]

    def find(self, name: str) -> _Part:
        """Return the part of a name.

        Raises:
            OptionError: If there is none, and the message names a similar one, or the package that brings it; or what
                another package registers by that name cannot be loaded.
        """
        if name in self.own:
            return self.own[name]
        if entry := self._registered().get(name):
            return load_registered(entry, self.kind, f"the {self.noun} {name!r}", OptionError)
        if name in COMPARED:
            raise OptionError(not_installed(name))
        near = difflib.get_close_matches(name, self.names(), n=1)
        question = f": did you mean {near[0]}? Choose one" if near else "; choose one"
        raise OptionError(f"there is no {self.noun} {name!r}{question} of {', '.join(sorted(self.names()))}")

    def _registered(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points_of(self.group) if entry.name not in self.own}
