"""Adapting to software security: the weaknesses of the CWE list, tested on reports of real vulnerabilities.

    python benchmarks/security.py

Corpus: name, description, extended description and mitigations of each weakness. Test: every observed example (a report
of one sentence, filed under a weakness by an expert), which is not in the corpus; what is searched are name and both
descriptions. nDCG@10 and recall@100 by pytrec_eval. Base all-MiniLM-L6-v2 as it is shipped. BM25 as in domains.py (k1
1.5, b 0.75, English stop words, no stemming); the hybrids are sums of scores, each brought to mean 0 and deviation 1.
Nothing is chosen on a report. The result file has every rank, and what docs/pictures/measured.py draws.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytrec_eval
from sklearn.manifold import TSNE

import likewise
from likewise.cli.weaknesses import read_weaknesses
from rows import ResultFile

BASE = "bundled:minilm"


def pillar(weakness: str, parents: dict[str, str]) -> str:
    """Return the most general weakness above one."""
    while parents.get(weakness):
        weakness = parents[weakness]
    return weakness


def bm25(documents: list[str], queries: list[str]) -> np.ndarray:
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(bm25s.tokenize(documents, stopwords="en", show_progress=False), show_progress=False)
    asked = bm25s.tokenize(queries, stopwords="en", return_ids=False, show_progress=False)
    return np.stack([index.get_scores(query) for query in asked])


def standard(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True).clip(1e-9)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--table", default="security", help="the result file")
    found.add_argument("--runs", type=Path, default=Path("runs"), help="the folder of the adapted model")
    found.add_argument("--passages", type=int, default=10_000, help="used at most")
    return found


def main() -> None:
    args = parser().parse_args()
    weaknesses = read_weaknesses()
    reports: dict[str, set[str]] = {}
    for one in weaknesses:
        for report in one.reports:
            reports.setdefault(report, set()).add(one.id)
    args.runs.mkdir(parents=True, exist_ok=True)
    corpus = args.runs / "weaknesses.jsonl"
    texts = [{"title": one.name, "text": "\n\n".join(one.described + one.avoided)} for one in weaknesses]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in texts))
    options = likewise.CorpusOptions(field="text")
    adapted = likewise.adapt(str(corpus), out=args.runs / "security", passages=args.passages, corpus_options=options)
    documents = [" ".join([one.name, *one.described]) for one in weaknesses]
    queries, ids = list(reports), [one.id for one in weaknesses]
    relevant = {str(i): dict.fromkeys(reports[query], 1) for i, query in enumerate(queries)}
    words = bm25(documents, queries)
    vectors = {}
    for name, model in (("base", likewise.load(BASE, precision="fp32")), ("adapted", adapted.model)):
        vectors[name] = [model.encode(texts, normalize_embeddings=True) for texts in (queries, documents)]
    scores = {"BM25": words} | {name: asked @ found.T for name, (asked, found) in vectors.items()}
    scores |= {f"{name} and BM25": standard(scores[name]) + standard(words) for name in ("base", "adapted")}
    own = np.array([[one in reports[query] for one in ids] for query in queries])  # (queries, documents)
    evaluator = pytrec_eval.RelevanceEvaluator(relevant, {"ndcg_cut.10", "recall.100"})
    rows, found = list[dict[str, Any]](), {"arm": "adapt", "set": "security", "score": None, "chosen": adapted.chosen}
    print("| method | nDCG@10 | recall@100 |\n| --- | ---: | ---: |")
    for name, matrix in scores.items():
        run = {str(i): dict(zip(ids, map(float, row), strict=True)) for i, row in enumerate(matrix)}
        each = evaluator.evaluate(run).values()
        ndcg, recall = (100 * float(np.mean([one[key] for one in each])) for key in ("ndcg_cut_10", "recall_100"))
        best = np.where(own, matrix, -np.inf).max(axis=1, keepdims=True)
        ranks = (1 + (matrix > best).sum(axis=1)).tolist()
        rows.append({"arm": name, "set": "security", "score": round(ndcg, 2), "recall@100": round(recall, 2)})
        rows[-1]["ranks"] = ranks
        print(f"| {name} | {ndcg:.2f} | {recall:.2f} |")
    found["candidates"] = [vars(one) for one in adapted.candidates]
    found["pillars"] = [pillar(one.id, {one.id: one.parent for one in weaknesses}) for one in weaknesses]
    rng = np.random.default_rng(0)
    found["cosines"], found["map"] = {}, {}
    for name, (_, of_documents) in vectors.items():
        random = rng.permuted(scores[name], axis=1)[:, 0]
        right = np.where(own, scores[name], -np.inf).max(axis=1)
        found["cosines"][name] = {"own": right.round(3).tolist(), "random": random.round(3).tolist()}
        found["map"][name] = (
            TSNE(random_state=0, metric="cosine", init="pca").fit_transform(of_documents).round(2).tolist()
        )
    ResultFile(args.table).add(*rows, found)


if __name__ == "__main__":
    main()
