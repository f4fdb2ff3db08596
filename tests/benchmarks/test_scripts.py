"""Scripts of benchmarks/ on made data: what they measure arrives in their result files."""

import json
import math
import sys
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from likewise.searching.parts.pipeline import Pipeline

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def run(script, tmp_path, monkeypatch):
    """A function that runs a script's main with arguments, and returns the rows that it wrote."""

    def call(module, *arguments):
        path = tmp_path / "table.jsonl"
        monkeypatch.setattr(sys, "argv", ["script.py", *map(str, arguments), "--table", str(path)])
        module.main()
        return script(BENCHMARKS / "rows.py").ResultFile(path).rows()

    return call


def test_origin_keeps_its_scores_by_features_and_task(script, run, tmp_path):
    origin = script(BENCHMARKS / "context/origin.py")
    rng = np.random.default_rng(0)
    for name in (*(f"two-step-0-{task}-all" for task in (origin.DEV, *origin.SEVEN)),
                 *(f"{way}-20-{task}" for way in ("two-step", "without-diversity", "random")
                   for task in (f"{origin.DEV}-400", f"{origin.TEST}-500"))):  # fmt: skip
        np.savez(tmp_path / f"{name}.npz", f=rng.normal(size=(30, len(origin.FEATURES))), g=rng.uniform(0, 5, 30))
    rows = run(origin, "--out", tmp_path)
    assert {row["set"] for row in rows if row.get("arm") == "cosine"} == {origin.DEV, *origin.SEVEN}
    assert {"coherence alone", "the four of equation 3"} <= {row["row"] for row in rows if row.get("part") == "terms"}


def test_pretrained_keeps_its_scores_by_terms(script, run, tmp_path):
    pretrained, rng = script(BENCHMARKS / "context/pretrained.py"), np.random.default_rng(0)
    for task in ("own-text", "sts-b-dev"):
        np.savez(tmp_path / f"{task}-150-5.npz", f=rng.normal(size=(30, 7)), g=rng.uniform(0, 5, 30))
    given = ["--tasks", "sts-b-dev", "--contexts", "5", "--limit", "150", "--terms", "cosine", "coherence"]
    rows = run(pretrained, "--out", tmp_path, *given, *pretrained.MODEL)
    arms = ["cosine, centre, left, right", "cosine, coherence, centre, left, right"]
    assert [row["arm"] for row in rows[-2:]] == arms


def test_alignment_and_uniformity_are_read_from_the_logs_of_runs(script, run, tmp_path, capsys):
    folder = tmp_path / "runs" / "arccse-1"
    folder.mkdir(parents=True)
    at = {"eval_sts_dev_spearman": 70.0, "eval_sts_dev_alignment": 0.25, "eval_sts_dev_uniformity": -2.5}
    log = [{"step": 0} | at, {"step": 10, "loss": 1.0}, {"step": 20} | at]
    (folder / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in log))
    rows = run(script(BENCHMARKS / "alignment.py"), folder)
    assert "| arccse-1 | 20 | 70.00 | 0.250 | -2.500 |" in capsys.readouterr().out
    assert [(row["arm"], row["seed"], row["step"], row["uniformity"]) for row in rows] == [
        ("arccse", 1, 0, -2.5),
        ("arccse", 1, 20, -2.5),
    ]


def test_the_cosines_of_negations_are_kept_for_each_model(script, run, monkeypatch, sentences, saved_model):
    cosines = script(BENCHMARKS / "negation/cosines.py")
    texts = [f"The door of the old house number {i} was never closed again." for i in range(80)]
    pairs = [SimpleNamespace(sentence=one, negation=one.replace("never", "always")) for one in texts[::40]]
    monkeypatch.setattr(cosines, "prepare", lambda corpus: SimpleNamespace(dataset={"sentence": texts}))
    monkeypatch.setattr(cosines, "negate_batch", lambda sample: pairs)
    (row,) = run(cosines, saved_model)
    assert len(row["negation"]) == len(row["positive"]) == row["sentences"] == 2


def test_a_search_is_measured_beside_the_free_hybrid_and_not_twice(script, tmp_path, monkeypatch):
    searching = script(BENCHMARKS / "searching.py")
    judged = searching.Judged({"a": "one", "b": "two"}, {"q": "one"}, {"q": {"a": 1}})
    calls = []

    def found():
        calls.append(1)
        return {"q": {"a": 1.0, "b": 0.5}}

    monkeypatch.setattr(searching, "collection", lambda *_: judged)
    monkeypatch.setattr(searching, "arms", lambda *_: dict.fromkeys((searching.FREE, searching.OURS), found))
    options = searching.parser().parse_args(["--table", str(tmp_path / "cells.jsonl")])
    for _ in range(2):
        searching.judge("aviation", options)
    free, ours = script(BENCHMARKS / "rows.py").ResultFile(tmp_path / "cells.jsonl").rows()
    assert len(calls) == 2
    assert free["ndcg_cut_10"] == 100
    assert ours["ndcg_cut_10_gain"] == [0, 0]


def test_planted_copies_are_counted(script):
    duplicates = script(BENCHMARKS / "duplicates.py")
    texts = [f"The card number {i} was sent to London by post and has not arrived." for i in range(30)]
    (row,) = duplicates.planted_row("made", texts, {"all": lambda every, level: set(range(len(every)))}, (0.9,))
    assert row["recall"] == 1


def test_the_authors_input_reads_a_sentence_with_its_padding(script, tmp_path):
    queue = script(BENCHMARKS / "papers_queue.py")
    vectors = tmp_path / "vectors.txt"
    draw = np.random.default_rng(1)
    # Both sentences are all negative, so that a filter may like the zeros of the padding best.
    vectors.write_text("".join(f"{word} {' '.join(f'{-x:.3f}' for x in draw.random(4))}\n" for word in ("cat", "sat")))
    small = {"regions": "1,2", "filters": 3, "projection": 4, "bottleneck": 2, "group_size": 0}
    plain = {"attention": False, "augmentation": "none", "weighted": False}
    options = queue.AUTHORS_INPUT.options("cpu", **small, **plain)
    network = queue.AUTHORS_INPUT.build_encoder(str(vectors), options, ["cat sat", "sat"]).eval()
    words, cnn = network[0], next(module for module in network if hasattr(module, "banks"))
    features = words.preprocess(["cat sat", "sat"])
    with torch.no_grad():
        found = cnn(words({name: value.clone() for name, value in features.items()}))["sentence_embedding"]
        for row, text in enumerate((["cat", "sat"], ["sat"])):
            known = words(words.preprocess([" ".join(text)]))["token_embeddings"][0]
            padded = torch.cat([known, torch.zeros(queue.ROWS - len(known), 4)]).T[None]
            best = [torch.nn.functional.pad(padded, (r - 1, r - 1)) for r in (1, 2)]
            best = [bank(values).amax(dim=2).relu() for bank, values in zip(cnn.banks, best, strict=True)]
            assert found[row].tolist() == pytest.approx(torch.cat(best, dim=1)[0].tolist(), abs=1e-5)


def test_what_switches_off_a_rule_of_the_search_is_there(script):
    rules = script(BENCHMARKS / "search_rules.py")
    names = [name for replaced in rules.REPLACED.values() for name in replaced]
    assert all(resolve_name(f"likewise.searching.{name}") is not None for name in names)
    assert all(Pipeline(**options) != Pipeline() for options in rules.OPTIONS.values())


def test_the_gain_of_a_rule_is_what_is_lost_without_it(script):
    rules = script(BENCHMARKS / "search_rules.py")
    judged = rules.Judged({"a": "one", "b": "two"}, {"q": "one", "r": "two"}, {"q": {"a": 1}, "r": {"b": 1}})
    whole = {"q": {"a": 1.0, "b": 0.5}, "r": {"b": 1.0}}
    row = rules.measured(judged, whole, whole | {"q": {"b": 1.0, "a": 0.5}})
    second = 100 / math.log2(3)  # nDCG of the only relevant document in the second place
    assert row["changed"] == 1
    assert row["score"] == pytest.approx((second + 100) / 2, abs=0.01)
    assert row["gain"] == pytest.approx((100 - second) / 2, abs=0.01)
