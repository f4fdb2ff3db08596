"""The committed results have the layout that their scripts write now."""

import json
import sys
from argparse import Namespace
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import likewise
from likewise.corpus.weaknesses import Weakness

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RESULTS = BENCHMARKS / "results"
TABLES = {
    "arccse-sts": "arccse_sts.py",
    "sncse-sts": "sncse_sts.py",
    "exclusion": "exclusion.py",
    "light": "light.py",
    "gclsr-sts": "gclsr/sts.py",
    "raw-start": "raw_start.py",
    "context-students": "context/surrogate.py",
    "context-surrogate": "context/surrogate.py",
}
RUNS = [path for folder in TABLES for path in sorted((RESULTS / folder).rglob("*.json")) if path.stem != "start"]
OTHERS = {
    "adapt-beside-bm25",
    "adapt-layers",
    "adapt-measures",
    "adapt-teacher",
    "adapt-untrained",
    "attack",
    "choosing",
    "context-frozen",
    "context-origin",
    "context-pretrained",
    "context-tables",
    "context-teach",
    "domains",
    "duplicates",
    "indexing",
    "queries",
    "topics",
    "searching",
    "security",
    "speed",
    "sncse-figures",
    "arccse-grid",
}


def read(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def has_layout(found, written, where: str = "") -> None:
    """Assert that what was found has all that is written now; it may have more, and null where a value was not kept."""
    if isinstance(written, dict):
        assert isinstance(found, dict), f"{where}: {type(found).__name__} in place of an object"
        assert set(written) <= set(found), f"{where}: no {', '.join(sorted(set(written) - set(found)))}"
        for name, value in written.items():
            has_layout(found[name], value, f"{where}.{name}")
    elif isinstance(written, list | tuple):
        assert isinstance(found, list | None), f"{where}: {type(found).__name__} in place of a list"
        for number, value in enumerate(found or []):
            has_layout(value, written[0], f"{where}[{number}]")
    elif found is not None and written is not None:
        kinds = (int, float) if isinstance(written, int | float) else type(written)
        assert isinstance(found, kinds), f"{where}: {type(found).__name__} in place of {type(written).__name__}"


def test_every_folder_of_results_is_named_here():
    assert {path.name for path in RESULTS.iterdir() if path.is_dir()} == {*TABLES, *OTHERS}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_a_run_of_a_table_has_the_layout_of_today_and_lies_where_it_is_looked_for(path, script, monkeypatch):
    table = script(BENCHMARKS / TABLES[path.relative_to(RESULTS).parts[0]])
    arms, found = script(BENCHMARKS / "arms.py"), read(path)
    every = {**table.ARMS, **getattr(table, "OTHERS", {})}
    assert found["arm"] in every
    assert path == arms.result_path(path.parent, found["arm"], found["seed"])
    args = table.parser().parse_args(["--arm", found["arm"], "--seed", str(found["seed"])])
    written = arms.record(args, {}, found["scores"], 1.0)
    if "options" in found and "pairs" not in found and "before" not in found:
        record = {"options": {}}
        monkeypatch.setattr(likewise, "train", lambda *a, **k: SimpleNamespace(best=None, steps=1, record=record))
        monkeypatch.setattr(arms, "Recipe", str)
        written |= arms.train(arms.Arm("simcse"), args, path.parent)
    elif "options" in found:
        record = {"before": {}, "best": None, "options": {}, "corpus": {}, **({"test": {}} if "test" in found else {})}
        record["corpus"] |= {"splits": found["pairs"]} if "pairs" in found else {}
        written |= table.facts(SimpleNamespace(record=record))
    has_layout(found, written)
    if "average" in found and found["average"] is not None:
        assert found["average"] == pytest.approx(np.mean([found["scores"][task] for task in arms.STS]), abs=1e-6)


def test_what_origin_writes_is_what_is_committed(script, tmp_path, monkeypatch):
    origin = script(BENCHMARKS / "context/origin.py")
    rng = np.random.default_rng(0)
    for name in (*(f"two-step-0-{task}-all" for task in (origin.DEV, *origin.SEVEN)),
                 *(f"{way}-20-{task}" for way in ("two-step", "without-diversity", "random")
                   for task in (f"{origin.DEV}-400", f"{origin.TEST}-500"))):  # fmt: skip
        np.savez(tmp_path / f"{name}.npz", f=rng.normal(size=(30, len(origin.FEATURES))), g=rng.uniform(0, 5, 30))
    monkeypatch.setattr(sys, "argv", ["origin.py", "--out", str(tmp_path)])
    origin.main()
    written = read(tmp_path / "origin.json")
    has_layout(read(RESULTS / "context-frozen/origin.json"), written)
    has_layout(read(RESULTS / "context-frozen/table7.json")["rows"], written["terms"])


@pytest.mark.parametrize("path", sorted((RESULTS / "context-origin").glob("*.json")), ids=lambda path: path.stem)
def test_what_origin_paper_writes_is_what_is_committed(path, script):
    origin = script(BENCHMARKS / "context/origin_paper.py")
    rng = np.random.default_rng(0)
    pairs = [rng.normal(size=(2, 4, len(origin.TERMS))) for _ in range(10)]
    made = origin.Scored(pairs, np.full(10, 2), rng.uniform(0, 5, 10))
    has_layout(read(path)["rows"], [origin.row("all", made, made, 2)])


def test_what_pretrained_writes_is_what_is_committed(script, tmp_path, monkeypatch):
    pretrained, rng = script(BENCHMARKS / "context/pretrained.py"), np.random.default_rng(0)
    terms = rng.normal(size=(2, 5, 4))
    one, other = terms
    apart = one[3:].mean(axis=0) - one[:3].mean(axis=0) + other[:3].mean(axis=0) - other[3:].mean(axis=0)
    np.testing.assert_allclose(pretrained.crossed(terms, 3), apart)
    assert not pretrained.crossed(terms, 5).any(), "the second sentence has no context"
    for task in ("own-text", "sts-b-dev"):
        for name, width in (("", 7), ("crossed-", 4)):
            np.savez(tmp_path / f"{task}-{name}150-5.npz", f=rng.normal(size=(30, width)), g=rng.uniform(0, 5, 30))
    given = ["--tasks", "sts-b-dev", "--contexts", "5", "--limit", "150", "--crossed", "--terms", "cosine", "coherence"]
    monkeypatch.setattr(sys, "argv", ["pretrained.py", "--out", str(tmp_path), *given, *pretrained.MODEL])
    pretrained.main()
    written = read(tmp_path / "pretrained.json")
    assert [row["terms"] for row in written["rows"][-2:]] == [["cosine", "left, crossed"], ["cosine", "right, crossed"]]
    has_layout(read(RESULTS / "context-pretrained/smollm2.json"), written)


def test_the_tables_of_contexts_are_written_as_they_are_committed(script, tmp_path, monkeypatch):
    names = ("cases", "amount", "sections")
    cases, amount, sections = (script(BENCHMARKS / f"context/{name}.py") for name in names)
    rng = np.random.default_rng(0)
    pairs = [(f"{words} {i}", "another") for i in range(10) for words in cases.PAPERS.values()]
    features = rng.normal(size=(len(pairs), len(cases.FEATURES)))
    origin = SimpleNamespace(features=lambda some, wanted: features[: len(some)])
    for table in (cases, amount):
        monkeypatch.setattr(table, "features", lambda *_: (features, np.arange(20.0)))
    monkeypatch.setattr(cases, "drawn", lambda *_: (pairs, np.arange(20.0)))
    monkeypatch.setattr(cases, "opened", lambda *_: origin)
    scores = {name: rng.normal(size=22) for name in ("student", "base")}
    monkeypatch.setattr(cases, "scores_of", lambda *_: scores)
    stage = SimpleNamespace(record={"documents": 1, "sentences": 9, "contexts": 7, "held_out": {"accuracy": 0.7}})
    for name in ("build_index", "read_states", "train_discriminator"):
        monkeypatch.setattr(amount, name, lambda *_: stage)
    for table, *more in ((cases, "--student", "any"), (amount, "--documents", "1", "--terms", "cosine", "coherence")):
        monkeypatch.setattr(sys, "argv", ["table.py", "--out", str(tmp_path), *more])
        table.main()
    written = {name: read(tmp_path / f"{name}.json") for name in names[:2]}
    assert [row["kind"] for row in written["cases"]["rows"]] == ["the paper's"] * 2 + ["nearer"] * 3 + ["farther"] * 3
    written["sections"] = {"contexts": 1, "precision": "bf16", "rows": [sections.row("one", 0.5, 100)]}
    assert written["sections"]["rows"][0]["error"] == pytest.approx(5)
    for name, found in written.items():
        for path in (RESULTS / "context-tables").glob(f"{name}*.json"):
            has_layout(read(path), found)


def test_the_cells_of_domains_are_results_of_today():
    from likewise.evaluation.tasks.classes import ClassesResult
    from likewise.evaluation.tasks.retrieval import RetrievalResult

    kinds = {"retrieval": RetrievalResult, "classes": ClassesResult}
    for line in (RESULTS / "domains/cells.jsonl").read_text(encoding="utf-8").splitlines():
        cell = json.loads(line)
        kind = kinds.get(cell["name"].split(":")[0], likewise.evaluation.TaskResult)
        wanted = {"arm", "set", "part", "model", "machine", "versions", *(field.name for field in fields(kind))}
        assert wanted <= set(cell), cell["arm"]


def test_what_security_writes_is_what_is_committed(script, tmp_path, monkeypatch, sentences, saved_model):
    security = script(BENCHMARKS / "security.py")
    rows = [Weakness(str(i), text, [text], [text], [f"{text} {i}"], "") for i, text in enumerate(sentences[:40])]
    candidate = SimpleNamespace(**read(RESULTS / "security/ranks.json")["candidates"][0])
    adapted = Namespace(model=likewise.load(saved_model), chosen="base", candidates=[candidate])
    monkeypatch.setattr(security, "read_weaknesses", lambda: rows)
    monkeypatch.setattr(security, "BASE", str(saved_model))
    monkeypatch.setattr(likewise, "adapt", lambda *a, **k: adapted)
    monkeypatch.setattr(sys, "argv", ["security.py", "--out", str(tmp_path), "--runs", str(tmp_path)])
    security.main()
    has_layout(read(RESULTS / "security/ranks.json"), read(tmp_path / "ranks.json"))


def test_what_the_speeds_are_kept_as_is_what_is_committed(script, tmp_path, monkeypatch):
    every = script(BENCHMARKS / "all.py")
    monkeypatch.setattr(every, "RESULTS", tmp_path / "speed")
    every.kept([every.Claim("encode: peer", "/s", 50.0, 60.0)], [], add=False)
    (written,) = (tmp_path / "speed").glob("*.json")
    for path in (RESULTS / "speed").glob("*.json"):
        has_layout(read(path), read(written) | {"failed": []})


def test_the_figures_of_sncse_are_reports_of_similarity():
    from likewise.comparison.analyses import SimilarityReport
    from likewise.comparison.inspection import Distribution

    distribution = Distribution("after", "model", "negation", np.linspace(0, 1, 20))
    written = SimilarityReport("text", 1, 2, {}, ("a",), ("b",), ("c",), (distribution,)).to_dict()
    for path in (RESULTS / "sncse-figures").glob("*.json"):
        has_layout(read(path), json.loads(json.dumps(written)))


def test_alignment_and_uniformity_are_read_from_the_logs_of_runs(script, tmp_path, monkeypatch, capsys):
    figure = script(BENCHMARKS / "alignment.py")
    run = tmp_path / "runs" / "arccse-1"
    run.mkdir(parents=True)
    at = {"eval_sts_dev_spearman": 70.0, "eval_sts_dev_alignment": 0.25, "eval_sts_dev_uniformity": -2.5}
    log = [{"step": 0} | at, {"step": 10, "loss": 1.0}, {"step": 20} | at]
    (run / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in log))
    monkeypatch.setattr(sys, "argv", ["alignment.py", str(run), "--json", str(tmp_path / "found.json")])
    figure.main()
    assert "| arccse-1 | 20 | 70.00 | 0.250 | -2.500 |" in capsys.readouterr().out
    written = read(tmp_path / "found.json")["arccse-1"]
    assert [point["step"] for point in written] == [0, 20]
    for points in read(RESULTS / "arccse-figure-8.json").values():
        has_layout(points, written)


def test_what_the_cosines_of_negations_are_kept_as_is_what_is_committed(
    script, tmp_path, monkeypatch, sentences, saved_model
):
    cosines = script(BENCHMARKS / "negation/cosines.py")
    rows = [f"The door of the old house number {i} was never closed again." for i in range(80)]
    pairs = [SimpleNamespace(sentence=one, negation=one.replace("never", "always")) for one in rows[::40]]
    monkeypatch.setattr(cosines, "prepare", lambda corpus: SimpleNamespace(dataset={"sentence": rows}))
    monkeypatch.setattr(cosines, "negate_batch", lambda sample: pairs)
    out = tmp_path / "cosines.json"
    monkeypatch.setattr(sys, "argv", ["cosines.py", str(saved_model), "--out", str(out)])
    cosines.main()
    found, (written,) = read(RESULTS / "negation-cosines.json"), read(out)["models"].values()
    assert len(found["models"]) == 2
    assert found["log"]
    for model in found["models"].values():
        has_layout(model, written)
        assert {len(values) for values in model.values()} == {found["sentences"]}


def test_the_table_of_the_grid_of_arccse_is_made_of_its_runs_as_today():
    from likewise.comparison.methods import parse_methods
    from likewise.comparison.outcome import Comparison

    found = read(RESULTS / "arccse-grid/comparison.json")
    methods = {method.label: method for method in parse_methods([row["method"] for row in found["rows"]])}
    runs = tuple((methods[run["label"]], run["seed"]) for run in found["runs"])
    again = Comparison(Path(), found["settings"], tuple(found["seeds"]), runs, tuple(found["runs"]))
    assert json.loads(json.dumps(again.to_dict())) == found


def test_what_is_measured_without_labels_is_what_is_committed(script):
    measures = script(BENCHMARKS / "adapt_measures.py").measures
    rng = np.random.default_rng(0)
    texts = [f"word{i % 7} and word{i % 5}" for i in range(60)]
    sides = {kind: [rng.normal(size=(60, 8)) for _ in range(2)] for kind in ("halves", "parts")}
    written = measures(texts, sides, rng.normal(size=(60, 8)))
    for line in (RESULTS / "adapt-measures/scores.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert set(row) == {"recipe", "set", "candidate", "dev", *written}


@pytest.mark.parametrize("path", sorted((RESULTS / "adapt-beside-bm25").glob("*.json")), ids=lambda path: path.stem)
def test_what_adapt_gains_beside_bm25_is_kept_as_it_is_committed(path, script):
    row_of = script(BENCHMARKS / "adapt_beside_bm25.py").row_of
    written = row_of("aviation", "base", [1.0, 2.0], [np.ones(3), np.arange(3.0)], [np.ones(3), np.ones(3)])
    assert written["gain_hybrid"] == 0
    assert written["noise"] > 0
    for row in read(path):
        assert set(row) == set(written)
        assert row["set"] == path.stem


def test_the_cells_of_search_are_results_of_today(script, tmp_path, monkeypatch):
    searching = script(BENCHMARKS / "searching.py")
    judged = searching.Judged({"a": "one", "b": "two"}, {"q": "one"}, {"q": {"a": 1}})
    arms = {one: lambda: {"q": {"a": 1.0, "b": 0.5}} for one in (searching.FREE, searching.OURS)}
    monkeypatch.setattr(searching, "collection", lambda *_: judged)
    monkeypatch.setattr(searching, "arms", lambda *_: arms)
    searching.judge("aviation", searching.parser().parse_args(["--out", str(tmp_path)]))
    _, written = map(json.loads, (tmp_path / "cells.jsonl").read_text(encoding="utf-8").splitlines())
    assert written["ndcg_cut_10"] == 100
    gains = {"ndcg_cut_10_gain", "recall_100_gain"}
    for line in (RESULTS / "searching/cells.jsonl").read_text(encoding="utf-8").splitlines():
        cell = json.loads(line)
        assert set(cell) >= set(written) - gains
        has_layout(cell["each"], written["each"])
        assert {len(values) for values in cell["each"].values()} == {cell["queries"]}
        for kind, values in cell["each"].items():
            assert cell[kind] == pytest.approx(np.mean(values), abs=0.02)


@pytest.mark.parametrize("path", sorted((RESULTS / "topics").glob("*.json")), ids=lambda path: path.stem)
def test_what_topics_measures_is_what_is_committed(path, script):
    written = script(BENCHMARKS / "topics.py").row("banking", "some", ["a", "b", "b"], np.array([0, 1, 1]))
    found = read(path)
    assert set(found) == {"model", "rows"}
    for row in found["rows"]:
        assert set(row) >= set(written)


@pytest.mark.parametrize("path", sorted((RESULTS / "duplicates").glob("*.json")), ids=lambda path: path.stem)
def test_what_duplicates_measures_is_what_is_committed(path, script):
    duplicates = script(BENCHMARKS / "duplicates.py")
    texts = [f"The card number {i} was sent to London by post and has not arrived." for i in range(30)]
    (written,) = duplicates.planted_row("made", texts, {"all": lambda every, level: set(range(len(every)))}, (0.9,))
    assert written["recall"] == 1
    found = read(path)
    assert set(found) == {"model", "words", "rows"}
    for row in found["rows"]:
        if "kinds" in row:
            has_layout(row, {**written, "kinds": {}})


def test_layouts_are_compared():
    has_layout({"a": [{"b": 1.0, "c": 2}], "d": None}, {"a": [{"b": 0}], "d": "text"})
    for found in ({"a": [{"c": 1.0}]}, {"a": {"b": 1.0}}, {"a": [{"b": "text"}]}, {}):
        with pytest.raises(AssertionError):
            has_layout(found, {"a": [{"b": 1.0}]})


@pytest.mark.parametrize("path", sorted((RESULTS / "queries").iterdir()), ids=lambda path: path.stem)
def test_written_queries_have_the_rows_of_today(path, script):
    table = script(BENCHMARKS / "queries.py")
    study, _, name = path.stem.partition("-")
    assert study in table.STUDIES
    assert name in table.JUDGED
    first, *others = read(path)
    if study == "choose":
        assert all({"arm", "queries", "systems", "tau", "regret"} <= set(row) for row in (first, *others))
        assert len(others) == 3
    elif study == "judge":
        assert all({"arm", "queries", "candidates", "tau", "best", "chosen"} <= set(row) for row in (first, *others))
    else:
        ways = set(table.WAYS) if study == "expand" else {"alone", "free hybrid", "pipeline, no tokens"}
        assert set(first) == {"arm", *ways}
        assert all({"arm", *ways, *(f"{way}: gain" for way in ways)} <= set(row) for row in others)
        assert all(
            row[f"{way}: gain"][0] == pytest.approx(row[way] - first[way], abs=0.011) for row in others for way in ways
        )


@pytest.mark.parametrize(
    "path",
    [path for folder in ("layers", "teacher", "untrained") for path in (RESULTS / f"adapt-{folder}").glob("*.jsonl")],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_what_was_tried_of_adapt_is_beside_its_base(path):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows[0]["arm"] == "base"
    assert {row["set"] for row in rows} == {path.stem}
    assert len({row["arm"] for row in rows}) == len(rows) > 1
