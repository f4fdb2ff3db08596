"""`likewise --help`, and what a shell offers on TAB."""

import os
import subprocess
import sys

import pytest

from likewise.cli import names

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


def test_the_names_in_the_help_are_those_of_the_library():
    from likewise.baselines import BASELINES
    from likewise.recipes import RECIPES
    from likewise.training.objectives import OBJECTIVES

    for shown, known in ((names.RECIPES, RECIPES), (names.OBJECTIVES, OBJECTIVES), (names.BASELINES, BASELINES)):
        assert shown == {name: one.summary for name, one in known.items()}


@pytest.mark.parametrize("verb", ["train", "finetune", "baseline"])
def test_names_are_completed_without_torch(verb):
    code = (
        "import sys; from likewise.cli import build_app; from typer.main import get_command as made\n"
        f"group = made(build_app()).get_command(None, {verb!r})\n"
        "context = group.make_context('x', [], resilient_parsing=True)\n"
        "offered = [one.value for one in group.shell_complete(context, '')]\n"
        "print(*offered, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *offered, torch = done.stdout.split()
    assert offered
    assert torch == "False"


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
