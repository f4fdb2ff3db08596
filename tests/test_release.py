"""What a release says of itself agrees in all places."""

import re
import tomllib
from pathlib import Path

import likewise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    assert re.search(r"^version: (\S+)$", text("CITATION.cff"), re.MULTILINE)[1] == likewise.__version__
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[1] == likewise.__version__
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/likewise/version.py"


def test_a_release_before_the_first_is_no_stable_one():
    stage = next(one for one in PROJECT["project"]["classifiers"] if one.startswith("Development Status"))
    assert ("5" in stage) == bool(re.fullmatch(r"[1-9]\d*\.\d+\.\d+", likewise.__version__))


def test_every_extra_for_users_is_in_the_table_of_extras():
    extras = set(PROJECT["project"]["optional-dependencies"]) - {"dev", "docs"}
    pages = text("docs/get-started.md")
    table = {name for row in re.findall(r"^\| (`.*?) \|", pages, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)}
    assert extras - table == set()


def test_every_public_name_is_in_the_reference_that_is_called_stable():
    reference = text("docs/reference/python.md")
    public = {name for name in likewise.__all__ if not name.startswith("_")}
    assert {name for name in public if f"likewise.{name}" not in reference} == set()


def test_the_license_and_the_files_of_the_source_distribution_are_there():
    assert "Apache License" in text("LICENSE")
    for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (ROOT / name.lstrip("/")).exists(), name
