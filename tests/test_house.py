"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "likewise"
FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_file_is_named_for_its_subject(path: Path) -> None:
    assert path.stem not in ("utils", "helpers", "common")
    text = path.read_text(encoding="utf-8")
    assert "../shared" not in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_page_or_script_that_a_file_names_is_there(path: Path) -> None:
    named = re.findall(r"\b(?:docs|benchmarks)/[\w/.-]*\w\.(?:md|py)\b", path.read_text(encoding="utf-8"))
    assert [name for name in named if not (SOURCE.parents[1] / name).exists()] == []


def test_a_name_of_a_class_or_type_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                if name[0].isupper() and not name.isupper():  # CamelCase; constants are in capitals
                    places.setdefault(name, []).append(path.relative_to(SOURCE).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_an_encoder_that_is_loaded_to_measure_train_or_keep_names_its_precision() -> None:
    """What `load` takes by itself differs between machines, by up to the fourth digit of a cosine."""
    silent = set()
    for path in FILES:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = {name.name for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
        calls = [one for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
        mute = [one for one in calls if "precision" not in [word.arg for word in one.keywords]]
        if "load" in names and "load" in [one.func.id for one in mute if isinstance(one.func, ast.Name)]:
            silent.add(path.relative_to(SOURCE).as_posix())
    assert silent == set()
