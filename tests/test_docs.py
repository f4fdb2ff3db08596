"""The names and figures in the documentation are those of the library and of its measurements."""

import json
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, stdev

import pytest

import likewise
from likewise.comparison.methods import parse_methods

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_of_a_page_can_be_imported(page):
    for dotted in re.findall(r"\blikewise((?:\.[a-zA-Z_]\w*)+)\(", page.read_text(encoding="utf-8")):
        first = dotted.split(".")[1]
        assert hasattr(likewise, first) or find_spec(f"likewise.{first}"), dotted


SINGLE_SENTENCES, PASSAGES = ("threats", "patents", "biomedicine", "tweets"), ("aviation", "exclusion", "regulation")


def averages(pattern: str) -> list[float]:
    return [read(path)["average"] for path in sorted(RESULTS.glob(pattern))]


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_methods_of_the_comparison_still_exist_with_their_options():
    found = tomllib.loads((ROOT / "benchmarks/comparison.toml").read_text(encoding="utf-8"))["methods"]
    assert len(parse_methods(found)) == len(found)


def test_the_figures_of_the_readme_are_those_of_the_recorded_results():
    security = {name: one["ndcg@10"] for name, one in read(RESULTS / "security/ranks.json")["methods"].items()}
    tables = [read(path)["rows"] for path in (RESULTS / "context-pretrained").glob("whole-*.json")]
    origin = {
        terms: mean(next(score for name, score in row.items() if name != "terms") for row in rows)
        for terms in ("cosine", "cosine+words")
        if (rows := [row for table in tables for row in table if "+".join(row["terms"]) == terms])
    }
    negation = [
        read(path)["scores"]["semantoneg"] for path in sorted(RESULTS.glob("sncse-sts/*preset-negation-*.json"))
    ]
    cells = [json.loads(line) for line in (RESULTS / "domains/cells.jsonl").read_text(encoding="utf-8").splitlines()]
    tested = [cell for cell in cells if (cell["set"], cell["part"]) == ("exclusion", "test")]
    excluding = [cell["score"] for cell in tested if cell["arm"].startswith("`exclusion`")]
    score = {(cell["arm"], cell["set"]): cell["score"] for cell in cells if cell["part"] == "test"}
    kept = [score["exclusion, Wikipedia sample, seed 1", name] for name in SINGLE_SENTENCES]  # `adapt` keeps its base
    both = [
        mean([*kept, *(score[f"exclusion, then adapt, seed {seed}", name] for name in PASSAGES)]) for seed in (1, 2, 3)
    ]
    (shipped,) = [cell["score"] for cell in tested if cell["arm"] == "base"]
    rows = (
        f"78.87 to {mean(averages('exclusion/*.json')):.2f}) | {shipped:.1f} | {mean(excluding):.1f} |",
        f"same seven domains | 61.18 | {mean(both):.2f} ± {stdev(both):.2f} |",
        f"(BM25: {security['BM25']:.1f}) | {security['base']:.1f} |",
        f"combined | {security['base and BM25']:.2f} | {security['adapted and BM25']:.2f} |",
        f"| {origin['cosine']:.2f} | {origin['cosine+words']:.2f} |",
        f"| {mean(negation):.1f} |",
        *(
            f"| {mean(found):.2f} ± {stdev(found):.2f} |"
            for found in map(
                averages,
                (
                    "sncse-sts/sncse-a-mask-for-each-seed-*.json",
                    "light/light-[1-3].json",
                    "context-students/surrogate-[1-3].json",
                    "context-teach/-cls-profile-[1-3].json",
                ),
            )
        ),
    )
    for row in rows:
        assert row in PAGES[0].read_text(encoding="utf-8")
