"""The front matter of a text: the values that it gives of itself before its first line."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar

from likewise.corpus.sentence_splitter import Placed
from likewise.runs.whole_files import Record

_DEEPEST = 50
"""Number of brackets in brackets."""
_LINES, _CHARACTERS = 5000, 1 << 17
"""Numbers of lines and of characters beyond which it is text."""

_PLAIN = {
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?(?:0|[1-9][0-9]*)",
    "float": r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
}
"""Plain words of YAML 1.2 that are no text."""


def front_matter(lines: Iterable[Placed]) -> tuple[Record, list[Placed]]:
    """Return the values in the front matter of a text, and the lines that were read for it and do not belong to it.

    Front matter is YAML between a first line of '---' and a line of '---' or '...'. What is no mapping is text.

    >>> front_matter(enumerate(["---", "title: Pumps", "tags: [oil, seal]", "---", "Text."], 1))
    ({'title': 'Pumps', 'tags': ['oil', 'seal']}, [])
    """
    lines_read: list[Placed] = []
    size = 0
    for number, line in lines:
        lines_read.append((number, line))
        size += len(line)
        text = line.rstrip()
        if len(lines_read) == 1 and text != "---":
            break
        if len(lines_read) > 1 and text in ("---", "..."):
            values = _yaml("\n".join(front for _, front in lines_read[1:-1]))
            return (values, []) if values is not None else ({}, lines_read)
        if len(lines_read) > _LINES or size > _CHARACTERS:
            break
    return {}, lines_read


@cache
def _loader() -> Any:
    """Return PyYAML's loader with YAML 1.2's numbers, true and false.

    In YAML 1.1, which PyYAML reads, 01234 is 668, 10:30 is 630, and no is false.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: ClassVar = {
            char: [kind for kind in kinds if kind[0].rpartition(":")[2] not in _PLAIN]
            for char, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: object, index: object) -> object:
            if self.check_event(yaml.AliasEvent):  # a few lines of them may stand for gigabytes
                raise yaml.YAMLError("an alias")
            return super().compose_node(parent, index)

    for name, pattern in _PLAIN.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{pattern})\Z"), "tTfF-+.0123456789")
    return Loader


def _yaml(text: str) -> Record | None:
    """Return the values of a mapping in YAML, what is nested deeper as text; None if it is none."""
    import yaml

    # The parser takes quadratic time for brackets in brackets.
    if max(accumulate((char in "[{") - (char in "]}") for char in text), default=0) > _DEEPEST:
        return None
    try:
        values = yaml.load(text, _loader())
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return {str(name): _value(value) for name, value in values.items()} if isinstance(values, Mapping) else None


def _value(value: object) -> object:
    if isinstance(value, list):
        return [item if isinstance(item, int | float) else str(item) for item in value]
    return str(value) if isinstance(value, Mapping) else value
