"""Stand-ins for packages that take seconds to import, while only options and help texts are needed."""

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from likewise.cli.groups import HELP
from likewise.runs.registered import RECIPES_GROUP, is_of_likewise

_SLOW = {
    "numpy",
    "pytorch_optimizer",
    "safetensors",
    "scipy",
    "sentence_transformers",
    "tokenizers",
    "torch",
    "transformers",
}
_GROUPS = (["train"], ["finetune"], ["baseline"])
"""Command lines that print the help without being asked for it."""


def avoid_slow_imports(arguments: Sequence[str]) -> None:
    """Replace slow packages by stand-ins if this process will only complete a command line or print help.

    The module of a recipe from another package may do with torch what a stand-in cannot: then nothing is replaced.
    """
    completing = "_LIKEWISE_COMPLETE" in os.environ
    line = os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split() if completing else arguments
    before = list(line[: line.index("--")] if "--" in line and not completing else line)
    others = {entry.name for entry in entry_points(group=RECIPES_GROUP) if not is_of_likewise(entry)}
    if (completing or {*HELP} & {*before} or before in _GROUPS) and not others & {*before}:
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder, Loader):
    """A finder of empty modules for each slow package and everything in it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        slow = fullname.partition(".")[0] in _SLOW
        return ModuleSpec(fullname, self, is_package=True) if slow else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Anything(type):
    """The class of stand-ins: they can be called, subclassed, asked for any attribute, and used as a decorator."""

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        if cls is not _StandIn:  # a subclass of one is a class like any other
            return super().__call__(*arguments, **named)
        return arguments[0] if arguments and callable(arguments[0]) else cls

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    __ror__ = __or__


class _StandIn(metaclass=_Anything):
    pass


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn
