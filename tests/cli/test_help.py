"""`likewise --help`, and what a shell offers on TAB."""

import json
import os
import subprocess
import sys

import pytest

HEADINGS = ["Train and adapt:", "Use:", "Measure:", "Contexts:", "Text, data and cache:"]


def test_the_help_groups_the_verbs_and_each_of_them_has_a_help_text(cli):
    lines = cli("--help").stdout.splitlines()
    assert [line for line in lines if line in HEADINGS] == HEADINGS
    below = lines[lines.index(HEADINGS[0]) :]
    verbs = [line.split()[0] for line in below if line.startswith("  ") and line[2] != " "]
    assert {"adapt", "train", "search", "evaluate", "context", "cache"} <= set(verbs)
    assert len(verbs) == len(set(verbs))
    for verb in verbs:
        assert cli(verb, "--help").exit_code == 0, verb


@pytest.mark.parametrize(("line", "meant"), [(["adpt"], "adapt"), (["train", "arcse", "x.txt"], "arccse")])
def test_a_misspelt_command_names_the_one_that_was_meant(line, meant, cli):
    done = cli(*line)
    assert done.exit_code == 2
    assert f"Did you mean '{meant}'" in done.stderr


PAGES = """
import json, sys
from typer.main import get_command
from likewise.cli import build_app
from likewise.cli.stand_ins import avoid_slow_imports

def pages(command, name):
    yield name, command.get_help(command.context_class(command, info_name=name))
    for one in getattr(command, "list_commands", lambda _: [])(None):
        yield from pages(command.get_command(None, one), f"{name} {one}")

avoid_slow_imports(sys.argv[1:])
found = dict(pages(get_command(build_app()), "likewise"))
torch = hasattr(sys.modules["torch"], "__file__")
print(json.dumps({"pages": found, "torch": torch}))
"""


def test_the_help_without_torch_is_the_help_with_it():
    def found(*arguments: str) -> dict:
        done = subprocess.run([sys.executable, "-c", PAGES, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    fast, slow = found("--help"), found()
    assert slow["torch"]
    assert not fast["torch"]
    assert len(fast["pages"]) > 40
    assert fast["pages"] == slow["pages"]


def offered(line: str) -> list[str]:
    """Return what bash is told to offer at the end of a line."""
    words = line.split(" ")
    shell = {"_LIKEWISE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    code = "import sys; sys.argv[0] = 'likewise'; from likewise.cli import main; main()"
    found = subprocess.run([sys.executable, "-c", code], env=os.environ | shell, capture_output=True, text=True)
    return found.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("likewise ev", ["evaluate"]),
        ("likewise se", ["search", "serve", "sections"]),
        ("likewise cache c", ["clear"]),
        ("likewise sections --sk", ["--skip"]),
        ("likewise train sn", ["sncse"]),
        ("likewise finetune tr", ["triplets"]),
        ("likewise baseline wh", ["whitening"]),
        ("likewise train arccse --triplet-w", ["--triplet-weight"]),
        ("likewise analyze errors --t", ["--task"]),
    ],
)
def test_a_shell_completes_verbs_and_options(line, expected):
    assert offered(line) == expected


def test_a_command_that_needs_no_model_starts_without_torch(tmp_path):
    code = (
        "import sys\n"
        "from likewise.cli import main\n"
        "sys.argv = ['likewise', 'cache', 'show']\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print('torch' in sys.modules)"
    )
    place = {**os.environ, "LIKEWISE_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=place, check=False)
    assert done.returncode == 0
    assert done.stdout.split()[-1] == "False"
