"""`likewise --help`, and what a shell offers on TAB."""

import inspect
import os
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import likewise
from likewise.cli import build_app

HEADINGS = ["Train and adapt:", "Use:", "Measure:", "Text, data and cache:"]


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


def test_the_four_papers_stand_first_with_authors_and_year(cli):
    lines = cli("train", "--help").stdout.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options:", "The four papers:", "This library's:", "To compare with:"]
    papers = lines[lines.index("The four papers:") + 1 : lines.index("This library's:")]
    assert [line.split()[0] for line in papers if line[2:3].strip()] == ["arccse", "sncse", "gclsr", "contexts"]
    assert all(f" {year}, " in " ".join(papers) for year in (2022, 2023))


def test_contexts_show_their_stages(cli):
    done = cli("train", "contexts", "--help")
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  index")] == ["index"]
    done = cli("train", "contexts", "--corpus", "x.txt")
    assert done.exit_code == 2
    assert "No such option" in done.stderr


def test_a_recipes_help_shows_its_own_options_and_help_all_shows_the_others(cli):
    short, whole = cli("train", "arccse", "--help").stdout, cli("train", "arccse", "--help-all").stdout
    for name in ("--margin", "--triplet-weight", "--mask-closer", "--temperature", "--corpus", "--preset"):
        assert name in short
        assert name in whole
    for name in ("--learning-rate", "--max-steps", "--overwrite", "--deduplicate", "--config"):
        assert name not in short
        assert name in whole
    assert [line for line in whole.splitlines() if line in ("The method:", "Training:", "Corpus and jobs:")] == [
        "The method:",
        "Training:",
        "Corpus and jobs:",
    ]
    for name in likewise.RECIPES["arccse"].presets:
        assert f"\n  {name} " in short


def test_every_preset_of_this_library_says_what_it_is():
    assert not [name for name, one in likewise.RECIPES.items() if {*one.presets} != {*one.preset_notes}]


PAGES = """
import sys
from typer.main import get_command
from likewise.cli import build_app

def pages(command, name):
    yield command.get_help(command.context_class(command, info_name=name))
    for one in getattr(command, "list_commands", lambda _: [])(None):
        yield from pages(command.get_command(None, one), f"{name} {one}")

print(len(list(pages(get_command(build_app()), "likewise"))))
print(*(name for name in ("torch", "transformers", "numpy") if name in sys.modules))
"""


def test_no_help_waits_for_torch():
    done = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True)
    pages, imported = done.stdout.split("\n")[:2]
    assert int(pages) > 40
    assert imported == ""


CALLED = {
    "adapt": likewise.adapt,
    "choose": likewise.choose,
    "compare": likewise.compare,
    "context distill": likewise.distill,
    "duplicates": likewise.duplicates,
    "encode": likewise.encode_file,
    "evaluate": likewise.evaluate,
    "export": likewise.export,
    "finetune sts": likewise.finetune,
    "index": likewise.index,
    "search": likewise.search,
    "serve": likewise.serve,
    "train arccse": likewise.train,
}
OF_ITS_OWN = {
    ("encode", "out"): "vectors.npy",
    ("encode", "engine"): "auto",
    ("encode", "precision"): "auto",
    ("compare", "seeds"): "1,2,3",
}


@pytest.mark.parametrize("line", CALLED)
def test_the_options_of_a_command_are_those_of_its_function(line):
    """Each parameter of the function is an option, unless the command fixes it; one with a default has the same."""
    command = get_command(build_app())
    for word in line.split():
        command = command.get_command(None, word)
    options = {option.name: option for option in command.params}
    fixed = {"corpus_options", "recipe", "objective", "name", "on_result", *(["quiet"] if line == "evaluate" else [])}
    for name, parameter in inspect.signature(CALLED[line]).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD or name in fixed:
            continue
        option = options[name]
        if (line, name) in OF_ITS_OWN:
            assert option.default == OF_ITS_OWN[line, name]
        elif option.required or name == "base":  # which a method chooses
            continue
        elif parameter.default in (None, "", (), parameter.empty):
            assert option.default in (None, [], ""), name
        elif name == "resume":
            assert not option.default
        elif isinstance(parameter.default, tuple):
            assert tuple(option.default) == parameter.default
        else:
            assert option.default == parameter.default, name


def offered(line: str) -> list[str]:
    """Return what bash is told to offer at the end of a line."""
    words = line.split(" ")
    shell = {"_LIKEWISE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return CliRunner().invoke(build_app(), env=shell, prog_name="likewise").stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("likewise ev", ["evaluate"]),
        ("likewise se", ["search", "serve", "sections"]),
        ("likewise cache c", ["clear"]),
        ("likewise sections --sk", ["--skip"]),
        ("likewise train sn", ["sncse"]),
        ("likewise finetune tr", ["triplets"]),
        ("likewise train arccse --triplet-we", ["--triplet-weight"]),
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
