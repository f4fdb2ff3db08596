"""Search through an index on sets that people judged, compared with the hybrid baseline.

search_rules.py has what each rule of the search gives, and search_scale.py its speed by size.

    python benchmarks/searching.py --sets aviation exclusion regulation security

The base, BM25 and their sum after each is standardised (the hybrid baseline) rank whole documents exhaustively, as in
domains.py. The others search an index of passages as a user does, by default options, and a document counts by its
best passage; the sets library and computing, which have no dev part, are halved by the hashes of their queries. The
interval of a gain over the hybrid baseline is of 10,000 samples of the queries with replacement (a paired bootstrap,
95 %). `security` is the CWE list as in security.py; half of its reports, by their hashes, are its dev part. `articles`
are 400 articles of Wikipedia of 700 to 3,000 words, without their titles and headings: a query is a sentence that was
taken out, or a heading that no other of them has, and finds its article; a quarter of them have queries of the dev
part, another one those of the test part. `sections` are their sections of 60 words or more, and the same queries find
their section. Rows are rows of the result file, and what is there is not done again; indexes and vectors are kept in
--work and --vectors.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import lancedb
import numpy as np
from lancedb.query import MatchQuery

import likewise
from domains import Bm25, Cosines, Encoded, Hybrid
from likewise.cli.weaknesses import read_weaknesses
from likewise.corpus.clean_text import digest_of
from likewise.corpus.sentence_splitter import sentence_spans
from likewise.evaluation.registry import resolve
from likewise.runs.cache import data_folder
from likewise.runs.whole_files import write_text
from likewise.searching.choose.choice_result import gain_interval
from likewise.searching.parts.pipeline import Pipeline
from likewise.searching.retrieval_task import measures_of_each, ranked_by
from rows import ResultFile

JUDGED = ("aviation", "exclusion", "regulation", "library", "computing", "security", "articles", "sections")
ARTICLES, WORDS, LEAST, SENTENCE = 400, range(700, 3001), 60, range(8, 31)


class Judged(NamedTuple):
    """Documents and queries by id, and query to document to grade."""

    documents: dict[str, str]
    queries: dict[str, str]
    grades: dict[str, dict[str, int]]


def collection(data: Path, name: str, part: str) -> Judged:
    if name == "security":
        return reported(part)
    if name in ("articles", "sections"):
        return long_documents(data.parent / "wikipedia" / "articles.jsonl.gz", name, part)
    halved = not (data / name / "qrels-dev.tsv").stat().st_size
    judged = resolve([f"retrieval:{data / name}:{'test' if halved else part}"])[0][0].load()
    queries = {one: text for one, text in judged.queries.items() if not halved or half_of(one) == part}
    return Judged(judged.documents, queries, {one: judged.grades[one] for one in queries})


def half_of(query: str) -> str:
    """Return the part of a query of a set that is not divided, by its hash."""
    return "test" if digest_of(query)[0] % 2 else "dev"


def reported(part: str) -> Judged:
    """Return weaknesses, and the reports of half of them that name one."""
    weaknesses = read_weaknesses()
    grades: dict[str, dict[str, int]] = {}
    for one in weaknesses:
        for report in one.reports:
            if half_of(report) == part:
                grades.setdefault(report, {})[one.id] = 1
    documents = {one.id: " ".join([one.name, *one.described]) for one in weaknesses}
    return Judged(documents, {report: report for report in grades}, grades)


def long_documents(path: Path, name: str, part: str) -> Judged:
    """Return articles, or their sections, with queries that were taken out of those of a part."""
    articles = long_articles(path)
    headings = Counter(section["heading"] for article in articles for section in article["sections"])
    draw, judged = random.Random(1), Judged({}, {}, {})
    for number, article in enumerate(articles):
        texts = []
        for place, section in enumerate(article["sections"]):
            text, taken = without_one(" ".join(section["paragraphs"]), draw)
            document = f"{article['id']}#{place}" if name == "sections" else article["id"]
            texts.append(text)
            if len(text.split()) < LEAST:
                continue
            if name == "sections":
                judged.documents[document] = text
            if number % 4 == ("dev", "test").index(part):
                own = [section["heading"]] if section["heading"] and headings[section["heading"]] == 1 else []
                for query in [*taken, *own]:
                    judged.queries[query] = query
                    judged.grades[query] = {document: 1}
        if name == "articles":
            judged.documents[article["id"]] = "\n\n".join(texts)
    return judged


def long_articles(path: Path) -> list[dict[str, Any]]:
    """Return long articles, evenly spaced among all that are as long."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for article in map(json.loads, file):
            if sum(len(text.split()) for one in article["sections"] for text in one["paragraphs"]) in WORDS:
                found.append(article)
    return found[:: max(1, len(found) // ARTICLES)][:ARTICLES]


def without_one(text: str, draw: random.Random) -> tuple[str, list[str]]:
    """Return a text without a sentence of 8 to 30 words, and the sentence; none if it has two sentences or fewer."""
    spans = sentence_spans(text)
    fit = [place for place, (start, end) in enumerate(spans) if len(text[start:end].split()) in SENTENCE]
    if len(spans) < 3 or not fit:
        return text, []
    start, end = spans[draw.choice(fit)]
    return text[:start] + text[end:], [text[start:end].strip()]


Found = dict[str, dict[str, float]]
"""Query to document to score."""


def exhaustive(judged: Judged, scores: Any) -> Found:
    documents, queries = list(judged.documents), list(judged.queries)
    found: Found = {}
    for start in range(0, len(queries), 100):
        block = slice(start, start + 100)
        for query, row in zip(queries[block], scores.rows(block), strict=True):
            first = np.argsort(-row, kind="stable")[:100]
            found[query] = {documents[i]: float(row[i]) for i in first}
    return found


def by_lancedb(judged: Judged, reader: likewise.Index) -> Found:
    """LanceDB's own hybrid search of the same table: reciprocal ranks."""
    table, found = lancedb.connect(reader.table.folder).open_table(reader.table.name), {}
    for query, text in judged.queries.items():
        asked = table.search(query_type="hybrid", vector_column_name="vector").vector(reader._encode([text])[0])
        kept: dict[str, float] = {}
        for row in asked.text(MatchQuery(text, "searched")).limit(200).to_list():
            kept.setdefault(row["id"], row["_relevance_score"])
        found[query] = dict(list(kept.items())[:100])
    return found


def by_txtai(judged: Judged, encoded: Encoded) -> Found:
    """txtai's hybrid search, vectors and BM25, with its defaults: each document is a row, and is not divided.

    It is given the vectors of the hybrid baseline.
    """
    from txtai import Embeddings

    peer = Embeddings(method="external", transform=lambda texts: encoded(list(texts)), hybrid=True)
    peer.index(judged.documents.items())
    return {query: dict(peer.search(text, 100)) for query, text in judged.queries.items()}


def opened(
    name: str, judged: Judged, model: str, work: Path, precision: str = "fp32", suffix: str = ""
) -> likewise.Index:
    """Index the documents, or open the index of an earlier run; one with a suffix has the vectors of the other."""
    work.mkdir(parents=True, exist_ok=True)
    usual = work / f"{name}-{model.replace(':', '-').replace('/', '-')}.index"
    docs, out = work / f"{name}.jsonl", usual.with_suffix(f".{suffix}.index") if suffix else usual
    rows = [json.dumps({"_id": one, "text": text}) for one, text in judged.documents.items()]
    write_text(docs, "\n".join(rows) + "\n")
    options = likewise.CorpusOptions(field="text")
    settings: dict[str, Any] = {"corpus_options": options, "metadata": ["_id"]}
    settings |= {"vectors_from": usual} if suffix else {}
    # The pipeline is given, since an index of an earlier run keeps its weights.
    if precision != "fp32":
        settings |= {"engine": "torch", "precision": precision}
    likewise.index(docs, model=model, out=out, pipeline=Pipeline(), **settings)
    return likewise.Index(out)


def first_ten(found: Found) -> dict[str, list[str]]:
    """The first ten documents of each query, the best first."""
    return {query: sorted(scores, key=scores.__getitem__, reverse=True)[:10] for query, scores in found.items()}


def measured(judged: Judged, found: Found) -> dict[str, list[float]]:
    """nDCG@10 and recall@100 of each query."""
    each = measures_of_each(judged.grades, found)
    ndcg, recall = zip(*(each[query] for query in judged.queries), strict=True)
    return {"ndcg_cut_10": list(ndcg), "recall_100": list(recall)}


def arms(name: str, judged: Judged, options: argparse.Namespace) -> dict[str, Callable[[], Found]]:
    texts, asked = list(judged.documents.values()), list(judged.queries.values())
    encoded = Encoded(options.model, options.vectors, options.precision)
    reader = cache(lambda: opened(name, judged, options.model, options.work, options.precision))

    @cache
    def exact() -> tuple[Bm25, Cosines]:
        vectors = encoded([*texts, *asked])
        return Bm25(asked, texts, texts), Cosines(vectors[len(texts) :], vectors[: len(texts)])

    return {
        FREE: lambda: exhaustive(judged, Hybrid(*exact())),
        "base": lambda: exhaustive(judged, exact()[1]),
        "BM25": lambda: exhaustive(judged, exact()[0]),
        "LanceDB, hybrid": lambda: by_lancedb(judged, reader()),
        **({"txtai, hybrid": lambda: by_txtai(judged, encoded)} if find_spec("txtai") else {}),
        OURS: lambda: ranked_by(reader().documents, judged.queries, judged.grades),
    }


FREE, OURS = "free hybrid", "likewise search"


def judge(name: str, options: argparse.Namespace) -> None:
    """Measure every method that is not in the result file yet."""
    judged, results = collection(options.data, name, options.split), ResultFile(options.table)
    for arm, run in arms(name, judged, options).items():
        key = {"arm": arm, "set": name, "part": options.split, "model": options.model}
        if results.has(**key) or (options.arms and arm not in options.arms):
            continue
        found = run()
        each, first = measured(judged, found), first_ten(found)
        free = next(iter(results.rows(**key | {"arm": FREE})), None)
        row: dict[str, Any] = {**key, "queries": len(judged.queries), "each": each}
        for kind, values in each.items():
            row[kind] = round(float(np.mean(values)), 2)
            if free:
                row[f"{kind}_gain"] = [
                    round(one, 2) for one in gain_interval(np.array(values) - np.array(free["each"][kind]))
                ]
        row["first"] = [digest_of(" ".join(first.get(query, []))).hex()[:8] for query in judged.queries]
        row["each"] = {kind: [round(value, 2) for value in values] for kind, values in each.items()}
        results.add(row)
        print(f"{arm}, {name}, {options.split}: {row['ndcg_cut_10']} {row['recall_100']}", flush=True)


def cells(results: ResultFile) -> dict[tuple[str, ...], dict[str, Any]]:
    return {(row["arm"], row["set"], row["part"], row["model"]): row for row in results.rows()}


def table(done: dict[tuple[str, ...], dict[str, Any]]) -> str:
    """Markdown: nDCG@10, with the interval of the gain over the hybrid baseline, and recall@100."""
    texts = []
    for part, model in dict.fromkeys((part, model) for _, _, part, model in done):
        sets = list(dict.fromkeys(name for _, name, *rest in done if rest == [part, model]))
        lines = [f"| {model}, {part} | {' | '.join(sets)} |", f"| --- |{' ---: |' * len(sets)}"]
        for arm in dict.fromkeys(arm for arm, *_ in done):
            shown = []
            for name in sets:
                row = done.get((arm, name, part, model))
                gain = row.get("ndcg_cut_10_gain") if row and arm != FREE else None
                note = f" ({gain[0]:+.1f} to {gain[1]:+.1f})" if gain else ""
                shown.append(f"{row['ndcg_cut_10']:.2f}{note}, {row['recall_100']:.1f}" if row else "")
            lines.append(f"| {arm} | {' | '.join(shown)} |")
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def memory() -> int:
    """Return the megabytes that this process held at most."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--table", default="searching", help="the result file")
    kept = Path.home() / ".cache/likewise/benchmarks"
    found.add_argument("--vectors", type=Path, default=kept / "domains", help="the folder of vectors that are kept")
    found.add_argument("--work", type=Path, default=kept / "searching", help="the folder of the indexes")
    found.add_argument("--sets", nargs="*", choices=JUDGED, default=[])
    found.add_argument("--precision", default="fp32", choices=["fp32", "bf16"], help="of all vectors")
    found.add_argument("--split", default="test", choices=["dev", "test"])
    found.add_argument("--arms", nargs="*", help=f"methods, as '{OURS}'; all of them if not given")
    return found


def main() -> None:
    options = parser().parse_args()
    if options.sets:
        for name in options.sets:
            judge(name, options)
        done = cells(ResultFile(options.table))
        print(f"\n{table(done)}")


if __name__ == "__main__":
    main()
