"""Every printed command parses: those of the documentation and of the scripts' docstrings."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from likewise.cli import build_app

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in (ROOT / "benchmarks").rglob("*.md") if "notebook" not in path.parts),
]
SCRIPTS = [
    path
    for folder in ("benchmarks", "docs/pictures", "docs/notebooks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if re.search(r"^def parser\(\)", path.read_text(encoding="utf-8"), re.MULTILINE)
]
OTHERS = {"halves"}
"""Recipes of other packages."""


def commands_of(text: str, blocks: bool = True) -> Iterator[list[str]]:
    """Yield the words of each command of the indented blocks or, with `blocks` false, of those between backticks."""
    if blocks:
        lines = re.findall(r"^(?: {4,}|\$ )(?=\S)(.*)$", re.sub(r"\\\n\s*", " ", text), re.MULTILINE)
    else:
        prose = re.sub(r"^```.*?^```|^ {4}.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
        lines = [" ".join(line.split()) for one in prose.split("\n\n") for line in re.findall(r"`([^`]+)`", one)]
    for line in lines:
        for part in re.split(r"&&|;(?=\s|$)", line):
            # Before the program may stand a shell's word or a variable of the environment.
            start = re.match(r"\s*(?:(?:do|nice|time|[A-Z_]+=\S+)\s+)*(?=\S)", part)
            try:
                # A variable stands for what may be a number.
                words = shlex.split(re.sub(r"\$\w+", "1", part)[start.end() if start else 0 :], comments=True)
            except ValueError:  # prose or code
                continue
            if words:
                yield words


@cache
def command_of(*verbs: str):
    """The command of these verbs, None if there is none; the whole command line without verbs."""
    return command_of(*verbs[:-1]).get_command(None, verbs[-1]) if verbs else get_command(build_app())


def read_by_typer(words: list[str], whole: bool = True) -> None:
    """Parse a command of `likewise`; with `whole` false, its verb and its options alone: prose names a part of it."""
    command, line, words, verbs = command_of(), shlex.join(words), words[1:], []
    while hasattr(command, "list_commands") and words and not words[0].startswith("-") and words[0] not in OTHERS:
        verbs.append(words.pop(0))
        command = command_of(*verbs)
        assert command is not None, f"{line}: there is no {verbs[-1]}"
    if hasattr(command, "list_commands"):
        return
    if whole:
        try:
            command.make_context(line, words)
        except Exception as error:
            pytest.fail(f"{line}: {error}")
    flags = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
    unknown = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} - flags
    assert not unknown, f"{line}: there is no {', '.join(sorted(unknown))}"


def script_of(word: str) -> Path | None:
    """The script that a command or a sentence names, by its end where it is one of benchmarks/."""
    found = [path for path in SCRIPTS if f"/{path.relative_to(ROOT)}".endswith(f"/{word}")]
    return found[0] if found else None


def read_by_argparse(path: Path, words: list[str], opened, capsys) -> None:
    """Parse the arguments of a script by its own parser."""
    try:
        opened(path).parser().parse_args(words)
    except SystemExit as stopped:
        pytest.fail(f"{path.relative_to(ROOT)} {shlex.join(words)}: {capsys.readouterr().err or stopped}")


def check(words: list[str], opened, capsys, whole: bool = True) -> str | None:
    """Parse a command by the program's own parser and return its program, or None if it is none of ours."""
    if words[:1] == ["likewise"]:
        read_by_typer(words, whole)
    elif words[:1] == ["make"]:
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets), shlex.join(words)
    elif words[:1] == ["python"] and words[1:] and words[1].endswith(".py"):
        path = ROOT / words[1]
        assert path in SCRIPTS, f"{shlex.join(words)}: there is no such script, or it has no parser"
        read_by_argparse(path, words[2:], opened, capsys)
    elif words[1:] and words[0].endswith(".py") and (path := script_of(words[0])):
        read_by_argparse(path, words[1:], opened, capsys)
    else:
        return None
    return words[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_parses(page, script, capsys):
    text = page.read_text(encoding="utf-8")
    for words in commands_of(text):
        check(words, script, capsys)
    for words in commands_of(text, blocks=False):
        check(words, script, capsys, whole=False)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_says_how_it_is_called_and_its_parser_reads_that(path, script, capsys):
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")), clean=False) or ""
    told = [words for words in commands_of(said) if check(words, script, capsys) == "python"]
    assert any(words[1] == str(path.relative_to(ROOT)) for words in told), f"{path}: its docstring has no command"


@pytest.mark.parametrize(
    "line",
    [
        "python benchmarks/light.py --no-such-option",
        "python benchmarks/light.py --seeds one",
        "python benchmarks/no_such_script.py",
        "likewise no-such-verb",
        "likewise evaluate --no-such-option",
        "likewise train simcse",
        "make no-such-target",
    ],
)
def test_a_command_that_is_wrong_is_found(line, script, capsys):
    (words,) = commands_of(f"    {line}\n")
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(words, script, capsys)


def test_commands_are_found_where_a_shell_has_them():
    text = "    for s in 1; do\n      X=1 nice likewise index a --seed $s\n    done; make docs && "
    text += "python b.py 'y z' \\\n --w # why\n"
    found = list(commands_of(text))
    assert ["make", "docs"] in found
    assert ["python", "b.py", "y z", "--w"] in found
    assert ["likewise", "index", "a", "--seed", "1"] in found
