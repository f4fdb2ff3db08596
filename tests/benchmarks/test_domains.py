import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

CORPUS = ["the river floods the valley", "a king of the valley", "songs of a river", "markets, kings and songs", "rain"]


@pytest.fixture
def domains(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    sys.modules.pop("domains", None)
    yield importlib.import_module("domains")
    sys.modules.pop("domains", None)


def test_bm25_beside_bm25s(domains):
    import bm25s

    queries = ["kings of the river", "flooding rain", "song"]
    peer = bm25s.BM25()
    peer.index(domains.words(CORPUS), show_progress=False)
    expected = np.stack([peer.get_scores(words) for words in domains.words(queries)])
    assert (expected > 0).any(axis=1).all()
    scores = domains.Bm25(queries, CORPUS, CORPUS)
    np.testing.assert_allclose(scores.rows(slice(0, 3)), expected, rtol=1e-5)
    there, back = (domains.Bm25(*texts, CORPUS) for texts in ((queries, CORPUS[:3]), (CORPUS[:3], queries)))
    means = [(there.rows(slice(i, i + 1))[0, i] + back.rows(slice(i, i + 1))[0, i]) / 2 for i in range(3)]
    np.testing.assert_allclose(there.pairs(), means)


def test_bm25_knows_the_corpus_alone(domains):
    # 'comet' is in no text of the corpus, and in every ranked one: it is rare all the same.
    scores = domains.Bm25(["comet", "river"], ["comet one", "comet two", "comet river"], CORPUS)
    assert scores.rows(slice(0, 1)).min() > scores.rows(slice(1, 2)).max() > 0


def test_a_hybrid_is_the_sum_of_standard_scores(domains):
    class Given:
        def __init__(self, numbers):
            self.numbers = np.array(numbers, dtype=float)

        def rows(self, block):
            return self.numbers[block]

    both = domains.Hybrid(Given([[1, 3], [5, 5]]), Given([[0, 0.5], [2, 1]]))
    np.testing.assert_allclose(both.rows(slice(0, 2)), [[-2, 2], [1, -1]])


def test_cells_table_and_the_second_run(domains, tmp_path, tiny_base, sentences, monkeypatch, capsys):
    import gzip

    few = sentences[:30]
    for name, kind in domains.SETS.items():
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        with gzip.open(folder / "corpus.txt.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(few))
        files = {}
        if kind == "retrieval":
            rows = [json.dumps({"_id": f"d{i}", "text": text}) for i, text in enumerate(few)]
            files = {"docs.jsonl": "\n".join(rows), "queries.jsonl": json.dumps({"_id": "q", "text": few[3]})}
        for part in ("train", "dev", "test"):
            files[f"qrels-{part}.tsv"] = "q\td3\t1\n"
            files[f"pairs-{part}.tsv"] = "".join(f"{i}\t{few[i]}\t{few[i + 1]}\n" for i in range(9))
            files[f"classes-{part}.tsv"] = "".join(f"{len(text) % 2}\t{text}\n" for text in few)
        for file, text in files.items():
            if file.startswith(kind) or (kind == "retrieval" and not file.startswith(("pairs", "classes"))):
                (folder / file).write_text(text)
    folders = [f"--{option}={tmp_path / option}" for option in ("data", "vectors")]
    folders.append(f"--table={tmp_path / 'cells.jsonl'}")
    sets = ["--sets", "aviation", "patents", "threats", "--parts", "test"]
    monkeypatch.setattr(sys, "argv", ["domains.py", *folders, *sets, f"--base={tiny_base}"])
    domains.main()
    found = domains.read(domains.ResultFile(tmp_path / "cells.jsonl"))
    arms = (domains.BM25, domains.BASE, domains.HYBRID, domains.CENTRED)
    assert set(found) == {(arm, name, "test") for arm in arms for name in ("aviation", "patents", "threats")}
    assert all(found[arm, "aviation", "test"]["score"] == 100 for arm in arms)  # the query is its document
    # A second run adds the new model alone; the same model has the same scores.
    monkeypatch.setattr(domains, "by_scores", None)
    monkeypatch.setattr(sys, "argv", [*sys.argv, f"--model=again={tiny_base}"])
    capsys.readouterr()
    domains.main()
    shown = capsys.readouterr().out
    assert [line.split(",")[0] for line in shown.splitlines()[:3]] == ["again"] * 3
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in shown.splitlines() if line.startswith("| ")}
    assert rows["| again"] == rows["| base"]
    assert rows["| base"][0] == "100.00"
