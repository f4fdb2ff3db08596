"""The commands and the names in the documentation are those of the library."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

import likewise
from likewise.cli import build_app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = {"halves"}
"""Recipes of other packages."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_exists_with_its_options(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^(?: {4}|\$ )(likewise .*)$", text, re.MULTILINE)
    for line in blocks + re.findall(r"`(likewise [a-z][^`]*)`", text):
        command, words = get_command(build_app()), shlex.split(line.replace("...", ""), comments=True)[1:]
        while hasattr(command, "list_commands") and words and not words[0].startswith("-") and words[0] not in OTHERS:
            verb = words.pop(0)
            command = command.get_command(None, verb)
            assert command is not None, f"{line}: there is no {verb}"
        if not hasattr(command, "list_commands"):
            flags = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
            given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert given <= flags, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_of_a_page_can_be_imported(page):
    for dotted in re.findall(r"\blikewise((?:\.[a-zA-Z_]\w*)+)\(", page.read_text(encoding="utf-8")):
        first = dotted.split(".")[1]
        assert hasattr(likewise, first) or find_spec(f"likewise.{first}"), dotted
