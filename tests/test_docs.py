"""The pages say what is there: names exist, the Python of README and guides runs, and the whole stays short."""

import ast
import gzip
import json
import re
import shutil
import sys
import tomllib
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

import likewise
from likewise.adaptation import adaptation_flow
from likewise.adaptation.head import HeadTrainingOptions
from likewise.recipes import find_recipe
from likewise.training.methods import parse_methods

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted(DOCS.rglob("*.md")),
]
RUN = [ROOT / "README.md", DOCS / "get-started.md", DOCS / "extend.md", *sorted((DOCS / "guides").glob("*.md"))]
NOT_RUN = re.compile(r"<!-- not run: .+ -->\n```python")
"""What stands before a block that needs a network or a service."""

SMALL = {'"bundled:wiki-sample"': '"wiki.txt.gz"', '"sts"': '"pairs:pairs.tsv"', "minutes=15": "passages=120"}
"""What a test has in the place of a larger text."""
TRAINING = re.compile(r'(likewise\.train\([^)]*out="[^"]+")')


def blocks_of(page: Path) -> list[str]:
    """Return the blocks of Python that can run."""
    text = NOT_RUN.sub("```text", page.read_text(encoding="utf-8"))
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_of_a_page_can_be_imported(page):
    for dotted in re.findall(r"\blikewise((?:\.[a-zA-Z_]\w*)+)\(", page.read_text(encoding="utf-8")):
        first = dotted.split(".")[1]
        assert hasattr(likewise, first) or find_spec(f"likewise.{first}"), dotted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_script_and_module_that_a_page_names_is_there(page):
    for path in re.findall(r"`(?:python )?((?:[a-z_0-9]+/)+[a-z_0-9]+\.(?:py|md))\b", page.read_text(encoding="utf-8")):
        assert any((folder / path).exists() for folder in (ROOT, ROOT / "src/likewise", ROOT / "benchmarks")), path


def test_the_methods_of_the_comparison_still_exist_with_their_options():
    methods = tomllib.loads((ROOT / "benchmarks/comparison.toml").read_text(encoding="utf-8"))["methods"]
    assert len(parse_methods(methods)) == len(methods)


def test_the_readme_fits_a_screen_or_two_and_has_two_commands_that_set_up():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    assert re.findall(r"^    make (\w+)", text, re.MULTILINE) == ["demo", "test"]


def test_the_site_can_be_read_in_two_hours():
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in PAGES}
    assert sum(words.values()) <= 30_000, words
    assert words[DOCS / "results.md"] <= 1_500


@pytest.mark.parametrize(("what", "block"), [("a recipe", 0), ("an evaluation task", 2), ("a file format", 4)])
def test_the_page_on_extending_counts_the_names_that_are_needed(what, block):
    taken = {}
    for node in ast.walk(ast.parse(blocks_of(DOCS / "extend.md")[block])):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("likewise"):
            taken.setdefault(node.module, []).extend(name.name for name in node.names)
    text = (DOCS / "extend.md").read_text(encoding="utf-8")
    names, modules = re.search(rf"\| {what} \| (\d+) of (\d+) modules? \|", text).groups()
    assert (int(names), int(modules)) == (sum(map(len, taken.values())), len(taken))


@pytest.mark.parametrize("name", ["arccse", "sncse", "gclsr"])
def test_the_page_of_a_system_names_options_and_presets_that_its_recipe_has(name):
    text = (DOCS / f"systems/{name}.md").read_text(encoding="utf-8")
    presets = find_recipe(name).presets
    known = {option for preset in presets.values() for option in type(preset).model_fields}
    rows = re.findall(r"^\| (`[^|]*?`) \|", text, re.MULTILINE)
    named = {option for row in rows for option in re.findall(r"`([a-z_]+)`", row)}
    assert len(named) > 10
    assert named <= known
    assert set(re.findall(r"--preset ([a-z-]+)", text)) <= set(presets)


EXAMPLES = [name for name in likewise.__all__ if callable(getattr(likewise, name)) and name != "LikewiseError"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_public_name_has_an_example(name):
    text = getattr(likewise, name).__doc__ or ""
    assert ">>> " in text
    assert "+SKIP" not in text


def test_few_blocks_are_not_run():
    assert sum(len(NOT_RUN.findall(page.read_text(encoding="utf-8"))) for page in RUN) <= 4


@pytest.fixture
def desk(tmp_path, monkeypatch, sentences, saved_model, word_model):
    """A folder with what the pages name, in which a page's Python runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LIKEWISE_EXPORTS", "never")
    monkeypatch.setitem(sys.modules, "umap", None)  # which is compiled for a minute; BERTopic then takes PCA
    monkeypatch.setattr(adaptation_flow, "HeadTrainingOptions", partial(HeadTrainingOptions, steps=10, batch_size=32))
    with gzip.open("wiki.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(sentences) + "\n")
    Path("messages.txt").write_text("\n".join(sentences[:60]) + "\n", encoding="utf-8")
    pairs = [f"{place % 6}\t{first}\t{sentences[place + 1]}" for place, first in enumerate(sentences[:20])]
    Path("pairs.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    Path("my-text").mkdir()
    for number in range(0, 360, 3):
        title = sentences[-1 - number // 3].split(" and ")[0]
        text = f"# {title}\n\n{' '.join(sentences[number : number + 3])}\n"
        Path(f"my-text/{number}.md").write_text(text, encoding="utf-8")
    Path("my-set/qrels").mkdir(parents=True)
    documents = [{"_id": f"d{place}", "text": text} for place, text in enumerate(sentences[:20])]
    queries = [{"_id": f"q{place}", "text": sentences[place][:40]} for place in range(5)]
    for name, rows in (("corpus", documents), ("queries", queries)):
        Path(f"my-set/{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    Path("my-set/qrels/test.tsv").write_text(
        "".join(f"q{place}\td{place}\t1\n" for place in range(5)), encoding="utf-8"
    )
    return tmp_path


@pytest.mark.parametrize("page", [page for page in RUN if blocks_of(page)], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page, desk, saved_model, indexed):
    blocks = blocks_of(page)
    text = "\n".join(blocks)
    for folder, made in (("runs/arc", saved_model), ("my.index", indexed)):
        if f'out="{folder}"' not in text:
            shutil.copytree(made, desk / folder)
    names, model = {"__name__": "page"}, repr(str(saved_model))
    models = {'"bundled:minilm"': model, 'adapt("my-text/", ': f'adapt("my-text/", base={model}, '}
    for block in blocks:
        for larger, smaller in (SMALL | models).items():
            block = block.replace(larger, smaller)
        block = TRAINING.sub(r"\1, max_steps=4", block)
        for wanted in re.findall(r"^(?:from|import) (langchain_core|llama_index|haystack)\b", block, re.MULTILINE):
            if find_spec(wanted) is None:  # tests/test_ecosystem.py says so
                break
        else:
            exec(compile(block, str(page), "exec"), names)
